"""The account of a file on the page: what it holds and says, what of it is not used, and why."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import httpx2
import pytest
from playwright.sync_api import Page, expect

from made_films import Pictures, Sound, Words, make_film
from moviola.search import Library
from moviola.types import HELD_AS
from page_server import Served
from page_visitor import serious

PAGE = Path(__file__).resolve().parents[3] / "src" / "moviola" / "server" / "page"


def test_every_kind_of_part_is_named_on_the_page_as_elsewhere() -> None:
    """One that is added in Python alone would be said in English to all."""
    script = (PAGE / "base" / "account.js").read_text(encoding="utf-8")
    table = script[script.index("const HELD = {") : script.index("};")]
    assert dict(re.findall(r'"([\w ]+)": t\("([^"]+)"\)', table)) == HELD_AS


@pytest.mark.slow
def test_the_account_is_shown_in_the_library_and_the_player(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    """In the reader's language; keys of the player under it do nothing, and Escape closes it alone. The
    language of subtitles is corrected there, which only a command could.
    """
    film = make_film(
        tmp_path / "films" / "harbour.mkv",
        Pictures(4.0), Sound(4.0), Sound(4.0, tags={"language": "ger", "title": "Kommentar"}),
        Words([(0.5, 1.0, "a walrus")], "subrip", {"language": "eng"}),
        tags={"title": "The Sea", "PURL": "https://example.org"},
        chapters=[(0.0, 2.0, "Dawn"), (2.0, 4.0, "Dusk")],
        attachments={"notes.bin": b"notes"},
    )  # fmt: skip
    film.with_suffix(".srt").write_text(
        "1\n00:00:01,000 --> 00:00:02,000\nHi.\n\n2\n00:00:0x,000 --> 0\nlost\n"
    )
    with Library(tmp_path / "photographs", encoder="demo", sentence_encoder="none") as library:
        library.index(film.parent)
    with Served(tmp_path) as server:
        page = open_page(server, "#/library")
        page.get_by_role("button", name="What the file of harbour holds").click()
        account = page.locator("#account")
        expect(account.locator(".account > [role=status]")).to_have_text("4 parts of the file are not used")
        unused = account.locator("section").filter(has_text="Not used").locator("li")
        expect(unused).to_have_text([
            "stream 2 audio, aac, ger, Kommentar: further sound; --speech-track reads it",
            "stream 3 subtitle, subrip, eng: read, unless a subtitle file has its language",
            re.compile("notes.bin: attached, not read"), "PURL https://example.org: not searched",
        ])  # fmt: skip
        expect(account).to_contain_text("Title The Sea")
        expect(account).to_contain_text("1 damaged cue skipped")
        assert serious(page) == []
        language = account.get_by_label("Language of Subtitles")
        expect(language).to_have_value("")
        language.select_option("de")
        expect(account.get_by_label("Language of Subtitles")).to_be_enabled()
        expect(account.get_by_label("Language of Subtitles")).to_have_value("de")
        cues = httpx2.get(f"{server.url}/api/videos/harbour/cues").json()["cues"]
        assert [cue["language"] for cue in cues if cue["kind"] == "subtitle"] == ["de"]
        page.get_by_role("button", name="Close").click()
        expect(account).to_be_hidden()

        page.get_by_role("button", name="harbour", exact=True).click()
        player = page.locator("#player")
        expect(player.get_by_role("region", name="Chapters").get_by_role("listitem")).to_have_count(2)
        player.locator("summary").click()
        player.get_by_role("button", name="what the file holds").click()
        expect(account).to_contain_text("Kommentar")
        page.keyboard.press("Escape")
        expect(account).to_be_hidden()
        expect(player).to_be_visible()
        page.keyboard.press("Escape")
        page.get_by_label("Language", exact=True).select_option("de")
        page.get_by_role("button", name="Was die Datei von harbour enthält").click()
        expect(account).to_contain_text("4 Teile der Datei werden nicht genutzt")
        expect(account).to_contain_text("weiterer Ton; --speech-track liest ihn")
        page.route("**/api/videos/harbour", lambda route: route.abort())
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Was die Datei von harbour enthält").click()
        expect(account.get_by_role("alert")).to_be_visible()
    page.goto("about:blank")


@pytest.mark.slow
def test_a_recording_goes_on_in_its_next_file(open_page: Callable[..., Page], tmp_path: Path) -> None:
    for number in (1, 2):
        name = f"GX0{number}0001"
        make_film(tmp_path / "films" / f"{name}.mp4", Pictures(1.0), tags={"title": name})
    with Library(tmp_path / "photographs", encoder="demo", sentence_encoder="none") as library:
        library.index(tmp_path / "films")
    with Served(tmp_path) as server:
        page = open_page(server, "#/library")
        expect(page.locator("td.name").first).to_contain_text("part 1 of 2 of a recording")
        page.get_by_role("button", name="GX010001", exact=True).click()
        expect(page.locator("#player h2")).to_have_text("GX020001", timeout=15_000)
    page.goto("about:blank")
