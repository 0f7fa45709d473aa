"""Asking a server from Python, with the values of :mod:`moviola.server.schemas` and, for judging,
:mod:`moviola.server.judging_schemas`."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self, TypeVar
from urllib.parse import quote

import httpx2
from pydantic import BaseModel, ValidationError

from moviola.errors import InvalidValue, LibraryError, MoviolaError, NotFound
from moviola.library.kept import Entry, Kind
from moviola.server.judging_schemas import (
    GivenAnswer,
    JudgingInfo,
    NextBatch,
    ProgressAnswer,
    SignedIn,
    TakenBack,
)
from moviola.server.kept_schemas import KeptList
from moviola.server.schemas import (
    Answer,
    CueList,
    CurveAnswer,
    ExportMoment,
    FoundMoment,
    Job,
    JobList,
    LibraryInfo,
    PictureAnswer,
    ProblemAnswer,
    Shot,
    ShotList,
    SpokenCue,
    VideoDetails,
    VideoList,
)

__all__ = ["Client", "ServerError"]

Model = TypeVar("Model", bound=BaseModel)


class ServerError(MoviolaError):
    """The server refused, or cannot be reached.

    Attributes:
        code: of the error, see :data:`moviola.server.schemas.Code`; ``"unreachable"`` without an answer.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


_ERRORS: dict[str, type[MoviolaError]] = {
    "invalid_value": InvalidValue, "not_found": NotFound, "unavailable": LibraryError,
}  # fmt: skip


