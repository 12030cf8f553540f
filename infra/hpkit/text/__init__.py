"""Text for people: plurals, spelling, numbers, and characters that terminals obey."""
