"""The page in Firefox: search, watch, narrow down, look after, in another language, without an error."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from browser import FIREFOX_REMEDY, can_install, find_firefox
from firefox import Firefox
from page_server import Served

pytestmark = pytest.mark.long(3)


@pytest.fixture
def firefox() -> Iterator[Firefox]:
    path = find_firefox()
    if path is None and can_install():
        pytest.fail(FIREFOX_REMEDY, pytrace=False)
    if path is None:
        pytest.skip(f"{FIREFOX_REMEDY}; packages cannot be installed by this user")
    with Firefox(path) as browser:
        yield browser


def test_search_watch_narrow_look_after_and_translate(firefox: Firefox, served: Served) -> None:
    def there(selector: str) -> str:
        return f"document.querySelector({selector!r})?.checkVisibility()"

    settled = "!document.querySelector('[aria-busy]')"
    firefox.open(served.url)
    firefox.until(there(".shelf .moment"))
    firefox.type("#words", "a rocket")
    firefox.until(f"{there('#results .moment .score')} && {settled}")
    assert firefox.run("return document.querySelector('#results .moment .title').textContent") == "launch"

    firefox.click("#results .moment .opener")
    # A Firefox without H.264 says that it cannot play this; any other plays.
    plays = firefox.run(
        "return document.createElement('video').canPlayType('video/mp4; codecs=avc1.42E01E') !== ''"
    )
    failed = there(".player-failure[role=alert]")
    firefox.until("document.querySelector('#player video').currentTime > 0" if plays else failed)
    firefox.until(there("#player .cues button"))
    firefox.click("#player .player-head .icon-button:last-child")
    firefox.until(f"!{there('#player')}")

    firefox.click(".filter-button")
    firefox.until(there("#filters .facet-folder .choice"))
    firefox.click("#filters .facet-folder li li input")
    firefox.until(f"{there('#status .chip')} && {settled}")

    firefox.click("#to-library")
    firefox.until(there(".videos tbody tr"))
    firefox.click(".language select option[value=de]")
    firefox.until("document.documentElement.lang === 'de' && document.querySelector('.videos tbody tr')")
    assert firefox.run("return document.querySelector('#to-library').textContent") == "Bibliothek"
    assert firefox.errors() == []
    firefox.run("setTimeout(() => { throw new Error('seen') })")
    firefox.open(f"{served.url}/judge")
    assert any("seen" in error for error in firefox.errors()), "errors are seen at all"
