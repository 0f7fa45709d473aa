"""Films at the rates that editing meets, made once."""

from __future__ import annotations

from fractions import Fraction

import pytest

from moviola.export import Selection, read_sources
from moviola.export.timeline import SourceVideo
from moviola.types import Moment
from numbered import NTSC, NTSC_FAST, NTSC_FILM, numbered_film


@pytest.fixture(scope="session")
def rates(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Two seconds each, by name; ``df`` and ``ndf`` begin just before an hour of their timecode."""
    folder = tmp_path_factory.mktemp("films & <more>")
    films = {
        "film": (NTSC_FILM, "01:00:00:00"),
        "24": (24, None),
        "25": (25, "10:00:00:00"),
        "df": (NTSC, "00:59:59;00"),
        "ndf": (NTSC, "00:59:59:00"),
        "30": (30, None),
        "50": (50, "00:00:59:49"),
        "df60": (NTSC_FAST, "00:09:59;30"),
        "60": (60, None),
        "odd": (Fraction(25, 2), None),
    }
    return {
        name: str(
            numbered_film(folder / f"{name} 100%.mov", rate, 2, timecode=timecode, sound=name in ("25", "df"))
            if timecode
            else numbered_film(folder / f"{name}.mp4", rate, 2, size=(96, 160) if name == "30" else (160, 96))
        )
        for name, (rate, timecode) in films.items()
    }


@pytest.fixture(scope="session")
def videos(rates: dict[str, str]) -> dict[str, SourceVideo]:
    """What an editing program sees of them."""
    return read_sources([Selection(Moment(name, 0, 1, 0.5, 1)) for name in rates], rates)
