"""The rules of the pack, one module per family; each module lists its policies in POLICIES."""
