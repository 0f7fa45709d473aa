"""What every encoder of frames and texts offers; ``tests/encoders/test_contract.py`` holds all to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from moviola.errors import InvalidValue
from moviola.types import FrameSize

__all__ = ["FrameTextEncoder", "check_frames"]


class FrameTextEncoder(Protocol):
    """A frozen encoder of frames and texts into one space, where the cosine says how well they match."""

    @property
    def id(self) -> str:
        """The name under which a library records the encoder."""

    @property
    def revision(self) -> str:
        """Changes whenever the weights or settings change."""

    @property
    def dim(self) -> int:
        """Length of a feature vector."""

    @property
    def frame_size(self) -> FrameSize:
        """How ``moviola.media`` has to make the frames."""

    @property
    def curve(self) -> Mapping[str, float]:
        """How a refinement without training should read this encoder's similarity curves: fields of
        ``moviola.retrieval.CurveRefiner`` by name; those left out keep their defaults."""

    @property
    def device(self) -> str:
        """Where frames and many texts are encoded: ``"cpu"``, ``"cuda"``, ``"mps"``."""

    @property
    def precision(self) -> str:
        """In which precision: ``"fp32"``, ``"fp16"``, ``"bf16"``; features are float32 all the same."""

    def encode_frames(self, images: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Features of frames, of any length.

        Args:
            images: (n, height, width, 3) uint8 RGB of this encoder's ``frame_size``, 0–255.

        Returns:
            (n, dim) float32.

        Raises:
            InvalidValue: another shape or dtype.
        """

    def encode_text(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Features of texts, of any length; too long texts are cut.

        Args:
            texts: n strings.

        Returns:
            (n, dim) float32.

        Raises:
            InvalidValue: not a list of strings.
        """

    def encode_tokens(self, texts: Sequence[str]) -> list[NDArray[np.float32]]:
        """Features of every token of some texts; the last row is the feature of the text.

        Args:
            texts: n strings; too long ones are cut.

        Returns:
            n arrays (tokens, dim) float32, special tokens included.

        Raises:
            InvalidValue: not a list of strings.
        """


def check_frames(images: Any, size: FrameSize, encoder: str) -> None:
    """Refuse what are no frames of a size.

    Raises:
        InvalidValue: naming what was given and what ``encoder`` takes.
    """
    if isinstance(images, np.ndarray):
        if images.dtype == np.uint8 and images.shape[1:] == (size.height, size.width, 3):
            return
        given = f"{images.dtype} {images.shape}"
    else:
        given = type(images).__name__
    raise InvalidValue(
        f"frames: {given}; {encoder} takes uint8 (n, {size.height}, {size.width}, 3), "
        "as moviola.media makes them for its frame_size"
    )
