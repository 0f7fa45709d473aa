"""English speech by PocketSphinx, offline, with its packaged model.

It is a recogniser from before neural networks: it gets most words of clear speech, few of noisy or distant
speech (``benchmarks/readers/README.md``). Where a hub can be reached, a Whisper model is better.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from importlib import metadata
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.readers.contract import RATE, Utterance, Voiced
from moviola.types import Word

__all__ = ["SphinxReader"]

# Its model was trained on microphones: of sound without any noise, such as a synthetic voice, it recognises
# half as much. The noise is a share of the speech's own level, some 30 dB below it.
_NOISE = 0.03
_FRAMES = 100  # a second
# A longer pause between words, or this many seconds of words, ends an utterance.
_PAUSE, _LONGEST = 0.4, 8.0
# Silence, breath and noise among the words: `<s>`, `<sil>`, `[NOISE]`.
_NO_WORD = re.compile(r"[<\[+].*")
# `read(2)` is the second pronunciation.
_VARIANT = re.compile(r"\(\d+\)$")


class SphinxReader:
    """Reads English with the package ``pocketsphinx``, which includes the model."""

    id = "pocketsphinx"

    @property
    def revision(self) -> str:
        return metadata.version("pocketsphinx")

    @cached_property
    def _decoder(self) -> Any:
        from pocketsphinx import Decoder

        return Decoder(samprate=RATE, frate=_FRAMES, loglevel="FATAL")

    def read(self, speech: Iterable[Voiced]) -> Iterator[Utterance]:
        """Utterances, cut at pauses; language is ``"en"``."""
        # The decoder adapts to a voice and its noise; a video must not depend on the previous one.
        self._decoder.reinit_feat()
        for stretch in speech:
            for group in _grouped(self._words(stretch)):
                confidence = float(np.mean([sure for _, sure in group]))
                said = tuple(word for word, _ in group)
                text = " ".join(word.text for word in said)
                yield Utterance(said[0].start, said[-1].end, text, said, confidence, "en")

    def _words(self, stretch: Voiced) -> Iterator[tuple[Word, float]]:
        """Words of a stretch with their confidence, in [0, 1]."""
        decoder = self._decoder
        decoder.start_utt()
        decoder.process_raw(_with_noise(stretch.samples).tobytes(), full_utt=True)
        decoder.end_utt()
        for segment in decoder.seg() or ():
            if not _NO_WORD.match(segment.word):
                start = stretch.start + segment.start_frame / _FRAMES
                end = stretch.start + (segment.end_frame + 1) / _FRAMES
                sure = min(1.0, max(0.0, segment.prob))
                yield Word(round(start, 3), round(end, 3), _VARIANT.sub("", segment.word)), sure


def _with_noise(samples: NDArray[np.float32]) -> NDArray[np.int16]:
    """Samples (n,) in [-1, 1] as 16 bits with a little white noise, the same in every run."""
    level = float(np.sqrt(np.mean(np.square(samples, dtype=np.float64))))
    noise = np.random.default_rng(0).normal(0, _NOISE * level, len(samples))
    return (np.clip(samples + noise, -1, 1) * 32767).astype(np.int16)


def _grouped(words: Iterable[tuple[Word, float]]) -> Iterator[list[tuple[Word, float]]]:
    """Words without long pauses between them."""
    group: list[tuple[Word, float]] = []
    for word, sure in words:
        if group and (word.start - group[-1][0].end > _PAUSE or word.end - group[0][0].start > _LONGEST):
            yield group
            group = []
        group.append((word, sure))
    if group:
        yield group
