"""What a checkpoint of frames and texts is, in one form, whatever its format."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from moviola.encoders.pictures import FrameParts
from moviola.encoders.text_parts import TextParts
from moviola.encoders.tokens import Tokenize
from moviola.encoders.weights import Weights

__all__ = ["Description"]


@dataclass(frozen=True)
class Description:
    """An encoder of frames and texts; settings are complete, and have transformers' names.

    Attributes:
        frames, texts: parts of the towers.
        frame_settings, text_settings: their sizes.
        preprocessor: how a frame becomes numbers.
        weights: opens them; None where only torch can.
        tokenizer: opens it.
        longest: most tokens of a text.
        dim: length of a feature vector, as the settings state it.
        wide: width of the tower of pictures from which on 8 bits compute it, where none were named.
        sigmoid: trained with a sigmoid, whose scale and bias give the probability of a match.
        languages: those it was trained on, where its files imply them.
        by_transformers: module and class of transformers that opens it, and the submodule that projects its
            texts; None where it has none.
    """

    frames: FrameParts
    texts: TextParts
    frame_settings: Mapping[str, Any]
    text_settings: Mapping[str, Any]
    preprocessor: Mapping[str, Any]
    weights: Callable[[], Weights | None]
    tokenizer: Callable[[], Tokenize]
    longest: int
    dim: int
    wide: int
    sigmoid: bool
    languages: tuple[str, ...] = ()
    by_transformers: tuple[str, str, str] | None = field(default=None)
