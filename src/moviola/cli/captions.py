"""``moviola dataset relevant-pairs``: captions that may be relevant to each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moviola.cli.app import JsonOption, console, emit_json

__all__ = ["relevant_pairs_"]


def relevant_pairs_(
    path: Annotated[Path, typer.Argument(help="An annotation file.")],
    kind: Annotated[str, typer.Option(help="Its data set, as `moviola dataset stats` takes it.")],
    out: Annotated[Path, typer.Option(help="Where the pairs go (npz).")],
    phi: Annotated[str, typer.Option(help="sent, vp or np-vp.")] = "np-vp",
    theta: Annotated[float, typer.Option(help="Threshold of Phi, in (0, 1].")] = 0.7,
    durations: Annotated[Path | None, typer.Option(help="File of video durations.")] = None,
    encoder: Annotated[str, typer.Option(help="Sentence encoder.")] = "minilm",
    json: JsonOption = False,
) -> None:
    """Potentially relevant pairs of captions, stored for training (+PR, +SL).

    Example: `moviola dataset relevant-pairs charades_sta_train.txt --kind charades --out pairs.npz`

    From Python: `moviola.datasets.building.steps.find_relevant_pairs`.
    """
    from moviola.datasets.building.relevant_pairs import write_relevant_pairs
    from moviola.datasets.building.steps import find_relevant_pairs
    from moviola.datasets.readers import read_annotations
    from moviola.encoders import load_sentence_encoder

    captions = read_annotations(path, kind, durations).captions
    embed = load_sentence_encoder(encoder)
    pairs = find_relevant_pairs(captions, embed, phi=phi, theta=theta)
    write_relevant_pairs(pairs, out)
    if json:
        emit_json({"captions": pairs.count, "pairs": len(pairs), "phi": phi, "theta": theta, "out": str(out)})
    else:
        console.print(
            f"{out}: {len(pairs):,} ordered pairs of {pairs.count:,} captions with Phi {phi} >= {theta}",
        )
