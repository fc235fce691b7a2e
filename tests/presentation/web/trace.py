"""What the scheduler does, record by record, as a page of the browser is told it. Nothing is missed between two looks."""

from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Page

Line = dict[str, Any]
FOLLOW = """() => new Promise((begun, failed) => {
    window.trace = [];
    const source = new EventSource("/scheduler/events");
    source.addEventListener("snapshot", begun);
    source.addEventListener("record", message => {
        const { t, event, fields } = JSON.parse(message.data);
        window.trace.push({ ...fields, t, event });
    });
    source.onerror = failed;
})"""


@dataclass(frozen=True)
class Trace:
    page: Page

    def wait(self, event: str, *, after: int = 0, timeout_s: float = 60, **fields: object) -> Line:
        """The first such record from position `after` on; waits for it. Its own position is added as `at`."""
        found = self.page.wait_for_function(
            """([after, wanted]) => {
                const at = window.trace.findIndex((line, place) => place >= after
                    && Object.entries(wanted).every(([name, value]) => line[name] === value));
                return at < 0 ? null : {...window.trace[at], at};
            }""",
            arg=[after, {"event": event, **fields}],
            timeout=timeout_s * 1000,
            polling=50,
        )
        return dict(found.json_value())


def follow_trace(page: Page) -> Trace:
    """From now on, as long as the page is open and is not left."""
    page.evaluate(FOLLOW)
    return Trace(page)
