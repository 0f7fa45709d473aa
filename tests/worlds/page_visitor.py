"""What visitors of the page do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

__all__ = [
    "PHONE", "WINDOWS", "card", "moments", "opened", "out_of_reach", "search", "searching", "serious",
    "until", "video_time",
]  # fmt: skip

WINDOWS = [(1440, 900), (1366, 657), (1280, 600), (1024, 768), (844, 390), (740, 360), (390, 844), (320, 640)]
"""Width and height of windows that people have: screens, laptops, phones held either way."""
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
"""Options of a context."""


def moments(page: Page) -> Locator:
    """The moments of an answer."""
    return page.locator("#results .moment:has(.score)")


def card(page: Page, place: int = 0) -> Locator:
    """One of them."""
    return moments(page).nth(place)


@contextmanager
def searching(page: Page, text: str = "") -> Iterator[Any]:
    """Do what makes the page search, for some words or any; ``value`` is the response, once it is shown."""
    with page.expect_response(
        lambda response: response.url.endswith("/api/search") and text in (response.request.post_data or "")
    ) as answered:
        yield answered
    expect(page.locator("#results")).not_to_have_attribute("aria-busy", "true")


def search(page: Page, text: str) -> dict[str, Any]:
    """Ask for something in words; gives the answer of the server when it is shown."""
    with searching(page, text) as answered:
        page.get_by_label("What to look for").fill(text)
    answer: dict[str, Any] = answered.value.json()
    return answer


def opened(page: Page, place: int = 0) -> Locator:
    """Open a moment; gives the player."""
    card(page, place).locator(".opener").click()
    player = page.locator("#player")
    expect(player).to_be_visible()
    until(page, "video.readyState >= 2")
    return player


def video_time(page: Page) -> float:
    """Seconds of the picture that the player shows."""
    return float(page.evaluate("document.querySelector('#player video').currentTime"))


PATIENCE = 30_000  # ms


def until(page: Page, condition: str) -> None:
    """Wait in the page for a condition on the player's ``video``.

    Not `Page.wait_for_function`: that evaluates text in the page, which its content security policy forbids.
    """
    page.evaluate(
        f"""async () => {{
          const [video, end] = [document.querySelector("#player video"), performance.now() + {PATIENCE}];
          while (!({condition})) {{
            if (performance.now() > end) throw new Error("still not: {condition}");
            await new Promise(requestAnimationFrame);
          }}
        }}"""
    )


def serious(page: Page) -> list[str]:
    """What axe finds wrong with the page, from moderate on, and where: once it is settled.

    A search that is still to come, and fading, dim what is shown.
    """
    expect(page.locator("[aria-busy='true']")).to_have_count(0)
    page.evaluate("document.getAnimations().forEach(one => one.cancel())")
    violations = Axe().run(page).response["violations"]
    return [
        f"{one['id']}: {one['nodes'][0]['html']}"
        for one in violations
        if one["impact"] in ("moderate", "serious", "critical")
    ]


def out_of_reach(page: Page) -> list[str]:
    """Controls of the topmost layer that nobody can press in this window, even after scrolling.

    They are beside the window, or something else lies over their middle.
    """
    found: list[str] = page.evaluate(
        """() => {
          const layer = document.querySelector("dialog[open]") ?? document.body;
          const kinds = "button, a[href], input, select, textarea, summary, [tabindex='0']";
          const reached = (one) => {
            one.scrollIntoView({ block: "center", inline: "center", behavior: "instant" });
            const { left, right, top, bottom } = one.getBoundingClientRect();
            const there = document.elementFromPoint((left + right) / 2, (top + bottom) / 2);
            const inside = left >= -1 && right <= innerWidth + 1 && top >= -1;
            return inside && (one.closest("label") ?? one).contains(there);
          };
          return [...layer.querySelectorAll(kinds)]
            .filter((one) => one.checkVisibility({ opacityProperty: true, visibilityProperty: true }))
            .filter((one) => !one.matches(".skip:not(:focus)") && !reached(one))
            .map((one) => one.outerHTML.slice(0, 160));
        }"""
    )
    return found
