"""A long film comes in parts: each can be searched at once, and together they are what one pass makes."""

from __future__ import annotations

import math
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.video.frame import VideoFrame
from numpy.typing import NDArray

from moviola.library import compact, repair, verify
from moviola.library.ingest import film_parts, first_pass, frame_features
from moviola.library.ingest.decode_ahead import Branch
from moviola.library.ingest.film_parts import ReadPart
from moviola.library.ingest.plan import IngestProgress
from moviola.media import write_video
from moviola.media.source import Source
from moviola.search import Library
from stopped import stop_after

SECONDS, RATE = 147, 6
LINES = "1\n00:00:20,000 --> 00:00:24,000\nA lighthouse in the fog.\n\n" + "".join(
    f"{number + 2}\n00:0{at // 60}:{at % 60:02d},000 --> 00:0{at // 60}:{at % 60:02d},900\n{text}.\n\n"
    for number, (at, text) in enumerate([(31, "Over the edge"), (70, "Umbrellas"), (140, "The harbour")])
)


def scenes() -> Iterator[NDArray[np.uint8]]:
    """Shots of one to twelve seconds, some of which move without end, so that stretches cross parts."""
    generator = np.random.default_rng(3)
    made = 0
    while made < SECONDS * RATE:
        blocks = generator.integers(0, 255, (6, 8, 3), np.uint8)
        wall = np.kron(blocks, np.ones((8, 8, 1), np.uint8))
        moves = int(generator.integers(0, 4))
        for number in range(min(int(generator.integers(6, 72)), SECONDS * RATE - made)):
            yield np.roll(wall, moves * number, axis=1)
            made += 1


