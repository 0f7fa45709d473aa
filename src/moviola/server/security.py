"""Access control: host names, origins, tokens and rights, the size of a body; headers that restrict browsers.

ASGI, so that it covers every route and file, and nothing is read before it is allowed.
Why hosts and origins are checked is in ``docs/howto/serve.md``. There is a token for each right, to read and
to change (:func:`needed_right`): as ``Authorization: Bearer``, or as a cookie, which ``/?token=…`` or the
page to sign in sets once.
"""

from __future__ import annotations

import hashlib
import logging
import re
from asyncio import sleep
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from hmac import compare_digest
from ipaddress import ip_address
from pathlib import Path
from time import monotonic
from typing import Literal, NamedTuple
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moviola.server.page_files import PageFiles, unversioned
from moviola.server.problems import TooLarge, problem

__all__ = [
    "HEADERS",
    "AddedHeaders",
    "Below",
    "BodyLimit",
    "GivenParameters",
    "Guard",
    "Guarded",
    "RawPaths",
    "Right",
    "needed_right",
]

COOKIE = "moviola"
_PAGES = Path(__file__).parent / "page"
OPEN_PATHS = {
    "/healthz", "/favicon.ico", "/static/style.css", "/static/icon.svg", "/static/sign-in.js",
    "/static/base/language.js",
    *(f"/static/languages/{path.name}" for path in (_PAGES / "languages").glob("*.json")),
}  # fmt: skip
"""Need no token: whether the server runs, and what the page to sign in looks like, in any language."""
SIGN_IN = "/sign-in"
_HOST = re.compile(r"(?:\[(?P<six>[0-9a-f:.%]+)\]|(?P<name>[^\[\]:]+))(?::\d{0,5})?")
_FORM = 4096  # bytes of a form with a token
# Wrong tokens that are answered at once, within how many seconds, and the longest pause after them.
_FREE_TRIES, _WITHIN, _LONGEST_PAUSE = 5, 60.0, 8.0
_CLIENTS, _MOST_COUNTED = 1000, 200

log = logging.getLogger("moviola.server")

