"""Text streams inside a video file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from av.container import InputContainer
from av.packet import Packet
from av.stream import Stream
from av.subtitles.stream import SubtitleStream
from av.subtitles.subtitle import AssSubtitle

from moviola.media.container import DAMAGE, open_container, video_stream
from moviola.media.subtitles.boxed import BOXED_READERS
from moviola.media.subtitles.captions import captions_of, has_captions, read_captions
from moviola.media.subtitles.repeats import without_repeats
from moviola.media.subtitles.several import in_language, joined_tracks
from moviola.media.subtitles.sidecars import title_in
from moviola.media.subtitles.substation import Part, join_parts, part_of
from moviola.media.subtitles.telemetry import split_telemetry
from moviola.media.subtitles.values import Fix, Line, Notes, Subtitles, cues_of, in_order
from moviola.media.subtitles.visible import of_commands
from moviola.media.tracks import CAPTIONS, boxed_text, form_of, read_tracks, text_streams
from moviola.types import Cue
from moviola.words import language_named

__all__ = ["embedded_subtitles"]


def embedded_subtitles(path: Path, index: int | None = None, *, captioned: bool | None = None) -> Subtitles:
    """Text subtitles inside a video file, in the time of its pictures; none if no such stream carries text.
    Cues and notices as from :func:`~moviola.media.read_subtitles`.

    ``index`` is that of a :class:`~moviola.media.SubtitleStream`; None: all tracks, each line that several
    have in one language once; without such, captions inside the pictures; ``captioned`` says whether there
    are such, None where that is not known. Errors as in :func:`~moviola.media.probe`.
    """
    with open_container(path) as container:
        video = video_stream(container, path)
        assert video.time_base is not None
        zero = float((video.start_time or 0) * video.time_base)
        if index is None:
            chosen = read_tracks(container)
        else:
            chosen = tuple(stream for stream in text_streams(container) if stream.index == index)
        if not chosen:
            is_captioned = has_captions(container, video) if captioned is None else captioned
            return _captions(path) if is_captioned and index is None else Subtitles(())
        notes = Notes()
        about = {
            track.index: (_tag_of(track), form_of(track), title_in(track.metadata.get("title", "")))
            for track in chosen
        }
        found = _shown_in(container, chosen, zero, notes)
    tracks: list[tuple[str, list[Cue]]] = []
    fixes: list[Fix] = []
    for track, shown in found.items():
        lines = [one for one in shown if isinstance(one, Line)]
        parts = [one for one in shown if isinstance(one, Part)]
        heard, noted = split_telemetry(in_order([*lines, *join_parts(parts, (), notes)]), notes)
        own = cues_of(without_repeats(heard, notes))
        *said, title = about[track]
        tracks.append((title, in_language(own, *said, default="en")))
        fixes += noted
    cues = joined_tracks(tracks, notes)
    return Subtitles(tuple(cues), notes.notices(), fixes=tuple(fixes))


def _shown_in(
    container: InputContainer, chosen: Sequence[Stream], zero: float, notes: Notes
) -> dict[int, list[Line | Part]]:
    """What tracks show, by their index, in seconds after ``zero``."""
    found: dict[int, list[Line | Part]] = {track.index: [] for track in chosen}
    boxed = boxed_text(container)
    captions: dict[int, list[tuple[float, bytes]]] = {
        track.index: []
        for track in chosen
        if track.index not in boxed and track.codec_context.codec.canonical_name == CAPTIONS
    }
    try:
        for packet in container.demux(*chosen):
            index = packet.stream_index
            if index in boxed:
                found[index] += _held_by(packet, boxed[index], zero, notes)
            elif index in captions and packet.pts is not None:
                captions[index].append((float(packet.pts * packet.time_base) - zero, bytes(packet)))
            elif isinstance(packet.stream, SubtitleStream) and index in found:
                found[index] += _shown_by(packet, zero, notes)  # type: ignore[arg-type]
    except DAMAGE as error:
        notes.add("damaged", str(error))
    for index, carried in captions.items():
        found[index] += captions_of(carried, notes)
    return found


def _tag_of(track: Stream) -> str:
    """The language of a track as a tag of BCP 47, empty where it has none."""
    tags = {name.casefold(): value for name, value in track.metadata.items()}
    return language_named(tags.get("language-ietf") or track.language or "") or ""


def _captions(path: Path) -> Subtitles:
    """What captions inside the pictures say."""
    notes = Notes()
    with open_container(path) as container:
        film = video_stream(container, path)
        zero = float((film.start_time or 0) * (film.time_base or 0))
        try:
            lines = read_captions(container, film, zero, notes)
        except DAMAGE as error:
            notes.add("damaged", str(error))
            lines = []
    return Subtitles(cues_of(in_order(without_repeats(in_order(lines), notes))), notes.notices())


def _held_by(packet: Packet[Stream], codec: str, zero: float, notes: Notes) -> Iterator[Line]:
    """The lines of a packet that libav does not decode, in the time of the pictures."""
    if packet.pts is None or not packet.size:
        return
    start = float(packet.pts * packet.time_base)
    end = start + float((packet.duration or 0) * packet.time_base)
    for line in BOXED_READERS[codec]((start, end, bytes(packet)), notes):
        if line.end <= zero:
            notes.add("damaged", line.text)
            continue
        if line.start < zero:
            notes.add("before zero", line.text)
        yield Line(max(0.0, line.start - zero), line.end - zero, line.text)


def _shown_by(packet: Packet[SubtitleStream], zero: float, notes: Notes) -> Iterator[Line | Part]:
    """What a packet shows. Players show text while its packet lasts, so the times are the packet's."""
    if packet.pts is None or not packet.size:
        return
    start = float(packet.pts * packet.time_base) - zero
    end = start + float((packet.duration or 0) * packet.time_base)
    try:
        shown = packet.decode()
    except DAMAGE as error:
        notes.add("damaged", str(error))
        return
    for subtitle in shown:
        if not isinstance(subtitle, AssSubtitle):
            continue
        effect, said = _event_of(subtitle)
        if not (text := of_commands(said)):
            continue
        if end <= max(0.0, start):
            notes.add("damaged", text)
            continue
        if start < 0:
            notes.add("before zero", text)
        line = Line(max(0.0, start), end, text)
        yield part_of(line, said, effect) or line


def _event_of(subtitle: AssSubtitle) -> tuple[str, str]:
    """The effect of an event, in small, and its text with commands, which PyAV's ``dialogue`` lacks, so that
    drawings look like letters there. Columns are number, layer, style, name, three margins, effect, text.
    """
    columns = subtitle.ass.decode(errors="replace").split(",", 8)
    return (columns[7].strip().lower(), columns[8]) if len(columns) == 9 else ("", "")
