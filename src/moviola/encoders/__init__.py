"""Frozen feature extractors: frames and texts in, float32 features out.

Two kinds, with the same habits (a checkpoint is named, its constants come from its own files, nothing is
ever downloaded unless :func:`pull_model` is called):

- :func:`load_encoder` gives a :class:`FrameTextEncoder` that puts frames and texts into one space: a
  :class:`ClipEncoder` (CLIP, SigLIP, SigLIP 2; ``"demo"`` is the tiny one that the package carries) or a
  :class:`ConseEncoder`, which the package carries, too. :func:`best_encoder` says which one to take.
- :func:`load_sentence_encoder` gives a :class:`SentenceEncoder` for text against text (subtitles, captions).

On the CPU graphs compute (:mod:`moviola.encoders.graphs`), a few texts by :mod:`moviola.encoders.towers`
straight from the weights, so that a search from a cold start is fast. torch and transformers are needed for
GPUs, for half precision, and for checkpoints that no graph is known for: :mod:`moviola.encoders.by_torch`.
"""

from __future__ import annotations

from moviola.encoders.checkpoints import CONSE, DEMO, Checkpoint, find_checkpoint
from moviola.encoders.clip import ClipEncoder
from moviola.encoders.conse import ConseEncoder
from moviola.encoders.contract import FrameTextEncoder, Match, PictureEncoder, picture_dim
from moviola.encoders.device_choice import DeviceChoice
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
    "DeviceChoice",
    "FrameTextEncoder",
    "Match",
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
