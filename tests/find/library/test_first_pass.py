"""Films are found by their key frames first, and are in the end as if they had not been."""

from __future__ import annotations

import math
import os
import pickle
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any, Self

import numpy as np
import pytest
from numpy.typing import NDArray

from command_line import Outcome
from moviola.features import Extent
from moviola.library import VideoRow, compact, verify
from moviola.library.ingest import film_parts, first_pass, frame_features, indexer
from moviola.library.ingest.plan import FoundFile, IngestProgress, Paused
from moviola.library.ingest.workers import Lost
from moviola.media import write_video
from moviola.search import Library

RATE = 4
COLOURS = {"older": (200, 40, 40), "newer": (40, 40, 200)}


def scenes(colour: tuple[int, int, int], seconds: int) -> Iterator[NDArray[np.uint8]]:
    """A wall of a colour, with another pattern every three seconds, so that there are key frames."""
    generator = np.random.default_rng(sum(colour))
    for number in range(seconds * RATE):
        if number % (3 * RATE) == 0:
            noise = generator.integers(0, 120, (6, 8, 3))
            wall = np.clip(np.array(colour) + noise - 60, 0, 255).astype(np.uint8)
        yield np.kron(wall, np.ones((8, 8, 1), np.uint8))


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two films, and one that is too short for a first pass, with their times."""
    folder = tmp_path_factory.mktemp("films")
    for time, (name, colour) in enumerate(COLOURS.items(), 1):
        write_video(folder / f"{name}.mp4", scenes(colour, 20 + 5 * time), rate=RATE)
        os.utime(folder / f"{name}.mp4", (time * 1e6, time * 1e6))
    write_video(folder / "short.mp4", scenes((40, 200, 40), 5), rate=RATE)
    os.utime(folder / "short.mp4", (5e6, 5e6))
    return folder


@pytest.fixture(autouse=True)
def _short_is_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_pass, "SHORTEST", 20.0)
    monkeypatch.setattr(first_pass, "APART", 4.0)


class StopAt:
    """Ends a run at the first step of a kind for which something holds."""

    def __init__(self, step: str, holds: Callable[[], bool] = lambda: True) -> None:
        self.step, self.holds = step, holds

    def __call__(self, progress: IngestProgress) -> None:
        if progress.step == self.step and self.holds():
            raise Paused


def opened(folder: Path) -> Library:
    return Library(folder, encoder="demo", sentence_encoder="none")


def content(library: Library) -> dict[str, Any]:
    """All that a library has, by video, and its files of features."""
    catalogue, store = library.catalogue, library.store
    made: dict[str, Any] = {
        video.video_id: (
            video.state, video.error, video.duration, video.frames, catalogue.shots(video.row),
            catalogue.repeats(video.row), catalogue.checksums().get(video.row),
            store.stills.nearest(video.hash, 3.0),
        )
        for video in catalogue.videos()
    }  # fmt: skip
    files = sorted((store.folder / "features").glob("*.f16"))
    return made | {path.name: path.read_bytes() for path in files}


@pytest.fixture(scope="module")
def whole(films: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one pass makes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(first_pass, "SHORTEST", math.inf)
        with opened(tmp_path_factory.mktemp("whole") / "library") as library:
            report = library.index(films)
            assert report.added == ["short", "newer", "older"], "not the newest first"
            return content(library)


def test_found_by_key_frames_and_in_the_end_the_same(
    films: Path, tmp_path: Path, whole: dict[str, Any]
) -> None:
    """Catches a film that is not found before the second pass, an answer that does not say by what it found
    it, a first pass that begins again after an interruption, and features of key frames that stay.
    """
    said = "by key frames alone so far"
    with opened(tmp_path / "library") as library:
        report = library.index(films, progress=StopAt("pictures"))
        assert report.partial == {"newer": said, "older": said} and report.added == []
        videos = {video.video_id: video for video in library.catalogue.videos()}
        assert {name: (one.state, one.error, one.duration) for name, one in videos.items()} == {
            "older": ("partial", said, 25.0), "newer": ("partial", said, 30.0),
        }  # fmt: skip
        moments = library.search("a blue wall")
        assert {moment.video_id for moment in moments} == {*COLOURS}
        assert all(moment.by_key_frames for moment in moments)
        assert [str(note) for note in moments.notes if note.kind == "by key frames"] == [
            "2 of 2 videos: known by key frames alone so far; their moments begin and end only as exactly as "
            "these lie, and words in them are not searched yet"
        ]
        steps: list[IngestProgress] = []
        report = library.index(films, progress=steps.append)
        again = {one.video_id for one in steps if one.step == "key frames"}
        assert not again, "what is known by key frames was looked at again"
        assert {*report.updated, *report.added} == {"older", "newer", "short"} and not report.partial
        moments = library.search("a blue wall")
        assert not any(moment.by_key_frames for moment in moments)
        assert all(note.kind != "by key frames" for note in moments.notes)
        assert content(library) == whole
        files = [*films.iterdir()]
        assert library.index(films).unchanged and [*films.iterdir()] == files


def test_upkeep_of_what_is_known_by_key_frames(films: Path, tmp_path: Path, whole: dict[str, Any]) -> None:
    """A compaction, a removal and a damaged byte are those of any video, and lose nothing."""
    with opened(tmp_path / "library") as library:
        features = library.store.frame_features
        library.index(films, progress=StopAt("pictures"))
        before = library.search("a blue wall")
        assert verify(library.store) == []
        compact(library.store)
        assert verify(library.store) == [] and library.search("a blue wall") == before
        library.indexer.remove(["older"])
        library.indexer.publish()
        assert {moment.video_id for moment in library.search("a blue wall")} == {"newer"}
        library.indexer.index(films / "newer.mp4")
        library.indexer.restore(["older"])
        assert library.search("a red wall", videos=["older"])[0].by_key_frames
        assert len(features.shards()) == 2
        library.index(films)
        assert len(features.shards()) == 1 and verify(library.store) == []
        (end,) = [library.catalogue.key_frames_end()]
        assert end is not None and end[0] not in features.shards() and end[1] == 0
        compact(library.store)
        assert {name: one[:3] for name, one in whole.items() if isinstance(one, tuple)} == {
            video.video_id: (video.state, video.error, video.duration) for video in library.catalogue.videos()
        }


def test_parts_come_before_what_key_frames_show(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While parts of a film come in, its end is found by key frames, and an answer says which is which."""
    monkeypatch.setattr(frame_features, "compute_threads", lambda: 1)
    monkeypatch.setattr(film_parts, "PART_SECONDS", 8)
    monkeypatch.setattr(film_parts, "BATCH", 8)
    with opened(tmp_path / "library") as library:

        def until(moments: int) -> VideoRow:
            stop = StopAt("pictures", lambda: moments_in(library) >= moments)
            library.index(films / "newer.mp4", progress=stop)
            (video,) = library.catalogue.videos()
            assert (video.state, video.duration) == ("partial", 30.0) and verify(library.store) == []
            return video

        stored = library.store.frame_features.checked
        by_key_frames = stored(until(0).frames or Extent(0, 0, 0))
        for end, moments in ((8, 8), (16, 16), (16, 24)):
            video = until(moments)
            assert video.error == "0 of 0 min in, the rest by key frames alone so far"
            assert library.catalogue.by_key_frames() == {video.row: end}
            found = library.search("a blue wall", min_score=0.0, weak=True)
            assert found and all(one.by_key_frames == (one.end > end) for one in found)
            (in_,) = library.catalogue.unfinished_extents().values()
            assert video.frames and in_.count == moments
            parts = np.concatenate([stored(in_)[:end], by_key_frames[end:]])
            assert stored(video.frames).tobytes() == parts.tobytes()
        compact(library.store)
        library.index(films)
        assert library.catalogue.by_key_frames() == {} == library.catalogue.unfinished()


