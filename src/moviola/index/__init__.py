"""Nearest-neighbour indexes of segments: the contract (:class:`Index`), its backends, and their files.

Vectors are float32 and L2-normalised, so the inner product that every backend ranks by is the cosine.

Examples:
    >>> import numpy as np
    >>> from moviola.index import BACKENDS
    >>> index = BACKENDS["flat"](4)
    >>> index.build(np.arange(4), np.eye(4, dtype=np.float32))
    >>> scores, ids = index.search(np.eye(4, dtype=np.float32)[2:3], 2)
    >>> ids[0, 0].item(), scores[0, 0].item()
    (2, 1.0)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from moviola.files.file_rows import FileRows, Rows, rows_in_file
from moviola.first_use import on_first_use
from moviola.index.contract import Index, IndexStats
from moviola.index.files import home_of, load_index, save_index
from moviola.plugins import plugin, plugins

if TYPE_CHECKING:
    from moviola.index.flat import FlatIndex
    from moviola.index.ivf import IVFIndex, IVFPQIndex
    from moviola.index.reranked import RerankedIndex
    from moviola.index.trained import TrainedIndex
    from moviola.index.tuning import DEPTH, Exact, Trial, tune

__all__ = [
    "AUTO", "BACKENDS", "DEPTH", "Exact", "FileRows", "FlatIndex", "IVFIndex", "IVFPQIndex", "Index",
    "IndexStats", "RerankedIndex", "Rows", "TrainedIndex", "Trial",
    "backend_of", "backends_of", "home_of", "load_index", "name_of", "rows_in_file", "save_index", "suited",
    "tune",
]  # fmt: skip

__getattr__ = on_first_use(
    __name__,
    {
        "flat": ("FlatIndex",),
        "ivf": ("IVFIndex", "IVFPQIndex"),
        "reranked": ("RerankedIndex",),
        "trained": ("TrainedIndex",),
        "tuning": ("DEPTH", "Exact", "Trial", "tune"),
    },
)


class _Backends(Mapping[str, type[Index]]):
    """Types by name, each imported at first use: a small library needs one."""

    def __init__(self, **homes: tuple[str, str]) -> None:
        self.homes = {name: (f"{__name__}.{module}", kind) for name, (module, kind) in homes.items()}

    def __getitem__(self, name: str) -> type[Index]:
        module, kind = self.homes[name]
        found: type[Index] = getattr(import_module(module), kind)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self.homes)

    def __len__(self) -> int:
        return len(self.homes)

    def __contains__(self, name: object) -> bool:
        return name in self.homes


BACKENDS = _Backends(
    flat=("flat", "FlatIndex"),
    ivf=("ivf", "IVFIndex"),
    ivfpq=("ivf", "IVFPQIndex"),
    reranked=("reranked", "RerankedIndex"),
)
"""The backends by name. A new backend is done when ``tests/find/index/test_conformance.py`` passes for it."""


AUTO = "auto"
"""The setting that leaves the choice to :func:`suited`."""

# Up to some ten thousand vectors exact search is as fast as any other. From 50,000 on (55 hours of film)
# codes are ten times as fast and take a tenth of the memory, with 99 % of the same answers
# (benchmarks/index.md). A library changes back later than it came, so that it is not rebuilt often.
_MANY, _FEW = 50_000, 25_000


def suited(count: int, present: str = "") -> str:
    """The suitable type for ``count`` vectors, where one of type ``present`` exists already (or none)."""
    return "reranked" if count >= (_FEW if present == "reranked" else _MANY) else "flat"


def backends_of(setting: str) -> Mapping[str, type[Index]]:
    """:data:`BACKENDS`, and the type for a setting that is the name of a plug-in, or an address of its
    servers.

    Raises:
        InvalidValue: an address of no server; the message names no secret of it.
        BrokenPlugin: the plug-in fails.
    """
    wanted = setting.partition("://")[0]
    if setting in (AUTO, *BACKENDS) or (added := plugin("moviola.indexes", wanted)) is None:
        return BACKENDS
    kind = added.load(type)
    if not issubclass(kind, Index):
        raise added.broken(TypeError(f"{kind.__name__} is no moviola.index.Index"))
    return {**BACKENDS, name_of(setting): kind if wanted == setting else kind.at(setting)}


def name_of(setting: str) -> str:
    """Name of the type in a setting: the setting itself, or of an address what its scheme begins with."""
    scheme, separator, _ = setting.partition("://")
    return scheme.partition("+")[0] if separator else setting


def backend_of(index: Index) -> str:
    """The name of an index's type in :func:`backends_of`."""
    own = type(index)
    for name, home in BACKENDS.homes.items():
        if home == (own.__module__, own.__qualname__):
            return name
    entries = {f"{kind.__module__}:{kind.__qualname__}" for kind in type(index).__mro__}
    return next(name_of(one.point.name) for one in plugins("moviola.indexes") if one.point.value in entries)
