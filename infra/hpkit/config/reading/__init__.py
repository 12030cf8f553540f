"""Reads an organization file and the files that it names, and changes their text."""
