"""``moviola dataset replacements``, ``similarity``, ``relevant-pairs``: relations between captions."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from moviola.cli.app import JsonOption, console, emit_json, show, show_records, show_table
from moviola.cli.options import SentenceEncoderOption

__all__ = ["relevant_pairs_", "replacements_", "similarity_"]


def replacements_(
    before: Annotated[Path, Argument(help="Annotations with the original captions.")],
    after: Annotated[Path, Argument(help="The same moments with imprecise captions.")],
    kind: Annotated[str, Option(help="Data set of both files, as `moviola dataset stats` takes it.")],
    top: Annotated[int, Option(min=1, help="Number of words.")] = 12,
    durations: Annotated[Path | None, Option(help="File of video durations.")] = None,
    json: JsonOption = False,
) -> None:
    """List the words that replaced names, most frequent first (Table 3); moments are joined by id.

    Example: `moviola dataset replacements tvr_val_release.jsonl imprecise.jsonl --kind tvr`

    From Python: `moviola.datasets.building.analysis.replacements`.
    """
    from dataclasses import asdict

    from moviola.datasets.building.analysis import replacements
    from moviola.datasets.building.steps import caption_changes
    from moviola.datasets.readers import read_annotations

    states = (read_annotations(path, kind, durations) for path in (before, after))
    found = replacements(caption_changes(*states))[:top]
    rows = ((one.word, f"{one.count:,}", one.gender) for one in found)
    show_records(json, [asdict(one) for one in found], ("word", "count", "gender"), rows)


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


def similarity_(
    path: Annotated[Path, Argument(help="A judged pair file (val or test).")],
    bins: Annotated[int, Option(min=1, help="Number of bins of similarity.")] = 10,
    json: JsonOption = False,
) -> None:
    """Show relevance by query-caption similarity (Figure 4), and relevant moments per query (Table 4).

    Example: `moviola dataset similarity val.json`

    From Python: `moviola.datasets.building.analysis.relevance_by_similarity`.
    """
    from moviola.datasets.building.analysis import read_judged, relevance_by_similarity

    judged = read_judged(path)
    table = relevance_by_similarity(judged, bins)
    if json:
        emit_json({
            "queries": len(judged.queries), "pairs": len(judged.relevance),
            "relevant_per_query": judged.relevant_per_query, "spearman": table.rank_correlation,
            "edges": table.edges.tolist(), "counts": table.counts.tolist(), "by_rank": table.by_rank.tolist(),
        })  # fmt: skip
        return
    console.print(
        f"{len(judged.queries):,} queries, {len(judged.relevance):,} pairs, "
        f"{judged.relevant_per_query:.1f} relevant moments per query, Spearman {table.rank_correlation:.3f}"
    )
    rows = (
        (
            f"{table.edges[place]:.2f} to {table.edges[place + 1]:.2f}",
            *(f"{count:,}" for count in table.counts[:, place]),
            f"{mean:.2f}",
        )
        for place, mean in enumerate(table.means)
    )
    show_table(("similarity", *(f"level {level}" for level in range(len(table.counts))), "mean"), rows)
