"""Films in a container that browsers do not play."""

from __future__ import annotations

from pathlib import Path

import av

__all__ = ["to_matroska"]


def to_matroska(path: Path) -> None:
    """Put the pictures of a film into Matroska, ``.mkv``, in place of the film."""
    with av.open(str(path)) as source, av.open(str(path.with_suffix(".mkv")), "w") as target:
        stream = target.add_stream_from_template(source.streams.video[0])
        for packet in source.demux(video=0):
            if packet.size:
                packet.stream = stream
                target.mux(packet)
    path.unlink()
