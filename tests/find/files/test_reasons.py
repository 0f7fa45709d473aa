"""Why files are not used: codes that are found again in stored words, and said in every language."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import moviola.server
from moviola.errors import MediaError
from moviola.files.reasons import REASONS, read_reason, reason
from moviola.media import probe

PAGE = Path(moviola.server.__file__).parent / "page" / "base" / "reasons.js"


def fields(words: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", words))


@pytest.mark.parametrize("around", ["{}", "a: b.mp4: {}; skipped", "node one: {}"])
def test_a_reason_is_found_again_in_what_was_stored(around: str) -> None:
    """A code whose words another one's pattern takes would be said as that one."""
    for code, words in REASONS.items():
        values = {name: f"the {name}, (x)" for name in fields(words)}
        assert read_reason(around.format(reason(code, **values))) == (code, values)
    denied = "cannot be read (Permission denied); check its permissions and its disk"
    assert read_reason(around.format(denied)) == ("unreadable", {"why": "Permission denied"})
    assert read_reason(around.format("something else")) == ("", {})


def test_the_page_says_every_reason_with_what_it_names() -> None:
    said = dict(re.findall(r'^  "([^"]+)": t\("([^"]+)"\),$', PAGE.read_text(encoding="utf-8"), re.MULTILINE))
    assert said.keys() == REASONS.keys()
    for code, message in said.items():
        assert fields(message) <= fields(REASONS[code]), code


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"", "empty"), (bytes(5000), "zeros"), (b"words", "text"), (b"\xff\x00" * 99, "no media")],
)
def test_the_reason_against_a_file_has_a_code(tmp_path: Path, content: bytes, code: str) -> None:
    """A reason that is worded where it is raised would stay English on the page."""
    file = tmp_path / "film.mp4"
    file.write_bytes(content)
    with pytest.raises(MediaError) as refused:
        probe(file)
    assert read_reason(refused.value.reason).code == code
