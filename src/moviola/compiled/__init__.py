"""Compiled graphs of networks for the CPU: NumPy arrays in and out.

A :class:`Source` describes how to make a graph; :class:`Compiled` runs it by OpenVINO, and keeps the plan for
this CPU on disk. Graphs are built from operators (:mod:`moviola.compiled.operators`), or read from a file for
any machine; torch is needed to convert a model into such a file, and for nothing else.
``benchmarks/runtimes.md`` compares the runtime with torch and with ONNX Runtime.

Examples:
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from moviola.compiled import Compiled, Source, operators as ops
    >>> def doubled():
    ...     x = ops.parameter([None, 3], np.float32)
    ...     return ops.graph_of([x], [ops.multiply(x, np.float32(2))])
    >>> double = Compiled(Path("graphs"), Source("double", "1", doubled, threads=1))
    >>> double(np.ones((1, 3), np.float32))
    (array([[2., 2., 2.]], dtype=float32),)
"""

from moviola.compiled.module import Compiled, Source, cache_folder
from moviola.compiled.runtime import convert, read_portable, save_portable

__all__ = ["Compiled", "Source", "cache_folder", "convert", "read_portable", "save_portable"]
