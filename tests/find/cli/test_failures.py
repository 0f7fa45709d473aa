"""What a failed command says: the input, the value that was wrong, and what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Outcome

# A command, the value that was wrong, and what it says to do: of each kind of failure one.
FAILURES = [
    ("serve LIBRARY", "LIBRARY", "--library"),
    ("search red wall", "wall", "quotation marks"),
    ("list all -l LIBRARY", "all", "--help"),
    ("index FILMS/harbor.mp4", "harbor.mp4", "did you mean .*harbour.mp4"),
    ("index FILMS/gone/x.mp4", "gone/x.mp4", "plug its drive in"),
    ("index FILMS/zzz", "zzz", "check its name"),
    ("watch FILMS/zzz -l LIBRARY", "zzz", "check its name"),
    ("index FILMS --encoder nope -l NEW", "nope", "conse-lite1"),
    ("index FILMS --device tpu -l NEW", "tpu", "choose auto"),
    ("search x -l NEW", "new", "moviola index"),
    ("search x --top-k many", "many", "is no whole number"),
    ("search x --top-k 0", "0", "x>=1"),
    ("search x --by heard", "heard", "'visual'"),
    ("search x --taken soon -l LIBRARY", "soon", "2024-05-31"),
    ("search x --near Berlin -l LIBRARY", "Berlin", "52.52"),
    ("search x --video harbor -l LIBRARY", "harbor", "did you mean harbour"),
    ("search x --tag nope -l LIBRARY", "nope", "no tag is known yet"),
    ("search x --folder nope -l LIBRARY", "nope", "moviola list"),
    ("cut first -l LIBRARY", "first", "is no whole number"),
    ("export out.xyz -l LIBRARY", ".xyz", "end it in .csv"),
    ("kept run nope -l LIBRARY", "nope", "moviola kept list"),
    ("library move a b -l LIBRARY", "a", "moviola library roots"),
    ("evaluate FILMS/a FILMS/b", "FILMS/b", "check its name"),
    ("serch x", "serch", "moviola search"),
    ("kept --library LIBRARY", "--library", "command of `moviola kept` before its options: list, "),
    ("list --verbose", "--verbose", "`moviola list --help` shows its options"),
    ("index", "'sources'", "For example: `moviola index "),
    ("models pull", "Missing argument", "For example: `moviola models pull "),
    ("serve --root-path films -l LIBRARY", "films", "/films"),
    ("serve --host 0.0.0.0 -l LIBRARY", "0.0.0.0", "--token"),
]


@pytest.mark.parametrize(("command", "value", "remedy"), FAILURES)
def test_a_failure_names_its_value_and_a_remedy(
    moviola: Callable[..., Outcome],
    library: Path,
    films: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    value: str,
    remedy: str,
) -> None:
    """Not "no such file" alone, nor "unexpected extra argument" where an option was forgotten."""
    monkeypatch.setenv("COLUMNS", "1000")
    words = {"LIBRARY": str(library), "FILMS": str(films), "NEW": str(tmp_path / "new")}

    def filled(text: str) -> str:
        return re.sub("LIBRARY|FILMS|NEW", lambda found: words[found[0]], text)

    answer = moviola(*filled(command).split())
    assert answer.code in (1, 2) and "Traceback" not in answer.err
    assert filled(value) in answer.err and re.search(remedy, answer.err), answer.err
