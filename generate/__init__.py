"""Files that are generated from their sources: pages, schema, SDK classes, catalog data, cases of rules."""
