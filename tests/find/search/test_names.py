"""What videos are called counts beside what they show."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import get_args
from unicodedata import normalize

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import LibraryError, NotFound
from moviola.files.array_file import write_sealed_arrays
from moviola.library import NameTable, VideoNames, VideoRow, compact, names_in, repair, stems_in, verify
from moviola.library.derived import name_table
from moviola.library.derived.name_table import publish_names
from moviola.library.disk.row_parts import FACTS
from moviola.library.disk.video_table import VideoTable
from moviola.search import KINDS, By, Filter, Library, LikeMoment, Text
from moviola.search.found import Candidate
from moviola.search.name_evidence import named, with_names
from moviola.search.options import OPTIONS
from moviola.study.judging import library_runs
from moviola.types import POSSIBLE, Query, Reason, Span


@pytest.fixture(scope="module")
def named_original(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of three films without subtitles whose names share a word; not to be changed."""
    videos = tmp_path_factory.mktemp("named")
    for film, place in zip(sorted(films.glob("*.mp4")), ("beach", "lighthouse", "market"), strict=True):
        shutil.copy(film, videos / f"holiday_{place}.mp4")
    with Library(videos / "library", encoder="demo", sentence_encoder="minilm") as library:
        library.index(videos)
    return videos / "library"


@pytest.fixture
def named_library(named_original: Path, tmp_path: Path) -> Iterator[Library]:
    """A copy of it, opened."""
    with Library(shutil.copytree(named_original, tmp_path / "library")) as library:
        yield library


def stems_of(text: str) -> set[str]:
    """The stems of all words of a text."""
    return set().union(*stems_in(text).values())


@pytest.mark.parametrize(
    ("text", "stems"),
    [
        ("Cars driving on the road", {"car", "drive", "road"}),
        ("BottleDetection_2019-v2", {"bottl", "detect"}),
        ("IMG_20190704_183000", {"img"}),
        ("the of and", {"the", "of", "and"}),
        ("the car", {"car"}),
        ("Café_Übung", {"cafe", "ubung", "uebung"}),
        (normalize("NFD", "Café_Übung"), {"cafe", "ubung", "uebung"}),
        ("ÜBERGRÖSSE", {"ubergross", "uebergroess"}),
        ("Übergröße", {"ubergross", "uebergroess"}),
        ("一只狗_Fahrrad自行车", {"一只", "只狗", "fahrrad", "自行", "行车"}),
        ("", set()),
    ],
)
def test_stems(text: str, stems: set[str]) -> None:
    assert stems_of(text) == stems


def as_reasons(shares: dict[int, float]) -> dict[int, tuple[Reason, ...]]:
    return {row: (Reason("named", share),) for row, share in shares.items()}


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1)), max_size=8),
    st.dictionaries(st.integers(0, 5), st.floats(0, 1)),
)
def test_a_name_never_lowers_a_score_and_keeps_it_in_range(
    found: list[tuple[int, float]], shares: dict[int, float]
) -> None:
    before = [Candidate(row, Span(0, 1), score, "visual") for row, score in found]
    for old, new in zip(before, with_names(before, as_reasons(shares)), strict=True):
        assert old.score - 1e-12 <= new.score <= 1
        assert new.score == pytest.approx(old.score) or shares[old.row] > 0


def test_words_of_all_names_are_no_evidence(named_library: Library) -> None:
    names = VideoNames.of(named_library.store.searchable())
    assert names.weight["holiday"] == 0
    assert set(names.distinctive.values()) == {"beach", "lighthouse", "market"}


@pytest.mark.parametrize("place", ["beach", "lighthouse", "market"])
def test_a_name_is_a_result_of_its_own_and_raises_what_is_seen(named_library: Library, place: str) -> None:
    """It says nothing of where: it may raise the odds of a moment 4 times, and is no moment itself."""
    duration = named_library.catalogue.video(f"holiday_{place}").duration
    seen, both = (named_library.search(f"the {place}", top_k=100, by=by) for by in ("visual", "all"))
    (own,) = [one for one in both if one.source == "named"]
    assert (own.video_id, own.start, own.end) == (f"holiday_{place}", 0, duration)
    best = max(one.score for one in seen if one.video_id == own.video_id)
    # Pictures speak for a name that fits wholly, or say nothing.
    odds = 3 * max(1.0, best / (1 - best) * math.exp(3.5)) ** 0.6
    assert (own.score, own.why) == (pytest.approx(odds / (1 + odds), rel=1e-6), (Reason("named", 1.0),))
    before = {(one.video_id, one.start, one.end): one.score for one in seen}
    after = {(one.video_id, one.start, one.end): one for one in both if one.source != "named"}
    assert before.keys() == after.keys()
    for span, score in before.items():
        odds = 4 * score / (1 - score) if span[0] == f"holiday_{place}" else score / (1 - score)
        assert after[span].score == pytest.approx(odds / (1 + odds), rel=1e-6)


