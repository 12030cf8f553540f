"""The sections of an organization file: pydantic models with the limits of the service's API."""
