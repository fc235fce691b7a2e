"""Whether a handler wants arguments is found out once for each method, and it is what NiceGUI finds."""

import functools
from collections.abc import Callable
from typing import Any

import pytest
from nicegui import helpers
from nicegui.observables import ObservableDict

from presentation.web import signatures


class Handlers:
    def none(self) -> None: ...
    def one(self, event: object) -> None: ...
    def with_default(self, event: object = None) -> None: ...
    def any_number(self, *events: object, **more: object) -> None: ...
    @classmethod
    def of_class(cls, event: object) -> None: ...


HANDLERS: list[Callable[..., Any]] = [
    Handlers().none,
    Handlers().one,
    Handlers().with_default,
    Handlers().any_number,
    Handlers.of_class,
    Handlers.one,
    lambda: None,
    lambda event: event,
    functools.partial(Handlers().one, 1),
]


@pytest.mark.parametrize("handler", HANDLERS)
def test_it_is_what_nicegui_finds(handler: Callable[..., Any]) -> None:
    for _ in range(2):
        assert signatures.expects_arguments(handler) is signatures._look(handler)


def test_a_method_is_looked_at_once_for_all_objects(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[object] = []

    def look(handler: Callable[..., Any]) -> bool:
        looks.append(handler)
        return False

    monkeypatch.setattr(signatures, "_look", look)
    signatures._of_method.cache_clear()
    try:
        for _ in range(5):
            signatures.expects_arguments(Handlers().none)
    finally:
        signatures._of_method.cache_clear()
    assert len(looks) == 1


def test_what_elements_are_made_of_asks_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(helpers, "expects_arguments", helpers.expects_arguments)
    signatures.remember_signatures()
    monkeypatch.setattr(signatures, "_look", lambda handler: pytest.fail("looked again"))
    signatures._of_method.cache_clear()
    with pytest.raises(pytest.fail.Exception, match="looked again"):
        ObservableDict(on_change=Handlers().none)
