"""Watching folders: what the watcher does about what happens, and that it is as cheap as it should be."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import time as clock_time
from pathlib import Path
from typing import Any

import pytest

from moviola.errors import InvalidValue, LibraryLocked, NotFound
from moviola.library import IngestReport, verify
from moviola.library.ingest.watching import Hours, Watcher, WatchOptions, is_remote, require_watchable
from moviola.search import Library

pytest.importorskip("watchfiles")

QUICK = WatchOptions(settle=0.2, poll=0.3)
# Longer than anything here should ever take.
_FOR_EVER = 120


@pytest.fixture
def watching(library: Library) -> Iterator[Callable[..., list[IngestReport]]]:
    """Start watchers in threads of their own: ``watching(folder)`` gives the list that reports go to."""
    started: list[tuple[Watcher, threading.Thread]] = []

    def start(*folders: Path, options: WatchOptions = QUICK) -> list[IngestReport]:
        reports: list[IngestReport] = []
        watcher = Watcher(library.index, library.folder, folders, options, reports.append)
        thread = threading.Thread(target=watcher.run)
        thread.start()
        started.append((watcher, thread))
        return reports

    yield start
    for watcher, _ in started:
        watcher.stop.set()
    for _, thread in started:
        thread.join(_FOR_EVER)
        assert not thread.is_alive()


def wait_until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + _FOR_EVER
    while not true():
        assert time.monotonic() < deadline, "nothing came"
        time.sleep(0.05)


def ids(library: Library) -> list[str]:
    return [video.video_id for video in library.videos()]


@pytest.mark.slow
@pytest.mark.parametrize("polling", [False, True])
def test_files_come_and_go_by_themselves(
    library: Library, films: Path, film: Callable[..., Path], watching: Callable[..., list[IngestReport]],
    polling: bool,
) -> None:  # fmt: skip
    options = WatchOptions(settle=0.2, poll=0.3, force_polling=polling)
    film(films / "before.mp4", 3, seed=11)
    watching(films, options=options)
    wait_until(lambda: "before" in ids(library))
    film(films / "new.mp4", 3, seed=12)
    wait_until(lambda: "new" in ids(library))
    (films / "new.mp4").rename(films / "deep" / "moved.mp4")
    wait_until(lambda: library.catalogue.video("new").path == str(films / "deep" / "moved.mp4"))
    (films / "before.mp4").unlink()
    wait_until(lambda: "before" not in ids(library))
    assert [video.video_id for video in library.catalogue.removed()] == ["before"]


@pytest.mark.slow
def test_a_folder_that_is_unplugged_keeps_its_videos(
    library: Library, films: Path, film: Callable[..., Path], watching: Callable[..., list[IngestReport]]
) -> None:
    reports = watching(films)
    film(films / "first.mp4", 3, seed=13)
    wait_until(lambda: "first" in ids(library))
    known = ids(library)
    films.rename(away := films.with_name("unplugged"))
    film(away / "later.mp4", 3, seed=14)
    away.rename(films)
    wait_until(lambda: "later" in ids(library))
    assert set(known) < set(ids(library)) and not any(report.removed for report in reports)


def look(library: Library, *folders: Path, options: WatchOptions = QUICK) -> tuple[Watcher, list[str]]:
    """A watcher that looks when a test calls it, and its warnings."""
    warnings: list[str] = []
    return Watcher(library.index, library.folder, folders, options, warned=warnings.append), warnings


def test_a_growing_file_waits_until_it_is_whole(
    library: Library, films: Path, film: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("moviola.library.ingest.watching.clock.monotonic", lambda: now[0])
    whole = film(tmp_path / "whole.mp4", 3, seed=15).read_bytes()
    watcher, _ = look(library, films, options=WatchOptions(settle=5))
    growing = films / "growing.mp4"
    for length in (100, 1000, len(whole)):
        growing.write_bytes(whole[:length])
        assert watcher._look() == now[0] + 5  # looks again soon
        now[0] += 4
        watcher._look()
        assert "growing" not in ids(library)
    now[0] += 5
    assert watcher._look() == now[0] + watcher.options.rescan
    assert "growing" in ids(library)


def test_a_flood_of_events_is_one_pass_a_batch(
    library: Library, films: Path, film: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """10,000 events, half of them of the library, and 200 films that are there for one batch: what
    was known of these stayed in memory for ever.
    """
    now, passes, known, most = [0.0], [], [], 20
    monkeypatch.setattr("moviola.library.ingest.watching.clock.monotonic", lambda: now[0])

    def index(*folders: Path, **options: Any) -> IngestReport:
        passes.append(now[0])
        return library.index(*folders, **options)

    def watch(
        *_: Path, watch_filter: Callable[[int, str], bool], stop_event: threading.Event, **__: Any
    ) -> Iterator[set[tuple[int, str]]]:
        for batch in range(10):
            now[0] += 1.6
            short = [films / f"{batch}-{number}.mp4" for number in range(most)]
            for path in short:
                path.write_bytes(b"of a film")
            if batch == 9:
                film(films / "new.mp4", 3, seed=21)
            paths = [str(folder / f"{number}") for folder in (films, library.folder) for number in range(500)]
            yield {(1, path) for path in paths if watch_filter(1, path)}
            known.append(len(watcher._sizes))
            for path in short:
                path.unlink()
        for _ in range(10):
            now[0] += 0.5
            yield set()
        yield {(1, path) for path in paths[500:] if watch_filter(1, path)}
        stop_event.set()
        yield set()

    monkeypatch.setattr("watchfiles.watch", watch)
    reports: list[IngestReport] = []
    watcher = Watcher(index, library.folder, [films], WatchOptions(settle=2), reports.append)
    watcher.run()
    # Each batch once, and once more when what waited had settled; not for what the library writes.
    assert passes == pytest.approx([*(1.6 * number for number in range(1, 11)), 18.0])
    assert [report.added for report in reports] == [["new"]]
    assert max(known) <= most + 1 and not watcher._sizes


def test_little_is_taken_out_without_a_question(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviola.library.ingest.watching._FEW", 2)
    watcher, warnings = look(library, films)
    for name in ("a", "b", "deep/c"):
        (films / f"{name}.mp4").unlink()
    watcher._look()
    assert len(ids(library)) == 4
    assert warnings == ["3 of 4 videos would be taken out, more than a tenth"]


def test_a_file_that_moves_is_not_taken_out_while_it_settles(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moviola.library.ingest.video_encoder.VideoEncoder.many", None)
    watcher, _ = look(library, films, options=WatchOptions(settle=1e-9))
    (films / "a.mp4").rename(films / "z.mp4")
    watcher._look()
    assert "a" in ids(library) and library.catalogue.removed() == []
    watcher._look()
    assert library.catalogue.video("a").path == str(films / "z.mp4")


def test_an_obstacle_is_reported_once_and_waited_for(library: Library, films: Path) -> None:
    calls = []

    def locked(*_: object, **__: object) -> IngestReport:
        calls.append(1)
        raise LibraryLocked("process 7 is writing")

    warnings: list[str] = []
    watcher = Watcher(locked, library.folder, [films], QUICK, warned=warnings.append)
    watcher._look()
    watcher._look()
    assert (warnings, len(calls)) == (["process 7 is writing"], 2)
    films.rename(films.with_name("unplugged"))
    watcher, warnings = look(library, films)
    watcher._look()
    assert warnings == [f"{films} is away: it is not there"] and len(ids(library)) == 4


def test_work_is_done_at_its_hours(library: Library, films: Path, film: Callable[..., Path]) -> None:
    nights, days = Hours.parse("22:00-06:00"), Hours.parse("9:00-17:30".replace("9", "09"))
    assert nights.hold(clock_time(23)) and nights.hold(clock_time(5, 59)) and not nights.hold(clock_time(6))
    assert days.hold(clock_time(9)) and not days.hold(clock_time(17, 30))
    for wrong in ("always", "22-", "08:00-08:00", "25:00-26:00"):
        with pytest.raises(InvalidValue, match="hours"):
            Hours.parse(wrong)
    film(films / "one.mp4", 3, seed=16)
    film(films / "two.mp4", 3, seed=17)
    watcher, _ = look(library, films, options=WatchOptions(settle=1e-9, hours=nights))
    allowed = iter([True, True, False, False, True])  # before each look, and after each video
    watcher._may_work = lambda: next(allowed)  # type: ignore[method-assign]
    watcher._look()
    watcher._look()
    assert len(ids(library)) == 5  # the video that was begun is finished
    watcher._look()
    assert len(ids(library)) == 5


def test_a_run_that_is_paused_is_reported_and_goes_on_soon(
    library: Library, films: Path, film: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr("moviola.library.ingest.watching.clock.monotonic", lambda: now[0])
    film(films / "one.mp4", 3, seed=18)
    film(films / "two.mp4", 3, seed=19)
    reports: list[IngestReport] = []
    watcher = Watcher(library.index, library.folder, [films], WatchOptions(settle=1, poll=3), reports.append)
    watcher._look()
    now[0] = 10.0
    allowed = iter([True, False])  # before the look, and after a video
    watcher._may_work = lambda: next(allowed, True)  # type: ignore[method-assign]
    assert watcher._look() == now[0] + watcher.options.poll
    assert [len(report.added) for report in reports] == [1]
    assert verify(library.store) == []  # its indexes are up to date
    for seconds in (20.0, 30.0):  # the file that waits has to settle again
        now[0] = seconds
        watcher._look()
    assert sorted(video for report in reports for video in report.added) == ["one", "two"]


def test_a_folder_that_never_was_is_not_waited_for(library: Library, films: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="flims: no such folder"):
        require_watchable(library.catalogue, [films, tmp_path / "flims"])
    with pytest.raises(InvalidValue, match=r"a\.mp4: a file; name the folder"):
        require_watchable(library.catalogue, [films / "a.mp4"])
    films.rename(films.with_name("unplugged"))
    require_watchable(library.catalogue, [films, films / "deep"])  # away


def test_what_the_library_itself_writes_is_not_heard(library: Library, films: Path) -> None:
    watcher, _ = look(library, films, library.folder.parent)
    assert not watcher._concerns(None, str(library.folder / "catalogue.sqlite-wal"))
    assert watcher._concerns(None, str(films / "a.mp4"))
    with pytest.raises(InvalidValue, match="settle 0"):
        WatchOptions(settle=0)


def test_what_the_library_writes_is_not_heard_through_a_link_either(library: Library, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(library.folder.parent)
    watcher, _ = look(library, link)
    assert not watcher._concerns(None, str(link / library.folder.name / ".lock"))
    watcher = Watcher(library.index, link / library.folder.name, [tmp_path])
    assert not watcher._concerns(None, str(library.folder / ".lock"))


def test_hours_are_those_of_this_machine() -> None:
    with pytest.raises(InvalidValue, match="zones"):
        Hours.parse("22:00Z-06:00")


def test_a_folder_that_cannot_be_examined_is_away(library: Library, films: Path) -> None:
    lost = films / ("x" * 300)  # the system refuses such a name, as it does a path on a drive that fails
    watcher, warnings = look(library, films, lost)
    watcher._look()
    assert warnings == [f"{lost} is away: it is not there"]


@pytest.mark.parametrize("polling", [False, True])
def test_a_folder_that_goes_away_while_watching_begins(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch, polling: bool
) -> None:
    def watch(*_: Path, **__: object) -> Iterator[None]:
        films.rename(films.with_name("unplugged"))
        raise FileNotFoundError(films)

    monkeypatch.setattr("watchfiles.watch", watch)
    watcher, warnings = look(library, films, options=WatchOptions(force_polling=polling))
    assert list(watcher._happenings()) == [] and warnings == []


def test_mounts_of_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "Müller \\ Söhne"
    place.mkdir()
    mounts = tmp_path / "mountinfo"
    name = str(place).replace("\\", r"\134").replace(" ", r"\040")
    mounts.write_text(
        f"22 1 0:20 / / rw - ext4 /dev/sda rw\n36 22 0:31 / {name} rw - cifs //nas/x rw\n", "utf-8"
    )
    monkeypatch.setattr("moviola.library.ingest.watching._MOUNTS", mounts)
    assert is_remote(place / "films") and not is_remote(tmp_path)


def test_file_systems_of_this_machine_need_no_polling(tmp_path: Path) -> None:
    assert not is_remote(tmp_path)
