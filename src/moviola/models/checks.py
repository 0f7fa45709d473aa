"""Checks of settings."""

from __future__ import annotations

from collections.abc import Collection

from moviola.errors import InvalidValue

__all__ = ["require_known", "require_odd"]


def require_known(name: str, value: str, known: Collection[str]) -> None:
    """Raise :class:`InvalidValue` if the value of a setting is none of the known names."""
    if value not in known:
        raise InvalidValue(f"{name} {value!r}: unknown; choose {', '.join(known)}")


def require_odd(kernel: int) -> None:
    """Raise :class:`InvalidValue` if convolutions of this width over clips would change their number."""
    if kernel % 2 == 0:
        raise InvalidValue(f"kernel {kernel}: must be odd, or a curve changes its length")
