"""What all components share: their base, credentials, guards, and outputs."""
