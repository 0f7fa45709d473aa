"""Sound tracks of a file, and the choice of one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from av.audio.stream import AudioStream
from av.container import InputContainer
from av.stream import DataStream, Disposition, Stream
from av.subtitles.stream import SubtitleStream

from moviola.errors import InvalidValue, MediaError
from moviola.media.boxes import sample_entries
from moviola.words import same_language

__all__ = [
    "CAPTIONS", "SoundTrack", "boxed_text", "chosen_track", "form_of", "language_of", "read_tracks",
    "require_track_choice", "sound_tracks", "text_streams", "track_among",
]  # fmt: skip

CAPTIONS = "eia_608"
"""Codec of a track of captions (CEA-608), which QuickTime has beside the pictures."""

TEXT_SUBTITLES = frozenset({"mov_text", "subrip", "srt", "ass", "ssa", "webvtt", "text", CAPTIONS})
"""Subtitle codecs that carry text; the others (DVD, Blu-ray, DVB) carry pictures of text."""

BOXED_TEXT = {b"stpp": "ttml", b"wvtt": "webvtt"}
"""Codecs of text in MP4 that libav does not know, by the names of their formats (ISO/IEC 14496-30)."""

# Commentary, descriptions for the blind and the like, which are not meant by "the sound".
_ASIDE = (
    Disposition.comment
    | Disposition.hearing_impaired
    | Disposition.visual_impaired
    | Disposition.clean_effects
    | Disposition.karaoke
)


@dataclass(frozen=True, slots=True)
class SoundTrack:
    """A sound track.

    Attributes:
        number: from 1 on, in the order of the file.
        language: ISO 639 code, of two letters where there is one, else three; empty if the file has none.
        title, codec, channels: as in the file.
        default: whether players choose it by default.
    """

    number: int
    language: str
    title: str
    codec: str
    channels: int
    default: bool

    def __str__(self) -> str:
        said = [self.language or "language unknown", self.title, self.codec]
        return f"{self.number} ({', '.join(filter(None, said))})"


def sound_tracks(container: InputContainer) -> tuple[SoundTrack, ...]:
    """The decodable sound tracks of an open file."""
    usable = _usable(container)
    default = _default(usable)
    return tuple(
        SoundTrack(
            number=number,
            language=language_of(stream.language or ""),
            title=stream.metadata.get("title", ""),
            codec=stream.codec_context.codec.canonical_name,
            channels=stream.codec_context.layout.nb_channels,
            default=stream is default,
        )
        for number, stream in enumerate(usable, 1)
    )


def text_streams(container: InputContainer) -> tuple[Stream, ...]:
    """The tracks of an open file that carry text, in its order."""
    boxed = boxed_text(container)
    return tuple(
        stream
        for stream in container.streams
        if stream.time_base and (stream.index in boxed or _is_text(stream))
    )


def _is_text(stream: Stream) -> bool:
    if not isinstance(stream, SubtitleStream) or stream.codec_context is None:
        return False
    return stream.codec_context.codec.canonical_name in TEXT_SUBTITLES


def boxed_text(container: InputContainer) -> dict[int, str]:
    """Codecs of the tracks of an open file whose text libav does not decode, by their numbers."""
    unknown = [
        stream.index
        for stream in container.streams
        if isinstance(stream, SubtitleStream | DataStream) and stream.codec_context is None
    ]
    if not unknown or not container.format.name.startswith("mov,"):
        return {}
    formats = dict(enumerate(sample_entries(Path(container.name))))
    return {index: BOXED_TEXT[name] for index in unknown if (name := formats.get(index)) in BOXED_TEXT}


def read_tracks(container: InputContainer) -> tuple[Stream, ...]:
    """The tracks of text that are read as subtitles, all of them; those first that players show, in each
    language all that is said before foreign lines alone (``forced``) and before what describes sounds, too.
    """
    return tuple(sorted(text_streams(container), key=_reading_rank))


def form_of(track: Stream) -> str:
    """The form of a track of text, by its flags and its title."""
    title = track.metadata.get("title", "").casefold()
    if track.disposition & Disposition.forced or re.search(r"\b(?:forced|foreign)\b", title):
        return "forced"
    hearing = track.disposition & Disposition.hearing_impaired or re.search(r"\b(?:sdh|cc|hearing)\b", title)
    return "hearing impaired" if hearing else ""


def _reading_rank(track: Stream) -> tuple[bool, bool, bool]:
    """Low where a track is read before others: not of foreign lines alone, the default one, not for the deaf
    or with commentary.
    """
    flags = track.disposition
    return form_of(track) == "forced", not flags & Disposition.default, bool(flags & _ASIDE)


def chosen_track(
    container: InputContainer, path: Path, choice: int | str | None = None
) -> AudioStream | None:
    """The chosen sound track of an open file; None where it has no sound.

    Args:
        choice: a number from 1 on; a language (BCP 47 or ISO 639): the first track in it, or the default one
            if the file has no languages at all; None: the default one by the file's flags.

    Raises:
        InvalidValue: a choice that is neither a number nor a language.
        MediaError: no such track; the message lists the existing ones.
    """
    usable = _usable(container)
    if choice is None or not usable:
        return _default(usable)
    return usable[track_among(sound_tracks(container), path, choice).number - 1]


def track_among(tracks: Sequence[SoundTrack], path: Path, choice: int | str) -> SoundTrack:
    """The track of a file that is meant; arguments and errors as in :func:`chosen_track`."""
    choice = require_track_choice(choice)
    if isinstance(choice, int):
        fits = tracks[choice - 1 : choice]
    elif any(track.language for track in tracks):
        fits = [track for track in tracks if same_language(track.language, choice)]
    else:
        fits = tracks
    if not fits:
        raise MediaError(path, f"no sound track {choice}; there is {', '.join(map(str, tracks)) or 'none'}")
    return min(fits, key=lambda track: not track.default)


def require_track_choice(choice: int | str) -> int | str:
    """A choice as a number, or as a language of ISO 639. Raises InvalidValue: neither of them."""
    if re.fullmatch("0*[1-9][0-9]{0,8}", str(choice)):
        return int(choice)
    if isinstance(choice, str) and (language := language_of(choice)):
        return language
    raise InvalidValue(f"sound track {choice!r}: give a number from 1 on, or a language such as de")


def language_of(tag: str) -> str:
    """The language of a tag of BCP 47 or ISO 639, ``de`` of ``ger``, ``deu`` or ``de-AT``: two letters where
    it has such, else three; empty for none, or an invalid tag.
    """
    from langcodes import Language

    try:
        return Language.get(tag.replace("_", "-")).language or ""
    except ValueError:
        return ""


def _usable(container: InputContainer) -> list[AudioStream]:
    return [s for s in container.streams.audio if s.codec_context is not None and s.time_base]


def _default(usable: Sequence[AudioStream]) -> AudioStream | None:
    """The first track with the flag; else the first main one; else the first."""
    flagged = (s for s in usable if s.disposition & Disposition.default)
    plain = (s for s in usable if not s.disposition & _ASIDE)
    return next(flagged, None) or next(plain, None) or next(iter(usable), None)