@pytest.fixture(scope="module")
def long_film(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("long")
    write_video(folder / "long.mp4", scenes(), rate=RATE)
    (folder / "long.srt").write_text(LINES)
    return folder


def indexed(folder: Path, films: Path, part: float, threads: int, **options: Any) -> dict[str, Any]:
    """All that indexing makes of the film, in parts of some seconds."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(film_parts, "PART_SECONDS", part)
        patch.setattr(first_pass, "SHORTEST", math.inf)
        patch.setattr(frame_features, "compute_threads", lambda: threads)
        with Library(folder, encoder="demo", sentence_encoder="none") as library:
            library.index(films, **options)
            return made(library)


def made(library: Library) -> dict[str, Any]:
    (video,) = library.catalogue.videos()
    print_ = library.store.stills.fingerprint(video.hash)
    assert video.frames and print_
    stills = sqlite3.connect(library.store.folder / "stills.sqlite")
    return {
        "state": (video.state, video.error, video.duration, video.frames.count),
        "frames": library.store.frame_features.checked(video.frames).tobytes(),
        "cues": library.catalogue.cues(video.row),
        "shots": library.catalogue.shots(video.row),
        "prints": (print_.times.tolist(), print_.frames.tobytes()),
        "stills": stills.execute("SELECT time, picture FROM stills ORDER BY time").fetchall(),
        "repeats": library.catalogue.repeats(video.row),
        "checksum": library.catalogue.checksums()[video.row],
        "left": library.catalogue.unfinished(),
    }


@pytest.fixture(scope="module")
def whole(long_film: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one pass makes."""
    return indexed(tmp_path_factory.mktemp("whole") / "library", long_film, 1e6, 1)


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_parts_make_the_same(long_film: Path, tmp_path: Path, whole: dict[str, Any], threads: int) -> None:
    """Catches a picture, a shot, a still or a repeat that is lost, doubled or moved between two parts."""
    assert len(whole["shots"]) > 15 and whole["left"] == {}
    assert indexed(tmp_path / "library", long_film, 32, threads) == whole


def test_a_part_that_is_handed_on_too_early_waits(
    long_film: Path, tmp_path: Path, whole: dict[str, Any]
) -> None:
    """Catches a film of which parts are lost, when a thread is halted with a part in its hand until another
    thread has handed on the next one, and then indexing stops.
    """

    def side_by_side(lanes: Iterable[Iterator[Any]], threads: int) -> Iterator[tuple[int, Any]]:
        held: list[tuple[int, ReadPart]] = []
        for number, lane in enumerate(lanes):
            for step in lane:
                if isinstance(step, ReadPart):
                    held.insert(0, (number, step))
                    break
                if not isinstance(step, Branch):
                    yield number, step
        assert [step.seconds for _, step in held] == [64, 32]
        yield from held

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(film_parts, "PART_SECONDS", 32)
        patch.setattr(first_pass, "SHORTEST", math.inf)
        patch.setattr(frame_features, "compute_threads", lambda: 2)
        patch.setattr(frame_features, "side_by_side", side_by_side)
        stop_after(patch, 1)
        with Library(tmp_path / "library", encoder="demo", sentence_encoder="none") as library:
            library.index(long_film)
            assert [*library.catalogue.unfinished().values()] == [(32.0, 147.0)]
    assert indexed(tmp_path / "library", long_film, 32, 2) == whole


@pytest.mark.parametrize(("before", "after"), [(1, 2), (2, 1)])
def test_parts_are_searchable_and_go_on(
    long_film: Path, tmp_path: Path, whole: dict[str, Any], before: int, after: int
) -> None:
    """The parts that are in are found, and the video says how far it is, whatever happens meanwhile."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(film_parts, "PART_SECONDS", 32)
        patch.setattr(first_pass, "SHORTEST", math.inf)
        patch.setattr(frame_features, "compute_threads", lambda: before)
        stop_after(patch, 2)
        with Library(tmp_path / "library", encoder="demo", sentence_encoder="none") as library:
            report = library.index(long_film)
            (video,) = library.catalogue.videos()
            assert (video.state, video.duration) == ("partial", 64.0)
            assert video.error == "1 of 2 min in" and report.partial == {"long": "1 of 2 min in"}
            assert [cue.start for cue in library.catalogue.cues(video.row)] == [20.0, 31.0]
            assert library.search("lighthouse", by="subtitles")
            moments = library.search("red wall")
            assert [str(note) for note in moments.notes if note.kind == "in part"] == [
                "long: 1 of 2 min in; the rest is not searched yet"
            ]
            assert moments and all(moment.end <= 64 for moment in moments)
            assert {*library.catalogue.shots(video.row)} <= {*whole["shots"]}
            assert verify(library.store) == []
            compact(library.store)
            assert library.search("red wall") == moments
    encoded: list[float] = []
    again = indexed(
        tmp_path / "library", long_film, 32, after, progress=lambda step: encoded.append(step.seconds)
    )
    assert again == whole
    assert min(filter(None, encoded)) > 64, "a part that was in was encoded again"


def test_another_file_begins_at_the_first_part(
    long_film: Path, tmp_path: Path, whole: dict[str, Any], film: Callable[..., Path]
) -> None:
    """Catches parts of two files, or of two ways to encode, that are put together."""
    films = tmp_path / "films"
    films.mkdir()
    (films / "long.mp4").write_bytes((long_film / "long.mp4").read_bytes())
    (films / "long.srt").write_text(LINES)
    library = tmp_path / "library"

    def replaced(opened: Library) -> Callable[[IngestProgress], None]:
        def on_progress(_: IngestProgress) -> None:
            if opened.catalogue.unfinished():
                os.utime(films / "long.mp4", ns=(1, 1))

        return on_progress

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(film_parts, "PART_SECONDS", 32)
        patch.setattr(first_pass, "SHORTEST", math.inf)
        patch.setattr(frame_features, "compute_threads", lambda: 1)
        with Library(library, encoder="demo", sentence_encoder="none") as opened:
            report = opened.index(films, progress=replaced(opened))
            assert "has changed while it was read" in report.refused["long"]
            assert opened.catalogue.unfinished() == {} and opened.store.videos() == []
            stop_after(patch, 1)
            opened.index(films, every_frame=True)
            assert [*opened.catalogue.unfinished().values()] == [(32.0, 147.0)]
    again = indexed(library, films, 32, 2)
    assert again == whole


def test_a_film_that_lacks_a_part_is_not_called_sound(
    long_film: Path, tmp_path: Path, whole: dict[str, Any]
) -> None:
    """Catches a film that is called whole and of which a part cannot be found."""
    indexed(tmp_path / "library", long_film, 32, 1)
    with Library(tmp_path / "library", encoder="demo", sentence_encoder="none") as library:
        assert verify(library.store) == []
        (video,) = library.catalogue.videos()
        assert video.frames
        rows = library.store.frame_features.checked(video.frames)
        with library.store.writing(), library.catalogue.transaction():
            lacking = library.store.frame_features.extend(
                None, rows[32:], library.catalogue.feature_end("frames"), library.catalogue.last_shard()
            )
            library.catalogue.raise_feature_end("frames", lacking)
            library.catalogue.relocate(video.row, lacking, video.cues)
        (missing,) = [one for one in verify(library.store) if one.video_id]
        assert missing.message == "pictures of 32 of its 147 seconds are missing" and missing.is_damage
        assert missing in repair(library.store)
        assert verify(library.store) == [] and library.search("red wall")
    assert indexed(tmp_path / "library", long_film, 32, 1) == whole


CHILD = """
import os, signal, sys
from moviola.features import FeatureShards
from moviola.library.disk.catalogue import Catalogue
from moviola.library.disk.still_store import StillStore
from moviola.library.disk.store import LibraryStore
from moviola.library.ingest import film_parts, first_pass, frame_features
from moviola.library.ingest.decode_ahead import Branch
from moviola.library.ingest.film_parts import ReadPart
from moviola.search import Library

folder, films, kill_at, after, threads = sys.argv[1:]
film_parts.PART_SECONDS = 32
first_pass.SHORTEST = 20 if "key_frames" in kill_at else float("inf")
frame_features.compute_threads = lambda: int(threads)
steps = 0

def killed_after(owner, name):
    real = getattr(owner, name)
    def does(*arguments, **options):
        global steps
        result = real(*arguments, **options)
        if name == kill_at:
            steps += 1
            if steps == int(after):
                os.kill(os.getpid(), signal.SIGKILL)
        return result
    setattr(owner, name, does)

killed_after(FeatureShards, "extend")
killed_after(StillStore, "put")
killed_after(Catalogue, "put_unfinished")
killed_after(Catalogue, "put")
killed_after(film_parts, "shrunk")
killed_after(LibraryStore, "append_key_frames")
killed_after(Catalogue, "put_by_key_frames")
with Library(folder, encoder="demo", sentence_encoder="none") as library:
    library.index(films)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kill_at", "threads"),
    [
        ("extend", 2),
        ("put", 1),
        pytest.param("put_unfinished", 2, marks=pytest.mark.long(1)),
        pytest.param("shrunk", 2, marks=pytest.mark.long(3)),
        ("append_key_frames", 2),
        ("put_by_key_frames", 1),
    ],
)
def test_killed_in_the_middle_of_a_film(
    long_film: Path, tmp_path: Path, whole: dict[str, Any], kill_at: str, threads: int
) -> None:
    """Killed again and again, what was in stays in, and in the end all is as if nothing had happened."""
    library = tmp_path / "library"
    seconds = 0.0
    for after in (1, 3, 2):
        where = [str(library), str(long_film), kill_at, str(after), str(threads)]
        ended = subprocess.run([sys.executable, "-c", CHILD, *where], capture_output=True, check=False)
        assert ended.returncode in (0, -signal.SIGKILL), ended.stderr.decode()
        with Library(library, read_only=True) as opened:
            damaged = [one for one in verify(opened.store) if not one.message.startswith("index ")]
            assert damaged == []
            now = sum(video.duration for video in opened.store.videos())
        assert now >= seconds, "a part that was in was lost"
        seconds = now
    assert seconds > 0 or kill_at == "shrunk"
    assert indexed(library, long_film, 32, threads) == whole