class Client:
    """A server of a library.

    Every method raises :class:`moviola.errors.InvalidValue`, :class:`moviola.errors.NotFound` or
    :class:`moviola.errors.LibraryError` where the library would, and :class:`ServerError` for what only a
    server refuses.

    Args:
        url: of the server, as ``moviola serve`` prints it.
        token: that it asks for; empty for none.
        http: what sends requests instead of a client made for ``url``.

    >>> with Client("http://127.0.0.1:8765") as library:  # doctest: +SKIP
    ...     for moment in library.search("a dog runs on a beach").moments:
    ...         print(moment.video_id, moment.start, moment.end, moment.score)
    """

    def __init__(
        self, url: str = "http://127.0.0.1:8765", token: str = "", *, http: httpx2.Client | None = None
    ) -> None:
        self._http = httpx2.Client(base_url=url, timeout=60.0) if http is None else http
        if token:
            self._http.headers["Authorization"] = f"Bearer {token}"

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what is there ---------------------------------------------------------------------------------------

    def library(self) -> LibraryInfo:
        """What the library holds and what its server does with it."""
        return self._get(LibraryInfo, "/api/library")

    def videos(
        self, *, offset: int = 0, limit: int = 50, state: str | None = None, text: str = ""
    ) -> VideoList:
        """Some of the videos; ``text`` stands in their ids or paths."""
        asked = {"offset": offset, "limit": limit, "text": text, **({"state": state} if state else {})}
        return self._get(VideoList, "/api/videos", asked)

    def video(self, video_id: str) -> VideoDetails:
        """One video."""
        return self._get(VideoDetails, _path(video_id))

    def shots(self, video_id: str) -> list[Shot]:
        """Its shots."""
        return self._get(ShotList, _path(video_id, "shots")).shots

    def cues(self, video_id: str, start: float = 0.0, end: float | None = None) -> list[SpokenCue]:
        """What is said and written in it between two times."""
        asked = {"start": start} | ({} if end is None else {"end": end})
        return self._get(CueList, _path(video_id, "cues"), asked).cues

    def still(self, video_id: str, time: float, width: int = 320) -> bytes:
        """The frame on screen at a time, a JPEG."""
        return self._send("GET", _path(video_id, "still"), params={"time": time, "width": width}).content

    def clip(
        self,
        video_id: str,
        start: float,
        end: float,
        out: Path,
        mode: Literal["exact", "copy"] = "exact",
        *,
        track: int | str | None = None,
    ) -> None:
        """Write a moment to an MP4; ``track`` of its sound is a number or a language."""
        asked: dict[str, Any] = {"start": start, "end": end, "mode": mode}
        if track is not None:
            asked["track"] = track
        out.write_bytes(self._send("GET", _path(video_id, "clip"), params=asked).content)

    # -- searching -------------------------------------------------------------------------------------------

    def search(self, query: str | Mapping[str, Any], **options: Any) -> Answer:
        """Moments that answer a query.

        Args:
            query: a text, or what :class:`moviola.server.schemas.AskedQuery` reads.
            options: the other fields of :class:`moviola.server.schemas.SearchRequest`.
        """
        return self._post(Answer, "/api/search", {"query": query, **options})

    def curve(self, query: str | Mapping[str, Any], video_id: str) -> CurveAnswer:
        """How well each part of a video matches a query."""
        return self._post(CurveAnswer, "/api/curve", {"query": query, "video_id": video_id})

    def send_picture(self, path: Path) -> str:
        """Send a picture; gives the id by which a query names it: ``{"terms": [{"picture": ID}]}``."""
        answer = self._send(
            "POST", "/api/pictures", content=path.read_bytes(), headers={"Content-Type": "image/*"}
        )
        return _read(PictureAnswer, answer).picture

    # -- taking away, bringing in ----------------------------------------------------------------------------

    def export(
        self,
        moments: Sequence[FoundMoment | ExportMoment | Mapping[str, Any]],
        format: str,
        out: Path,
        *,
        title: str = "moments",
        **options: Any,
    ) -> None:
        """Write moments to a file in one of the library's export formats."""
        rows = [moment.model_dump() if isinstance(moment, BaseModel) else moment for moment in moments]
        fields = ExportMoment.model_fields
        chosen = [{key: value for key, value in row.items() if key in fields} for row in rows]
        asked = {"format": format, "title": title, "moments": chosen, "options": options}
        out.write_bytes(self._send("POST", "/api/export", json=asked).content)

    def index(self, *sources: str, ocr: bool | None = None) -> Job:
        """Begin to bring files and folders into the library, reading text in pictures or not.

        How it goes on is heard from :meth:`events`.
        """
        return self._post(Job, "/api/jobs", {"sources": sources, "ocr": ocr})

    def kept(self, kind: Kind | None = None) -> list[Entry]:
        """What people keep, of a kind or all."""
        return self._get(KeptList, "/api/kept", {"kind": kind} if kind else {}).entries

    def keep(self, kind: Kind, name: str, value: Mapping[str, Any], version: int | None = None) -> Entry:
        """Keep something; see :meth:`moviola.library.kept.Kept.put`."""
        asked = {"kind": kind, "name": name, "value": dict(value), "version": version}
        return _read(Entry, self._send("PUT", "/api/kept", json=asked))

    def unkeep(self, kind: Kind, name: str, version: int | None = None) -> None:
        """Keep something no longer."""
        asked = {"kind": kind, "name": name} | ({} if version is None else {"version": version})
        self._send("DELETE", "/api/kept", params=asked)

    def export_kept(self) -> list[str]:
        """All that people keep, as lines of JSON; see :meth:`moviola.library.kept.Kept.export`."""
        return self._send("GET", "/api/kept/lines").text.splitlines()

    def import_kept(self, lines: Iterable[str]) -> list[Entry]:
        """Keep what lines of JSON hold; gives what was taken, see :meth:`moviola.library.kept.Kept.take`."""
        content = "".join(f"{line}\n" for line in lines).encode()
        return _read(KeptList, self._send("POST", "/api/kept/lines", content=content)).entries

    def jobs(self) -> list[Job]:
        """All jobs since the server was started."""
        return self._get(JobList, "/api/jobs").jobs

    def job(self, job: str) -> Job:
        """One of them."""
        return self._get(Job, f"/api/jobs/{quote(job, safe='')}")

    def cancel(self, job: str) -> Job:
        """End it."""
        return _read(Job, self._send("DELETE", f"/api/jobs/{quote(job, safe='')}"))

    def events(self, job: str) -> Generator[tuple[str, Job], None, None]:
        """What happens to a job, as it happens: names and the job, until it has ended."""
        with self._http.stream("GET", f"/api/jobs/{quote(job, safe='')}/events", timeout=None) as answer:
            if answer.status_code >= 400:
                answer.read()
                raise _error(answer)
            name = ""
            for line in answer.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data":
                    yield name, Job.model_validate_json(value)

    # -- judging, where the server has a task ----------------------------------------------------------------

    def judging(self) -> JudgingInfo:
        """What is judged, by what guideline."""
        return self._get(JudgingInfo, "/api/judging")

    def sign_in(self, rater: str) -> str:
        """Judge under a name; gives it as it was first written."""
        return self._post(SignedIn, "/api/judging/sign-in", {"rater": rater}).rater

    def next_batch(self, rater: str) -> NextBatch:
        """The batch that a rater holds, else another that needs one."""
        return self._post(NextBatch, "/api/judging/next", {"rater": rater})

    def judge(self, rater: str, pair_id: str, level: int | None) -> None:
        """Give a moment a level, 0 to 4, or pass it over with None; it is on the disk when this returns."""
        self._post(GivenAnswer, "/api/judging/answers", {"rater": rater, "pair_id": pair_id, "level": level})

    def take_back(self, rater: str, pair_id: str) -> None:
        """Take a rater's answer on a moment back."""
        self._post(TakenBack, "/api/judging/undo", {"rater": rater, "pair_id": pair_id})

    def judging_progress(self) -> ProgressAnswer:
        """How far all raters are, what they agree on, how well."""
        return self._get(ProgressAnswer, "/api/judging/progress")

    def export_judged(self, out: Path, form: str = "tvr_ranking") -> None:
        """Write what raters agreed on to a file; the forms stand in :meth:`judging`."""
        out.write_bytes(self._send("GET", "/api/judging/export", params={"form": form}).content)

    # -- requests --------------------------------------------------------------------------------------------

    def _get(self, model: type[Model], path: str, asked: Mapping[str, Any] | None = None) -> Model:
        return _read(model, self._send("GET", path, params=asked))

    def _post(self, model: type[Model], path: str, body: Any) -> Model:
        return _read(model, self._send("POST", path, json=body))

    def _send(self, method: str, path: str, **options: Any) -> httpx2.Response:
        try:
            answer = self._http.request(method, path, **options)
        except httpx2.TransportError as error:
            raise ServerError(
                "unreachable", f"{self._http.base_url}: no answer ({error}); start `moviola serve` there"
            ) from error
        if answer.status_code >= 400:
            raise _error(answer)
        return answer


def _path(video_id: str, what: str = "") -> str:
    """An id is one segment of the path, whatever is in it."""
    return f"/api/videos/{quote(video_id, safe='')}{f'/{what}' if what else ''}"


def _read(model: type[Model], answer: httpx2.Response) -> Model:
    return model.model_validate_json(answer.content)


def _error(answer: httpx2.Response) -> MoviolaError:
    try:
        problem = ProblemAnswer.model_validate_json(answer.content).error
    except ValidationError:
        return ServerError("internal", f"{answer.url}: {answer.status_code}, not an answer of moviola")
    kind = _ERRORS.get(problem.code)
    return kind(problem.message) if kind else ServerError(problem.code, problem.message)
