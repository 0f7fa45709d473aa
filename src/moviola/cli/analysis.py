"""``moviola dataset replacements`` and ``similarity``: TVR-Ranking's Table 3 and Figure 4 for any set."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moviola.cli.app import JsonOption, console, emit_json

__all__ = ["replacements_", "similarity_"]


def replacements_(
    before: Annotated[Path, typer.Argument(help="Annotations with the original captions.")],
    after: Annotated[Path, typer.Argument(help="The same moments with imprecise captions.")],
    kind: Annotated[str, typer.Option(help="Data set of both files, as `moviola dataset stats` takes it.")],
    top: Annotated[int, typer.Option(min=1, help="How many words.")] = 12,
    durations: Annotated[Path | None, typer.Option(help="File of video durations.")] = None,
    json: JsonOption = False,
) -> None:
    """The words that took the place of names, most frequent first (Table 3); moments are joined by their id.

    Example: `moviola dataset replacements tvr_val_release.jsonl imprecise.jsonl --kind tvr`
    """
    from dataclasses import asdict

    from moviola.datasets.building.analysis import replacements
    from moviola.datasets.readers import read_annotations
    from moviola.errors import InvalidValue

    old, new = (read_annotations(path, kind, durations) for path in (before, after))
    captions = dict(zip(old.moment_ids, old.captions, strict=True))
    pairs = [(captions[m], c) for m, c in zip(new.moment_ids, new.captions, strict=True) if m in captions]
    if not pairs:
        raise InvalidValue(f"{before} and {after}: no moment id in common; give two states of one data set")
    found = replacements(pairs)[:top]
    if json:
        emit_json([asdict(one) for one in found])
        return
    for one in found:
        console.print(f"{one.word:>16}  {one.count:>8,}  {one.gender}")


def similarity_(
    path: Annotated[Path, typer.Argument(help="A judged pair file (val or test).")],
    bins: Annotated[int, typer.Option(min=1, help="Bins of similarity.")] = 10,
    json: JsonOption = False,
) -> None:
    """How relevance follows query-caption similarity (Figure 4), and relevant moments a query (Table 4).

    Example: `moviola dataset similarity val.json`
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
        f"{judged.relevant_per_query:.1f} relevant moments a query, Spearman {table.rank_correlation:.3f}"
    )
    console.print("similarity        pairs of level 0 / 1 / 2 / 3 / 4   mean")
    for place, mean in enumerate(table.means):
        counts = " / ".join(f"{count:,}" for count in table.counts[:, place])
        console.print(f"{table.edges[place]:.2f} to {table.edges[place + 1]:.2f}   {counts}   {mean:.2f}")
