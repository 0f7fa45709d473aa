"""Check of feature files against the videos of an annotation."""

from __future__ import annotations

from moviola.errors import InvalidValue
from moviola.features import FeatureFiles
from moviola.study.datasets.annotations import Annotations, Flaw

__all__ = ["check_features"]

_SLACK = 2  # rows that rounding may add or cost


def check_features(features: FeatureFiles, found: Annotations, seconds: float) -> tuple[Flaw, ...]:
    """Compare features with the videos of an annotation; flaws by kind and name.

    The kinds are "no features", "no such video", "longer than the video" (stale features), "shorter than the
    video" and "other dimension" than the most frequent one.

    Args:
        found: videos with durations.
        seconds: length of one row (clip) in seconds; :class:`InvalidValue` unless it is above 0.
    """
    if not seconds > 0:
        raise InvalidValue(f"seconds={seconds}: the length of a row must be above 0")
    shapes = {key: features.shape(key) for key in features.keys()}  # noqa: SIM118 - no mapping
    videos = dict(zip(found.videos, found.durations.tolist(), strict=True))
    dims = [shape[1] for shape in shapes.values()]
    expected = max(set(dims), key=dims.count, default=None)
    flaws = [Flaw("no features", video) for video in videos if video not in shapes]
    for key, (rows, width) in shapes.items():
        if width != expected:
            flaws.append(Flaw("other dimension", key))
        if key not in videos:
            flaws.append(Flaw("no such video", key))
            continue
        needed = videos[key] / seconds
        if rows > needed + _SLACK:
            flaws.append(Flaw("longer than the video", key))
        if rows < needed - _SLACK:
            flaws.append(Flaw("shorter than the video", key))
    return tuple(flaws)
