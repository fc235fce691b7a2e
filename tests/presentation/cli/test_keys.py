"""`uniun keys` on the command line, over fakes."""

import pytest

from domain.errors import InvalidRequest, KeyNotFound
from tests.presentation.cli.test_agents import Terminal


def test_a_key_is_made_listed_and_revoked() -> None:
    uniun = Terminal()
    assert "There is no key." in uniun("keys", "list")
    made = uniun.result(
        "keys", "create", "my editor", "--weight", "2", "--per-minute", "30", "--kind", "gana"
    )
    assert made.stdout == "uniun-secret-1\n"  # nothing else, for scripts
    assert "not shown again" in made.stderr
    listed = uniun("keys", "list")
    for word in ("my editor", "weight 2", "30 a minute", "gana"):
        assert word in listed
    assert "secret" not in listed
    assert "my editor is revoked" in uniun("keys", "revoke", "my editor")
    assert "There is no key." in uniun("keys", "list")


@pytest.mark.parametrize(
    ("arguments", "error", "says_so"),
    [
        (("revoke", "none"), KeyNotFound, "uniun keys list"),
        (("create", "a/b"), InvalidRequest, "name is wrong"),
        (("create", " "), InvalidRequest, "name is wrong"),
    ],
)
def test_what_is_wrong_is_said(arguments: tuple[str, ...], error: type[Exception], says_so: str) -> None:
    failed = Terminal().fails("keys", *arguments)
    assert isinstance(failed, error)
    assert says_so in str(failed)
