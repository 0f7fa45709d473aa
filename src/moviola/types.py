"""Common value types: spans, videos, queries, moments, cues.

Conventions: times are seconds as ``float``, taken from presentation time stamps; a span is half-open,
``start <= t < end``; scores are comparable within one answer only, higher is better; ranks start at 1.
All values are frozen. Columns of many moments live where they are used: hits, proposals and moments in
``moviola.retrieval``, runs and judgements with the measures.

Examples:
    >>> from moviola.types import Moment, Span, clock
    >>> Span(10, 20).iou(Span(15, 25))
    0.3333333333333333
    >>> moment = Moment("beach", 75.0, 80.5, score=0.8, rank=1)
    >>> moment.span.duration, clock(moment.start)
    (5.5, '0:01:15.0')
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal
from types import UnionType
from typing import Literal, TypeVar, get_args

from moviola.errors import InvalidValue

T = TypeVar("T")

__all__ = [
    "BANDS", "CUE_KINDS", "HELD_AS", "POSSIBLE", "SNIPPET_KINDS", "STRONG", "Band", "Box", "Capture",
    "CaptureSource", "CopiedMoment", "Cue", "CueKind", "FrameSize", "HeldAs", "Holding",
    "Moment", "Query", "Reason", "ReasonKind", "Saying", "SnippetKind", "Span", "Video", "Word", "band_of",
    "clock", "plain_seconds", "require_kind", "require_kinds", "require_known", "require_positive",
    "several", "shown_score",
]  # fmt: skip

CueKind = Literal["subtitle", "speech", "text", "chapter"]
"""Source of a cue's words: a subtitle file or stream, recognised speech, text in the picture, the title of a
chapter of the file."""

CUE_KINDS: tuple[CueKind, ...] = ("subtitle", "speech", "text", "chapter")
"""All kinds of cues."""

Band = Literal["strong", "possible", "weak"]
"""How likely a moment is right, by its score; :data:`BANDS` has the limits."""

BANDS: dict[Band, float] = {"strong": 0.5, "possible": 0.2, "weak": 0.0}
"""The least score of each band, the best first. Scores of a search are probabilities: a strong moment is more
likely right than not, a possible one at worst with one chance in five; `docs/scores.md` has the measurements.
"""

STRONG = BANDS["strong"]
"""The least score of a strong moment."""

POSSIBLE = BANDS["possible"]
"""The least score of a possible moment."""

CaptureSource = Literal["", "tags", "satellites", "container", "name", "zone"]
"""Source of a capture time: text of the camera in tags or telemetry, satellites as the camera noted them
(universal time), the container's own field (universal time), the file's name; ``"zone"``: one of these, in
the zone that was given for its camera."""


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of time ``[start, end)`` in seconds, ``0 <= start < end``, both finite.

    Raises:
        InvalidValue: a bound is NaN, infinite or no number, ``start`` is negative or ``end <= start``.
    """

    start: float
    end: float

    def __post_init__(self) -> None:
        if not _finite(self.start, self.end):
            given = f"span [{self.start!r:.100}, {self.end!r:.100})"
            raise InvalidValue(f"{given}: both bounds must be finite seconds")
        if self.start < 0:
            raise InvalidValue(f"span [{self.start}, {self.end}): the start must not be negative")
        if self.end <= self.start:
            raise InvalidValue(f"span [{self.start}, {self.end}): the end must come after the start")

    @property
    def duration(self) -> float:
        """Length in seconds, > 0."""
        return self.end - self.start

    def intersection(self, other: Span) -> float:
        """Seconds that both spans share, >= 0."""
        return max(0.0, min(self.end, other.end) - max(self.start, other.start))

    def iou(self, other: Span) -> float:
        """Temporal intersection over union, in [0, 1]; symmetric; 0 for disjoint spans."""
        shared = self.intersection(other)
        return shared / (self.duration + other.duration - shared)

    def within(self, video_id: str, duration: float) -> Span:
        """This span up to the end of its video of ``duration`` seconds.

        Raises:
            InvalidValue: it begins at the end or after it.
        """
        if self.start >= duration:
            ends = f"the video ends at {duration:g} s"
            raise InvalidValue(f"{video_id}: start {self.start:g}: {ends}; give a time before that")
        return Span(self.start, min(self.end, duration))

    def padded(self, before: float, after: float, duration: float) -> Span:
        """This span with context in seconds on both sides, clipped to a video of ``duration`` seconds."""
        return Span(max(0.0, self.start - before), min(duration, self.end + after))


