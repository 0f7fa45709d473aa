"""OpenVINO: from a graph, or a torch module, to a file and a callable. Imported here only."""

from __future__ import annotations

import errno
import sys
import threading
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from moviola.errors import DataError
from moviola.files.mapped import MappedFile
from moviola.files.sealed import SEAL_BYTES, is_sealed, seal

if TYPE_CHECKING:
    from torch import nn

__all__ = [
    "Array", "Graph", "Precision", "convert", "graph_of", "is_whole", "open_graph", "operators", "prepare",
    "quantise_weights", "read_portable", "runtime_and_cpu", "save_graph", "save_portable", "settings",
]  # fmt: skip

Array = NDArray[Any]

Precision = Literal["fp32", "int8"]
"""``"int8"``: weights of linear layers in 8 bits, and their inputs too where the CPU is faster so; everything
else in 32."""

_FILE = "graph.blob"
_GROUP = 64
"""Number of inputs of a linear layer that share a scale when quantised: an outlier spoils only its group."""


@cache
def _openvino() -> Any:
    """The runtime without its telemetry, which would report every import and conversion."""
    sys.modules.setdefault("openvino_telemetry", None)  # type: ignore[arg-type]
    import openvino

    return openvino


def prepare() -> None:
    """Import the runtime without telemetry before other code imports it with."""
    _openvino()


@cache
def _core() -> Any:
    return _openvino().Core()


def operators() -> Any:
    """The module of the runtime's operators."""
    return _openvino().opset13


