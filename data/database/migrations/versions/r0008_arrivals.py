"""When a note first got a tag or came into a Manas: that is what is new to a Gana, and an edit of the note is not.

Until now it was the newest change of its content. What a Gana has read stays read, and what it has not is still new: the
numbers are those of the changes.
"""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "note_arrival",
        sa.Column("note_id", sa.Text(), nullable=False),
        sa.Column("place", sa.Text(), nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(
            ["note_id"], ["note.id"], name=op.f("fk_note_arrival_note_id_note"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("note_id", "place", name=op.f("pk_note_arrival")),
    )
    op.create_index(op.f("ix_note_arrival_number"), "note_arrival", ["number"], unique=False)
    for kind, members, column in (("tag", "note_tag", "tag"), ("manas", "manas_note", "manas_id")):
        op.execute(
            "INSERT INTO note_arrival (note_id, place, number) "
            f"SELECT {members}.note_id, '{kind}:' || {members}.{column}, note.change "
            f"FROM {members} JOIN note ON note.id = {members}.note_id"
        )
    op.drop_index(op.f("ix_note_change"), "note")
    op.drop_column("note", "change")
    op.execute("UPDATE counter SET name = 'arrivals' WHERE name = 'changes'")
