"""What a file says of itself is searched: titles of chapters where they stand, other words as on all of
it.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from made_films import Pictures, Words, make_film
from moviola.errors import LibraryError
from moviola.library.ingest.recognition import replace_cues
from moviola.media import read_facts
from moviola.search import Library
from moviola.types import POSSIBLE, STRONG, Saying

CHAPTERS = [(0.0, 2.0, "The walrus sings"), (2.0, 4.0, ""), (4.0, 6.0, "Evening at the lighthouse")]
TAGS = {
    "title": "Harbour days", "DESCRIPTION": "A trawler unloads herring.", "KEYWORDS": "crane, gull",
    "ARTIST": "Ada Fischer", "PURL": "https://example.org/walrus", "ENCODED_BY": "herring press",
}  # fmt: skip


def film_with_sayings(path: Path, **options: str) -> Path:
    return make_film(path, Pictures(6.0), tags=TAGS, chapters=CHAPTERS, **options)


@pytest.fixture
def titled(tmp_path: Path, opened: Callable[..., Library]) -> Library:
    film_with_sayings(tmp_path / "films" / "a.mkv")
    for name in ("berry", "cloud"):
        make_film(tmp_path / "films" / f"{name}.mkv", Pictures(6.0, size=(64, 64)), tags={"title": name})
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(tmp_path / "films")
    return library


def where(library: Library, text: str, **options: str) -> list[tuple[str, float, float, str]]:
    found = library.search(text, **options)  # type: ignore[arg-type]
    return [(one.video_id, one.start, one.end, one.why[0].kind) for one in found if one.source != "visual"]


def test_a_chapter_is_found_where_it_stands(titled: Library) -> None:
    """Under its own evidence, possible at most; a chapter without a title says nothing."""
    assert where(titled, "walrus", by="chapters") == [("a", 0.0, 2.0, "titled")]
    (found,) = titled.search("evening at the lighthouse", by="chapters")
    assert (found.start, found.end, found.snippet, found.snippet_kind) == (
        4.0, 6.0, "Evening at the lighthouse", "chapter"
    )  # fmt: skip
    assert POSSIBLE <= found.score < STRONG and found.why[0].words == ("Evening", "lighthouse")
    assert titled.search("herring", by="chapters") == []
    with pytest.raises(LibraryError, match="no subtitles"):
        titled.search("walrus", by="said")
    reasons = [reason.kind for one in titled.search("walrus") for reason in one.why]
    assert "titled" in reasons


def test_words_on_a_film_belong_to_all_of_it(titled: Library) -> None:
    """A description makes its video possible, never a moment, and nothing strong; a title is a name."""
    for text in ("herring", "gull", "Fischer", "a trawler unloads herring"):
        (found,) = titled.search(text, by="named")
        assert (found.video_id, found.start, found.end, found.why[0].kind) == ("a", 0.0, 6.0, "described")
        assert POSSIBLE <= found.score < STRONG
    (found,) = titled.search("harbour", by="named")
    assert found.why[0].kind == "named" and found.score >= STRONG
    for text in ("press", "https example org"):
        assert titled.search(text, by="named") == []


def test_one_film_alone_is_found_by_what_it_says(tmp_path: Path, opened: Callable[..., Library]) -> None:
    """A word of all names is no evidence for one of them; in what one film says of itself, it is."""
    film_with_sayings(tmp_path / "films" / "a.mp4")
    library = opened(encoder="none", sentence_encoder="none")
    library.index(tmp_path / "films")
    assert [one.video_id for one in library.search("harbour", by="named")] == ["a"]


def test_a_library_of_before_gets_them_with_the_next_run(titled: Library, tmp_path: Path) -> None:
    """Without encoding pictures, once; texts that were there stay, and so does what a repair has noted."""
    with titled.catalogue.transaction():
        titled.catalogue._rows("DROP TABLE facts")
    row = titled.catalogue.video("a")
    replace_cues(titled.store, row, row, [], "chapter")
    assert titled.catalogue.cue_counts()["chapter"] == 0
    report = titled.index(tmp_path / "films")
    assert report.unchanged == ["a", "berry", "cloud"] and report.frames == 0
    assert where(titled, "walrus", by="chapters") == [("a", 0.0, 2.0, "titled")]
    now = titled.catalogue.video("a").row
    titled.index(tmp_path / "films")
    assert titled.catalogue.video("a").row == now
    assert [one.video_id for one in titled.search("herring", by="named")] == ["a"]


def test_subtitles_come_and_go_beside_chapters(titled: Library, tmp_path: Path) -> None:
    """Other kinds of cues stay where one kind is read again."""
    beside = tmp_path / "films" / "a.srt"
    beside.write_text("1\n00:00:01,000 --> 00:00:02,000\nA penguin hums.\n")
    titled.index(tmp_path / "films")
    assert titled.catalogue.cue_counts() == {"subtitle": 1, "speech": 0, "text": 0, "chapter": 2}
    beside.unlink()
    titled.index(tmp_path / "films")
    assert titled.catalogue.cue_counts() == {"subtitle": 0, "speech": 0, "text": 0, "chapter": 2}


def test_removed_and_restored_it_says_the_same(titled: Library) -> None:
    row = titled.catalogue.video("a").row
    said = titled.catalogue.sayings([row])[row]
    assert {one.kind for one in said} == {"title", "description", "keywords", "people"}
    titled.indexer.remove(["a"])
    assert titled.search("herring", by="named") == []
    titled.indexer.restore(["a"])
    row = titled.catalogue.video("a").row
    assert titled.catalogue.sayings([row])[row] == said
    assert [one.video_id for one in titled.search("herring", by="named")] == ["a"]


@pytest.mark.parametrize("suffix", ["mp4", "mov", "mkv", "ogv", "avi", "wmv"])
def test_containers_say_it_alike(tmp_path: Path, suffix: str) -> None:
    """Each writes tags by names of its own, some of them with the streams."""
    codecs = {"mp4": "libx264", "mov": "libx264", "mkv": "libx264", "ogv": "libvpx"}
    pictures = Pictures(2.0, codec=codecs.get(suffix, "mpeg4"), options={})
    film = make_film(tmp_path / f"film.{suffix}", pictures, tags={"title": "Harbour", "comment": "gulls"})
    sayings = read_facts(film).sayings
    assert Saying("title", "Harbour") in sayings and Saying("description", "gulls") in sayings


def test_a_flood_of_words_is_cut_with_a_word(tmp_path: Path) -> None:
    film = make_film(tmp_path / "film.mkv", Pictures(1.0), tags={"DESCRIPTION": "gull " * 10_000})
    facts = read_facts(film)
    (saying,) = facts.sayings
    assert len(saying.text) == 20_000
    assert [str(one) for one in facts.holdings if one.held_as == "other words"] == [
        "DESCRIPTION, 29999 further letters: not searched"
    ]


def test_what_wrote_a_file_is_not_what_it_says(tmp_path: Path) -> None:
    """MXF names its writer and bears identifiers in ten tags, which would fill each account."""
    pictures = Pictures(1.0, codec="mpeg2video", options={"bf": "0"}, times=[n / 25 for n in range(25)])
    facts = read_facts(make_film(tmp_path / "film.mxf", pictures))
    assert [one.held_as for one in facts.holdings] == ["film"]


def test_chapters_of_mp4_are_no_further_track(tmp_path: Path) -> None:
    """MP4 has their titles in a track of text, which is not data that nobody reads."""
    film = make_film(
        tmp_path / "a.mp4",
        Pictures(6.0),
        Words([(0.5, 1.0, "a gull")]),
        chapters=[c for c in CHAPTERS if c[2]],
    )
    facts = read_facts(film)
    assert {one.held_as for one in facts.holdings} == {"film", "subtitles", "chapters"}
    assert [(cue.start, cue.end, cue.text) for cue in facts.chapters] == [
        (0.0, 4.0, "The walrus sings"), (4.0, 6.0, "Evening at the lighthouse")
    ]  # fmt: skip


def test_chapters_past_the_end_are_named(tmp_path: Path, opened: Callable[..., Library]) -> None:
    """What a chapter says beyond the film is left out with a word; one that ends later ends with the film."""
    make_film(
        tmp_path / "films" / "a.mkv", Pictures(3.0), chapters=[(1.0, 90.0, "Long"), (50.0, 60.0, "Lost")]
    )
    library = opened(encoder="demo", sentence_encoder="none")
    report = library.index(tmp_path / "films")
    assert "after the end" in report.subtitle_problems["a"] and "Lost" in report.subtitle_problems["a"]
    cues = library.catalogue.cues(library.catalogue.video("a").row)
    assert [(cue.start, cue.end, cue.text) for cue in cues] == [(1.0, pytest.approx(3.0), "Long")]
