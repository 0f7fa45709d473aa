"""Films whose pictures begin after their sound."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np

_RATE = 16_000


def late_pictures(film: Path, out: Path, lead: float) -> Path:
    """A copy of a silent film whose pictures begin ``lead`` seconds after a sound of a second."""
    with av.open(str(film)) as source, av.open(str(out), "w") as target:
        pictures = target.add_stream_from_template(source.streams.video[0])
        sound = target.add_stream("aac", rate=_RATE, layout="mono")
        noise = np.random.default_rng(0).normal(0, 0.2, (1, _RATE)).astype(np.float32)
        frame = av.AudioFrame.from_ndarray(noise, format="fltp", layout="mono")
        frame.sample_rate, frame.pts, frame.time_base = _RATE, 0, Fraction(1, _RATE)
        for packet in (*sound.encode(frame), *sound.encode(None)):
            target.mux(packet)
        for packet in source.demux(video=0):
            if packet.pts is not None and packet.dts is not None:
                late = round(lead / packet.time_base)
                packet.pts, packet.dts, packet.stream = packet.pts + late, packet.dts + late, pictures
                target.mux(packet)
    return out
