"""Readers by name."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from functools import cache

from moviola.encoders.readers.contract import SpeechReader, TextReader
from moviola.errors import InvalidValue, MissingDependency

__all__ = [
    "OFFLINE_SPEECH",
    "OFFLINE_TEXT",
    "PACKAGES",
    "installed",
    "load_speech_reader",
    "load_text_reader",
]

OFFLINE_TEXT = "rapidocr"
"""Reader of text whose weights come with its package."""

OFFLINE_SPEECH = "pocketsphinx"
"""Reader of (English) speech whose model comes with its package."""

PACKAGES = {"ocr": ("rapidocr", "onnxruntime", "cv2"), "speech": ("faster_whisper", "pocketsphinx")}
"""Modules that readers need, by the extra that installs them."""


def installed(extra: str) -> bool:
    """Whether the packages of the extra ``"ocr"`` or ``"speech"`` are on this machine."""
    return all(importlib.util.find_spec(module) is not None for module in PACKAGES[extra])


def load_text_reader(name: str = OFFLINE_TEXT) -> TextReader:
    """Open a reader of text in pictures.

    Raises:
        InvalidValue: no such reader.
        MissingDependency: its package is not installed.
    """
    if name not in _TEXT:
        raise InvalidValue(f"text reader {name!r}: there is {', '.join(_TEXT)}")
    _require("ocr", "text in pictures")
    return _TEXT[name]()


def load_speech_reader(name: str, *, device: str = "auto") -> SpeechReader:
    """Open a reader of speech.

    Args:
        name: ``"pocketsphinx"``, which is offline and English alone; or a Whisper model for CTranslate2: a
            folder, or a hub id that was pulled before, such as ``"Systran/faster-whisper-small"``.
        device: ``"auto"`` (cuda, cpu), or one of them; pocketsphinx runs on the CPU alone.

    Raises:
        MissingDependency: the extra is not installed.
        MissingModel: the model is not on this machine; the message says how to get it.
        InvalidValue: the folder holds another kind of model.
    """
    _require("speech", "what is said")
    return _SPEECH[name]() if name in _SPEECH else _whisper(name, device)


def _require(extra: str, what: str) -> None:
    if not installed(extra):
        raise MissingDependency(f"reading {what} needs packages of its own; pip install 'moviola[{extra}]'")


@cache
def _rapidocr() -> TextReader:
    """One for the process: it keeps nothing of what it has read, and takes half a second to load."""
    from moviola.encoders.readers.rapid import RapidOcrReader

    return RapidOcrReader()


def _pocketsphinx() -> SpeechReader:
    from moviola.encoders.readers.sphinx import SphinxReader

    return SphinxReader()


def _whisper(name: str, device: str) -> SpeechReader:
    from moviola.encoders.readers.whisper import WhisperReader

    return WhisperReader(name, device)


_TEXT: dict[str, Callable[[], TextReader]] = {OFFLINE_TEXT: _rapidocr}
_SPEECH: dict[str, Callable[[], SpeechReader]] = {OFFLINE_SPEECH: _pocketsphinx}
