"""The commands of the what-if package."""
