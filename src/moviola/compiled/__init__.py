"""Compiled graphs of networks for the CPU: NumPy arrays in and out.

A :class:`Source` describes how to make a graph; :class:`Compiled` runs it by OpenVINO, and keeps the plan for
this CPU on disk. Graphs are built from operators (:mod:`moviola.compiled.operators`), or read from a file for
any machine; torch is needed to convert a model into such a file, and for nothing else.
``benchmarks/runtimes.md`` compares the runtime with torch and with ONNX Runtime.
"""

from moviola.compiled.module import Compiled, Source, cache_folder
from moviola.compiled.runtime import convert, read_portable, save_portable

__all__ = ["Compiled", "Source", "cache_folder", "convert", "read_portable", "save_portable"]
