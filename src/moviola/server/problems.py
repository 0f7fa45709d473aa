"""Errors as HTTP responses: ``{"error": {"code": …, "message": …}}`` with a status."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path
from reprlib import Repr
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from moviola.errors import InvalidValue, MediaError, MoviolaError, NotFound, shortened
from moviola.search.schema import place_of
from moviola.server.progress import Progress
from moviola.server.schemas import Code, Problem, ProblemAnswer, WorkProgress

__all__ = [
    "ANSWERS", "Busy", "Defects", "Forbidden", "TooLarge", "WrongField", "handle_problems",
    "message_of", "problem", "require_known_parameters", "unexpected", "wrong_field",
]  # fmt: skip

log = logging.getLogger("moviola.server")


class Busy(Exception):
    """Too much is waiting, or something is not done yet; ``progress`` is that of it, where it is known."""

    def __init__(self, message: str, progress: Progress | None = None) -> None:
        super().__init__(message)
        self.progress = progress


class Forbidden(Exception):
    """The client has no access to this."""


STATUS: dict[Code, int] = {
    "invalid_value": 422, "not_found": 404, "method": 405, "too_large": 413, "unauthorised": 401,
    "forbidden": 403, "busy": 503, "unavailable": 409, "internal": 500, "version": 412, "media_type": 415,
    "checksum": 460, "range": 416,
}  # fmt: skip

ANSWERS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemAnswer, "description": description}
    for status, description in (
        (401, "Missing or wrong token"), (403, "Request of another site, or with a foreign host name"),
        (404, "No such video, folder, picture or job"), (409, "Not possible with this library or file"),
        (413, "Body too large"), (422, "Invalid value"), (500, "A defect; the server's log says more"),
        (503, "Server busy; try again after Retry-After"),
    )
}  # fmt: skip
"""Error responses of all routes, for the OpenAPI document."""

# The first matching class counts.
CODES: dict[type[Exception], Code] = {
    NotFound: "not_found", InvalidValue: "invalid_value", MoviolaError: "unavailable", Busy: "busy",
    Forbidden: "forbidden",
}  # fmt: skip


class TooLarge(HTTPException):
    """A request's body is too large."""

    def __init__(self, most: int) -> None:
        # The rest of a chunked body would be read to its end, however long it is.
        super().__init__(413, f"body: more than {most:,} bytes; send less", {"Connection": "close"})


class WrongField(MoviolaError):
    """One field of a request is wrong.

    Attributes:
        field: its name, with dots: ``filter.taken``.
        error: what is wrong with it; gives the response its code and message.
        longest: maximum number of characters, if the field has more.
    """

    def __init__(self, field: str, error: MoviolaError, longest: int | None = None) -> None:
        super().__init__(str(error))
        self.field, self.error, self.longest = field, error, longest


def problem(
    code: Code,
    message: str,
    headers: Mapping[str, str] | None = None,
    *,
    field: str = "",
    longest: int | None = None,
    progress: Progress | None = None,
) -> JSONResponse:
    """An error as an answer; of halves of characters, which JSON cannot carry, the number is written."""
    message, field = (
        shortened(text).encode("utf-8", "backslashreplace").decode() for text in (message, field)
    )
    about = None if progress is None else WorkProgress.model_validate(progress)
    error = Problem(code=code, message=message, field=field, longest=longest, progress=about)
    extra = {"Retry-After": "1"} if code == "busy" else {}
    return JSONResponse({"error": error.model_dump()}, STATUS[code], {**extra, **(headers or {})})


def handle_problems(app: FastAPI) -> None:
    """Install handlers that give all errors of an app one form."""
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    for kind in CODES:
        app.add_exception_handler(kind, _known)


async def require_known_parameters(request: Request) -> None:
    """Refuse a parameter that an address of the API does not take: passed over, it would change the answer.

    Raises:
        WrongField: there is one; ``field`` is its name.
    """
    known = {field.alias for field in request.scope["route"].dependant.query_params}
    unknown = sorted(set(request.query_params) - known)
    # Monitors add parameters of their own to addresses outside of the API.
    if unknown and request.scope["path"].startswith("/api/"):
        takes = ", ".join(sorted(known)) or "none"
        raise WrongField(
            unknown[0], InvalidValue(f"{unknown[0]:.100}: no parameter of this address; it takes {takes}")
        )


def message_of(error: Exception) -> str:
    """What an error says, without the path of a video."""
    message = str(error)
    if isinstance(error, MediaError):
        message = message.replace(str(error.path), Path(error.path).name)
    return message


def unexpected(error: Exception) -> str:
    """The message on a job that an unexpected exception ended."""
    reason = ": ".join(filter(None, (type(error).__name__, str(error))))
    return f"an unexpected error ended it ({reason:.300}); the server's log says where"


