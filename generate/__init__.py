"""Files that are written from their sources: pages, schema, SDK classes, catalog data, cases of rules."""
