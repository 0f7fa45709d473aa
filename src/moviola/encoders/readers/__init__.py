"""Readers of text in pictures and of speech: :class:`TextReader`, :class:`SpeechReader`.

As with encoders, a reader is named, libraries record its name and revision, and nothing is downloaded unless
requested. The speech readers need the extra ``speech``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviola.first_use import on_first_use

if TYPE_CHECKING:
    from moviola.encoders.readers.contract import (
        RATE,
        UNKNOWN_LANGUAGE,
        SpeechReader,
        TextLine,
        TextReader,
        Utterance,
        Voiced,
    )  # fmt: skip
    from moviola.encoders.readers.loading import (
        OFFLINE_SPEECH,
        OFFLINE_TEXT,
        hears_offline,
        load_speech_reader,
        load_text_reader,
        said_of_reader,
    )
    from moviola.encoders.readers.scripts import require_languages
    from moviola.encoders.readers.sound_patches import HOP, PATCH
    from moviola.encoders.readers.sounds import SoundReader, adding_sounds, hears_sounds, open_sound_reader
    from moviola.encoders.readers.whisper import voiced

__all__ = [
    "HOP", "OFFLINE_SPEECH", "OFFLINE_TEXT", "PATCH", "RATE", "UNKNOWN_LANGUAGE", "SoundReader",
    "SpeechReader", "TextLine", "TextReader", "Utterance", "Voiced", "adding_sounds", "hears_offline",
    "hears_sounds", "load_speech_reader", "load_text_reader", "open_sound_reader", "require_languages",
    "said_of_reader", "voiced",
]  # fmt: skip

__getattr__ = on_first_use(
    __name__,
    {
        "contract": (
            "RATE", "UNKNOWN_LANGUAGE", "SpeechReader", "TextLine", "TextReader", "Utterance", "Voiced",
        ),
        "loading": (
            "OFFLINE_SPEECH", "OFFLINE_TEXT", "hears_offline", "load_speech_reader", "load_text_reader",
            "said_of_reader",
        ),
        "scripts": ("require_languages",),
        "sound_patches": ("HOP", "PATCH"),
        "sounds": ("SoundReader", "adding_sounds", "hears_sounds", "open_sound_reader"),
        "whisper": ("voiced",),
    },
)  # fmt: skip
