"""The structure of H.264 packets, which shows damage without decoding."""

from __future__ import annotations

__all__ = ["is_readable"]

_START = b"\0\0\1"
_FORBIDDEN = 0x80  # a bit of a unit's first byte that is never set


def is_readable(packet: bytes, head: bytes | None) -> bool:
    """Whether decoders find the units of a packet; one inside of which a few bytes are wrong is readable.

    ``head`` is the stream's ``extradata``, which says whether units have their length in front, as in MP4 and
    Matroska, or a start code, as in MPEG-TS.
    """
    if not head or len(head) < 5 or head[0] != 1:
        at = packet.find(_START) + len(_START)
        return len(_START) <= at < len(packet) and not packet[at] & _FORBIDDEN
    size, at, units = (head[4] & 3) + 1, 0, 0
    while at + size <= len(packet):
        length = int.from_bytes(packet[at : at + size], "big")
        at += size
        if length:  # some writers fill up with empty ones
            if at + length > len(packet) or packet[at] & _FORBIDDEN:
                return False
            units += 1
        at += length
    return units > 0
