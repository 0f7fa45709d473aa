"""Alerts: new videos that match saved searches are reported to a command or a webhook.

A finding is a new video with strong moments of a saved search, as a JSON object: ``{"search", "video_id",
"path", "moments": [{"start", "end", "score"}, …]}``. A command gets it on standard input, a webhook as the
body of a POST. Deliveries are recorded in ``kept.sqlite`` by receiver and by the video's content, so each
receiver gets a finding once, also after a restart and when the file moves. A failed delivery is logged, and
repeated for that receiver at the next check.
"""

from __future__ import annotations

import json
import logging
import subprocess
from collections import defaultdict
from dataclasses import dataclass
from http.client import HTTPException
from threading import Event
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from moviola.errors import InvalidValue, MoviolaError, NotFound
from moviola.search.library import Library

__all__ = ["AlertOptions", "Alerts"]

# Seconds that a command and a webhook may take, and pauses before a webhook is tried again.
_COMMAND_SECONDS, _WEBHOOK_SECONDS = 60.0, 10.0
_PAUSES = (1.0, 5.0)
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


class Alerts:
    """Reports new videos of a library that match saved searches.

    The first check of a search reports nothing: what is in the library by then is not new. ``stop`` ends the
    pauses between tries of a webhook.
    """

    def __init__(self, library: Library, options: AlertOptions, stop: Event | None = None) -> None:
        self._library, self._options, self._stop = library, options, stop or Event()

    def check(self) -> int:
        """Report the findings that were not reported yet; returns the number delivered to all receivers.

        Names in ``searches`` that no saved search has are logged.
        """
        if not self._options:
            return 0
        names = self._options.searches or [entry.name for entry in self._library.kept.entries("search")]
        return sum(self._check(name) for name in names)

    def _check(self, name: str) -> int:
        kept, searchable = self._library.kept, self._library.store.searchable()
        try:
            kept.entry("search", name)
        except NotFound as error:
            log.warning("%s", error)
            return 0
        newest = max(searchable, default=0)
        seen = kept.alerted().get(name)
        if seen is None:
            kept.alert_to(name, newest)
            return 0
        new = {searchable[row].video_id: searchable[row] for row in searchable if row > seen}
        if not new:
            return 0
        try:
            found = self._library.search_saved(
                name, top_k=_MOMENTS * len(new), per_video=_MOMENTS, videos=list(new)
            ).strong
        except MoviolaError as error:
            log.warning("search %s: %s", name, error)
            return 0
        by_video: dict[str, list[dict[str, float]]] = defaultdict(list)
        for one in found:
            by_video[one.video_id].append({"start": one.start, "end": one.end, "score": one.score})
        delivered, failed = 0, newest
        for video_id, moments in by_video.items():
            video = new[video_id]
            if kept.was_reported(name, video.hash):
                continue
            finding = {"search": name, "video_id": video_id, "path": video.path, "moments": moments}
            if self._deliver(finding, video.hash):
                kept.set_reported(name, video.hash)
                delivered += 1
            else:
                failed = min(failed, video.row - 1)
        kept.alert_to(name, failed)
        return delivered

    def _deliver(self, finding: dict[str, Any], content: str) -> bool:
        """Give a finding to each receiver that has not had it; returns whether all have it now."""
        kept, name, body = self._library.kept, finding["search"], json.dumps(finding).encode()
        complete = True
        for receiver, address, give in (
            ("command", self._options.command, self._run), ("webhook", self._options.webhook, self._post),
        ):  # fmt: skip
            # Noted before: a process that is killed in between repeats nothing.
            if not address or not kept.remember_alert(name, content, receiver):
                continue
            try:
                give(body)
            except (OSError, subprocess.SubprocessError, HTTPException, ValueError) as error:
                log.warning(
                    "search %s, video %s: not reported to the %s: %s",
                    name, finding["video_id"], receiver, error,
                )  # fmt: skip
                kept.forget_alert(name, content, receiver)
                complete = False
        return complete

    def _run(self, body: bytes) -> None:
        subprocess.run(
            self._options.command, input=body, stdout=subprocess.DEVNULL, timeout=_COMMAND_SECONDS, check=True
        )

    def _post(self, body: bytes) -> None:
        request = Request(
            self._options.webhook, body, {"Content-Type": "application/json", "User-Agent": "moviola"}
        )
        for pause in (*_PAUSES, None):
            try:
                with urlopen(request, timeout=_WEBHOOK_SECONDS):
                    return
            except (OSError, HTTPException):
                if pause is None or self._stop.wait(pause):
                    raise
