"""Check of feature files against the videos of an annotation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from moviola.datasets.annotations import Annotations, Flaw
from moviola.errors import InvalidValue
from moviola.features import FeatureFiles

__all__ = ["check_features"]


@dataclass(frozen=True, slots=True)
class _Expected:
    """Expected properties of features: seconds per row, and dimension (None: the most frequent one)."""

    seconds: float
    dim: int | None


def check_features(
    features: FeatureFiles, found: Annotations, seconds: float, *, dim: int | None = None, slack: int = 2
) -> tuple[Flaw, ...]:
    """Compare features with the videos of an annotation; flaws by kind and name.

    Args:
        features: by video id.
        found: videos with durations.
        seconds: length of one row (clip) in seconds, > 0.
        dim: expected dimension; None: the most frequent one.
        slack: rows that rounding may add or cost.

    Returns:
        flaws of the kinds "no features", "no such video", "longer than the video" (stale features),
        "shorter than the video" and "other dimension".

    Raises:
        InvalidValue: ``seconds`` is not above 0.
    """
    if not seconds > 0:
        raise InvalidValue(f"seconds={seconds}: the length of a row must be above 0")
    shapes = {key: features.shape(key) for key in features.keys()}  # noqa: SIM118 - no mapping
    videos = dict(zip(found.videos, found.durations.tolist(), strict=True))
    dims = [shape[1] for shape in shapes.values()]
    expected = _Expected(seconds, dim or (max(set(dims), key=dims.count) if dims else None))
    flaws = [Flaw("no features", video) for video in videos if video not in shapes]
    for key, shape in shapes.items():
        flaws += [Flaw(kind, key) for kind in _misfits(key, shape, videos, expected, slack)]
    return tuple(flaws)


def _misfits(
    key: str, shape: tuple[int, int], videos: Mapping[str, float], expected: _Expected, slack: int
) -> Iterator[str]:
    rows, dim = shape
    if dim != expected.dim:
        yield "other dimension"
    if key not in videos:
        yield "no such video"
        return
    needed = videos[key] / expected.seconds
    if rows > needed + slack:
        yield "longer than the video"
    if rows < needed - slack:
        yield "shorter than the video"