@given(st.floats(0.02, 1), st.floats(0, 1), st.floats(0, 1))
def test_pictures_speak_for_and_against_the_name_of_a_video(share: float, low: float, high: float) -> None:
    """More the better its best moment is, and against it only where pictures were searched, and only by what
    the name lacks: of a video that is found by its whole name they say nothing.
    """

    def score(best: float, *, shown: bool) -> float:
        moments = [Candidate(1, Span(0, 1), best, "visual"), Candidate(2, Span(0, 1), 1.0, "visual")]
        (one,) = named(as_reasons({1: share}), moments, lambda row: (0, 9), lambda row: shown)
        return one.score

    low, high = sorted((low, high))
    alone = 0.75 * math.sqrt(share)
    assert score(low, shown=True) <= score(high, shown=True) + 1e-12
    assert score(low, shown=True) <= score(low, shown=False) + 1e-12
    assert score(low, shown=False) >= alone - 1e-12 and score(0.6, shown=True) > max(alone, 0.5 * share)
    assert score(low, shown=True) >= alone - 1e-12 or share < 1
    assert score(0.0, shown=True) < alone or share > 0.99
    assert score(0.0, shown=True) == pytest.approx(score(math.exp(-6.1), shown=True))


@given(st.floats(0, 1), st.floats(0, 1))
def test_a_name_makes_nothing_strong_that_is_not_possible(score: float, share: float) -> None:
    """Nor does it lift what the pictures speak against into the answer."""
    (raised,) = with_names([Candidate(1, Span(0, 1), score, "visual")], as_reasons({1: share}))
    assert raised.band != "strong" or score > POSSIBLE - 1e-9
    assert raised.band == "weak" or score > 0.058


def test_a_name_is_found_by_its_meaning(named_library: Library) -> None:
    """Only by one that is nearer than unrelated words come: sand is no beach."""
    (near,) = named_library.search("the seashore", by="named")
    assert near.video_id == "holiday_beach" and near.score < 0.55
    assert named_library.search("sand and waves", by="named") == []


def test_a_literal_word_of_a_name_counts_though_it_is_a_function_word(films: Path, tmp_path: Path) -> None:
    """Of a name such as "gestures_no" the word "no" is all that no other name has; beside others it says
    nothing. All names that a file ever had count, and ids do not.
    """
    videos = tmp_path / "films"
    videos.mkdir()
    for film, name in zip(sorted(films.glob("*.mp4")), ("sign_no", "sign_yes", "sign_of_rain"), strict=True):
        shutil.copy(film, videos / f"{name}.mp4")
    with Library(tmp_path / "library", encoder="none", sentence_encoder="none") as library:
        library.index(videos)

        def found(text: str) -> list[str]:
            return [one.video_id for one in library.search(text, by="named")]

        assert found("no") == ["sign_no"] and found("of") == ["sign_of_rain"]
        assert found("the rain of tomorrow") == ["sign_of_rain"] and found("end of work") == []
        (videos / "sign_yes.mp4").rename(videos / "thunder.mp4")
        shutil.copy(videos / "sign_no.mp4", videos / "denial.mp4")
        library.index(videos)
        assert found("thunder") == ["sign_yes"] and found("yes") == []
        assert found("denial") == found("no") == ["sign_no"]


def test_a_name_is_a_confident_answer(named_library: Library) -> None:
    assert named_library.search("lighthouses").confident is True


def test_by_names_alone_whole_videos_are_found(named_library: Library) -> None:
    duration = named_library.catalogue.video("holiday_lighthouse").duration
    (found,) = named_library.search("lighthouses", by="named")
    assert (found.video_id, found.start, found.end) == ("holiday_lighthouse", 0, duration)
    assert (found.score, found.source, found.why) == (0.75, "named", (Reason("named", 1.0),))
    (late,) = named_library.search("lighthouses", by="named", filter=Filter.parse(where="50%.."))
    assert (late.start, late.end) == (duration / 2, duration)
    assert not named_library.search("lighthouses", by="named", videos=["holiday_beach"])
    assert not named_library.search("holiday", by="named"), "all videos are called so"
    (left,) = named_library.search(Text("lighthouses").without("a lighthouse"), by="named")
    assert left.score == 0
    with pytest.raises(LibraryError, match="needs a search by pictures"):
        named_library.search(LikeMoment("holiday_beach", 1), by="named")


def test_kinds_of_evidence_have_the_same_names_everywhere() -> None:
    assert get_args(By) == OPTIONS["by"].choices == tuple(KINDS)


