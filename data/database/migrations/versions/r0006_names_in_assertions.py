"""Assertions keep the names that their note used, and mentions the key by which titles and aliases are compared, so that
concepts which became one can become several again.

Until now an assertion between two concepts that became one was lost, and which name an assertion had used is not known
where its note has several for one concept: such notes are read again.
"""

import sqlalchemy as sa
from alembic import op

from data.repositories.note_links import name_key

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

_NAMES = 1_000
"""Read and written at once."""


def upgrade() -> None:
    _give_keys()
    op.execute("CREATE TABLE old_assertion AS SELECT note_id, source_id, verb, target_id FROM assertion")
    op.drop_table("assertion")
    _create_assertion()
    # With several names, or none, it has a name for the time being.
    op.execute(
        "INSERT INTO assertion (note_id, source_name, verb, target_name, source_id, target_id) "
        "SELECT old.note_id, coalesce(source.name, source_concept.name), old.verb, "
        "coalesce(target.name, target_concept.name), old.source_id, old.target_id FROM old_assertion AS old "
        "JOIN concept AS source_concept ON source_concept.id = old.source_id "
        "JOIN concept AS target_concept ON target_concept.id = old.target_id "
        f"LEFT JOIN ({_ONE_NAME}) AS source "
        "ON source.note_id = old.note_id AND source.concept_id = old.source_id "
        f"LEFT JOIN ({_ONE_NAME}) AS target "
        "ON target.note_id = old.note_id AND target.concept_id = old.target_id "
        "WHERE true ON CONFLICT DO NOTHING"
    )
    op.execute(
        "INSERT INTO pending_extraction (note_id, content_hash, state, attempts, error, queued_at) "
        "SELECT id, content_hash, 'waiting', 0, NULL, changed_at FROM note WHERE id IN "
        "(SELECT note_id FROM mention GROUP BY note_id, concept_id HAVING count(*) > 1) "
        "OR id IN (SELECT old.note_id FROM old_assertion AS old WHERE "
        f"NOT EXISTS (SELECT 1 FROM mention WHERE {_OF_OLD} AND mention.concept_id = old.source_id) "
        f"OR NOT EXISTS (SELECT 1 FROM mention WHERE {_OF_OLD} AND mention.concept_id = old.target_id)) "
        "ON CONFLICT DO NOTHING"
    )
    op.drop_table("old_assertion")


_ONE_NAME = "SELECT note_id, concept_id, min(name) AS name FROM mention GROUP BY note_id, concept_id"
_OF_OLD = "mention.note_id = old.note_id"


def _give_keys() -> None:
    op.add_column("mention", sa.Column("key", sa.Text(), nullable=False, server_default=""))
    connection = op.get_bind()
    key_of = op.create_table(
        "name_key",
        sa.Column("name", sa.Text(), primary_key=True),
        sa.Column("key", sa.Text(), nullable=False),
    )
    names = list(connection.execute(sa.text("SELECT DISTINCT name FROM mention")).scalars())
    for start in range(0, len(names), _NAMES):
        some = names[start : start + _NAMES]
        connection.execute(key_of.insert(), [{"name": name, "key": name_key(name)} for name in some])
    op.execute("UPDATE mention SET key = (SELECT key FROM name_key WHERE name_key.name = mention.name)")
    op.drop_table("name_key")
    if connection.dialect.name != "sqlite":
        op.alter_column("mention", "key", server_default=None)
    op.create_index(op.f("ix_mention_key"), "mention", ["key"], unique=False)


def _create_assertion() -> None:
    op.create_table(
        "assertion",
        sa.Column("note_id", sa.Text(), nullable=False),
        sa.Column("source_name", sa.Text(), nullable=False),
        sa.Column("verb", sa.Text(), nullable=False),
        sa.Column("target_name", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("target_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["note_id"], ["note.id"], name=op.f("fk_assertion_note_id_note"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["source_id"], ["concept.id"], name=op.f("fk_assertion_source_id_concept"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["target_id"], ["concept.id"], name=op.f("fk_assertion_target_id_concept"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("note_id", "source_name", "verb", "target_name", name=op.f("pk_assertion")),
    )
    op.create_index(op.f("ix_assertion_source_id"), "assertion", ["source_id"], unique=False)
    op.create_index(op.f("ix_assertion_target_id"), "assertion", ["target_id"], unique=False)
