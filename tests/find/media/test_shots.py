"""Shots: cuts at their very frame, dissolves and fades between their ends, and what is none of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from itertools import islice, pairwise
from pathlib import Path

import av
import numpy as np
import pytest
from av.video.frame import VideoFrame
from av.video.stream import VideoStream
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from numpy.typing import NDArray

from moviola.errors import MediaError
from moviola.media import (
    ShotFinder,
    Sightings,
    Transition,
    find_transitions,
    joined,
    look_through,
    sample_frames,
    shots,
    shrunk,
    write_video,
)
from moviola.media.shots import Stretch
from moviola.media.transitions import Slope, joined_fades, transitions
from moviola.types import FrameSize

Image = NDArray[np.uint8]
HEIGHT, WIDTH = 72, 128
SAMPLE = FrameSize(64, 64, "crop", 64)


def scene(seed: int, count: int, *, speed: float = 0.0, contrast: float = 60.0) -> list[Image]:
    """A wide soft picture over which the camera moves by ``speed`` pixels a frame."""
    generator = np.random.default_rng(seed)
    wide = WIDTH + int(abs(speed) * count) + 1
    fields = generator.normal(0, contrast, (6, -(-wide // 16) + 1, 3)) + generator.uniform(60, 190, 3)
    picture = np.repeat(np.repeat(fields, 12, axis=0), 16, axis=1)
    picture = np.clip(picture, 0, 255).astype(np.uint8)
    return [picture[:, (left := int(speed * number)) : left + WIDTH] for number in range(count)]


def blended(first: Sequence[Image], second: Sequence[Image]) -> list[Image]:
    """A dissolve from one row of pictures to another."""
    shares = np.arange(1, len(first) + 1) / (len(first) + 1)
    return [(a * (1 - s) + b * s).astype(np.uint8) for a, b, s in zip(first, second, shares, strict=True)]


@pytest.fixture
def shots_of(tmp_path: Path) -> Callable[..., list[Transition]]:
    """Transitions of a film of some pictures, looked at ``sampling`` times a second."""

    def find(images: Iterable[Image], rate: float = 25.0, sampling: float = 1.0) -> list[Transition]:
        path = tmp_path / "film.mp4"
        write_video(path, images, rate=rate)
        return find_transitions(path, rate=sampling, size=SAMPLE)

    return find


def watched(path: Path, rate: float = 1.0, at_once: int = 1) -> tuple[ShotFinder, list[Stretch]]:
    """A film whose frames came in, ``at_once`` of them together, and the spans to be looked through."""
    finder, seen, named = ShotFinder(rate), Sightings(), []
    with sample_frames(path, rate=rate, size=SAMPLE, watcher=seen) as stream:
        while frames := [frame.image for frame in islice(stream, at_once)]:
            finder.take(seen.taken())
            named += finder.add(shrunk(np.stack(frames)))
    finder.take(seen.taken())
    return finder, named + finder.rest()


Find = Callable[..., list[Transition]]


@pytest.mark.parametrize("rate", [5.0, 12.5, 24.0, 25.0, 30000 / 1001, 60.0])
@pytest.mark.parametrize("speed", [0.0, 0.7])
def test_cuts_are_found_at_their_frame(shots_of: Find, rate: float, speed: float) -> None:
    lengths = [round(rate * seconds) for seconds in (2.3, 1.0, 3.41)]
    images = [image for seed, n in enumerate(lengths) for image in scene(seed, n, speed=speed)]
    found = shots_of(images, rate)
    assert [shot.kind for shot in found] == ["cut", "cut"]
    np.testing.assert_allclose(
        [shot.time * rate for shot in found], [lengths[0], lengths[0] + lengths[1]], atol=0.02
    )


@pytest.mark.parametrize("sampling", [0.5, 1.0, 3.0])
def test_cuts_are_found_however_often_the_film_was_sampled(shots_of: Find, sampling: float) -> None:
    images = scene(1, 60) + scene(2, 61) + scene(3, 50)
    assert [round(shot.time * 25) for shot in shots_of(images, sampling=sampling)] == [60, 121]


def test_two_cuts_between_two_sampled_frames(shots_of: Find) -> None:
    images = scene(1, 30) + scene(2, 12) + scene(3, 40)
    assert [round(shot.time * 25) for shot in shots_of(images)] == [30, 42]


@pytest.mark.parametrize("length", [6, 15, 40])
def test_dissolves(shots_of: Find, length: int) -> None:
    first, second = scene(1, 60 + length), scene(2, 70 + length)
    images = first[:60] + blended(first[60:], second[:length]) + second[length:]
    (found,) = shots_of(images)
    assert found.kind == "dissolve"
    assert 60 <= found.time * 25 < 60 + length
    assert abs(found.start * 25 - 60) <= 3 and abs(found.end * 25 - 60 - length) <= 3


@pytest.mark.parametrize("blank", [0, 255], ids=["black", "white"])
@pytest.mark.parametrize("hold", [0, 5, 80])
def test_fades_are_one_transition(shots_of: Find, blank: int, hold: int) -> None:
    first, second = scene(1, 75), scene(2, 75)
    nothing = np.full_like(first[0], blank)
    out = blended(first[55:], [nothing] * 20)
    into = blended([nothing] * 20, second[:20])
    (found,) = shots_of(first[:55] + out + [nothing] * (hold + 1) + into + second[20:])
    assert found.kind == "fade"
    assert 75 - 3 <= found.time * 25 <= 76 + hold + 3


def swept(kind: str, old: Image, new: Image, share: float) -> Image:
    """A picture over which another one has come from the left by a share, where both stay or move."""
    width = old.shape[1]
    edge = round(width * share)
    behind = new[:, width - edge :] if kind in ("push", "cover") else new[:, :edge]
    before = old[:, : width - edge] if kind in ("push", "uncover") else old[:, edge:]
    return np.concatenate([behind, before], axis=1)


@pytest.mark.parametrize("kind", ["wipe", "push", "cover", "uncover"])
@pytest.mark.parametrize(("turn", "length"), [(0, 8), (1, 20), (2, 45), (3, 30)])
def test_what_sweeps_over_the_screen(shots_of: Find, kind: str, turn: int, length: int) -> None:
    """Catches a direction or a kind of sweep that is missed, or found as something else or twice."""
    first, second = (scene(seed, 60 + length, contrast=90) for seed in (1, 2))
    shares = np.arange(1, length + 1) / (length + 1)
    pairs = zip(first[60:], second, shares, strict=False)
    sweep = [
        np.rot90(swept(kind, np.rot90(old, turn), np.rot90(new, turn), share), -turn)
        for old, new, share in pairs
    ]
    images = first[:60] + [np.ascontiguousarray(image) for image in sweep] + second[length:]
    (found,) = shots_of(images)
    assert found.kind == "wipe"
    assert 60 < found.time * 25 < 60 + length
    assert max(abs(found.start * 25 - 60), abs(found.end * 25 - 60 - length)) <= 3 + length / 4


@pytest.mark.parametrize("share", [0.4, 0.75, 1.6])
def test_a_whip_pan_and_a_banner_are_no_wipes(shots_of: Find, share: float) -> None:
    """Catches what moves in between two that rest and is taken for one picture that pushes another away."""
    count = 20
    panned = scene(4, 2, speed=share * WIDTH)[0]
    wide = np.concatenate([panned, *(scene(seed, 1)[0] for seed in (8, 9))], axis=1)
    lefts = [0] * 40 + [round(share * WIDTH * number / count) for number in range(count)]
    lefts += [round(share * WIDTH)] * 40
    assert shots_of([wide[:, left : left + WIDTH] for left in lefts]) == []
    banner = [image.copy() for image in scene(7, 100)]
    for number, image in enumerate(banner[40:]):
        image[-24:, : min(WIDTH, 6 * number)] = 250
    assert shots_of(banner) == []


def test_a_fade_at_either_end_leads_to_no_other_shot(shots_of: Find) -> None:
    images = scene(1, 120)
    black = np.zeros_like(images[0])
    into, out = blended([black] * 30, images[:30]), blended(images[90:], [black] * 30)
    assert shots_of([black] * 10 + into + images[30:90] + out + [black] * 10) == []


@pytest.mark.parametrize("length", [1, 2, 4])
def test_a_flash_is_no_cut(shots_of: Find, length: int) -> None:
    images = scene(1, 125)
    lit = [np.clip(image.astype(np.int64) + 120, 0, 255).astype(np.uint8) for image in images]
    for first in (20, 48, 75):  # the second and third are seen in sampled frames
        images[first : first + length] = lit[first : first + length]
    assert shots_of(images) == []


@pytest.mark.parametrize("speed", [1.0, 6.0, 14.0])
def test_a_pan_is_no_cut(shots_of: Find, speed: float) -> None:
    moving = scene(4, 50, speed=speed)
    assert shots_of([moving[0]] * 30 + moving + [moving[-1]] * 30) == []


def test_a_jerk_of_the_camera_is_no_cut(shots_of: Find) -> None:
    image = np.concatenate([scene(5, 1)[0], scene(6, 1)[0]], axis=1)
    assert shots_of([image[:, :WIDTH]] * 31 + [image[:, 14 : 14 + WIDTH]] * 31) == []


def test_light_that_changes_is_no_dissolve(shots_of: Find) -> None:
    images = scene(7, 100)
    share = np.clip(np.linspace(1.6, -0.6, 100), 0.25, 1.0)
    assert shots_of([(image * s).astype(np.uint8) for image, s in zip(images, share, strict=True)]) == []


def test_nothing_is_suspected_of_a_still_film(tmp_path: Path) -> None:
    path = tmp_path / "still.mp4"
    write_video(path, scene(1, 50), rate=25)
    finder, named = watched(path)
    assert (finder.marks, named) == ([], [])


# ---- odd files -------------------------------------------------------------------------------------------


def write_uneven(path: Path, images: Sequence[Image], times: Sequence[Fraction]) -> None:
    """A film whose pictures are shown at any times."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.time_base = Fraction(1, 90_000)
        stream.codec_context.thread_count = 1
        stream.bit_rate = 0 if path.suffix == ".mp4" else 4_000_000
        for image, time in zip(images, times, strict=True):
            picture = VideoFrame.from_ndarray(np.ascontiguousarray(image)).reformat(format="yuv420p")
            picture.pts, picture.time_base = round(time * 90_000), Fraction(1, 90_000)
            container.mux(stream.encode(picture))
        container.mux(stream.encode(None))