async def _known(request: Request, error: Exception) -> JSONResponse:
    about: dict[str, Any] = {}
    if isinstance(error, Busy):
        about = {"progress": error.progress}
    elif isinstance(error, WrongField):
        about = {"field": error.field, "longest": error.longest}
        error = error.error
    elif isinstance(error, MoviolaError):
        about = {"field": error.place}
    code = next(code for kind, code in CODES.items() if isinstance(error, kind))
    service = request.app.state.service
    return problem(code, service.uploads.named(service.without_paths(message_of(error))), **about)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    """The first validation error, with its field and value, which may be anything."""
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        reason = first.get("ctx", {}).get("error", first["msg"])
        return problem("invalid_value", f"body: no JSON ({reason}, at {first['loc'][-1]})")
    field = place_of(first["loc"][1:])
    if not field and isinstance(first.get("input"), bytes):  # what is not said to be JSON is not read as such
        return problem(
            "invalid_value", "body: not sent as JSON; add the header Content-Type: application/json"
        )
    longest = first["ctx"]["max_length"] if first["type"] == "string_too_long" else None
    return problem("invalid_value", _complaint(field or "body", first), field=field, longest=longest)


def wrong_field(error: ValidationError, below: str) -> WrongField:
    """The first validation error of a value that stands below a field of a request."""
    first = error.errors()[0]
    place = place_of(first["loc"])
    message = _complaint(place or below, first)
    return WrongField(f"{below}.{place}".removesuffix("."), InvalidValue(message))


# The fault, by pydantic's type of the error, where the field says it all.
_SAID = {
    "string_too_short": "is empty; give something", "too_short": "is empty; give something",
    "missing": "is missing; give it", "extra_forbidden": "no such field here; check the spelling",
}  # fmt: skip
# The values to give instead, by the same type.
_WANTED = {
    "greater_than_equal": "at least {ge:,.16g}", "greater_than": "a number above {gt:,.16g}",
    "less_than_equal": "at most {le:,.16g}", "less_than": "a number below {lt:,.16g}",
    "literal_error": "{expected}",
    **dict.fromkeys(("int_parsing", "int_parsing_size", "int_type", "int_from_float"), "a whole number"),
    **dict.fromkeys(("float_parsing", "float_type", "finite_number"), "a number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "true or false"),
    **dict.fromkeys(("model_attributes_type", "model_type", "dict_type"), "an object of JSON"),
    "string_type": "a text", "list_type": "a list",
}  # fmt: skip
_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = 60


def _complaint(field: str, error: Mapping[str, Any]) -> str:
    """What pydantic says of a field's value, for people who have never heard of it."""
    limits, kind, given = error.get("ctx", {}), error["type"], error.get("input")
    if kind == "string_too_long":
        said = f"; these are {len(given):,}" if isinstance(given, str) else ""
        return f"{field}: at most {limits['max_length']:,} characters{said}"
    if kind == "too_long":
        return f"{field}: at most {limits['max_length']:,}"
    if plain := _SAID.get(kind):
        return f"{field}: {plain}"
    if wanted := _WANTED.get(kind):
        return f"{field} {_SHORT.repr(given)}: give {wanted.format_map(limits)}"
    said = str(error["msg"]).removeprefix("Value error, ").removeprefix("Input ")
    return f"{field} {_SHORT.repr(given)}: {said}"


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    said, address = str(error.detail), f"{request.method} {request.scope['path'][:200]}"
    codes: list[Code] = [code for code, status in STATUS.items() if status == error.status_code]
    if error.status_code == 400:  # FastAPI's, for a body that is not even text
        return problem("invalid_value", "body: no JSON; send one JSON document in UTF-8")
    if said == "Not Found":
        said = f"{address}: nothing has this address; /api/openapi.json lists those that there are"
    elif said == "Method Not Allowed":
        allowed = ", ".join(_methods(request))
        return problem("method", f"{address}: this address takes {allowed}", {"Allow": allowed})
    return problem((*codes, "invalid_value")[0], said, error.headers)


def _methods(request: Request) -> list[str]:
    """The methods of all routes of a request's path; the framework names those of the first one."""
    routes = (route for route in request.app.state.routes if route.matches(request.scope)[0] != Match.NONE)
    found = {method for route in routes for method in getattr(route, "methods", None) or {"GET", "HEAD"}}
    return sorted(found)


class Defects:
    """Turns unexpected exceptions into 500, in the one form of errors; the log gets the traceback."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except ClientDisconnect:  # while it sent its request: there is nobody to answer
            log.info("%s %s: the client left", scope["method"], scope["path"])
        except Exception as error:
            log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            if begun:
                raise  # a partial response is broken off, so that it cannot pass for a whole one
            answer = problem("internal", "the server failed on this request; its log says where")
            await answer(scope, receive, send)
