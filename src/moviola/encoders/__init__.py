"""Frozen feature extractors: frames and texts in, float32 features out.

Two kinds, with the same habits (a checkpoint is named, its constants come from its own files, nothing is
ever downloaded unless :func:`pull_model` is called):

- :func:`load_encoder` gives a :class:`ClipEncoder` (CLIP, SigLIP, SigLIP 2) that puts frames and texts into
  one space; ``"demo"`` is the tiny one that the package carries.
- :func:`load_sentence_encoder` gives a :class:`SentenceEncoder` for text against text (subtitles, captions).

torch and transformers are imported only when frames, or many texts, are encoded: a few texts are encoded by
:mod:`moviola.encoders.towers` straight from the weights, so that a search from a cold start is fast.
"""

from __future__ import annotations

from moviola.encoders.checkpoints import DEMO, Checkpoint, find_checkpoint
from moviola.encoders.clip import ClipEncoder, load_encoder
from moviola.encoders.hub import ModelInfo, available_models, pull_model
from moviola.encoders.sentences import MINILM, SentenceEncoder, load_sentence_encoder

__all__ = [
    "DEMO",
    "MINILM",
    "Checkpoint",
    "ClipEncoder",
    "ModelInfo",
    "SentenceEncoder",
    "available_models",
    "find_checkpoint",
    "load_encoder",
    "load_sentence_encoder",
    "pull_model",
]
