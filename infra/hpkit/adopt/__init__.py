"""The adoption of a live platform: its file, its import, and its state."""
