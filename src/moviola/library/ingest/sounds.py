"""Sounds of videos as a step of indexing, after the pictures, of videos that have sound."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.readers import RATE, SoundReader, adding_sounds, hears_sounds, open_sound_reader
from moviola.errors import MediaError, counted
from moviola.library.disk.accounts import has_sound
from moviola.library.disk.sounds import HEARD, MOST_CLASSES, levels
from moviola.library.ingest.decode_ahead import ahead
from moviola.library.ingest.plan import IngestProgress, IngestReport

if TYPE_CHECKING:
    from moviola.library.disk.store import LibraryStore

__all__ = ["SoundRun", "chosen_sound_reader", "read_sounds"]

NONE = "none"
# Probability below which nothing is heard in a patch; silence is no sound.
_LEAST, _SILENCE = 0.05, "Silence"


def chosen_sound_reader(sounds: str | None) -> SoundReader | None:
    """The reader of an option of :meth:`moviola.library.Indexer.index`.

    Raises:
        MissingDependency, MissingModel: one that was named is not on this machine.
    """
    if sounds == NONE or (sounds is None and not hears_sounds()):
        return None
    return open_sound_reader(sounds) if sounds else open_sound_reader()


@dataclass(frozen=True, slots=True)
class SoundRun:
    """One run of the reader over a library; under its write lock, in this process: decoding the sound takes
    longer than reading it.
    """

    store: LibraryStore
    report: IngestReport
    progress: Callable[[IngestProgress], None]

    def read(self, videos: Collection[str], reader: SoundReader | None, *, refused: bool = False) -> None:
        """Read the sounds of the videos, by id, that have sound and that no reader of this revision has
        read; each is committed when it is done. Without a reader, unless sounds are ``refused``, it is
        reported how to get one.
        """
        catalogue = self.store.catalogue
        read, accounts = catalogue.sounds_read(), catalogue.accounts()
        waiting = [
            video
            for video in self.store.searchable().values()
            if video.video_id in videos
            and (video.row not in read if reader is None else read.get(video.row) != reader.revision)
            and has_sound(accounts.get(video.row))
        ]
        if waiting and reader is None and not refused:
            said = f"{adding_sounds()} adds a reader; --no-sounds leaves them out"
            self.report.not_read["sounds"] = f"{counted(len(waiting), 'video')} with sound; {said}"
        if reader is None or not waiting:
            return
        with catalogue.job("read sounds", len(waiting)) as advance:
            for done, video in enumerate(waiting):
                self.progress(IngestProgress(done, len(waiting), video.video_id, 0.0, "sounds"))
                try:
                    heard = read_sounds(Path(video.path), video.duration, reader)
                except MediaError as error:
                    self.report.reading_problems[video.video_id] = f"sounds: {error.reason}"
                else:
                    self.store.require_in_place()
                    with catalogue.transaction():
                        catalogue.put_sounds(video.row, reader.revision, reader.names, heard)
                    self.report.heard.append(video.video_id)
                advance()


def read_sounds(path: Path, duration: float, reader: SoundReader) -> NDArray[np.void]:
    """The likeliest sounds of a video's patches, (n, MOST_CLASSES) HEARD; sound after the duration of the
    pictures is left out. Raises MediaError: the file cannot be read any more.
    """
    from moviola.encoders.readers import HOP
    from moviola.media import read_sound  # with PyAV, which a search does without

    silence = reader.names.index(_SILENCE)
    patches = []
    with closing(ahead(read_sound(path, rate=RATE))) as sound:
        for number, probabilities in enumerate(reader.read(sound)):
            if number * HOP >= duration:
                break
            audible = probabilities.copy()
            audible[silence] = 0
            best = np.argsort(-audible, kind="stable")[:MOST_CLASSES]
            patch = np.zeros(MOST_CLASSES, HEARD)
            if audible[best[0]] >= _LEAST:
                patch["class"], patch["level"] = best, levels(audible[best])
            patches.append(patch)
    patches = patches or [np.zeros(MOST_CLASSES, HEARD)]  # a track without sound was read, too
    return np.array(patches, HEARD).reshape(-1, MOST_CLASSES)
