"""Text in pictures and speech as steps of indexing: what is read when, what is kept, what is found."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from moviola.cli import all_commands
from moviola.encoders.readers import TextLine, Utterance, Voiced
from moviola.errors import InvalidValue, LibraryError, MissingDependency
from moviola.library import IngestProgress, compact, verify
from moviola.library.disk.catalogue import CATALOGUE_FILE
from moviola.library.ingest import recognition
from moviola.library.ingest import screen_text as written
from moviola.library.ingest import speech as spoken
from moviola.library.ingest.screen_text import Look, looks, read_text, written_cues
from moviola.media import write_video
from moviola.search import Library
from moviola.types import Box, Cue, Holding, Span, Word
from speech_sample import RATE, speech
from title_cards import card

app = all_commands()

# ---- stills and what is written in them ----------------------------------------------------------------


def line(text: str, top: float = 0.5, confidence: float = 0.9) -> TextLine:
    return TextLine(text, Box(0.1, top, 0.6, top + 0.1), confidence)


def read(*lines: Sequence[TextLine], every: float = 2.0) -> list[Cue]:
    """Cues of stills that stand for ``every`` seconds each."""
    stills = (Look((n + 0.5) * every, Span(n * every, (n + 1) * every)) for n in range(len(lines)))
    return written_cues(zip(stills, lines, strict=True))


def test_one_still_a_shot_and_several_of_a_long_one() -> None:
    found = looks([Span(0, 1.5), Span(1.5, 6.5), Span(6.5, 6.501)], Fraction(1), every=2)
    assert [look.time for look in found] == pytest.approx([1, 2, 4, 6, 6.5005])
    seldom = looks([Span(0.1, 1.5), Span(1.5, 6.5)], Fraction(10), every=2)
    assert [look.time for look in seldom] == pytest.approx([0.8, 2.3333, 4, 5.6667], abs=1e-3)
    assert looks([Span(1, 2)], Fraction(1))[0].time == 1, "of two that are as near, the one in the shot"
    spans = [look.span for look in found]
    assert spans[0] == Span(0, 1.5)
    assert all(span.duration <= 2 for span in spans)
    assert [span.end for span in spans[:-1]] == [span.start for span in spans[1:]]
    assert looks([], Fraction(1)) == []


def test_a_line_that_stays_is_one_cue_read_as_surely_as_ever() -> None:
    cues = read(
        [], [line("TKE END", confidence=0.8)], [line("THE END", confidence=0.95)], [], [line("THE END")]
    )
    assert [(cue.start, cue.end, cue.text) for cue in cues] == [(2, 6, "THE END"), (8, 10, "THE END")]
    assert cues[0].confidence == 0.95
    assert {cue.kind for cue in cues} == {"text"}


def test_lines_that_come_and_go_together_are_one_cue() -> None:
    title = [line("by Anna Larsson", 0.6), line("The Harbour", 0.4)]
    logo = line("Channel 5", 0.05)
    cues = read([logo], [*title, logo], [logo])
    assert [(cue.start, cue.end, cue.text) for cue in cues] == [
        (0, 6, "Channel 5"),
        (2, 4, "The Harbour\nby Anna Larsson"),
    ]
    assert cues[1].box == Box(0.1, 0.4, 0.6, 0.7)


def test_a_running_clock_is_not_one_text() -> None:
    assert [cue.text for cue in read([line("00:00:01")], [line("00:00:03")])] == ["00:00:01", "00:00:03"]


def test_texts_that_are_surely_read_and_differ_are_two() -> None:
    sure = [[line("Chapter One", confidence=0.99)], [line("Chapter Ome", confidence=0.99)]]
    assert [cue.text for cue in read(*sure)] == ["Chapter One", "Chapter Ome"]
    unsure = [sure[0], [line("Chapter Ome", confidence=0.9)]]
    assert [cue.text for cue in read(*unsure)] == ["Chapter One"]


def test_the_same_text_in_two_places_stays_two() -> None:
    exits = [line("EXIT", 0.1), line("EXIT", 0.8)]
    assert [cue.text for cue in read(exits, exits)] == ["EXIT\nEXIT"]


class CountingReader:
    """Reads the brightness of a picture, and counts how often."""

    id, revision, longest_side = "counting", "1", 320

    def __init__(self) -> None:
        self.pictures = 0

    def read(self, image: NDArray[np.uint8]) -> list[TextLine]:
        self.pictures += 1
        return [line("dark" if image.mean() < 128 else "bright")]


def shades(path: Path, *values: int, seconds: float = 6.0) -> Path:
    """A film of some shades, each for a number of seconds."""
    frames = (np.full((64, 96, 3), value, np.uint8) for value in values for _ in range(round(seconds * 5)))
    write_video(path, frames, rate=5)
    return path


def test_unchanged_pictures_are_read_once(tmp_path: Path) -> None:
    path, reader, seconds = shades(tmp_path / "a.mp4", 20, 200), CountingReader(), []
    cues = read_text(path, [Span(0, 6), Span(6, 12)], Fraction(1), reader, seconds.append)
    assert [(cue.start, cue.end, cue.text) for cue in cues] == [(0, 6, "dark"), (6, 12, "bright")]
    assert reader.pictures == 2
    assert seconds == pytest.approx([2, 4, 6, 8, 10, 12])


# ---- steps of indexing ---------------------------------------------------------------------------------


class Readers:
    """Readers that stand in for real ones: what they say, how often they were asked, when they are killed."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.speech: list[str] = []
        self.names = {"text": "seer", "speech": "listener"}
        self.killed_after: int | None = None
        self.says, self.unread = "hello", ""

    def _count(self, kind: str) -> None:
        calls: list[str] = getattr(self, kind)
        if self.killed_after is not None and len(calls) >= self.killed_after:
            raise KeyboardInterrupt
        calls.append(kind)

    def read_text(self, *_: Any, **__: Any) -> list[Cue]:
        self._count("text")
        return [Cue(1, 3, "THE HARBOUR", "text", 0.9, Box(0.1, 0.2, 0.3, 0.4))]

    def read_speech(self, *_: Any) -> tuple[list[Cue], str, str]:
        self._count("speech")
        words = (Word(2.0, 2.5, self.says),)
        return [Cue(2.0, 4.0, f"{self.says} umbrella", "speech", 0.5, words=words)], "en", self.unread


