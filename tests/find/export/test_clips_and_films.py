"""Clips and films, decoded again: the right pictures, as many and for as long as there should be."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
from av.video.reformatter import Colorspace, VideoReformatter
from numpy.typing import NDArray

from moviola.errors import InvalidValue, MediaError
from moviola.export import Selection, export_clip, export_clips, write_moments
from moviola.media import Card, Piece, cut, frame_at, join, probe, read_sound
from moviola.types import Moment, Span
from numbered import NTSC, number_of, numbered_film, numbers_in, varying_film


def moments(*spans: tuple[str, float, float]) -> list[Moment]:
    return [Moment(video, start, end, 0.5, rank) for rank, (video, start, end) in enumerate(spans, 1)]


# ---- clips -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["copy", "encode"])
@pytest.mark.parametrize(("rate", "first", "end"), [(10, 3, 7), (10, 17, 19), (NTSC, 31, 50), (25, 11, 13)])
def test_a_clip_has_the_pictures_of_its_frames(
    tmp_path: Path, mode: str, rate: Fraction | int, first: int, end: int
) -> None:
    """Times that floating point rounds down, .3 s at 10 a second, do not show the picture before."""
    film = numbered_film(tmp_path / "a.mp4", rate, 2, sound=True)
    span = Span(float(first / Fraction(rate)), float(end / Fraction(rate)))
    cut(film, span, tmp_path / "clip.mp4", mode=mode)  # type: ignore[arg-type]
    shown = numbers_in(tmp_path / "clip.mp4")
    # Pictures that are in the file only since others refer to them are hidden by its edit list.
    assert shown[: end - first] == list(range(first, end))
    assert probe(tmp_path / "clip.mp4").duration == pytest.approx(span.duration, abs=0.002)


def test_clips_by_key_frames_begin_there(tmp_path: Path) -> None:
    film = numbered_film(tmp_path / "a.mp4", 25, 3, sound=True)
    written = write_moments(moments(("a", 1.4, 2.0)), {"a": film}, tmp_path / "clips", mode="key-frames")
    assert [path.name for path in written.files] == ["001_a_1.4-2.0.mp4"]
    with av.open(str(written.files[0])) as clip:
        assert clip.streams.video[0].codec_context.name == "h264"
    with av.open(str(film)) as container:
        packets = [packet for packet in container.demux(video=0) if packet.size]
    keys = [round(packet.pts * packet.time_base * 25) for packet in packets if packet.is_keyframe]
    key = max(frame for frame in keys if frame <= 35)
    assert 0 < key < 35
    assert numbers_in(written.files[0])[: 50 - key] == list(range(key, 50))


@pytest.mark.parametrize("format", ["film", "csv", "edl"])
def test_a_video_is_not_written_over(tmp_path: Path, format: str) -> None:
    films = {name: numbered_film(tmp_path / f"{name}.mp4", 25, 1) for name in "ab"}
    (tmp_path / "link.mp4").symlink_to(films["b"])
    before = films["b"].read_bytes()
    for out in (films["b"], tmp_path / "link.mp4"):
        with pytest.raises(InvalidValue, match=r"\.mp4: is a video that is exported from; name another file"):
            write_moments(moments(("a", 0.0, 0.5)), films, out, format)
        with pytest.raises(InvalidValue, match="name another file"):
            export_clip(Moment("b", 0.0, 0.5, 1.0, 1), films["b"], out)
        with pytest.raises(InvalidValue, match="cannot be written"):
            export_clip(Moment("b", 0.0, 0.5, 1.0, 1), films["b"], tmp_path / f"{'x' * 300}.mp4")
    assert films["b"].read_bytes() == before


def test_what_cannot_be_copied_is_refused(tmp_path: Path) -> None:
    with av.open(str(tmp_path / "a.avi"), "w") as target:
        track = target.add_stream("mpeg4", rate=25)
        track.width = track.height = 64
        for _ in range(10):
            target.mux(track.encode(av.VideoFrame(64, 64, "yuv420p")))
        target.mux(track.encode(None))
    written = write_moments(
        moments(("a", 0, 0.2)), {"a": tmp_path / "a.avi"}, tmp_path / "c", mode="key-frames"
    )
    refused = written.refused["001_a_0.0-0.2.mp4"]
    assert (
        not written.files and "mpeg4 yuv420p cannot be copied" in refused and "exact for an export" in refused
    )
    assert write_moments(moments(("a", 0, 0.2)), {"a": tmp_path / "a.avi"}, tmp_path / "c").files


def test_a_clip_without_a_path_takes_no_other_with_it(tmp_path: Path, rates: dict[str, str]) -> None:
    written = write_moments(moments(("25", 0, 1), ("x", 0, 1), ("24", 0, 1)), rates, tmp_path / "clips")
    assert [path.name for path in written.files] == ["001_25_100_0.0-1.0.mp4", "003_24_0.0-1.0.mp4"]
    assert written.refused == {
        "002_x_0.0-1.0.mp4": "x: no path is known for this video; give one, or leave its moments out"
    }


@pytest.mark.parametrize("error", [OSError("no room for the bar"), MediaError("a", "enough"), KeyError("x")])
def test_what_progress_raises_ends_the_cutting(
    tmp_path: Path, rates: dict[str, str], error: Exception
) -> None:
    def stop(_: float) -> None:
        raise error

    with pytest.raises(type(error)) as raised:
        export_clips(moments(("25", 0, 1), ("24", 0, 1)), rates, tmp_path / "clips", progress=stop)
    assert raised.value is error and not list((tmp_path / "clips").iterdir())


def test_clips_are_numbered_as_they_stand(tmp_path: Path, rates: dict[str, str]) -> None:
    """Two searches have a first rank each."""
    chosen = [Moment("24", 0.0, 0.5, 0.5, 1), Moment("24", 0.01, 0.52, 0.5, 1)]
    written = write_moments(chosen, rates, tmp_path / "clips")
    assert [path.name for path in written.files] == ["001_24_0.0-0.5.mp4", "002_24_0.0-0.5.mp4"]


# ---- one film ----------------------------------------------------------------------------------------------


def test_a_film_shows_the_frames_of_its_moments(tmp_path: Path, rates: dict[str, str]) -> None:
    chosen = moments(("25", 0.4, 1.0), ("50", 0.2, 0.6), ("25", 1.2, 2.0))
    (film,) = write_moments(chosen, rates, tmp_path / "film.mp4").files
    assert numbers_in(film) == [*range(10, 25), *range(10, 30, 2), *range(30, 50)]
    info = probe(film)
    assert (info.width, info.height, info.average_rate, info.audio_codec) == (160, 96, 25, "aac")
    assert info.duration == pytest.approx(45 / 25)


def test_faster_slower_and_other_shapes(tmp_path: Path, rates: dict[str, str]) -> None:
    chosen = moments(("odd", 0.0, 0.8), ("60", 0.5, 1.0), ("30", 0.0, 0.5), ("df", 1.0, 1.5))
    (film,) = write_moments(chosen, rates, tmp_path / "film.mp4", rate=25).files
    wide, tall = numbers_in(film), numbers_in(film, width=96 * 96 // 160)
    assert wide[:20] == [number // 2 for number in range(20)]
    assert wide[20:32] == [int(30 + 60 * n / 25 + 1 / 16) for n in range(12)]
    assert len(wide) == 20 + 12 + 12 + 12
    # 96 x 160 between black bars; its bars of 9 pixels are 5 wide there.
    assert tall[32:44] == [int(30 * n / 25 + 1 / 16) for n in range(12)]


def test_turned_videos_stand_upright(tmp_path: Path, footage: Path) -> None:
    turned = footage / "decord_video_90.mov"
    (film,) = write_moments(moments(("a", 0, 0.1)), {"a": turned}, tmp_path / "film.mp4").files
    info = probe(film)
    assert (info.width, info.height, info.rotation) == (320, 568, 0)
    difference = np.abs(frame_at(film, 0.0, 320).astype(int) - frame_at(turned, 0.0, 320))
    assert difference.mean() < 8


def test_a_film_without_sound_has_no_track_of_it(tmp_path: Path, rates: dict[str, str]) -> None:
    (film,) = write_moments(moments(("24", 0, 1), ("60", 0, 1)), rates, tmp_path / "film.mp4").files
    assert probe(film).audio_codec is None


def test_sound_stands_where_its_pictures_do(tmp_path: Path, rates: dict[str, str]) -> None:
    """Silence, hum, silence, hum: a second each."""
    chosen = moments(("24", 0, 1), ("25", 0.5, 1.5), ("24", 0, 1), ("df", 0.5, 1.5))
    (film,) = write_moments(chosen, rates, tmp_path / "film.mp4", rate=24).files
    heard = np.concatenate(list(read_sound(film, rate=48_000)))
    seconds = probe(film).duration or 0
    assert len(heard) == pytest.approx(seconds * 48_000, abs=2048)
    tenths = np.abs(heard[: len(heard) // 4800 * 4800].reshape(-1, 4800)).mean(axis=1)
    assert (tenths[[1, 5, 8, 21, 25, 28]] < 0.01).all()
    assert (tenths[[11, 15, 18, 31, 35, 38]] > 0.1).all()


def test_titles_and_chapters(tmp_path: Path, rates: dict[str, str]) -> None:
    chosen = [Selection(m, f"Door {m.rank}", "a note") for m in moments(("25", 0, 1), ("25", 1, 2))]
    (film,) = write_moments(chosen, rates, tmp_path / "film.mp4", titles=True, size="320x180").files
    with av.open(str(film)) as container:
        chapters = [(c["metadata"]["title"], c["start"] * c["time_base"]) for c in container.chapters()]
        images = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    assert chapters == [("Door 1", 0), ("Door 2", 3)]
    assert len(images) == 150 and images[0].shape == (180, 320, 3)
    assert (images[0] == images[49]).mean() > 0.9 and images[25].max() > 180
    assert [number_of(image, 300) for image in images[50:75]] == list(range(25))


def test_a_varying_rate(tmp_path: Path) -> None:
    """A phone's video is taken at the rate that it was made for, by the times at which pictures are shown."""
    stamps = [0, 33, 67, 100, 167, 200, 267, 300, 333, 367, 400, 433, 467, 500, 533, 600, 633, 667]
    video = varying_film(tmp_path / "a.mkv", stamps)
    (film,) = write_moments(moments(("a", 0.1, 0.5)), {"a": video}, tmp_path / "film.mp4", rate=30).files
    shown = [max(n for n, stamp in enumerate(stamps) if stamp <= 1000 * k / 30 + 2) for k in range(3, 15)]
    assert numbers_in(film) == shown


