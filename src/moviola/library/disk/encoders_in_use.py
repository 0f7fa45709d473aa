"""Encoders of a library, loaded when first needed and checked against its settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from moviola.errors import LibraryError, MissingModel
from moviola.library.disk.settings import Settings
from moviola.types import Cue

if TYPE_CHECKING:
    from moviola.encoders import FrameTextEncoder, SentenceEncoder

__all__ = [
    "NONE",
    "LibraryEncoders",
    "settings_of_new_library",
    "settings_of_pictures",
    "settings_of_sentences",
]


NONE = "none"

_Encoder = TypeVar("_Encoder")


class LibraryEncoders:
    """Encoders that the settings of a library name, loaded when first needed. Safe for threads.

    ``folder`` is that of the library, for messages; ``device``, ``precision`` and ``resident`` are passed to
    the encoders. What a library keeps of texts does not depend on who computed it: vectors of cues, which are
    many, are always those of a compiled tower, all others those of one that is not.

    Attributes:
        settings: of the library, which name them.
        moved: names of encoders by setting, of those that are the library's by their revision and were found
            or named elsewhere.
    """

    def __init__(self, folder: Path, settings: Settings, device: str, precision: str, resident: bool) -> None:
        self._folder, self.settings = folder, settings
        self.device, self._precision, self._resident = device, precision, resident
        self._lock = RLock()
        self._names = {"visual": settings.encoder, "sentences": settings.sentence_encoder}
        self._visual: dict[bool, FrameTextEncoder] = {}  # by whether it is resident
        self._sentences: dict[bool, SentenceEncoder] = {}
        self.moved: dict[str, str] = {}

    def __reduce__(self) -> tuple[type[LibraryEncoders], tuple[Path, Settings, str, str, bool]]:
        """Pickle the names only; another process loads the encoders itself."""
        return LibraryEncoders, (
            self._folder, self.settings, self.device, self._precision, self._resident,
        )  # fmt: skip

    def with_settings(self, settings: Settings) -> LibraryEncoders:
        """The same for other settings; the loaded ones are dropped."""
        return LibraryEncoders(self._folder, settings, self.device, self._precision, self._resident)

    @contextmanager
    def _naming_the_library(self) -> Iterator[None]:
        try:
            yield
        except MissingModel as error:
            raise MissingModel(
                f"{self._folder}: indexed with an encoder that is missing: {error}. Where it lies elsewhere "
                "now, name that place once, with `moviola index`"
            ) from error

    def _there(self, name: str, load: Callable[[str], _Encoder], stored: tuple[str, str]) -> _Encoder:
        """An encoder by name, or by the revision that is stored where nothing has its name any more."""
        from moviola.encoders.checkpoints import found_by_revision

        try:
            return load(name)
        except MissingModel:
            elsewhere = found_by_revision(stored[1]) if name == stored[0] else None
            if elsewhere is None:
                raise
            return load(elsewhere)

    def _require(self, facts: Mapping[str, object], key: str, stored: tuple[str, str]) -> None:
        """Refuse another encoder than the library's; the same one in another place gets that as its name."""
        from moviola.encoders.checkpoints import is_same_model

        name, revision, _ = facts.values()
        if name != stored[0] and is_same_model(stored, (str(name), str(revision))):
            self.moved[key] = str(name)
            facts = {fact: value for fact, value in facts.items() if fact.endswith("_dim")}
        self.settings.require_same(self._folder, facts)

    @property
    def visual(self) -> FrameTextEncoder | None:
        """The visual encoder; None if the library has none. :class:`EncoderMismatch` where it has another
        revision than when the library was built, :class:`MissingModel` where it is not on this machine.
        """
        return self._visual_of(self._resident)

    @property
    def visual_of_all(self) -> FrameTextEncoder | None:
        """The same for what is kept of texts: as a process has it that is not resident."""
        return self._visual_of(resident=False)

    def _visual_of(self, resident: bool) -> FrameTextEncoder | None:
        with self._lock:
            if not self._names["visual"]:
                return None
            if resident not in self._visual:
                with self._naming_the_library():
                    self._visual[resident] = self._load_visual(self._names["visual"], resident)
            return self._visual[resident]

    def rows(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Frame features as the library stores them, (n, frame_dim) float32, of images (n, height, width, 3)
        uint8 RGB of the visual encoder's ``frame_size``; errors as in :attr:`visual`, :class:`BrokenPlugin`
        for an encoder that returns something else.
        """
        from moviola.encoders import PictureEncoder, check_features

        encoder = self.visual
        assert encoder is not None
        if self.settings.picture_dim and isinstance(encoder, PictureEncoder):
            frames, pictures = encoder.encode_pictures(images)
            check_features(frames, (len(images), encoder.dim), encoder.id)
            check_features(pictures, (len(images), encoder.picture_dim), encoder.id)
            return np.concatenate((frames, pictures), axis=1)
        frames = encoder.encode_frames(images)
        check_features(frames, (len(images), encoder.dim), encoder.id)
        return frames

    def picture(self, source: Path | bytes) -> NDArray[np.float32]:
        """Features of a picture, a file or its bytes, as the library stores them, (1, frame_dim).

        Errors as in :attr:`visual`, :class:`LibraryError` without an encoder, :class:`MediaError` for what
        holds no picture.
        """
        from moviola.media import read_picture

        if self.visual is None:
            raise LibraryError(f"{self._folder}: built without a visual encoder; search it by subtitles")
        return self.rows(read_picture(source, self.visual.frame_size)[None])

    @property
    def sentences(self) -> SentenceEncoder | None:
        """The sentence encoder; None if the library has none. Errors as in :attr:`visual`."""
        return self._sentences_of(self._resident)

    @property
    def sentences_of_all(self) -> SentenceEncoder | None:
        """The same for what is kept of texts: as a process has it that is not resident."""
        return self._sentences_of(resident=False)

    def _sentences_of(self, resident: bool) -> SentenceEncoder | None:
        with self._lock:
            if not self._names["sentences"]:
                return None
            if resident not in self._sentences:
                with self._naming_the_library():
                    self._sentences[resident] = self._load_sentences(self._names["sentences"], resident)
            return self._sentences[resident]

    @property
    def bridge(self) -> SentenceEncoder | None:
        """The encoder that reads texts of other languages into the space of :attr:`sentences`; None where
        there is none.
        """
        from moviola.encoders.e5 import open_bridge

        encoder = self.sentences
        return None if encoder is None else open_bridge(encoder, encoder.choice)

    def _of_visual(self, resident: bool) -> SentenceEncoder | None:
        """The encoder that embeds texts for the visual encoder, if it is the library's sentence encoder: it
        still has the vectors of the last texts.
        """
        from moviola.encoders.checkpoints import CONSE

        if self.settings.encoder != CONSE:
            return None
        from moviola.encoders import ConseEncoder

        visual = self._visual.get(resident)
        if not isinstance(visual, ConseEncoder):
            return None
        own, settings = visual.sentences, self.settings
        same = (own.id, own.revision) == (settings.sentence_encoder, settings.sentence_revision)
        return own if same else None

    def sentence_rows(
        self, cues: Sequence[Cue], known: Mapping[str, NDArray[np.float32]] | None = None
    ) -> NDArray[np.float32] | None:
        """Sentence vectors of cues, (cues, d) float32, of which those known by text are reused; None without
        a sentence encoder or cues.
        """
        if not cues or (encoder := self._sentences_of(resident=True)) is None:
            return None
        rows = dict(known or {})
        new = list(dict.fromkeys(cue.text for cue in cues if cue.text not in rows))
        rows |= dict(zip(new, encoder.encode_text(new), strict=True))
        return np.stack([rows[cue.text] for cue in cues])

    def require_same(self, encoder: str | None, sentence_encoder: str | None) -> None:
        """Raise :class:`EncoderMismatch` for an encoder that the library was not built with; None: any."""
        if encoder == NONE:
            self.settings.require_same(self._folder, {"encoder": ""})
        elif encoder is not None:
            self._names["visual"] = encoder
            self._visual[self._resident] = self._load_visual(encoder, self._resident)
        if sentence_encoder == NONE:
            self.settings.require_same(self._folder, {"sentence_encoder": ""})
        elif sentence_encoder is not None:
            self._names["sentences"] = sentence_encoder
            self._sentences[self._resident] = self._load_sentences(sentence_encoder, self._resident)

    def _load_visual(self, name: str, resident: bool) -> FrameTextEncoder:
        from moviola.encoders import load_encoder, picture_dim

        settings = self.settings
        stored = settings.encoder, settings.encoder_revision
        load = partial(load_encoder, device=self.device, precision=self._precision, resident=resident)
        encoder = self._there(name, load, stored)
        self._require(_visual_facts(encoder), "encoder", stored)
        if self.settings.picture_dim:  # 0 in older libraries; it stays so
            self.settings.require_same(self._folder, {"picture_dim": picture_dim(encoder)})
        return encoder

    def _load_sentences(self, name: str, resident: bool) -> SentenceEncoder:
        from moviola.encoders import load_sentence_encoder

        settings = self.settings
        stored = settings.sentence_encoder, settings.sentence_revision
        load = partial(load_sentence_encoder, device=self.device, resident=resident)
        encoder = self._there(name, load, stored)
        self._require(_sentence_facts(encoder), "sentence_encoder", stored)
        return self._of_visual(resident) or encoder


def settings_of_new_library(
    encoder: str, sentence_encoder: str | None, sampling: Mapping[str, float], device: str, precision: str
) -> Settings:
    """Settings of a new library with encoders by name, ``"none"`` for none, and None for MiniLM; sampling has
    ``segment_seconds`` and ``frame_rate`` where given.
    """
    from moviola.encoders import MINILM

    values: dict[str, Any] = {**sampling, **settings_of_sentences(sentence_encoder or MINILM, device)}
    if encoder != NONE:
        values |= settings_of_pictures(encoder, device, precision)
    return Settings(**values)


def settings_of_pictures(name: str, device: str, precision: str) -> dict[str, Any]:
    """The settings that an encoder of pictures decides, by its name."""
    from moviola.encoders import load_encoder, picture_dim

    visual = load_encoder(name, device=device, precision=precision)
    own = {"picture_dim": picture_dim(visual), "encoder_precision": visual.precision}
    return _visual_facts(visual) | own


def settings_of_sentences(name: str, device: str) -> dict[str, Any]:
    """The settings that a sentence encoder decides, by its name, ``"none"`` for none."""
    from moviola.encoders import load_sentence_encoder

    if name == NONE:
        return {"sentence_encoder": "", "sentence_revision": "", "sentence_dim": 0}
    return _sentence_facts(load_sentence_encoder(name, device=device))


def _visual_facts(encoder: FrameTextEncoder) -> dict[str, object]:
    return {"encoder": encoder.id, "encoder_revision": encoder.revision, "encoder_dim": encoder.dim}


def _sentence_facts(encoder: SentenceEncoder) -> dict[str, Any]:
    names = ("sentence_encoder", "sentence_revision", "sentence_dim")
    return dict(zip(names, (encoder.id, encoder.revision, encoder.dim), strict=True))
