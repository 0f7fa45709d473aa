"""Marks on an answer change the next one; what they teach can be kept and used by name."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import save

from full_disk import full_disk
from moviola.errors import DataError, EncoderMismatch, InvalidValue, LibraryError, NotFound
from moviola.library import concept_name, keep_concept, verify
from moviola.retrieval.refiners.curve import cosines
from moviola.search import (
    Library,
    LikeMoment,
    LikePicture,
    Marked,
    MarkedMoment,
    SearchOptions,
    SearchQuery,
    Text,
)
from moviola.search.asked import query_from_json, query_to_json
from moviola.search.evidence import EvidenceGatherer
from moviola.search.found import Candidate
from moviola.search.queries import as_query
from moviola.search.relevance_curve import score_curve
from moviola.types import Moment, Query, Span

RED, GREEN = Text("a red square"), Text("something green")
BLOCK = MarkedMoment("film0", 3.0, 6.0)


def scores(moments: list[Moment]) -> dict[tuple[str, float, float], float]:
    return {(m.video_id, m.start, m.end): m.score for m in moments}


# ---- the algebra -------------------------------------------------------------------------------------------


def test_marks_are_values() -> None:
    a, b = Moment("a", 1, 2, 0.5, 1), Moment("b", 3, 4, 0.4, 2)
    marked = Marked.of(RED, [a], [b])
    assert marked == Marked(RED, (MarkedMoment("a", 1, 2),), (MarkedMoment("b", 3, 4),))
    assert Marked.of(marked, [b]) == Marked.of(RED, [b, a])
    assert str(marked) == "a red square (1 right, 1 wrong)"
    with pytest.raises(InvalidValue, match="marked both right and wrong"):
        Marked.of(RED, [a], [a])
    with pytest.raises(InvalidValue, match="no marks"):
        Marked(RED)


def test_marks_on_a_marked_query_add_up() -> None:
    named, one, other = as_query("@our-logo"), MarkedMoment("a", 1, 2), MarkedMoment("b", 3, 4)
    assert Marked(named, (one,)) == Marked(None, (one,), concept="our-logo")
    assert Marked(Marked(RED, (one,), (other,)), (), (one,)) == Marked(RED, (), (one, other))
    with pytest.raises(InvalidValue, match="@our-logo, @door: name one concept"):
        Marked(named, (one,), concept="door")


def test_marks_are_written_as_text() -> None:
    assert MarkedMoment.parse("a@b@0:03-1:02:03.5") == MarkedMoment("a@b", 3.0, 3723.5)
    for wrong in ("film0", "film0@3", "@1-2", "film0@5-3", "film0@x-3"):
        with pytest.raises(InvalidValue):
            MarkedMoment.parse(wrong)


@pytest.mark.parametrize(
    ("start", "end"), [(12345.67, 12345.71), (1234567.0, 1234568.5), (0.00001, 1 / 3), (0, 65.0)]
)
def test_marks_are_read_as_they_are_written(start: float, end: float) -> None:
    marked, like = MarkedMoment("a", start, end), LikeMoment("a", start)
    assert MarkedMoment.parse(str(marked)) == marked
    assert LikeMoment.parse(str(like).removeprefix("like ")) == like


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("@our-logo", Marked(None, concept="our-logo")),
        ("@Our-Logo on a shelf", Marked(Text("on a shelf"), concept="our-logo")),
        ("on a  @logo2 shelf", Marked(Text("on a shelf"), concept="logo2")),
        ("a shelf, (@our-logo), empty", Marked(Text("a shelf, empty"), concept="our-logo")),
        ("@our-logo. On a shelf?", Marked(Text("On a shelf?"), concept="our-logo")),
        ("„@logo2“", Marked(None, concept="logo2")),
        ("mail me@example", Text("mail me@example")),
        ("@ home", Text("@ home")),
    ],
)
def test_a_word_with_an_at_sign_is_a_concept(text: str, query: SearchQuery) -> None:
    assert as_query(text) == query


def test_a_concept_is_named_with_or_without_its_sign() -> None:
    marked = Marked(None, concept="@our-logo")
    assert marked == Marked(None, concept="our-logo") and str(marked) == "@our-logo"


def test_two_concepts_in_one_text_are_refused(library: Library) -> None:
    for name in ("a", "b"):
        library.concepts.teach(name, Marked(None, (BLOCK,)))
    with pytest.raises(InvalidValue, match="one concept at a time"):
        library.search("@a @b")
    (note,) = library.search("@a @handle").notes
    assert (note.kind, note.about) == ("no concept", "@handle")


def test_a_name_that_is_no_concept_is_a_word(library: Library) -> None:
    """Also where its answer is marked, and beside a negation; a concept that is named by itself is an
    error.
    """
    found = library.search("@green wall", by="visual")
    assert str(found.query) == "@green wall" and found.query == Text("@green wall")
    assert [note.kind for note in found.notes] == ["no concept"]
    marked = Marked(as_query("@green wall"), (BLOCK,))
    assert query_to_json("@green wall") == "@green wall"
    written = {"terms": [{"text": "@green wall"}], "right": [{"video_id": "film0", "start": 3.0, "end": 6.0}]}
    assert query_to_json(marked) == written
    assert query_from_json(written).written == "@green wall"  # type: ignore[attr-defined]
    assert library.search(marked, by="visual").query == Marked(Text("@green wall"), (BLOCK,))
    assert library.search("@green wall without snow").query == Text("@green wall").without("snow")
    with pytest.raises(NotFound, match="@green: no such concept"):
        library.search(Marked(None, concept="green"))


# ---- answers -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["all", "visual"])
def test_a_right_mark_lifts_what_looks_like_it(library: Library, by: str) -> None:
    plain = library.search(RED, top_k=100, by=by)
    lowest = plain[-1]
    again = scores(library.search(Marked.of(RED, [lowest]), top_k=100, by=by))
    place = lowest.video_id, lowest.start, lowest.end
    assert again[place] > lowest.score
    before = scores(plain)
    assert all(score >= before[p] - 1e-9 for p, score in again.items() if p in before)


def test_a_wrong_mark_lowers_what_looks_like_it(library: Library) -> None:
    plain = library.search(RED, top_k=100, by="visual")
    best = plain[0]
    again = scores(library.search(Marked.of(RED, [], [best]), top_k=100, by="visual"))
    assert again.get((best.video_id, best.start, best.end), 0.0) < best.score
    before = scores(plain)
    assert all(score <= before[p] + 1e-9 for p, score in again.items() if p in before)


def test_marks_alone_find_what_looks_like_them(library: Library) -> None:
    found = library.search(Marked(None, (BLOCK,)), by="visual")
    assert found[0].video_id == "film0" and found[0].span.intersection(BLOCK_SPAN) > 0
    assert found[0].strong and {reason.kind for reason in found[0].why} == {"like"}


BLOCK_SPAN = Moment("film0", 3.0, 6.0, 0.0, 1).span


def test_marks_find_what_the_text_never_reached(library: Library) -> None:
    """Searched by words alone, the text finds nothing in film1; pictures that are marked are found there."""
    only = Marked(Text("lighthouse"), (MarkedMoment("film1", 9.0, 12.0),))
    assert "film1" in {m.video_id for m in library.search(only, top_k=50)}


def test_marks_join_sequences_and_exclusions(library: Library) -> None:
    marked = Marked(None, (BLOCK,))
    chain = library.search(marked.then(LikeMoment("film0", 20.0), gap=math.inf), by="visual")[0]
    assert chain.video_id == "film0" and len(chain.steps) == 2
    plain = scores(library.search(RED, top_k=100, by="visual"))
    without = scores(library.search(RED.without(marked), top_k=100, by="visual"))
    assert all(without[place] <= plain[place] + 1e-12 for place in without.keys() & plain.keys())
    assert without != plain


def test_a_curve_rises_where_it_was_marked(library: Library) -> None:
    times, plain = library.curve(RED, "film0")
    _, lifted = library.curve(Marked(RED, (BLOCK,)), "film0")
    inside = (times > 3) & (times < 6)
    assert (lifted >= plain - 1e-9).all() and (lifted[inside] > plain[inside]).all()


def test_a_curve_falls_where_it_looks_like_what_is_excluded(library: Library) -> None:
    times, plain = library.curve(RED, "film0")
    _, lowered = library.curve(RED.without(Marked(None, (BLOCK,))), "film0")
    inside = (times > 3) & (times < 6)
    assert (lowered <= plain + 1e-9).all() and (lowered[inside] < plain[inside] / 2).all()


@pytest.mark.parametrize("rate", [1, 3, 10])
def test_each_clip_of_a_curve_is_compared_by_itself(
    library: Library, monkeypatch: pytest.MonkeyPatch, rate: int
) -> None:
    """At 3 and at 10 clips a second, bounds of some clips round into a neighbour."""
    searcher, compared = library._searcher, list[tuple[int, int]]()
    view = searcher._viewer.view()
    features = replace(view.features, clip_seconds=1 / rate, counts=view.features.counts * 0 + 100)
    gatherer = searcher._gatherer(replace(view, features=features), SearchOptions())
    video = replace(library.catalogue.video("film0"), duration=99.4 / rate)

    def likeness(gatherer: EvidenceGatherer, found: list[Candidate]) -> tuple[object, object]:
        compared.extend(clips[1:] for _, clips in gatherer._clips_of(found))
        return np.empty((0, 1)), np.empty(0)

    monkeypatch.setattr(EvidenceGatherer, "likeness", likeness)
    score_curve(gatherer, Marked(None, (BLOCK,)), video)
    gatherer.likeness(
        [Candidate(video.row, Span(clip / rate, (clip + 1) / rate), 0.0, "visual") for clip in range(100)]
    )
    assert compared == [(clip, clip + 1) for clip in range(100)] * 2


def test_marks_that_are_nowhere_are_named(library: Library) -> None:
    with pytest.raises(NotFound, match="film9"):
        library.search(Marked(RED, (MarkedMoment("film9", 1, 2),)))
    with pytest.raises(InvalidValue, match="the video ends at 16 s"):
        library.search(Marked(RED, (MarkedMoment("film2", 16, 17),)))


# ---- kept --------------------------------------------------------------------------------------------------


def test_what_was_taught_stands_in_queries(library: Library) -> None:
    assert library.concepts.teach("Our Logo!", Marked(None, (BLOCK,))) == "our-logo"
    (concept,) = library.concepts.all()
    assert (concept.name, concept.title, concept.moments) == ("our-logo", "Our Logo!", ("film0@3-6",))
    by_name = library.search("@our-logo", by="visual")
    assert by_name == library.search(Marked(None, (BLOCK,)), by="visual")
    assert library.search_many([Query("1", "@our-logo")], by="visual") == [by_name]  # as in a query file
    assert library.search("@our-logo in a room")[0].video_id == "film0"
    assert library.search(Text("a wall").then("@our-logo"), by="visual") is not None
    marked_again = Marked(as_query("@our-logo"), (MarkedMoment("film1", 9.0, 12.0),))
    assert {m.video_id for m in library.search(marked_again)[:2]} == {"film0", "film1"}
    library.concepts.teach("Our Logo!", marked_again)
    assert library.concepts.all()[0].moments == ("film1@9-12", "film0@3-6")
    library.indexer.remove(["film0"])
    assert library.search("@our-logo", by="visual")
    library.concepts.forget("@our-logo")
    assert library.search("@our-logo").query == Text("@our-logo")
    with pytest.raises(NotFound, match="@our-logo: no such concept"):
        library.search(Marked(None, concept="our-logo"))
    with pytest.raises(NotFound):
        library.concepts.forget("our-logo")


def test_what_was_marked_right_is_in_the_answer_beside_an_exclusion(library: Library) -> None:
    """Marks come first: what looks like a right one is looked for, and then what is excluded counts against
    it.
    """
    query = Text("a blue robot").without("xylophone")
    for mark in (BLOCK, MarkedMoment("film1", 9.0, 12.0), MarkedMoment("film2", 3.0, 6.0)):
        found = library.search(Marked(query, (mark,)), by="visual", top_k=50)
        assert found == library.search(
            Marked(query.query, (mark,)).without("xylophone"), by="visual", top_k=50
        )
        spans = [(one.video_id, one.start, one.end) for one in found]
        assert (mark.video_id, mark.start, mark.end) in spans
    _, marked = library.curve(Marked(query, (BLOCK,)), "film0")
    assert marked[4] > library.curve(query, "film0")[1][4]


def test_a_right_mark_on_a_sequence_marks_each_of_its_steps(library: Library) -> None:
    """The chain is in the next answer, higher than before, and so is what looks like its steps; a wrong mark
    lowers what looks like the whole.
    """
    query = RED.then(GREEN, gap=10)
    plain = library.search(query, top_k=50, by="visual")
    lowest = plain[-1]
    right = library.search(Marked.of(query, [lowest]), top_k=50, by="visual")
    same = [one for one in right if one.video_id == lowest.video_id and one.span.iou(lowest.span) > 0.5]
    assert same and max(one.score for one in same) > lowest.score
    assert all(len(one.steps) == 2 for one in right)
    wrong = library.search(Marked.of(query, [], [plain[0]]), top_k=50, by="visual")
    again = {(one.video_id, one.start, one.end): one.score for one in wrong}
    assert again.get((plain[0].video_id, plain[0].start, plain[0].end), 0.0) < plain[0].score
    with pytest.raises(NotFound, match="gone"):
        library.search(Marked(query, (MarkedMoment("gone", 1, 2),)), by="visual")


def test_what_was_marked_right_is_in_the_answer(library: Library) -> None:
    """Also where it shows several things, and none of them as much as their mean."""
    mixed = MarkedMoment("film0", 1.0, 12.0)
    library.concepts.teach("mixed", Marked(None, (mixed,)))
    for query in (Marked(None, (mixed,)), "@mixed"):
        spans = [(m.video_id, m.start, m.end) for m in library.search(query, by="visual")]
        assert (mixed.video_id, mixed.start, mixed.end) in spans
    assert not any(m.video_id == "film0" for m in library.search("@mixed", by="visual", videos=["film1"]))
    library.indexer.remove(["film0"])
    assert not any(m.video_id == "film0" for m in library.search("@mixed", by="visual"))


def test_only_what_is_right_teaches(library: Library) -> None:
    with pytest.raises(InvalidValue, match="at least one moment as right"):
        library.concepts.teach("logo", Marked(RED, (), (BLOCK,)))
    with pytest.raises(InvalidValue, match="letters and digits"):
        library.concepts.teach("!", Marked(RED, (BLOCK,)))
    assert concept_name("Éclair № 5") == "éclair-5"
    assert [concept_name(title) for title in ("की", "का", "E\u0301clair", "❤\ufe0f logo")] == [
        "की",
        "का",
        "éclair",
        "logo",
    ]
    assert as_query("@की on a shelf") == Marked(Text("on a shelf"), concept="की")
    assert as_query("@E\u0301clair") == Marked(None, concept="éclair")
    assert as_query("@ home! and @.net") == Text("@ home! and @.net")


def test_a_reader_teaches_nothing(folder: Path) -> None:
    with Library(folder, read_only=True) as library, pytest.raises(InvalidValue, match="read-only"):
        library.concepts.teach("logo", Marked(RED, (BLOCK,)))


def test_on_a_full_disk_a_concept_stays_as_it_was(library: Library) -> None:
    library.concepts.teach("logo", Marked(None, (BLOCK,)))
    path = library.folder / "concepts" / "logo.safetensors"
    content, (taught,) = path.read_bytes(), library.concepts.all()
    refused = pytest.raises(InvalidValue, match=r"logo\.safetensors: cannot be written \(File too large\)")
    with refused, full_disk(64):
        keep_concept(library.folder, library.settings, replace(taught, moments=()))
    assert {one: one.read_bytes() for one in path.parent.iterdir()} == {path: content}


@pytest.mark.parametrize("damage", [b"", b"\x08\0\0\0\0\0\0\0{}", b"no safetensors at all"])
def test_a_damaged_concept_is_named(library: Library, damage: bytes) -> None:
    library.concepts.teach("logo", Marked(None, (BLOCK,)))
    path = library.folder / "concepts" / "logo.safetensors"
    path.write_bytes(damage)
    with pytest.raises(DataError, match=r"logo\.safetensors"):
        library.search("@logo")


def test_a_flipped_bit_of_a_concept_is_found(library: Library) -> None:
    library.concepts.teach("logo", Marked(None, (BLOCK,)))
    path = library.folder / "concepts" / "logo.safetensors"
    whole, start = path.read_bytes(), len(path.read_bytes()) - 40
    path.write_bytes(whole[:start] + bytes([whole[start] ^ 1]) + whole[start + 1 :])
    (problem,) = verify(library.store)
    assert "logo.safetensors: damaged (it does not match its digest)" in problem.message
    path.write_bytes(whole.replace(b"film0@3-6", b"film1@3-6"))
    with pytest.raises(DataError, match="does not match its digest"):
        library.concepts.all()


def test_a_concept_of_an_earlier_version_is_read(library: Library) -> None:
    library.concepts.teach("logo", Marked(None, (BLOCK,)))
    path = library.folder / "concepts" / "logo.safetensors"
    with safe_open(path, framework="numpy") as file:
        facts, tensors = file.metadata(), {name: file.get_tensor(name) for name in ("right", "wrong")}
    assert facts.pop("digest")
    path.write_bytes(save(tensors, facts))
    assert [concept.moments for concept in library.concepts.all()] == [("film0@3-6",)]


def test_a_concept_of_a_later_version_is_not_called_damaged(library: Library) -> None:
    library.concepts.teach("logo", Marked(None, (BLOCK,)))
    path = library.folder / "concepts" / "logo.safetensors"
    with safe_open(path, framework="numpy") as file:
        facts, tensors = file.metadata(), {name: file.get_tensor(name) for name in ("right", "wrong")}
    path.write_bytes(save(tensors, facts | {"format": "2"}))
    with pytest.raises(DataError, match="format 2") as raised:
        library.concepts.all()
    assert "damaged" not in str(raised.value) and "delete it" not in str(raised.value)


def test_a_concept_of_another_encoder_is_refused(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    library.concepts.teach("logo", Marked(None, (BLOCK,)))
    other = replace(library.settings, encoder_revision="0" * 16)
    from moviola.library import read_concept

    with pytest.raises(EncoderMismatch, match="teach it again"):
        read_concept(library.folder, other, "logo")


def test_marks_need_pictures(films: Path, tmp_path: Path) -> None:
    with Library(tmp_path / "words", encoder="none", sentence_encoder="none") as library:
        library.index(films)
        with pytest.raises(LibraryError):
            library.concepts.teach("logo", Marked(None, (BLOCK,)))
        with pytest.raises(LibraryError, match="pictures, in a library that was built with a visual encoder"):
            library.search(Marked(None, (BLOCK,)))


def test_marks_are_of_pictures(library: Library) -> None:
    with pytest.raises(LibraryError, match="marks, which need a search by pictures"):
        library.search(Marked(RED, (BLOCK,)), by="subtitles")


def test_marks_of_equal_moments_count_once(library: Library) -> None:
    once = library.search(Marked(RED, (BLOCK,)), by="visual")
    twice = library.search(Marked(RED, (BLOCK, BLOCK)), by="visual")
    assert once == twice
    np.testing.assert_array_equal([m.score for m in once], [m.score for m in twice])


def test_a_text_is_compared_with_two_frames_of_a_moment(library: Library) -> None:
    searcher = library._searcher
    gatherer = searcher._gatherer(searcher._viewer.view(), SearchOptions(by="visual"))
    gatherer = gatherer.prepare([RED])
    retrieval, row = gatherer.stages(RED), library.catalogue.video("film0").row
    assert retrieval is not None
    place = retrieval.features.place_of(row)
    assert place is not None
    vector = retrieval.cosines.in_space(gatherer.features(RED)).vectors[0]
    best = cosines(retrieval.features.read(place, 2, 4), vector)  # of two colours
    assert abs(best[1] - best[0]) > 1e-3
    found = gatherer.text_scores(RED, [Candidate(row, Span(2, 4), 0.0, "visual")])
    assert found == pytest.approx(gatherer.scale(RED).scores(best.mean(keepdims=True)), rel=1e-6)


def test_a_picture_beside_a_concept_finds_nothing_in_an_empty_library(
    library: Library, tmp_path: Path
) -> None:
    library.concepts.teach("Red", Marked(None, right=(MarkedMoment("film0", 0, 4),)))
    picture = tmp_path / "red.png"
    Image.new("RGB", (64, 64), "red").save(picture)
    library.indexer.remove([video.video_id for video in library.videos()])
    assert library.search(Marked(LikePicture(picture), concept="red")) == []
