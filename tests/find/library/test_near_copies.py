"""Videos that show the same: which, where, and that answers show it once."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.library.disk.fingerprints import Fingerprint, FingerprintMaker, aligned
from moviola.library.near_copies import (
    COPIES_FILE,
    find_near_copies,
    known_copies,
    known_pairs,
    without_fingerprint,
)
from moviola.media import write_video
from moviola.search import Library
from moviola.search.found import Candidate
from moviola.search.fusion import without_copies
from moviola.types import CopiedMoment, Span

Frames = NDArray[np.uint8]


def footage(seed: int, count: int) -> Frames:
    """A scene of its own in which something moves, (n, 16, 16)."""
    generator = np.random.default_rng(seed)
    rows, columns = np.mgrid[:16, :16] / 15
    still = sum(
        generator.uniform(20, 60) * np.sin(generator.uniform(1, 7) * (rows * a + columns * b) + phase)
        for a, b, phase in generator.uniform(-1, 1, (4, 3))
    )
    path = generator.uniform(0, 1, (count, 2))
    blob = [np.exp(-20 * ((rows - y) ** 2 + (columns - x) ** 2)) for y, x in path]
    return np.clip(128 + still + 90 * np.stack(blob), 0, 255).astype(np.uint8)


def two_a_second(frames: Frames) -> Fingerprint:
    return Fingerprint(np.arange(len(frames)) / 2, frames)


def test_a_part_is_placed_to_the_frame() -> None:
    film = footage(0, 40)
    noise = np.random.default_rng(9).normal(0, 3, (12, 16, 16))
    clip = np.clip(film[17:29] * 0.8 + 20 + noise, 0, 255).astype(np.uint8)
    found = aligned(two_a_second(film), two_a_second(clip))
    assert found is not None
    assert abs(found.start - 8.5) < 0.3 and abs(found.end - 14.5) < 0.6 and abs(found.later + 8.5) < 0.1
    assert found.agreement > 0.9
    logo = film[17:29].copy()
    logo[:, 14:] = 20
    found = aligned(two_a_second(film), two_a_second(logo))
    assert found is not None and abs(found.later + 8.5) < 0.1


def test_pictures_at_other_times_are_compared_where_both_have_some() -> None:
    # One every second, as in a file of key frames, beside three a second of another encoder.
    film = Fingerprint(np.arange(60) / 6, footage(0, 60))
    seconds = Fingerprint(film.times[12::6] - 2, film.frames[12::6])
    uneven = np.delete(np.arange(12, 60), slice(0, None, 2))
    found = aligned(film, seconds)
    assert found is not None and abs(found.later + 2) < 0.1
    found = aligned(film, Fingerprint(film.times[uneven] - 2, film.frames[uneven]))
    assert found is not None and abs(found.later + 2) < 0.1


def test_a_fingerprint_has_four_pictures_a_second_and_what_stands_longer() -> None:
    maker = FingerprintMaker()
    light, dark = (np.full((18, 32, 3), level, np.uint8) for level in (200, 20))
    for number in range(20):  # two seconds of ten pictures, in an order of decoding
        maker.decoded((number ^ 1) / 10, light if number < 10 else dark)
    maker.decoded(-0.1, dark)  # hidden by the file
    maker.sampled(1.0, 1.0, dark)
    maker.sampled(5.0, 1.9, dark)
    made = maker.made()
    assert made.frames.shape == (len(made.times), 16, 16)
    assert len(made.times) == 9 and made.times[0] >= 0 and made.times[-1] == 5.0
    assert all(np.diff(made.times) > 0)
    assert all(
        (frame == (200 if time < 1 else 20)).all()
        for time, frame in zip(made.times, made.frames, strict=True)
    )


def test_look_alikes_are_no_copies() -> None:
    film = footage(0, 40)
    assert aligned(two_a_second(film[:18]), two_a_second(film[22:])) is None  # another stretch of the take
    assert aligned(two_a_second(film), two_a_second(footage(1, 40))) is None
    blank = two_a_second(np.full((10, 16, 16), 7, np.uint8))
    assert aligned(blank, blank) is None
    assert aligned(two_a_second(film[:2]), two_a_second(film[:2])) is None


def pictures(frames: Frames) -> list[Frames]:
    return [np.kron(frame, np.ones((8, 8), np.uint8))[..., None].repeat(3, axis=2) for frame in frames]


@pytest.fixture
def library(tmp_path: Path) -> Library:
    film, other = footage(0, 12), footage(1, 12)
    for name, frames in (("film", film), ("clip", film[4:10]), ("other", other)):
        (tmp_path / "films").mkdir(exist_ok=True)
        write_video(tmp_path / "films" / f"{name}.mp4", pictures(frames), rate=1)
    with Library(tmp_path / "lib", encoder="conse-lite1", sentence_encoder="none") as library:
        library.index(tmp_path / "films", ocr=False)
    return library


@pytest.mark.slow
def test_a_library_knows_its_copies(library: Library) -> None:
    with Library(library.folder) as lib:
        assert not known_copies(lib.store) and without_fingerprint(lib.store) == []
        (found,) = find_near_copies(lib.store)
        assert (found.kind, found.video_ids) == ("part", ("film", "clip"))
        assert abs(found.spans[0].start - 4) <= 0.5 and abs(found.spans[1].end - 6) <= 0.5
        one, other = (lib.catalogue.video(name).row for name in found.video_ids)
        known = known_copies(lib.store)
        there = known.there(other, Span(1, 3), one)
        assert there is not None and abs(there.start - 5) <= 0.5
        assert known.there(one, Span(0, 2), other) is None
        compared: list[float] = []
        assert find_near_copies(lib.store, compared.append) == [found]
        assert compared == []  # only what is new is looked at
        moments = [Candidate(one, Span(5, 7), 0.9, "visual"), Candidate(other, Span(1, 3), 0.8, "visual")]
        (shown,) = without_copies(moments, {one: "film", other: "clip"}, known)
        assert shown.copies == (CopiedMoment("clip", 1, 3),)
        apart = [moments[0], Candidate(other, Span(4, 6), 0.8, "visual")]
        assert without_copies(apart, {one: "film", other: "clip"}, known) == apart
        lib.indexer.remove(["clip"])
        assert find_near_copies(lib.store) == known_pairs(lib.store) == []
        lib.indexer.restore(["clip"])  # under another row number
        assert known_pairs(lib.store) == find_near_copies(lib.store, compared.append) == [found]
        assert compared == []
        one, other = (lib.catalogue.video(name).row for name in found.video_ids)
        assert known_copies(lib.store).copies_of(one) == {other}
        lib.indexer.remove(["clip"])
        (lib.folder / COPIES_FILE).write_bytes(b"damaged")
        assert find_near_copies(lib.store) == []


@pytest.mark.slow
def test_what_was_found_until_it_was_stopped_is_kept(library: Library) -> None:
    """A pair with a video that was not looked at itself must not be lost, nor a video be passed over."""
    with Library(library.folder) as lib:
        expected = find_near_copies(lib.store)
        found = lib.folder / COPIES_FILE
        for most in range(8):
            found.unlink(missing_ok=True)
            shares: list[float] = []

            def stopping(share: float, most: int = most, shares: list[float] = shares) -> None:
                shares.append(share)
                if len(shares) > most:
                    raise KeyboardInterrupt

            try:
                assert find_near_copies(lib.store, stopping) == expected
                break
            except KeyboardInterrupt:
                early = known_pairs(lib.store)
                assert set(early) <= set(expected)
            again: list[float] = []
            assert find_near_copies(lib.store, again.append) == expected
            assert len(again) < 7 - min(most, 3) + 1, "what was compared is not compared again"
        assert shares == sorted(shares) and shares[0] == 0 and shares[-1] == 1


@pytest.mark.slow
def test_the_next_index_makes_the_fingerprints_that_are_missing(library: Library) -> None:
    with Library(library.folder) as lib:
        (lib.folder / "stills.sqlite").unlink()
    with Library(library.folder) as lib:
        assert without_fingerprint(lib.store) == ["clip", "film", "other"]
        assert find_near_copies(lib.store) == []
        frames = [lib.catalogue.video(name).frames for name in ("clip", "film", "other")]
        report = lib.index(library.folder.parent / "films", ocr=False)
        assert (sorted(report.fingerprinted), report.added, report.updated) == (
            ["clip", "film", "other"],
            [],
            [],
        )
        assert [lib.catalogue.video(name).frames for name in ("clip", "film", "other")] == frames
        assert without_fingerprint(lib.store) == []
        assert [found.video_ids for found in find_near_copies(lib.store)] == [("film", "clip")]
        assert lib.index(library.folder.parent / "films", ocr=False).fingerprinted == []
