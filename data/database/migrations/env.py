"""Alembic's entry. The program runs migrations itself, on a connection that already holds the lock."""

from alembic import context

context.configure(connection=context.config.attributes["connection"], transaction_per_migration=False)
context.run_migrations()
