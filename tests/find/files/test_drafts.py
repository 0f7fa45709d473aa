"""A draft says by its name whether the process that writes it is still there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from left_drafts import leave_drafts
from moviola.files import drafts
from moviola.files.drafts import draft_beside, is_abandoned
from moviola.files.writing import draft_folder_of, draft_of


def test_living_and_killed_writers(tmp_path: Path) -> None:
    """A draft that is taken from a writer at work, file or folder, or one of a killed writer that stays."""
    with draft_of(tmp_path / "film.json") as file, draft_folder_of(tmp_path / "graphs") as folder:
        file.write_text("{")
        (folder / "graph.xml").write_text("<")
        assert not is_abandoned(file) and not is_abandoned(folder)
        assert all(is_abandoned(draft) for draft in leave_drafts(tmp_path / "film.json", tmp_path / "other"))


def test_a_process_that_nobody_has_waited_for_writes_no_more(tmp_path: Path) -> None:
    begins = (
        "import os; from pathlib import Path; from moviola.files.drafts import draft_beside;"
        "print(draft_beside(Path('film.json')), flush=True); os.kill(os.getpid(), 9)"
    )
    with subprocess.Popen([sys.executable, "-c", begins], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        draft = tmp_path / process.stdout.read().strip()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_abandoned(draft)


def test_the_number_of_a_process_is_given_again(tmp_path: Path) -> None:
    """A draft that stays for good since another program has the number of the one that was killed."""
    draft = draft_beside(tmp_path / "film.json")
    process, start = draft.name.split("-")[2:4]
    later = draft.with_name(draft.name.replace(f"-{process}-{start}-", f"-{process}-{int(start) - 1}-"))
    assert not is_abandoned(draft) and is_abandoned(later)


def test_after_another_start_of_the_machine_no_writer_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draft = draft_beside(tmp_path / "film.json")
    monkeypatch.setattr(drafts, "_boot", lambda: "another1")
    assert is_abandoned(draft)


@pytest.mark.parametrize("unknown", ["machine", "boot", "start", "name"])
def test_a_writer_that_cannot_be_asked_for_has_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unknown: str
) -> None:
    """A draft of another machine on the same drive, where its process is none of ours, or of a system that
    does not say: taken at once, or never.
    """
    draft = draft_beside(tmp_path / "film.json")
    fields = draft.name.split("-")
    if unknown == "machine":
        monkeypatch.setattr(drafts, "_machine", lambda: "00000000")
    elif unknown == "name":
        draft = draft.with_name(".film.json.0123456789abcdef.tmp")
    else:
        fields[1 if unknown == "boot" else 3] = "0"
        draft = draft.with_name("-".join(fields))
    assert not is_abandoned(draft)  # there is none
    draft.touch()
    assert not is_abandoned(draft)
    os.utime(draft, (0, 0))
    assert is_abandoned(draft)
