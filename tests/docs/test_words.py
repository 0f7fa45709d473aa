"""Plain words: a list of what code and documents do not say, since it does not read at once.

Say instead: a number or "at most", "reports" or "shows", "the caller", "a user", "optionally", "again",
"see", "as in", "the same", "too", "else", "if not"; begin with a noun ("Server options.") or a verb.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PHRASES = (
    "so many", "told", "tells?", "telling", "whoever", "somebody", "on wish", "anew", "unasked", "therein",
    "thereof", "nothing more will be", r"what (?:\w+ ){0,3}decides", "(?:is|are|was|were|be) had", "as of",
    "is asked for", "was asked", "who asks", "_(?:told|asked)", "asked ?=(?!=)", "likewise", "otherwise",
    r"(?-i:What) (?:stands|lies|is)(?![^.!?]*\?)",  # as the beginning of a statement
)  # fmt: skip
UNWANTED = re.compile(rf"(?<!\w)(?:{'|'.join(PHRASES)})(?!\w)".replace(" ", r"\s+"), re.IGNORECASE)
ALLOWED = {
    "phrases.py": {"somebody"},  # function words of English
    "make_english_words.py": {"somebody", "whoever"},
    "inflections.py": {"tell", "told"},  # forms of a verb
    "narrator.py": {"somebody"},  # texts of generated films
    "dataset.py": {"tells"},
    "judge-and-train.md": {"somebody"},  # a query of its example
    "scores.md": {"somebody"},
    "test_imprecise.py": {"somebody"},  # captions
    "test_statistics.py": {"somebody"},
}
"""By the name of a file, words that it quotes."""
FILES = [
    path
    for path in (
        *sorted((ROOT / "src").rglob("*.py")),
        *sorted((ROOT / "src" / "moviola" / "server" / "page").rglob("*.js")),
        *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING", "DESIGN", "SECURITY", "CHANGELOG")),
        *sorted((ROOT / "changes").glob("*.md")),
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "benchmarks").rglob("*.py")),
        *sorted((ROOT / "benchmarks").rglob("*.md")),
        *(
            path
            for folder in ("scripts", "examples", "tests")
            for path in sorted((ROOT / folder).rglob("*.py"))
        ),
        *sorted((ROOT / "tests").rglob("*.toml")),
    )
    # Written by benchmarks/, and of the past; and this list.
    if path.name not in ("report.md", "history.md", "test_words.py")
]
NAMES = re.compile(r"(?<=def )\w+")


def read(name: re.Match[str]) -> str:
    """The name of a function as its reader reads it: words, that of a test a sentence; as long as before."""
    words = re.sub(r"(?<=[^_])_(?=[^_])", " ", name[0])
    return "test " + words[5:6].upper() + words[6:] if words.startswith("test ") else words


def unwanted(text: str) -> list[tuple[int, str]]:
    """Line and words of each finding; words may be parted by a line end."""
    text = NAMES.sub(read, text)
    joined = re.sub(r"[ \t]*\n\s*(?:#|\")?[ \t]*", lambda gap: " " * len(gap[0]), text)
    return [(text.count("\n", 0, match.start()) + 1, match[0].lower()) for match in UNWANTED.finditer(joined)]


@pytest.mark.parametrize(
    "text, words",
    [
        ("at most so\n    many of them", "so many"),
        ("# Whoever asks", "whoever"),
        ("def _told(error):", "_told"),
        ("asked = query.text", "asked ="),
        ("What a server decides", "what a server decides"),
        ("# Errors as\n# of a reader", "as of"),
        ("What is kept. Who reads it?", "what is"),
        ("def test_what_is_refused() -> None:", "what is"),
        ("def test_who_is_told_of_it() -> None:", "told"),
    ],
)
def test_what_is_found(text: str, words: str) -> None:
    assert [" ".join(found.split()) for _, found in unwanted(text)] == [words]


@pytest.mark.parametrize(
    "text",
    [
        "as soon as somebody's", "a folder is retold", "if asked == 2", "# New.",
        "What is a moment, and which?", "it says what is kept", "as often", "def whatis_told_(x)",
    ],
)  # fmt: skip
def test_what_is_not(text: str) -> None:
    assert [found for _, found in unwanted(text) if found != "somebody"] == []


def test_words_are_plain() -> None:
    findings = []
    for path in FILES:
        name = str(path.relative_to(ROOT))
        for line, words in unwanted(path.read_text(encoding="utf-8")):
            if words not in ALLOWED.get(path.name, set()):
                findings.append(f"{name}:{line}: {words}")
    assert not findings, "\n".join(findings)
