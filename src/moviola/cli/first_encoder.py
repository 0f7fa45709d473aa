"""The encoder of the first library: one question at a terminal, whose answer is kept.

It is put only if input, output and messages are a terminal, no JSON is wanted, the answer can be kept in a
configuration file, and the hub, which is queried first, has the better model. In all other cases the best
encoder on this machine is taken, and one line names it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from typer import prompt

from moviola.cli.app import errors, note
from moviola.cli.config import config_path, remember
from moviola.errors import MissingModel, MoviolaError, counted

if TYPE_CHECKING:
    from moviola.encoders import BestEncoder, HubOffer, Recommended

_MIB = 2**20


def first_encoder(sources: Sequence[Path], *, json: bool) -> str:
    """Name of the encoder for a new library of some files and folders."""
    from moviola.encoders import best_encoder, offered_model, recommended

    best = best_encoder()
    if not best.better or json or not _at_terminal() or config_path() is None:
        return _taken(best)
    try:
        better = recommended()[0]
        offer = offered_model(better.model.name)
    except MissingModel as error:
        return _taken(best, str(error))
    return _by_answer(best, offer, better, sources)


def _at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and errors.is_terminal


def _taken(best: BestEncoder, why: str = "") -> str:
    """The best encoder that is here, and the line that says so."""
    better = f" A better one: {best.better}." if best.better else ""
    note(f"Encoder: {best.name}.{f' No other: {why}.' if why else better}")
    return best.name


def _by_answer(best: BestEncoder, offer: HubOffer, better: Recommended, sources: Sequence[Path]) -> str:
    from moviola.encoders import CONSE, pull_model

    here = f", of which {offer.here / _MIB:,.0f} are here already" if offer.here else ""
    note("Which encoder is to look at the pictures? It can be changed later, in place.")
    first = "comes with moviola, nothing to download; things, in English"
    note(f"  1  {best.name}: {first if best.name == CONSE else 'is here already'}")
    texts, size = better.model.languages, f"{offer.size / _MIB:,.0f} MiB from {offer.hub}{here}"
    note(
        f"  2  {better.model.name}: scenes and doings, too; texts in {texts}; {size}"
        f"{_minutes(better, sources)}"
    )
    answer = ""
    while answer not in ("1", "2"):
        answer = str(prompt("1 or 2", default="1", err=True)).strip()
    name = best.name if answer == "1" else better.model.name
    if answer == "2":
        pull_model(name)
    try:
        kept = f"kept in {remember('encoder', name)} for other libraries"
    except (MoviolaError, OSError) as error:
        kept = f"the answer could not be kept ({error})"
    note(f"Encoder: {name}; {kept}. `moviola library use --encoder` changes that of a library.")
    return name


def _minutes(better: Recommended, sources: Sequence[Path]) -> str:
    """About how long it computes for some footage, in words; empty where nothing can be said."""
    from moviola.library import about_seconds

    frames = about_seconds(sources)  # one a second
    if better.milliseconds is None or not frames:
        return ""
    minutes = max(1, round(frames * better.milliseconds / 60_000))
    return (
        f"; about {counted(minutes, 'minute')} of computing for {frames / 3600:.1f} hours of footage, as "
        "measured on another machine"
    )
