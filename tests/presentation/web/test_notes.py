"""Notes in a browser: the list, Manases, import, and the picture of the concepts."""

import io
import re
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from dependency_injector.containers import DeclarativeContainer
from playwright.sync_api import FilePayload, Page, expect
from sqlalchemy import text

from domain.entities.knowledge import ConceptClaim, Extraction, RelationClaim
from domain.entities.note import Note, hash_content
from tests.presentation.web.conftest import PATIENCE_MS, PHONE, Desk, Server, Start

MANY = 5_000
PAINT_MS = 1_000
FACTOR = 3
"""On a machine that does much else, any page takes longer than that: so many times as long as a list of two notes is allowed
there."""
HOSTILE = "<img src=x onerror=alert(1)> \x1b[31mred\x1b[0m <b>bold</b>"


async def library(container: DeclarativeContainer) -> None:
    """Five thousand notes, nothing of which is to be read or embedded, and a small graph."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    notes = [_note(number, at + timedelta(minutes=number)) for number in range(MANY)]
    await container.note_repository().save(notes, extract=False)
    controller = container.notes_controller()
    await controller.add("Salix likes wet ground.", title="Willow", tags=["tree"])
    await controller.add("Pollen for bees.", title=HOSTILE, tags=["tree/young"])
    manas = await container.manas_controller().create("Trees")
    await container.manas_controller().add(manas.id, [], tag="tree")
    willow = (await controller.show("Willow")).note
    await container.knowledge_repository().assert_extraction(
        willow.id,
        willow.content_hash,
        Extraction(
            concepts=(
                ConceptClaim(name="Willow", type="plant"),
                ConceptClaim(name="<b>Water</b>", type="matter"),
            ),
            relations=(RelationClaim(source="Willow", verb="drinks", target="<b>Water</b>"),),
            summary="A tree.",
        ),
    )
    await container.database().write(
        lambda session: session.connection().execute(text("DELETE FROM pending_vector")) and None
    )


def _note(number: int, at: datetime) -> Note:
    title, body = f"Note {number}", f"Body of number {number} with some words about rivers.\n" * 5
    return Note(
        id=f"many{number:05}",
        title=title,
        text=body,
        tags=("bulk",),
        created_at=at,
        changed_at=at,
        content_hash=hash_content(title, body, ("bulk",)),
    )


@pytest.fixture(scope="module")
def server(start: Start) -> Server:
    return start(seed=library)


def names(page: Page) -> list[str]:
    return page.get_by_role("list", name="Notes").locator(".u-note-name").all_inner_texts()


def painted(page: Page, path: str, rows: int) -> float:
    """Milliseconds until so many rows are there."""
    page.goto(path, wait_until="commit")
    there = page.wait_for_function(
        "rows => document.querySelectorAll('.u-note-row').length === rows && performance.now()",
        arg=rows,
        polling="raf",
    )
    return float(there.json_value())


def close(page: Page) -> None:
    """What the page tells of the last import; a notice over the page has such a button too."""
    page.get_by_role("main").get_by_role("button", name="Close", exact=True).click()


def search(page: Page, words: str) -> None:
    box = page.get_by_role("searchbox", name="Search notes by words and meaning")
    box.fill("")
    box.press_sequentially(words)


def test_five_thousand_notes_are_painted_within_a_second(desk: Desk) -> None:
    page = desk.open("/notes")
    many, two = (
        [painted(page, *asked) for _ in range(5)] for asked in (("/notes", 50), ("/notes?tag=tree", 2))
    )
    assert min(many) <= max(PAINT_MS, FACTOR * min(two)), (many, two)
    page.goto("/notes")
    expect(page.get_by_role("status").filter(has_text="of 5,002")).to_have_text("1–50 of 5,002")
    page.get_by_role("button", name="Older").click()
    expect(page.get_by_text("51–100 of 5,002")).to_be_visible()
    assert len(names(page)) == 50
    expect(page).to_have_url(re.compile(r"/notes\?start=50$"))
    page.reload()
    expect(page.get_by_text("51–100 of 5,002")).to_be_visible()
    page.get_by_role("button", name="Newer").click()
    expect(page.get_by_role("button", name="Newer")).to_be_disabled()


def test_the_list_is_sent_with_its_page(server: Server) -> None:
    assert "Willow" in httpx.get(f"{server.url}/notes").text


def test_notes_are_found_as_one_types_and_narrowed(desk: Desk) -> None:
    page = desk.open("/notes")
    search(page, "number 4711")
    expect(page.locator(".u-note-row")).to_have_count(1)
    expect(page.get_by_role("status").filter(has_text="with these words")).to_contain_text("1 note")
    expect(page.get_by_role("searchbox", name="Search notes")).to_have_value("number 4711")
    page.get_by_label("Tag", exact=True).select_option("tree")
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()
    expect(page.get_by_text("Try other words, or look in all tags and Manases.")).to_be_visible()
    search(page, "salix")
    expect(page.get_by_role("link", name="Willow")).to_be_visible()
    expect(page).to_have_url(re.compile("q=salix"))
    page.reload()
    expect(page.get_by_role("link", name="Willow")).to_be_visible()
    page.get_by_label("Tag", exact=True).select_option("")
    search(page, "qqqq")
    expect(page.get_by_text("Try other words.", exact=True)).to_be_visible()
    page.get_by_role("searchbox", name="Search notes").fill("")
    page.get_by_label("Manas").select_option(label="Trees (2)")
    expect(page.locator(".u-note-row")).to_have_count(2)


def test_a_title_is_nothing_but_text(desk: Desk) -> None:
    page = desk.open("/notes?tag=tree")
    row = page.locator(".u-note-row", has_text="bold")
    expect(row.locator(".u-note-name")).to_have_text("<img src=x onerror=alert(1)> [31mred [0m <b>bold</b>")
    assert page.locator(".u-note-row img, .u-note-row b").count() == 0


def test_on_a_phone_the_buttons_of_all_rows_stand_in_line(desk: Desk) -> None:
    page = desk.open("/notes")
    page.get_by_role("button", name="New note").click()
    page.get_by_label("Title").fill("Without a tag")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    page.get_by_role("link", name="All notes").click()
    page.set_viewport_size(PHONE)
    rows = page.locator(".u-note-row")
    expect(rows.filter(has_text="Without a tag")).to_be_visible()
    expect(rows.filter(has_text="#tree").first).to_be_visible()
    places = rows.locator("> .u-icon-button").evaluate_all(
        "(all) => [...new Set(all.map((one) => one.getBoundingClientRect().left))]"
    )
    assert len(places) == 1
    free = rows.filter(has_text="#tree").evaluate_all(
        "(all) => all.map((row) => row.querySelector('.u-number').getBoundingClientRect().left - row.querySelector('.u-note-tags').getBoundingClientRect().right)"
    )
    assert max(free) <= 12, free  # all the room before the date is the tags'


def test_two_clicks_begin_one_note(desk: Desk) -> None:
    page, other = desk.open("/notes"), desk.open("/notes")
    other.evaluate(
        """() => {
            window.most = 0;
            const count = () => [...document.querySelectorAll('.u-note-name')].filter((one) => one.textContent === 'Untitled').length;
            new MutationObserver(() => { window.most = Math.max(window.most, count()) })
                .observe(document.querySelector('#content'), {childList: true, subtree: true, characterData: true});
        }"""
    )
    page.get_by_role("button", name="New note").evaluate("(one) => { one.click(); one.click(); }")
    page.wait_for_url(re.compile(r"/notes/[0-9a-f]+"))
    page.get_by_label("Title").fill("Begun once")
    expect(other.get_by_role("link", name="Begun once")).to_be_visible()
    expect(other.get_by_role("link", name="Begun once")).to_have_count(1)
    assert other.evaluate("window.most") == 0  # it is kept from its first letter on
    page.get_by_role("button", name="Delete this note").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    page.wait_for_url("**/notes")


def test_a_note_is_made_and_deleted(desk: Desk) -> None:
    page = desk.open("/notes")
    other = desk.open("/notes")
    page.get_by_role("button", name="New note").click()
    page.wait_for_url(re.compile(r"/notes/[0-9a-f]+"))
    expect(page.get_by_label("Title")).to_be_focused()
    page.keyboard.type("Short lived")
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    expect(other.get_by_role("link", name="Short lived")).to_be_visible()
    other.get_by_role("button", name="Delete Short lived").click()
    expect(other.get_by_role("dialog")).to_contain_text("goes for good")
    other.get_by_role("button", name="Cancel").click()
    expect(other.get_by_role("dialog")).to_be_hidden()
    other.get_by_role("button", name="Delete Short lived").click()
    other.get_by_role("button", name="Delete", exact=True).click()
    expect(other.get_by_role("link", name="Short lived")).to_be_hidden()
    expect(page.get_by_text("the note was deleted elsewhere")).to_be_visible()


def test_manases(desk: Desk) -> None:
    page = desk.open("/notes/manases")
    page.get_by_role("textbox", name="Name of a new Manas").fill("Rivers <b>")
    page.keyboard.press("Enter")
    row = page.get_by_role("listitem").filter(has_text="Rivers <b>")
    expect(row).to_contain_text("0 notes")
    row.get_by_role("button", name="Notes by tag").click()
    page.get_by_role("combobox", name="Tag").fill("tree/young")
    page.get_by_role("option", name="#tree/young").click()
    page.get_by_role("button", name="Put them in").click()
    expect(row).to_contain_text("1 note")
    row.get_by_role("button", name="Rename").click()
    page.get_by_role("textbox", name="Name", exact=True).fill("Trees")
    page.get_by_role("button", name="Rename", exact=True).last.click()
    expect(page.get_by_text("There is a Manas Trees already")).to_be_visible()
    page.get_by_role("textbox", name="Name", exact=True).fill("Young")
    page.keyboard.press("Enter")
    young = page.get_by_role("listitem").filter(has_text="Young")
    young.get_by_role("link", name="Young").click()
    expect(page.locator(".u-note-row")).to_have_count(1)
    page.get_by_role("button", name=re.compile("Take .* out of Young")).click()
    expect(page.get_by_role("heading", name="Nothing found")).to_be_visible()
    page.goto("/notes/manases")
    page.get_by_role("button", name="Delete Young").click()
    page.get_by_role("button", name="Delete", exact=True).last.click()
    expect(young).to_be_hidden()


def test_what_happens_elsewhere_takes_neither_rows_nor_dialogs_away(desk: Desk) -> None:
    notes, manases, elsewhere = (
        desk.open(path) for path in ("/notes?tag=tree", "/notes/manases", "/notes/manases")
    )
    notes.locator(".u-note-row").evaluate_all("(rows) => rows.forEach((row) => { row.dataset.kept = 'yes' })")
    row = manases.get_by_role("listitem").filter(has_text="Trees")
    row.evaluate("(row) => { row.dataset.kept = 'yes' }")
    row.get_by_role("button", name="Rename").click()
    name = manases.get_by_role("textbox", name="Name", exact=True)
    name.fill("Woods")
    elsewhere.bring_to_front()
    elsewhere.get_by_role("textbox", name="Name of a new Manas").fill("Another")
    elsewhere.keyboard.press("Enter")
    expect(manases.get_by_role("listitem").filter(has_text="Another")).to_have_count(1)
    expect(row).to_have_attribute("data-kept", "yes")
    expect(name).to_have_value("Woods")
    elsewhere.goto("/notes/find?name=Willow")
    elsewhere.get_by_role("textbox", name="Add a tag").fill("fresh")
    elsewhere.keyboard.press("Enter")
    expect(notes.get_by_role("link", name="#fresh")).to_be_visible()
    expect(notes.locator(".u-note-row")).to_have_count(2)
    expect(notes.locator(".u-note-row[data-kept]")).to_have_count(1)


def packed(members: dict[str, str]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return out.getvalue()


def sent(name: str, data: bytes) -> FilePayload:
    return FilePayload(name=name, mimeType="application/octet-stream", buffer=data)


def test_a_folder_is_imported_and_odd_files_are_named(desk: Desk, tmp_path: Path) -> None:
    (tmp_path / "good.md").write_text("# From a folder\n\n#imported")
    (tmp_path / "bad\x1b.md").write_bytes(b"\0\1\2")
    page = desk.open("/notes/import")
    page.get_by_role("button", name="Import folder").click()
    expect(page.get_by_text("Type the path of a folder first")).to_be_visible()
    path = page.get_by_role("textbox", name="Path of the folder")
    path.fill(str(tmp_path / "none"))
    path.press("Enter")
    expect(page.get_by_text("does not exist")).to_be_visible()
    close(page)
    path.fill(str(tmp_path))
    page.get_by_role("button", name="Import folder").click()
    expect(page.get_by_text("1 new")).to_be_visible()
    expect(page.get_by_role("list", name="Odd files")).to_contain_text("bad�.md")
    page.get_by_role("link", name="See the notes").click()
    expect(page.get_by_role("link", name="From a folder")).to_be_visible()


def test_files_and_archives_are_uploaded_and_a_damaged_one_is_refused(desk: Desk) -> None:
    page = desk.open("/notes/import")
    chooser = page.locator("input[type=file]")
    vault = packed({"a/Vault note.md": "in a vault", "../out.md": "no"})
    chooser.set_input_files([sent("vault.zip", vault), sent("Loose note.md", b"loose")])
    expect(page.get_by_text("2 new")).to_be_visible()
    expect(page.get_by_role("list", name="Odd files")).to_contain_text("../out.md")
    close(page)
    chooser.set_input_files([sent("half.zip", vault[:-30])])
    expect(page.get_by_text("The archive half.zip cannot be read")).to_be_visible()
    close(page)
    chooser.set_input_files([sent("picture.png", b"x")])
    expect(page.get_by_role("alert")).to_have_text(
        "“picture.png” not taken: only .md, .markdown and .zip are."
    )
    chooser.set_input_files([sent(f"many {n}.md", b"# Many %d" % n) for n in range(1_003)])
    expect(page.get_by_text("1,000 new")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_role("alert")).to_have_text(
        "“many 1000.md”, “many 1001.md” and “many 1002.md” not taken: 1,000 are the most at once. Send the rest afterwards, or all in one .zip."
    )


def test_what_has_arrived_is_never_said_to_have_failed(desk: Desk) -> None:
    page = desk.open("/notes/import")
    network = page.context.new_cdp_session(page)
    answers: list[str] = []
    network.on("Fetch.requestPaused", lambda told: answers.append(told["requestId"]))
    network.send("Fetch.enable", {"patterns": [{"urlPattern": "*/upload/*", "requestStage": "Response"}]})
    page.locator("input[type=file]").set_input_files([sent("Late answer.md", b"late")])
    expect(page.get_by_text("1 new")).to_be_visible()
    for _ in range(1_000):
        if answers:
            break
        page.wait_for_timeout(20)  # in which the browser tells of it
    network.send("Fetch.continueRequest", {"requestId": answers.pop()})
    network.send("Fetch.disable")
    close(page)
    page.locator("input[type=file]").set_input_files([sent("Late answer.md", b"late")])
    expect(page.get_by_text("1 as before")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_more_than_a_usual_request_can_be_uploaded(desk: Desk) -> None:
    page = desk.open("/notes/import")
    large = packed({"One.md": "large"}) + b"\0" * 12_000_000
    page.locator("input[type=file]").set_input_files([sent("large.zip", large)])
    expect(page.get_by_role("heading", name="Nothing more was imported")).to_be_visible()
    close(page)


def test_the_picture_of_the_concepts_and_its_list(desk: Desk) -> None:
    page = desk.open("/notes/graph")
    expect(page.get_by_text("2 concepts, 1 relation.")).to_be_visible()
    expect(page.locator(".u-graph svg")).to_be_visible()
    page.locator(".u-graph text", has_text="Willow").wait_for()
    page.get_by_text("The same as a list").click()
    page.get_by_role("button", name="<b>Water</b>").click()
    detail = page.get_by_role("region", name="Concept")
    expect(detail).to_contain_text("Willow drinks <b>Water</b>")
    expect(detail.get_by_role("link", name="Willow")).to_be_visible()
    expect(detail).to_be_in_viewport(ratio=1)  # to which the page scrolls
    box = page.locator(".u-graph text", has_text="Willow").bounding_box()
    assert box is not None
    page.mouse.click(box["x"] - 14, box["y"] + box["height"] / 2)
    expect(detail.get_by_role("heading", name="Willow")).to_be_visible()
    page.get_by_role("button", name="Zoom in").click()
    page.wait_for_function(
        "(x) => { const now = [...document.querySelectorAll('.u-graph text')].find((e) => e.textContent === 'Willow')"
        ".getBoundingClientRect().x; return now > 0 && Math.abs(now - x) > 1; }",
        arg=box["x"],
    )
    detail.get_by_role("link", name="Willow").click()
    expect(page.get_by_label("Title")).to_have_value("Willow")
    page.goto("/notes/graph?name=nothing")
    expect(page.get_by_role("heading", name="Nothing is called “nothing”")).to_be_visible()


def test_a_link_leads_to_its_note_or_offers_to_write_it(desk: Desk) -> None:
    page = desk.open("/notes/find?name=willow.md")
    expect(page.get_by_label("Title")).to_have_value("Willow")
    page.goto("/notes/find?name=Poplar")
    page.get_by_role("button", name="Write it").click()
    expect(page.get_by_label("Title")).to_have_value("Poplar")
    page.goto("/notes/find?name=img/map.png")
    expect(page.get_by_role("heading", name="“img/map.png” is an attachment")).to_be_visible()
    expect(page.get_by_role("button", name="Write it")).to_have_count(0)
    page.goto("/notes/absent")
    expect(page.get_by_role("heading", name="This page cannot be shown")).to_be_visible()


def test_a_long_import_shows_how_far_it_is_and_can_be_cancelled(desk: Desk, tmp_path: Path) -> None:
    for number in range(8_000):
        (tmp_path / f"{number}.md").write_text(f"note {number} about nothing")
    page, elsewhere = desk.open("/notes/import"), desk.open("/notes/import")
    path = page.get_by_role("textbox", name="Path of the folder")
    path.fill(str(tmp_path))
    path.press("Enter")
    expect(page.get_by_text("of 8,000")).to_be_visible()
    expect(elsewhere.get_by_role("progressbar", name="Import")).to_be_visible()
    # The button that is pressed is the one that was there: a page that is drawn anew at every step loses clicks.
    expect(elsewhere.locator(".u-number")).to_be_visible()
    cancel = elsewhere.get_by_role("button", name="Cancel").element_handle()
    said = elsewhere.locator(".u-number").inner_text()
    expect(elsewhere.locator(".u-number")).not_to_have_text(said)
    assert cancel is not None
    cancel.click()
    expect(page.get_by_role("heading", name="Cancelled")).to_be_visible()
    told = page.get_by_text(re.compile(r"^[1-9][\d,]* notes were imported before that"))
    expect(told).to_be_visible()
    expect(page.get_by_role("link", name="See the notes")).to_be_visible()
    count = told.inner_text().split()[0]
    page.get_by_role("button", name="Undo this import").click()
    expect(page.get_by_text(f"The {count} notes that it added will be deleted")).to_be_visible()
    page.get_by_role("button", name="Delete them").click()
    expect(page.get_by_text(f"{count} notes are deleted.")).to_be_visible(timeout=120_000)
    close(page)


def test_what_an_import_made_twice_is_told_and_can_be_undone(desk: Desk, tmp_path: Path) -> None:
    page = desk.open("/notes/import")
    path = page.get_by_role("textbox", name="Path of the folder")
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        for name in ("Twice one", "Twice two"):
            (tmp_path / folder / f"{name}.md").write_text(f"{name} is said twice.")
        path.fill(str(tmp_path / folder))
        path.press("Enter")
        expect(page.get_by_text("2 new")).to_be_visible()
        if folder == "here":
            expect(page.get_by_text("word for word")).to_have_count(0)
            close(page)
    expect(page.get_by_text("2 of the new notes are word for word like notes that you have.")).to_be_visible()
    twice = page.get_by_role("list", name="Notes that are there twice")
    expect(twice.get_by_role("listitem").filter(has_text="Twice one.md")).to_contain_text(
        "says the same as Twice one"
    )
    expect(twice.get_by_role("link", name="Twice two")).to_be_visible()
    page.get_by_role("button", name="Undo this import").click()
    page.get_by_role("button", name="Delete them").click()
    expect(page.get_by_text("2 notes are deleted.")).to_be_visible()
    page.goto("/notes?q=Twice")
    expect(page.get_by_role("list", name="Notes").locator(".u-note-row")).to_have_count(2)


def test_a_note_that_was_begun_and_left_was_never_there(desk: Desk, server: Server) -> None:
    page = desk.open("/notes")
    count = page.get_by_role("status").filter(has_text=re.compile(r"of [0-9,]+$"))
    before = count.inner_text()
    page.get_by_role("button", name="New note").click()
    page.wait_for_url(re.compile(r"/notes/[0-9a-f]+"))
    expect(page.get_by_label("Title")).to_be_focused()
    expect(page.get_by_text("stand here once something is typed")).to_be_visible()
    begun = page.url
    page.get_by_role("link", name="All notes").click()
    page.wait_for_url("**/notes")
    expect(count).to_have_text(before)
    # What was typed into it while the server was away is kept, as in any note.
    page.goto(begun)
    page.evaluate("window.socket.disconnect()")
    page.get_by_label("Title").fill("Typed to nobody")
    page.evaluate("location.reload()")
    expect(page.get_by_text("had not been saved was still in this browser")).to_be_visible()
    expect(page.get_by_text("Saved", exact=True)).to_be_visible()
    page.wait_for_url(begun.partition("?")[0])
    expect(page.get_by_role("textbox", name="Add a tag")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Title")).to_have_value("Typed to nobody")
