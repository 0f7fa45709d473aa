"""The table of export formats, and the function that writes them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import chain, count
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from moviola.errors import BrokenPlugin, InvalidValue
from moviola.export.clips import clip_name, export_clips, file_stem, require_mode, require_no_source
from moviola.export.edl import write_cuts, write_markers
from moviola.export.fcpxml import write_fcpxml
from moviola.export.film import CARD_SECONDS, parse_size, write_chapters, write_film, write_film_chapters
from moviola.export.selection import Selection, one_line
from moviola.export.sheet import KeptStill, export_sheet
from moviola.export.tables import write_moments_csv, write_moments_json
from moviola.export.timebase import parse_rate
from moviola.export.timeline import Timeline, lay_out, read_sources
from moviola.files.names import name_now
from moviola.media import lead_of, letters_without_font
from moviola.plugins import naming_plugins, plugin, plugins
from moviola.types import Moment, require_kind

__all__ = [
    "FORMATS", "Export", "ExportOptions", "MomentFormat", "Written", "all_formats", "format_of",
    "named_format", "write_moments",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """Export options; :class:`MomentFormat` names those that a format uses.

    Attributes:
        title: name of the timeline or the sheet.
        rate: frames per second of the timeline, a number or text such as ``"23.976"`` or ``"30000/1001"``;
            None: the rate of most moments.
        drop_frame: use drop-frame timecode, at 29.97 and 59.94; None: as in the videos' start timecodes.
        start_timecode: timecode of the timeline's first frame.
        mode: of clips: ``"exact"``, or ``"key-frames"``, which begin at the key frame before the start and
            are never encoded.
        titles: show a card with the title before each moment of the film.
        size: of the film, ``"1280x720"``; None: that of the largest video.
        columns: pictures per row of the sheet.
    """

    title: str = "Moments"
    rate: Fraction | float | str | None = None
    drop_frame: bool | None = None
    start_timecode: str = "01:00:00:00"
    mode: Literal["exact", "key-frames"] = "exact"
    titles: bool = False
    size: str | None = None
    columns: int = 5

    def __post_init__(self) -> None:
        require_mode(self.mode)
        for name, kind in {"title": str, "start_timecode": str, "size": str | None}.items():
            require_kind(name, getattr(self, name), kind, "a text")
        require_kind("drop_frame", self.drop_frame, bool | None, "true or false")
        require_kind("titles", self.titles, bool, "true or false")
        if not isinstance(self.columns, int) or self.columns < 1:
            raise InvalidValue(f"columns {self.columns!r}: give a whole number, at least one")


@dataclass(frozen=True, slots=True)
class Written:
    """The result of an export.

    Attributes:
        files: the files, in order.
        refused: reasons of missing parts by name (a clip's file, a picture's video).
        remark: what a picture could not show, and the remedy; empty without.
    """

    files: tuple[Path, ...]
    refused: dict[str, str] = field(default_factory=dict)
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Export:
    """What a writer gets.

    Attributes:
        chosen: moments with titles and notes, in the order in which they are to stand.
        paths: of the videos, by id.
        out: the file, or the folder, to write.
        kept: gives small stills in place of frames that cannot be read now.
        progress: called with the share that is written, by what encodes; what it raises ends the writing.
        check: called by what writes into a folder with each file, before the first is written.
        durations: seconds of videos by id, as far as known.
    """

    chosen: list[Selection]
    paths: Mapping[str, str | Path]
    out: Path
    options: ExportOptions
    kept: KeptStill | None = None
    progress: Callable[[float], None] = lambda _: None
    check: Callable[[Path], None] = lambda _: None
    durations: Mapping[str, float] = field(default_factory=dict)

    def timeline(self, *, counted: bool = True) -> Timeline:
        """The moments in sequence; ``counted``: with timecodes."""
        options = self.options
        return lay_out(
            self.chosen, read_sources(self.chosen, self.paths, self.durations),
            title=one_line(options.title) or "Moments",
            rate=None if options.rate is None else parse_rate(str(options.rate)),
            drop_frame=options.drop_frame, start=options.start_timecode if counted else None,
            lead=CARD_SECONDS if options.titles else 0.0,
        )  # fmt: skip

    def lead(self, video_id: str) -> float:
        """Seconds of a video's file before its first picture; 0 where it is not there."""
        return lead_of(Path(self.paths[video_id])) if video_id in self.paths else 0.0

    def only_video(self, instead: str) -> str:
        """The id of the one video; moments of several are refused."""
        videos = sorted({selection.moment.video_id for selection in self.chosen})
        if len(videos) > 1:
            raise InvalidValue(
                f"{self.out}: moments of {len(videos)} videos ({videos[0]} and others), but this is for one; "
                f"choose those of one, or the format {instead}"
            )
        return videos[0]


