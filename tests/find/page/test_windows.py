"""Every view in windows of any size, in light and dark, and in the colours of the system."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import ElementHandle, Page

from page_server import Served
from page_visitor import WINDOWS, card, opened, out_of_reach, search, searching, serious

pytestmark = pytest.mark.slow

Opener = Callable[..., Page]
LOOKS = [
    pytest.param({"color_scheme": "light"}, id="light"),
    pytest.param(
        {"color_scheme": "dark", "reduced_motion": "reduce"}, id="dark-reduce", marks=pytest.mark.long(0)
    ),
    pytest.param({"forced_colors": "active"}, id="forced", marks=pytest.mark.long(1)),
]


def views(page: Page) -> Iterator[str]:
    """Goes from view to view, each in a state that shows much; says which one it is."""
    page.locator(".shelf .moment").first.wait_for()
    page.get_by_role("region", name="Try").wait_for()
    yield "welcome"
    search(page, "a rocket")
    with searching(page):
        page.get_by_role("button", name="then", exact=True).click()
    page.get_by_role("button", name="filters", exact=True).click()
    days = page.get_by_role("listbox", name="When it was taken")
    days.press("End")
    with searching(page):
        days.press("Enter")
    card(page).locator(".opener").focus()
    page.keyboard.press("c")
    yield "results"
    with searching(page):
        page.get_by_role("button", name="As rows by video").click()
    page.locator(".rows .moment").first.wait_for()
    yield "rows"
    card(page).locator(".opener").focus()
    page.keyboard.press("Enter")
    page.locator("#player .curve").wait_for(state="attached")
    page.locator("#player .cues button").first.wait_for()
    yield "player"
    page.keyboard.press("Escape")
    page.locator("body").press("2")
    page.locator(".item").wait_for()
    yield "collection"
    page.locator("body").press("3")
    page.locator(".videos tbody tr").first.wait_for()
    yield "library"
    page.locator("body").press("?")
    yield "keys"
    page.keyboard.press("Escape")
    page.locator("body").press("1")
    page.get_by_role("button", name="Clear the search").click()
    search(page, "tax return")
    page.get_by_role("heading", name="Nothing matches").wait_for()
    yield "no match"


def test_everything_is_in_reach_in_any_window(open_page: Opener, dated: Served) -> None:
    page = open_page(dated)
    beyond = {}
    for view in views(page):
        for width, height in WINDOWS:
            page.set_viewport_size({"width": width, "height": height})
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (view, width)
            beyond[view, width] = out_of_reach(page)
        page.set_viewport_size({"width": 1280, "height": 800})
    assert beyond == {key: [] for key in beyond}


def test_a_name_without_blanks_stays_in_its_column(page: Page) -> None:
    page.route(
        "**/api/videos?*",
        lambda route: route.fulfill(
            body=route.fetch().text().replace('"work/launch"', '"a_take_of_many_words"')
        ),
    )
    page.set_viewport_size({"width": 360, "height": 640})
    page.get_by_role("link", name="Library").click()
    cell = page.locator(".videos td.name", has_text="a_take_of_many_words")
    assert cell.evaluate("(cell) => cell.scrollWidth <= cell.clientWidth")


@pytest.mark.parametrize("look", LOOKS)
def test_axe_finds_nothing_on_any_view(open_page: Opener, dated: Served, look: dict[str, str]) -> None:
    page = open_page(dated, **look)
    found = {}
    for view in views(page):
        found[view] = serious(page)
        page.set_viewport_size({"width": 320, "height": 640})
        found[f"{view} on a phone"] = serious(page)
        page.set_viewport_size({"width": 1280, "height": 800})
    assert found == {view: [] for view in found}


def test_the_player_in_windows_of_any_size(page: Page) -> None:
    """Each control is in sight, none lies over the video, and nothing is wider than the window."""
    search(page, "every point of light is a galaxy")
    player = opened(page)
    player.locator(".cues button").first.wait_for()
    for width, height in WINDOWS:
        page.set_viewport_size({"width": width, "height": height})
        screen, *controls = player.evaluate(
            """player => [".screen", ".transport button, .timeline, .player-actions > *"]
              .flatMap(those => [...player.querySelectorAll(those)])
              .map(one => one.getBoundingClientRect())
              .map(({ left, top, right, bottom }) => [left, top, right, bottom])"""
        )
        window = (width, height)
        assert min(screen[2] - screen[0], screen[3] - screen[1]) >= 120, window
        assert player.evaluate("one => one.scrollWidth <= one.clientWidth"), window
        assert len(controls) >= 9, window
        for left, top, right, bottom in controls:
            assert left >= screen[2] - 1 or top >= screen[3] - 1, window
            assert left >= 0 and top >= 0 and right <= width and bottom <= height, window


HIDDEN = "one => { one.style.visibility = 'hidden'; }"
STATELESS = """one => {
  for (const name of ["pressed", "selected", "current", "expanded"]) one.removeAttribute(`aria-${name}`);
  one.classList.remove("on");
  document.activeElement.blur();
}"""
CURRENT = "one => one.setAttribute('aria-current', 'true')"
# Parts that must be seen by themselves, or look different without their state, where grounds and shadows are
# not painted.
CHANGED = {
    "welcome": {".search-field": STATELESS},
    "results": {
        ".score span": HIDDEN,
        ".tools .collect.on": STATELESS,
        ".layout [aria-pressed='true']": STATELESS,
        ".filter-button": STATELESS,
        ".bars [aria-selected='true']": STATELESS,
    },
    "player": {".head": HIDDEN, ".handle.start": HIDDEN, ".cues button:not([aria-current])": CURRENT},
    "keys": {".keys .icon-button": STATELESS},
}


def test_states_are_distinct_in_the_colours_of_the_system(open_page: Opener, dated: Served) -> None:
    page = open_page(dated, forced_colors="active", reduced_motion="reduce")
    same = []
    for view in views(page):
        if view == "player":
            page.locator("#player video").evaluate("video => video.pause()")
        for those, change in CHANGED.get(view, {}).items():
            one = page.locator(those).locator("visible=true").first.element_handle()
            one.scroll_into_view_if_needed()
            before = look_of(page, one)
            one.evaluate(change)
            if look_of(page, one) == before:
                same.append((view, those))
    assert same == []


def look_of(page: Page, shown: ElementHandle) -> bytes:
    """The picture of a part of the page with a rim."""
    box = shown.bounding_box()
    assert box
    rim = 5
    x, y, width, height = (round(box[side]) for side in ("x", "y", "width", "height"))
    clip = {"x": x - rim, "y": y - rim, "width": width + 2 * rim, "height": height + 2 * rim}
    return page.screenshot(clip=clip)  # type: ignore[arg-type]
