"""What the resources are, as data: fields, checks, comparison, and the package schema made of them."""
