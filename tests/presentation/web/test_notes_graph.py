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


CIRCLES = """[...document.querySelectorAll(".u-graph svg path[d^='M1 0A1']")].map((one) => one.getBoundingClientRect())"""
OVER_CIRCLES = f"""() => {{
    const circles = {CIRCLES}.filter((one) => one.width);
    return [...document.querySelectorAll(".u-graph text")].map((text) => text.getBoundingClientRect()).filter((a) =>
        circles.some((b) => a.left + 3 < b.right && b.left + 3 < a.right && a.top + 3 < b.bottom && b.top + 3 < a.bottom)).length;
}}"""
CUT_OFF = f"""() => {{
    const frame = document.querySelector(".u-graph").getBoundingClientRect();
    return {CIRCLES}.filter((one) =>
        one.left < frame.left || one.right > frame.right || one.top < frame.top || one.bottom > frame.bottom).length;
}}"""


async def many_concepts(container: DeclarativeContainer) -> None:
    names = [
        f"{first} {second}"
        for first, second in itertools.product(
            ("river", "willow", "starter", "oven", "honey", "compost", "meadow", "harvest"),
            ("cycle", "theory of growth", "club", "year", "letter", "plan"),
        )
    ]
    names += [f"willow theory of growth {number}" for number in range(29)]
    for number in range(80):
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
    settled = (
        "() => document.querySelectorAll('.u-graph text').length > 5 && "
        f"({OVERLAPS})() + ({OVER_CIRCLES})() + ({CUT_OFF})() === 0 && {CIRCLES}.length === 77"
    )
    page.wait_for_function(settled)
    expect(labels.filter(has_text="river cycle")).to_have_count(1)  # the most connected one is never left out
    for _ in range(4):
        page.get_by_role("button", name="Zoom in").click()
    page.wait_for_function(f"({CUT_OFF})() > 0")
    page.wait_for_function(f"({OVER_CIRCLES})() === 0")
    page.get_by_role("button", name="Fit all into the frame").click()
    page.wait_for_function(settled)
    page.reload()
    page.set_viewport_size(PHONE)
    page.wait_for_function(settled)


def test_a_concept_is_looked_around_as_one_types(desk: Desk) -> None:
    page = desk.open("/notes/graph")
    page.locator(".u-graph text").first.wait_for()
    box = page.get_by_role("searchbox", name="Look around a concept")
    box.press_sequentially("willow theory of growth 3")
    expect(page).to_have_url("/notes/graph?name=willow%20theory%20of%20growth%203")
    expect(box).to_be_focused()
    expect(page.get_by_text("2 concepts, 1 relation.")).to_be_visible()
    box.fill("nothing of the kind")
    expect(page.get_by_role("heading", name="Nothing is called “nothing of the kind”")).to_be_visible()
    box.fill("")
    expect(page.get_by_text("77 concepts")).to_be_visible()
    expect(page).to_have_url("/notes/graph")
