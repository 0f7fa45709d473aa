"""Contact sheets of ranked moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np

from moviola.errors import MediaError, NotFound
from moviola.export.clips import source_of
from moviola.files.names import name_now
from moviola.media import SheetCell, contact_sheet, frame_at, read_small_still
from moviola.types import Moment, clock, shown_score

__all__ = ["KeptStill", "export_sheet", "moment_cells"]

KeptStill = Callable[[str, float], bytes | None]
"""Returns the WebP bytes of a small still of a video, by id and seconds; None where there is none."""

_WIDTH = 320
# Shown in place of an unreadable picture.
_GREY = np.full((_WIDTH * 9 // 16, _WIDTH, 3), 200, np.uint8)


def export_sheet(
    moments: Sequence[Moment],
    sources: Mapping[str, str | Path],
    out: Path,
    *,
    title: str,
    notes: Sequence[str] = (),
    columns: int = 5,
    kept: KeptStill | None = None,
) -> dict[str, str]:
    """Write one PNG with the middle frame of each moment, its rank, video, time and score.

    Args:
        sources: path of each video by id.
        title: a line above the pictures.
        notes: one more line of caption per moment, or none.
        kept: gives small stills in place of unreadable frames.

    Returns:
        reasons by video id for unreadable pictures (they are grey).

    Raises:
        InvalidValue: the file cannot be written.
    """
    cells, failed = moment_cells(moments, sources, notes, kept)
    if cells:
        contact_sheet(cells, out, columns=columns, title=title)
    return failed


def moment_cells(
    moments: Sequence[Moment],
    sources: Mapping[str, str | Path],
    notes: Sequence[str] = (),
    kept: KeptStill | None = None,
) -> tuple[list[SheetCell], dict[str, str]]:
    """Cells of a contact sheet, one per moment, and the reasons of grey ones, see :func:`export_sheet`."""
    failed: dict[str, str] = {}
    cells: list[SheetCell] = []
    for place, moment in enumerate(moments):
        middle = (moment.start + moment.end) / 2
        try:
            image = frame_at(source_of(moment.video_id, sources), middle, width=_WIDTH)
        except (MediaError, NotFound, OSError) as error:
            still = None
            with suppress(NotFound):  # a table may name videos that the library lacks
                still = kept(moment.video_id, middle) if kept else None
            if still is None:
                failed[moment.video_id] = str(error)
            image = _GREY if still is None else read_small_still(still, _WIDTH)
        caption = (
            f"{moment.rank}. {name_now(moment.video_id, sources.get(moment.video_id, ''))}",
            f"{clock(moment.start)} – {clock(moment.end)}   {shown_score(moment.score)}",
            *notes[place : place + 1],
        )
        cells.append(SheetCell(image, caption))
    return cells, failed
