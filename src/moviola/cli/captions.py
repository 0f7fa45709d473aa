"""``moviola dataset relevant-pairs``: captions that may be relevant to each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from moviola.cli.app import JsonOption, show
from moviola.cli.options import SentenceEncoderOption

__all__ = ["relevant_pairs_"]


def relevant_pairs_(
    path: Annotated[Path, Argument(help="An annotation file.")],
    kind: Annotated[str, Option(help="Its data set, as `moviola dataset stats` takes it.")],
    out: Annotated[Path, Option("--out", "-o", help="File for the pairs (.npz).")],
    phi: Annotated[str, Option(help="Measure Phi: sent, vp or np-vp.")] = "np-vp",
    theta: Annotated[float, Option(help="Threshold of Phi, in (0, 1].")] = 0.7,
    durations: Annotated[Path | None, Option(help="File of video durations.")] = None,
    sentence_encoder: SentenceEncoderOption = "minilm",
    json: JsonOption = False,
) -> None:
    """Find potentially relevant pairs of captions, for training (+PR, +SL).

    Example: `moviola dataset relevant-pairs charades_sta_train.txt --kind charades --out pairs.npz`

    From Python: `moviola.datasets.building.steps.find_relevant_pairs`.
    """
    from moviola.datasets.building.relevant_pairs import write_relevant_pairs
    from moviola.datasets.building.steps import find_relevant_pairs
    from moviola.datasets.readers import read_annotations
    from moviola.encoders import load_sentence_encoder

    captions = read_annotations(path, kind, durations).captions
    embed = load_sentence_encoder(sentence_encoder)
    pairs = find_relevant_pairs(captions, embed, phi=phi, theta=theta)
    write_relevant_pairs(pairs, out)
    show(
        json,
        {"captions": pairs.count, "pairs": len(pairs), "phi": phi, "theta": theta, "out": str(out)},
        f"{out}: {len(pairs):,} ordered pairs of {pairs.count:,} captions with Phi {phi} >= {theta}",
    )
