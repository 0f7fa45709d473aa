"""Encoders of a library, loaded when first needed and checked against its settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from moviola.errors import LibraryError, MissingModel
from moviola.library.disk.settings import Settings
from moviola.types import Cue

if TYPE_CHECKING:
    from moviola.encoders import FrameTextEncoder, SentenceEncoder

__all__ = ["LibraryEncoders", "settings_of_new_library"]

NONE = "none"


class LibraryEncoders:
    """Encoders that the settings of a library name, loaded when first needed. Safe for threads.

    ``folder`` is that of the library, for messages; ``device``, ``precision`` and ``resident`` are passed to
    the encoders.
    """

    def __init__(self, folder: Path, settings: Settings, device: str, precision: str, resident: bool) -> None:
        self._folder, self._settings = folder, settings
        self.device, self._precision, self._resident = device, precision, resident
        self._lock = RLock()
        self._visual: FrameTextEncoder | None = None
        self._sentences: SentenceEncoder | None = None

    def __reduce__(self) -> tuple[type[LibraryEncoders], tuple[Path, Settings, str, str, bool]]:
        """Pickle the names only; another process loads the encoders itself."""
        return LibraryEncoders, (
            self._folder, self._settings, self.device, self._precision, self._resident,
        )  # fmt: skip

    @contextmanager
    def _naming_the_library(self) -> Iterator[None]:
        try:
            yield
        except MissingModel as error:
            raise MissingModel(f"{self._folder}: indexed with an encoder that is missing: {error}") from error

    @property
    def visual(self) -> FrameTextEncoder | None:
        """The visual encoder; None if the library has none. :class:`EncoderMismatch` where it has another
        revision than when the library was built, :class:`MissingModel` where it is not on this machine.
        """
        with self._lock:
            if self._visual is None and self._settings.encoder:
                with self._naming_the_library():
                    self._visual = self._load_visual(self._settings.encoder)
            return self._visual

    def rows(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Frame features as the library stores them, (n, frame_dim) float32, of images (n, height, width, 3)
        uint8 RGB of the visual encoder's ``frame_size``; errors as of :attr:`visual`, :class:`BrokenPlugin`
        for an encoder that returns something else.
        """
        from moviola.encoders import PictureEncoder, check_features

        encoder = self.visual
        assert encoder is not None
        if self._settings.picture_dim and isinstance(encoder, PictureEncoder):
            frames, pictures = encoder.encode_pictures(images)
            check_features(frames, (len(images), encoder.dim), encoder.id)
            check_features(pictures, (len(images), encoder.picture_dim), encoder.id)
            return np.concatenate((frames, pictures), axis=1)
        frames = encoder.encode_frames(images)
        check_features(frames, (len(images), encoder.dim), encoder.id)
        return frames

    def picture(self, path: Path) -> NDArray[np.float32]:
        """Features of a picture file as the library stores them, (1, frame_dim); errors as of :attr:`visual`,
        :class:`LibraryError` without an encoder, :class:`MediaError` for a file that holds no picture.
        """
        from moviola.media import read_picture

        if self.visual is None:
            raise LibraryError(f"{self._folder}: built without a visual encoder; search it by subtitles")
        return self.rows(read_picture(path, self.visual.frame_size)[None])

    @property
    def sentences(self) -> SentenceEncoder | None:
        """The sentence encoder; None if the library has none. Errors as of :attr:`visual`."""
        with self._lock:
            if self._sentences is None and self._settings.sentence_encoder:
                with self._naming_the_library():
                    name = self._settings.sentence_encoder
                    self._sentences = self._visual_sentences or self._load_sentences(name)
            return self._sentences

    @property
    def share_network(self) -> bool:
        """Whether both encoders embed texts by the same network, which keeps the vectors of its last call."""
        return self.sentences is not None and self.sentences is self._visual_sentences

    @property
    def _visual_sentences(self) -> SentenceEncoder | None:
        """The encoder that embeds texts for the visual encoder, if it is the library's sentence encoder."""
        from moviola.encoders import ConseEncoder

        if not isinstance(self._visual, ConseEncoder):
            return None
        own, settings = self._visual.sentences, self._settings
        same = (own.id, own.revision) == (settings.sentence_encoder, settings.sentence_revision)
        return own if same else None

    def sentence_rows(
        self, cues: Sequence[Cue], known: Mapping[str, NDArray[np.float32]] | None = None
    ) -> NDArray[np.float32] | None:
        """Sentence vectors of cues, (cues, d) float32, of which those known by text are reused; None without
        a sentence encoder or cues.
        """
        if self.sentences is None or not cues:
            return None
        rows = dict(known or {})
        new = list(dict.fromkeys(cue.text for cue in cues if cue.text not in rows))
        rows |= dict(zip(new, self.sentences.encode_text(new), strict=True))
        return np.stack([rows[cue.text] for cue in cues])

    def require_same(self, encoder: str | None, sentence_encoder: str | None) -> None:
        """Raise :class:`EncoderMismatch` for an encoder that the library was not built with; None: any."""
        if encoder == NONE:
            self._settings.require_same(self._folder, {"encoder": ""})
        elif encoder is not None:
            self._visual = self._load_visual(encoder)
        if sentence_encoder == NONE:
            self._settings.require_same(self._folder, {"sentence_encoder": ""})
        elif sentence_encoder is not None:
            loaded = self._load_sentences(sentence_encoder)
            self._sentences = self._visual_sentences or loaded

    def _load_visual(self, name: str) -> FrameTextEncoder:
        from moviola.encoders import load_encoder, picture_dim

        encoder = load_encoder(name, device=self.device, precision=self._precision, resident=self._resident)
        self._settings.require_same(self._folder, _visual_facts(encoder))
        if self._settings.picture_dim:  # 0 in older libraries; it stays so
            self._settings.require_same(self._folder, {"picture_dim": picture_dim(encoder)})
        return encoder

    def _load_sentences(self, name: str) -> SentenceEncoder:
        from moviola.encoders import load_sentence_encoder

        encoder = load_sentence_encoder(name, device=self.device, resident=self._resident)
        self._settings.require_same(self._folder, _sentence_facts(encoder))
        return encoder


def settings_of_new_library(
    encoder: str, sentence_encoder: str | None, sampling: Mapping[str, float], device: str, precision: str
) -> Settings:
    """Settings of a new library with encoders by name, ``"none"`` for none, and None for MiniLM; sampling has
    ``segment_seconds`` and ``frame_rate`` where given.
    """
    from moviola.encoders import MINILM, load_encoder, load_sentence_encoder, picture_dim

    values: dict[str, Any] = {**sampling}
    if encoder != NONE:
        visual = load_encoder(encoder, device=device, precision=precision)
        values |= _visual_facts(visual)
        values |= {"picture_dim": picture_dim(visual), "encoder_precision": visual.precision}
    name = sentence_encoder or MINILM
    if name != NONE:
        values |= _sentence_facts(load_sentence_encoder(name, device=device))
    return Settings(**values)


def _visual_facts(encoder: FrameTextEncoder) -> dict[str, object]:
    return {"encoder": encoder.id, "encoder_revision": encoder.revision, "encoder_dim": encoder.dim}


def _sentence_facts(encoder: SentenceEncoder) -> dict[str, object]:
    names = ("sentence_encoder", "sentence_revision", "sentence_dim")
    return dict(zip(names, (encoder.id, encoder.revision, encoder.dim), strict=True))
