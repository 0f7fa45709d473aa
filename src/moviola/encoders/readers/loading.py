"""Readers by name."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from moviola.encoders.readers.contract import SpeechReader, TextReader
from moviola.encoders.readers.scripts import PACKAGED, TESSERACT, said_of, script_of
from moviola.encoders.readers.whisper import TINY, TINY_PACKAGE, WhisperReader
from moviola.errors import InvalidValue, MissingDependency
from moviola.plugins import plugin, plugins

__all__ = [
    "OFFLINE_SPEECH",
    "OFFLINE_TEXT",
    "PACKAGES",
    "hears_offline",
    "load_speech_reader",
    "load_text_reader",
]

OFFLINE_TEXT = "rapidocr"
"""Packaged reader of text."""

OFFLINE_SPEECH = TINY
"""Packaged reader of English speech."""

PACKAGES = ("faster_whisper",)
"""Modules that readers of speech need."""


def hears_offline() -> bool:
    """Whether the packaged reader of speech can be opened."""
    return all(importlib.util.find_spec(module) is not None for module in (*PACKAGES, TINY_PACKAGE))


def load_text_reader(name: str | None = None, languages: Sequence[str] = ()) -> TextReader:
    """Open a reader of text.

    Args:
        name: ``"rapidocr"``, ``"tesseract"``, alone or with its languages as its id has them, a folder with a
            model of RapidOCR's, or a plug-in's; None: the packaged one, or Tesseract where that does not know
            the script of a language.
        languages: of the text (BCP 47); none: those that the reader knows.

    Raises:
        InvalidValue: no such reader, one of speech, or a language whose script the reader does not know.
        MissingDependency: Tesseract, or its file of a language, is not installed.
        MissingModel: the folder has no model.
        BrokenPlugin: the reader of a plug-in fails.
    """
    unknown = [one for one in languages if script_of(one) not in PACKAGED]
    name = name or (TESSERACT if unknown else OFFLINE_TEXT)
    program, _, codes = name.partition(" ")
    if program == TESSERACT:
        return _tesseract(tuple(codes.split("+")) if codes else tuple(languages))
    if name == OFFLINE_TEXT:
        if unknown:
            raise InvalidValue(
                f"text reader {name!r}: does not know the script of {', '.join(unknown)}; it knows "
                f"{said_of(PACKAGED)}. Tesseract may: --ocr-reader tesseract"
            )
        return _rapidocr()
    added = plugin("moviola.readers", name)
    if added is None and Path(name).expanduser().is_dir():
        return _rapidocr(Path(name).expanduser().resolve())
    if added is None:
        known = [OFFLINE_TEXT, TESSERACT, *(one.point.name for one in plugins("moviola.readers"))]
        raise InvalidValue(f"text reader {name!r}: there is {', '.join(known)}, or a folder")
    reader: TextReader = added.make(SpeechReader, None)  # what both kinds have
    if not hasattr(reader, "longest_side"):
        raise InvalidValue(f"text reader {name!r}: it reads speech; give it to `--speech`")
    return reader


def said_of_reader(reader: str) -> str:
    """What a reader of text knows, by its id, for people; empty where it does not say."""
    program, _, codes = reader.partition(" ")
    return said_of(PACKAGED) if reader == OFFLINE_TEXT else codes if program == TESSERACT else ""


def load_speech_reader(name: str, *, device: str = "auto", language: str | None = None) -> SpeechReader:
    """Open a reader of speech.

    Args:
        name: ``"tiny.en"``, offline, English alone; a Whisper model for CTranslate2: a folder, or a hub id
            that was pulled before, such as ``"Systran/faster-whisper-small"``; or a plug-in's.
        device: ``"auto"`` (cuda, cpu), or one of them.
        language: spoken language (ISO 639-1); None: detected, by models that know several.

    Raises:
        MissingDependency: the extra ``speech`` is not installed.
        MissingModel: the model is not on this machine; the message says how to get it.
        InvalidValue: a model or reader of another kind, or the reader does not know the language.
        BrokenPlugin: the reader comes of a plug-in, which fails.
    """
    if name != OFFLINE_SPEECH and (added := plugin("moviola.readers", name)):
        reader: SpeechReader = added.make(SpeechReader, language)
        if hasattr(reader, "longest_side"):
            raise InvalidValue(f"speech reader {name!r}: it reads pictures; give it to `--ocr-reader`")
        return reader
    needed = (*PACKAGES, TINY_PACKAGE) if name == OFFLINE_SPEECH else PACKAGES
    if any(importlib.util.find_spec(module) is None for module in needed):
        raise MissingDependency("speech needs further packages", "speech")
    return (
        _packaged_speech(device, language)
        if name == OFFLINE_SPEECH
        else WhisperReader(name, device, language)
    )


@cache
def _packaged_speech(device: str, language: str | None) -> SpeechReader:
    """One per process: each call of indexing asks for it, and it keeps nothing of what it has read."""
    return WhisperReader(OFFLINE_SPEECH, device, language)


@cache
def _rapidocr(folder: Path | None = None) -> TextReader:
    """One per process: it keeps nothing of what it has read, and takes half a second to load."""
    from moviola.encoders.readers.rapid import RapidOcrReader

    return RapidOcrReader(folder)


def _tesseract(languages: Sequence[str]) -> TextReader:
    from moviola.encoders.readers.tesseract import TesseractReader

    return TesseractReader(languages)