HEADERS = {
    "content-security-policy": (
        "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",  # "no-referrer" makes the origin of a form "null", and it is refused
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""Of every response: they restrict what browsers do with it."""

# Shown once after a link with a token: a redirect would not carry a SameSite=Strict cookie.
_WELCOME = (
    '<!doctype html><meta charset="utf-8"><title>moviola</title>'
    '<meta http-equiv="refresh" content="0; url=./">'
)


class AddedHeaders:
    """Adds headers to every response below a path, to errors too."""

    def __init__(self, app: ASGIApp, *, headers: Mapping[str, str], below: str = "") -> None:
        self.app, self.headers, self.below = app, headers, below

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(self.headers)
            await send(message)

        concerned = scope["type"] == "http" and scope["path"].startswith(self.below)
        await self.app(scope, receive, with_headers if concerned else send)


class Below:
    """Takes off the path below which a proxy has the server, where the proxy has not done so, and puts it
    before addresses that answers lead to. Inside, the server is at the root.
    """

    def __init__(self, app: ASGIApp, *, root: str) -> None:
        self.app, self.root = app, root

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not self.root:
            await self.app(scope, receive, send)
            return
        if scope["path"] == self.root:  # relative addresses of the page begin after the last slash
            await RedirectResponse(f"{self.root}/", 308)(scope, receive, send)
            return
        if scope["path"].startswith(f"{self.root}/"):
            raw = scope.get("raw_path")
            path = scope["path"].removeprefix(self.root)
            scope = {**scope, "path": path, "raw_path": raw and raw.removeprefix(self.root.encode())}
        own = f"{scope['scheme']}://{Headers(scope=scope).get('host', '')}/"

        async def placed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                if (leads := headers.get("location", "").removeprefix(own[:-1])).startswith("/"):
                    headers["location"] = f"{self.root}{leads}"
            await send(message)

        await self.app(scope, receive, placed)


Right = Literal["read", "change"]
"""What a client may do; who may change may read, too."""

READING_POSTS = frozenset({"/api/search", "/api/curve", "/api/pictures", "/api/export"})
"""Questions that are too long for an address. They change nothing of the library."""


_AT_COST = "/api/questions"
"""Answers of another server's model, at the expense of the owner: they are for those who may ask it."""


def needed_right(method: str, path: str, reading: tuple[str, ...] = ()) -> Right:
    """The right that a request needs: the one place where this is decided.

    Methods that only read need the right to read, and so do :data:`READING_POSTS`, exports, and what lies
    below ``reading``, paths of additions that change nothing of the library. All else needs the other right,
    and so do questions to a model, with their answers.
    """
    reads = (method in ("GET", "HEAD", "OPTIONS") or path in READING_POSTS) and not path.startswith(_AT_COST)
    return "read" if reads or path.startswith(("/api/exports", *reading)) else "change"


class WrongTokens:
    """Wrong tokens by client within a minute: some are answered at once, each further one after a longer
    pause, and the log says so. Right ones never wait.
    """

    def __init__(self) -> None:
        self._times: OrderedDict[str, deque[float]] = OrderedDict()

    def pause(self, client: str) -> float:
        """Seconds to wait before a wrong token of a client is answered."""
        now = monotonic()
        times = self._times.setdefault(client, deque(maxlen=_MOST_COUNTED))
        self._times.move_to_end(client)
        while len(self._times) > _CLIENTS:
            self._times.popitem(last=False)
        while times and times[0] < now - _WITHIN:
            times.popleft()
        times.append(now)
        wrong = len(times) - _FREE_TRIES - 1
        if wrong >= 0 and wrong & (wrong - 1) == 0:  # 0, 1, 2, 4, 8: a line each time that they double
            log.warning("%s: %d wrong tokens within a minute; their answers are delayed", client, len(times))
        return min(_LONGEST_PAUSE, 0.5 * 2**wrong) if wrong >= 0 else 0.0


class Guarded(NamedTuple):
    """What a guard stands before: files of pages, paths of those where a browser without a token may sign in,
    and paths below which the right to read is enough (:func:`needed_right`).
    """

    files: PageFiles
    pages: frozenset[str]
    reading: tuple[str, ...]


class Guard:
    """Refuses foreign hosts and origins, and requests without the token for what they do.

    The right of a client is in ``scope["right"]`` for the app.

    Args:
        tokens: secret for each right; empty for none. Without any, everybody may do everything.
        hosts: allowed names besides ``localhost`` and numeric addresses.
        guarded: what there is.
        root: path below which browsers meet the server, for the cookie.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        tokens: Mapping[Right, str],
        hosts: Iterable[str],
        guarded: Guarded,
        root: str = "",
    ) -> None:
        self.app, self.guarded, self.root = app, guarded, root
        self.tokens = {right: token for right, token in tokens.items() if token}
        self.hosts = {"localhost", *(host.lower() for host in hosts)}
        self._wrong_tokens = WrongTokens()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        headers = Headers(scope=scope)
        refusal = self._wrong_host(headers) or self._wrong_origin(scope, headers)
        if refusal is None and self.tokens and scope["path"] == SIGN_IN:
            refusal = (
                await self._signed_in(scope, receive)
                if scope["method"] == "POST"
                else self._sign_in_page(headers)
            )
        scope["right"] = self._right(scope, headers)
        if refusal is None and scope["right"] is None and not _is_open(scope["path"]):
            await self._delay(scope, self._given(scope, headers))
        refusal = refusal or self._missing_right(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
        elif self.tokens and scope["path"] == "/" and b"token=" in scope["query_string"]:
            await self._welcome(scope, _token_in(scope["query_string"]))(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _wrong_host(self, headers: Headers) -> ASGIApp | None:
        given = headers.getlist("host")
        name = _name_of(given[0]) if len(given) == 1 else ""
        with suppress(ValueError):  # no address in numbers
            if name in self.hosts or ip_address(name):
                return None
        return problem(
            "forbidden",
            f"Host {', '.join(given)[:200]!r}: not a name of this server; use its address, or start it with "
            "--allow-host NAME",
        )

    def _wrong_origin(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        origin = headers.get("origin")
        own = f"{scope['scheme']}://{headers['host']}".lower()
        refused = f"pages of other sites have no access to {own}"
        if origin is not None and origin.lower() != own:
            return problem("forbidden", f"Origin {origin[:200]!r}: {refused}")
        site, mode = headers.get("sec-fetch-site", "none"), headers.get("sec-fetch-mode", "")
        if site in ("cross-site", "same-site") and not (mode == "navigate" and scope["method"] == "GET"):
            return problem("forbidden", f"Sec-Fetch-Site {site}: {refused}")
        return None

    def _right(self, scope: Scope, headers: Headers) -> Right | None:
        """What the client may do; None: nothing."""
        if not self.tokens:
            return "change"
        bearer, linked, *cookies = self._given(scope, headers)
        rights = [
            self._right_of(bearer),
            self._right_of(linked),
            *(self._right_of(one, _cookie_value) for one in cookies),
        ]
        return next(filter(None, rights), None)

    def _given(self, scope: Scope, headers: Headers) -> tuple[str, ...]:
        """What a client has given: as a header, in an address (empty where it has not), and as cookies."""
        kind, _, bearer = headers.get("authorization", "").partition(" ")
        linked = _token_in(scope["query_string"]) if scope["path"] == "/" else ""
        return bearer.strip() if kind.lower() == "bearer" else "", linked, *_cookies(headers)

    async def _delay(self, scope: Scope, given: Iterable[str]) -> None:
        """Wait where a wrong token was given, and has been before."""
        if any(given) and (pause := self._wrong_tokens.pause((scope.get("client") or ("unknown",))[0])):
            await sleep(pause)

    def _right_of(self, given: str, form: Callable[[str], str] = str) -> Right | None:
        """The right that a token, or what is made of it, gives; compared in constant time."""
        data = given.encode("utf-8", "surrogatepass")
        rights = (right for right, token in self.tokens.items() if compare_digest(data, form(token).encode()))
        return next(rights, None)

    def _missing_right(self, scope: Scope, headers: Headers) -> ASGIApp | None:
        needed = needed_right(scope["method"], scope["path"], self.guarded.reading)
        if _is_open(scope["path"]) or scope["right"] in ("change", needed):
            return None
        if scope["right"] == "read":
            return problem(
                "forbidden",
                "token: this one only reads; to change something, sign in with the token that may",
            )
        if scope["path"] in self.guarded.pages and "text/html" in headers.get("accept", ""):
            return self._sign_in_page(headers)
        return problem(
            "unauthorised",
            "token: missing or wrong; send 'Authorization: Bearer TOKEN', or open /?token=TOKEN in a browser",
            {"WWW-Authenticate": "Bearer"},
        )

    async def _signed_in(self, scope: Scope, receive: Receive) -> ASGIApp:
        """What a form with a token gets: a cookie, or the form again."""
        form, more = b"", True
        while more and len(form) < _FORM:
            message = await receive()
            form, more = form + message.get("body", b""), message.get("more_body", False)
        token = _token_in(form)
        if self._right_of(token):
            return self._welcome(scope, token)
        await self._delay(scope, (token,))
        return self._sign_in_page(Headers(scope=scope), "wrong")

    def _sign_in_page(self, headers: Headers, state: str = "") -> ASGIApp:
        """A form for the token; state ``"wrong"`` says that another one was given."""
        plain = Headers({"accept-language": headers.get("accept-language", "")})
        page = bytes(self.guarded.files.page("sign-in", plain).body).replace(
            b'data-state=""', f'data-state="{state}"'.encode()
        )
        return HTMLResponse(page, 401, {"Cache-Control": "no-store", "WWW-Authenticate": "Bearer"})

    def _welcome(self, scope: Scope, token: str) -> ASGIApp:
        answer = HTMLResponse(_WELCOME, headers={"Cache-Control": "no-store"})
        if self._right_of(token):
            answer.set_cookie(
                COOKIE, _cookie_value(token), path=self.root or "/", secure=scope["scheme"] == "https",
                httponly=True, samesite="strict",
            )  # fmt: skip
        return answer


def _is_open(path: str) -> bool:
    return unversioned(path) in OPEN_PATHS


def _cookies(headers: Headers) -> list[str]:
    """The cookies of this name: another server of the host, on another path, may have set one, too."""
    pairs = (part.strip().partition("=") for text in headers.getlist("cookie") for part in text.split(";"))
    return [value.strip('"') for name, _, value in pairs if name == COOKIE]


def _cookie_value(token: str) -> str:
    """Value of the cookie: a digest, not the token itself."""
    return hashlib.sha256(f"moviola cookie {token}".encode()).hexdigest()


class BodyLimit:
    """Stops reading a body of more than ``most`` bytes; ``longer`` has higher limits by how a path begins."""

    def __init__(self, app: ASGIApp, *, most: int, longer: dict[str, int]) -> None:
        self.app, self.most, self.longer = app, most, longer

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        longer = (most for begins, most in self.longer.items() if scope["path"].startswith(begins))
        most, taken = next(longer, self.most), 0
        announced = Headers(scope=scope).get("content-length", "0")
        if announced.isdecimal() and int(announced[:20]) > most:
            refusal = problem("too_large", TooLarge(most).detail, {"Connection": "close"})
            await refusal(scope, receive, send)
            return

        async def counted() -> Message:
            nonlocal taken
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > most:
                raise TooLarge(most)
            return message

        await self.app(scope, counted, send)


class GivenParameters:
    """Drops parameters of the API without a value, which clients send for what they leave out."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        query = scope.get("query_string")
        if scope["type"] == "http" and query and scope["path"].startswith("/api/"):
            parts = query.split(b"&")
            scope["query_string"] = b"&".join(part for part in parts if part.partition(b"=")[2])
        await self.app(scope, receive, send)


class RawPaths:
    """Keeps paths of the API percent-encoded, so that a ``/`` in a video's id does not divide segments."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path")
        if scope["type"] == "http" and raw is not None and raw.startswith(b"/api/"):
            scope["path"] = raw.decode("ascii", "backslashreplace")
        await self.app(scope, receive, send)


def _name_of(host: str) -> str:
    """The host's name or address without its port; empty where it is neither."""
    if found := _HOST.fullmatch(host.strip().lower()):
        return found["six"] or found["name"]
    return ""


def _token_in(fields: bytes) -> str:
    """The token among fields as addresses and forms write them; empty where there is none."""
    try:
        given = parse_qs(fields.decode("latin-1"), max_num_fields=10)
    except ValueError:  # more fields than that
        return ""
    return given.get("token", [""])[0].strip()
