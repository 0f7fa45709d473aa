"""The four tools. The SDK derives schemas from their signatures, and runs each call in a thread."""

from __future__ import annotations

import inspect
import os
from base64 import b64encode
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from threading import Lock
from typing import Annotated, Any

import numpy as np
from mcp.types import CallToolResult, ImageContent, TextContent
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from pydantic import BaseModel, Field

from moviola.errors import InvalidValue, MediaError, NotFound
from moviola.export import KeptStill, export_clip, moment_cells
from moviola.files.moments import moment_row
from moviola.files.names import folded
from moviola.library import VideoRow, there
from moviola.mcp import values
from moviola.media import frame_at, sheet_picture
from moviola.search import Asked, Filter, KeptPicture, Library, LikePicture, SearchResult
from moviola.search.filters import FILTERS
from moviola.search.forms import assumed_distance
from moviola.search.found import still_there
from moviola.search.schema import Filters, Query, options_for
from moviola.types import Moment, Span, clock

__all__ = ["LONGEST_SIDE", "ClipTool", "LibraryTools", "picture"]

_UNCERTAIN = (
    "Nothing certain; {count} possible. More of these are wrong than right: look at the sheet, and `look` at "
    "one before you use it, or ask in other words."
)
_NO_MATCH = (
    "Nothing matches: these are only the nearest moments. Ask in other words, or say that nothing was found."
)
_NOTHING = (
    "No moment at all: the filters, `videos` (refused ones have none) or `without` leave nothing over, or "
    "the library knows nothing like it. Ask with fewer of them, or in other words."
)
_NEAREST = 3  # moments of an answer that nothing in the library fits
_COLUMNS = 4
_STILL_WIDTHS = (1024, 512)  # widths in pixels of a single still, and of one of several
_MOST_WORDS = 40
LONGEST_SIDE = 1568
"""Pixels. Vision models shrink larger pictures themselves."""

_QUALITY = 80
_FILTER = "Which videos to search, and which of their moments count: texts by name."


def about(description: str, **limits: Any) -> Any:
    """What an agent reads of a parameter."""
    return Field(description=description, **limits)


def _plain(value: Any) -> Any:
    """A parameter as JSON."""
    return value.model_dump() if isinstance(value, BaseModel) else value


def _question_parameters() -> Iterator[inspect.Parameter]:
    """The parameters of a question: its query, and the fields that the table declares."""
    filters = Filters | None, about(_FILTER, default=None)
    kinds = {"query": (Query, inspect.Parameter.empty), **options_for("agents"), "filter": filters}
    for name, (kind, default) in kinds.items():
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)


