"""The measurements of a plan, piece by piece; each piece is a JSON file, and one that is there is done."""

from __future__ import annotations

import os
import platform
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from moviola.errors import InvalidValue
from moviola.files.rows import read_json
from moviola.files.writing import write_json
from moviola.threads import available_cores, compute_threads
from scale.corpus import Corpus, made_corpus, real_corpus
from scale.measured import measured
from scale.plan import EMBEDDED, Preset
from scale.stages import stages

__all__ = ["ScaleBench", "run_scale"]


_LAYOUT = 2
"""Of the files that results are written to."""


@dataclass(frozen=True)
class ScaleBench:
    """A folder of measurements.

    Attributes:
        work: vectors, indexes and results; what is there is kept.
        preset: what is planned.
        features: a folder of features whose segments are searched instead of made ones; one size then.
    """

    work: Path
    preset: Preset
    features: Path | None = None

    def pieces(self) -> list[tuple[int, str]]:
        """Size and type of each piece; of each size exact search first, the later stages last."""
        own = self.preset
        types = dict.fromkeys(("flat", *own.types))
        last = ("stages",) if own.refined else ()
        return [(size, kind) for size in self.sizes() for kind in (*types, *last)]

    def sizes(self) -> tuple[int, ...]:
        """Segments of each library; 0 for real ones, of which there are as many as there are."""
        return (0,) if self.features else self.preset.sizes

    def result_file(self, size: int, kind: str) -> Path:
        """Where the result of a piece lies."""
        return self.work / "results" / f"{size or 'real'}-{kind}.json"

    def results(self) -> list[dict[str, Any]]:
        """What was measured in the folder with these settings, planned now or before, by size and type."""
        found = [read_json(path) for path in (self.work / "results").glob("*.json")]
        order = (*EMBEDDED, "stages")
        return sorted(
            (result for result in found if result["settings"] == self.settings),
            key=lambda result: (result["segments"], order.index(result["piece"])),
        )

    @property
    def settings(self) -> dict[str, Any]:
        """What a result depends on beside its size and type."""
        own = {key: value for key, value in asdict(self.preset).items() if key not in ("sizes", "types")}
        features = str(self.features.resolve()) if self.features else None
        return {**own, "features": features, "layout": _LAYOUT}

    def corpus(self, size: int) -> Corpus:
        """The corpus of a size."""
        if self.features:
            return real_corpus(self.work, self.features, self.preset.queries)
        return made_corpus(self.work, self.preset, size)


def run_scale(bench: ScaleBench, *, again: bool = False, note: Callable[[str], None] = print) -> None:
    """Measure what is not measured yet.

    Args:
        bench: where, and what.
        again: measure everything again, with the vectors and indexes that are there.
        note: called with what is being done.

    Raises:
        InvalidValue: a piece is there that was measured with other settings.
    """
    about = bench.settings
    pieces = bench.pieces()
    for number, (size, kind) in enumerate(pieces, start=1):
        path = bench.result_file(size, kind)
        if path.is_file() and not again:
            _require_same(path, about)
            continue
        note(f"{number}/{len(pieces)} {size or 'all'} segments, {kind}")
        found = _measure(bench, size, kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_json(path, {"piece": kind, "settings": about, "machine": machine(), **found}, indent=1)


def _require_same(path: Path, about: dict[str, Any]) -> None:
    settings = read_json(path)["settings"]
    if settings != about:
        raise InvalidValue(
            f"{path}: measured with other settings ({settings}); give another --work, or --again"
        )


def _measure(bench: ScaleBench, size: int, kind: str) -> dict[str, Any]:
    bench.work.mkdir(parents=True, exist_ok=True)
    corpus, own = bench.corpus(size), bench.preset
    folder = bench.work / str(size or "real")
    if kind == "stages":
        found = stages(corpus, folder / "exact.npz", own.refined)
        return {"segments": len(corpus.ids), "made": corpus.made, **found}
    first = min(bench.sizes())
    smallest = (bench.corpus(first), bench.work / str(first)) if first < size else None
    found = measured(corpus, kind, folder, timed=own.timed, rounds=own.rounds, smallest=smallest)
    return {"made": corpus.made, **found}


def machine() -> dict[str, Any]:
    """What a time depends on."""
    return {
        "processor": _processor(),
        "cores": available_cores(),
        "threads": compute_threads(),
        "busy": round(os.getloadavg()[0], 1),
        "system": f"{platform.system()} {platform.machine()}",
        "faiss": version("faiss-cpu"),
        "numpy": version("numpy"),
    }


def _processor() -> str:
    """The name of the processor, with what vector units it has, as far as the system says."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    values = dict(line.split(":", 1) for line in lines if ":" in line)
    said = {key.strip(): value.strip() for key, value in values.items()}
    vectors = "AVX-512" if "avx512f" in said.get("flags", "") else ""
    return ", ".join(filter(None, (said.get("model name", platform.processor()), vectors)))
