"""What visitors of the page do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Locator, Page, expect

__all__ = ["card", "moments", "opened", "search", "searching", "serious", "until", "video_time"]


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
    """What axe finds wrong with the page as it stands, from moderate on, and where; fading is over."""
    page.emulate_media(reduced_motion="reduce")
    violations = Axe().run(page).response["violations"]
    page.emulate_media(reduced_motion="no-preference")
    return [
        f"{one['id']}: {one['nodes'][0]['html']}"
        for one in violations
        if one["impact"] in ("moderate", "serious", "critical")
    ]