@pytest.mark.parametrize("suffix", ["mp4", "mkv"])
def test_a_varying_frame_rate(tmp_path: Path, suffix: str) -> None:
    images = scene(1, 40, speed=0.5) + scene(2, 30, speed=0.5) + scene(3, 40, speed=0.5)
    steps = [(1, 2, 5, 1, 1, 3)[number % 6] for number in range(len(images))]
    times = [Fraction(sum(steps[:number]), 50) for number in range(len(images))]
    path = tmp_path / f"uneven.{suffix}"
    write_uneven(path, images, times)
    found = find_transitions(path, rate=1.0, size=SAMPLE)
    np.testing.assert_allclose([shot.time for shot in found], [float(times[40]), float(times[70])], atol=2e-3)


def test_a_damaged_film_gives_the_shots_that_can_be_seen(tmp_path: Path) -> None:
    path = tmp_path / "film.mp4"
    generator = np.random.default_rng(0)
    noisy = [
        np.clip(image + generator.normal(0, 4, image.shape), 0, 255).astype(np.uint8)
        for image in scene(1, 60) + scene(2, 60) + scene(3, 60)
    ]
    write_video(path, noisy, rate=25)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    found = find_transitions(path, rate=1.0, size=SAMPLE)
    assert [round(shot.time * 25) for shot in found] == [60]


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    with pytest.raises(MediaError, match=r"gone\.mp4"):
        find_transitions(tmp_path / "gone.mp4", rate=1.0, size=SAMPLE)
    with pytest.raises(MediaError, match=r"gone\.mp4"):
        look_through(tmp_path / "gone.mp4", [(0.0, 1.0)])


