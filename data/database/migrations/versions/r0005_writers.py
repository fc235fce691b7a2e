"""Which process writes an answer, so that one whose process was killed does not look as if it went on."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("message", sa.Column("writer", sa.Text(), nullable=True))
