"""The encoder of the first library: a question at a terminal, once, whose answer is kept.

The question comes where it can be answered: input, output and messages are a terminal, no JSON is wanted,
there is a configuration file to keep the answer in, and the hub, which is questioned first, has the better
model. Anywhere else the best encoder on this machine is taken, and one line says which.
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
    from moviola.encoders import BestEncoder, BetterEncoder, HubOffer

_MIB = 2**20


def first_encoder(sources: Sequence[Path], *, json: bool) -> str:
    """Name of the encoder for a new library of some files and folders."""
    from moviola.encoders import BETTER, best_encoder, offered_model

    best = best_encoder()
    if not best.better or json or not _at_terminal() or config_path() is None:
        return _taken(best)
    try:
        offer = offered_model(BETTER.name)
    except MissingModel as error:
        return _taken(best, str(error))
    return _by_answer(best, offer, BETTER, sources)


def _at_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty() and errors.is_terminal


def _taken(best: BestEncoder, why: str = "") -> str:
    """The best encoder that is here, and the line that says so."""
    better = f" A better one: {best.better}." if best.better else ""
    note(f"Encoder: {best.name}.{f' No other: {why}.' if why else better}")
    return best.name


def _by_answer(best: BestEncoder, offer: HubOffer, better: BetterEncoder, sources: Sequence[Path]) -> str:
    here = f", of which {offer.here / _MIB:,.0f} are here already" if offer.here else ""
    note("Which encoder is to look at the pictures? It can be changed later, in place.")
    note(f"  1  {best.name}: comes with moviola, nothing to download; things, in English")
    note(
        f"  2  {better.name}: {better.what}; {offer.size / _MIB:,.0f} MiB from {offer.hub}{here}"
        f"{_minutes(better, sources)}"
    )
    answer = ""
    while answer not in ("1", "2"):
        answer = str(prompt("1 or 2", default="1", err=True)).strip()
    name = best.name if answer == "1" else better.name
    if answer == "2":
        from moviola.encoders import pull_model

        pull_model(name)
    try:
        kept = f"kept in {remember('encoder', name)} for other libraries"
    except (MoviolaError, OSError) as error:
        kept = f"the answer could not be kept ({error})"
    note(f"Encoder: {name}; {kept}. `moviola library use --encoder` changes that of a library.")
    return name


def _minutes(better: BetterEncoder, sources: Sequence[Path]) -> str:
    """About how long it computes for some footage, in words; empty where nothing can be said."""
    from moviola.encoders import seconds_of_work
    from moviola.library import about_seconds

    frames = about_seconds(sources)  # one a second
    times = seconds_of_work(better.operations * frames)
    if times is None or not frames:
        return ""
    least, most = (max(1, round(seconds / 60)) for seconds in times)
    span = counted(most, "minute") if least == most else f"{least} to {most} minutes"
    return f"; about {span} of computing for {frames / 3600:.1f} hours of footage"
