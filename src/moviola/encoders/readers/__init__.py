"""Readers: what is written in a picture, and what is said.

They stand beside the encoders with contracts of their own (:class:`TextReader`, :class:`SpeechReader`), and
with the same habits: a reader is named, what it was is recorded, nothing is ever downloaded unless asked for.
The text reader comes with the extra ``ocr``, the speech readers with the extra ``speech``.
"""

from __future__ import annotations

from moviola.encoders.readers.contract import RATE, SpeechReader, TextLine, TextReader, Utterance, Voiced
from moviola.encoders.readers.loading import (
    OFFLINE_SPEECH,
    OFFLINE_TEXT,
    load_speech_reader,
    load_text_reader,
)
from moviola.encoders.readers.voice import voiced

__all__ = [
    "OFFLINE_SPEECH",
    "OFFLINE_TEXT",
    "RATE",
    "SpeechReader",
    "TextLine",
    "TextReader",
    "Utterance",
    "Voiced",
    "load_speech_reader",
    "load_text_reader",
    "voiced",
]
