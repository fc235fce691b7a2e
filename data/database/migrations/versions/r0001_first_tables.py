"""The first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "card",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("combination", sa.Text(), nullable=False),
        sa.Column("note_ids", sa.JSON(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("note_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_card")),
        sa.UniqueConstraint("id", name=op.f("uq_card_id")),
        sa.UniqueConstraint("scope", "combination", name=op.f("uq_card_scope_combination")),
    )
    op.create_index(op.f("ix_card_state"), "card", ["state"], unique=False)
    op.create_table(
        "concept",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.Column("note_count", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_concept")),
    )
    op.create_index(op.f("ix_concept_note_count"), "concept", ["note_count"], unique=False)
    op.create_table(
        "conversation",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("title_folded", sa.Text(), nullable=False),
        sa.Column("manas_id", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("leaf_id", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_conversation")),
    )
    op.create_index(op.f("ix_conversation_changed_at"), "conversation", ["changed_at"], unique=False)
    op.create_table(
        "counter",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_counter")),
    )
    op.create_table(
        "gana",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("draft", sa.JSON(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("cursor", sa.DateTime(timezone=True), nullable=True),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("claim", sa.Text(), nullable=True),
        sa.Column("claim_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("claim_until", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_gana")),
    )
    op.create_index(op.f("ix_gana_claim_until"), "gana", ["claim_until"], unique=False)
    op.create_index(op.f("ix_gana_due_at"), "gana", ["due_at"], unique=False)
    op.create_index(op.f("ix_gana_name"), "gana", ["name"], unique=False)
    op.create_table(
        "manas",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_manas")),
        sa.UniqueConstraint("key", name=op.f("uq_manas_key")),
    )
    op.create_table(
        "note",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), nullable=True),
        sa.Column("origin_mark", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("changed_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("characters", sa.Integer(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("tags", sa.JSON(), nullable=False),
        sa.Column("aliases", sa.JSON(), nullable=False),
        sa.Column("links", sa.JSON(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_note")),
        sa.UniqueConstraint("id", name=op.f("uq_note_id")),
    )
    op.create_index(op.f("ix_note_changed_at"), "note", ["changed_at"], unique=False)
    op.create_index("ix_note_origin", "note", ["origin"], unique=False, postgresql_using="hash")
    op.create_table(
        "note_vector",
        sa.Column("note_id", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=True),
        sa.Column("vector", sa.LargeBinary(), nullable=True),
        sa.PrimaryKeyConstraint("note_id", name=op.f("pk_note_vector")),
    )
    op.create_index(op.f("ix_note_vector_version"), "note_vector", ["version"], unique=False)
    op.create_table(
        "assertion",
        sa.Column("note_id", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("verb", sa.Text(), nullable=False),
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
        sa.PrimaryKeyConstraint("note_id", "source_id", "verb", "target_id", name=op.f("pk_assertion")),
    )
    op.create_index(op.f("ix_assertion_source_id"), "assertion", ["source_id"], unique=False)
    op.create_index(op.f("ix_assertion_target_id"), "assertion", ["target_id"], unique=False)
    op.create_table(
        "card_note",
        sa.Column("card_id", sa.Text(), nullable=False),
        sa.Column("note_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["card_id"], ["card.id"], name=op.f("fk_card_note_card_id_card"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("card_id", "note_id", name=op.f("pk_card_note")),
    )
    op.create_index(op.f("ix_card_note_note_id"), "card_note", ["note_id"], unique=False)
    op.create_table(
        "concept_key",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("concept_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["concept_id"], ["concept.id"], name=op.f("fk_concept_key_concept_id_concept"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_concept_key")),
    )
    op.create_index(op.f("ix_concept_key_concept_id"), "concept_key", ["concept_id"], unique=False)
    op.create_table(
        "gana_run",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("gana_id", sa.Text(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("completed_due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("input_note_ids", sa.JSON(), nullable=False),
        sa.Column("output_note_id", sa.Text(), nullable=True),
        sa.Column("output", sa.Text(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seconds", sa.Float(), nullable=False),
        sa.Column("tokens", sa.Integer(), nullable=False),
        sa.Column("preemptions", sa.Integer(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["gana_id"], ["gana.id"], name=op.f("fk_gana_run_gana_id_gana"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_gana_run")),
        sa.UniqueConstraint("gana_id", "completed_due_at", name=op.f("uq_gana_run_gana_id_completed_due_at")),
        sa.UniqueConstraint("id", name=op.f("uq_gana_run_id")),
    )
    op.create_index(op.f("ix_gana_run_started_at"), "gana_run", ["started_at"], unique=False)
    op.create_index(op.f("ix_gana_run_status"), "gana_run", ["status"], unique=False)
    op.create_table(
        "manas_note",
        sa.Column("manas_id", sa.Text(), nullable=False),
        sa.Column("note_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["manas_id"], ["manas.id"], name=op.f("fk_manas_note_manas_id_manas"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["note_id"], ["note.id"], name=op.f("fk_manas_note_note_id_note"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("manas_id", "note_id", name=op.f("pk_manas_note")),
    )
    op.create_index(op.f("ix_manas_note_note_id"), "manas_note", ["note_id"], unique=False)
    op.create_table(
        "mention",
        sa.Column("note_id", sa.Text(), nullable=False),
        sa.Column("concept_id", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("type", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["concept_id"], ["concept.id"], name=op.f("fk_mention_concept_id_concept"), ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["note_id"], ["note.id"], name=op.f("fk_mention_note_id_note"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("note_id", "concept_id", "name", name=op.f("pk_mention")),
    )
    op.create_index(op.f("ix_mention_concept_id"), "mention", ["concept_id"], unique=False)
    op.create_table(
        "message",
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("parent_id", sa.Text(), nullable=True),
        sa.Column("role", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("citations", sa.JSON(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("thinking", sa.Text(), nullable=False),
        sa.Column("folded", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["conversation_id"],
            ["conversation.id"],
            name=op.f("fk_message_conversation_id_conversation"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["message.id"], name=op.f("fk_message_parent_id_message"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("number", name=op.f("pk_message")),
        sa.UniqueConstraint("id", name=op.f("uq_message_id")),
    )
    op.create_index(op.f("ix_message_conversation_id"), "message", ["conversation_id"], unique=False)
    op.create_index(op.f("ix_message_parent_id"), "message", ["parent_id"], unique=False)
    op.create_index(op.f("ix_message_state"), "message", ["state"], unique=False)
    op.create_table(
        "note_link",
        sa.Column("source_id", sa.Text(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("target", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("last_key", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["source_id"], ["note.id"], name=op.f("fk_note_link_source_id_note"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("source_id", "position", name=op.f("pk_note_link")),
    )
    op.create_index(op.f("ix_note_link_key"), "note_link", ["key"], unique=False)
    op.create_index(op.f("ix_note_link_last_key"), "note_link", ["last_key"], unique=False)
    op.create_table(
        "note_name",
        sa.Column("note_id", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["note_id"], ["note.id"], name=op.f("fk_note_name_note_id_note"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("note_id", "key", name=op.f("pk_note_name")),
    )
    op.create_index(op.f("ix_note_name_key"), "note_name", ["key"], unique=False)
    op.create_table(
        "note_summary",
        sa.Column("note_id", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["note_id"], ["note.id"], name=op.f("fk_note_summary_note_id_note"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("note_id", name=op.f("pk_note_summary")),
    )
    op.create_table(
        "note_tag",
        sa.Column("note_id", sa.Text(), nullable=False),
        sa.Column("tag", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["note_id"], ["note.id"], name=op.f("fk_note_tag_note_id_note"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("note_id", "tag", name=op.f("pk_note_tag")),
    )
    op.create_index(op.f("ix_note_tag_tag"), "note_tag", ["tag"], unique=False)
    op.create_table(
        "pending_extraction",
        sa.Column("note_id", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["note_id"], ["note.id"], name=op.f("fk_pending_extraction_note_id_note"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("note_id", name=op.f("pk_pending_extraction")),
    )
    op.create_index(
        op.f("ix_pending_extraction_queued_at"), "pending_extraction", ["queued_at"], unique=False
    )
    op.create_table(
        "pending_vector",
        sa.Column("note_id", sa.Text(), nullable=False),
        sa.Column("queued_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["note_id"], ["note.id"], name=op.f("fk_pending_vector_note_id_note"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("note_id", name=op.f("pk_pending_vector")),
    )
    op.create_index(op.f("ix_pending_vector_queued_at"), "pending_vector", ["queued_at"], unique=False)
    op.execute("INSERT INTO counter (name, value) VALUES ('vectors', 0)")
    _create_full_text()


def _create_full_text() -> None:
    """Words are split and folded by the program, the same for both, so that each gets the plainest tokenizer it has."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE VIRTUAL TABLE note_search USING fts5(title, tags, body, tokenize = 'ascii', prefix = '2 3')"
        )
        return
    op.create_table(
        "note_search",
        sa.Column("number", sa.Integer(), sa.ForeignKey("note.number", ondelete="CASCADE"), primary_key=True),
        sa.Column("document", postgresql.TSVECTOR(), nullable=False),
    )
    # Without fastupdate a search does not have to read through the entries that are yet to be sorted in.
    op.create_index(
        "ix_note_search_document",
        "note_search",
        ["document"],
        postgresql_using="gin",
        postgresql_with={"fastupdate": "off"},
    )
