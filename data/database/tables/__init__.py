"""One module per area. Importing this package knows every table."""

from data.database.tables import api, claims, conversations, gana, knowledge, nataraj, notes

__all__ = ["api", "claims", "conversations", "gana", "knowledge", "nataraj", "notes"]