def moments_in(library: Library) -> int:
    """How many moments of an unfinished film are in."""
    return sum(extent.count for extent in library.catalogue.unfinished_extents().values())


def test_refused_after_the_first_pass(films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A film that proves unreadable in the second pass is no longer shown as its key frames show it."""
    monkeypatch.setattr(film_parts, "PART_SECONDS", 8)
    monkeypatch.setattr(film_parts, "BATCH", 8)
    states = count()
    monkeypatch.setattr(frame_features, "_identity", lambda _: next(states))  # always written to
    with opened(tmp_path / "library") as library:
        report = library.index(films / "newer.mp4")
        assert [*report.refused] == ["newer"] and not report.partial
        (video,) = library.catalogue.videos()
        assert video.state == "refused" and library.catalogue.by_key_frames() == {}
        assert library.search("a blue wall") == [] and {*library.store.frame_features.shards()} <= {0}


def test_another_encoder_for_what_is_known_by_key_frames(films: Path, tmp_path: Path) -> None:
    """A change of encoder encodes all pictures of such a film, which is no longer said to lack them."""
    with opened(tmp_path / "library") as library:
        library.index(films, progress=StopAt("pictures"))
        library.indexer.use_encoder(frame_rate=2.0)
        said = {video.video_id: (video.error, video.frames) for video in library.catalogue.videos()}
        assert {name: frames and frames.count for name, (_, frames) in said.items()} == {
            "older": 50, "newer": 60,
        }  # fmt: skip
        assert all(error == "waits to be encoded again" for error, _ in said.values())
        assert not any(moment.by_key_frames for moment in library.search("a blue wall"))
        library.index(films)
        assert {video.state for video in library.catalogue.videos()} == {"ready"}
        assert verify(library.store) == []


class Elsewhere:
    """Workers that get what other processes would, and lose one file in the first pass."""

    def __init__(self) -> None:
        self.pickled: list[bytes] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def require(self, check: Callable[[Any], object], item: Any) -> None:
        pickle.loads(pickle.dumps(check))(item)

    def map(self, function: Callable[[Any], Any], items: Iterable[Any], *, gpu: bool) -> Iterator[Any]:
        self.pickled.append(pickle.dumps(function))
        there = pickle.loads(self.pickled[-1])
        for item in items:
            lost = item[0] == "glimpse" and item[1].video_id == "older"
            yield Lost("its worker died") if lost else pickle.loads(pickle.dumps(there(item)))


def test_workers_look_first_too(
    films: Path, tmp_path: Path, whole: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What workers make of key frames is what this process does; one that dies leaves a file to the rest.
    What they unpickle, and so load, is the same in both passes.
    """
    monkeypatch.setattr(indexer, "open_workers", lambda _: workers[-1])
    workers = [Elsewhere()]
    with opened(tmp_path / "library") as library:
        report = library.index(films, workers=2, progress=StopAt("pictures"))
        assert [*report.partial] == ["newer"] and not report.refused
        (video,) = library.catalogue.videos()
        with opened(tmp_path / "own") as own:
            own.index(films, progress=StopAt("pictures"))
            alone = own.catalogue.video("newer")
            assert video.frames and alone.frames and video.frames.crc == alone.frames.crc
        workers.append(Elsewhere())
        library.index(films, workers=2)
        assert content(library) == whole
    workers.append(Elsewhere())
    with opened(tmp_path / "both") as library:
        library.index(films, workers=2)
    first, second, *_ = workers[-1].pickled
    assert first == second


def test_the_newest_comes_first() -> None:
    """Catches an order by the last change where a name says when a film was taken, one by the day where it
    says the second, and one of equals that depends on how they are listed, or on when they were copied.
    """
    day = 86_400
    times = {
        "b.mp4": 2 * day, "a.mp4": 2 * day, "d.mp4": 2 * day + 1, "VID_20240501_101500.mp4": 9,
        "c.mp4": 30_000 * day, "2024-06-01.mov": 1, "VID_20240501_101501.mp4": 8, "2024-05-01.mov": 7,
    }  # fmt: skip
    files = [
        FoundFile(Path(f"/films/{name}"), name, 1, second * 10**9 + place, name, "")
        for place, (name, second) in enumerate(times.items())
    ]
    assert [file.video_id for file in first_pass.newest_first(files)] == [
        "c.mp4", "2024-06-01.mov", "VID_20240501_101501.mp4", "VID_20240501_101500.mp4", "2024-05-01.mov",
        "a.mp4", "b.mp4", "d.mp4",
    ]  # fmt: skip


def test_an_interrupted_first_pass_is_no_damage(
    films: Path, tmp_path: Path, moviola: Callable[..., Outcome]
) -> None:
    """`verify` and `doctor` called the index that such an end leaves out a fault, with exit code 3, though
    every answer is whole; a byte that is damaged beside it still is one.
    """
    folder = tmp_path / "library"

    def interrupted(progress: IngestProgress) -> None:
        if progress.step == "pictures":
            raise KeyboardInterrupt

    with opened(folder) as library:
        with pytest.raises(KeyboardInterrupt):
            library.index(films, progress=interrupted)
        found = library.search("a blue wall")
        problems = verify(library.store)
        assert problems and not any(problem.is_damage for problem in problems)
    said = moviola("verify", "--library", folder)
    assert said.code == 0 and "no damage: searches complete it in memory" in said.out
    assert f"{folder}: sound" in said.err.replace("\n", "")
    rows = moviola("doctor", "--library", folder, "--json").rows
    assert all(row["ok"] for row in rows if "index segments" in row["detail"])
    assert [row["what"] for row in rows if not row["ok"]] == ["last indexing"]
    moviola("repair", "--library", folder)
    with opened(folder) as library:
        assert library.search("a blue wall") == found and verify(library.store) == []
    (shard, *_) = (folder / "features").glob("frames*.f16")
    content = bytearray(shard.read_bytes())
    content[0] ^= 1
    shard.write_bytes(content)
    assert moviola("verify", "--library", folder).code == 3


def test_a_first_pass_reads_no_file_to_its_end(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a first pass that reads all packets of a film for its length, which its header says, and one
    that believes a header that says far more than there is.
    """
    from moviola.media import length, probe

    def reads(*_: object) -> None:
        raise AssertionError("the file was read to its end")

    info = probe(films / "older.mp4")
    batch = first_pass._Batch(replace(info, promised=1e9), [0.0, 9.0], np.zeros((2, 8, 8, 3), np.uint8))
    file = FoundFile(films / "older.mp4", "older", 1, 1, "older", "")
    assert first_pass._glimpse(file, [batch], [np.zeros((2, 4), np.float32)]).seconds == 69.0  # type: ignore[union-attr]
    monkeypatch.setattr(length, "_read", reads)
    with opened(tmp_path / "library") as library:
        library.index(films, progress=StopAt("pictures"))
        assert {video.video_id for video in library.catalogue.videos()} == {*COLOURS}
