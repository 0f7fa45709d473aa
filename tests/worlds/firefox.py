"""A Firefox of the system, driven through Marionette, which is built into it: it needs no driver."""

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from threading import Thread
from typing import Any, Self

__all__ = ["Firefox"]

_PATIENCE = 60
"""Seconds."""
_PREFERENCES = """\
user_pref("marionette.port", 0);
user_pref("media.autoplay.default", 0);
user_pref("media.autoplay.blocking_policy", 0);
"""


class Firefox:
    """One window of Firefox with a profile of its own, which is deleted with it.

    Args:
        path: the program.
    """

    def __init__(self, path: Path) -> None:
        self._profile = Path(tempfile.mkdtemp(prefix="firefox"))
        (self._profile / "user.js").write_text(_PREFERENCES)
        options = ["--headless", "--no-remote", "--marionette", "--remote-allow-system-access"]
        self._process = subprocess.Popen(
            [path, *options, "--profile", self._profile],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        self._says = self._process.stdout
        assert self._says is not None
        listening = (re.search(r"Listening on port (\d+)", line) for line in self._says)
        port = next(int(found[1]) for found in listening if found)
        # What it says later is read too, or it would wait for that.
        self._reading = Thread(target=self._says.read, daemon=True)
        self._reading.start()
        self._socket = socket.create_connection(("127.0.0.1", port), _PATIENCE)
        self._answers = self._socket.makefile("rb")
        self._sent = 0
        self._read()  # it says who it is
        self._ask("WebDriver:NewSession", capabilities={})
        self._ask("WebDriver:SetTimeouts", script=1000 * _PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._answers.close()
        self._socket.close()
        self._process.terminate()
        self._process.wait()
        self._reading.join()
        assert self._says is not None
        self._says.close()
        shutil.rmtree(self._profile, ignore_errors=True)

    def open(self, url: str) -> None:
        """Go to an address; returns when the page is loaded."""
        self._ask("WebDriver:Navigate", url=url)

    def run(self, script: str) -> Any:
        """The value that the body of a function returns in the page."""
        return self._ask("WebDriver:ExecuteScript", script=script, args=[])["value"]

    def until(self, condition: str) -> None:
        """Wait in the page until an expression holds."""
        body = f"""
          const done = arguments[arguments.length - 1];
          const look = () => {{ if ({condition}) done(); else requestAnimationFrame(look); }};
          look();
        """
        self._ask("WebDriver:ExecuteAsyncScript", script=body, args=[])

    def type(self, selector: str, text: str) -> None:
        """Type into an element."""
        self._ask("WebDriver:ElementSendKeys", id=self._element(selector), text=text)

    def click(self, selector: str) -> None:
        """Click on an element, as a mouse does: it must not be covered."""
        self._ask("WebDriver:ElementClick", id=self._element(selector))

    def errors(self) -> list[str]:
        """What the console says of errors in scripts of pages."""
        self._ask("Marionette:SetContext", value="chrome")
        found: list[str] = self.run(
            """return Services.console.getMessageArray()
              .filter((one) => one instanceof Ci.nsIScriptError && one.category === "content javascript")
              .filter((one) => !(one.flags & Ci.nsIScriptError.warningFlag))
              .map((one) => one.toString())"""
        )
        self._ask("Marionette:SetContext", value="content")
        return found

    def _element(self, selector: str) -> str:
        found = self._ask("WebDriver:FindElement", using="css selector", value=selector)["value"]
        (identity,) = found.values()
        return str(identity)

    def _ask(self, command: str, **parameters: Any) -> Any:
        self._sent += 1
        message = json.dumps([0, self._sent, command, parameters])
        self._socket.sendall(f"{len(message.encode())}:{message}".encode())
        _, _, error, result = self._read()
        if error:
            raise RuntimeError(f"{command}: {error['error']}: {error['message']}")
        return result

    def _read(self) -> Any:
        """One message: its length, a colon, JSON."""
        length = b""
        while (one := self._answers.read(1)) != b":":
            length += one
        return json.loads(self._answers.read(int(length)))
