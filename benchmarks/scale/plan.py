"""The plan of measurements: which types at which sizes, with how many queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from moviola.errors import InvalidValue
from moviola.index import BACKENDS

__all__ = ["DEPTH", "EMBEDDED", "PRESETS", "Preset", "chosen"]

DEPTH = 200
"""k, segments retrieved per query (SPR, section 4.2)."""

EMBEDDED = ("flat", "ivf", "ivfpq", "reranked")
"""Types that live in the process; every other one is compared with the first."""


@dataclass(frozen=True)
class Preset:
    """An effort.

    Attributes:
        sizes: segments of each library, rising.
        types: of index, by their names in :data:`moviola.index.BACKENDS`.
        query_segments: number of segments, the first ones, that made queries are about, whatever the size.
        dim: numbers in a made vector.
        queries: of each kind, by which answers are judged; two kinds make a batch.
        timed: of those, number that is searched for one by one.
        rounds: how often a batch is searched for; the least time counts.
        refined: queries whose proposals are refined; 0 leaves the later stages out.
    """

    sizes: tuple[int, ...]
    types: tuple[str, ...] = EMBEDDED
    query_segments: int = 383_828
    dim: int = 768
    queries: int = 250
    timed: int = 30
    rounds: int = 2
    refined: int = 10


PRESETS: dict[str, Preset] = {
    "small": Preset((3000, 4000), query_segments=3000, dim=64, queries=20, timed=3, rounds=1, refined=1),
    "paper": Preset((383_828, 460_443, 784_302, 860_917)),
}
"""``paper`` has the sizes of SPR's Table 3: TVR, and TVR with Charades, with ActivityNet, with both.
``small`` shows that everything works, in seconds."""


def chosen(preset: str, sizes: Sequence[int] = (), types: Sequence[str] = ()) -> Preset:
    """A preset, or some sizes and types of it.

    Raises:
        InvalidValue: no such preset or type, or a size below :data:`DEPTH`.
    """
    if preset not in PRESETS:
        raise InvalidValue(f"preset {preset!r}: unknown; there are {', '.join(PRESETS)}")
    own = PRESETS[preset]
    for name in types:
        if name not in EMBEDDED or name not in BACKENDS:
            raise InvalidValue(f"type {name!r}: unknown here; there are {', '.join(EMBEDDED)}")
    for size in sizes:
        if size < DEPTH:
            raise InvalidValue(f"{size} segments: fewer than the {DEPTH} that are retrieved; give more")
    return replace(own, sizes=tuple(sorted(set(sizes))) or own.sizes, types=tuple(types) or own.types)
