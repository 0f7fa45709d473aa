"""How times are written for people."""

from __future__ import annotations

__all__ = ["clock"]


def clock(seconds: float) -> str:
    """Seconds as ``h:mm:ss.s``, rounded to a tenth."""
    tenths = round(seconds * 10)
    minutes, rest = divmod(tenths, 600)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest // 10:02d}.{rest % 10}"