def test_a_film_breaks_off_as_a_whole(tmp_path: Path, rates: dict[str, str]) -> None:
    cut_short = tmp_path / "short.mp4"
    cut_short.write_bytes(Path(rates["24"]).read_bytes()[:-4000])
    (tmp_path / "out").mkdir()
    with pytest.raises(MediaError, match=r"short\.mp4"):
        write_moments(
            moments(("25", 0, 1), ("a", 1.5, 2)), {**rates, "a": cut_short}, tmp_path / "out" / "film.mp4"
        )
    assert not list((tmp_path / "out").iterdir())


def test_what_cannot_be_joined_is_named(tmp_path: Path, rates: dict[str, str]) -> None:
    piece = Piece(Path(rates["24"]), Fraction(0), 3)
    card = Card(np.zeros((48, 64, 3), np.uint8), 2)
    out, rate = tmp_path / "film.mp4", Fraction(24)
    with pytest.raises(InvalidValue, match="nothing to join"):
        join([], out, rate=rate, size=(64, 48))
    with pytest.raises(InvalidValue, match="size 63x48: both sides must be even"):
        join([piece], out, rate=rate, size=(63, 48))
    with pytest.raises(InvalidValue, match="cannot be written"):
        join([piece], tmp_path, rate=rate, size=(64, 48))
    join([card, piece], out, rate=rate, size=(64, 48))
    assert probe(out).duration == pytest.approx(5 / 24)
    assert [path.name for path in tmp_path.iterdir()] == ["film.mp4"]


