"""Checks of settings."""

from __future__ import annotations

from collections.abc import Collection

from moviola.errors import InvalidValue

__all__ = ["require_known", "require_odd", "require_subtitles"]


def require_known(name: str, value: str, known: Collection[str]) -> None:
    """Raise :class:`InvalidValue` if the value of a setting is none of the known names."""
    if value not in known:
        raise InvalidValue(f"{name} {value!r}: unknown; choose {', '.join(known)}")


def require_odd(kernel: int) -> None:
    """Raise :class:`InvalidValue` if convolutions of this width over clips would change their number."""
    if kernel % 2 == 0:
        raise InvalidValue(f"kernel {kernel}: must be odd, or a curve changes its length")


def require_subtitles(subtitles: object | None, size: int) -> None:
    """Raise :class:`InvalidValue` unless subtitles are given exactly where a model has a size for them."""
    if (subtitles is None) == bool(size):
        raise InvalidValue(
            f"subtitles {'missing' if subtitles is None else 'given'}: this model has subtitle_size {size}; "
            "give features of that size, or None where it is 0"
        )
