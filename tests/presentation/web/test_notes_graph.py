"""The picture of many concepts can be read: no label lies over another, and zooming in shows those that were left out."""

import itertools

import pytest
from dependency_injector.containers import DeclarativeContainer
from playwright.sync_api import expect

from domain.entities.knowledge import ConceptClaim, Extraction, RelationClaim
from tests.presentation.web.conftest import PHONE, Desk, Server, Start

OVERLAPS = """() => {
    const boxes = [...document.querySelectorAll(".u-graph text")].map((text) => text.getBoundingClientRect());
    return boxes.flatMap((a, at) => boxes.slice(at + 1).filter((b) =>
        a.left + RIM < b.right && b.left + RIM < a.right && a.top + RIM < b.bottom && b.top + RIM < a.bottom)).length;
}""".replace("RIM", "3")  # pixels: the rims of the letters may touch


async def many_concepts(container: DeclarativeContainer) -> None:
    names = [
        f"{first} {second}"
        for first, second in itertools.product(
            ("river", "willow", "starter", "oven", "honey", "compost", "meadow", "harvest"),
            ("cycle", "theory of growth", "club", "year", "letter", "plan"),
        )
    ]
    for number in range(40):
        note = await container.notes_controller().add(f"Text {number}", title=f"Note {number}")
        named = [names[(number * step) % len(names)] for step in (1, 2, 5, 7, 11)]
        center, *others = dict.fromkeys((names[0], *named))
        said = Extraction(
            concepts=tuple(ConceptClaim(name=name, type="thing") for name in (center, *others)),
            relations=tuple(RelationClaim(source=center, verb="needs", target=name) for name in others),
            summary="Much needs much.",
        )
        await container.knowledge_repository().assert_extraction(note.id, note.content_hash, said)


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=many_concepts)


def test_labels_do_not_overlap_and_come_with_zooming(desk: Desk) -> None:
    page = desk.open("/notes/graph")
    labels = page.locator(".u-graph text")
    settled = f"() => document.querySelectorAll('.u-graph text').length > 5 && ({OVERLAPS})() === 0"
    page.wait_for_function(settled)
    expect(labels.filter(has_text="river cycle")).to_have_count(1)  # the most connected one is never left out
    few = labels.count()
    for _ in range(4):
        page.get_by_role("button", name="Zoom in").click()
    page.wait_for_function("few => document.querySelectorAll('.u-graph text').length > few", arg=few)
    page.reload()
    page.set_viewport_size(PHONE)
    page.wait_for_function(settled)
