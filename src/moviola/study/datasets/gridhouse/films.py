"""The films of a data set: which there are, what is true of each, and their files."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from moviola.errors import WorkersError
from moviola.study.datasets.gridhouse.edit import Edit, edit_list, film_moments
from moviola.study.datasets.gridhouse.editor import edited
from moviola.study.datasets.gridhouse.episode import Episode, GridMoment, simulate
from moviola.study.datasets.gridhouse.narrator import SpokenLine, converse, narrate, to_srt
from moviola.study.datasets.gridhouse.picture import Camera
from moviola.study.datasets.gridhouse.projection import frames, signs_seen
from moviola.types import Cue

__all__ = ["SHARES", "Film", "Story", "WriteVideo", "films_of", "make_videos"]

FRAME_RATE = 6.0
SIZE = 224
SHARES = (0.6, 0.1, 0.3)
ORDINARY_SECONDS = 75.0
LONG_SECONDS = 600.0
HOUR_SECONDS = 3600.0

WriteVideo = Callable[..., object]


@dataclass(frozen=True, slots=True)
class Story:
    """Content of a film, and what is true of it.

    Attributes:
        source: one take, or the edit of several.
        duration: seconds that the file holds: whole frames.
        moments: in seconds of the film.
        lines, said: the narrator's, and what robots say.
    """

    source: Episode | Edit
    duration: float
    moments: Sequence[GridMoment]
    lines: list[SpokenLine]
    said: list[Cue]

    @property
    def cues(self) -> list[Cue]:
        """All that is said, by rising start."""
        return sorted([*(line.cue for line in self.lines), *self.said], key=lambda cue: cue.start)

    @property
    def truth(self) -> dict[str, Any] | None:
        """Shots, signs and said lines of an edited film, as JSON holds them; None for one take."""
        if isinstance(self.source, Episode):
            return None
        said = [[cue.start, cue.end, cue.text] for cue in self.said]
        return {**edit_list(self.source), "signs": signs_seen(self.source), "said": said}


@dataclass(frozen=True, slots=True)
class Film:
    """A film to make: its id, its number (seed within the world), its length and kind."""

    video_id: str
    seed: int
    number: int
    split: str
    seconds: float | None = None
    filler: bool = False
    subtitles: bool = False
    edited: bool = False

    @property
    def weight(self) -> float:
        """Share in the number of queries drawn: 1, more for edited films of more than 75 s."""
        return max(1.0, (self.seconds or 0.0) / ORDINARY_SECONDS) if self.edited else 1.0

    def story(self) -> Story:
        """Simulate it; in a film of filler nothing is said, so that it answers no query."""
        spoken = self.subtitles and not self.filler
        how: dict[str, Any] = {"number": self.number, "seconds": self.seconds, "filler": self.filler}
        source = (
            edited(self.seed, **how) if self.edited else simulate(self.seed, video_id=self.video_id, **how)
        )
        lines = narrate(self.seed, self.number, source.duration) if spoken else []
        if isinstance(source, Episode):
            shown = math.ceil(source.duration * FRAME_RATE) / FRAME_RATE
            return Story(source, shown, source.moments, lines, [])
        moments = film_moments(source)
        said = converse(self.seed, self.number, moments, lines) if spoken else []
        return Story(source, source.duration, moments, lines, said)


def films_of(settings: dict[str, Any]) -> list[Film]:
    """The films of a data set by its settings, those of ``gridhouse.json``."""
    kinds: list[tuple[str, int, dict[str, Any]]] = [
        ("gh", settings["videos"], {}),
        ("long", settings["long"], {"seconds": LONG_SECONDS}),
        ("hour", int(settings["hour"]), {"seconds": HOUR_SECONDS}),
        ("filler", settings["filler"], {"filler": True}),
        ("edited", settings.get("edited_videos", 0), {"edited": True}),
    ]
    films: list[Film] = []
    for name, count, options in kinds:
        options = {"edited": settings.get("edited", False), "subtitles": settings["subtitles"], **options}
        for place in range(count):
            video_id = f"{name}-{place + 1:04d}"
            films.append(Film(video_id, settings["seed"], len(films), _split(place, count), **options))
    return films


def _split(place: int, count: int) -> str:
    """60 : 10 : 30 by number; a single film is for test."""
    if count == 1:
        return "test"
    share = (place + 0.5) / count
    return "train" if share < SHARES[0] else "val" if share < SHARES[0] + SHARES[1] else "test"


def make_videos(
    folder: Path,
    films: Sequence[Film],
    write_video: WriteVideo,
    workers: int,
    progress: Callable[[int, int], None],
) -> None:
    """Write the files of films that have none yet, and their subtitles, with up to ``workers`` processes.

    Raises:
        WorkersError: a process was killed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    missing = [film for film in films if not (folder / f"{film.video_id}.mp4").exists()]
    done = len(films) - len(missing)
    progress(done, len(films))
    if not missing:
        return
    # Workers make all their films in one process, so that each draws its sprites once; one thread each, since
    # they share the machine. "spawn", since forking a process with threads may deadlock.
    processes = ProcessPoolExecutor(min(workers, len(missing)), mp_context=get_context("spawn"))
    with _one_thread_each(), processes as pool:
        try:
            for _ in pool.map(_make_video, missing, [folder] * len(missing), [write_video] * len(missing)):
                done += 1
                progress(done, len(films))
        except BrokenProcessPool as error:
            raise WorkersError(
                f"{folder}: a process that makes films was killed, perhaps for lack of memory; "
                "finished films are kept, so run the same command again, or with fewer --workers"
            ) from error


@contextmanager
def _one_thread_each() -> Iterator[None]:
    """Processes that start meanwhile take one thread, unless a number is set; this one keeps its own."""
    name = "OMP_NUM_THREADS"
    given = name in os.environ
    os.environ.setdefault(name, "1")
    try:
        yield
    finally:
        if not given:
            del os.environ[name]


def _make_video(film: Film, folder: Path, write_video: WriteVideo) -> None:
    story, path = film.story(), folder / f"{film.video_id}.mp4"
    if story.cues:
        path.with_suffix(".srt").write_text(to_srt(story.cues))
    if isinstance(story.source, Edit):
        form = story.source.format
        write_video(path, frames(story.source), rate=form.rate, crf=form.crf)
    else:
        write_video(path, Camera(story.source, SIZE).frames(FRAME_RATE), rate=FRAME_RATE)
