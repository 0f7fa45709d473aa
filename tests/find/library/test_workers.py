"""Encoding by many processes and machines: the same library, whichever of them dies in the middle."""

from __future__ import annotations

import json
import os
import pickle
import platform
import select
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from moviola.addons.ray import workers
from moviola.addons.ray.workers import ATTEMPTS, Share, Workers, shared_out
from moviola.encoders.readers import TextLine
from moviola.errors import EncoderMismatch, InvalidValue, MissingDependency, UnreadableMedia, WorkersError
from moviola.library import IngestProgress, IngestReport, verify
from moviola.library.ingest import recognition
from moviola.library.ingest.frame_features import Refused
from moviola.library.ingest.recognition import Readers, ReadingRun, VideoReader
from moviola.library.ingest.scan import make_plan
from moviola.library.ingest.video_encoder import VideoEncoder
from moviola.library.ingest.workers import Lost
from moviola.media import write_video
from moviola.search import Library
from moviola.types import Box

DRIVERS = Path(__file__).with_name("ray_drivers.py")
# In the order in which they are taken in.
NAMES = ("0", "1", "always", "node", "once", "x", "y", "z")


# ---- with Ray, each in a process of its own ----------------------------------------------------------------


class Driver:
    """A process that uses Ray, and all that it starts, which carry its mark."""

    def __init__(self) -> None:
        self.mark = uuid.uuid4().hex
        self.environment = {**os.environ, "MOVIOLA_TEST_MARK": self.mark, "OMP_NUM_THREADS": "1"}

    def start(self, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, str(DRIVERS), *map(str, arguments)]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env=self.environment, start_new_session=True
        )

    def result(self, *arguments: object) -> dict[str, Any]:
        """What the driver prints."""
        process = self.start(*arguments)
        out, _ = process.communicate()
        assert process.returncode == 0
        result: dict[str, Any] = json.loads(out.splitlines()[-1])
        return result

    def left(self) -> list[str]:
        """Commands of its processes that do not end by themselves within a minute."""
        poll, left = select.poll(), {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (folder / "environ").read_bytes():
                    process = os.pidfd_open(int(folder.name))
                    left[process] = (folder / "cmdline").read_text().replace("\0", " ")
                    poll.register(process, select.POLLIN)
            except (OSError, ProcessLookupError):
                continue
        while left and (ended := poll.poll(60_000)):
            for process, _ in ended:
                poll.unregister(process)
                os.close(process)
                del left[process]
        return list(left.values())


@pytest.fixture
def driver() -> Iterator[Driver]:
    driver = Driver()
    yield driver
    assert not driver.left()


@pytest.fixture
def named(tmp_path: Path, film: Callable[..., Path]) -> Path:
    """Films whose names say what becomes of their workers."""
    for number, name in enumerate(NAMES):
        film(tmp_path / "films" / f"{name}.mp4", 6 + number, seed=number)
    return tmp_path / "films"


def contents(library: Path) -> dict[str, bytes]:
    """Everything in a library that follows from its videos."""
    files = {path for folder in ("features", "index") for path in (library / folder).rglob("*")}
    kept = {str(path.relative_to(library)): path.read_bytes() for path in files if path.is_file()}
    with Library(library, read_only=True) as opened:
        rows = [
            (video, opened.catalogue.cues(video.row), opened.catalogue.shots(video.row))
            for video in opened.catalogue.videos()
        ]
        assert not verified(library)
    return kept | {"catalogue": repr(rows).encode()}


def verified(library: Path) -> list[Any]:
    with Library(library) as opened:
        return verify(opened.store)


def title_card(path: Path, words: str) -> None:
    """A film of four seconds in which something is written."""
    picture = Image.new("RGB", (480, 270), "navy")
    ImageDraw.Draw(picture).text((60, 90), words, fill="white", font=ImageFont.load_default(64))
    write_video(path, [np.asarray(picture)] * 20, rate=5)


@pytest.mark.long(2)
def test_two_processes_make_the_same_library_as_one(tmp_path: Path, films: Path, driver: Driver) -> None:
    (films / "broken.mp4").write_bytes(b"nothing to see")
    title_card(films / "title.mp4", "HARBOUR")
    with Library(tmp_path / "one", encoder="demo", sentence_encoder="none") as library:
        report = library.index(films, ocr=True)
        assert library.catalogue.cue_counts()["text"]
    result = driver.result("local", tmp_path / "two", films)
    assert contents(tmp_path / "two") == contents(tmp_path / "one")
    assert result["report"]["added"] == report.added
    assert result["report"]["refused"] == report.refused
    assert result["report"]["read"] == report.read
    assert result["done"] == ["a", "b", "broken", "d", "deep/c", "title"]
    assert result["auth"] == "token"  # nobody else can have them do something


@pytest.mark.long(2)
def test_a_node_and_workers_that_die_in_the_middle(tmp_path: Path, named: Path, driver: Driver) -> None:
    begun = tmp_path / "begun"
    begun.mkdir()
    result = driver.result("killed", tmp_path / "library", named, begun)
    tried = {path.stem: len(path.read_text().split()) for path in begun.glob("*.begun")}
    assert tried["always"] == ATTEMPTS
    assert tried["once"] >= 2 and tried["node"] >= 2
    report = result["report"]
    assert result["done"] == list(NAMES)
    assert report["added"] == [name for name in NAMES if name != "always"]
    assert list(report["refused"]) == ["always"]
    assert report["refused"]["always"].startswith(f"always.mp4: its worker died at each of {ATTEMPTS}")
    # In the end it is the library that one process makes: what was refused is tried again.
    with Library(tmp_path / "library") as library:
        assert library.index(named, ocr=False).updated == ["always"]
    (one := tmp_path / "one").mkdir()
    with Library(one, encoder="demo", sentence_encoder="none") as library:
        (named / "always.mp4").rename(tmp_path / "always.mp4")
        library.index(named, ocr=False)
        (tmp_path / "always.mp4").rename(named / "always.mp4")
        library.index(named, ocr=False)
    assert searched(tmp_path / "library") == searched(one)
    # The two nodes that were left, of one core each, and the one that may not be known to be dead yet.
    assert result["squares"] == [number * number for number in range(40)]
    assert result["in_flight"] <= 3 * 4 + 1
    assert result["threads"] == "1"
    # Asked for what they cannot do.
    assert result["blind"][0] == "WorkersError"
    assert "node " in result["blind"][1] and "harbour.mp4: no such file here" in result["blind"][1]
    assert result["raised"] == ["UnreadableMedia", "harbour.mp4: no such file here"]
    assert result["left"][0] == "WorkersError" and "no node is left" in result["left"][1]
    assert result["gone"][0] == "WorkersError" and "Ray cannot be used" in result["gone"][1]


def searched(library: Path) -> list[Any]:
    with Library(library, read_only=True) as opened:
        return [(moment.video_id, moment.start, moment.end) for moment in opened.search("a red wall")]


@pytest.mark.long(2)
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_driver_that_is_killed_loses_what_is_in_flight(
    tmp_path: Path, named: Path, driver: Driver, how: signal.Signals
) -> None:
    process = driver.start("steps", tmp_path / "library", named)
    assert process.stdout is not None
    assert process.stdout.readline() == "0\n" and process.stdout.readline() == "1\n"
    if how == signal.SIGINT:  # a terminal sends it to all that were started, too
        os.killpg(process.pid, how)
    else:
        process.send_signal(how)
    process.stdout.close()
    assert process.wait() != 0
    assert not driver.left()
    # The index is written at the end.
    assert {problem.message.partition(":")[0] for problem in verified(tmp_path / "library")} <= {
        "index segments"
    }
    with Library(tmp_path / "library") as library:
        assert {"0", "1"} <= set(library.index(named, ocr=False).unchanged)
        assert verify(library.store) == []
    with Library(tmp_path / "one", encoder="demo", sentence_encoder="none") as library:
        library.index(named, ocr=False)
    assert contents(tmp_path / "library")["catalogue"] == contents(tmp_path / "one")["catalogue"]


# ---- without it --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["0", "-1", "many", "ray://", "http://host:1", ""])
def test_workers_that_cannot_be(where: str) -> None:
    with pytest.raises(InvalidValue, match=r"ray://HOST:PORT"):
        Workers(where)


def test_no_more_workers_than_cores() -> None:
    with pytest.raises(InvalidValue, match=r"workers 100000: this machine has \d+ cores"):
        Workers(100_000)


def test_without_ray(tmp_path: Path, films: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setitem(sys.modules, "ray", None)
    with (
        Library(tmp_path / "library", encoder="demo", sentence_encoder="none") as library,
        pytest.raises(MissingDependency, match=r"-m pip install 'ray"),
    ):
        library.index(films, workers=1)


def test_cores_are_shared_out() -> None:
    assert shared_out([{"CPU": 8.0}, {"CPU": 5.0, "GPU": 1.0}]) == Share(tasks=6, cores=2, gpus=0.0)
    assert shared_out([{"CPU": 8.0}, {"CPU": 1.0}]) == Share(tasks=9, cores=1, gpus=0.0)
    assert shared_out([{"CPU": 4.0}], cores=4) == Share(tasks=1, cores=4, gpus=0.0)


def test_gpus_are_shared_out() -> None:
    assert shared_out([{"CPU": 12.0, "GPU": 2.0}]) == Share(tasks=6, cores=2, gpus=0.3333)
    assert shared_out([{"CPU": 2.0, "GPU": 8.0}, {"CPU": 4.0, "GPU": 1.0}]) == Share(3, 2, 0.5)
    assert shared_out([{"CPU": 2.0, "GPU": 8.0}]) == Share(1, 2, 1.0)


def encoder_elsewhere(library: Library) -> VideoEncoder:
    """As another process gets it."""
    encoder = VideoEncoder(library.store.encoders, library.settings.frame_rate)
    copy: VideoEncoder = pickle.loads(pickle.dumps(encoder))
    return copy


def test_what_a_worker_makes_is_what_the_library_makes(library: Library, films: Path) -> None:
    (found,) = make_plan([films / "d.mp4"], []).new
    made = pickle.loads(pickle.dumps(encoder_elsewhere(library).one(found)))
    (video,) = [video for video in library.catalogue.videos() if video.video_id == "d"]
    stored = library.store.frame_features.read(video.frames)
    assert (made.frames.astype(stored.dtype) == stored).all()
    assert made.subtitles.cues == library.catalogue.cues(video.row)
    assert list(made.shots) == library.catalogue.shots(video.row)


def test_a_node_that_does_not_see_a_video_says_so(library: Library, films: Path) -> None:
    encoder, plan = encoder_elsewhere(library), make_plan([films / "a.mp4", films / "b.mp4"], [])
    encoder.require_able(plan.new, version("moviola"))
    with (films / "b.mp4").open("ab") as file:
        file.write(b"more")
    with pytest.raises(UnreadableMedia, match=r"b\.mp4: no file of \d+ bytes here; every node must see"):
        encoder.require_able(plan.new, version("moviola"))
    refused = encoder.one(plan.new[1])
    assert isinstance(refused, Refused) and platform.node() in refused.reason


def test_a_node_with_another_moviola_says_so(library: Library) -> None:
    with pytest.raises(WorkersError, match=r"the library's machine 0\.0\.0"):
        encoder_elsewhere(library).require_able([], "0.0.0")


def test_errors_come_whole_from_other_processes() -> None:
    error = pickle.loads(pickle.dumps(UnreadableMedia("film.mp4", "empty")))
    assert (type(error), str(error), error.path) == (UnreadableMedia, "film.mp4: empty", "film.mp4")


class Beside:
    """Workers that take what other processes would get, and lose the first video."""

    def require(self, check: Callable[[Any], object], item: Any) -> None:
        pickle.loads(pickle.dumps(check))(item)

    def map(self, function: Callable[[Any], Any], items: Iterable[Any], *, gpu: bool) -> Iterator[Any]:
        function = pickle.loads(pickle.dumps(function))
        for number, item in enumerate(items):
            yield function(item) if number else Lost("its worker died")


class Seer:
    id, revision, longest_side = "seer", "1", 64

    def read(self, image: object) -> list[TextLine]:
        return [TextLine("HARBOUR", Box(0, 0, 1, 1), 0.9)]


def test_a_video_that_cannot_be_read_does_not_stop_the_others(
    library: Library, films: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recognition, "load_text_reader", lambda name: Seer())
    steps: list[IngestProgress] = []
    run = ReadingRun(library.store, IngestReport(), steps.append, Beside())  # type: ignore[arg-type]
    (films / "b.mp4").write_bytes(bytes((films / "b.mp4").stat().st_size))
    run.read({"a", "b", "d", "deep/c"}, Readers(Seer(), None, ["text"]))
    assert run.report.read["text"] == ["d", "deep/c"]
    assert run.report.reading_problems["a"] == "text: its worker died"
    assert run.report.reading_problems["b"].startswith("text: ")
    assert [(step.step, step.done, step.total, step.video_id) for step in steps] == [
        ("text", done, 4, video_id) for done, video_id in enumerate(["a", "b", "d", "deep/c"])
    ]


def test_a_node_with_another_reader_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recognition, "load_text_reader", lambda name: Seer())
    elsewhere = pickle.dumps(VideoReader("text", Seer(), "cpu"))
    monkeypatch.setattr(Seer, "revision", "2")
    with pytest.raises(EncoderMismatch, match=r"reader seer: revision 2 here, 1 on the library's machine"):
        pickle.loads(elsewhere)


class Head:
    """A head of a cluster that refuses a number of clients at first."""

    exceptions = SimpleNamespace(RayError=RuntimeError)

    def __init__(self, refused: int) -> None:
        self.refused = refused

    def is_initialized(self) -> bool:
        return False

    def init(self, *_: object, **__: object) -> None:
        self.refused -= 1
        if self.refused >= 0:
            raise ConnectionAbortedError("Initialization failure from server:\nlog")

    def nodes(self) -> list[Any]:
        return []


@pytest.mark.parametrize(("refused", "message"), [(2, "no node is left"), (3, "Initialization failure")])
def test_a_head_is_asked_again(refused: int, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_import_ray", lambda **_: Head(refused))
    with pytest.raises(WorkersError, match=message):
        list(Workers("ray://head:10001").map(len, []))
