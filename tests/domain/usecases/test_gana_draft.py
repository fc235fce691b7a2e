"""What a form says of a Gana is refused in the words of its user."""

from typing import Any

import pytest

from domain.entities.gana import GanaDraft
from domain.errors import InvalidField
from domain.usecases.gana_draft import CALLED
from tests.memory.gana_world import GanaWorld

GOOD: dict[str, Any] = {"name": "Digest", "task": "Sum up."}


@pytest.mark.parametrize(
    ("fields", "field", "said"),
    [
        ({"name": "Digest"}, "task", "say what it should do"),
        (GOOD | {"task": ""}, "task", "say what it should do"),
        ({"task": "Sum up."}, "name", "give it a name"),
        (GOOD | {"name": "x" * 201}, "name", "its name: it should have at most 200 characters"),
        (GOOD | {"interval_minutes": 1}, "interval_minutes", "it can run at most once in 5 minutes"),
        (GOOD | {"interval_minutes": 600_000}, "interval_minutes", "it has to run once a year at least"),
        (
            GOOD | {"webhook": "nowhere"},
            "webhook",
            "its webhook should be a web address that begins with http",
        ),
        (GOOD | {"webhook": "ftp://x.org"}, "webhook", "its webhook should be a web address"),
        (GOOD | {"output_tag": "#"}, "output_tag", "'#' is no tag; use letters or digits."),
        (GOOD | {"missed_runs": "x"}, "missed_runs", "what happens to missed runs: it should be 'skip'"),
        (GOOD | {"manas_ids": ("x",) * 51}, "manas_ids", "the knowledge it may draw on: it has too many"),
    ],
)
def test_a_field_is_refused_in_plain_words(fields: dict[str, Any], field: str, said: str) -> None:
    with pytest.raises(InvalidField) as refused:
        GanaWorld().gana_controller().draft(fields)
    assert refused.value.field == field
    assert str(refused.value).startswith(f"The Gana was refused: {said}")


def test_every_field_has_a_name_for_users() -> None:
    assert CALLED.keys() == GanaDraft.model_fields.keys()