def test_without_pictures_a_name_finds_its_video(films: Path, tmp_path: Path) -> None:
    """Names without a meaning of their own are no evidence."""
    videos = tmp_path / "films"
    videos.mkdir()
    with Library(tmp_path / "library", encoder="none", sentence_encoder="minilm") as library:
        for film, name in zip(
            sorted(films.glob("*.mp4")), ("holiday beach", "holiday 2", "holiday"), strict=True
        ):
            shutil.copy(film, videos / f"{name}.mp4")
        library.index(videos)
        for by in ("all", "named"):
            assert [one.video_id for one in library.search("the beach", by=by)] == ["holiday beach"]
        assert library.facets().evidence == {"named": 1}
        library.indexer.remove(["holiday beach"])
        assert library.facets().evidence == {}
        assert library.search("the beach") == []
        with pytest.raises(LibraryError, match="differ by words in the names"):
            library.search("the beach", by="named")


def test_names_in_scripts_without_spaces_are_found_by_parts(films: Path, tmp_path: Path) -> None:
    videos = tmp_path / "films"
    videos.mkdir()
    for film, name in zip(sorted(films.glob("*.mp4")), ("一只狗跳水", "一只猫iPhone", "電話"), strict=True):
        shutil.copy(film, videos / f"{name}.mp4")
    with Library(tmp_path / "library", encoder="none", sentence_encoder="none") as library:
        library.index(videos)
        for query, name in {"狗": 0, "狗跳": 0, "猫": 1, "phone": 1, "電話": 2}.items():
            found = library.search(query, by="named", weak=True)
            assert [one.video_id for one in found] == [("一只狗跳水", "一只猫iPhone", "電話")[name]], query


def test_a_name_is_found_in_capitals(films: Path, tmp_path: Path) -> None:
    """ß is SS there."""
    videos = tmp_path / "films"
    videos.mkdir()
    for film, name in zip(sorted(films.glob("*.mp4")), ("Übergröße", "Straße", "Haus"), strict=True):
        shutil.copy(film, videos / f"{name}.mp4")
    with Library(tmp_path / "library", encoder="none", sentence_encoder="none") as library:
        library.index(videos)
        for query, name in {"ÜBERGRÖSSE": "Übergröße", "übergröße": "Übergröße", "strasse": "Straße"}.items():
            assert [one.video_id for one in library.search(query, by="named")] == [name], query
        with pytest.raises(NotFound, match="did you mean Übergröße"):
            library.catalogue.video("ÜBERGRÖSSE")