class LibraryTools:
    """Read-only tools on a library.

    Args:
        library: opened; used from several threads.
        pictures: folders besides the library's own from which a picture may be searched with.
    """

    def __init__(self, library: Library, pictures: Sequence[Path] = ()) -> None:
        self._library, self._pictures = library, pictures

    def search_moments(self, **fields: Any) -> Annotated[CallToolResult, values.FoundMoments]:
        """Find moments in the videos: a ranked list, and one contact sheet with a still of each.

        `query` is what is seen or said, in a few plain words: "a dog runs on a beach"; or an object with
        more than that. To improve an answer, search again with `right` and `wrong` moments of it in such an
        object; they may be all of it. The other parameters narrow the search. A word that begins with @
        names a concept of the library.
        """
        given = {name: _plain(value) for name, value in fields.items()}
        question = Asked.from_json(given, self._picture)
        answered = self._library.search(question.query, question.options)
        found, present, away = still_there(answered, self._library.catalogue)
        sources = {video_id: video.path for video_id, video in present.items()}
        likely = bool(found.strong or found.possible)
        near = (given.get("filter") or {}).get("near")
        moments = []
        for one in found if likely else found[:_NEAREST]:
            why, path = ", ".join(map(str, one.why)), sources[one.video_id]
            row = moment_row(one) | {"path": path, "why": why, "folded": len(one.folded)}
            moments.append(values.FoundMoment.model_validate(row))
        notes = [f"{str(note)[0].upper()}{str(note)[1:]}." for note in found.notes]
        answer = values.FoundMoments(
            query=str(found.query or question.query), confident=found.confident, moments=moments,
            note=" ".join(filter(None, [_said_of(found), *notes, assumed_distance(near)])),
        )  # fmt: skip
        here = {video_id: path for video_id, path in sources.items() if video_id not in away}
        return _answer(answer, _sheet(found, here, answer, self._library.store.kept_still) if likely else [])

    def look(
        self,
        video_id: values.VideoId,
        start: values.Seconds,
        end: values.Seconds,
        frames: Annotated[int, about("Number of stills, evenly spread.", ge=1, le=12)] = 6,
    ) -> Annotated[CallToolResult, values.Stills]:
        """Look at a stretch of a video: stills with their times drawn on, and what is said meanwhile.

        Use it to check a moment of a search, or to find where exactly something begins and ends.
        """
        video, span = _stretch(self._library, video_id, start, end)
        times = [span.start + (number + 0.5) * span.duration / frames for number in range(frames)]
        width = _STILL_WIDTHS[frames > 1]
        cues = self._library.catalogue.cues(video.row)
        meanwhile = [cue for cue in cues if cue.start < span.end and cue.end > span.start]
        answer = values.Stills(
            video_id=video_id, path=video.path, duration=video.duration, start=span.start, end=span.end,
            times=times,
            words=[values.Said.model_validate(cue, from_attributes=True) for cue in meanwhile[:_MOST_WORDS]],
        )  # fmt: skip
        return _answer(answer, [_timed_still(Path(video.path), time, width) for time in times])

    def list_videos(
        self,
        text: Annotated[str | None, about("Only videos with this in their id or path.")] = None,
        folder: Annotated[str | None, about(FILTERS["folder"].help)] = None,
        offset: Annotated[int, about("Number of videos to skip.", ge=0)] = 0,
        limit: Annotated[int, about("Maximum number of videos.", ge=1, le=200)] = 50,
    ) -> Annotated[CallToolResult, values.ListedVideos]:
        """List the videos of the library with their ids, files and lengths, page by page."""
        videos = {video.row: video for video in self._library.catalogue.videos()}
        rows = Filter(folder=folder).rows(videos, self._library.catalogue)
        wanted = folded(text or "")
        matching = [
            video
            for row, video in videos.items()
            if (rows is None or row in rows) and wanted in folded(f"{video.video_id}\n{video.path}")
        ]
        last = offset + limit
        page = [
            values.ListedVideo.model_validate(video, from_attributes=True) for video in matching[offset:last]
        ]
        return _answer(
            values.ListedVideos(
                total=len(matching), videos=page, next_offset=last if last < len(matching) else None
            )
        )

    def _picture(self, name: str) -> LikePicture | KeptPicture:
        return KeptPicture(name) if KeptPicture.is_name(name) else LikePicture(self._allowed(name))

    def _allowed(self, name: str) -> Path:
        """Where a picture lies, if agents may see it."""
        roots = [Path(root.path) for root in self._library.catalogue.roots()]
        allowed = [folder.resolve() for folder in (*roots, *self._pictures)]
        try:
            path = Path(name).expanduser()
            found = path.resolve()
        except (OSError, RuntimeError, ValueError) as error:
            raise NotFound(f"picture {name!r:.200}: cannot be followed ({error!s:.200})") from error
        if not any(found.is_relative_to(folder) for folder in allowed):
            raise InvalidValue(
                f"picture {name!r:.200}: outside of the folders from which pictures may be used "
                f"({', '.join(map(str, allowed)) or 'none'}); put it into one of them"
            )
        return path


_SELF = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
# The SDK asks a function for its signature.
LibraryTools.search_moments.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [_SELF, *_question_parameters()], return_annotation=Annotated[CallToolResult, values.FoundMoments]
)


