"""What scores say by themselves: a background of the encoder's, and three bands."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.library.derived.encoder_background import text_vectors
from moviola.retrieval import Background, Calibration, unrelated_queries
from moviola.search import Library, LikeMoment, SearchResult, Text
from moviola.study.training.fit_calibration import closed_language
from moviola.types import BANDS, Moment, band_of


def unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


# ---- the background ----------------------------------------------------------------------------------------


@given(st.integers(0, 1000), st.booleans())
def test_log_odds_against_their_definition(seed: int, referenced: bool) -> None:
    draw = np.random.default_rng(seed)
    query, frames = draw.normal(size=8).astype(np.float32), unit(draw.normal(size=(5, 8)))
    centre = (0.1 * draw.normal(size=8)).astype(np.float32)
    references = unit(draw.normal(size=(20, 8))) if referenced else None
    background = Background(centre, slope=0.8, line=3.0, references=references)
    centred = background.centred(query[None])[0]
    scores = background.calibration(query).scores(frames @ centred)
    difference = query / np.linalg.norm(query) - centre
    if references is None:
        compared = frames @ difference
    else:
        own = references @ difference
        compared = (frames @ difference - own.mean()) / own.std()
    np.testing.assert_allclose(np.log(scores / (1 - scores)), 0.8 * (compared - 3.0), atol=1e-3)


@given(st.integers(0, 1000), st.integers(1, 6))
def test_log_odds_by_phrases_are_the_mean_of_theirs(seed: int, count: int) -> None:
    draw = np.random.default_rng(seed)
    phrases, frames = draw.normal(size=(count, 8)).astype(np.float32), unit(draw.normal(size=(5, 8)))
    weights = draw.random(count) + 0.1
    weights /= weights.sum()
    centre = (0.1 * draw.normal(size=8)).astype(np.float32)
    background = Background(centre, 0.8, 3.0, unit(draw.normal(size=(20, 8))), by_phrases=True)
    vector, scale = background.of_phrases(phrases, weights.tolist())
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    expected = np.zeros(len(frames))
    for phrase, weight in zip(phrases, weights, strict=True):
        scores = background.calibration(phrase).scores(frames @ background.centred(phrase[None])[0])
        expected += weight * np.log(scores / (1 - scores))
    scores = scale.scores(frames @ vector)
    np.testing.assert_allclose(np.log(scores / (1 - scores)), expected, atol=1e-3)


def test_what_the_text_is_near_to_and_its_unknown_words_move_the_log_odds() -> None:
    """By the whole text, which comes first, and not by what is asked of it in other scales."""
    eye = np.eye(4, dtype=np.float32)
    phrases, weights = np.stack([eye[0] + eye[1], eye[3]]), [0.5, 0.5]
    plain = Background(np.zeros(4, np.float32), 0.8, 3.0, eye[:3])
    moved = replace(plain, nearest=-2.0, unknown=-1.5)
    vector, before = plain.of_phrases(phrases, weights, 2)
    same, after = moved.of_phrases(phrases, weights, 2)
    np.testing.assert_array_equal(vector, same)
    assert after.intercept - before.intercept == pytest.approx(-2 * math.sqrt(0.5) - 2 * 1.5, abs=1e-5)
    assert after.slope == before.slope
    assert moved.calibration(phrases[0]) == plain.calibration(phrases[0])


@given(st.integers(0, 1000))
def test_a_single_phrase_is_the_text_itself(seed: int) -> None:
    draw = np.random.default_rng(seed)
    query, frames = draw.normal(size=8).astype(np.float32), unit(draw.normal(size=(5, 8)))
    background = Background(np.zeros(8, np.float32), 0.8, 3.0, unit(draw.normal(size=(20, 8))))
    vector, scale = background.of_phrases(query[None], [1.0])
    plain = background.calibration(query).scores(frames @ background.centred(query[None])[0])
    np.testing.assert_allclose(scale.scores(frames @ vector), plain, atol=1e-5)


def test_a_query_of_zeros_is_no_error() -> None:
    background = Background(np.zeros(4, np.float32), 1.0, 1.0, np.eye(4, dtype=np.float32))
    assert np.isfinite(background.calibration(np.zeros(4, np.float32)).scores(np.zeros(2))).all()


def test_unrelated_queries_are_many_and_different() -> None:
    texts = unrelated_queries()
    assert len(texts) > 200 and len(set(texts)) == len(texts) and all(text.strip() for text in texts)


@pytest.mark.parametrize("damage", [None, b"", b"no archive", b"PK\x03\x04 half"])
def test_a_reader_that_finds_it_missing_or_damaged_makes_it_again(folder: Path, damage: bytes | None) -> None:
    with Library(folder, read_only=True) as library:
        expected, answer = text_vectors(library.store), library.search("a red square")
    path = folder / "cache" / "background.npz"
    path.unlink()
    if damage is not None:
        path.write_bytes(damage)
    with Library(folder, read_only=True) as library:
        np.testing.assert_allclose(text_vectors(library.store), expected, atol=1e-5)
        assert [m.span for m in library.search("a red square")] == [m.span for m in answer]
    with Library(folder) as library:
        text_vectors(library.store)
        assert path.stat().st_size > 1000


def test_scores_do_not_rest_on_what_else_a_library_holds(library: Library) -> None:
    before = {(m.video_id, m.start, m.end): m.score for m in library.search("a red square", by="visual")}
    library.indexer.remove(["film2"])
    after = {(m.video_id, m.start, m.end): m.score for m in library.search("a red square", by="visual")}
    shared = before.keys() & after.keys()
    assert shared
    for place in shared:
        assert after[place] == pytest.approx(before[place], abs=1e-6)


def test_what_a_picture_shows_is_more_certain_near_some_references_and_far_from_others() -> None:
    """By its cosines with every fourth, whatever is asked; alike in any length."""
    draw = np.random.default_rng(0)
    references = unit(draw.normal(size=(400, 8)))
    background = Background(np.zeros(8, np.float32), 1.0, 1.0, references, certainty=2.0)
    pictures = np.concatenate([3 * references[4:5], draw.normal(size=(3, 8)).astype(np.float32)])
    cosines = np.sort(unit(pictures) @ references[::4].T, axis=1)
    expected = cosines[:, -5:].mean(axis=1) - 0.43 + 1.2 * (cosines.std(axis=1) - 0.18)
    np.testing.assert_allclose(background.certainty_of(pictures), expected, atol=1e-6)
    assert background.calibration(draw.normal(size=8).astype(np.float32)).certainty == 2.0


def test_a_moment_of_which_it_is_certain_what_it_shows_is_likelier_right(films: Path, tmp_path: Path) -> None:
    """Searched with and without that, the score of each moment is moved as its pictures say, and no other."""
    with Library(tmp_path / "library", encoder="conse-lite1", sentence_encoder="none") as library:
        library.index(films)
        searcher, query = library._searcher, Text("a red square")
        sure = library.search(query, by="visual", top_k=50)
        ((key, (encoders, background)),) = searcher._backgrounds.items()
        assert background.certainty > 0
        searcher._backgrounds[key] = encoders, replace(background, certainty=0.0)
        searcher._retrievals.clear()
        plain = {
            (one.video_id, one.start, one.end): one.score
            for one in library.search(query, by="visual", top_k=50)
        }
        features = searcher._viewer.view().features
        places = {
            video.video_id: features.place_of(library.catalogue.video(video.video_id).row)
            for video in library.videos()
        }
        for one in sure:
            first, stop = int(one.start), max(int(np.ceil(one.end)), int(one.start) + 1)
            clips = first + ((stop - first) * np.array([1 / 6, 1 / 2, 5 / 6])).astype(int)
            place = places[one.video_id]
            assert place is not None
            rows = unit(features.read(place)[clips])[:, : library.settings.encoder_dim]
            shift = background.certainty * float(background.certainty_of(rows.mean(axis=0)[None])[0])
            before = plain[one.video_id, one.start, one.end]
            odds = one.score / (1 - one.score) / (before / (1 - before))
            assert np.log(odds) == pytest.approx(shift, abs=0.02)


# ---- words that a model does not know ----------------------------------------------------------------------


def test_an_unknown_word_lowers_the_odds() -> None:
    known = Calibration(1.0, 0.0, frozenset({"a", "red", "ball"}))
    assert known.of_text("A red ball!").intercept == 0
    assert known.of_text("a red crown").intercept == pytest.approx(-4.6)
    assert known.of_text("a red crown of gold").intercept == pytest.approx(-13.8)
    certain = np.array([np.log(0.99 / 0.01)])
    assert known.of_text("a red crown").scores(certain) < 0.5
    assert Calibration(1.0, 0.0).of_text("whatever").intercept == 0


def test_a_language_is_closed_if_held_out_queries_have_no_other_word() -> None:
    learned = ["a red ball", "the blue ball"]
    assert closed_language(learned, ["the red ball"]) == ["a", "ball", "blue", "red", "the"]
    assert closed_language(learned, ["the red ball", "a red box"]) == []


# ---- bands ------------------------------------------------------------------------------------------------


def test_strong_ones_come_first_and_make_an_answer_confident(library: Library) -> None:
    for query in (Text("lighthouse keeper umbrella"), Text("a mountain goat"), LikeMoment("film1", 10.0)):
        found = library.search(query, top_k=100)
        assert all(m.band == band_of(m.score) for m in found)
        assert found.confident == any(m.strong for m in found)
        assert [*found.strong, *found.possible, *found.weak] == list(found)
        likely = [*found.strong, *found.possible]
        assert library.search(query, top_k=100, weak=False) == likely
        assert library.search(query, top_k=100, min_score="possible") == likely
        assert library.search(query, top_k=100, min_score="strong") == found.strong
        assert library.search(query, top_k=100, min_score="weak") == list(found)


def test_bands_share_the_scores_among_them() -> None:
    """One definition, without a gap: half and one in five are the limits, and belong to the better band."""
    assert BANDS == {"strong": 0.5, "possible": 0.2, "weak": 0.0}
    assert [band_of(score) for score in (1.0, 0.5, 0.4999, 0.2, 0.1999, 0.0)] == [
        "strong", "strong", "possible", "possible", "weak", "weak"
    ]  # fmt: skip


def test_speech_is_confident_where_most_words_are_there(library: Library) -> None:
    assert library.search("lighthouse keeper umbrella", by="subtitles").confident is True
    assert library.search("a mountain goat", by="subtitles").confident is False


def test_a_sequence_is_as_strong_as_its_weakest_step(library: Library) -> None:
    said, not_said = Text("lighthouse keeper umbrella"), Text("a mountain goat")
    assert library.search(said.then(not_said), by="subtitles").confident is False
    assert library.search(said.without(not_said), by="subtitles").confident is True
    for chain in library.search(Text("a red wall").then("a green wall"), top_k=50):
        assert chain.score == min(step.score for step in chain.steps)
        assert chain.strong == all(step.strong for step in chain.steps)


def test_limits_do_not_change_whether_there_is_an_answer(library: Library) -> None:
    query = "lighthouse keeper umbrella"
    assert library.search(query, top_k=1, min_score=1.0).confident == library.search(query).confident


def test_an_empty_answer_is_not_confident() -> None:
    assert SearchResult().confident is False
    assert SearchResult([Moment("a", 0, 1, 0.9, 1)]).confident is True


def test_a_library_is_searched_without_its_cache(folder: Path) -> None:
    shutil.rmtree(folder / "cache")
    with Library(folder, read_only=True) as library:
        assert library.search("a red square", by="visual")
    assert not (folder / "cache").exists()
