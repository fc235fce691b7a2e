"""The pages over a PostgreSQL server that goes away and comes back. Without an installed server there is nothing to test."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from tests.data.database.postgres import PostgresServer, binaries
from tests.presentation.web.conftest import Desk, Server, Start
from tests.presentation.web.test_chat import COUNT, ask

if binaries() is not None:

    @pytest.fixture(scope="module")
    def postgres() -> Iterator[PostgresServer]:
        with PostgresServer() as server:
            yield server

    @pytest.fixture(scope="module")
    def server(start: Start, postgres: PostgresServer) -> Server:
        return start(tokens_per_s=3, database_url=postgres.create_database())

    @contextmanager
    def away(postgres: PostgresServer) -> Iterator[None]:
        postgres.go_away()
        try:
            yield
        finally:
            postgres.come_back()

    def test_an_answer_that_ends_meanwhile_is_kept_afterwards(desk: Desk, postgres: PostgresServer) -> None:
        page = desk.open("/")
        ask(page, COUNT)
        expect(page.locator(".u-answer")).to_contain_text("three")
        with away(postgres):
            page.get_by_role("button", name="Stop the answer").click()
            expect(page.locator(".u-waiting")).to_contain_text(
                "Ended, but not kept yet; this goes on by itself"
            )
            said = page.locator(".u-answer .u-prose").inner_text()
        expect(page.locator(".u-ending")).to_contain_text("Stopped")
        page.reload()
        expect(page.locator(".u-answer .u-prose")).to_have_text(said)
        ask(page, "Say: On it goes.")
        expect(page.locator(".u-answer").last).to_contain_text("On it goes.")

    def test_what_is_typed_meanwhile_stays_under_one_notice(desk: Desk, postgres: PostgresServer) -> None:
        page = desk.open("/")
        notices = page.locator(".q-notification")
        with away(postgres):
            for _ in range(3):
                ask(page, "Say: Here again.")
                expect(notices).to_have_count(1)
                expect(notices).to_contain_text("cannot be reached. Check that its server runs")
                expect(page.get_by_role("textbox", name="Message")).to_have_value("Say: Here again.")
            close = notices.get_by_role("button", name="Close")
            colour = "element => getComputedStyle(element).color"
            assert close.evaluate(colour) == notices.evaluate(colour)
        ask(page, "Say: Here again.")
        expect(page.locator(".u-answer .u-prose")).to_have_text("Here again.")

    def test_a_page_that_is_opened_meanwhile_comes_by_itself(desk: Desk, postgres: PostgresServer) -> None:
        with away(postgres):
            page = desk.open("/deck")
            expect(page.get_by_role("heading", name="This page cannot be shown")).to_be_visible()
        expect(page.get_by_role("heading", name="No cards yet")).to_be_visible()