def graph_of(inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
    """The graph from parameters to outputs, all made by :func:`operators`."""
    return _openvino().Model([operators().result(output) for output in outputs], list(inputs))


def runtime_and_cpu() -> tuple[str, ...]:
    """Properties that a plan depends on: version of the runtime, name and abilities of the CPU."""
    abilities = _core().get_property("CPU", "OPTIMIZATION_CAPABILITIES")
    return (_openvino().get_version(), _core().get_property("CPU", "FULL_DEVICE_NAME"), *sorted(abilities))


def convert(module: nn.Module, examples: Sequence[Array], shapes: Sequence[tuple[int | None, ...]]) -> Any:
    """The graph of a torch module in inference mode on the CPU.

    Args:
        module: takes tensors, returns a tensor or a tuple of them. Python's control flow is fixed as for the
            examples.
        examples: one array per input.
        shapes: of the inputs; None: any length.
    """
    import torch

    openvino = _openvino()
    inputs = [openvino.PartialShape([-1 if side is None else side for side in shape]) for shape in shapes]
    with torch.inference_mode(), warnings.catch_warnings():
        # The tracer warns about values of the examples; the check of results covers them.
        warnings.simplefilter("ignore")
        return openvino.convert_model(
            module, example_input=tuple(torch.from_numpy(example) for example in examples), input=inputs
        )


def save_portable(graph: Any, path: Path) -> None:
    """Write a graph for any machine to ``path``, which ends in ``.xml``; weights go beside it in ``.bin``.

    Raises:
        OSError: they cannot be written; the runtime does not say why.
    """
    try:
        _openvino().save_model(graph, path, compress_to_fp16=False)
    except RuntimeError as error:
        raise OSError(errno.EIO, "not written, as on a full disk", str(path)) from error


def read_portable(path: Path) -> Any:
    """The graph that :func:`save_portable` wrote.

    Raises:
        DataError: the file is not there or cannot be read.
    """
    try:
        return _core().read_model(path)
    except RuntimeError as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not a readable graph ({reason}); get the model's folder again") from error


def quantise_weights(graph: Any) -> None:
    """Replace the weights of linear layers by whole numbers from -127 to 127 and a scale per output.

    The runtime multiplies in 8 bits where it finds this form.
    """
    float32, made = _openvino().Type.f32, operators()
    for node in graph.get_ordered_ops():
        weights = node.input_value(1).get_node() if node.get_type_name() == "MatMul" else None
        if weights is None or weights.get_type_name() != "Constant" or len(weights.shape) != 2:
            continue
        if weights.get_element_type() != float32:
            continue
        settings = node.get_attributes()
        by_output = weights.data if settings["transpose_b"] else weights.data.T
        largest = np.abs(by_output).max(axis=1, keepdims=True)
        scales = np.where(largest > 0, largest / 127, 1).astype(np.float32)
        whole = np.rint(by_output / scales).astype(np.int8)
        widened = made.multiply(made.convert(made.constant(whole), "f32"), made.constant(scales))
        product = made.matmul(node.input_value(0), widened, settings["transpose_a"], True)
        for reader in node.output(0).get_target_inputs():
            reader.replace_source_output(product.output(0))
    graph.validate_nodes_and_infer_types()


def save_graph(model: Any, folder: Path, precision: Precision, threads: int) -> None:
    """Plan the computation of a graph, and write the plan into an existing folder.

    A plan is valid for this version of the runtime on this kind of CPU alone. Opening one takes a third to a
    sixth of the time of planning.
    """
    # From a file the runtime simplifies a graph in another way; earlier results were made so.
    draft = folder / "draft.xml"
    save_portable(model, draft)
    plan = _core().compile_model(draft, "CPU", settings(precision, threads))
    with (folder / _FILE).open("wb") as file:
        file.write(plan.export_model().getbuffer())
    seal(folder / _FILE)
    for path in (draft, draft.with_suffix(".bin")):
        path.unlink()


def open_graph(folder: Path, precision: Precision, threads: int) -> Graph:
    """The graph that :func:`save_graph` wrote, its weights mapped from the file.

    Args:
        folder, precision: as it was written.
        threads: number of computing threads, whatever it was written for.

    Raises:
        DataError: no readable plan in the folder, or it does not match its digest.
    """
    try:
        if not is_whole(folder):
            raise ValueError("it does not match its digest")
        return Graph(folder / _FILE, settings(precision, threads))
    except (OSError, ValueError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{folder}: not a readable graph ({reason}); delete this folder") from error


def is_whole(folder: Path) -> bool:
    """Whether a folder holds a graph that matches its digest."""
    return is_sealed(folder / _FILE)


def settings(precision: Precision, threads: int) -> dict[str, Any]:
    """Runtime options; threads sleep between calls, and are pinned to no core."""
    return {
        "PERFORMANCE_HINT": "LATENCY",
        "NUM_STREAMS": 1,
        "INFERENCE_NUM_THREADS": threads,
        "ENABLE_CPU_PINNING": False,
        # The default is bfloat16 where the CPU has it.
        "INFERENCE_PRECISION_HINT": "f32",
        "DYNAMIC_QUANTIZATION_GROUP_SIZE": _GROUP if precision == "int8" else 0,
    }


class Graph:
    """A graph from a file. Safe for threads, which take turns.

    Args:
        path: the file.
        how: runtime options, see :func:`settings`.
    """

    def __init__(self, path: Path, how: dict[str, Any]) -> None:
        self._lock = threading.Lock()
        # The runtime reads weights from it for as long as the graph lives, and wants it writable.
        self._file = MappedFile(path, private=True)
        self._mapped = self._file.array[:-SEAL_BYTES]
        stored = _openvino().Tensor(self._mapped, shared_memory=True)
        self._plan = _core().import_model(stored, "CPU", how)

    def __call__(self, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """The outputs for one array per input, of the graph's own types. Raises DataError: the file was cut
        short.
        """
        if not self._file.whole:
            raise DataError(f"{self._file.path}: shorter than it was; delete its folder, it is made again")
        with self._lock:
            outputs = self._plan([np.ascontiguousarray(array) for array in inputs])
            return tuple(np.array(outputs[place]) for place in range(len(self._plan.outputs)))
