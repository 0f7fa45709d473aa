"""Alerts: new videos that match saved searches are reported to a command or a webhook.

A finding is a new video with strong moments of a saved search, as a JSON object: ``{"search", "video_id",
"path", "moments": [{"start", "end", "score"}, …]}``. A command gets it on standard input, a webhook as the
body of a POST; only an answer of 200 to 299 counts, and no redirect is followed. Deliveries are recorded in
``kept.sqlite`` by receiver and by the video's content, when they are done: each receiver gets a finding
once, also after a restart and when the file moves, and none is lost by a kill (one that comes between the
answer and the record repeats it). A failed delivery is logged, and repeated for that receiver at the next
check.

Searching is done by the caller, delivering by a thread for each receiver: watching goes on meanwhile.
"""

from __future__ import annotations

import json
import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event, Lock
from typing import Self
from urllib.parse import urlsplit

from moviola.errors import InvalidValue, LibraryError, MoviolaError, NotFound
from moviola.library import VideoRow
from moviola.search.asked import Asked
from moviola.search.deliveries import Deliveries, NotDelivered, post, run_command
from moviola.search.library import Library
from moviola.types import Moment

__all__ = ["AlertOptions", "Alerts"]

# Seconds before a webhook is tried again.
_PAUSES = (1.0, 5.0)
# Seconds that the end waits for what is underway.
_PATIENCE = 2.0
# Most moments of a finding; without a limit, a long video would leave no room for the others.
_MOMENTS = 10

log = logging.getLogger("moviola.alerts")


@dataclass(frozen=True, slots=True)
class AlertOptions:
    """Alert options.

    Attributes:
        searches: names of saved searches; empty for all.
        command: program and arguments, run once for each finding, without a shell; empty for none.
        webhook: address, http or https; empty for none.

    Raises:
        InvalidValue: ``webhook`` is no http or https address.
    """

    searches: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    webhook: str = ""

    def __post_init__(self) -> None:
        try:
            place = urlsplit(self.webhook)
            wrong = place.scheme not in ("http", "https") or not place.hostname or place.port == 0
        except ValueError:  # brackets that are not closed, a port that is no number
            wrong = True
        if self.webhook and wrong:
            raise InvalidValue(f"webhook {self.webhook!r}: give an address such as https://example.org/found")

    def __bool__(self) -> bool:
        return bool(self.command or self.webhook)


@dataclass(frozen=True, slots=True)
class _Key:
    """A finding: a search, and the content and row of a video."""

    name: str
    content: str
    row: int
    video_id: str = field(compare=False)

    def __str__(self) -> str:
        return f"search {self.name}, video {self.video_id}"


