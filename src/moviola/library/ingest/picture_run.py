"""The pictures of files that are new or changed, in two passes: key frames of all, then all of each."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moviola.library.disk.store import LibraryStore
from moviola.library.ingest.committing import Commits
from moviola.library.ingest.first_pass import newest_first
from moviola.library.ingest.frame_features import Encoded, EncodedPart, Outcome, Refused
from moviola.library.ingest.held_stills import HeldStills
from moviola.library.ingest.plan import FoundFile, IngestProgress, IngestReport, Plan
from moviola.library.ingest.screen_text import looks, millisecond, spans_of
from moviola.library.ingest.video_encoder import VideoEncoder
from moviola.library.ingest.workers import Workers
from moviola.media import Hardware, stills_apart

__all__ = ["PictureRun"]


@dataclass(frozen=True, slots=True)
class PictureRun:
    """One run over files, under the library's write lock, by this process or workers.

    ``held`` gets stills for a reader of text; once it has little room for more, ``read`` reads the text of
    the videos, by id, that are in.
    """

    store: LibraryStore
    report: IngestReport
    progress: Callable[[IngestProgress], None]
    workers: Workers | None
    held: HeldStills | None = None
    hardware: Hardware | None = None
    read: Callable[[Collection[str]], None] = lambda _: None

    def encode(self, plan: Plan, options: Mapping[str, Any]) -> None:
        """Encode what a plan has, the newest first; ``options`` are those of :class:`VideoEncoder`."""
        files = newest_first([*plan.new, *plan.changed])
        if not files:
            return
        changed = {found.video_id for found in plan.changed}
        encoder = VideoEncoder(self.store.encoders, self.store.settings.frame_rate, **options)
        commits = Commits(self.store, self.report, encoder.made, changed)
        commits.forget_others(found.hash for found in files)
        self._first(commits.unseen(files), encoder, commits)
        self._second(files, encoder, commits)

    def _first(self, files: Sequence[FoundFile], encoder: VideoEncoder, commits: Commits) -> None:
        done = 0

        def step(found: FoundFile, seconds: float = 0.0) -> None:
            self.progress(IngestProgress(done, len(files), found.video_id, seconds, "key frames"))

        if not (files and self.store.settings.encoder):
            return
        for found in encoder.glimpses(files, step, self.workers):
            done += 1
            if found is not None:
                commits.glimpse(found)
                step(found.file)

    def _second(self, files: Sequence[FoundFile], encoder: VideoEncoder, commits: Commits) -> None:
        done = 0
        unread: dict[str, str] = {}

        def step(found: FoundFile, seconds: float = 0.0) -> None:
            self.progress(IngestProgress(done, len(files), found.video_id, seconds))

        with self.store.catalogue.job("index", len(files)) as advance:
            for outcome in encoder.many(
                files, step, self.workers, begun=commits.begun, held=self.held, hardware=self.hardware
            ):
                commits.take(outcome)
                if self.held:
                    self._let_go(outcome, self.held)
                if not isinstance(outcome, EncodedPart):
                    done += 1
                    advance()
                    step(outcome.file)
                    unread[outcome.file.video_id] = outcome.file.hash
                if self.held and self.held.crowded and unread:
                    self.read(unread)
                    self.held.drop(unread.values())
                    unread.clear()

    def _let_go(self, outcome: Outcome, held: HeldStills) -> None:
        """Hold no stills of a film that are not read, as far as its shots are known."""
        film = outcome.file.hash
        if isinstance(outcome, Refused):
            held.drop([film])
            return
        starts = [shot.start for shot in outcome.shots]
        # The last shot of a part goes on in the next one.
        end = outcome.duration if isinstance(outcome, Encoded) else starts.pop()
        wanted = looks(spans_of(starts, end), stills_apart(held.rate))
        held.keep_only(film, map(millisecond, wanted), math.ceil(1000 * end))
