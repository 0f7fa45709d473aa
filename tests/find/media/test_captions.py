"""Captions inside pictures are read, with the times at which they are shown."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from pathlib import Path

import av
import pytest
from av.packet import Packet

from made_films import Boxed, Pictures, Words, make_film
from moviola.media import embedded_subtitles, read_facts

Codes = list[tuple[int, int]]


def letters(text: str) -> Codes:
    text += "\0" * (len(text) % 2)
    return [(ord(one), ord(other)) for one, other in zip(text[::2], text[1::2], strict=True)]


SHOW, ERASE, LOAD, ROLL, NEW_LINE, AT_THE_BOTTOM = (
    (0x14, 0x2F), (0x14, 0x2C), (0x14, 0x20), (0x14, 0x25), (0x14, 0x2D), (0x14, 0x70)
)  # fmt: skip


def message(codes: Iterable[tuple[int, int]], *, mpeg2: bool, other: bytes = b"") -> bytes:
    """What a picture carries: codes with their parities in the first field, and a packet of CEA-708."""
    odd = [bytes(b | 0x80 * (b.bit_count() % 2 == 0) for b in pair) for pair in codes] or [b"\x80\x80"]
    triples = [b"\xfc" + pair for pair in odd]
    triples += [(b"\xfe" if at else b"\xff") + other[at : at + 2] for at in range(0, len(other), 2)]
    data = b"GA94\x03" + bytes([0x40 | len(triples), 0xFF]) + b"".join(triples) + b"\xff"
    if mpeg2:
        return b"\x00\x00\x01\xb2" + data
    payload = b"\xb5\x00\x31" + data
    unit = b"\x06\x04" + bytes([len(payload)]) + payload + b"\x80"
    return len(unit).to_bytes(4, "big") + unit


def captioned(
    path: Path, shown: dict[int, Codes], *, count: int = 50, others: dict[int, bytes] | None = None
) -> Path:
    """A film of ten pictures a second; ``shown`` are codes by the number of the picture that carries them,
    ``others`` packets of CEA-708.
    """
    plain = make_film(path.with_name("plain.mp4"), Pictures(times=[n / 10 for n in range(count)], last=0.1))
    with av.open(str(plain)) as source, av.open(str(path), "w") as target:
        (stream,) = source.streams.video
        copied = target.add_stream_from_template(stream)
        for packet in source.demux(stream):
            if packet.pts is None:
                continue
            number = round(float(packet.pts * packet.time_base) * 10)
            own = message(shown.get(number, []), mpeg2=False, other=(others or {}).get(number, b""))
            carried = Packet(own + bytes(packet))
            carried.pts, carried.dts, carried.time_base = packet.pts, packet.dts, packet.time_base
            carried.is_keyframe, carried.stream = packet.is_keyframe, copied
            target.mux(carried)
    return path


def said(path: Path) -> Sequence[tuple[float, float, str]]:
    return [(round(cue.start, 1), round(cue.end, 1), cue.text) for cue in embedded_subtitles(path).cues]


POPPED = {
    2: [LOAD, AT_THE_BOTTOM, *letters("A walrus")], 3: letters(" hums."), 10: [SHOW], 20: [ERASE],
    22: [LOAD, AT_THE_BOTTOM, *letters("Nobody listens.")], 30: [SHOW],
}  # fmt: skip


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "mov"])
def test_captions_are_said_while_they_are_shown(tmp_path: Path, suffix: str) -> None:
    """From their display on, not from the transmission; the last one to the end."""
    film = captioned(tmp_path / f"film.{suffix}", POPPED)
    assert said(film) == [(1.0, 2.0, "A walrus hums."), (3.0, 5.9, "Nobody listens.")]
    assert "captions" in [one.held_as for one in read_facts(film).holdings]


def test_lines_that_roll_are_said_once(tmp_path: Path) -> None:
    """With the time of their first letter, also after a pause."""
    rolled = {
        0: [ROLL, AT_THE_BOTTOM], 5: letters("First line."),
        15: [NEW_LINE, AT_THE_BOTTOM, *letters("Second one.")], 25: [ERASE],
        40: [AT_THE_BOTTOM, *letters("After a pause.")], 45: [ERASE],
    }  # fmt: skip
    found = said(captioned(tmp_path / "film.mp4", rolled))
    assert [(start, text.split("\n")[-1]) for start, _, text in found] == [
        (0.5, "First line."), (1.5, "Second one."), (4.0, "After a pause.")
    ]  # fmt: skip


def packet_of_708(text: bytes) -> bytes:
    """A packet with one block of the first service; its head says half of its length."""
    block = bytes([1 << 5 | len(text)]) + text
    block += b"\0" * ((len(block) + 1) % 2)
    return bytes([(len(block) + 1) // 2]) + block


def test_captions_of_another_form_are_noted_where_they_are_alone(tmp_path: Path) -> None:
    """Neither read nor lost without a word; where both say the same, one is read and that is all."""
    others = {3: packet_of_708(b"A walrus"), 9: packet_of_708(b" hums."), 12: b"\x01\x00"}
    alone = embedded_subtitles(captioned(tmp_path / "alone.mp4", {}, others=others))
    assert [str(one) for one in alone.notices] == [
        "2 packets of captions in a form that is not read (CEA-708)"
    ]
    assert alone.notices[0].loss
    both = embedded_subtitles(captioned(tmp_path / "both.mp4", POPPED, others=others))
    assert (len(both.cues), both.notices) == (2, ())


def test_a_film_without_captions_has_none(tmp_path: Path) -> None:
    """Pictures that carry nothing but nulls say nothing; a track of text is read instead."""
    assert said(captioned(tmp_path / "film.mp4", {})) == []
    plain = make_film(tmp_path / "a.mp4", Pictures(2.0), Words([(0.5, 1.0, "a gull")]))
    assert [text for *_, text in said(plain)] == ["a gull"]
    assert "captions" not in [one.held_as for one in read_facts(plain).holdings]


def test_a_track_of_captions_beside_the_pictures(tmp_path: Path) -> None:
    """QuickTime has them in a track of their own, which was text of a kind that is not read."""
    shown = {0: [LOAD, AT_THE_BOTTOM, *letters("A walrus"), *letters(" hums.")], 1: [SHOW], 3: [ERASE]}
    samples = [parted(shown.get(second, [(0, 0)])) for second in range(6)]
    boxes = [struct.pack(">I4s", 8 + len(one), b"cdat") + one for one in samples]
    track = Boxed([(n, n + 1, one) for n, one in enumerate(boxes)], b"c608")
    film = make_film(tmp_path / "film.mp4", Pictures(6.0), track)
    assert said(film) == [(1.0, 3.0, "A walrus hums.")]
    assert [one.held_as for one in read_facts(film).holdings][1] == "subtitles"


def parted(codes: Codes) -> bytes:
    """Codes with their parities."""
    return b"".join(bytes(b | 0x80 * (b.bit_count() % 2 == 0) for b in pair) for pair in codes)
