"""Languages of the page: every message is in each of them, and one choice changes all that is seen."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

import moviola
from made_films import Pictures, Words, make_film
from moviola.export.formats import FORMATS
from moviola.search import Library
from moviola.search.options import FIELDS
from moviola.server.page_files import LANGUAGE_NAME
from page_server import Served
from page_visitor import card, search, serious
from turns import TURNS

# The page's own folder, and those of additions, whose messages are in the same files.
PAGES = sorted(Path(moviola.__file__).parent.rglob("page"))
LANGUAGES = sorted(path for page in PAGES for path in page.glob("languages/*.json"))
SCRIPTS = sorted(path for page in PAGES for path in page.rglob("*.js"))
STRING = r'"((?:[^"\\]|\\.)*)"'


def messages() -> tuple[set[str], dict[str, str]]:
    """Messages of scripts and HTML, and those with a number: the plural form with its singular."""
    plain: set[str] = set()
    numbers: dict[str, str] = {}
    for script in SCRIPTS:
        text = script.read_text(encoding="utf-8")
        plain |= {json.loads(f'"{found}"') for found in re.findall(rf"(?<![\w.])t\({STRING}", text)}
        pairs = re.findall(rf"(?<![\w.])plural\((?:[^()]|\([^()]*\))*?, {STRING}, {STRING}", text)
        numbers |= {many: one for one, many in pairs}
    # Fields of a question come from the server, with their names in English.
    shown = [field for field in FIELDS.values() if "page" in field.parts]
    plain |= {name for field in shown for name in (field.label, field.short)} - {""}
    for html in (html for page in PAGES for html in page.glob("*.html")):
        text = html.read_text(encoding="utf-8")
        plain |= set(re.findall(r"<[^>]*\bdata-t(?=[ >])[^>]*>([^<]+)<", text))
        plain |= set(re.findall(r'aria-label="([^"]+)"[^>]* data-t-label', text))
    return plain - set(numbers), numbers


def values_of(message: str) -> set[str]:
    return set(re.findall(r"\{\w+\}", message))


@pytest.mark.parametrize("path", LANGUAGES, ids=lambda path: path.stem)
def test_every_message_is_in_every_language_with_its_values(path: Path) -> None:
    plain, numbers = messages()
    assert len(plain) > 200
    translated = json.loads(path.read_text(encoding="utf-8"))
    assert set(translated) == plain | set(numbers) | {LANGUAGE_NAME}
    for message in plain:
        assert translated[message].strip() and values_of(translated[message]) == values_of(message), message
    for many in numbers:
        single, several = translated[many]
        assert values_of(several) == values_of(many), many
        assert values_of(single) | {"{n}"} == values_of(many) | {"{n}"}, many


def test_no_message_is_put_together_from_parts() -> None:
    """Words in a template cannot be translated: a message has {names} for its values."""
    for script in SCRIPTS:
        for call in re.findall(r"(?<![\w.])(?:t|plural)\(`[^`]*`", script.read_text(encoding="utf-8")):
            pytest.fail(f"{script.name}: {call} is a template")


def test_every_export_format_has_a_name_in_every_language() -> None:
    plain, _ = messages()
    names = {format.title for format in FORMATS.values()} - {"JSON", "OpenTimelineIO", "FCPXML 1.9"}
    assert names <= plain


@pytest.mark.slow
def test_kinds_of_evidence_and_formats_are_named_in_the_language(
    served: Served, open_page: Callable[..., Page]
) -> None:
    page = open_page(served, "#/library")
    kinds = page.locator(".facts dd")
    expect(kinds.filter(has_text="what is seen, subtitles")).to_be_attached()
    page.get_by_label("Language").select_option("de")
    expect(kinds.filter(has_text="was zu sehen ist, Untertitel")).to_be_attached()
    page.goto(f"{served.url}/#/search?query=a+rocket")
    card(page).locator(".opener").focus()
    page.keyboard.press("c")
    page.locator("#to-collection").click()
    expect(page.get_by_label("Format").locator("option").first).to_have_text("Tabelle (CSV)")


@pytest.mark.slow
def test_a_language_is_chosen_and_stays(page: Page) -> None:
    page.get_by_label("Language").select_option("de")
    expect(page.get_by_role("link", name="Suche")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "de")
    with page.expect_response(lambda response: response.url.endswith("/api/search")):
        page.get_by_label("Wonach gesucht wird").fill("a rocket")
    expect(page.locator("#status .said")).to_have_text(re.compile(r"^\d+ Momente? in \d+ Videos?$"))
    page.reload()
    expect(page.get_by_label("Wonach gesucht wird")).to_have_value("a rocket")
    assert not serious(page)
    page.get_by_role("link", name="Bibliothek").click()
    expect(page).to_have_title("Bibliothek · moviola")
    page.goto(
        f'{page.url.partition("#")[0]}#/search?query={{"terms":[{{"text":"a rocket"}}],"without":["a cat"]}}'
    )
    expect(page).to_have_title("a rocket, ohne a cat · moviola")
    page.get_by_label("Sprache").select_option("en")
    expect(page.get_by_label("What to look for")).to_be_visible()


@pytest.mark.parametrize(
    "code",
    [
        # The longest words in every run, the other languages in turn.
        pytest.param(
            path.stem, marks=pytest.mark.slow if path.stem == "de" else pytest.mark.long(turn % TURNS)
        )
        for turn, path in enumerate(LANGUAGES)
    ],
)
def test_every_view_fits_in_a_small_window_in_every_language(page: Page, code: str) -> None:
    page.set_viewport_size({"width": 320, "height": 640})
    search(page, "a rocket")
    page.locator(".language select").select_option(code)
    expect(page.locator("html")).to_have_attribute("lang", code)
    expect(page.locator("#status .said")).not_to_be_empty()
    page.locator(".query-more button").first.click()
    joint = page.locator(".query-row .joint")
    assert joint.evaluate("word => word.scrollWidth <= word.clientWidth"), "lies over what is typed"
    card(page).locator(".opener").click()
    head = page.locator(".player-head h2")
    expect(head).to_be_visible()
    assert head.evaluate("title => title.clientWidth >= Math.min(title.scrollWidth, 90)"), (
        "nothing of the title"
    )
    page.keyboard.press("Escape")
    for view in ("search", "collection", "library"):
        page.locator(f"#to-{view}").click()
        expect(page.locator(f"#{view}-view")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (code, view)


@pytest.mark.slow
def test_the_browsers_language_comes_first_and_all_are_offered(
    served: Served, open_page: Callable[..., Page]
) -> None:
    """English stood there for everybody until they found the choice; a new file was no language yet."""
    page = open_page(served, locale="de-AT")
    expect(page.locator("html")).to_have_attribute("lang", "de")
    options = page.locator(".language option")
    assert sorted(options.evaluate_all("all => all.map(one => one.value)")) == sorted(
        ["en", *(path.stem for path in LANGUAGES)]
    )
    names = options.all_text_contents()
    assert {"English", "Deutsch", "Español", "中文"} <= set(names)
    page.get_by_label("Sprache").select_option("en")
    expect(page.locator("html")).to_have_attribute("lang", "en")  # chosen, whatever the browser likes


@pytest.mark.slow
def test_names_and_lines_from_right_to_left_stand_apart_from_times(
    open_page: Callable[..., Page], tmp_path: Path
) -> None:
    """A colon or a number beside a Hebrew name went to its other side; Chinese lines stay left to right."""
    name = "חתול 7"
    lines = [(0.5, 1.0, "القطة تنام على السطح."), (1.5, 2.0, "猫在屋顶上睡觉。")]
    make_film(tmp_path / "films" / f"{name}.mkv", Pictures(3.0), Words(lines, "subrip"))
    with Library(tmp_path / "photographs", encoder="demo", sentence_encoder="none") as library:
        library.index(tmp_path / "films")
    with Served(tmp_path) as server:
        page = open_page(server, "#/library")
        title = page.get_by_role("button", name=name, exact=True)
        direction = "element => getComputedStyle(element).direction"
        assert title.evaluate(direction) == "rtl"
        again = page.get_by_role("button", name=re.compile("What the file of"))
        expect(again).to_have_attribute("title", f"What the file of \u2068{name}\u2069 holds")
        title.click()
        cues = page.locator("#player .cues button")
        expect(cues).to_have_count(2)
        said = [(cue.locator("span").last, cue.locator(".time")) for cue in cues.all()]
        assert [(text.evaluate(direction), time.evaluate(direction)) for text, time in said] == [
            ("rtl", "ltr"), ("ltr", "ltr"),
        ]  # fmt: skip
    page.goto("about:blank")
