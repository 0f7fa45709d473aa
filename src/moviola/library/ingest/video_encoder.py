"""Encoding of a whole video, independent of a library: on this machine or another one."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import version
from typing import Any, Literal

from moviola.errors import UnreadableMedia, WorkersError
from moviola.library.disk.encoders_in_use import LibraryEncoders
from moviola.library.ingest.film_parts import Begun
from moviola.library.ingest.first_pass import Glimpse, glimpses
from moviola.library.ingest.frame_features import (
    Encoded,
    EncodedPart,
    Outcome,
    Refused,
    Subtitled,
    encode_videos,
    facts_of,
    read_cues,
    with_chapters,
)
from moviola.library.ingest.held_stills import HeldStills
from moviola.library.ingest.plan import FoundFile
from moviola.library.ingest.workers import Lost, Workers, require_seen
from moviola.media import Facts, Hardware, chosen_hardware

__all__ = ["VideoEncoder"]

Task = tuple[Literal["glimpse", "one"], FoundFile]


@dataclass(frozen=True, slots=True)
class VideoEncoder:
    """Encodes video files for a library at a rate of frames a second, also those that repeat an earlier one
    with ``every_frame``, and keeps a small still of every n-th, see ``stills_every``; ``hwaccel`` names what
    decodes on other machines (:func:`moviola.media.chosen_hardware`). Pickled for another
    process, it loads its own encoders there.
    """

    encoders: LibraryEncoders
    rate: float
    every_frame: bool = False
    stills_every: int | None = None
    hwaccel: str = "none"

    @property
    def made(self) -> str:
        """How frames and stills are made, besides by the library's settings, in words that are compared."""
        return f"edition 1, every frame {self.every_frame}, stills every {self.stills_every}"

    def many(
        self,
        files: Sequence[FoundFile],
        on_frames: Callable[[FoundFile, float], None],
        workers: Workers | None = None,
        *,
        begun: Callable[[FoundFile], Begun | None] | None = None,
        held: HeldStills | None = None,
        hardware: Hardware | None = None,
    ) -> Iterator[Outcome]:
        """Encode files by this process or workers; results come in the order of the files. ``on_frames`` is
        called with a file and the number of its seconds that are encoded. Long films come in parts where
        ``begun`` says what is known of them, and there are no workers; nor do ``held`` and
        ``hardware`` serve these.

        Raises:
            WorkersError: a node of the workers cannot do the work (checked first), or the workers are gone.
        """
        if workers is None:
            yield from self._here(files, on_frames, begun=begun, held=held, hardware=hardware)
            return
        workers.require(partial(self.require_able, wanted=version("moviola")), files)
        tasks: list[Task] = [("one", file) for file in files]
        outcomes = workers.map(self.task, tasks, gpu=self.encoders.device != "cpu")
        for file, outcome in zip(files, outcomes, strict=True):
            if isinstance(outcome, Encoded):
                on_frames(file, outcome.duration)
            yield Refused(file, outcome.reason) if isinstance(outcome, Lost) else outcome

    def glimpses(
        self,
        files: Sequence[FoundFile],
        on_frames: Callable[[FoundFile, float], None],
        workers: Workers | None = None,
    ) -> Iterator[Glimpse | None]:
        """Encode key frames of files, by this process or workers, as :meth:`many` does all of them; also its
        errors. None is a file without a first pass (:mod:`.first_pass`). There must be an encoder.
        """
        if workers is None:
            yield from self._glimpses(files, on_frames)
            return
        workers.require(partial(self.require_able, wanted=version("moviola")), files)
        tasks: list[Task] = [("glimpse", file) for file in files]
        for found in workers.map(self.task, tasks, gpu=self.encoders.device != "cpu"):
            yield None if isinstance(found, Lost) else found

    def task(self, task: Task) -> Any:
        """:meth:`glimpse` or :meth:`one` of a file: one function for both passes, which a worker unpickles
        once, and so loads the encoders once.
        """
        which, file = task
        return self.glimpse(file) if which == "glimpse" else self.one(file)

    def _glimpses(
        self, files: Sequence[FoundFile], on_frames: Callable[[FoundFile, float], None], *, own: bool = True
    ) -> Iterator[Glimpse | None]:
        visual = self.encoders.visual
        assert visual is not None
        return glimpses(files, visual.frame_size, self.encoders.rows, on_frames, own=own)

    def glimpse(self, file: FoundFile) -> Glimpse | None:
        """Key frames of one file, which another machine may have listed."""
        try:
            require_seen([(file.path, file.size)])
        except UnreadableMedia:
            return None
        (found,) = self._glimpses([file], lambda *_: None, own=False)
        return found

    def _here(
        self,
        files: Sequence[FoundFile],
        on_frames: Callable[[FoundFile, float], None],
        *,
        own: bool = True,
        begun: Callable[[FoundFile], Begun | None] | None = None,
        held: HeldStills | None = None,
        hardware: Hardware | None = None,
    ) -> Iterator[Outcome]:
        size = self.encoders.visual.frame_size if self.encoders.visual else None
        early: tuple[FoundFile, Subtitled, Facts | None] | None = None
        for outcome in encode_videos(
            files, size, self.encoders.rows, self.rate, on_frames, every_frame=self.every_frame,
            stills_every=self.stills_every, own=own, begun=begun, held=held,
            hardware=hardware,
        ):  # fmt: skip
            if isinstance(outcome, EncodedPart):
                if early is None or early[0] != outcome.file:
                    facts = facts_of(outcome.file.path)
                    early = outcome.file, self._subtitles(outcome.file, math.inf, facts), facts
                yield replace(outcome, subtitles=early[1])
            elif isinstance(outcome, Refused):
                yield outcome
            else:
                known = early[2] if early is not None and early[0] == outcome.file else None
                facts = known or facts_of(outcome.file.path)
                subtitles = self._subtitles(outcome.file, outcome.duration, facts)
                sentences = self.encoders.sentence_rows(subtitles.cues)
                yield replace(outcome, subtitles=subtitles, facts=facts, sentences=sentences)

    def _subtitles(self, file: FoundFile, duration: float, facts: Facts | None) -> Subtitled:
        """Subtitles of a film, and the chapters of which its file says."""
        subtitles = read_cues(file, duration, facts)
        return with_chapters(subtitles, facts, duration) if facts else subtitles

    def one(self, file: FoundFile) -> Encoded | Refused:
        """Encode one file, which another machine may have listed; refused where it is not that file here."""
        try:
            require_seen([(file.path, file.size)])
        except UnreadableMedia as error:
            return Refused(file, f"node {platform.node()}: {error.reason}")
        hardware = chosen_hardware(self.hwaccel)
        (outcome,) = self._here([file], lambda *_: None, own=False, hardware=hardware)
        assert not isinstance(outcome, EncodedPart)
        return outcome

    def require_able(self, files: Sequence[FoundFile], wanted: str) -> None:
        """Fail where this machine cannot do the work: moviola has another version here than is wanted, files
        are not those that are listed, an encoder is missing or has another revision, or a device is not
        there.
        """
        here = version("moviola")
        if here != wanted:
            raise WorkersError(f"has moviola {here}, the library's machine {wanted}; install the same")
        require_seen((file.path, file.size) for file in files)
        chosen_hardware(self.hwaccel)
        _ = self.encoders.visual, self.encoders.sentences  # loads them
