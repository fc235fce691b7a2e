"""What UNIUN is about: entities, ports and use cases. Imports nothing of ours and no framework but pydantic."""
