"""The rules of the pack, one module a family; each module lists its policies in POLICIES."""
