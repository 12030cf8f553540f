"""The resources as data: fields, checks, comparison, and the package schema."""
