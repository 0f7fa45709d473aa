"""A device decodes where its pictures are those of software; where not, or it fails, nothing is lost."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from av.packet import Packet
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.library.ingest import film_parts, frame_features
from moviola.media import Device, chosen_hardware, hardware, write_video
from moviola.search import Library

RATE = 5


def scenes(seed: int, seconds: int) -> Iterator[NDArray[np.uint8]]:
    """Noise that moves, and another one every seven seconds."""
    generator = np.random.default_rng(seed)
    for number in range(seconds * RATE):
        if number % (7 * RATE) == 0:
            base = generator.integers(0, 250, (6, 8, 3), np.uint8)
        yield np.roll(np.kron(base, np.ones((8, 8, 1), np.uint8)), number % 5, axis=1)


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("films")
    for seed, name in enumerate(("long", "other")):
        write_video(folder / f"{name}.mp4", scenes(seed, 45 - 30 * seed), rate=RATE)
    return folder


class StandIn(Device):
    """A device that is software."""

    decoded = 0

    def require(self) -> None:
        if self.name != "cuda":
            raise av.error.ExternalError(1, "no such card")

    def open(self, path: str, **options: Any) -> av.container.InputContainer:
        container: av.container.InputContainer = av.open(path, **options)
        return container

    def takes(self, stream: VideoStream) -> bool:
        return True

    def decode(self, stream: VideoStream, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        type(self).decoded += 1
        return stream.decode(packet)


class Wrong(StandIn):
    """Gives another picture once in a while, which no error says."""

    def decode(self, stream: VideoStream, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        frames = super().decode(stream, packet)
        for frame in frames:
            if self.decoded % 7 == 0:
                lines = np.frombuffer(frame.planes[0], np.uint8)  # type: ignore[arg-type]
                frame.planes[0].update(bytes(lines ^ 64))
        return frames


class Late(StandIn):
    """Shows each picture at another time."""

    def decode(self, stream: VideoStream, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        frames = super().decode(stream, packet)
        for frame in frames:
            frame.pts = (frame.pts or 0) + 1
        return frames


class Closed(StandIn):
    """Cannot be opened for a film, as where all its decoders are taken."""

    def open(self, path: str, **options: Any) -> av.container.InputContainer:
        raise av.error.MemoryError(12, "no room on the card")


class Failing(StandIn):
    """Fails once it has decoded for a while."""

    most = 180

    def decode(self, stream: VideoStream, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        if self.decoded >= self.most:
            raise av.error.ExternalError(1, "the card fell asleep")
        return super().decode(stream, packet)


class Odd(StandIn):
    """Decodes what is compared, and later gives pictures that cannot be scaled."""

    def decode(self, stream: VideoStream, packet: Packet[VideoStream] | None) -> list[VideoFrame]:
        frames = super().decode(stream, packet)
        if self.decoded < 150:
            return frames
        odd = [VideoFrame(6400, 64, "yuv420p") for _ in frames]
        for one, frame in zip(odd, frames, strict=True):
            one.pts = frame.pts
        return odd


@pytest.fixture(autouse=True)
def _cards(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(hardware, "user_cache", lambda: tmp_path / "cache")
    monkeypatch.setattr(hardware, "hwdevices_available", lambda: ["vaapi", "cuda"])
    monkeypatch.setattr(film_parts, "PART_SECONDS", 32)


def content(library: Library) -> dict[str, Any]:
    """All that a library has, by video, and its files of features."""
    catalogue, store = library.catalogue, library.store
    made: dict[str, Any] = {
        video.video_id: (
            video.state, video.error, video.duration, catalogue.shots(video.row), catalogue.checksums(),
            store.stills.nearest(video.hash, 3.0), looks_like(library, video.hash),
        )
        for video in catalogue.videos()
    }  # fmt: skip
    files = sorted((store.folder / "features").glob("*.f16"))
    return made | {path.name: path.read_bytes() for path in files}


def looks_like(library: Library, content: str) -> tuple[bytes, bytes]:
    fingerprint = library.store.stills.fingerprint(content)
    assert fingerprint is not None
    return fingerprint.times.tobytes(), fingerprint.frames.tobytes()


def indexed(films: Path, folder: Path, **options: Any) -> tuple[dict[str, Any], str]:
    with Library(folder, encoder="demo", sentence_encoder="none") as library:
        report = library.index(films, **options)
        assert sorted(report.added) == ["long", "other"] and not report.refused and not report.partial
        return content(library), report.decoding


@pytest.fixture(scope="module")
def by_software(films: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(film_parts, "PART_SECONDS", 32)
        made, said = indexed(films, tmp_path_factory.mktemp("software") / "library")
        assert said == ""
        return made


@pytest.mark.parametrize(
    ("device", "lanes", "said"),
    [
        (StandIn, 2, "2 films by cuda"),
        (Wrong, 1, r"2 films by software, .* \(cuda's picture \d+ differs by .* of 255, up to 64\)"),
        (Late, 1, r"2 films by software, .* \(cuda gives picture 0 another time, size, colours or turn\)"),
        (Closed, 2, r"2 films by software, .* \(cuda: .*no room on the card.*\)"),
        (Failing, 1, r".*by software, such as long\.mp4 \(cuda failed: .*the card fell asleep.*\)"),
        (Failing, 2, r".*by software, such as long\.mp4 \(cuda failed: .*the card fell asleep.*\)"),
        (Odd, 2, r".*by software, such as long\.mp4 \(cuda failed: .*6400 x 64.*"),
    ],
)
def test_a_library_is_the_same_whatever_decodes(
    films: Path, tmp_path: Path, by_software: dict[str, Any], monkeypatch: pytest.MonkeyPatch,
    device: type[StandIn], lanes: int, said: str,
) -> None:  # fmt: skip
    """Catches wrong pictures that are encoded, a film that is refused or cut off since a card failed, one
    that is not decoded by the card at all, and a word that is missing.
    """
    monkeypatch.setattr(hardware, "Device", device)
    monkeypatch.setattr(frame_features, "compute_threads", lambda: lanes)
    device.decoded = 0
    made, words = indexed(films, tmp_path / "library", hwaccel="auto")
    assert made == by_software
    assert re.fullmatch(said, words), words
    assert device.decoded or device is Closed
    assert device in {Wrong, Late, Closed} or device.decoded > 140


def test_pictures_are_compared_once_a_machine(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a comparison for each film, one that is not made again with another driver, or where its file
    is damaged, and a verdict on too few pictures.
    """
    monkeypatch.setattr(hardware, "Device", Late)
    film = films / "other.mp4"
    used = chosen_hardware("cuda")
    assert used and used.device_for(film) is None
    known = json.loads((verdicts := tmp_path / "cache" / "hardware.json").read_text())
    assert [key.split(" | ")[0::2] for key in known] == [["cuda", "h264 yuv420p"]]
    monkeypatch.setattr(hardware, "Device", StandIn)
    again = chosen_hardware("cuda")
    assert again and again.device_for(film) is None, "the verdict was not kept"
    for changed in ("driver", "damaged"):
        if changed == "driver":
            monkeypatch.setattr(hardware, "_driver", lambda: "another driver")
        else:
            verdicts.write_text("[")
        other = chosen_hardware("cuda")
        assert other and other.device_for(film) is not None
    monkeypatch.setattr(hardware, "_driver", lambda: "a third one")
    write_video(tmp_path / "short.mp4", scenes(1, 1), rate=RATE)
    short = chosen_hardware("cuda")
    assert short and short.device_for(tmp_path / "short.mp4") is None and "too short" in short.said
    assert short.device_for(film) is not None


def test_a_device_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """Catches a name that is taken for none, and a device that cannot be opened without a word."""
    monkeypatch.setattr(hardware, "Device", StandIn)
    with pytest.raises(
        InvalidValue, match=r"hwaccel 'quantum': libav knows vaapi, cuda here; give one, auto"
    ):
        chosen_hardware("quantum")
    with pytest.raises(
        InvalidValue, match=r"hwaccel vaapi: its device cannot be opened here \(.*no such card"
    ):
        chosen_hardware("vaapi")
    assert chosen_hardware("none") is None
    monkeypatch.setattr(hardware, "hwdevices_available", lambda: ["vaapi"])
    nothing = chosen_hardware("auto")
    assert nothing and nothing.device_for(Path("film.mp4")) is None
    assert nothing.said.startswith("by software, as no device can be opened here (vaapi: ")


def test_names_of_devices_are_those_of_libav() -> None:
    """Catches a libav without devices, and names that it does not have: no card is needed for either."""
    from av.codec.hwaccel import HWDeviceType, hwdevices_available

    assert {*hwdevices_available()} <= {kind.name for kind in HWDeviceType}
    with pytest.raises((*hardware.DAMAGE, OSError, NotImplementedError)):
        Device("drm").require()
