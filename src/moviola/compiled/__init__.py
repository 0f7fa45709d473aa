"""Modules of torch, compiled for the CPU: NumPy arrays in and out, without torch once the graph is on disk.

:class:`Compiled` runs a :class:`Source` by OpenVINO. The first call ever makes the graph, with torch, and
checks it against torch on what that call was given; later processes open the file. ``benchmarks/runtimes.md``
compares the runtime with torch and with ONNX Runtime.
"""

from __future__ import annotations

from moviola.compiled.module import Compiled, Source, cache_folder

__all__ = ["Compiled", "Source", "cache_folder"]
