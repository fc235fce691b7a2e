"""Changes of notes are numbered in the order of their commits, and what a Gana has read is such a number.

Until now it was a time, which is taken before the transaction: a note could become visible after a younger one had been
read, and was passed over.
"""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("INSERT INTO counter (name, value) SELECT 'changes', count(*) FROM note")
    op.add_column("note", sa.Column("change", sa.BigInteger(), nullable=False, server_default="0"))
    op.execute(
        "UPDATE note SET change = ranked.place FROM "
        "(SELECT number, row_number() OVER (ORDER BY changed_at, number) AS place FROM note) AS ranked "
        "WHERE ranked.number = note.number"
    )
    if op.get_bind().dialect.name != "sqlite":
        op.alter_column("note", "change", server_default=None)
    op.create_index(op.f("ix_note_change"), "note", ["change"], unique=False)
    op.add_column("gana", sa.Column("read_up_to", sa.BigInteger(), nullable=True))
    op.execute(
        "UPDATE gana SET read_up_to = (SELECT count(*) FROM note WHERE note.changed_at <= gana.cursor) "
        "WHERE cursor IS NOT NULL"
    )
    op.drop_column("gana", "cursor")
    op.execute("ALTER TABLE gana RENAME COLUMN read_up_to TO cursor")
