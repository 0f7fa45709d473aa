"""Checks of settings and of what models are given; each raises :class:`InvalidValue`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from moviola.errors import InvalidValue
from moviola.types import require_known, require_positive

__all__ = [
    "require_heads", "require_known", "require_odd", "require_one_space", "require_positive", "require_sizes",
    "require_subtitles", "validated",
]  # fmt: skip

Settings = TypeVar("Settings")

_SIZES = ("query_size", "hidden_size", "feed_forward_size", "kernel", "max_clips", "max_tokens")


def require_sizes(settings: object) -> None:
    """What torch or the first batch would stumble over, of the settings whose names all models share."""
    require_positive(**{name: getattr(settings, name, None) for name in _SIZES})
    for name in ("visual_size", "subtitle_size", "layers", "fusion_layers", "initial_std"):
        if (value := getattr(settings, name, 0)) < 0:
            raise InvalidValue(f"{name}={value}: give at least 0")
    if not 0 <= (dropout := getattr(settings, "dropout", 0)) < 1:
        raise InvalidValue(f"dropout={dropout}: give a share from 0 to below 1")


def require_heads(size: int, heads: int) -> None:
    """Attention heads must divide the hidden size."""
    if heads < 1 or size % heads:
        raise InvalidValue(f"hidden_size {size}: must be a multiple of heads {heads}, at least 1")


def require_odd(kernel: int) -> None:
    """Convolutions over clips of an even width would change their number."""
    if kernel % 2 == 0:
        raise InvalidValue(f"kernel {kernel}: must be odd, or a curve changes its length")


def require_one_space(queries: int, *streams: int) -> None:
    """Pictures, subtitles (sizes of their features; 0 for none) and queries must be of one encoder."""
    if any(size not in (0, queries) for size in streams):
        raise InvalidValue(
            f"aligned_start: clips of {' and '.join(str(size) for size in streams if size)} numbers, and "
            f"tokens of {queries}; give features of one encoder of pictures and texts, or set "
            "model.aligned_start=false"
        )


def require_subtitles(subtitles: object | None, size: int) -> None:
    """Subtitles must be given exactly where a model has a size for them."""
    if (subtitles is None) == bool(size):
        raise InvalidValue(
            f"subtitles {'missing' if subtitles is None else 'given'}: this model has subtitle_size {size}; "
            "give features of that size, or None where it is 0"
        )


def validated(kind: type[Settings], values: Mapping[str, object], where: str) -> Settings:
    """A dataclass from its fields; every value must fit the type of its field and the checks of the class."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(dict(values))
    except ValidationError as error:
        first = error.errors()[0]
        own = first.get("ctx", {}).get("error")
        if isinstance(own, InvalidValue):  # of the settings' own checks, which name setting, value and remedy
            raise InvalidValue(f"{where}: {own}") from error
        name = ".".join(str(part) for part in (where, *first["loc"]))
        raise InvalidValue(f"{name}: {first['msg']} (got {first['input']!r})") from error
