"""A library with all that one can hold besides videos: what must not get lost on any way."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np

from moviola.library.userdata.values import Mark
from moviola.media import write_video
from moviola.search import Library, Marked, MarkedMoment
from moviola.types import Capture, Cue

__all__ = ["CAPTURE", "furnish", "small_film"]

CAPTURE = Capture("2023-05-01T23:30:00-07:00", "tags", 37.77, -122.42, "Apple", "iPhone 15")


def small_film(path: Path, seed: int, words: str = "") -> Path:
    """A film of two walls for three seconds each, with a subtitle."""
    walls = np.random.default_rng(seed).integers(0, 255, (2, 3), np.uint8)
    frames = [np.broadcast_to(wall, (64, 64, 3)).copy() for wall in walls for _ in range(15)]
    path.parent.mkdir(parents=True, exist_ok=True)
    write_video(path, frames, rate=5, subtitles=[Cue(1.0, 2.0, words)] if words else None)
    return path


def furnish(library: Library, films: Path, one: str, other: str, third: str) -> None:
    """Bring a folder in, and give the library everything.

    Args:
        library: an empty one.
        films: a folder; it gets a copy of one film in ``twice``.
        one, other, third: ids of three of its films: the first is copied and marked, the second has a capture
            and a moment in a collection, and the third is to be read again.
    """
    (films / "twice").mkdir(exist_ok=True)
    shutil.copyfile(films / f"{one}.mp4", films / "twice" / f"{one}.mp4")
    gone = small_film(films / "old.mp4", 4, "It is gone.")
    library.index(films, ocr=False, exclude=["proxies/"])
    library.indexer.use_index("flat")
    library.indexer.remove(["old"])
    gone.unlink()
    catalogue, userdata = library.catalogue, library.userdata
    with catalogue.transaction():
        catalogue.put_captures({catalogue.video(other).row: CAPTURE})
    userdata.put("search", "keepers", {"query": "lighthouse keeper", "filter": {"taken": "2023"}})
    moment = {"video_id": other, "start": 1.0, "end": 3.0, "title": "the keeper", "note": "use it"}
    userdata.put("collection", "best", {"moments": [moment]})
    userdata.mark(Mark(video_id=one, start=1.0, end=2.5), add=["stall", "red"], rating=4)
    userdata.alert_to("keepers", catalogue.video(other).row)
    userdata.set_reported("keepers", catalogue.video(other).hash)
    userdata.remember_alert("keepers", catalogue.video(one).hash, "webhook")
    library.concepts.teach("Red walls", Marked(None, (MarkedMoment(one, 1.0, 3.0),)))
    library.indexer.again([third], pictures=False)