# ---- pictures that pass by -------------------------------------------------------------------------------

WHOLE = "bframes=0:keyint=250:scenecut=0"
ENCODED = {
    "every picture is referred to": WHOLE,
    "cuts are key frames": "bframes=0:keyint=250",
    "every second one": "bframes=3:b-pyramid=normal:keyint=250",
    "every fourth one": "bframes=3:b-pyramid=none:b-adapt=0:keyint=250",
    "cuts are no key frames": "bframes=3:keyint=250:scenecut=0",
    "key frames of two kinds": "bframes=3:open-gop=1:keyint=60:min-keyint=5",
    "short groups": "bframes=3:keyint=12",
}


CODECS = {".mp4": "libx264", ".avi": "mpeg4"}


def encoded(path: Path, images: Sequence[Image], settings: str, rate: int = 25) -> Path:
    options = {"x264-params": settings, "crf": "23"} if path.suffix == ".mp4" else {"bf": "2", "g": "250"}
    with av.open(str(path), "w") as container:
        stream = container.add_stream(CODECS[path.suffix], rate=rate, options=options)
        assert isinstance(stream, VideoStream)
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        stream.codec_context.thread_count = 1
        stream.bit_rate = 0 if path.suffix == ".mp4" else 4_000_000
        for image in images:
            picture = VideoFrame.from_ndarray(np.ascontiguousarray(image))
            container.mux(stream.encode(picture.reformat(format="yuv420p")))
        container.mux(stream.encode(None))
    return path


