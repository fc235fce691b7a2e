"""Background work on the knowledge graph."""
