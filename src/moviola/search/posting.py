"""POST to a webhook, in a process of its own that can be ended at any time: an answer may drip in for ever.

Run by its path, without the package: standard input is ``{"address", "body", "seconds"}`` as JSON; standard
output becomes ``{"status", "location"}``, or ``{"error"}`` where there is no answer. Redirects are not
followed, since they may lead to any host, and lose the body.
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
    """Post what standard input says, and print what came of it."""
    order = json.load(sys.stdin)
    if hasattr(signal, "alarm"):  # the process that started this one may be killed
        signal.alarm(math.ceil(order["seconds"]) + 1)
    headers = {"Content-Type": "application/json", "User-Agent": "moviola"}
    request = Request(order["address"], order["body"].encode(), headers)
    try:
        with build_opener(_NoRedirects).open(request, timeout=order["seconds"]) as answer:
            outcome = {"status": answer.status, "location": ""}
    except HTTPError as error:
        outcome = {"status": error.code, "location": error.headers.get("Location", "")}
    except (OSError, HTTPException, ValueError) as error:
        outcome = {"error": str(error) or type(error).__name__}
    print(json.dumps(outcome))


if __name__ == "__main__":
    main()
