"""The commands of the local cloud."""
