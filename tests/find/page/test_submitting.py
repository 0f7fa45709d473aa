"""Submitting what the player shows to an evaluation."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from dres_server import DresServer
from page_server import Served
from page_visitor import opened, search, serious, until, video_time

pytestmark = pytest.mark.slow

Opener = Callable[..., Page]


@pytest.fixture
def evaluation(copied: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[DresServer, Served]]:
    """A stand-in for an evaluation server, and a server with an account on it."""
    monkeypatch.setenv("MOVIOLA_DRES_PASSWORD", "secret")
    with DresServer() as dres:
        account = dres.url.replace("://", "://team@")
        with Served(copied, options=("--dres", account)) as served:
            yield dres, served


def test_a_key_submits_the_picture_and_shows_the_verdict(
    evaluation: tuple[DresServer, Served], open_page: Opener
) -> None:
    dres, served = evaluation
    page = open_page(served)
    search(page, "a rocket")
    player = opened(page)
    page.keyboard.press("Space")
    until(page, "video.paused && !video.seeking")
    page.keyboard.press("d")
    notices = page.locator("#notices")
    expect(notices).to_contain_text("submitted: correct · Submission correct!")
    (name, body), time = dres.submitted[0], video_time(page)
    (answer,) = body["answerSets"][0]["answers"]
    assert (name, answer["mediaItemName"]) == ("e-1", "launch")
    assert answer["start"] == answer["end"] == round(time * 1000)
    dres.outcome = (412, {"status": False, "description": "Submission limit reached"})
    player.get_by_role("button", name="submit").click()
    expect(notices).to_contain_text("not submitted: ")
    expect(notices).to_contain_text("Submission limit reached")
    assert serious(page) == []


def test_without_an_evaluation_nothing_is_offered(page: Page) -> None:
    search(page, "a rocket")
    player = opened(page)
    expect(player.get_by_role("button", name="submit")).to_have_count(0)
    page.keyboard.press("d")
    expect(page.locator("#notices")).to_contain_text("--dres")