# ---- colours -----------------------------------------------------------------------------------------------

GREEN = (30, 200, 60)


def green_film(path: Path, height: int, coded: int | None) -> Path:
    """A second of green, its colours coded as BT.709 and said to be, or as players guess for its size."""
    matrix = Colorspace.ITU709 if coded or height >= 720 else Colorspace.ITU601
    image = np.full((height, height * 4 // 3, 3), GREEN, np.uint8)
    with av.open(str(path), "w") as target:
        track = target.add_stream("libx264", rate=5)
        track.width, track.height, track.pix_fmt = image.shape[1], height, "yuv420p"
        if coded:
            context = track.codec_context
            context.colorspace = context.color_primaries = context.color_trc = coded
        to_yuv = VideoReformatter()
        for number in range(5):
            frame = av.VideoFrame.from_ndarray(image, format="rgb24")
            frame = to_yuv.reformat(frame, format="yuv420p", dst_colorspace=matrix)
            frame.pts, frame.time_base = number, Fraction(1, 5)
            target.mux(track.encode(frame))
        target.mux(track.encode(None))
    return path


def colour_in_a_browser(path: Path) -> NDArray[np.uint8]:
    """Of the first picture, read as it says, else by its size."""
    with av.open(str(path)) as container:
        frame = next(container.decode(video=0))
    guess = Colorspace.ITU709 if frame.height >= 720 else Colorspace.ITU601
    shown = VideoReformatter().reformat(
        frame, format="rgb24", src_colorspace=guess if frame.colorspace == 2 else None
    )
    return np.asarray(shown.to_ndarray()[frame.height // 2, frame.width // 2])


@pytest.mark.parametrize(("height", "coded"), [(240, 1), (240, None), (720, 1), (720, None)])
def test_colours_stay_what_they_are(tmp_path: Path, height: int, coded: int | None) -> None:
    source = green_film(tmp_path / "a.mp4", height, coded)
    cut(source, Span(0, 0.6), tmp_path / "clip.mp4", mode="encode")
    write_moments(moments(("a", 0, 0.6)), {"a": source}, tmp_path / "film.mp4")
    for made in (source, tmp_path / "clip.mp4", tmp_path / "film.mp4"):
        assert np.abs(colour_in_a_browser(made).astype(int) - GREEN).max() < 8, made.name


# ---- sound from a time on ----------------------------------------------------------------------------------


@pytest.mark.parametrize("start", [0.0, 0.25, 1.5, 3.0])
@pytest.mark.parametrize("channels", [1, 2])
def test_sound_from_a_time_on(tmp_path: Path, start: float, channels: int) -> None:
    film = numbered_film(tmp_path / "a.mp4", 10, 4, sound=True)
    whole = np.concatenate(list(read_sound(film, rate=48_000)))
    later = np.concatenate(list(read_sound(film, rate=48_000, start=start, channels=channels)))  # type: ignore[arg-type]
    assert later.shape == (len(later), 2) if channels == 2 else (len(later),)
    mono = later[:, 0] if channels == 2 else later
    rest = whole[round(start * 48_000) :]
    both = min(len(mono), len(rest)) - 4800
    assert abs(len(mono) - len(rest)) < 2400
    scale = np.abs(rest[2400:both]).max()
    assert scale > 0.1
    # Two channels are as loud together as one.
    loud = np.abs(mono[2400:both]).max()
    assert np.abs(mono[2400:both] / loud - rest[2400:both] / scale).max() < 0.05