class Alerts:
    """Reports new videos of a library that match saved searches.

    The first check of a search reports nothing: what is in the library by then is not new. ``stop`` ends
    everything when it is set; what was not delivered by then is when the library is watched again.
    """

    def __init__(self, library: Library, options: AlertOptions, stop: Event | None = None) -> None:
        self._library, self._options, self._stop = library, options, stop or Event()
        self._receivers: dict[str, Deliveries] = {}
        for receiver, address, give in (
            ("command", self._options.command, self._run), ("webhook", self._options.webhook, self._post),
        ):  # fmt: skip
            if address:
                self._receivers[receiver] = Deliveries(receiver, give, self._noted(receiver), self._stop)
        self._lock = Lock()
        self._open: dict[_Key, set[str]] = {}  # receivers that are still to answer
        self._left: dict[str, set[int]] = defaultdict(set)  # rows that are to be looked at again, by search
        self._newest: dict[str, int] = {}
        self._delivered = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End all deliveries, within seconds."""
        self._stop.set()
        for receiver in self._receivers.values():
            receiver.end(_PATIENCE)

    def check(self) -> int:
        """Report the findings that were not reported yet, and wait for that; returns the number delivered to
        all receivers. Names in ``searches`` that no saved search has are logged.
        """
        before = self._delivered
        self.queue()
        for receiver in self._receivers.values():
            receiver.wait()
        return self._delivered - before

    def queue(self) -> int:
        """As :meth:`check`, but wait for no receiver; returns the number of findings on their way."""
        if not self._options:
            return 0
        names = self._options.searches or [entry.name for entry in self._library.userdata.entries("search")]
        for name in names:
            self._look(name)
        with self._lock:
            return len(self._open)

    def _look(self, name: str) -> None:
        userdata, searchable = self._library.userdata, self._library.store.searchable()
        try:
            userdata.entry("search", name)
        except NotFound as error:
            log.warning("%s", error)
            return
        newest = max(searchable, default=0)
        seen = userdata.alerted().get(name)
        if seen is None:
            userdata.alert_to(name, newest)
            return
        new = {searchable[row].video_id: searchable[row] for row in searchable if row > seen}
        if not new:
            return
        try:
            found = self._strong_among(list(new), self._library.saved.asked(name))
        except MoviolaError as error:
            log.warning("search %s: %s", name, error)
            return
        by_video: dict[str, list[dict[str, float]]] = defaultdict(list)
        for one in found:
            by_video[one.video_id].append({"start": one.start, "end": one.end, "score": one.score})
        with self._lock:
            self._newest[name] = newest
            self._left[name] = {new[video_id].row for video_id in by_video}
        for video_id, moments in by_video.items():
            finding = {"search": name, "video_id": video_id, "path": new[video_id].path, "moments": moments}
            self._hand_over(name, new[video_id], finding)
        self._advance(name)

    def _strong_among(self, videos: Sequence[str], asked: Asked) -> list[Moment]:
        """Strong moments of some videos that answer a question."""
        options = asked.options
        wanted = [video for video in videos if options.videos is None or video in options.videos]
        if not wanted:
            return []
        most = min(options.per_video or _MOMENTS, _MOMENTS)
        options = replace(options, top_k=most * len(wanted), per_video=most, videos=wanted)
        return self._library.search(asked.query, options).strong

    def _hand_over(self, name: str, video: VideoRow, finding: Mapping[str, object]) -> None:
        """Give a finding to each receiver that has not had it, and is not to have it already."""
        userdata, key = self._library.userdata, _Key(name, video.hash, video.row, video.video_id)
        waiting = set()
        if not userdata.was_reported(name, video.hash):
            waiting = {one for one in self._receivers if not userdata.was_reported_to(name, video.hash, one)}
            if not waiting:  # a kill came between the records
                userdata.set_reported(name, video.hash)
        with self._lock:
            if key in self._open:
                return
            self._left[name].discard(video.row)
            if waiting:
                self._open[key] = set(waiting)
        body = json.dumps(finding).encode()
        for receiver in waiting:
            self._receivers[receiver].add(key, body)

    def _noted(self, receiver: str) -> Callable[[_Key, bool], None]:
        """A function to call when a receiver has got a finding, or has not."""

        def note(key: _Key, delivered: bool) -> None:
            userdata = self._library.userdata
            try:
                if delivered:
                    userdata.remember_alert(key.name, key.content, receiver)
                with self._lock:
                    waiting = self._open[key]
                    waiting.discard(receiver)
                    if not delivered:
                        self._left[key.name].add(key.row)
                    complete = not waiting
                    by_all = complete and key.row not in self._left[key.name]
                    if complete:
                        del self._open[key]
                    self._delivered += by_all
                if by_all:
                    userdata.set_reported(key.name, key.content)
                if complete:
                    self._advance(key.name)
            except LibraryError as error:  # it is found again by the next check
                log.warning("%s: %s", key, error)

        return note

    def _advance(self, name: str) -> None:
        """Note up to which row a search has nothing left to report."""
        with self._lock:
            left = {key.row for key in self._open if key.name == name} | self._left[name]
            done = min(left) - 1 if left else self._newest[name]
        self._library.userdata.alert_to(name, done)

    def _run(self, body: bytes) -> None:
        run_command(self._options.command, body, self._stop)

    def _post(self, body: bytes) -> None:
        for pause in (*_PAUSES, None):
            try:
                post(self._options.webhook, body, self._stop)
                return
            except NotDelivered:
                if pause is None or self._stop.wait(pause):
                    raise
