"""Child processes of the local cloud: what is started, how it is found again and ended, and its private files."""
