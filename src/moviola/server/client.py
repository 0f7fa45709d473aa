"""Python client of a server, with the values of its requests and responses."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self, TypeVar
from urllib.parse import quote

import httpx2
from pydantic import BaseModel, ValidationError

from moviola.errors import InvalidValue, LibraryError, MoviolaError, NotFound
from moviola.library.kept.values import Entry, Kind
from moviola.server import schemas
from moviola.server.routes.kept import KeptList

__all__ = ["Client", "ServerError"]

Model = TypeVar("Model", bound=BaseModel)


class ServerError(MoviolaError):
    """An error of the server, or no connection to it.

    ``code`` is one of :data:`moviola.server.schemas.Code`, or ``"unreachable"`` without a response.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


_ERRORS: dict[str, type[MoviolaError]] = {
    "invalid_value": InvalidValue, "not_found": NotFound, "unavailable": LibraryError,
}  # fmt: skip


class Client:
    """A client of a library's server.

    Methods raise :class:`moviola.errors.InvalidValue`, :class:`moviola.errors.NotFound` or
    :class:`moviola.errors.LibraryError` as the library would, and :class:`ServerError` for errors that only a
    server has.

    Args:
        url: address of the server, as ``moviola serve`` prints it, with its token or without.
        token: the server's token; empty for that of ``url``, if any.
        http: HTTP client to use in place of one for ``url``.

    Raises:
        InvalidValue: ``url`` is no address of a server.

    >>> with Client("http://127.0.0.1:8765") as library:  # doctest: +SKIP
    ...     for moment in library.search("a dog runs on a beach").moments:
    ...         print(moment.video_id, moment.start, moment.end, moment.score)
    """

    def __init__(
        self, url: str = "http://127.0.0.1:8765", token: str = "", *, http: httpx2.Client | None = None
    ) -> None:
        if http is None:
            address = _address(url)
            token = token or address.params.get("token", "")
            http = httpx2.Client(base_url=address.copy_with(query=None), timeout=60.0)
        self._http = http
        if token:  # without the end of the line that it was read from
            self._http.headers["Authorization"] = f"Bearer {token.strip()}"

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def library(self) -> schemas.LibraryInfo:
        """Contents and abilities of the library and its server."""
        return self._get(schemas.LibraryInfo, "/api/library")

    def videos(
        self, *, offset: int = 0, limit: int = 50, state: str | None = None, text: str = ""
    ) -> schemas.VideoList:
        """A page of the videos; ``text`` filters ids and paths."""
        wanted = {"offset": offset, "limit": limit, "text": text, "state": state or None}
        return self._get(schemas.VideoList, "/api/videos", **wanted)

    def video(self, video_id: str) -> schemas.VideoDetails:
        """One video."""
        return self._get(schemas.VideoDetails, _path(video_id))

    def shots(self, video_id: str) -> list[schemas.Shot]:
        """The shots of a video."""
        return self._get(schemas.ShotList, _path(video_id, "shots")).shots

    def cues(self, video_id: str, start: float = 0.0, end: float | None = None) -> list[schemas.SpokenCue]:
        """The cues of a video between two times."""
        return self._get(schemas.CueList, _path(video_id, "cues"), start=start, end=end).cues

    def still(self, video_id: str, time: float, width: int = 320) -> bytes:
        """The frame at a time, as JPEG."""
        return self._send("GET", _path(video_id, "still"), params={"time": time, "width": width}).content

    def clip(
        self,
        video_id: str,
        start: float,
        end: float,
        out: str | Path,
        mode: Literal["exact", "key-frames"] = "exact",
        *,
        track: int | str | None = None,
    ) -> None:
        """Save a moment as MP4; ``mode`` as of :func:`moviola.export.export_clip`, ``track`` is the number or
        language of its sound.
        """
        params = {"start": start, "end": end, "mode": mode, "track": track}
        Path(out).write_bytes(self._send("GET", _path(video_id, "clip"), params=params).content)

    def search(self, query: str | Mapping[str, Any], **options: Any) -> schemas.Answer:
        """The answer to a query.

        Args:
            query: a text, or a value of :class:`moviola.server.schemas.AskedQuery`.
            options: the other fields of :class:`moviola.server.schemas.SearchRequest`.
        """
        return self._post(schemas.Answer, "/api/search", {"query": query, **options})

    def curve(self, query: str | Mapping[str, Any], video_id: str) -> schemas.CurveAnswer:
        """Score curve of a query in a video."""
        return self._post(schemas.CurveAnswer, "/api/curve", {"query": query, "video_id": video_id})

    def send_picture(self, path: str | Path) -> str:
        """Upload a picture; returns its id for queries: ``{"terms": [{"picture": ID}]}``."""
        answer = self._send(
            "POST", "/api/pictures", content=Path(path).read_bytes(), headers={"Content-Type": "image/*"}
        )
        return _read(schemas.PictureAnswer, answer).picture

    def export(
        self,
        moments: Sequence[schemas.FoundMoment | schemas.ExportMoment | Mapping[str, Any]],
        format: str,
        out: str | Path,
        *,
        title: str = "moments",
        **options: Any,
    ) -> None:
        """Save moments as a file in one of the library's export formats."""
        rows = [moment.model_dump() if isinstance(moment, BaseModel) else moment for moment in moments]
        fields = schemas.ExportMoment.model_fields
        chosen = [{key: value for key, value in row.items() if key in fields} for row in rows]
        body = {"format": format, "title": title, "moments": chosen, "options": options}
        Path(out).write_bytes(self._send("POST", "/api/export", json=body).content)

    def index(self, *sources: str, ocr: bool | None = None) -> schemas.Job:
        """Start a job that indexes files and folders, text in pictures by ``ocr``; see :meth:`events`."""
        return self._post(schemas.Job, "/api/jobs", {"sources": sources, "ocr": ocr})

    def kept(self, kind: Kind | None = None) -> list[Entry]:
        """Saved searches, collections, tags and ratings, of one kind or all."""
        return self._get(KeptList, "/api/kept", kind=kind).entries

    def keep(self, kind: Kind, name: str, value: Mapping[str, Any], version: int | None = None) -> Entry:
        """Store an entry; see :meth:`moviola.library.kept.entries.Kept.put`."""
        body = {"kind": kind, "name": name, "value": dict(value), "version": version}
        return _read(Entry, self._send("PUT", "/api/kept", json=body))

    def unkeep(self, kind: Kind, name: str, version: int | None = None) -> None:
        """Delete an entry."""
        self._send("DELETE", "/api/kept", params={"kind": kind, "name": name, "version": version})

    def export_kept(self) -> list[str]:
        """All that people keep, as lines of JSON; see :meth:`moviola.library.kept.entries.Kept.export`."""
        return self._send("GET", "/api/kept/lines").text.split("\n")[:-1]

    def import_kept(self, lines: Iterable[str]) -> list[Entry]:
        """Keep what lines of JSON hold; returns the stored entries, see
        :meth:`moviola.library.kept.entries.Kept.take`.
        """
        content = "".join(f"{line}\n" for line in lines).encode()
        return _read(KeptList, self._send("POST", "/api/kept/lines", content=content)).entries

    def jobs(self) -> list[schemas.Job]:
        """All jobs since the server started."""
        return self._get(schemas.JobList, "/api/jobs").jobs

    def job(self, job: str) -> schemas.Job:
        """One job."""
        return self._get(schemas.Job, f"/api/jobs/{quote(job, safe='')}")

    def cancel(self, job: str) -> schemas.Job:
        """End a job."""
        return _read(schemas.Job, self._send("DELETE", f"/api/jobs/{quote(job, safe='')}"))

    def events(self, job: str) -> Generator[tuple[str, schemas.Job], None, None]:
        """Events of a job as they happen, until it has ended."""
        address = f"/api/jobs/{quote(job, safe='')}/events"
        with self._reached(), self._http.stream("GET", address, timeout=None) as answer:
            if answer.status_code >= 400:
                answer.read()
                raise _error(answer)
            name = rest = ""
            for text in answer.iter_text():
                *lines, rest = (rest + text).split("\n")  # names of files may hold other ends of lines
                for line in lines:
                    field, _, value = line.partition(": ")
                    if field == "event":
                        name = value
                    elif field == "data":
                        yield name, schemas.Job.model_validate_json(value)

    def _get(self, model: type[Model], path: str, **params: Any) -> Model:
        return _read(model, self._send("GET", path, params=params))

    def _post(self, model: type[Model], path: str, body: Any) -> Model:
        return _read(model, self._send("POST", path, json=body))

    def _send(
        self, method: str, path: str, params: Mapping[str, Any] | None = None, **options: Any
    ) -> httpx2.Response:
        """The answer to a request; parameters that are None are left out."""
        given = {name: value for name, value in (params or {}).items() if value is not None}
        with self._reached():
            answer = self._http.request(method, path, params=given, **options)
        if answer.status_code >= 400:
            raise _error(answer)
        return answer

    @contextmanager
    def _reached(self) -> Iterator[None]:
        """A connection that fails, as an error of the server."""
        try:
            yield
        except httpx2.ReadTimeout as error:  # as a long film may take to export
            message = (
                f"{self._http.base_url}: no answer yet ({error}); ask again later, or give the client "
                "one with a longer timeout as `http`"
            )
            raise ServerError("unreachable", message) from error
        except httpx2.TransportError as error:
            message = f"{self._http.base_url}: no answer ({error}); start `moviola serve` there"
            raise ServerError("unreachable", message) from error


def _address(url: str) -> httpx2.URL:
    try:
        address = httpx2.URL(url)
    except httpx2.InvalidURL as error:
        raise InvalidValue(f"url {url!r}: {error}; give the address that `moviola serve` prints") from error
    if address.scheme not in ("http", "https"):
        raise InvalidValue(f"url {url!r}: no http:// or https:// before it; give that, too")
    return address


def _path(video_id: str, what: str = "") -> str:
    """An id as one segment of the path, percent-encoded."""
    return f"/api/videos/{quote(video_id, safe='')}{f'/{what}' if what else ''}"


def _read(model: type[Model], answer: httpx2.Response) -> Model:
    try:
        return model.model_validate_json(answer.content)
    except ValidationError as error:
        message = f"{answer.url}: {answer.status_code}, not an answer of this moviola; check the address"
        raise ServerError("internal", message) from error


def _error(answer: httpx2.Response) -> MoviolaError:
    try:
        problem = _read(schemas.ProblemAnswer, answer).error
    except ServerError as error:
        return error
    kind = _ERRORS.get(problem.code)
    return kind(problem.message) if kind else ServerError(problem.code, problem.message)
