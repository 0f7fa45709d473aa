"""One writer at a time, whether the other is a process, a thread or this very one."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from filelock import FileLock

from moviola.errors import InvalidValue, LibraryLocked
from moviola.files.locks import exclusive, is_held

TRY = """
import sys
from pathlib import Path
from moviola.files.locks import exclusive, is_held
with exclusive(Path(sys.argv[1])):
    print("taken")
"""


def _other_process(lock: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", TRY, str(lock)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_another_process_is_refused_with_the_owners_id(tmp_path: Path) -> None:
    lock = tmp_path / ".lock"
    with exclusive(lock):
        found = _other_process(lock)
    assert f"LibraryLocked: {tmp_path}: process {os.getpid()} is writing" in found.stderr
    assert _other_process(lock).stdout == "taken\n"


def test_who_waits_comes_when_the_other_is_done(tmp_path: Path) -> None:
    lock, order = tmp_path / ".lock", list[str]()

    def wait() -> None:
        with exclusive(lock, wait=True):
            order.append("second")

    thread = threading.Thread(target=wait)
    with exclusive(lock):
        thread.start()
        thread.join(0.2)  # enough for who does not wait; who does is still there, however long it was given
        assert thread.is_alive()
        order.append("first")
    thread.join()
    assert order == ["first", "second"]


def test_the_same_process_is_refused_in_either_thread(tmp_path: Path) -> None:
    lock = tmp_path / ".lock"
    refused: list[bool] = []

    def attempt() -> None:
        try:
            with exclusive(lock):
                refused.append(False)
        except LibraryLocked:
            refused.append(True)

    with exclusive(lock):
        attempt()
        thread = threading.Thread(target=attempt)
        thread.start()
        thread.join()
    attempt()
    assert refused == [True, True, False]


def test_an_error_inside_releases_the_lock(tmp_path: Path) -> None:
    lock = tmp_path / ".lock"
    with pytest.raises(RuntimeError), exclusive(lock):
        raise RuntimeError
    with exclusive(lock):
        pass


def test_what_a_killed_owner_left_does_not_lock(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / ".lock.owner").write_text("1")
    assert not is_held(tmp_path / ".lock")
    with exclusive(tmp_path / ".lock"):
        assert (tmp_path / ".lock.owner").read_text() == str(os.getpid())


def test_a_place_that_cannot_be_locked_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="cannot be locked"), exclusive(tmp_path):
        pass


def test_a_disk_that_refuses_at_the_end_holds_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with monkeypatch.context() as broken, exclusive(tmp_path / ".lock"):
        broken.setattr(Path, "unlink", refuse)
    with exclusive(tmp_path / ".lock"):
        pass


def test_whether_it_is_held(tmp_path: Path) -> None:
    assert not is_held(tmp_path / ".lock") and not list(tmp_path.iterdir())
    with exclusive(tmp_path / ".lock"):
        assert is_held(tmp_path / ".lock")
    assert not is_held(tmp_path / ".lock")


def test_a_free_lock_is_not_taken_to_see_whether_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with exclusive(tmp_path / ".lock"):
        pass
    taken: list[object] = []
    monkeypatch.setattr(FileLock, "acquire", lambda *_, **__: taken.append(1))
    assert (tmp_path / ".lock").is_file() and not is_held(tmp_path / ".lock")
    assert not taken