Writer = Callable[[Export], Written]


@dataclass(frozen=True, slots=True)
class MomentFormat:
    """An export format.

    Attributes:
        title: its description for people.
        suffix: of the file; empty for a folder of files.
        options: names of those of :class:`ExportOptions` that it heeds.
        write: writes to :attr:`Export.out`.
        singly: whether a moment that cannot be written is refused alone, and the others are written.
    """

    name: str
    title: str
    suffix: str
    kind: Literal["file", "folder"]
    options: frozenset[str]
    write: Writer = field(repr=False)
    singly: bool = False

    def require_heeded(self, names: Iterable[str]) -> None:
        """Refuse options that it does not heed."""
        if unknown := sorted(set(names) - self.options):
            heeded = ", ".join(sorted(self.options)) or "none"
            raise InvalidValue(f"{self.name}: no option {', '.join(unknown)}; it has: {heeded}")


@naming_plugins()
def write_moments(
    moments: Sequence[Moment | Selection],
    videos: Mapping[str, str | Path],
    out: str | Path,
    format: str | None = None,
    *,
    durations: Mapping[str, float] = MappingProxyType({}),
    kept: KeptStill | None = None,
    progress: Callable[[float], None] = lambda _: None,
    check: Callable[[Path], None] = lambda _: None,
    **options: Any,
) -> Written:
    """Write moments in one of :data:`FORMATS`.

    Args:
        moments: in the order of the output; :class:`Selection` adds title and note.
        videos: path of each video by id.
        out: the file, or the folder, which is made when missing; a file appears whole or not at all.
        format: a name in :data:`FORMATS`, or of a plug-in; None: by the suffix of ``out``, :func:`format_of`.
        durations: seconds of videos by id, as far as known, such as those of a library's catalogue: moments
            end with their video, and those that begin after its end are refused.
        kept: gives small stills to a sheet in place of frames that cannot be read now, such as
            :meth:`moviola.library.LibraryStore.kept_still`.
        progress: called with the share that is written (of clips and films; the rest is quick); what it
            raises ends the export.
        check: called with ``out`` and with each file of a folder before anything is written, to refuse some,
            such as :meth:`moviola.library.LibraryStore.require_outside`.
        options: fields of :class:`ExportOptions` that the format uses.

    Returns:
        the files, and the reasons of missing parts: one clip that cannot be cut does not stop the others.

    Raises:
        InvalidValue: no moments, an unknown format, an option that it does not use, a value out of range, a
            moment that is no span or after the end of its video, or an ``out`` that cannot be written or is
            one of the videos.
        NotFound: a video without a path.
        MediaError: a video's file is missing or unreadable; nothing is written.
        BrokenPlugin: the format is a plug-in's, which fails.
    """
    selections = (one if isinstance(one, Selection) else Selection(one) for one in moments)
    out = Path(out)
    chosen_format = format_of(out) if format is None else named_format(format)
    chosen = [
        replace(
            one,
            moment=_within(one.moment, durations, chosen_format),
            video=name_now(one.moment.video_id, videos.get(one.moment.video_id, ""), suffix=False),
        )
        for one in selections
    ]
    if not chosen:
        raise InvalidValue(f"{out}: no moments to write; search or choose some first")
    chosen_format.require_heeded(options)
    require_no_source(out, videos.values())
    check(out)
    export = Export(chosen, videos, out, ExportOptions(**options), kept, progress, check, durations)
    written = chosen_format.write(export)
    if not isinstance(written, Written):
        raise BrokenPlugin(
            f"format {chosen_format.name!r}: returned {type(written).__name__} where "
            "moviola.export.Written is due; update the package that it comes from"
        )
    return written


