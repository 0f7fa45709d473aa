"""Decoding by a device, such as a graphics card, where it was seen to give the pictures that software gives.

Before a device decodes the first film of a codec, some pictures of that film are decoded both ways and
compared, picture by picture: the same times, sizes, colours and turns, and values that differ by at most
:data:`MOST_APART` of 255 in the mean and :data:`FURTHEST` in one place (codecs such as H.264 and HEVC define
them to the bit, MPEG-2 leaves their rounding open). What came out is kept in the user's cache for the device,
its driver, and the codec with its format of pixels.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import islice, zip_longest
from pathlib import Path
from threading import Lock
from typing import Any

import av
import av.container
import numpy as np
from av.codec import Codec
from av.codec.hwaccel import HWAccel, hwdevices_available
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from numpy.typing import NDArray

from moviola.errors import DataError, InvalidValue, MediaError, MoviolaError, NotFound, counted, printable
from moviola.files.caches import user_cache
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.media.container import DAMAGE, open_video

__all__ = ["Device", "Hardware", "chosen_hardware"]

MOST_APART, FURTHEST = 0.5, 8.0
"""Difference of a picture's values from those of software, of 255: in the mean, and in one place."""

# Pictures that are compared, and without which there is no verdict.
_COMPARED, _ENOUGH = 48, 12
# A codec that every device which decodes films knows.
_USUAL = "h264"
# What a device or its driver raises; NotImplementedError: it does not know a codec.
_FAILURES = (*DAMAGE, OSError, NotImplementedError, MediaError)