class Named:
    def __init__(self, id: str) -> None:
        self.id, self.revision, self.longest_side = id, "8" if "other" in id else "7", 320


@pytest.fixture
def readers(monkeypatch: pytest.MonkeyPatch) -> Readers:
    made = Readers()
    monkeypatch.setattr(recognition, "LEGIBLE", 1)  # the films are tiny
    monkeypatch.setattr(written, "read_text", made.read_text)
    monkeypatch.setattr(spoken, "read_speech", made.read_speech)
    monkeypatch.setattr(recognition, "load_text_reader", lambda *_: Named(made.names["text"]))
    monkeypatch.setattr(recognition, "load_speech_reader", lambda name, **_: Named(name))
    return made


@pytest.fixture
def words(tmp_path: Path, films: Path) -> Iterator[Library]:
    """A library of the four films that has words alone, and sentences by meaning; nobody read yet."""
    with Library(tmp_path / "words", encoder="none") as library:
        library.index(films, ocr=False)
        yield library


def kinds(library: Library) -> dict[str, list[str]]:
    return {
        video.video_id: [cue.kind for cue in library.catalogue.cues(video.row)]
        for video in library.catalogue.videos()
    }


def test_what_was_left_out_is_read_later_and_once(words: Library, films: Path, readers: Readers) -> None:
    assert words.index(films, ocr=False).read == {"text": [], "speech": []}
    rows = {video.video_id: video.row for video in words.catalogue.videos()}
    report = words.index(films, speech="listener")
    # d has subtitles, so nobody listens to it.
    assert report.read == {"text": ["a", "b", "d", "deep/c"], "speech": ["a", "b", "deep/c"]}
    assert kinds(words) == {
        "a": ["text", "speech"],
        "b": ["text", "speech"],
        "d": ["subtitle", "subtitle", "text"],
        "deep/c": ["text", "speech"],
    }
    assert words.catalogue.cue_counts() == {"subtitle": 2, "speech": 3, "text": 4, "chapter": 0}
    assert all(video.row != rows[video.video_id] for video in words.catalogue.videos())
    again = words.index(films, speech="listener")
    assert again.read == {"text": [], "speech": []} and len(again.unchanged) == 4
    assert len(readers.text) == 4 and len(readers.speech) == 3
    assert verify(words.store) == []


