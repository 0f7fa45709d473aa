"""Indexing process of a server: ``python -m moviola.server.worker``.

The first line of standard input is a JSON order: ``{"library": …, "device": …, "sources": […],
"allowed": […], "ocr": …, "patient": …}``, or ``{"library": …, "device": …, "watch": […], "reading": {…},
"alerts": {…}}`` to watch folders. Links may have been put into the sources while the job waited, so they are
checked again.
Progress goes to standard output in lines of JSON. The process ends with its standard input, so that it does
not outlive a killed server.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import traceback
from functools import cache, partial
from pathlib import Path
from typing import Any, TextIO

from moviola.errors import LibraryLocked, MoviolaError
from moviola.library import IngestProgress, IngestReport
from moviola.search import Library
from moviola.server.inside import require_inside
from moviola.server.problems import Forbidden, unexpected

__all__ = ["main"]

_NICENESS = 10  # searches take precedence: users wait for them
_EVERY = 0.25  # seconds between two progress lines on the same video
_PATIENCE = 1.0  # seconds between two attempts to write to a locked library
# Fields of the report of a change in a watched folder.
_WATCHED = ("added", "updated", "moved", "removed", "refused")
# Steps of a job, each with its share of all: by how long they take where nothing is said in the pictures.
_STEPS = {"key frames": 0.03, "pictures": 0.67, "text": 0.25, "speech": 0.05}


def main() -> int:
    """Index; returns the exit code."""
    _output()
    line = sys.stdin.buffer.readline()
    if not line.endswith(b"\n"):
        return 3  # the server is gone already
    order = json.loads(line)
    threading.Thread(target=_end_with_server, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(_NICENESS)
    try:
        if "watch" in order:
            _watch(order)
            return 0
        for source in map(Path, order["sources"]):
            require_inside(source, next(f for f in map(Path, order["allowed"]) if source.is_relative_to(f)))
        with Library(order["library"], create=False, device=order["device"]) as library:
            lines = _ProgressLines(library)
            report = _indexed(library, order, lines)
    except (MoviolaError, Forbidden, OSError) as error:
        _say({"error": str(error)})
        return 1
    except Exception as error:
        traceback.print_exc()  # into the server's log
        _say({"error": unexpected(error)})
        return 1
    lines.refuse(report.refused)
    added = len(report.added) + len(report.updated) + len(report.restored)
    _say({"added": added, "copies": sum(map(len, report.copies.values()))})
    return 0


def _indexed(library: Library, order: dict[str, Any], lines: _ProgressLines) -> IngestReport:
    """Run a job; with a watching server, wait for the library's lock."""
    while True:
        try:
            return library.index(*order["sources"], ocr=order["ocr"], links_out=False, progress=lines)
        except LibraryLocked:
            if not order.get("patient"):
                raise
            time.sleep(_PATIENCE)


def _watch(order: dict[str, Any]) -> None:
    from moviola.library.ingest.watching import Watcher
    from moviola.search.alerts import AlertOptions, Alerts

    with Library(order["library"], create=False, device=order["device"]) as library:
        chosen = order["alerts"]
        options = AlertOptions(tuple(chosen["searches"]), tuple(chosen["command"]), chosen["webhook"])
        alerts = Alerts(library, options)
        alerts.queue()

        def reported(report: IngestReport) -> None:
            _say({"watched": {name: len(getattr(report, name)) for name in _WATCHED}})
            alerts.queue()

        index = partial(library.index, links_out=False, **order["reading"])
        Watcher(
            index, library.folder, [Path(folder) for folder in order["watch"]], reported=reported,
            warned=lambda message: _say({"warning": message}),
        ).run()  # fmt: skip


class _ProgressLines:
    """Prints the indexer's progress, but not each picture."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._at, self._said, self._share = ("", 0), 0.0, 0.0
        self._refused: set[str] = set()

    def __call__(self, progress: IngestProgress) -> None:
        """The callback of :meth:`moviola.library.Indexer.index`."""
        now, at = time.monotonic(), (progress.step, progress.done)
        if at == self._at and now - self._said < _EVERY:
            return
        if at != self._at and progress.done and progress.step == "pictures":
            video = self._library.catalogue.video(progress.video_id)
            if video.state == "refused":
                self.refuse({progress.video_id: f"{Path(video.path).name}: {video.error}; skipped"})
        self._at, self._said = at, now
        self._share = max(self._share, _share(progress))
        _say({
            "progress": {"share": round(self._share, 4),
                "done": progress.done, "total": progress.total, "video": progress.video_id,
                "seconds": round(progress.seconds, 1), "step": progress.step,
            }
        })  # fmt: skip

    def refuse(self, reasons: dict[str, str]) -> None:
        """Print the reasons of refused videos, each once."""
        for video, reason in reasons.items():
            if video not in self._refused:
                self._refused.add(video)
                _say({"refused": {"video": video, "reason": reason}})


def _share(progress: IngestProgress) -> float:
    """How much of all steps is done; steps that have nothing to do are passed over."""
    before = 0.0
    for step, share in _STEPS.items():
        if step == progress.step:
            return before + share * progress.done / max(progress.total, 1)
        before += share
    return before


@cache
def _output() -> TextIO:
    """Standard output for JSON lines alone: what plug-ins and C libraries print goes to standard error."""
    output = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return output


def _say(line: dict[str, Any]) -> None:
    _output().write(json.dumps(line) + "\n")
    _output().flush()


def _end_with_server() -> None:
    # Not a file object: this thread would hold its lock when the process ends normally.
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(3)


if __name__ == "__main__":
    sys.exit(main())
