"""Frozen feature extractors: frames and texts in, float32 features out.

:func:`load_encoder` opens a :class:`FrameTextEncoder`, which maps frames and texts into one space: a
:class:`ClipEncoder` (CLIP, SigLIP, SigLIP 2, PE-Core, Chinese-CLIP, in transformers' or open_clip's format;
``"demo"`` is the tiny packaged one) or a :class:`ConseEncoder`, which is packaged, too. :func:`best_encoder`
chooses one. :func:`load_sentence_encoder` gives a :class:`SentenceEncoder` for text against text (subtitles,
captions). Nothing is downloaded unless :func:`pull_model` is called.

On the CPU graphs compute (:mod:`moviola.encoders.graphs`), a few texts by :mod:`moviola.encoders.towers`.
torch and transformers are needed for GPUs, for half precision, and for checkpoints that no graph is known
for: :mod:`moviola.encoders.by_torch`.

Examples:
    >>> import numpy as np
    >>> from moviola.encoders import load_encoder
    >>> encoder = load_encoder("demo")
    >>> texts = encoder.encode_text(["a red door", "a blue key"])
    >>> size = encoder.frame_size
    >>> frames = encoder.encode_frames(np.zeros((1, size.height, size.width, 3), np.uint8))
    >>> (frames @ texts.T).shape
    (1, 2)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from moviola.first_use import on_first_use

if TYPE_CHECKING:
    from moviola.encoders.checkpoints import CONSE, DEMO, Checkpoint, find_checkpoint
    from moviola.encoders.clip import ClipEncoder
    from moviola.encoders.conse import ConseEncoder
    from moviola.encoders.contract import (
        FrameTextEncoder,
        Match,
        PictureEncoder,
        SentenceMatch,
        TextJudge,
        UnrelatedCosines,
        check_features,
        picture_dim,
    )
    from moviola.encoders.conversion import convert_pickle
    from moviola.encoders.device_choice import DeviceChoice
    from moviola.encoders.e5 import E5
    from moviola.encoders.hub import ModelInfo, available_models, offered_model, pull_model
    from moviola.encoders.loading import BestEncoder, best_encoder, load_encoder
    from moviola.encoders.offers import HubOffer
    from moviola.encoders.published import Recommended, recommended
    from moviola.encoders.sentence_models import MINILM, load_sentence_encoder
    from moviola.encoders.sentences import SentenceEncoder

__all__ = [
    "CONSE", "DEMO", "E5", "MINILM", "BestEncoder", "Checkpoint", "ClipEncoder", "ConseEncoder",
    "DeviceChoice", "FrameTextEncoder", "HubOffer", "Match", "ModelInfo", "PictureEncoder", "Recommended",
    "SentenceEncoder", "SentenceMatch", "TextJudge", "UnrelatedCosines", "available_models", "best_encoder",
    "check_features", "convert_pickle", "find_checkpoint", "load_encoder", "load_sentence_encoder",
    "offered_model", "picture_dim", "pull_model", "recommended",
]  # fmt: skip

__getattr__ = on_first_use(
    __name__,
    {
        "checkpoints": ("CONSE", "DEMO", "Checkpoint", "find_checkpoint"),
        "clip": ("ClipEncoder",),
        "conse": ("ConseEncoder",),
        "contract": (
            "FrameTextEncoder", "Match", "PictureEncoder", "SentenceMatch", "TextJudge", "UnrelatedCosines",
            "check_features", "picture_dim",
        ),
        "conversion": ("convert_pickle",),
        "device_choice": ("DeviceChoice",),
        "e5": ("E5",),
        "hub": ("ModelInfo", "available_models", "offered_model", "pull_model"),
        "loading": ("BestEncoder", "best_encoder", "load_encoder"),
        "offers": ("HubOffer",),
        "published": ("Recommended", "recommended"),
        "sentence_models": ("MINILM", "load_sentence_encoder"),
        "sentences": ("SentenceEncoder",),
    },
)  # fmt: skip
