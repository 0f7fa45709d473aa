"""The pictures of files that are new or changed, in two passes: key frames of all, then all of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moviola.library.disk.store import LibraryStore
from moviola.library.ingest.committing import Commits
from moviola.library.ingest.first_pass import newest_first
from moviola.library.ingest.frame_features import EncodedPart
from moviola.library.ingest.plan import FoundFile, IngestProgress, IngestReport, Plan
from moviola.library.ingest.video_encoder import VideoEncoder
from moviola.library.ingest.workers import Workers

__all__ = ["PictureRun"]


@dataclass(frozen=True, slots=True)
class PictureRun:
    """One run over files, under the library's write lock, by this process or workers."""

    store: LibraryStore
    report: IngestReport
    progress: Callable[[IngestProgress], None]
    workers: Workers | None

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

        def step(found: FoundFile, seconds: float = 0.0) -> None:
            self.progress(IngestProgress(done, len(files), found.video_id, seconds))

        with self.store.catalogue.job("index", len(files)) as advance:
            for outcome in encoder.many(files, step, self.workers, commits.begun):
                commits.take(outcome)
                if not isinstance(outcome, EncodedPart):
                    done += 1
                    advance()
                    step(outcome.file)
