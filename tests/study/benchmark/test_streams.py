"""Lines on few axes, and a query with a row in the space of each stream."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from numpy.typing import NDArray

from comparison import streams
from comparison.streams import export_two_streams, principal_axes
from moviola.errors import InvalidValue
from moviola.features import FeatureFolder, FeatureRows, QueryFeatures, SourceFacts, VideoFeatures

CLIPS, DIM, SAID = 5, 4, 9
DRAW = np.random.default_rng(3)
PICTURES = DRAW.normal(size=(2, CLIPS, DIM)).astype(np.float16)
BASIS = np.linalg.qr(DRAW.normal(size=(SAID, SAID)))[0][:, :3]


def few_axes() -> NDArray[np.float16]:
    """Lines in a space of three of nine axes; nobody speaks in the first two clips."""
    lines: NDArray[np.float16] = (DRAW.normal(size=(2, CLIPS, 3)) @ BASIS.T).astype(np.float16)
    lines[:, :2] = 0
    return lines


class Source:
    """A library's features, without a library."""

    facts = SourceFacts("toy", "1", 1.0, 4, True, DIM, SAID, DIM)

    def __init__(self, store: Any) -> None:
        self.lines = store.lines

    def videos(self) -> VideoFeatures:
        visual = FeatureRows(DIM, (0, 1), lambda key: PICTURES[key])
        said = FeatureRows(SAID, (0, 1), lambda key: self.lines[key]) if self.lines is not None else None
        durations = np.full(2, float(CLIPS))
        return VideoFeatures(("a", "b"), durations, 1.0, np.full(2, CLIPS), visual, said)

    def queries(self, ids: list[str], texts: list[str]) -> QueryFeatures:
        rows = [np.full((1 + len(text), DIM), len(text), np.float32) for text in texts]
        return QueryFeatures.of(ids, texts, rows)


def meanings(texts: list[str]) -> NDArray[np.float32]:
    return np.stack([BASIS[:, len(text) % 3] for text in texts]).astype(np.float32)


def exported(
    folder: Any, monkeypatch: pytest.MonkeyPatch, lines: Any, fitted_on: tuple[str, ...] = ("a", "b")
) -> FeatureFolder:
    monkeypatch.setattr(streams, "LibrarySource", Source)
    sentences = SimpleNamespace(encode_text=meanings)
    store = SimpleNamespace(folder="lib", lines=lines, encoders=SimpleNamespace(sentences=sentences))
    return export_two_streams(cast("Any", store), ["x", "yy", "x"], folder / "features", fitted_on=fitted_on)


def test_lines_keep_their_angles_and_silence(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = few_axes()
    features = exported(tmp_path, monkeypatch, lines)
    assert dataclasses.replace(Source.facts, subtitle_dim=DIM) == features.facts
    videos = features.videos()
    assert videos.subtitles is not None
    for video in (0, 1):
        np.testing.assert_array_equal(videos.visual.read(video), PICTURES[video])
        brought = videos.subtitles.read(video).astype(np.float64)
        whole = lines[video].astype(np.float64)
        np.testing.assert_allclose(brought @ brought.T, whole @ whole.T, atol=1e-2)
        assert not brought[:2].any()


def test_a_query_begins_with_its_meaning_and_ends_with_its_whole(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = few_axes()
    features = exported(tmp_path, monkeypatch, lines)
    queries = features.queries(["1", "2"], ["x", "yy"])
    axes = principal_axes(lines.astype(np.float64), DIM)
    for rows, text in zip(queries.rows, ("x", "yy"), strict=True):
        np.testing.assert_allclose(rows[0], meanings([text])[0] @ axes, atol=1e-3)
        np.testing.assert_array_equal(rows[1:], np.full((1 + len(text), DIM), len(text)))


def test_axes_are_orthonormal_and_the_first_is_the_longest() -> None:
    lines = few_axes()
    axes = principal_axes(lines.astype(np.float64), 4)
    np.testing.assert_allclose(axes.T @ axes, np.eye(4), atol=1e-5)
    spread = np.square(lines.reshape(-1, SAID).astype(np.float64) @ axes).sum(0)
    assert list(spread) == sorted(spread, reverse=True)
    assert spread[3] < 1e-3 * spread[0]


def test_axes_are_fitted_on_training_films_alone(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = few_axes()
    one, other = (exported(tmp_path / name, monkeypatch, lines, (name,)) for name in ("a", "b"))
    lines[1] = few_axes()[1]  # other lines in the film that is not fitted on
    changed = exported(tmp_path / "changed", monkeypatch, lines, ("a",))

    def brought(folder: FeatureFolder, video: int) -> NDArray[np.float32]:
        subtitles = folder.videos().subtitles
        assert subtitles is not None
        return subtitles.read(video).astype(np.float32)

    np.testing.assert_array_equal(brought(one, 0), brought(changed, 0))
    assert not np.allclose(brought(one, 0), brought(other, 0), atol=1e-2)


def test_nothing_to_fit_on_is_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = few_axes()
    lines[0] = 0
    with pytest.raises(InvalidValue, match="no subtitles in the 1 videos to fit on"):
        exported(tmp_path, monkeypatch, lines, ("a",))


def test_films_without_a_narrator_are_refused(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidValue, match="no subtitles in its videos"):
        exported(tmp_path, monkeypatch, None)


def test_scrambled_texts_are_as_alike_as_before_and_know_no_pictures(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One rotation for all rows of the picture encoder; the sentence encoder's row, and videos, stay."""
    whole = exported(tmp_path, monkeypatch, few_axes())
    scrambled = streams.scramble_texts(whole, tmp_path / "scrambled")
    for ours, theirs in zip(
        (scrambled.videos().visual.read(0), scrambled.videos().subtitles.read(1)),  # type: ignore[union-attr]
        (whole.videos().visual.read(0), whole.videos().subtitles.read(1)),  # type: ignore[union-attr]
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
    both = [
        np.concatenate([folder.queries(["q"], [text]).tokens(0) for text in ("x", "yy")])
        for folder in (whole, scrambled)
    ]
    of_sentences = [0, 3]
    np.testing.assert_allclose(both[1][of_sentences], both[0][of_sentences], atol=1e-3)
    own, turned = (np.delete(rows, of_sentences, axis=0) for rows in both)
    np.testing.assert_allclose(turned @ turned.T, own @ own.T, rtol=1e-2, atol=1e-2)
    assert not np.allclose(turned, own, atol=0.1)
    assert scrambled.facts == whole.facts and scrambled.durations == whole.durations
