"""One supervisor process an instance of the local cloud: starts its parts in order, and restarts what dies."""