class Device:
    """A device of one of libav's kinds."""

    def __init__(self, name: str) -> None:
        self.name = name

    def require(self) -> None:
        """Open the device. Raises what libav raises where it is not there."""
        codec = Codec(_USUAL, "r")
        if all(config.device_type.name != self.name for config in codec.hardware_configs or ()):
            raise NotImplementedError(f"libav does not decode {_USUAL} by it here")
        HWAccel(self.name, allow_software_fallback=False).create(codec)

    def open(self, path: str, **options: Any) -> av.container.InputContainer:
        """Open a file that the device decodes."""
        settings = HWAccel(self.name, allow_software_fallback=True)  # for other streams of the file
        container: av.container.InputContainer = av.open(path, hwaccel=settings, **options)
        return container

    def takes(self, stream: VideoStream) -> bool:
        """Whether the device decodes a stream that it opened, by its codec."""
        return stream.codec_context.is_hwaccel

    def decode(self, stream: VideoStream, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        """Pictures that come out when a packet goes in, in the memory of this process."""
        return stream.decode(packet)


class Hardware:
    """A device for the films of a run, or none; safe for threads.

    Args:
        device: None where none can be opened, and ``why`` not.
    """

    def __init__(self, device: Device | None, why: str = "") -> None:
        self._device, self._why = device, why
        self._verdicts = user_cache() / "hardware.json"  # of what was found on this machine
        self._lock = Lock()
        self._decodes: set[Path] = set()
        self._left: dict[Path, str] = {}

    @property
    def said(self) -> str:
        """How films were decoded, in words; empty where there was none."""
        if self._device is None:
            return self._why
        own = len(self._decodes - self._left.keys())
        words = [f"{counted(own, 'film')} by {self._device.name}"] if own else []
        reasons: dict[str, list[Path]] = {}
        for path in sorted(self._left):  # whichever was read first
            reasons.setdefault(self._left[path], []).append(path)
        for why, paths in reasons.items():
            one = printable(paths[0].name)
            words.append(f"{counted(len(paths), 'film')} by software, such as {one} ({why})")
        return "; ".join(words)

    def device_for(self, path: Path) -> Device | None:
        """What decodes a film; None: software does."""
        if self._device is None or path in self._left:
            return None
        with self._lock:  # one comparison at a time
            if path not in self._decodes:
                try:
                    why = self._objection(self._device, path)
                except _FAILURES as error:
                    why = f"{self._device.name}: {error.reason if isinstance(error, MediaError) else error}"
                if why:
                    self._left[path] = why
                    return None
                self._decodes.add(path)
        return self._device

    def leave(self, path: Path, error: BaseException) -> bool:
        """Let software decode a film from now on; returns whether the device did."""
        with self._lock:
            if path not in self._decodes or path in self._left or self._device is None:
                return False
            cause = error.__cause__ or error.__context__ or error
            self._left[path] = f"{self._device.name} failed: {cause.__cause__ or cause}"
            return True

    def _objection(self, device: Device, path: Path) -> str:
        """Why a device is not to decode a film; empty if it is."""
        with open_video(path) as (_, stream):
            codec = f"{stream.codec_context.name} {stream.pix_fmt}"
        key = f"{device.name} | {_driver()} | {codec}"
        known = _read(self._verdicts)
        if key not in known:
            count, why = _compared(device, path)
            if not why and count < _ENOUGH:
                return f"too short to compare {device.name}'s pictures of {codec}"
            known[key] = why
            with suppress(OSError, MoviolaError):  # it is compared again the next time
                write_json(self._verdicts, {**_read(self._verdicts), key: why})
        return known[key]


def chosen_hardware(name: str) -> Hardware | None:
    """What decodes for an option: ``"none"``, ``"auto"`` (the first device that can be opened), or a name of
    libav's.

    Raises:
        InvalidValue: a name that libav does not know here, or whose device cannot be opened.
    """
    if name == "none":
        return None
    names = hwdevices_available()
    if name not in {"auto", *names}:
        raise InvalidValue(
            f"hwaccel {name!r:.100}: libav knows {', '.join(names)} here; give one, auto or none"
        )
    problems = []
    for one in names if name == "auto" else [name]:
        device = Device(one)
        try:
            device.require()
        except _FAILURES as error:
            problems.append(f"{one}: {error}")
            continue
        return Hardware(device)
    if name != "auto":
        raise InvalidValue(
            f"hwaccel {name}: its device cannot be opened here ({problems[0]}); give auto or none"
        )
    return Hardware(None, f"by software, as no device can be opened here ({'; '.join(problems)})")


@cache
def _driver() -> str:
    """Versions of what a device's pictures depend on: libav, the kernel with its drivers, that of NVIDIA."""
    said = [f"libavcodec {'.'.join(map(str, av.library_versions['libavcodec']))}", platform.release()]
    with suppress(OSError):
        said.append(Path("/proc/driver/nvidia/version").read_text(encoding="utf-8").splitlines()[0])
    return ", ".join(said)


def _read(verdicts: Path) -> dict[str, str]:
    """Verdicts of this machine; nothing where the file is not there or damaged."""
    try:
        known = read_json(verdicts)
    except (NotFound, DataError):
        return {}
    return {key: why for key, why in known.items() if isinstance(why, str)} if isinstance(known, dict) else {}


def _compared(device: Device, path: Path) -> tuple[int, str]:
    """Number of pictures that agree, and what is wrong with the next one."""
    count = 0
    pairs = zip_longest(_pictures(path, None), _pictures(path, device))
    for count, (one, other) in enumerate(islice(pairs, _COMPARED)):
        if one is None or other is None:
            return count, f"{device.name} decodes {'more' if one is None else 'fewer'} pictures than software"
        if _facts(one) != _facts(other):
            return count, f"{device.name} gives picture {count} another time, size, colours or turn"
        difference = _difference(one, other)
        mean, most = float(difference.mean()), float(difference.max())
        if mean > MOST_APART or most > FURTHEST:
            return count, f"{device.name}'s picture {count} differs by {mean:.2g} of 255, up to {most:.3g}"
    return count + 1, ""


def _pictures(path: Path, device: Device | None) -> Iterator[VideoFrame]:
    with open_video(path, device) as (container, stream):
        if device is not None and not device.takes(stream):
            raise NotImplementedError(f"does not decode {stream.codec_context.name}")
        for packet in container.demux(stream):
            yield from device.decode(stream, packet) if device else stream.decode(packet)


def _facts(frame: VideoFrame) -> tuple[object, ...]:
    return (
        frame.pts, frame.width, frame.height, frame.colorspace, frame.color_range, frame.color_trc,
        frame.color_primaries, frame.rotation, frame.interlaced_frame,
    )  # fmt: skip


def _difference(one: VideoFrame, other: VideoFrame) -> NDArray[np.float32]:
    """Differences of all values of two pictures, of 255, in the first one's format."""
    same = other.reformat(format=one.format.name)
    bits = max(part.bits for part in one.format.components)
    apart = [np.abs(a - b).ravel() for a, b in zip(_planes(one, bits), _planes(same, bits), strict=True)]
    return np.asarray(np.concatenate(apart) / 2 ** (bits - 8), np.float32)


def _planes(frame: VideoFrame, bits: int) -> Iterator[NDArray[np.float32]]:
    size = 2 if bits > 8 else 1
    for plane in frame.planes:
        lines = np.frombuffer(bytes(plane), np.uint8).reshape(-1, abs(plane.line_size))
        whole = np.ascontiguousarray(lines[:, : plane.width * size]).view(
            np.uint16 if size == 2 else np.uint8
        )
        yield whole.astype(np.float32)
