"""Pictures compared with pictures, by features of their own where the encoder has them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from distinct import film_like
from moviola import encoders
from moviola.errors import EncoderMismatch
from moviola.features import FeatureShards, QueryFeatures
from moviola.library import Viewer, compact, verify
from moviola.library.disk.video_table import VideoTable
from moviola.retrieval import MeanPooling
from moviola.retrieval.segments import normalised
from moviola.search import Library, LikeMoment, LikePicture, SearchQuery, Text
from moviola.search.evidence import EvidenceGatherer
from moviola.search.options import SearchOptions
from moviola.search.queries import Simple
from moviola.search.searcher import Searcher
from written_settings import in_format

ENCODER = "conse-lite1"
LENGTH = 4


@pytest.fixture(scope="module")
def fresh(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of an encoder with features of pictures; not to be changed."""
    folder = tmp_path_factory.mktemp("fresh") / "library"
    with Library(folder, encoder=ENCODER, sentence_encoder="none") as library:
        library.index(films, ocr=False)
    return folder


@pytest.fixture(scope="module")
def old(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same as it was built before there were such features; not to be changed."""
    folder = tmp_path_factory.mktemp("old") / "library"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoders, "picture_dim", lambda _: 0)
        with Library(folder, encoder=ENCODER, sentence_encoder="none") as library:
            library.index(films, ocr=False)
    in_format(folder, 3, picture_dim=None)
    return folder


def found(folder: Path, query: SearchQuery, **options: object) -> list[tuple[str, float, float, float]]:
    with Library(folder, read_only=True) as library:
        moments = library.search(query, by="visual", top_k=50, **options)  # type: ignore[arg-type]
    return [(moment.video_id, moment.start, moment.end, moment.score) for moment in moments]


def rows(library: Library, video_id: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Features of a video's frames, and of its pictures, as they are stored."""
    extent = library.catalogue.video(video_id).frames
    assert extent is not None
    stored = library.store.frame_features.read(extent).astype(np.float32)
    return stored[:, : library.settings.encoder_dim], stored[:, library.settings.encoder_dim :]


# ---- what is stored ----------------------------------------------------------------------------------------


def test_both_features_of_a_frame_lie_in_one_row(fresh: Path, films: Path) -> None:
    with Library(fresh, read_only=True) as library:
        assert library.settings.picture_dim == 320
        encoder = library.store.encoders.visual
        assert isinstance(encoder, encoders.PictureEncoder)
        frame = library.store.encoders.picture(films / "film1.mp4")
        frames, pictures = rows(library, "film1")
        np.testing.assert_allclose(frame[0], np.concatenate([frames[0], pictures[0]]), atol=0.02)
        np.testing.assert_allclose(np.linalg.norm(pictures, axis=1), 1, atol=1e-3)
        (row,) = (row for row, video in library.store.searchable().items() if video.video_id == "film1")
        texts = library.store.features_of(VideoTable.of([library.store.searchable()[row]]))
        np.testing.assert_array_equal(texts.visual.read(0), frames.astype(np.float16))
        assert texts.visual.dim == encoder.dim


def test_texts_are_answered_as_without_them(fresh: Path, old: Path) -> None:
    query = Text("a red wall")
    for asked in (query, query.without("a cat")):
        with_them, without = (
            {(video, start, end): score for video, start, end, score in found(library, asked)}
            for library in (fresh, old)
        )
        # Vectors are made by two compiled graphs, which round differently.
        assert with_them == pytest.approx(without, abs=1e-3) and without


def test_a_library_is_sound_and_stays_so_when_it_is_compacted(fresh: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(fresh, tmp_path / "library"))
    with Library(folder) as library:
        assert verify(library.store) == []
        before = rows(library, "film0")
        library.indexer.remove(["film2"])
        assert compact(library.store) > 0
        assert verify(library.store) == []
        np.testing.assert_array_equal(np.hstack(rows(library, "film0")), np.hstack(before))
    assert {row[0] for row in found(folder, LikeMoment("film0", 20))} == {"film0", "film1"}


# ---- how it is asked ---------------------------------------------------------------------------------------


@pytest.fixture
def gatherer(fresh: Path) -> EvidenceGatherer:
    return _gatherer(Library(fresh, read_only=True))


def _gatherer(library: Library) -> EvidenceGatherer:
    return Searcher(library.store)._gatherer(Viewer(library.store).view(), SearchOptions(by="visual"))


def features_of(gatherer: EvidenceGatherer, thing: Simple) -> QueryFeatures:
    return gatherer.prepare([thing]).features(thing)


def test_a_moment_is_compared_by_features_of_pictures(gatherer: EvidenceGatherer) -> None:
    retrieval = gatherer.vectors
    assert retrieval is not None
    features = features_of(gatherer, LikeMoment("film0", 20))
    hits = retrieval.hits(features)
    scores = {}
    for place, name in enumerate(gatherer.view.features.video_ids):
        joined = gatherer.view.picture_features.read(place)
        segments = MeanPooling().segments(joined, LENGTH)
        own = normalised(
            gatherer.view.picture_features.read(gatherer.view.features.row_of["film0"], 20, 21)[:, -320:]
        )
        for position, segment in enumerate(segments):
            scores[name, position] = float(segment[-320:] @ own[0])
    names = gatherer.view.features.video_ids
    given = {
        (names[video], position): score
        for video, position, score in zip(
            hits.video[0].tolist(), hits.position[0].tolist(), hits.score[0].tolist(), strict=True
        )
    }
    assert given.keys() == scores.keys()
    for key, score in scores.items():
        assert given[key] == pytest.approx(score, abs=2e-3)


def test_the_log_odds_of_a_sum_are_the_mean_of_those_of_its_terms(gatherer: EvidenceGatherer) -> None:
    """By weight, and so one vector: sum_i w_i slope_i u_i."""
    picture, text = LikeMoment("film0", 20), Text("a red wall")
    summed = 2 * text + picture
    gatherer = gatherer.prepare([summed])
    given = gatherer.features(summed)
    dim = gatherer.view.settings.encoder_dim
    words, looks = gatherer._vectors_of(text), gatherer._vectors_of(picture)
    assert not words[0][dim:].any() and not looks[0][:dim].any()
    clips = normalised(gatherer.view.picture_features.read(0))
    scale, terms = gatherer.scale(summed), ((2 / 3, words), (1 / 3, looks))

    def log_odds(scores: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.log(scores) - np.log1p(-scores)

    expected = sum(weight * log_odds(own.scores(clips @ vector)) for weight, (vector, _, own) in terms)
    np.testing.assert_allclose(log_odds(scale.scores(clips @ given.vectors[0])), expected, atol=0.05)


@pytest.mark.parametrize(
    "query",
    [
        LikeMoment("film0", 20),
        Text("a red wall") + LikeMoment("film0", 20),
        Text("a red wall") + 2 * Text("a cat"),
        Text("a red wall").without(LikeMoment("film0", 20)),
    ],
    ids=str,
)
@pytest.mark.parametrize("refine", [True, False])
def test_every_way_of_asking(fresh: Path, query: SearchQuery, refine: bool) -> None:
    moments = found(fresh, query, refine=refine)
    assert moments and all(0 <= moment[3] <= 1 for moment in moments)


def test_steps_may_be_pictures(fresh: Path) -> None:
    (first, *_) = found(fresh, LikeMoment("film0", 2).then(LikeMoment("film0", 20)))
    assert first[0] == "film0"


def test_a_picture_in_a_file(fresh: Path, films: Path) -> None:
    """A video stands for its first frame."""
    with Library(fresh, read_only=True) as library:
        gatherer = _gatherer(library)
        of_file = features_of(gatherer, LikePicture(films / "film1.mp4")).vectors
        of_moment = features_of(gatherer, LikeMoment("film1", 0)).vectors
    np.testing.assert_allclose(of_file, of_moment, atol=0.02)


# ---- libraries that were built before ----------------------------------------------------------------------


def test_an_old_library_compares_pictures_as_before(old: Path) -> None:
    with Library(old, read_only=True) as library:
        assert library.settings.picture_dim == 0
        gatherer = _gatherer(library)
        assert gatherer.view.pictures is None and gatherer.vectors is gatherer.texts
        own = gatherer.view.features.read(gatherer.view.features.row_of["film0"], 20, 21)
        np.testing.assert_allclose(
            features_of(gatherer, LikeMoment("film0", 20)).vectors[0], normalised(own)[0], atol=2e-3
        )
    assert found(old, LikeMoment("film0", 20))


def test_additions_to_an_old_library_are_of_its_kind(old: Path, films: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(old, tmp_path / "library"))
    film_like(films / "film1.mp4", tmp_path / "another.mp4")
    with Library(folder) as library:
        assert library.index(tmp_path / "another.mp4", ocr=False).added == ["another"]
        assert library.store.frame_features.dim == library.settings.encoder_dim
        assert verify(library.store) == []
    assert {row[0] for row in found(folder, LikeMoment("another", 1))} >= {"another", "film1"}


def test_other_features_of_pictures_are_refused(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoders.ConseEncoder, "picture_dim", 64)
    with (
        Library(fresh, read_only=True) as library,
        pytest.raises(EncoderMismatch, match="picture dim 320, opened with 64"),
    ):
        library.search("anything")


def test_without_features_of_pictures_nothing_changes(library: Library) -> None:
    """The demo's CLIP compares pictures by its picture tower, as ever."""
    encoder = library.store.encoders.visual
    assert encoder is not None and encoders.picture_dim(encoder) == 0
    assert library.settings.picture_dim == 0
    assert isinstance(library.store.frame_features, FeatureShards)
    assert library.store.frame_features.dim == library.settings.encoder_dim


def test_the_curve_of_a_moment_is_highest_there(fresh: Path) -> None:
    with Library(fresh, read_only=True) as library:
        for query in (LikeMoment("film1", 10.0), LikeMoment("film1", 10.0) + "a red wall"):
            times, scores = library.curve(query, "film1")
            assert abs(times[int(scores.argmax())] - 10.5) <= 1.5
        assert (library.curve(Text("a wall").without(LikeMoment("film1", 3)), "film1")[1] <= 1).all()


def test_among_segments_a_sum_weighs_terms_by_how_far_their_cosines_spread(
    gatherer: EvidenceGatherer,
) -> None:
    terms = ((2 / 3, Text("a red wall")), (1 / 3, LikeMoment("film0", 20)))
    summed = 2 * terms[0][1] + terms[1][1]
    gatherer = gatherer.prepare([summed])
    given = gatherer.features(summed).segment_vectors
    features = gatherer.view.picture_features
    segments = np.concatenate(
        [MeanPooling().segments(features.read(video), LENGTH) for video in range(len(features))]
    )
    vectors = [gatherer._vectors_of(term)[1] for _, term in terms]
    weights = [weight / (segments @ own).std() for (weight, _), own in zip(terms, vectors, strict=True)]
    expected = np.array(weights) @ np.array(vectors)
    assert given is not None
    np.testing.assert_allclose(given[0], expected / np.linalg.norm(expected), atol=1e-3)
