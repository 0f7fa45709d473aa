"""A model that looks, on the page: by its button, which says what is sent where, and never by itself."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from chat_server import ChatServer, verdict
from page_server import Served
from page_visitor import card, search

pytestmark = pytest.mark.slow


def test_the_model_looks_when_its_button_is_pressed(
    made: Path, tmp_path: Path, open_page: Callable[..., Page]
) -> None:
    shutil.copytree(made / "photographs", tmp_path / "photographs")
    with ChatServer(verdict("yes", "<b>a rocket</b>").body.encode()) as chat:
        options = ("--looker", chat.url, "--looker-model", "stand-in")
        with Served(tmp_path, options=options) as server:
            page = open_page(server, "#/search?query=a+rocket&check=5")
            search(page, "a rocket")
            sent = page.locator("#what-is-sent")
            expect(sent).to_contain_text(
                f"to stand-in at {chat.url.removeprefix('http://').removesuffix('/v1')}"
            )
            assert not chat.requests
            page.get_by_role("button", name="Let stand-in look at the best").click()
            looked_at = card(page).locator(".reason").filter(has_text="looked at: yes")
            expect(looked_at.locator("q")).to_have_text("<b>a rocket</b>")
            expect(page.locator(".notes")).to_contain_text("was not measured")
            looked = len(chat.requests)
            assert looked
            search(page, "a cat")
            assert len(chat.requests) == looked