def _within(moment: Moment, durations: Mapping[str, float], format: MomentFormat) -> Moment:
    """A moment, and its steps, up to the end of their video; refused where it is no span, or begins after
    that end and the format cannot refuse it alone.
    """
    span, duration = moment.span, durations.get(moment.video_id, math.inf)
    if format.singly and span.start >= duration:
        return moment
    steps = tuple(_within(step, durations, format) for step in moment.steps)
    return replace(moment, end=span.within(moment.video_id, duration).end, steps=steps)


def all_formats() -> dict[str, MomentFormat]:
    """:data:`FORMATS`, and those of plug-ins that can be used."""
    found = dict(FORMATS)
    for added in plugins("moviola.exporters"):
        with suppress(BrokenPlugin):  # an error for those who name it
            found.setdefault(added.point.name, added.load(MomentFormat))
    return found


def named_format(name: str) -> MomentFormat:
    """A format by its name.

    Raises:
        InvalidValue: there is none.
        BrokenPlugin: it comes of a plug-in, which fails.
    """
    if name in FORMATS:
        return FORMATS[name]
    if added := plugin("moviola.exporters", name):
        return added.load(MomentFormat)
    raise InvalidValue(f"format {name!r}: give one of {', '.join(all_formats())}")


def format_of(out: str | Path) -> MomentFormat:
    """The format of a suffix: the first in :data:`FORMATS`, then of plug-ins; without one, clips.

    Raises:
        InvalidValue: no format that can be used has that suffix; plug-ins' formats that cannot are named.
    """
    suffix = Path(out).suffix.lower()
    if not suffix:
        return FORMATS["clips"]
    formats = all_formats()
    for format in formats.values():
        if format.suffix == suffix:
            return format
    known = ", ".join(dict.fromkeys(format.suffix for format in formats.values() if format.suffix))
    unusable = [str(one) for one in plugins("moviola.exporters") if one.point.name not in formats]
    reasons = f"; {' and '.join(unusable)} cannot be used, naming it says why" if unusable else ""
    raise InvalidValue(
        f"{out}: no format is known by {suffix}; end it in {known}, or name the format{reasons}"
    )


def _file(write: Callable[[Export], object]) -> Writer:
    def written(export: Export) -> Written:
        write(export)
        return Written((export.out,))

    return written


def _video_chapters(export: Export) -> None:
    write_chapters(export.chosen, export.out, export.lead(export.only_video("vtt-videos or vtt-film")))


def _chapters_by_video(export: Export) -> Written:
    by_video: dict[str, list[Selection]] = defaultdict(list)
    for selection in export.chosen:
        by_video[selection.moment.video_id].append(selection)
    files: list[Path] = []
    taken: set[str] = set()  # some file systems compare names without case
    for video_id in by_video:
        plain = file_stem(name_now(video_id, export.paths.get(video_id, ""), suffix=False))
        numbered = chain([plain], (f"{plain}-{number}" for number in count(2)))
        stem = next(stem for stem in numbered if stem.casefold() not in taken)
        taken.add(stem.casefold())
        files.append(export.out / f"{stem}.vtt")
        export.check(files[-1])
    for file, (video_id, own) in zip(files, by_video.items(), strict=True):
        write_chapters(own, file, export.lead(video_id))
    return Written(tuple(files))


def _video_markers(export: Export) -> None:
    export.only_video("edl-markers")
    write_markers(export.timeline(), export.out, of_video=True)


def _otio(export: Export) -> None:
    from moviola.export.otio import write_otio

    write_otio(export.timeline(), export.out)


def _film(export: Export) -> Written:
    size = export.options.size
    film = export.timeline(counted=False)
    write_film(film, export.out, size=parse_size(size) if size else None, progress=export.progress)
    return Written((export.out,), remark=_boxes(export) if export.options.titles else "")


