"""An HTTP request in a process of its own, which can be ended at any time: an answer may drip in for ever.

Run by its path, without the package: standard input is ``{"method", "address", "body", "headers", "seconds",
"most"}`` as JSON; standard output becomes ``{"status", "location", "retry_after", "body", "cut"}``, or
``{"error"}`` where there is no answer. Redirects are not followed, since they may lead to any host, and lose
the body.
"""

from __future__ import annotations

import json
import math
import signal
import sys
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.request import HTTPRedirectHandler, Request, build_opener

__all__ = ["main"]


class _NoRedirects(HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        """Follow none: the answer is then an error with its status."""


def main() -> None:
    """Ask what standard input says, and print what came of it."""
    order = json.load(sys.stdin)
    if hasattr(signal, "alarm"):  # the process that started this one may be killed
        signal.alarm(math.ceil(order["seconds"]) + 1)
    body = None if order["body"] is None else order["body"].encode()
    request = Request(order["address"], body, order["headers"], method=order["method"])
    try:
        try:
            answer = build_opener(_NoRedirects).open(request, timeout=order["seconds"])
        except HTTPError as error:
            answer = error
        with answer:
            said, most = answer.read(order["most"] + 1), order["most"]
            location, retry = (answer.headers.get(name, "") for name in ("Location", "Retry-After"))
            outcome = {
                "status": answer.status, "location": location, "retry_after": retry,
                "body": said[:most].decode("utf-8", "replace"), "cut": len(said) > most,
            }  # fmt: skip
    except (OSError, HTTPException, ValueError) as error:
        cause = getattr(error, "reason", error)  # urllib's own words are of its classes
        outcome = {"error": str(getattr(cause, "strerror", "") or cause) or type(error).__name__}
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
