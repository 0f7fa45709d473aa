"""An answer as a notebook shows it: a row a moment, with its still."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from html import escape
from itertools import islice
from typing import TYPE_CHECKING

from moviola.errors import MoviolaError
from moviola.types import clock, shown_score

if TYPE_CHECKING:
    from moviola.types import Moment

__all__ = ["as_html"]

_MOST = 24
_WIDTH = 160


def as_html(
    moments: Sequence[Moment],
    notes: Iterable[str],
    *,
    confident: bool,
    still: Callable[[str, float], bytes | None] | None,
) -> str:
    """The first moments of an answer, and what it says of itself, as HTML without scripts.

    Args:
        still: gives the small still of a video (WebP) nearest to a time in seconds, or None.
    """
    rows = [_row(moment, still) for moment in islice(moments, _MOST)]
    rest = len(moments) - len(rows)
    lines = [*notes, *([f"and {rest} more"] if rest else [])]
    if not confident:
        lines.insert(0, "nothing certain" if rows else "nothing matches")
    heads = "".join(f"<th>{name}</th>" for name in ("", "rank", "video", "start – end", "score", "words"))
    said = "".join(f"<p>{escape(line)}</p>" for line in lines)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{''.join(rows)}</tbody></table>{said}"


def _row(moment: Moment, still: Callable[[str, float], bytes | None] | None) -> str:
    times = "<br>".join(f"{clock(one.start)} – {clock(one.end)}" for one in moment.steps or (moment,))
    band = "" if moment.strong else f" {moment.band}"
    score = shown_score(moment.score) + band
    cells = str(moment.rank), escape(moment.video_id), times, score, escape(moment.snippet)
    texts = "".join(f"<td>{cell}</td>" for cell in cells)
    return f"<tr><td>{_picture(moment, still)}</td>{texts}</tr>"


def _picture(moment: Moment, still: Callable[[str, float], bytes | None] | None) -> str:
    """Its still; none after the library was closed, or its video removed."""
    try:
        picture = still and still(moment.video_id, (moment.start + moment.end) / 2)
    except MoviolaError:
        picture = None
    data = b64encode(picture).decode() if picture else ""
    return f'<img alt="" width="{_WIDTH}" src="data:image/webp;base64,{data}">' if data else ""
