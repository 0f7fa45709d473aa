"""What brings videos in for a server, in a process of its own: ``python -m moviola.server.worker``.

The first line of its standard input says what to do, as JSON: ``{"library": …, "sources": […], "allowed":
[…], "ocr": …, "patient": …}``, or ``{"library": …, "watch": […], "alerts": {…}}`` to keep the library as some
folders are. Links may have been put into the sources while the job waited, so they are looked at again. It
says how far it is in lines of JSON on standard output. It ends when its standard input does, so that it does
not outlive a server that was killed.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

from moviola.errors import LibraryLocked, MoviolaError
from moviola.library import IngestProgress, IngestReport
from moviola.search import Library
from moviola.server.inside import require_inside
from moviola.server.refusals import Forbidden

__all__ = ["main"]

# Searches come first: the server's users wait for them.
_NICENESS = 10
# Seconds between two lines on the same video.
_EVERY = 0.25
# Seconds after which a job asks again whether the library can be written to.
_PATIENCE = 1.0
# What of a report is told when a watched folder has changed.
_WATCHED = ("added", "updated", "moved", "removed", "refused")


def main() -> int:
    """Index; gives the exit code."""
    order = json.loads(_first_line())
    threading.Thread(target=_end_with_server, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    try:
        if "watch" in order:
            _watch(order)
            return 0
        for source in map(Path, order["sources"]):
            require_inside(source, next(f for f in map(Path, order["allowed"]) if source.is_relative_to(f)))
        with Library(order["library"]) as library:
            telling = _Telling(library)
            report = _indexed(library, order, telling)
    except (MoviolaError, Forbidden, OSError) as error:
        _say({"error": str(error)})
        return 1
    telling.refuse(report.refused)
    _say({"added": len(report.added) + len(report.updated) + len(report.restored)})
    return 0


def _indexed(library: Library, order: dict[str, Any], telling: _Telling) -> IngestReport:
    """What the job wants; where the server watches folders, as soon as that is not at work."""
    while True:
        try:
            return library.index(*order["sources"], ocr=order["ocr"], progress=telling)
        except LibraryLocked:
            if not order.get("patient"):
                raise
            time.sleep(_PATIENCE)


def _watch(order: dict[str, Any]) -> None:
    """Keep the library as some folders are, until the server ends."""
    from moviola.library.watching import Watcher
    from moviola.search.alerts import AlertOptions, Alerts

    with Library(order["library"]) as library:
        told_of = order["alerts"]
        options = AlertOptions(tuple(told_of["searches"]), tuple(told_of["command"]), told_of["webhook"])
        alerts = Alerts(library, options)
        alerts.check()

        def told(report: IngestReport) -> None:
            _say({"watched": {name: len(getattr(report, name)) for name in _WATCHED}})
            alerts.check()

        folders = [Path(folder) for folder in order["watch"]]
        Watcher(
            library.index,
            library.folder,
            folders,
            told=told,
            warned=lambda message: _say({"warning": message}),
        ).run()


class _Telling:
    """Says what the indexer does, but not each picture."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._done, self._said = 0, 0.0
        self._refused: set[str] = set()

    def __call__(self, progress: IngestProgress) -> None:
        """What :meth:`moviola.Library.index` calls."""
        now = time.monotonic()
        if progress.done == self._done and now - self._said < _EVERY:
            return
        if progress.done != self._done and progress.step == "pictures":
            video = self._library.catalogue.video(progress.video_id)
            if video.state == "refused":
                self.refuse({progress.video_id: f"{Path(video.path).name}: {video.error}; skipped"})
        self._done, self._said = progress.done, now
        _say({
            "progress": {
                "done": progress.done, "total": progress.total, "video": progress.video_id,
                "seconds": round(progress.seconds, 1), "step": progress.step,
            }
        })  # fmt: skip

    def refuse(self, reasons: dict[str, str]) -> None:
        """Say why videos were refused, of each once."""
        for video, reason in reasons.items():
            if video not in self._refused:
                self._refused.add(video)
                _say({"refused": {"video": video, "reason": reason}})


def _say(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def _first_line() -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        letter = os.read(sys.stdin.fileno(), 1)
        if not letter:
            sys.exit(3)  # the server is gone already
        line += letter
    return line


def _end_with_server() -> None:
    # Not through a file object, whose lock this thread would hold when the process ends in peace.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(3)


if __name__ == "__main__":
    sys.exit(main())
