"""What the models say about a position in the file: for messages, editors, and the reference."""
