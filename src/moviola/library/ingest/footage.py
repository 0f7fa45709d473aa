"""How much footage lies in folders, without reading all of it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from moviola.errors import MediaError

__all__ = ["about_seconds"]

_PROBED = 12


def about_seconds(sources: Sequence[Path]) -> float:
    """About how many seconds of video lie in files and folders: a dozen files are looked at, and the others
    taken to be as long by their size. 0 where none of these can be read.
    """
    from moviola.media import probe  # with PyAV, which a search does without

    sizes = dict(_sizes(sources))
    files = sorted(sizes, key=lambda path: (sizes[path], path))
    seconds, looked_at = 0.0, 0
    for path in files[:: max(1, len(files) // _PROBED)]:
        with suppress(MediaError, OSError):
            seconds += probe(path).duration
            looked_at += sizes[path]
    return seconds * sum(sizes.values()) / looked_at if looked_at else 0.0


def _sizes(sources: Sequence[Path]) -> Iterator[tuple[Path, int]]:
    """The video files, by their suffix, and their sizes."""
    from moviola.media import VIDEO_SUFFIXES

    for source in sources:
        below = (Path(folder, name) for folder, _, names in os.walk(source) for name in names)
        videos = (path for path in below if path.suffix.lower() in VIDEO_SUFFIXES)
        for path in videos if source.is_dir() else [source]:
            with suppress(OSError):
                yield path, path.stat().st_size
