"""Deviations of published evaluators, by the name of the release."""

from __future__ import annotations

from dataclasses import dataclass

from moviola.types import require_known

__all__ = ["DEFAULT", "PRESETS", "Preset", "preset_of"]


@dataclass(frozen=True, slots=True)
class Preset:
    """Deviations of the releases of TVR-Ranking and SPR, as options.

    Attributes:
        strict: overlap sign of nDCG and DCG, overriding the measure's name; ``None`` leaves it to the name.
        keep_zeros: judged moments of relevance 0 can be matched by a prediction.
        count_irrelevant: queries without a relevant moment count and score 0; else they are left out.
        count_missing: queries without an entry in the run count and score 0; else they are left out.
        zero_length: files may hold moments with ``end == start``, which overlap nothing; else they are
            refused when they are read.
        any_order: files may hold moments with ``end < start``, too, for which a benchmark has a rule.
    """

    strict: bool | None = None
    keep_zeros: bool = False
    count_irrelevant: bool = False
    count_missing: bool = True
    zero_length: bool = False
    any_order: bool = False


DEFAULT = Preset()
PRESETS: dict[str, Preset] = {
    "tvr_ranking": Preset(
        strict=True, keep_zeros=True, count_irrelevant=True, count_missing=False, zero_length=True
    ),
    "spr": Preset(strict=False, count_missing=False, zero_length=True),
}


def preset_of(preset: str | Preset | None) -> Preset:
    """A preset by name, a given one, or :data:`DEFAULT` for None; else :class:`InvalidValue`."""
    if preset is None:
        return DEFAULT
    if isinstance(preset, Preset):
        return preset
    require_known("preset", preset, PRESETS)
    return PRESETS[preset]
