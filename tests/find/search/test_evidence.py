"""One way of a query: every text is encoded once, and every thing looked for once in each scope."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from moviola.devices import require_device_name
from moviola.encoders import SentenceEncoder
from moviola.errors import InvalidValue, MoviolaError, NotFound, NotSearched
from moviola.retrieval import CurveRefiner, Refiner, ShotRefiner
from moviola.retrieval.phrases import phrases_of
from moviola.search import (
    By,
    Filter,
    Library,
    LikeMoment,
    Marked,
    MarkedMoment,
    SearchOptions,
    SearchQuery,
    SearchResult,
    Text,
    WeightedSum,
    answers,
    searcher,
)
from moviola.search import cues as cue_search
from moviola.search.evidence import EvidenceGatherer
from moviola.search.found import Candidate
from moviola.search.options import OptionChanges
from moviola.types import Cue, Query, Span
from moviola.words import asked_of

RED, CYAN = Text("a red square"), Text("a cyan box")


class Calls:
    """Counts texts that are encoded, and searches in indexes with their vectors."""

    def __init__(self) -> None:
        self.texts: list[Counter[str]] = [Counter(), Counter()]
        self.batches = [0, 0]
        self.searches = 0


@pytest.fixture
def calls(library: Library, monkeypatch: pytest.MonkeyPatch) -> Calls:
    """Of what is looked for; what belongs to the library (its background, indexes) is ready."""
    library.search("something else")
    counted = Calls()
    for place, encoder in enumerate((library.store.encoders.visual, library.store.encoders.sentences)):
        assert encoder is not None

        def counting(texts: Any, *, own: Any = encoder.encode_text, place: int = place) -> Any:
            counted.texts[place].update(texts)
            counted.batches[place] += 1
            return own(texts)

        monkeypatch.setattr(encoder, "encode_text", counting)
    view = library._searcher._viewer.view()
    for index in {id(one): one for one in (view.segments, view.pictures) if one is not None}.values():

        def searching(vectors: Any, *given: Any, own: Any = index.search, **options: Any) -> Any:
            counted.searches += 1
            return own(vectors, *given, **options)

        monkeypatch.setattr(index, "search", searching)
    return counted


@pytest.mark.parametrize(
    ("query", "texts", "searches"),
    [
        (RED, 1, 1),
        (RED + CYAN, 2, 1),
        (RED.then(CYAN), 2, 1),
        (RED.then(CYAN).then(RED), 2, 1),
        (LikeMoment("film0", 2.0) + RED, 1, 1),
    ],
    ids=str,
)
def test_each_text_is_encoded_once_and_each_thing_searched_for_once(
    library: Library, calls: Calls, query: SearchQuery, texts: int, searches: int
) -> None:
    library.search(query)
    for counted, batches in zip(calls.texts, calls.batches, strict=True):
        assert set(counted.values()) == {1} and len(counted) == texts and batches == 1
    assert calls.searches == searches


def test_a_step_is_searched_for_where_the_others_were_found(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    searcher = library._searcher
    gatherer = searcher._gatherer(searcher._viewer.view(), SearchOptions(by="visual"))
    words = ("a red square", "a green box", "a cyan box", "a blue ball", "a yellow key")
    gatherer, nearest = gatherer.prepare(texts := list(map(Text, words))), {}
    for text in texts:
        nearest[text] = {one.row for one in answers.candidates(gatherer, text, None, segments=1)}
    first = RED
    second = next(text for text, rows in nearest.items() if rows != nearest[first])
    reached: list[list[set[int]]] = []

    def chains(steps: Any, gaps: Any) -> list[Any]:
        reached.append([{one.row for one in step} for step in steps])
        return []

    monkeypatch.setattr(answers, "chains", chains)
    answers.candidates(gatherer, first.then(second), None, segments=1)
    assert reached == [[nearest[first] | nearest[second]] * 2]


@pytest.mark.parametrize("by", ["all", "visual", "said"])
@pytest.mark.parametrize("thing", [RED, RED + CYAN, CYAN + LikeMoment("film0", 2)])
def test_a_text_that_was_not_prepared_is_an_error(library: Library, thing: Any, by: Any) -> None:
    """It was looked for without end; prepared for other queries, a gatherer stays as it was."""
    searcher = library._searcher
    gatherer = searcher._gatherer(searcher._viewer.view(), SearchOptions(by=by))
    prepared = gatherer.prepare([thing])
    for unready in (gatherer, prepared.prepare([Text("a blue ball")])):
        with pytest.raises(InvalidValue, match="not encoded; prepare the gatherer for its query"):
            answers.candidates(unready, thing, None)
    assert isinstance(answers.candidates(prepared, thing, None), list)
    with pytest.raises(TypeError):
        prepared.encoded[RED] = next(iter(prepared.encoded.values()))  # type: ignore[index]
    with pytest.raises(AttributeError):
        prepared.encoded = {}  # type: ignore[misc]


def test_exclusions_are_encoded_with_the_others(library: Library, calls: Calls) -> None:
    library.search(RED.without(CYAN))
    assert calls.batches[0] == 1 and calls.texts[0] == Counter({RED.text: 1, CYAN.text: 1})


def test_a_batch_is_encoded_and_searched_for_at_once(library: Library, calls: Calls) -> None:
    queries = [Query("1", RED.text), Query("2", CYAN.text), Query("3", RED.text)]
    first, second, third = library.search_many(queries)
    assert calls.batches == [1, 1] and calls.searches == 1
    assert first == third != second


def test_of_a_batch_the_moments_of_one_query_are_held_at_a_time(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[EvidenceGatherer] = []

    def prepare(gatherer: Any, queries: Any, own: Any = EvidenceGatherer.prepare) -> EvidenceGatherer:
        made.append(own(gatherer, queries))
        return made[0]

    monkeypatch.setattr(EvidenceGatherer, "prepare", prepare)
    held: list[int] = []
    library.search_many([RED, CYAN, RED + CYAN], progress=lambda _: held.append(len(made[0]._seen)))
    assert held == [0, 0, 0] and len(made[0]._hits) == 3


def test_cues_that_come_in_between_two_counts_change_no_more_than_a_weight(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = library.search("the umbrella", by="subtitles")
    counts = {**library.catalogue.cue_counts(), "subtitle": 1}  # two cues have "the"
    monkeypatch.setattr(library.catalogue, "cue_counts", lambda: counts)
    assert [m.span for m in library.search("the umbrella", by="subtitles")] == [m.span for m in expected]


def test_kinds_of_cues_are_read_once_per_state_of_the_library(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Text in pictures is not compared by meaning; there may be hundreds of thousands of these cues."""
    read, own = list[object](), library.catalogue.recognised_cues
    monkeypatch.setattr(library.catalogue, "recognised_cues", lambda kinds: read.append(kinds) or own(kinds))
    found = library.search("the umbrella")
    assert library.search("the umbrella") == found and library.search("the harbour") and len(read) == 1
    library.indexer.remove(["film1"])
    library.search("the umbrella")
    assert len(read) == 2