def test_names_of_earlier_versions_keep_their_vectors(
    named_library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names lay in one file then; its vectors are read as long as there are no others, and then put in parts,
    without an encoder.
    """
    store = named_library.store
    state = store.catalogue.generation, store.searchable()
    vectors = names_in(store, *state).vector_of()
    texts, revision = sorted(vectors), store.settings.sentence_revision
    old = store.folder / "cache" / "names.table"
    arrays = {
        "recipe": (np.frombuffer(f"5 {revision}".encode(), np.uint8), "u1"),
        "texts": (np.frombuffer("\n".join(texts).encode(), np.uint8), "u1"),
        "vectors": (np.array([vectors[text] for text in texts]), "<f4"),
    }
    write_sealed_arrays(old, arrays)
    shutil.rmtree(store.folder / FACTS)
    monkeypatch.setattr(type(store.encoders.sentences), "encode_text", None)
    for table in (names_in(store, *state), (publish_names(store), names_in(store, *state))[1]):
        found = table.vector_of()
        assert {text: own.tobytes() for text, own in found.items()} == {
            text: own.tobytes() for text, own in vectors.items()
        }
        assert table.whole
    assert not old.exists()
    assert names_in(store, state[0], VideoTable.of([])).counts.tolist() == [3, 3]


def test_the_name_of_a_video_that_is_not_looked_into_says_nothing(named_library: Library) -> None:
    elsewhere = named_library.search("lighthouses", videos=["holiday_beach"])
    assert {moment.video_id for moment in elsewhere} == {"holiday_beach"}
    assert "lighthouse" not in str([moment.why for moment in elsewhere])


def test_vectors_of_names_are_kept_for_the_sentence_encoder_in_use(named_library: Library) -> None:
    store = named_library.store
    state = store.catalogue.generation, store.searchable()
    assert set(names_in(store, *state).vector_of()) == {"beach", "lighthouse", "market"}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


def flip(path: Path) -> None:
    harmed = bytearray(path.read_bytes())
    harmed[len(harmed) // 2] ^= 4
    path.write_bytes(harmed)


@pytest.mark.parametrize("harm", [cut, flip, Path.unlink])
@pytest.mark.parametrize("name", ["meanings-*.part", "meanings.json"])
def test_lost_vectors_of_names_change_no_answer(
    named_library: Library, name: str, harm: Callable[[Path], None]
) -> None:
    """A reader makes them in memory; ``verify`` names what is damaged, and a repair makes it again, to the
    byte.
    """

    def answers() -> list[object]:
        with Library(named_library.folder, read_only=True) as opened:
            return [
                opened.search(query, by=by) for query in ("the seashore", "tower") for by in ("all", "named")
            ]

    expected = answers()
    assert "named" in str(expected[0])
    (path,) = (named_library.folder / FACTS).glob(name)
    whole = path.read_bytes()
    harm(path)
    assert answers() == expected
    missing = harm is Path.unlink
    found = [problem.message.partition(":")[0] for problem in verify(named_library.store)]
    if not (missing and name == "meanings.json"):  # a set that was never published is not damaged
        assert found == [f"cache/facts/{'meanings.json' if missing else path.name}"]
        assert [problem.message.partition(":")[0] for problem in repair(named_library.store)] == found
    else:
        named_library.index(named_library.folder.parent)
    assert path.read_bytes() == whole and verify(named_library.store) == [] and answers() == expected


def test_very_many_lost_vectors_are_left_to_the_next_writer(
    named_library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words of names are compared all the same, and nothing is encoded."""
    store = named_library.store
    (store.folder / FACTS / "meanings.json").write_bytes(b"damaged")
    monkeypatch.setattr(name_table, "_FEW_NAMES", 2)
    monkeypatch.setattr(name_table, "_encoded", None)
    table = names_in(store, store.catalogue.generation, store.searchable())
    assert table.vector_of() == {} and table.counts.tolist() == [3, 3] and not table.has_meanings


def test_a_restored_video_is_found_by_the_meaning_of_its_name(named_library: Library, tmp_path: Path) -> None:
    def evidence() -> dict[str, list[Reason]]:
        found = named_library.search("the seashore")
        return {one.video_id: [why for why in one.why if why.kind == "named"] for one in found}

    before = evidence()
    assert before["holiday_beach"]
    (nothing := tmp_path / "nothing").mkdir()
    named_library.indexer.remove(["holiday_beach"])
    named_library.index(nothing)
    named_library.indexer.restore(["holiday_beach"])
    assert evidence() == before


def test_vectors_of_names_go_when_nothing_can_be_restored(named_library: Library, tmp_path: Path) -> None:
    (nothing := tmp_path / "nothing").mkdir()
    named_library.indexer.remove(["holiday_beach"])
    compact(named_library.store)
    named_library.index(nothing)
    store = named_library.store
    names = names_in(store, store.catalogue.generation, store.searchable())
    assert set(names.vector_of()) == {"lighthouse", "market"}


def test_names_with_a_meaning_are_a_system_of_their_own_to_be_judged(named_library: Library) -> None:
    runs = library_runs(named_library, [Query("q", "the lighthouse")], depth=3)
    assert list(runs) == ["refined", "coarse", "joined"]
    refined, joined = runs["refined"].rows()["q"], runs["joined"].rows()["q"]
    assert max(row["score"] for row in joined) > max(row["score"] for row in refined)


WORDS = st.sampled_from(["beach", "harbour", "holiday", "keeper", "market", "the", "2019"])


@given(st.lists(st.lists(WORDS, max_size=4), max_size=12), st.lists(WORDS, max_size=4))
def test_columns_of_names_say_what_the_names_say(files: list[list[str]], asked: list[str]) -> None:
    videos = {
        row: VideoRow(row, f"v{row}", f"/films/{' '.join(words)}.mp4", 1, 1, "", "", "ready")
        for row, words in enumerate(files, 3)
    }
    names = VideoNames.of(videos)
    known = {text: np.full(4, 0.5, np.float32) for text in sorted(set(names.distinctive.values()))[::2]}
    table = NameTable.of(names, known)
    for stem in (*names.holding, *stems_of(" ".join(asked)), "unheard"):
        assert set(table.videos_with(stem).tolist()) == names.holding.get(stem, set())
        assert table.weight(stem) == names.weight.get(stem, math.log(len(videos) + 1))
    assert table.vector_of().keys() == known.keys()
    distinct = [row for row, text in names.distinctive.items() if text in known]
    assert sorted(table.rows.tolist()) == sorted(distinct)
    assert table.distinguishable == len(
        {row for stem, rows in names.holding.items() if names.weight[stem] for row in rows}
    )
    assert table.whole == (len(distinct) == len(names.distinctive))


def test_names_are_mapped_until_the_library_changes(named_library: Library) -> None:
    store = named_library.store

    def names(videos: VideoTable) -> NameTable:
        return names_in(store, store.catalogue.generation, videos)

    assert names(VideoTable.of([])).counts.tolist() == [3, 3]
    with store.catalogue.transaction():
        store.catalogue.drop(store.catalogue.video("holiday_beach").row)
    assert names(store.searchable()).counts.tolist() == [2, 2]
    named_library.indexer.remove(["holiday_market"])
    assert names(VideoTable.of([])).counts[0] == 1