@dataclass(frozen=True, slots=True)
class Video:
    """A video: an id that is unique in its library or data set, and its duration in seconds, > 0."""

    video_id: str
    duration: float

    def __post_init__(self) -> None:
        if not (_finite(self.duration) and self.duration > 0):
            raise InvalidValue(f"{self.video_id}: duration {self.duration!r:.100} must be finite seconds > 0")


@dataclass(frozen=True, slots=True)
class Query:
    """A text query, with the id that runs and judgements use."""

    query_id: str
    text: str


ReasonKind = Literal["seen", "said", "written", "heard", "titled", "named", "described", "like", "looked"]
"""Kind of a reason: pictures, speech and subtitles, text in the picture, sounds, the title of a chapter, the
video's name, what its file says of it, similarity to pictures, the verdict of a model that looked."""

SNIPPET_KINDS = (*CUE_KINDS, "sound")
"""All kinds of snippets."""

SnippetKind = CueKind | Literal["sound", ""]
"""Kind of a snippet: of its cues, or ``"sound"`` for the name of a sound; empty without one, and where parts
quote several kinds."""


@dataclass(frozen=True, slots=True)
class Reason:
    """A reason for a moment: its strength alone, in [0, 1], and matching words of the query, if any; of kind
    ``"looked"`` the verdict (yes, partly, no) and why, in the words of the model that looked.
    """

    kind: ReasonKind
    score: float
    words: tuple[str, ...] = ()

    def __str__(self) -> str:
        """``said 0.64 (door, red)``."""
        words = f" ({', '.join(self.words)})" if self.words else ""
        return f"{self.kind} {shown_score(self.score, 2)}{words}"


@dataclass(frozen=True, slots=True)
class CopiedMoment:
    """The same pictures as in a moment, from ``start`` to ``end`` seconds of another video."""

    video_id: str
    start: float
    end: float


@dataclass(frozen=True, slots=True)
class Moment:
    """A span of a video that answers a query: one line of a ranked result.

    ``source`` is the evidence that found it: ``"visual"``, a kind of cue, ``"sound"``, ``"named"``, or
    ``"both"`` for several; ``snippet`` is matching speech or text, or a sound's name, else empty, and
    ``snippet_kind`` its kind.
    ``steps`` are the moments of a sequence's steps in order, ranked as the whole, which runs from the start
    of the first to the end of the last. ``band`` says how likely it is right (:data:`BANDS`); of what was
    chosen by hand it is strong. ``folded`` are the spans of overlapping moments folded into this one, best
    first, ``copies`` moments of other videos that show the same, and ``why`` the reasons, the strongest
    first. ``by_key_frames``: it was found by key frames alone, since the rest of its video is not in yet; its
    start and end are no more exact than these are near to each other.
    """

    video_id: str
    start: float
    end: float
    score: float
    rank: int
    source: str = "visual"
    snippet: str = ""
    steps: tuple[Moment, ...] = ()
    snippet_kind: SnippetKind = ""
    band: Band = "strong"
    folded: tuple[Span, ...] = ()
    why: tuple[Reason, ...] = ()
    copies: tuple[CopiedMoment, ...] = ()
    by_key_frames: bool = False

    @property
    def span(self) -> Span:
        """The moment's time as a :class:`Span`."""
        return Span(self.start, self.end)

    @property
    def strong(self) -> bool:
        """Whether it is more likely right than not."""
        return self.band == "strong"


@dataclass(frozen=True, slots=True)
class Word:
    """A spoken word, from ``start`` to ``end`` seconds."""

    start: float
    end: float
    text: str


@dataclass(frozen=True, slots=True)
class Box:
    """A part of a picture, as fractions of its width and height, from the top left."""

    left: float
    top: float
    right: float
    bottom: float


@dataclass(frozen=True, slots=True)
class Cue:
    """Speech, or text on screen, from ``start`` to ``end`` seconds, ``end > start``.

    ``confidence`` is the reader's, in [0, 1], None where nothing was recognised; ``box`` is None for speech;
    ``words`` is empty if the times of single words are unknown. ``language`` is a tag of BCP 47, empty where
    it is not known; ``form`` is that of the track: empty for all that is said, ``forced`` for foreign lines
    alone, ``hearing impaired`` with descriptions of sounds, or title or number of a further track of a
    language. Cues are equal whatever these two are.
    """

    start: float
    end: float
    text: str
    kind: CueKind = "subtitle"
    confidence: float | None = None
    box: Box | None = None
    words: tuple[Word, ...] = ()
    language: str = field(default="", compare=False)
    form: str = field(default="", compare=False)

    @property
    def further_track(self) -> str:
        """Which further track of its language it is from; empty for what belongs to the first."""
        return "" if self.form in ("", "forced", "hearing impaired") else self.form


