"""What commands share: options, documents, tables, and sessions."""