def film_of_everything() -> list[Image]:
    """Cuts, one of them after a short shot, a dissolve, a fade, a pan, and stretches in which nothing is."""
    still = [scene(seed, 60, speed=0.6) for seed in range(8)]
    black = [np.zeros_like(still[0][0])] * 15
    pan = scene(9, 50, speed=5.0)
    return [
        *still[0], *still[1][:8], *still[2], *blended(still[2][-20:], still[3][:20]), *still[3][20:],
        *blended(still[3][-15:], black), *blended(black, still[4][:15]), *still[4][15:], *pan,
        *[pan[-1]] * 30, *still[5], *still[6],
    ]  # fmt: skip


@pytest.mark.parametrize("settings", ENCODED.values(), ids=ENCODED)
def test_pictures_that_pass_by_give_what_all_pictures_do(tmp_path: Path, settings: str) -> None:
    images = film_of_everything()
    path = encoded(tmp_path / "film.mp4", images, settings)
    found = find_transitions(path, rate=1.0, size=SAMPLE)
    every = joined(look_through(path, [(0.0, len(images) / 25)]))
    assert [shot.kind for shot in found] == [shot.kind for shot in every]
    assert len(found) >= 7
    for ours, theirs in zip(found, every, strict=True):
        most = 0 if ours.kind == "cut" else 4 / 25
        assert abs(ours.start - theirs.start) <= most and abs(ours.end - theirs.end) <= most


def test_a_film_whose_pictures_all_pass_by_is_not_decoded_again(tmp_path: Path) -> None:
    path = encoded(tmp_path / "film.mp4", film_of_everything(), WHOLE)
    finder, named = watched(path)
    assert named == []
    assert len(joined(finder.marks)) == 7


def test_where_few_pictures_are_kept_the_film_is_decoded_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = encoded(tmp_path / "film.mp4", film_of_everything(), WHOLE)
    expected = find_transitions(path, rate=1.0, size=SAMPLE)
    monkeypatch.setattr(shots, "_MOST_KEPT", 40)
    finder, named = watched(path)
    assert named
    assert joined([*finder.marks, *look_through(path, named)]) == expected


@pytest.mark.parametrize("kind", ["avi", "damaged"])
def test_where_everything_has_to_be_decoded_nothing_is_decoded_again(tmp_path: Path, kind: str) -> None:
    """Catches pictures that go by unseen where a file must be decoded whole, so that it is opened again."""
    images = film_of_everything()
    path = encoded(tmp_path / f"film.{kind.replace('damaged', 'mp4')}", images, WHOLE)
    if kind == "damaged":
        damaged = bytearray(path.read_bytes())
        middle = len(damaged) // 2
        damaged[middle : middle + 400] = bytes(400)
        path.write_bytes(damaged)
    finder, named = watched(path)
    every = joined(look_through(path, [(0.0, len(images) / 25)]))
    assert not named
    assert joined(finder.marks) == every
    assert [round(shot.time * 25) for shot in every[:2]] == [60, 68]
    assert len(every) >= (4 if kind == "damaged" else 7)


