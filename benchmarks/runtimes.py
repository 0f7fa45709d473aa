"""What encodes fastest on a CPU: transformers, OpenVINO or ONNX Runtime; and when a process has just begun.

    python benchmarks/runtimes.py [--frames 16] [--rounds 5] [--starts 3]

The encoder is a CLIP ViT-B/32 with random weights; times do not depend on their values, cosines do, a little.
All take turns in every round, on the same frames; the least time of each counts, wall and processor time.
ONNX Runtime's rows need the packages ``onnx`` and ``onnxscript``, which moviola does not.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from moviola.compiled import Source
from moviola.encoders import ClipEncoder, load_encoder
from moviola.encoders.checkpoints import DEMO_FOLDER
from moviola.threads import compute_threads

Encode = Callable[[NDArray[np.uint8]], NDArray[np.float32]]

COLD = """
import sys, time
started = time.perf_counter()
from moviola.encoders import load_encoder
load_encoder(sys.argv[2], resident=sys.argv[1] == "compiled").encode_text(["a person opens the door"])
print(time.perf_counter() - started, time.process_time())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--frames", type=int, default=16, help="in a batch")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--starts", type=int, default=3, help="processes that encode their first text")
    options = parser.parse_args()
    with graphs_of_its_own() as scratch:
        folder = random_vit(scratch / "vit")
        report_frames(folder, options.frames, options.rounds)
        report_starts(folder, options.starts)


@contextmanager
def graphs_of_its_own() -> Iterator[Path]:
    """A folder for a while, in which compiled graphs are kept, too."""
    with tempfile.TemporaryDirectory() as scratch, patch.dict(os.environ, MOVIOLA_COMPILED=scratch):
        yield Path(scratch)


def random_vit(folder: Path) -> str:
    """A CLIP ViT-B/32 with random weights, and the demo's tokenizer."""
    import torch
    from transformers import CLIPConfig
    from transformers.models.clip.modeling_clip import CLIPModel

    torch.manual_seed(0)
    text = json.loads((DEMO_FOLDER / "config.json").read_text())["text_config"]
    known = {"vocab_size": text["vocab_size"], "eos_token_id": text["eos_token_id"]}
    CLIPModel(CLIPConfig(text_config=known)).save_pretrained(folder)
    for file in DEMO_FOLDER.glob("tokenizer*"):
        shutil.copy(file, folder)
    (folder / "preprocessor_config.json").write_text("{}")
    return str(folder)


def contenders(folder: str, images: NDArray[np.uint8]) -> dict[str, Encode]:
    """Ways to encode frames, by name; the first is what others are compared with."""
    import torch

    torch.set_num_threads(compute_threads())
    full = cast("ClipEncoder", load_encoder(folder, device="cpu", precision="fp32"))
    found: dict[str, Encode] = {"transformers, fp32": by_torch(frames_module(full))}
    for name, encoder in (("OpenVINO, fp32", full), ("OpenVINO, int8", load_encoder(folder, device="cpu"))):
        found[name] = encoder.encode_frames
        encoder.encode_frames(images)
    found["OpenVINO, bf16"] = by_openvino(full._frames_source(), "bf16")
    if find_spec("onnx") is not None:
        found |= by_onnxruntime(frames_module(full), Path(folder))
    return found


def frames_module(encoder: ClipEncoder) -> Any:
    from moviola.encoders.by_torch.modules import ClipFrames

    return ClipFrames(encoder._load_model(), *encoder._scale_and_shift)


def by_torch(module: Any) -> Encode:
    from moviola.encoders.by_torch.modules import run

    return lambda images: run(module, "cpu", images)[0]


def by_openvino(source: Source, precision: str) -> Encode:
    import openvino

    settings = {"INFERENCE_NUM_THREADS": compute_threads(), "INFERENCE_PRECISION_HINT": precision}
    compiled = openvino.Core().compile_model(source.build(), "CPU", settings)
    return lambda images: cast("NDArray[np.float32]", compiled([images])[0])


def by_onnxruntime(module: Any, folder: Path) -> dict[str, Encode]:
    """In full precision, and by its dynamic quantisation."""
    import torch
    from onnxruntime import InferenceSession, SessionOptions
    from onnxruntime.quantization import QuantType, quantize_dynamic

    full, small = folder / "full.onnx", folder / "small.onnx"
    frames = torch.zeros((2, 224, 224, 3), dtype=torch.uint8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, (frames,), str(full), dynamo=False, opset_version=17, input_names=["images"],
            dynamic_axes={"images": {0: "n"}},
        )  # fmt: skip
        quantize_dynamic(
            full,
            small,
            weight_type=QuantType.QInt8,
            per_channel=True,
            op_types_to_quantize=["MatMul"],
        )

    def encode(path: Path) -> Encode:
        options = SessionOptions()
        options.intra_op_num_threads = compute_threads()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        session = InferenceSession(str(path), options)
        return lambda images: cast("NDArray[np.float32]", session.run(None, {"images": images})[0])

    return {"ONNX Runtime, fp32": encode(full), "ONNX Runtime, int8": encode(small)}


def report_frames(folder: str, frames: int, rounds: int) -> None:
    """Milliseconds of a frame, and how near it is to the first contender's."""
    images = np.random.default_rng(0).integers(0, 256, (frames, 224, 224, 3), dtype=np.uint8)
    ways = contenders(folder, images)
    wanted = next(iter(ways.values()))(images)
    for encode in ways.values():  # the first call arranges weights
        encode(images)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, encode in ways.items():
            started, busy = time.perf_counter(), time.process_time()
            encode(images)
            times[name].append((time.perf_counter() - started, time.process_time() - busy))
    table = Table("frames by", "ms a frame", "processor ms", "times as fast", "by processor", "least cosine")
    least = {name: np.min(both, axis=0) / frames * 1000 for name, both in times.items()}
    first = next(iter(least.values()))
    for name, (wall, busy) in least.items():
        found = ways[name](images)
        cosines = (found * wanted).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(wanted, axis=1)
        table.add_row(
            name, f"{wall:.0f}", f"{busy:.0f}", f"{first[0] / wall:.1f}", f"{first[1] / busy:.1f}",
            f"{cosines.min():.5f}",
        )  # fmt: skip
    Console().print(table)


def report_starts(folder: str, starts: int) -> None:
    """Seconds of a new process until its first text is encoded."""
    load_encoder(folder, device="cpu").encode_text(["a person opens the door"] * 17)  # makes the graph
    table = Table("first text by", "s", "processor s", "of NumPy's")
    least: dict[str, NDArray[np.float64]] = {}
    for _ in range(starts):
        for name in ("NumPy", "compiled"):
            command = [sys.executable, "-c", COLD, name, folder]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = np.array(done.stdout.split(), dtype=float)
            least[name] = np.minimum(least.get(name, found), found)
    for name, (wall, busy) in least.items():
        table.add_row(name, f"{wall:.2f}", f"{busy:.2f}", f"{busy / least['NumPy'][1]:.1f}")
    Console().print(table)


if __name__ == "__main__":
    main()
