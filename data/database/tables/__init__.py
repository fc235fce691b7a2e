"""One module per area. Importing this package knows every table."""

from data.database.tables import conversations, gana, knowledge, nataraj, notes

__all__ = ["conversations", "gana", "knowledge", "nataraj", "notes"]
