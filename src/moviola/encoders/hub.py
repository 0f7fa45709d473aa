"""Models on this machine and on the hub: listing them, and fetching one on request."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from moviola.encoders.chain import read_chain
from moviola.encoders.checkpoints import (
    CONFIGS,
    CONSE,
    DEMO,
    DEMO_FOLDER,
    Checkpoint,
    hub_snapshot,
    looks_like_hub_id,
)
from moviola.encoders.conse import NETWORK_FOLDER
from moviola.encoders.e5 import E5, packed_file
from moviola.encoders.fetching import fetch_large_files
from moviola.encoders.formats import TRANSFORMERS, formats_of
from moviola.encoders.offers import HubOffer, answering, hub_offer, require_online
from moviola.encoders.readers.whisper import is_whisper
from moviola.encoders.sentence_models import MINILM, MINILM_FOLDER
from moviola.errors import DataError, InvalidValue, MissingModel, installing

__all__ = ["FILES", "ModelInfo", "available_models", "offered_model", "pull_model"]

FILES = (
    *CONFIGS, "moviola.json", "preprocessor_config.json", "processor_config.json",
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.*", "vocabulary.*", "merges.txt", "*.model",
    "modules.json", "sentence_*_config.json", "*_Pooling/config.json",
    "*_Dense/config.json",
)  # fmt: skip
"""Files that a checkpoint needs besides its weights."""

# Of a repository that lends its tokenizer to others alone.
_TOKENIZER = ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json")

_SAFE = (
    "model.safetensors", "*_Dense/model.safetensors", "model-*.safetensors", "model.safetensors.index.json",
)  # fmt: skip
# `model.bin` is how CTranslate2 stores a Whisper model; it holds numbers alone.
_OTHERS = ("pytorch_model.bin", "pytorch_model-*.bin", "pytorch_model.bin.index.json", "model.bin")


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """A model that can be loaded without a download; its ``size`` is in bytes.

    ``kind`` is ``"clip"`` or ``"conse"`` (both frames and text), ``"sentences"`` or ``"speech"``; ``source``
    is ``"built-in"``, ``"package"`` (of another one) or ``"hub cache"``. ``knows`` is what it was made for.
    """

    name: str
    kind: str
    source: str
    size: int
    folder: str
    knows: str


# What models of a kind know; the demo's encoder gives high scores to whatever real footage shows.
_KNOWS = {
    "clip": "real footage", "conse": "real footage", "sentences": "texts of cues", "speech": "speech",
}  # fmt: skip
_GENERATED = "generated films of robots only"


def available_models() -> list[ModelInfo]:
    """All models that load without a network: packaged ones first, then the hub's cache by name."""
    found = [
        (CONSE, "conse", "built-in", NETWORK_FOLDER),
        (MINILM, "sentences", "built-in", MINILM_FOLDER),
        (DEMO, "clip", "built-in", DEMO_FOLDER),
    ]
    if packed := packed_file():
        found.append((E5, "sentences", "package", packed))
    from huggingface_hub import constants

    folders = Path(constants.HF_HUB_CACHE).glob("models--*")
    names = sorted(folder.name.removeprefix("models--").replace("--", "/") for folder in folders)
    for name in filter(looks_like_hub_id, names):
        with suppress(DataError, InvalidValue):  # an error for those who name it, not for all others
            if folder := hub_snapshot(name):
                found.append((name, _kind(Checkpoint(name, folder, folder.name)), "hub cache", folder))
    return [
        ModelInfo(
            name,
            kind,
            source,
            _size(folder),
            str(folder),
            _GENERATED if name == DEMO else _KNOWS.get(kind, ""),
        )
        for name, kind, source, folder in found
    ]


def offered_model(name: str) -> HubOffer:
    """What the hub says of a model that :func:`pull_model` would fetch, in a few seconds.

    Raises:
        MissingModel: see :func:`pull_model`.
    """
    return hub_offer(name, [*FILES, *_SAFE])


def pull_model(name: str) -> Path:
    """Fetch the needed files of a model from the hub into a folder of its cache, if it can as safetensors.

    Raises:
        InvalidValue: a built-in model, no hub id, or, before its weights, a kind that does not run here.
        MissingModel: the hub is switched off or out of reach, or has no such model.
    """
    if name in (DEMO, MINILM, CONSE):
        raise InvalidValue(f"{name}: comes with moviola, not from the hub; nothing to fetch")
    if name == E5:
        raise InvalidValue(f"{name}: comes with a package, not from the hub; run: {installing('languages')}")
    if not looks_like_hub_id(name):
        raise InvalidValue(
            f"{name}: not a hub id; give organisation/model, for instance openai/clip-vit-base-patch32"
        )
    require_online(name)
    folder = _fetched(name)
    if not any(folder.glob("*.safetensors")) and not any(folder.glob("*.bin")):
        raise MissingModel(
            f"{name}: the hub has no weights for it that can be read here (a pickle can be fetched by hand "
            "and converted with `moviola models unpickle`); take another model"
        )
    return folder


def _fetched(name: str) -> Path:
    """The folder of a model of the hub with its files, and the tokenizer that it has from elsewhere."""
    import huggingface_hub as hub

    def fetch(*patterns: str, of: str = name) -> Path:
        with answering(name):
            return Path(hub.snapshot_download(of, allow_patterns=list(patterns)))

    def fetch_with(*weights: str) -> Path:
        with answering(name):
            fetch_large_files(name, weights)
        return fetch(*FILES, *weights)

    settings = fetch(*FILES)
    checkpoint = Checkpoint(name, settings, settings.name)
    kind = _kind(checkpoint)  # refuses what cannot run, before its weights
    if kind != "clip":
        folder = fetch_with(*_SAFE)
        return folder if any(folder.glob("model*.safetensors")) else fetch_with(*_OTHERS)
    # A folder may have two formats, of which the first is the one whose weights are there without a pickle.
    forms = formats_of(checkpoint)
    for form in forms:
        folder = fetch_with(*form.weights)
        if any(any(folder.glob(pattern)) for pattern in form.weights):
            if other := form.tokenizer(checkpoint):
                fetch(*_TOKENIZER, of=other)
            return folder
    return fetch_with(*_OTHERS) if TRANSFORMERS in forms else folder


def _kind(checkpoint: Checkpoint) -> str:
    """What a checkpoint is, by its small files; errors of what does not run here, or is damaged."""
    if (checkpoint.folder / "modules.json").is_file():
        read_chain(checkpoint)
        return "sentences"
    if is_whisper(checkpoint):
        return "speech"
    formats_of(checkpoint)[0].check(checkpoint)
    return "clip"


def _size(folder: Path) -> int:
    if folder.is_file():
        return folder.stat().st_size
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