# ---- properties ------------------------------------------------------------------------------------------


@given(
    arrays.arrays(np.uint8, st.tuples(st.integers(1, 6), st.integers(1, 40), st.integers(1, 40), st.just(3)))
)
def test_shrunk_frames_keep_their_mean(images: Image) -> None:
    small = shrunk(images)
    assert small.shape == (len(images), min(16, images.shape[1]), min(16, images.shape[2]), 3)
    assert (small.min((1, 2)) >= images.min((1, 2))).all() and (small.max((1, 2)) <= images.max((1, 2))).all()


@given(
    st.lists(st.integers(0, 255), min_size=1, max_size=40),
    st.sampled_from([0.5, 1.0, 2.0, 6.25]),
    st.integers(1, 40),
)
def test_stretches_to_look_through_rise_and_cover_every_change(
    levels: list[int], rate: float, at_once: int
) -> None:
    samples = np.repeat(np.array(levels, np.uint8), 16 * 16 * 3).reshape(-1, 16, 16, 3)
    finder, stretches = ShotFinder(rate), []
    for first in range(0, len(samples), at_once):
        stretches += finder.add(samples[first : first + at_once])
    stretches += finder.rest()  # no picture passed by, so none can be judged
    assert all(0 <= start < end < start + 21 for start, end in stretches)
    assert all(before[0] < after[0] and before[1] < after[1] for before, after in pairwise(stretches))
    for place in np.flatnonzero(np.abs(np.diff(np.array(levels))) >= 14 * max(1, rate)).tolist():
        if rate <= 1:
            assert any(start <= place / rate and (place + 1) / rate <= end for start, end in stretches)
    whole = ShotFinder(rate)
    assert [*whole.add(samples), *whole.rest()] == stretches


@settings(max_examples=60)
@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(1, 12)), min_size=1, max_size=6),
    st.lists(st.integers(1, 5), min_size=80, max_size=80),
)
def test_marks_rise_and_lie_inside(parts: list[tuple[int, int]], steps: list[int]) -> None:
    pictures = np.stack([scene(seed, 1)[0][::4, ::4] for seed, count in parts for _ in range(count)])
    times = np.cumsum(np.array(steps[: len(pictures)])) / 50
    marks = transitions(times, pictures)
    starts = [mark.start for mark in marks]
    assert starts == sorted(starts)
    assert all(times[0] <= mark.start <= mark.end <= times[-1] for mark in marks)
    found = [shot.time for shot in joined_fades(marks)]
    assert all(after - before >= 0.019 for before, after in pairwise(found))


@given(st.lists(st.sampled_from(["cut", "out", "into", "both", "neither"]), max_size=12))
def test_every_slope_is_part_of_one_transition_at_most(kinds: list[str]) -> None:
    marks: list[Transition | Slope] = []
    for place, kind in enumerate(kinds):
        if kind == "cut":
            marks.append(Transition("cut", place, place))
        else:
            marks.append(Slope(place, place + 0.5, kind in {"into", "both"}, kind in {"out", "both"}))
    found = joined_fades(marks)
    assert [shot.kind for shot in found].count("cut") == kinds.count("cut")
    assert [shot.kind for shot in found].count("dissolve") == kinds.count("neither")
    times = [shot.time for shot in found]
    assert times == sorted(set(times))


@pytest.mark.parametrize("sampling", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("first_look", [1.0, 5.0, 1000.0])
@pytest.mark.parametrize("at_once", [1, 32])
def test_transitions_are_the_same_however_frames_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sampling: float, first_look: float, at_once: int
) -> None:
    monkeypatch.setattr(shots, "_FIRST_LOOK", first_look)
    pictures = [scene(seed, 20 + 3 * seed, speed=0.5) for seed in range(6)]
    pictures[2] = blended(pictures[2], scene(3, 26))
    path = tmp_path / "film.mp4"
    write_video(path, [image for part in pictures for image in part], rate=10)
    finder, named = watched(path, sampling, at_once)
    # In any order, as several threads look.
    looks = [look for each in reversed(named) for look in look_through(path, [each])]
    found = joined([*looks, *finder.marks])
    assert found == find_transitions(path, rate=sampling, size=SAMPLE)
    assert len(found) >= 4