class ClipTool:
    """Cuts clips into one folder, and writes nowhere else.

    Args:
        library: opened.
        folder: for the clips; made when missing.

    Raises:
        InvalidValue: the folder cannot be made, or lies in the library's.
    """

    def __init__(self, library: Library, folder: Path) -> None:
        self._library, self._folder = library, folder.resolve()
        self._lock = Lock()
        library.store.require_outside(folder)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidValue(
                f"{folder}: no folder for clips ({error.strerror}); name another one"
            ) from error

    def cut_clip(
        self,
        video_id: values.VideoId,
        start: values.Seconds,
        end: values.Seconds,
        name: Annotated[
            str, about("Name of the new file, such as red-door.mp4; no folders.", max_length=100)
        ],
    ) -> Annotated[CallToolResult, values.Clip]:
        """Cut a stretch of a video, exact to the frame, into a new MP4 in the folder for clips."""
        video, span = _stretch(self._library, video_id, start, end)
        out = self._place(name)
        with self._lock:  # one at a time, so that two clips of one name cannot both find it free
            if os.path.lexists(out):
                raise InvalidValue(f"{name}: a clip of that name exists already; give another name")
            export_clip(Moment(video_id, span.start, span.end, 0.0, 1), Path(video.path), out)
        return _answer(
            values.Clip(
                path=str(out), video_id=video_id, start=span.start, end=span.end, bytes=out.stat().st_size
            )
        )

    def _place(self, name: str) -> Path:
        """Path of a new clip; no hidden one, and none that lies elsewhere."""
        if not name.isprintable() or name.startswith(".") or set(name) & set("/\\:"):
            raise InvalidValue(
                f"name {name!r}: give the name of a file alone, such as red-door.mp4; clips go to one folder"
            )
        return self._folder / (name if name.lower().endswith(".mp4") else f"{name}.mp4")


def _answer(answer: BaseModel, pictures: list[ImageContent] | None = None) -> CallToolResult:
    """A response as structure, as text for other clients, and pictures."""
    text = TextContent(type="text", text=answer.model_dump_json(exclude_defaults=True))
    return CallToolResult(
        content=[text, *(pictures or [])], structured_content=answer.model_dump(mode="json")
    )


def _said_of(found: SearchResult) -> str:
    """How sure an answer is; nothing of a sure one."""
    if not found:
        return _NOTHING
    if not found.confident and found.possible:
        return _UNCERTAIN.format(count=len(found.possible))
    return "" if found.strong or found.confident else _NO_MATCH


def _sheet(
    found: SearchResult, sources: dict[str, str], answer: values.FoundMoments, kept: KeptStill
) -> list[ImageContent]:
    """One picture of all moments; unreadable ones are grey and named in the note."""
    snippets = [one.snippet for one in found]
    cells, failed = moment_cells(found, sources, snippets if any(snippets) else [], kept)
    if failed:
        answer.note += " ".join(["", "No pictures of:", *(f"{name} ({why})" for name, why in failed.items())])
    return [picture(sheet_picture(cells, _COLUMNS, answer.query))]


def picture(image: NDArray[np.uint8]) -> ImageContent:
    """A picture (height, width, 3) uint8 RGB as content of a response, shrunk where it is too large."""
    shrunk, jpeg = Image.fromarray(image), BytesIO()
    shrunk.thumbnail((LONGEST_SIDE, LONGEST_SIDE), Image.Resampling.LANCZOS)
    shrunk.save(jpeg, "JPEG", quality=_QUALITY)
    return ImageContent(type="image", data=b64encode(jpeg.getvalue()).decode(), mime_type="image/jpeg")


def _timed_still(path: Path, time: float, width: int) -> ImageContent:
    """The frame of a video at a time in seconds, ``width`` pixels wide, with the time drawn on."""
    still = Image.fromarray(frame_at(path, time, width))
    draw, font = ImageDraw.Draw(still), ImageFont.load_default(max(12, width // 24))
    place, text = (width // 40, width // 40), clock(time)
    left, top, right, bottom = draw.textbbox(place, text, font)
    margin = width // 80
    draw.rectangle((left - margin, top - margin, right + margin, bottom + margin), fill=(0, 0, 0))
    draw.text(place, text, (255, 255, 255), font)
    return picture(np.asarray(still))


def _stretch(library: Library, video_id: str, start: float, end: float) -> tuple[VideoRow, Span]:
    """A video that can be read, and a stretch within its length."""
    video = there(library.catalogue.video(video_id), library.catalogue)
    if video.state == "refused":
        raise MediaError(video.path, f"refused when indexed ({video.error}); choose another video")
    if library.store.file_of(video_id) is None:
        raise NotFound(f"{video.path}: the file of {video.video_id} is gone; choose another video")
    return video, Span(start, end).within(video_id, video.duration)