def test_what_a_reader_knows_is_kept(words: Library, films: Path, readers: Readers) -> None:
    words.index(films, speech="listener")
    row = words.catalogue.video("a").row
    assert words.catalogue.cues(row) == [
        Cue(1, 3, "THE HARBOUR", "text", 0.9, Box(0.1, 0.2, 0.3, 0.4)),
        Cue(2.0, 4.0, "hello umbrella", "speech", 0.5, words=(Word(2.0, 2.5, "hello"),)),
    ]
    found = words.catalogue.readings(row)
    assert (found["text"].reader, found["text"].revision, found["text"].language) == ("seer", "7", "")
    assert (found["speech"].reader, found["speech"].language) == ("listener", "en")


def test_a_reader_that_is_named_reads_again_what_another_one_read(
    words: Library, films: Path, readers: Readers
) -> None:
    words.index(films, speech="listener", ocr=False)
    readers.says = "better"
    assert words.index(films, speech="other", ocr=False).read["speech"] == ["a", "b", "deep/c"]
    assert [cue.text for cue in words.catalogue.cues(words.catalogue.video("a").row)] == ["better umbrella"]
    assert verify(words.store) == []


def test_the_same_model_in_another_folder_is_the_same_reader(
    words: Library, films: Path, readers: Readers
) -> None:
    """A folder that was moved would be read again in full; another model in the same folder would not be."""
    for folder in ("/models/whisper", "/elsewhere/whisper"):
        found = words.index(films, speech=folder, ocr=False).read["speech"]
        assert found == (["a", "b", "deep/c"] if folder == "/models/whisper" else [])
    row = words.catalogue.video("a").row
    reading = words.catalogue.readings(row)["speech"]
    words.catalogue.set_readings(row, [replace(reading, revision="6")])
    assert words.index(films, speech="/models/whisper", ocr=False).read["speech"] == ["a"]


def test_another_way_of_listening_reads_again(words: Library, films: Path, readers: Readers) -> None:
    words.index(films, speech="listener", ocr=False)
    every = ["a", "b", "deep/c"]
    ways: list[dict[str, Any]] = [
        {"speech_track": "de"}, {"speech_track": "all"}, {"speech_track": "2", "speech_language": "deu"}, {},
    ]  # fmt: skip
    noted = ["7; track de", "7; track all", "7; track 2; language de", "7"]
    for way, revision in zip(ways, noted, strict=True):
        assert words.index(films, speech="listener", ocr=False, **way).read["speech"] == every
        assert words.index(films, speech="listener", ocr=False, **way).read["speech"] == []
        assert words.catalogue.readings(words.catalogue.video("a").row)["speech"].revision == revision
    for wrong in ({"speech_track": "nonsense"}, {"speech_language": "nonsense"}):
        with pytest.raises(InvalidValue, match="nonsense"):
            words.index(films, speech="listener", **wrong)


@pytest.mark.parametrize("after", [0, 1, 3])
def test_killed_in_the_middle_it_goes_on(words: Library, films: Path, readers: Readers, after: int) -> None:
    readers.killed_after = after
    with pytest.raises(KeyboardInterrupt):
        words.index(films)
    assert words.catalogue.cue_counts()["text"] == after
    # What was read is whole; only the published index lags behind until indexing ends.
    assert {problem.message.split(":")[0] for problem in verify(words.store)} <= {
        "index segments",
        "index cues",
    }
    readers.killed_after = None
    assert len(words.index(films).read["text"]) == 4 - after
    assert len(readers.text) == 4
    assert verify(words.store) == []