def _clips(export: Export) -> Written:
    # Numbered as they stand: ranks may come from several searches.
    moments = [replace(chosen.moment, rank=place) for place, chosen in enumerate(export.chosen, 1)]
    for moment in moments:
        export.check(export.out / clip_name(moment, export.paths.get(moment.video_id, "")))
    files, refused = export_clips(
        moments, export.paths, export.out, mode=export.options.mode, progress=export.progress
    )
    return Written(tuple(files), refused)


def _sheet(export: Export) -> Written:
    names = [selection.name if selection.title else "" for selection in export.chosen]
    refused = export_sheet(
        [selection.moment for selection in export.chosen], export.paths, export.out,
        title=one_line(export.options.title), notes=names if any(names) else (),
        columns=export.options.columns, kept=export.kept,
    )  # fmt: skip
    return Written((export.out,), refused, _boxes(export, export.options.title))


def _boxes(export: Export, title: str = "") -> str:
    """What a picture shows instead of letters that no font has; empty without such."""
    names = [
        name_now(one.moment.video_id, export.paths.get(one.moment.video_id, "")) for one in export.chosen
    ]
    letters = letters_without_font([title, *names, *(one.name for one in export.chosen if one.title)])
    if not letters:
        return ""
    shown = letters if len(letters) <= _MOST_LETTERS else f"{letters[:_MOST_LETTERS]}…"
    return (
        f"no font has {shown}: boxes stand for them; install fonts with them (Debian: fonts-noto-core, "
        "fonts-noto-cjk), or read the names in a list of the same moments (.csv)"
    )


_MOST_LETTERS = 20
_TIMELINE = frozenset({"title", "rate", "drop_frame", "start_timecode"})
_FILM = frozenset({"rate", "titles"})
_NOTHING: frozenset[str] = frozenset()

FORMATS: dict[str, MomentFormat] = {
    format.name: format
    for format in (
        MomentFormat("csv", "Table (CSV)", ".csv", "file", _NOTHING,
                     _file(lambda export: write_moments_csv(export.chosen, export.paths, export.out))),
        MomentFormat("json", "JSON", ".json", "file", _NOTHING,
                     _file(lambda export: write_moments_json(export.chosen, export.paths, export.out))),
        MomentFormat("edl", "EDL, CMX 3600: cuts", ".edl", "file", _TIMELINE,
                     _file(lambda export: write_cuts(export.timeline(), export.out))),
        MomentFormat("edl-markers", "EDL: markers on the cuts", ".edl", "file", _TIMELINE,
                     _file(lambda export: write_markers(export.timeline(), export.out))),
        MomentFormat("edl-markers-video", "EDL: markers in one video", ".edl", "file",
                     _TIMELINE - {"start_timecode"}, _file(_video_markers)),
        MomentFormat("vtt", "Chapters of one video (WebVTT)", ".vtt", "file", _NOTHING,
                     _file(_video_chapters)),
        MomentFormat("vtt-videos", "Chapters, a file per video (WebVTT)", "", "folder", _NOTHING,
                     _chapters_by_video),
        MomentFormat("vtt-film", "Chapters of the film (WebVTT)", ".vtt", "file", _FILM,
                     _file(lambda export: write_film_chapters(export.timeline(counted=False), export.out))),
        MomentFormat("otio", "OpenTimelineIO", ".otio", "file", _TIMELINE, _file(_otio)),
        MomentFormat("fcpxml", "FCPXML 1.9", ".fcpxml", "file", _TIMELINE,
                     _file(lambda export: write_fcpxml(export.timeline(), export.out))),
        MomentFormat("film", "One film of all (MP4)", ".mp4", "file", _FILM | {"size"}, _film),
        MomentFormat("clips", "Clips (MP4)", "", "folder", frozenset({"mode"}), _clips, singly=True),
        MomentFormat("sheet", "Contact sheet (PNG)", ".png", "file", frozenset({"title", "columns"}), _sheet),
    )
}  # fmt: skip
"""All export formats, by name."""