@dataclass(frozen=True, slots=True)
class FrameSize:
    """How a frame is fitted to an encoder's input; the same for training, indexing and search.

    ``fit="crop"`` scales the shorter side to ``shortest_edge`` pixels and cuts ``height`` x ``width`` out of
    the middle (CLIP); ``fit="stretch"`` scales to ``height`` x ``width`` whatever the aspect ratio (SigLIP);
    ``fit="patches"`` keeps the aspect ratio: ``height`` x ``width`` is a patch, and a frame is scaled so that
    its sides are whole patches, at most ``most_patches`` in all (SigLIP 2 NaFlex, Tschannen et al. 2025).
    ``shortest_edge`` is read only by ``"crop"`` and is at least ``max(height, width)``.
    """

    height: int
    width: int
    fit: Literal["crop", "stretch", "patches"] = "crop"
    shortest_edge: int = 0
    interpolation: Literal["bilinear", "bicubic", "lanczos"] = "bicubic"
    most_patches: int = 0

    def __post_init__(self) -> None:
        if self.height < 1 or self.width < 1:
            raise InvalidValue(f"frame size {self.width}x{self.height}: both sides must be at least 1 pixel")
        if self.fit == "crop" and self.shortest_edge < max(self.height, self.width):
            raise InvalidValue(
                f"frame size {self.width}x{self.height}: shortest_edge {self.shortest_edge} is smaller than "
                f"the crop; give at least {max(self.height, self.width)}"
            )
        if self.fit == "patches" and self.most_patches < 1:
            raise InvalidValue(f"most_patches {self.most_patches}: give at least 1 patch")

    def sides(self, width: int, height: int) -> tuple[int, int]:
        """Height and width in pixels of the input that a picture of a displayed size becomes, before a crop
        its own: at the largest scale at which the sides, rounded up to whole patches, have at most
        ``most_patches`` of them.
        """
        if self.fit != "patches":
            return self.height, self.width
        across, down = width * self.height, height * self.width  # in patches, as they relate
        most = self.most_patches
        # With the scale one side after the other becomes a whole number of patches; sides only grow.
        by_rows = ((rows, -(-rows * across // down)) for rows in range(1, most + 1))
        by_columns = ((-(-columns * down // across), columns) for columns in range(1, most + 1))
        rows, columns = max(
            one for pairs in (by_rows, by_columns) for one in pairs if one[0] * one[1] <= most
        )  # fmt: skip
        return rows * self.height, columns * self.width

    def takes(self, height: int, width: int) -> bool:
        """Whether a frame of these sides in pixels is an input."""
        if self.fit != "patches":
            return (height, width) == (self.height, self.width)
        rows, columns = height // self.height, width // self.width
        whole = (rows * self.height, columns * self.width) == (height, width)
        return whole and 1 <= rows * columns <= self.most_patches


def _finite(*values: object) -> bool:
    """Whether values are numbers that a ``float`` can hold, none of them NaN or infinite."""
    try:
        return all(map(math.isfinite, values))  # type: ignore[arg-type]
    except (TypeError, OverflowError):
        return False


def require_kind(name: str, value: object, kind: type | UnionType | tuple[type, ...], give: str) -> None:
    """Raise :class:`InvalidValue` for a value of another type; ``give`` says what an argument must be."""
    if not isinstance(value, kind):
        raise InvalidValue(f"{name} {value!r:.200}: give {give}")


def require_kinds(kind: type | UnionType | tuple[type, ...], give: str, **values: object) -> None:
    """:func:`require_kind` for several arguments, by their names."""
    for name, value in values.items():
        require_kind(name, value, kind, give)


def require_known(name: str, value: object, known: Iterable[object]) -> None:
    """Raise :class:`InvalidValue` for a value that is none of the known ones, which the message lists."""
    if value not in tuple(known):  # a dict would raise TypeError for a list
        raise InvalidValue(f"{name} {value!r}: unknown; choose {', '.join(map(str, known))}")


def require_positive(**settings: int | None) -> None:
    """Raise :class:`InvalidValue` for an argument or a setting below 1; None stands for no value."""
    for name, value in settings.items():
        if value is not None and value < 1:
            raise InvalidValue(f"{name}={value}: give at least 1")


def several(name: str, values: Iterable[T]) -> tuple[T, ...]:
    """The values of an argument that takes a list.

    Raises:
        InvalidValue: no list, or a single text, whose letters would be taken for the values.
    """
    require_kind(name, values, Iterable, "a list")
    if isinstance(values, str):
        raise InvalidValue(f"{name} {values!r:.200}: a single text; give a list, [{values!r:.200}]")
    return tuple(values)


def band_of(score: float) -> Band:
    """The band of a score in [0, 1].

    >>> band_of(0.5), band_of(0.499), band_of(0.1)
    ('strong', 'possible', 'weak')
    """
    return next(band for band, least in BANDS.items() if score >= least)


def clock(seconds: float) -> str:
    """Seconds as ``h:mm:ss.s``, rounded to a tenth."""
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest // 10:02d}.{rest % 10}"


def shown_score(score: float, digits: int = 3) -> str:
    """A score for people, rounded down: no moment seems to reach a band that it is not in.

    >>> shown_score(0.4999), shown_score(0.5), shown_score(0.569)
    ('0.499', '0.500', '0.569')
    """
    nearest = round(float(score), digits)  # and not its digits cut off: 0.569 * 1000 is below 569
    return f"{nearest - 10**-digits if nearest > score else nearest:.{digits}f}"


def plain_seconds(seconds: float) -> str:
    """Seconds in the fewest digits that are read as the same number, without an exponent.

    >>> plain_seconds(65.0), plain_seconds(12345.67), plain_seconds(1e-5)
    ('65', '12345.67', '0.00001')
    """
    return f"{Decimal(str(seconds)):f}".removesuffix(".0")


@dataclass(frozen=True, slots=True)
class Capture:
    """Capture data of a file; empty or None where unknown.

    ``taken`` is ISO 8601, with an offset if known, ``source`` where it stood; latitude and longitude are
    degrees, north and east above 0; ``make`` and ``model`` are the camera's.
    """

    taken: str = ""
    source: CaptureSource = ""
    latitude: float | None = None
    longitude: float | None = None
    make: str = ""
    model: str = ""

    @property
    def camera(self) -> str:
        """Make and model; empty if unknown."""
        return f"{self.make} {self.model}".strip()


HeldAs = Literal[
    "film", "sound", "subtitles", "timecode", "cover", "other pictures", "other sound", "beside",
    "other text", "pictures of text", "unread text", "measurements", "data", "attachment", "chapters",
    "words", "other words", "live photo", "captions",
]  # fmt: skip
"""What a part of a file is taken for; :data:`HELD_AS` says what becomes of it. ``"other text"`` stands only
in accounts made while one track of each language was read; the next indexing makes them again.
"""

HELD_AS: dict[HeldAs, str] = {
    "film": "searched",
    "sound": "played, and read by --speech",
    "subtitles": "read",
    "timecode": "first timecode of exports",
    "cover": "a cover, not searched",
    "other pictures": "further pictures, not searched",
    "other sound": "further sound; --speech-track reads it",
    "beside": "read, unless a subtitle file has its language",
    "other text": "further text of its language, not read",
    "pictures of text": "pictures of text, not read",
    "unread text": "text of a kind that is not read",
    "captions": "captions inside the pictures, read where the film has no other text",
    "measurements": "places and times, read",
    "data": "data, not read",
    "attachment": "attached, not read",
    "chapters": "searched, as titles of stretches",
    "words": "searched, as words on the whole film",
    "other words": "not searched",
    "live photo": "film of a Live Photo, chosen by --live-photos",
}
"""What becomes of a part of a file, by what it is taken for."""

_USED: frozenset[HeldAs] = frozenset({
    "film", "sound", "subtitles", "timecode", "measurements", "chapters", "words", "live photo", "captions",
})  # fmt: skip


Waypoint = tuple[float, float, float]
"""A second of a film, and degrees north and east of where its camera was from then on."""


@dataclass(frozen=True, slots=True)
class Saying:
    """What a file says of its film as a whole: ``kind`` is ``"title"``, ``"keywords"``, ``"description"``,
    ``"people"`` or ``"series"``.
    """

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Holding:
    """A part of a file: what it is taken for, what it says of itself (codec, language, title; name and value
    of a tag), and the number of its stream as ffprobe counts, None for what is no stream.
    """

    held_as: HeldAs
    about: str
    stream: int | None = None

    def __post_init__(self) -> None:
        if self.held_as not in get_args(HeldAs):
            raise ValueError(self.held_as)

    @property
    def used(self) -> bool:
        """Whether it is used."""
        return self.held_as in _USED

    def __str__(self) -> str:
        number = "" if self.stream is None else f"stream {self.stream}: "
        return f"{number}{self.about}: {HELD_AS[self.held_as]}"
