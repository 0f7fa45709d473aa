"""How long a query's text takes, with all BLAS threads and with one, alone and beside a busy process.

    python benchmarks/text_threads.py [--encoder random] [--texts 40] [--busy 1]

The text tower by itself takes one thread (``moviola.encoders.threads``); for comparison its products get all
threads again here. Both take turns, text by text, so that a machine whose speed changes meets both alike; the
last column is the median relative to one thread in the same company. ``random`` is a CLIP of the size of
ViT-B/32's text tower with random weights; times do not depend on their values.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from statistics import median
from typing import Any
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from safetensors.numpy import save_file
from threadpoolctl import threadpool_info

from moviola.encoders import FrameTextEncoder, load_encoder, threads
from moviola.encoders.checkpoints import DEMO_FOLDER

TEXT = "a person in a red coat opens the door and picks up the key"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--encoder", default="random", help="random, demo, a folder or a hub id")
    parser.add_argument("--texts", type=int, default=40)
    parser.add_argument("--busy", type=int, default=1, help="processes beside which it is measured")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        name = random_clip(Path(scratch)) if options.encoder == "random" else options.encoder
        encoder = load_encoder(name)
        encoder.encode_text([TEXT])
        alone = measured(encoder, options.texts)
        with busy(options.busy):
            beside = measured(encoder, options.texts)
    report({"alone": alone, f"beside {options.busy} busy": beside})


def measured(encoder: FrameTextEncoder, count: int) -> dict[str, list[float]]:
    """Seconds of each text with one thread and with all, in turns."""
    seconds: dict[str, list[float]] = {"one thread": [], "all threads": []}
    for number in range(count):
        for name, times in seconds.items():
            with every_thread() if name == "all threads" else nullcontext():
                started = time.perf_counter()
                encoder.encode_text([f"{TEXT} {number}"])
                times.append(time.perf_counter() - started)
    return seconds


@contextmanager
def every_thread() -> Iterator[None]:
    """The text towers leave the BLAS as it is."""
    limit = threads._LIMIT
    with ExitStack() as stack:
        for method in ("enter", "leave"):
            stack.enter_context(patch.object(limit, method, lambda: None))
        yield


@contextmanager
def busy(count: int) -> Iterator[None]:
    """So many processes that multiply matrices on all cores without a pause."""
    context = multiprocessing.get_context("spawn")
    ready = context.Semaphore(0)
    others = [context.Process(target=multiply, args=(ready,), daemon=True) for _ in range(count)]
    for other in others:
        other.start()
    for _ in others:
        ready.acquire()
    try:
        yield
    finally:
        for other in others:
            other.terminate()
            other.join()


def multiply(ready: Any) -> None:
    matrix = np.random.default_rng(0).standard_normal((1000, 1000), dtype=np.float32)
    matrix @ matrix
    ready.release()
    while True:
        matrix @ matrix


def random_clip(folder: Path) -> str:
    """A CLIP checkpoint with a text tower of 12 layers of 512, and the demo's tokenizer."""
    for file in DEMO_FOLDER.iterdir():
        if file.suffix != ".safetensors":
            shutil.copy(file, folder)
    config = json.loads((folder / "config.json").read_text())
    text = config["text_config"]
    text |= {"hidden_size": 512, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 8}
    (folder / "config.json").write_text(json.dumps({**config, "projection_dim": 512}))
    draw = np.random.default_rng(0)

    def weights(*shape: int) -> NDArray[np.float32]:
        return draw.standard_normal(shape, dtype=np.float32) * np.float32(0.02)

    state = {
        "text_model.embeddings.token_embedding.weight": weights(text["vocab_size"], 512),
        "text_model.embeddings.position_embedding.weight": weights(text["max_position_embeddings"], 512),
        "text_model.final_layer_norm.weight": weights(512),
        "text_model.final_layer_norm.bias": weights(512),
        "text_projection.weight": weights(512, 512),
    }
    for layer in range(12):
        sizes = {f"self_attn.{part}_proj": (512, 512) for part in ("q", "k", "v", "out")}
        sizes |= {"mlp.fc1": (2048, 512), "mlp.fc2": (512, 2048)}
        for name, size in sizes.items():
            state[f"text_model.encoder.layers.{layer}.{name}.weight"] = weights(*size)
            state[f"text_model.encoder.layers.{layer}.{name}.bias"] = weights(size[0])
        for name in ("layer_norm1", "layer_norm2"):
            for part in ("weight", "bias"):
                state[f"text_model.encoder.layers.{layer}.{name}.{part}"] = weights(512)
    save_file(state, folder / "model.safetensors")
    return str(folder)


def report(cases: dict[str, dict[str, list[float]]]) -> None:
    """Print the table."""
    blas = [library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas"]
    table = Table("company", "BLAS", "median ms", "90 % within ms", "to one thread")
    for company, found in cases.items():
        for name, seconds in found.items():
            table.add_row(
                company, name if name == "one thread" else f"all threads ({max(blas, default=1)})",
                f"{1000 * median(seconds):.0f}", f"{1000 * np.quantile(seconds, 0.9):.0f}",
                f"{median(seconds) / median(found['one thread']):.2f}",
            )  # fmt: skip
    Console().print(table)


if __name__ == "__main__":
    main()