def irregular(long_film: Path, folder: Path, kind: str) -> Path:
    """The film in a file that must be decoded whole, from its beginning or from some damage on."""
    folder.mkdir()
    source = long_film / "long.mp4"
    if kind == "avi":
        with av.open(str(source)) as film, av.open(str(folder / "long.avi"), "w") as target:
            stream = target.add_stream("mpeg4", rate=RATE, options={"bf": "2", "g": "60"})
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            stream.bit_rate = 2_000_000
            for number, frame in enumerate(film.decode(video=0)):
                picture = VideoFrame.from_ndarray(frame.to_ndarray(format="rgb24")).reformat(format="yuv420p")
                picture.pts = number
                target.mux(stream.encode(picture))
            target.mux(stream.encode(None))
    else:
        damaged = bytearray(source.read_bytes())
        middle = int(len(damaged) * 0.6)
        damaged[middle : middle + 300] = bytes(300)
        (folder / "long.mp4").write_bytes(damaged)
    return folder


@pytest.mark.parametrize("kind", ["avi", "damaged"])
def test_what_must_be_decoded_whole_is_decoded_once(
    long_film: Path, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches threads that each decode a whole film which none can decode in parts, another answer by several
    threads than by one or after an interruption, and looking for its shots in a further pass.
    """
    films = irregular(long_film, tmp_path / "films", kind)
    decoded = count(0)
    counting = Source.decode

    def decode(source: Source, *arguments: Any, **options: Any) -> list[VideoFrame]:
        frames = counting(source, *arguments, **options)
        for _ in frames:
            next(decoded)
        return frames

    opens = count(0)
    opening = av.open

    def opened(file: str, *arguments: Any, **options: Any) -> Any:
        if Path(file).parent == films:
            next(opens)
        return opening(file, *arguments, **options)

    monkeypatch.setattr(av, "open", opened)
    monkeypatch.setattr(Source, "decode", decode)
    alone = indexed(tmp_path / "1", films, 32, 1)
    once = next(decoded)
    # The first pass, twice; what is in it, its pictures, what it says of itself; of a damaged one its key
    # frames, its rest, and what is unclear, too.
    assert next(opens) <= (5 if kind == "avi" else 11)
    # Where damage is met on the way: in parts until then, whole, and up to what is unclear near the damage.
    assert once <= (1.05 if kind == "avi" else 2.9) * SECONDS * RATE
    for threads in (2, 3):
        before = next(decoded)
        assert indexed(tmp_path / str(threads), films, 32, threads) == alone
        in_flight = 0 if kind == "avi" else SECONDS * RATE  # at most
        assert next(decoded) - before <= once + in_flight + 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(film_parts, "PART_SECONDS", 32)
        patch.setattr(frame_features, "compute_threads", lambda: 2)
        stop_after(patch, 1)
        with Library(tmp_path / "again", encoder="demo", sentence_encoder="none") as library:
            library.index(films)
            assert library.catalogue.unfinished()
    assert indexed(tmp_path / "again", films, 32, 2) == alone
