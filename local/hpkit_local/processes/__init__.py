"""Child processes of the local cloud: starting, identifying and ending them, and their private files."""
