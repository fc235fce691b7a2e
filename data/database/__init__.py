"""The database: tables, sessions and migrations."""