def test_duplicates_do_not_count_among_the_moments_that_pass_a_filter(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = library.catalogue.video("film0").row
    spans = [Span(0, 4), Span(0, 4.5), Span(8, 12), Span(16, 20)]
    found = [Candidate(row, span, 0.5, "visual") for span in spans]
    monkeypatch.setattr(searcher, "SEGMENTS", 2)
    monkeypatch.setattr(searcher, "candidates", lambda gatherer, query, rows, segments: found[:segments])
    options = SearchOptions(top_k=2, by="visual", filter=Filter(moment_length=(1.0, None)))
    assert [m.span for m in library.search(RED, options)] == [spans[0], spans[2]]


def _reads_phrases(library: Library) -> None:
    """From now on the library's encoder judges texts by their phrases."""
    searcher = library._searcher
    ((key, (encoders, background)),) = searcher._backgrounds.items()
    searcher._backgrounds[key] = encoders, replace(background, by_phrases=True)
    searcher._retrievals.clear()


@pytest.mark.parametrize("text", ["a red square", "two green rooms beside a yellow door", "red", "of the"])
def test_by_phrases_a_text_is_the_sum_of_its_phrases(library: Library, text: str) -> None:
    phrases = WeightedSum.of([(Text(phrase), weight) for phrase, weight in phrases_of(text).items()])
    expected = library.search(phrases, by="visual", top_k=100)
    _reads_phrases(library)
    found = library.search(text, by="visual", top_k=100)
    assert {(m.video_id, m.span) for m in found} == {(m.video_id, m.span) for m in expected}
    assert [m.score for m in found] == pytest.approx([m.score for m in expected], abs=2e-3)


@pytest.mark.parametrize("query", [RED, RED + CYAN, RED.then(CYAN), RED.without(CYAN)], ids=str)
def test_phrases_of_all_texts_are_encoded_in_one_batch(
    library: Library, calls: Calls, query: SearchQuery
) -> None:
    _reads_phrases(library)
    library.search(query)
    assert calls.batches[0] == 1 and set(calls.texts[0].values()) == {1}
    assert set(phrases_of(RED.text)) <= set(calls.texts[0])


def test_one_network_for_both_encoders_reads_each_text_once(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Library(tmp_path / "library", encoder="conse-lite1") as library:
        library.index(films, ocr=False)
        library.search("something else")
        read: Counter[str] = Counter()
        own = SentenceEncoder._states

        def counting(self: SentenceEncoder, texts: list[str]) -> Any:
            read.update(texts)
            return own(self, texts)

        monkeypatch.setattr(SentenceEncoder, "_states", counting)
        library.search(RED.then(CYAN))
    assert set(phrases_of(RED.text)) | set(phrases_of(CYAN.text)) == set(read)
    assert set(read.values()) == {1}


@pytest.mark.parametrize("query", [RED, RED + CYAN, RED.then(CYAN), RED.without(CYAN)], ids=str)
@pytest.mark.parametrize("by", ["all", "visual", "said"])
def test_no_moment_twice(library: Library, query: SearchQuery, by: By) -> None:
    found = library.search(query, SearchOptions(top_k=1000, by=by))
    for place, one in enumerate(found):
        for other in found[:place]:
            if one.video_id == other.video_id:
                assert one.span.iou(other.span) <= 0.5
                shared = one.span.intersection(other.span)
                assert shared < min(one.span.duration, other.span.duration)
        for span in one.folded:
            assert span.intersection(one.span) > 0


def test_a_video_may_answer_with_several_moments(library: Library) -> None:
    found = library.search(RED, top_k=100, by="visual")
    assert len({m.video_id for m in found}) < len(found)


def test_each_moment_says_what_speaks_for_it(library: Library) -> None:
    found = library.search("the lighthouse keeper lost his umbrella", top_k=100)
    kinds = {reason.kind for moment in found for reason in moment.why}
    assert {"seen", "said"} <= kinds
    assert all(moment.why and all(0 <= reason.score <= 1 for reason in moment.why) for moment in found)
    (said,) = [reason for moment in found for reason in moment.why if reason.kind == "said"]
    assert {"lighthouse", "keeper", "umbrella"} <= set(said.words)
    assert all(r.kind == "like" for m in library.search(LikeMoment("film0", 2.0), by="visual") for r in m.why)


def test_options_are_refused_once(library: Library) -> None:
    wrong: dict[str, Any] = {"top_k": 0, "by": "smell", "min_score": 2.0, "per_video": 0}
    for name, value in wrong.items():
        with pytest.raises(InvalidValue, match=f"{name}={value!r}"):
            library.search("a red square", **{name: value})  # type: ignore[misc]
    with pytest.raises(InvalidValue, match=r"'topk': no such option; did you mean top_k\?"):
        library.search("a red square", topk=3)  # type: ignore[call-arg]
    with pytest.raises(InvalidValue, match=r"'taken': no such option; .*filter=Filter.parse\(taken="):
        library.search("a red square", taken="2024")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="nope"):  # its type is known, though it is made on first use
        library.index("films", nope=1)  # type: ignore[call-arg]


def test_single_options_have_the_types_of_all() -> None:
    """What a type checker knows of ``search(…, top_k=5)`` is what ``SearchOptions`` says."""
    assert get_type_hints(OptionChanges) == get_type_hints(SearchOptions)


def test_an_answer_is_a_table_in_a_notebook(library: Library) -> None:
    """With stills while the library is open; names and lines of others are text, never markup."""
    answer = library.search("a lighthouse keeper lost his umbrella", top_k=3)
    page = answer._repr_html_()
    assert page.count("<tr>") == 1 + len(answer) and page.count("data:image/webp;base64,U") == len(answer)
    assert "lost his umbrella" in page and answer[0].video_id in page
    hostile = replace(answer[0], video_id="<img onerror=a>", snippet="</table><script>", band="possible")
    page = SearchResult([hostile] * 30)._repr_html_()
    assert "<img onerror" not in page and "<script>" not in page and "&lt;script&gt;" in page
    assert page.count("possible") == 24 and "and 6 more" in page and "nothing certain" in page
    assert "nothing matches" in SearchResult()._repr_html_()
    assert "3 videos" in repr(library)
    library.close()
    assert "webp" not in answer._repr_html_() and "not open" in repr(library)


def test_values_of_another_type_are_refused(library: Library) -> None:
    wrong: dict[str, Callable[[], object]] = {
        "videos 3: give ids": lambda: library.search(RED, videos=[3]),
        "options 3: give SearchOptions": lambda: library.search(RED, 3),  # type: ignore[arg-type]
        "queries 3: give a list": lambda: library.search_many(3),  # type: ignore[arg-type]
        "query '1' 3: give a text": lambda: library.search_many([Query("1", 3)]),  # type: ignore[arg-type]
        "video 3: give the id": lambda: library.curve(RED, 3),  # type: ignore[arg-type]
        "query 'red': give a query with marks": lambda: library.concepts.teach("red", "red"),  # type: ignore[arg-type]
        "concept 3: give its name": lambda: library.concepts.forget(3),  # type: ignore[arg-type]
        "video_ids 'film0': a single text": lambda: library.store.paths_of("film0"),
        "text 3: give the beginning": lambda: library.complete(3),  # type: ignore[arg-type]
        "most 'a': give an integer, 0 or more": lambda: library.examples("a"),  # type: ignore[arg-type]
        "most -1: give an integer": lambda: library.complete("a", -1),
        r"order \[\]: give one of name, date": lambda: library.ordered([]),  # type: ignore[arg-type]
        "most 2.5: give an integer, 0 or more": lambda: library.examples(2.5),  # type: ignore[arg-type]
        "folder 3: give the path": lambda: Library(3),  # type: ignore[arg-type]
        "device 3: unknown": lambda: require_device_name(3),  # type: ignore[arg-type]
    }
    for message, ask in wrong.items():
        with pytest.raises(InvalidValue, match=message):
            ask()


def test_options_may_be_given_whole_or_by_name(library: Library, films: Path) -> None:
    options = SearchOptions(top_k=3, by="visual", videos=["film0", "film1"])
    assert library.search(RED, options) == library.search(
        RED, top_k=3, by="visual", videos=["film1", "film0"]
    )
    assert len(library.search(RED, options, top_k=1)) == 1


def test_an_unknown_video_is_named_in_an_empty_library_too(tmp_path: Path) -> None:
    with Library(tmp_path / "empty", encoder="demo", sentence_encoder="none") as empty:
        unknown = LikeMoment("film9", 1)
        for query in (unknown, RED.then(unknown), RED.without(unknown)):
            with pytest.raises(NotFound, match="film9: no such video"):
                empty.search(query)


@pytest.mark.parametrize("refiner", [CurveRefiner(), ShotRefiner()], ids=["curve", "shots"])
def test_nowhere_to_look_is_no_error(library: Library, refiner: Refiner) -> None:
    library.refiner = refiner
    found = library.search(RED.then(CYAN), videos=[]), library.search(RED, videos=[])
    assert found == ([], []) and not any(answer.confident for answer in found)


def test_a_long_cue_lasts_while_shorter_ones_begin_and_end(library: Library) -> None:
    """The pause to the next cue counts from the end of the last that ends, not of the last that began."""
    video = library.catalogue.video("film0")
    cues = [Cue(0.0, 10.0, "sea"), Cue(1.0, 2.0, "sea"), Cue(11.5, 12.0, "sea"), Cue(15.0, 16.0, "sea")]
    words = cue_search._Words(asked_of(["sea"], "sea", ["en"]), {"sea": 1.0}, ())
    matches = [cue_search._Match(cue, words.held_by(cue), 1.0, 0.0) for cue in cues]
    moments = cue_search._joined(video.row, matches, video, words)
    assert [m.span for m in moments] == [Span(0.0, 12.0), Span(15.0, 16.0)]


def test_a_query_that_cannot_be_answered_is_the_only_one_left_out(library: Library, calls: Calls) -> None:
    expected = library.search_many([RED, CYAN])
    queries = [RED, LikeMoment("gone", 1), CYAN, LikeMoment("film0", 1e6), Query("4", " ")]
    finished, refused = list[int](), dict[int, MoviolaError]()
    answers = library.search_many(
        iter(queries),
        refuse=refused.__setitem__,
        progress=finished.append,  # type: ignore[arg-type]
    )
    assert [answers[0], answers[2]] == expected and not any(answers[place] for place in refused)
    assert {place: type(error) for place, error in refused.items()} == {
        1: NotFound, 3: InvalidValue, 4: InvalidValue
    }  # fmt: skip
    assert finished == [1, 2, 3, 4, 5]
    assert calls.batches == [1, 1], "all texts were encoded in one batch, and are not encoded again"


def test_a_query_that_needs_pictures_is_the_only_one_left_out_where_none_are_searched(
    library: Library,
) -> None:
    refused = dict[int, MoviolaError]()
    umbrella = Text("umbrella")
    queries = [LikeMoment("film0", 1), umbrella, Marked(RED, (MarkedMoment("film0", 1, 2),))]
    answers = library.search_many(queries, by="subtitles", refuse=refused.__setitem__)
    assert [bool(answer) for answer in answers] == [False, True, False]
    assert {place: type(error) for place, error in refused.items()} == {0: NotSearched, 2: NotSearched}


def test_moments_beyond_the_most_of_a_video_do_not_count_among_those_that_pass_a_filter(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (library.catalogue.video(video).row for video in ("film0", "film1"))
    found = [Candidate(first, Span(at, at + 2), 0.9, "visual") for at in (0, 4, 8)]
    found.append(Candidate(second, Span(0, 2), 0.5, "visual"))
    monkeypatch.setattr(searcher, "SEGMENTS", 2)
    monkeypatch.setattr(searcher, "candidates", lambda gatherer, query, rows, segments: found[:segments])
    options = SearchOptions(top_k=2, per_video=1, by="visual", filter=Filter(moment_length=(1.0, None)))
    assert [m.video_id for m in library.search(RED, options)] == ["film0", "film1"]


def test_cues_that_became_fewer_during_a_search_are_passed_over(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = library.search("lighthouse umbrella", by="subtitles")
    own = library.catalogue.cues
    monkeypatch.setattr(library.catalogue, "cues", lambda row: own(row)[:1])
    assert library.search("lighthouse umbrella", by="subtitles") == expected
    assert library.search("nobody remembered the harbour", by="subtitles") == []
