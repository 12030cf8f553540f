"""Text helpers: plurals, spelling, numbers, and escaping of control characters."""
