"""Files are whole or not there, and a place that cannot be written is named."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from moviola.errors import InvalidValue
from moviola.files import writing
from moviola.files.writing import (
    atomic_write,
    draft_folder_of,
    draft_of,
    require_unread,
    write_json,
    write_text,
)


def test_parent_folders_are_made_and_nothing_else_is_left(tmp_path: Path) -> None:
    file = tmp_path / "a" / "b" / "c.txt"
    write_text(file, "one\ntwo\n")
    assert file.read_bytes() == b"one\ntwo\n"
    assert [entry.name for entry in file.parent.iterdir()] == ["c.txt"]


def test_json_keeps_letters_of_all_scripts(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"é": [1]})
    assert (tmp_path / "a.json").read_text(encoding="utf-8") == '{"é": [1]}\n'


def test_bytes(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "a", "wb") as file:
        file.write(b"\r\n\x00")
    assert (tmp_path / "a").read_bytes() == b"\r\n\x00"


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_text(tmp_path / "ours", "")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_file_that_is_replaced_keeps_its_permissions(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("old")
    (tmp_path / "secret").chmod(0o600)
    write_text(tmp_path / "secret", "new")
    assert (tmp_path / "secret").read_text() == "new"
    assert (tmp_path / "secret").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (RuntimeError("stopped"), RuntimeError, "stopped"),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)),
            InvalidValue,
            r"a: cannot be written \(No space left on device\)",
        ),
    ],
)
def test_a_failure_inside_leaves_the_old_file_and_no_draft(
    tmp_path: Path, error: Exception, kind: type[Exception], said: str
) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    with pytest.raises(kind, match=said), atomic_write(file) as out:
        out.write("new")
        raise error
    assert file.read_text() == "old"
    assert list(tmp_path.iterdir()) == [file]


def test_readers_see_the_old_file_until_the_end(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("old")
    with atomic_write(file) as out:
        out.write("new")
        out.flush()
        assert file.read_text() == "old"
    assert file.read_text() == "new"


def test_a_library_may_write_the_draft_by_its_name(tmp_path: Path) -> None:
    with draft_of(tmp_path / "a") as draft:
        draft.write_text("whole")
        assert draft.parent == tmp_path
    assert (tmp_path / "a").read_text() == "whole"


def test_a_symbolic_link_is_written_through(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere" / "a")
    write_text(tmp_path / "link", "x")
    assert (tmp_path / "elsewhere" / "a").read_text() == "x"
    assert (tmp_path / "link").is_symlink()


def test_a_name_as_long_as_the_file_system_allows(tmp_path: Path) -> None:
    write_text(tmp_path / ("n" * 255), "x")
    assert (tmp_path / ("n" * 255)).read_text() == "x"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("", "it is no regular file"),
        ("file/below", "Not a directory|File exists"),
        ("n" * 256, "File name too long"),
        ("pipe", "it is no regular file"),
    ],
)
def test_impossible_places_are_named(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "file").write_text("")
    os.mkfifo(tmp_path / "pipe")
    before = sorted(tmp_path.iterdir())
    with pytest.raises(InvalidValue, match=rf"cannot be written \(({reason})\); name a"):
        write_text(tmp_path / name, "x")
    assert sorted(tmp_path.iterdir()) == before


def test_a_full_disk_is_named_also_where_the_draft_is_written_by_way_of_a_draft(tmp_path: Path) -> None:
    def fill() -> None:
        with draft_of(tmp_path / "run.json") as draft, atomic_write(draft):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(InvalidValue) as refused:
        fill()
    assert str(refused.value).startswith(f"{tmp_path / 'run.json'}: cannot be written (No space left")
    assert list(tmp_path.iterdir()) == []


def test_a_failure_at_another_file_keeps_its_own_name(tmp_path: Path) -> None:
    def copy() -> None:
        with atomic_write(tmp_path / "a") as out:
            out.write((tmp_path / "absent").read_text())

    with pytest.raises(FileNotFoundError, match="absent"):
        copy()
    assert list(tmp_path.iterdir()) == []


def test_text_that_is_no_unicode_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"a: cannot be written \('\\udcff' is not Unicode text\)"):
        write_text(tmp_path / "a", "name \udcff")
    assert list(tmp_path.iterdir()) == []


def test_a_place_on_a_read_only_file_system_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("open", "unlink"):
        monkeypatch.setattr(Path, name, refuse)
    with pytest.raises(InvalidValue, match=r"file\.txt: cannot be written \(Read-only file system\)"):
        write_text(tmp_path / "file.txt", "words")


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="folders cannot be synced")
def test_the_name_is_synced_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced, sync = [], os.fsync

    def noted(file: int) -> None:
        synced.append((os.fstat(file).st_ino, (tmp_path / "a.txt").exists()))
        sync(file)

    monkeypatch.setattr(os, "fsync", noted)
    write_text(tmp_path / "a.txt", "whole")
    assert synced == [((tmp_path / "a.txt").stat().st_ino, False), (tmp_path.stat().st_ino, True)]


def test_names_of_new_folders_are_synced_before_a_file_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a synced file in a folder that the disk does not know: the power failed, and all was gone."""
    synced: list[Path] = []
    monkeypatch.setattr(writing, "sync_folder", synced.append)
    path = tmp_path / "concepts" / "next" / "walls"
    with atomic_write(path, "wb") as file:
        assert synced == [path.parents[1], tmp_path]
        file.write(b"")
    assert synced[2:] == [path.parent]
    with draft_folder_of(tmp_path / "models" / "demo"):
        assert synced[3:] == [tmp_path]


@pytest.mark.skipif(not hasattr(os, "O_DIRECTORY"), reason="folders cannot be synced")
@pytest.mark.parametrize("number", [errno.EINVAL, errno.EIO])
def test_folders_that_cannot_be_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    """Some network drives refuse it, and are used all the same; an error of the disk is said."""
    sync = os.fsync

    def refused(file: int) -> None:
        if os.fstat(file).st_ino == tmp_path.stat().st_ino:
            raise OSError(number, os.strerror(number))
        sync(file)

    monkeypatch.setattr(os, "fsync", refused)
    if number == errno.EIO:
        with pytest.raises(InvalidValue, match="Input/output error"):
            write_text(tmp_path / "a.txt", "whole")
    else:
        write_text(tmp_path / "a.txt", "whole")
    assert (tmp_path / "a.txt").read_text() == "whole"


def test_a_file_that_is_read_is_not_written_over(tmp_path: Path) -> None:
    ratings, link = tmp_path / "ratings.csv", tmp_path / "link.csv"
    write_text(ratings, "pair_id\n")
    link.symlink_to(ratings)
    require_unread(tmp_path / "agreed.csv", ratings, None)
    for out in (ratings, link, tmp_path / "x" / ".." / "ratings.csv"):
        with pytest.raises(InvalidValue, match=r"ratings\.csv|link\.csv: is read by the command"):
            require_unread(out, None, ratings)
