"""Pages in a real browser: first paint with a large library, from a token to the screen, and how late the server's loop
wakes up while it writes an answer into three tabs."""

import asyncio
import os
import signal
import socket
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from playwright.async_api import Browser, Page, async_playwright
from playwright.async_api import TimeoutError as TooLate

from data.clock import Clock
from data.settings import Settings
from domain.entities.conversation import ChatMessage, Conversation
from tests.bench.figures import Figure, Report, at_most, median, percentile, spread
from tests.bench.setting import Setting
from uniun import build_container

ROOT = Path(__file__).resolve().parents[2]
NOTES, CONVERSATIONS, MESSAGES = 5000, 200, 40
PAGES = ("/", "/c/talk-0", "/notes")
TABS = 3
STORIES_S = 20
"""So many seconds of answers that grow are enough to see how late the loop wakes up; on a fast machine, several answers."""
MOST_STORIES = 20
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"
WATCH = """() => { window.late = []; let seen = '';
    new MutationObserver(() => requestAnimationFrame(() => {
        const words = document.querySelector('.u-growing .u-prose')?.textContent.trim().split(/\\s+/) ?? [];
        const last = words.at(-1);
        if (last && last !== seen) { seen = last; window.late.push(Date.now() - Number(last)); }
    })).observe(document.querySelector('.u-messages'), {subtree: true, childList: true, characterData: true}); }"""


async def run(setting: Setting) -> Report:
    """The library is made first; the engine is one that says the time, then the real one."""
    notes = 50 if setting.quick else NOTES
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder)
        store = ROOT / "build" / "test-store"
        (data_dir / "models").symlink_to(store / "models")
        await _fill(data_dir, notes)
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path="/usr/bin/chromium", args=["--no-sandbox"]
            )
            async with _server(data_dir, "clock") as base:
                paints = {path: await _paints(browser, base + path, setting.count(7)) for path in PAGES}
                late = await _token_to_screen(browser, base)
            async with _server(data_dir, "model") as base:
                grew = await _three_tabs(browser, base, setting.clock, 1 if setting.quick else STORIES_S)
            await browser.close()
        lags = _lags(data_dir / "lags")
    writing = [late for at, late in lags if any(begin <= at < end for begin, end in grew)]
    figures = (
        *(
            Figure(f"first paint of {path}, {notes} notes", median(times), "ms", at_most(1000))
            for path, times in paints.items()
        ),
        Figure("token to screen, p95", percentile(late, 95), "ms", at_most(50)),
        Figure(f"late wake-up, {TABS} tabs, p99", 1000 * percentile(writing, 99), "ms", at_most(20)),
    )
    raw = {
        "paint_ms": paints,
        "token_to_screen_ms": spread(late),
        "late_wake_up_s": spread(writing),
        "late_wake_up_from_the_start_of_the_server_on_s": spread([late for _, late in lags]),
    }
    return Report("web-pages", figures, raw)


async def _fill(data_dir: Path, notes: int) -> None:
    container = build_container(Settings(data_dir=data_dir, log_dir=data_dir / "log"))
    try:
        folder = data_dir / "vault"
        folder.mkdir()
        for number in range(notes):
            text = f"# Note {number}\n\nThe river {number} runs past mill {number % 97}. #tag{number % 40}\n"
            (folder / f"note-{number}.md").write_text(text, encoding="utf-8")
        await container.notes_controller().import_folder(folder)
        conversations, at = container.conversation_repository(), container.clock().now()
        for number in range(CONVERSATIONS):
            name = f"talk-{number}"
            talk = Conversation(id=name, title=f"Talk {number} of mills", created_at=at, changed_at=at)
            await conversations.create(talk)
        parent = None
        for number in range(MESSAGES):
            message = ChatMessage(
                id=f"said-{number}",
                conversation_id="talk-0",
                parent_id=parent,
                role="assistant" if number % 2 else "user",
                content=f"Mill **{number}** stands by the river. " * 8,
                created_at=at,
            )
            await conversations.put_message(message)
            parent = message.id
    finally:
        await container.database().aclose()


@asynccontextmanager
async def _server(data_dir: Path, engine: str) -> AsyncIterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "UNIUN_DATA_DIR": str(data_dir),
        "UNIUN_LOG_DIR": str(data_dir / "log"),
    }
    program = str(Path(__file__).parent / "web_program.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        program,
        str(port),
        str(data_dir / "lags"),
        engine,
        env=environment,
        cwd=ROOT,
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        await _answers(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


async def _answers(port: int) -> None:
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.1)
            continue
        writer.close()
        return
    raise RuntimeError("the server does not start")


def _lags(file: Path) -> list[tuple[float, float]]:
    """When the server's loop should have woken up, and how late it did; seconds."""
    pairs = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
    return [(float(at), float(late)) for at, late in pairs]


async def _paints(browser: Browser, url: str, times: int) -> list[float]:
    """Milliseconds; the first visit fills the browser's cache and is left out."""
    context = await browser.new_context()
    found = []
    for _ in range(times + 1):
        page = await context.new_page()
        await page.goto(url)
        await page.wait_for_function(f"{PAINT.removesuffix('.startTime')} !== undefined")
        found.append(float(await page.evaluate(PAINT)))
        await page.close()
    await context.close()
    return found[1:]


async def _token_to_screen(browser: Browser, base: str) -> list[float]:
    """Milliseconds from the making of the last token on the screen to its frame."""
    page = await browser.new_page()
    await page.goto(base)
    await page.wait_for_function("window.did_handshake === true")
    await page.evaluate(WATCH)
    await _ask(page, "What time is it?")
    late: list[float] = await page.evaluate("window.late")
    await page.close()
    return late


async def _three_tabs(browser: Browser, base: str, clock: Clock, seconds: float) -> list[tuple[float, float]]:
    """Answers one after the other until they have grown for so long. From when to when each did, without the first words:
    starting the server and drawing the pages is not what is asked for here."""
    pages = [await browser.new_page()]
    await pages[0].goto(base)
    await pages[0].wait_for_function("window.did_handshake === true")
    await _ask(pages[0], "Which mill stands by the river? Answer with one word.")
    for _ in range(TABS - 1):
        pages.append(await browser.new_page())
        await pages[-1].goto(pages[0].url)
        await pages[-1].wait_for_function("window.did_handshake === true")
    grew: list[tuple[float, float]] = []
    left = seconds
    while left > 0 and len(grew) < MOST_STORIES:
        await _begin(pages[0], "Tell a long story of that mill.")
        await pages[0].locator(".u-growing .u-prose").filter(has_text=" ").wait_for(timeout=300_000)
        begin = clock.monotonic()
        try:
            await pages[0].get_by_role("button", name="Send").wait_for(timeout=left * 1000)
            end = clock.monotonic()
        except TooLate:
            end = clock.monotonic()
            await pages[0].get_by_role("button", name="Stop the answer").click()
        grew.append((begin, end))
        left -= end - begin
    for page in pages:
        await page.close()
    return grew


async def _ask(page: Page, text: str) -> None:
    """Until the answer has ended."""
    await _begin(page, text)
    await page.get_by_role("button", name="Send").wait_for(timeout=300_000)


async def _begin(page: Page, text: str) -> None:
    await page.get_by_role("textbox", name="Message").fill(text)
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Stop the answer").wait_for()
