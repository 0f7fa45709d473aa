"""Frozen feature extractors: frames and texts in, float32 features out.

Two kinds, with the same habits (a checkpoint is named, its constants come from its own files, nothing is
ever downloaded unless :func:`pull_model` is called):

- :func:`load_encoder` gives a :class:`FrameTextEncoder` that puts frames and texts into one space: a
  :class:`ClipEncoder` (CLIP, SigLIP, SigLIP 2; ``"demo"`` is the tiny one that the package carries) or a
  :class:`ConseEncoder`, whose weights come as packages. :func:`best_encoder` says which one to take.
- :func:`load_sentence_encoder` gives a :class:`SentenceEncoder` for text against text (subtitles, captions).

torch and transformers are imported only when frames, or many texts, are encoded: a few texts are encoded by
:mod:`moviola.encoders.towers` straight from the weights, so that a search from a cold start is fast.
"""

from __future__ import annotations

from moviola.encoders.checkpoints import CONSE, DEMO, Checkpoint, find_checkpoint
from moviola.encoders.clip import ClipEncoder
from moviola.encoders.conse import ConseEncoder
from moviola.encoders.contract import FrameTextEncoder, PictureEncoder, picture_dim
from moviola.encoders.hub import ModelInfo, available_models, pull_model
from moviola.encoders.loading import BestEncoder, best_encoder, load_encoder
from moviola.encoders.sentences import MINILM, SentenceEncoder, load_sentence_encoder

__all__ = [
    "CONSE",
    "DEMO",
    "MINILM",
    "BestEncoder",
    "Checkpoint",
    "ClipEncoder",
    "ConseEncoder",
    "FrameTextEncoder",
    "ModelInfo",
    "PictureEncoder",
    "SentenceEncoder",
    "available_models",
    "best_encoder",
    "find_checkpoint",
    "load_encoder",
    "load_sentence_encoder",
    "picture_dim",
    "pull_model",
]