def test_subtitles_take_the_place_of_speech(words: Library, films: Path, readers: Readers) -> None:
    words.index(films, speech="listener")
    (films / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\nThe real words.\n")
    assert words.index(films, speech="listener").updated == ["a"]
    assert kinds(words)["a"] == ["subtitle", "text"]
    assert len(readers.speech) == 3
    (films / "a.srt").unlink()
    words.index(films, speech="listener")
    assert kinds(words)["a"] == ["text", "speech"]
    assert len(readers.speech) == 4 and len(readers.text) == 4
    assert verify(words.store) == []


def test_a_changed_film_is_read_again(
    words: Library, films: Path, readers: Readers, film: Callable[..., Path]
) -> None:
    words.index(films)
    film(films / "a.mp4", 7, seed=9)
    assert words.index(films).read["text"] == ["a"]


def test_small_pictures_are_read_only_on_request(
    words: Library, films: Path, readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recognition, "LEGIBLE", 240)
    report = words.index(films)
    assert report.read["text"] == [] and readers.text == []
    assert "4 videos" in report.not_read["text"] and "--ocr" in report.not_read["text"]
    assert "pictures of 1 video are" in words.index(films / "a.mp4").not_read["text"]
    report = words.index(films, ocr=True)
    assert len(report.read["text"]) == 4 and report.not_read == {}
    assert words.index(films).not_read == {}


def test_progress_names_the_step(words: Library, films: Path, readers: Readers) -> None:
    steps: list[IngestProgress] = []
    words.index(films, speech="listener", progress=steps.append)
    assert [(step.step, step.done, step.total) for step in steps] == [
        *(("text", done, 4) for done in range(4)),
        *(("speech", done, 3) for done in range(3)),
    ]


def test_a_file_that_is_gone_is_reported(words: Library, films: Path) -> None:
    (films / "b.mp4").write_bytes(b"")
    words.store.catalogue.moved(words.catalogue.video("b").row, str(films / "b.mp4"), 0, 0, "")
    run = recognition.ReadingRun(
        words.store, report := words.index(films / "a.mp4", ocr=False), lambda *_: None
    )
    run.read({"a", "b"}, recognition.Readers(CountingReader(), None, ["text"]))
    assert report.read["text"] == ["a"]
    assert report.reading_problems == {"b": "text: the file is empty (0 bytes)"}


def test_who_is_not_there_is_said(words: Library, films: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moviola.encoders.readers.loading.PACKAGES", ("nobody_has_this",))
    with pytest.raises(MissingDependency, match=r"-m pip install .*faster-whisper"):
        words.index(films, speech="tiny.en")


# ---- libraries that were built before ------------------------------------------------------------------


def made_before(library: Path) -> None:
    """Take the tables away that came later."""
    with closing(sqlite3.connect(library / CATALOGUE_FILE)) as db:
        for table in ("readings", "recognised"):
            db.execute(f"DROP TABLE {table}")
        db.commit()


def test_a_library_built_before_opens_as_before(words: Library, films: Path, readers: Readers) -> None:
    folder = words.folder
    words.close()
    made_before(folder)
    for read_only in (True, False):
        with Library(folder, read_only=read_only) as old:
            assert old.catalogue.cue_counts() == {"subtitle": 2, "speech": 0, "text": 0, "chapter": 0}
            assert old.catalogue.readings(1) == {}
            (best,) = old.search("the lighthouse keeper", by="subtitles", top_k=1)
            assert (best.video_id, best.source, best.snippet_kind) == ("d", "subtitle", "subtitle")
            with pytest.raises(LibraryError, match="no text read in pictures"):
                old.search("the lighthouse keeper", by="text")
            assert verify(old.store) == []
    with Library(folder, read_only=True) as reader, Library(folder) as old:
        assert old.index(films).read["text"] == ["a", "b", "d", "deep/c"]
        assert reader.catalogue.cue_counts()["text"] == 4  # opened before, sees what came since
        assert reader.search("harbour", by="text")


def test_damaged_details_are_named(words: Library, films: Path, readers: Readers) -> None:
    words.index(films)
    words.close()
    for damage in ("details = '{}'", "details = 'no json'", "kind = 'smell'"):
        with closing(sqlite3.connect(words.folder / CATALOGUE_FILE)) as db:
            db.execute(f"UPDATE recognised SET {damage}")
            db.commit()
        with (
            Library(words.folder, read_only=True) as opened,
            pytest.raises(LibraryError, match="damaged catalogue"),
        ):
            opened.catalogue.cues(opened.catalogue.video("a").row)


# ---- looking after it, and searching -------------------------------------------------------------------


def test_removing_and_compacting(words: Library, films: Path, readers: Readers) -> None:
    words.index(films, speech="listener")
    row = words.catalogue.video("a").row
    words.indexer.remove(["a"])
    assert words.catalogue.readings(row) == {} and words.catalogue.cues(row) == []
    assert words.catalogue.cue_counts() == {"subtitle": 2, "speech": 2, "text": 3, "chapter": 0}
    assert compact(words.store) > 0
    assert verify(words.store) == []
    assert [moment.video_id for moment in words.search("harbour", by="text")] == ["b", "d", "deep/c"]


def test_each_kind_is_searched_alone(words: Library, films: Path, readers: Readers) -> None:
    words.index(films, speech="listener")

    def found(text: str, by: Any) -> set[tuple[str, str]]:
        return {(moment.video_id, moment.snippet_kind) for moment in words.search(text, by=by)}

    written = {(name, "text") for name in ("a", "b", "d", "deep/c")}
    spoken = {(name, "speech") for name in ("a", "b", "deep/c")}
    assert found("harbour", "text") == written
    assert found("umbrella", "speech") == spoken
    assert found("umbrella", "subtitles") == {("d", "subtitle")}
    assert found("umbrella", "said") == spoken | {("d", "subtitle")}
    assert {kind for _, kind in found("umbrella", "text")} <= {"text"}
    with pytest.raises(InvalidValue, match="by='smell'"):
        words.search("harbour", by="smell")  # type: ignore[arg-type]


def test_written_text_counts_by_its_words_beside_pictures(
    words: Library, films: Path, readers: Readers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A title card that means about the same as the query must not stand above pictures that show it."""
    cards = {
        "a": "a film without a camera",
        "b": "Chapter Two",
        "c": "Directed by Jonas Meyer",
        "d": "The End",
    }
    monkeypatch.setattr(
        written, "read_text", lambda path, *_, **__: [Cue(1, 3, cards[path.stem], "text", 0.9)]
    )

    def texts_of(library: Library, text: str, by: Any) -> set[str]:
        found = library.search(text, by=by)
        return {moment.video_id for moment in found if moment.snippet_kind == "text"}

    words.index(films)
    with Library(words.folder.parent / "seen", encoder="demo", sentence_encoder="minilm") as seen:
        seen.index(films)
        assert texts_of(seen, "a man with a camera", "text") == {"a"}
        assert not any(m.strong for m in seen.search("a man with a camera") if m.snippet_kind == "text")
        assert texts_of(seen, "film without camera", "all") == {"a"}
    assert texts_of(words, "a man with a camera", "all") == {"a"}  # nothing else can answer


def test_a_kind_that_the_library_lacks_is_named(words: Library) -> None:
    for by, said in (("speech", "no recognised speech"), ("text", "no text read in pictures")):
        with pytest.raises(LibraryError, match=said):
            words.search("harbour", by=by)  # type: ignore[arg-type]
    assert words.search("lighthouse", by="said")


def test_text_in_pictures_is_nothing_that_is_said(words: Library, films: Path, readers: Readers) -> None:
    """Trained models read what is said during a frame; a title card is not."""
    words.index(films)
    with Library(words.folder.parent / "seen", encoder="demo") as seen:
        seen.index(films, speech="listener")
        rows = seen.store.features_of(seen.store.searchable())
        subtitles = rows.subtitles
        assert subtitles is not None
        spoken = np.flatnonzero(np.abs(subtitles.read(rows.row_of["a"])).sum(1))
        assert spoken.tolist() == [2, 3]  # what is said lasts from 2 to 4, what is written from 1 to 3


# ---- from a film to an answer --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def transcribed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library of one film with a title card, then a wall, and three sentences that are said."""
    folder = tmp_path_factory.mktemp("transcribed")
    sound = speech()
    title = card("The Harbour at Dawn", size=(640, 360))
    wall = card(size=(640, 360), shade=150)
    seconds = len(sound) / RATE
    frames = [title] * 20 + [wall] * round(seconds * 5 - 20)
    (folder / "films").mkdir()
    write_video(folder / "films" / "harbour.mp4", frames, rate=5, sound=sound, sound_rate=RATE)
    with Library(folder / "library", encoder="none") as library:
        report = library.index(folder / "films", ocr=True, speech="tiny.en")
        assert report.read == {"text": ["harbour"], "speech": ["harbour"]}
    return folder / "library"


def moviola(*words: str) -> str:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


def rows(*words: str) -> list[Any]:
    """What a command prints as JSON, an object per line."""
    return [json.loads(line) for line in moviola(*words, "--json").splitlines()]


def test_written_text_is_found(transcribed: Path) -> None:
    (best,) = rows("search", "harbour", "--by", "text", "-l", str(transcribed))
    assert (best["snippet"], best["snippet_kind"], best["source"]) == ("The Harbour at Dawn", "text", "text")
    assert best["start"] == 0 and best["end"] == pytest.approx(4, abs=1)


def test_speech_is_found(transcribed: Path) -> None:
    (best, *_) = rows("search", "football in the garden", "--by", "speech", "-l", str(transcribed))
    assert "football" in best["snippet"] and best["snippet_kind"] == "speech"
    assert best["start"] == pytest.approx(7.2, abs=0.4)  # of the word; its sentence begins at 6.1


def test_speech_in_another_language_is_not_kept(tmp_path: Path) -> None:
    """The account of the video says so, until a reader that knows the language has read it."""
    (tmp_path / "films").mkdir()
    sound = speech("german.ogg")
    walls = [card(size=(64, 64), shade=150)] * round(len(sound) / RATE * 5)
    write_video(tmp_path / "films" / "a.mp4", walls, rate=5, sound=sound, sound_rate=RATE)
    write_video(tmp_path / "films" / "silent.mp4", walls, rate=5)
    with Library(tmp_path / "library", encoder="none") as library:
        assert library.index(tmp_path / "films", ocr=False, speech="none").read["speech"] == []
        report = library.index(tmp_path / "films", ocr=False)  # without being asked, where there is sound
        assert report.read["speech"] == ["a"] and library.catalogue.cue_counts()["speech"] == 0
        assert report.reading_notes == {
            "a": "speech: all that is said, in a language that tiny.en does not know or too noisy, "
            "is not kept"
        }
        assert library.index(tmp_path / "films", ocr=False).read["speech"] == []
        row = library.catalogue.video("a").row
        assert "tiny.en does not know" in library.catalogue.readings(row)["speech"].unread
        assert "tiny.en does not know" in moviola("show", "a", "-l", str(library.folder))
        library.indexer.remove(["a"])
        library.indexer.restore(["a"])
        row = library.catalogue.video("a").row
        assert "tiny.en does not know" in library.catalogue.readings(row)["speech"].unread


def test_why_no_speech_is_read(words: Library, films: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the packages, or with a language that the packaged reader does not know, indexing goes on and
    says how speech would be read; silent films and --no-speech want none.
    """
    monkeypatch.setattr(recognition, "hears_offline", lambda: False)
    assert words.index(films, ocr=False).not_read == {}
    for row in (video.row for video in words.catalogue.videos()):
        words.catalogue.put_holdings(row, False, [Holding("sound", "audio, aac")])
    said = words.index(films, ocr=False).not_read["speech"]
    assert said.startswith("3 videos with sound and without subtitles; ") and "faster-whisper" in said
    assert words.index(films, ocr=False, speech="none").not_read == {}
    monkeypatch.setattr(recognition, "hears_offline", lambda: True)
    said = words.index(films, ocr=False, speech_language="de").not_read["speech"]
    assert "tiny.en knows English only; --speech names a reader that knows de" in said


def test_by_meaning_too(transcribed: Path) -> None:
    (best, *_) = rows("search", "kids kick a ball", "--by", "speech", "-l", str(transcribed))
    assert "football" in best["snippet"]


def test_the_table_says_which_kind(transcribed: Path) -> None:
    assert (
        "\ttext: The Harbour at Dawn" in moviola("search", "harbour", "-l", str(transcribed)).splitlines()[0]
    )


def test_show_counts_by_kind(transcribed: Path) -> None:
    about = json.loads(moviola("show", "harbour", "-l", str(transcribed), "--json"))
    assert about["kinds"]["text"] == 1 and about["kinds"]["speech"] >= 3 and about["kinds"]["subtitle"] == 0
    assert about["readers"]["speech"].startswith("tiny.en ")
    assert about["readers"]["speech"].endswith(", heard en")
    shown = moviola("show", "harbour", "-l", str(transcribed))
    assert "text 1" in shown and "text rapidocr" in shown


def test_a_transcript_is_a_subtitle_file(transcribed: Path, tmp_path: Path) -> None:
    out = tmp_path / "harbour.srt"
    assert "cues" in moviola("transcript", "harbour", "--out", str(out), "-l", str(transcribed))
    text = out.read_text(encoding="utf-8")
    assert "football in the garden" in text and "Harbour" not in text and " --> " in text
    assert "The Harbour at Dawn" in moviola("transcript", "harbour", "--kind", "text", "-l", str(transcribed))
    cue, *_ = rows("transcript", "harbour", "-l", str(transcribed))
    assert cue["words"][0]["start"] == pytest.approx(1.5, abs=0.3)


class Tuner:
    """Hears how high a sound is."""

    id, revision = "tuner", "1"

    def read(self, heard: Iterable[Voiced]) -> Iterator[Utterance]:
        for stretch in heard:
            hertz = int(np.abs(np.fft.rfft(stretch.samples[:RATE])).argmax())
            yield Utterance(stretch.start, stretch.start + 1, str(hertz), (), 1.0, "en")


def test_all_tracks_are_listened_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spoken, "voiced", lambda sound: (Voiced(0.0, piece) for piece in sound))
    path = tmp_path / "two.mkv"
    with av.open(str(path), "w") as container:
        pictures = container.add_stream("mpeg4", rate=5)
        pictures.width = pictures.height = 64
        tracks = [container.add_stream("flac", rate=RATE, layout="mono") for _ in range(2)]
        for number in range(10):
            frame = av.VideoFrame.from_ndarray(np.full((64, 64, 3), 40, np.uint8))
            frame.pts, frame.time_base = number, Fraction(1, 5)
            container.mux(pictures.encode(frame))
        container.mux(pictures.encode(None))
        for track, hertz, language in zip(tracks, (300, 500), ("eng", "ger"), strict=True):
            track.metadata["language"] = language
            wave = 9000 * np.sin(2 * np.pi * hertz * np.arange(2 * RATE) / RATE)
            heard = av.AudioFrame.from_ndarray(wave[None].astype(np.int16), format="s16", layout="mono")
            heard.sample_rate, heard.pts, heard.time_base = RATE, 0, Fraction(1, RATE)
            container.mux([*track.encode(heard), *track.encode(None)])

    def said(track: str) -> list[str]:
        return [cue.text for cue in spoken.read_speech(path, 2, Tuner(), lambda _: None, track)[0]]

    assert said("all") == ["300", "500"]
    assert said("default") == said("1") == ["300"]
    assert said("2") == ["500"]
