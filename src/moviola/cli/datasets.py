"""``moviola dataset``: commands on annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moviola.cli.app import JsonOption, app, console, emit_json
from moviola.cli.features import relevant_pairs_

dataset = typer.Typer(help="Annotations: reading them and building ranked ones.", no_args_is_help=True)
app.add_typer(dataset, name="dataset")
dataset.command("relevant-pairs")(relevant_pairs_)


@dataset.callback()
def _group() -> None:
    """Annotations: reading them and building ranked ones."""


@dataset.command("consensus")
def consensus_(
    ratings: Annotated[Path, typer.Argument(help="CSV with pair_id, worker, relevance.")],
    out: Annotated[Path, typer.Option(help="Where the agreed levels go (CSV).")],
    json: JsonOption = False,
) -> None:
    """Agreed relevance of each pair by TVR-Ranking's rule, and how well raters agree.

    Example: `moviola dataset consensus raw_annotation.csv --out agreed.csv`
    """
    from moviola.datasets.consensus import agreement, consensus, read_ratings, write_agreed

    given = read_ratings(ratings)
    outcome, figures = consensus(given), agreement(given)
    write_agreed(outcome.agreed, out)
    histogram = figures.histogram.tolist()
    if json:
        emit_json({
            "agreed": len(outcome.agreed), "discarded": len(outcome.discarded), "open": len(outcome.open),
            "uncountable": len(outcome.uncountable), "levels": histogram, "kappa": figures.kappa,
            "weighted_kappa": figures.weighted_kappa, "low_high": figures.low_high.tolist(),
        })  # fmt: skip
        return
    console.print(
        f"{out}: {len(outcome.agreed)} pairs agreed, {len(outcome.discarded)} discarded, "
        f"{len(outcome.open)} need more ratings, {len(outcome.uncountable)} with another number of ratings",
        markup=False,
    )
    console.print("levels 0 to 4: " + " / ".join(map(str, histogram)))
    console.print(f"Cohen's kappa {figures.kappa:.3f}, weighted by squares {figures.weighted_kappa:.3f}")


KindOption = Annotated[
    str,
    typer.Option("--kind", help="tvr, tvr_ranking, charades, activitynet, tacos, qvhighlights or didemo."),
]
DurationsOption = Annotated[
    Path | None, typer.Option("--durations", help="File of video durations, where the set has one.")
]


@dataset.command()
def stats(
    path: Annotated[Path, typer.Argument(help="An annotation file.")],
    kind: KindOption,
    durations: DurationsOption = None,
    json: JsonOption = False,
) -> None:
    """The columns of TVR-Ranking's Tables 1 and 4, and what does not fit in the file.

    Example: `moviola dataset stats tvr_val_release.jsonl --kind tvr`
    """
    from dataclasses import asdict

    from moviola.datasets.readers import read_annotations
    from moviola.datasets.statistics import statistics

    found = read_annotations(path, kind, durations)
    figures = statistics(found)
    if json:
        flaws = [{"kind": flaw.kind, "where": flaw.where} for flaw in found.flaws]
        emit_json({**asdict(figures), "flaws": flaws})
        return
    counts = {
        "queries": figures.queries, "moments": figures.moments, "videos": figures.videos,
        "vocabulary": figures.vocabulary, "verbs": figures.verbs,
    }  # fmt: skip
    for name, count in counts.items():
        console.print(f"{name:>22}  {count:,}")
    console.print(f"{'hours of moments':>22}  {figures.moment_hours:.2f}")
    console.print(f"{'hours of videos':>22}  {figures.video_hours:.2f}")
    spreads = {
        "query length (words)": figures.query_length,
        "moment (s)": figures.moment_seconds,
        "video (s)": figures.video_seconds,
    }
    for name, spread in spreads.items():
        console.print(f"{name:>22}  {spread.least:.2f} / {spread.mean:.2f} / {spread.most:.2f}")
    console.print(f"{'moment / video':>22}  {figures.ratio:.2f}")
    for flaw, count in found.flaw_counts.items():
        first = next(f.where for f in found.flaws if f.kind == flaw)
        console.print(f"{flaw:>22}  {count} (first: {first})", markup=False)


@dataset.command()
def pseudo(
    path: Annotated[Path, typer.Argument(help="Annotations whose captions serve as queries.")],
    out: Annotated[Path, typer.Option(help="Where the training set goes (TVR-Ranking JSON).")],
    kind: KindOption,
    top: Annotated[int, typer.Option("--top", "-n", min=1, help="Moments a query: N of the paper.")] = 40,
    held_out: Annotated[
        list[Path] | None, typer.Option(help="Pair files (val, test) whose queries are left out; repeatable.")
    ] = None,
    durations: DurationsOption = None,
    encoder: Annotated[str, typer.Option(help="Sentence encoder.")] = "minilm",
    json: JsonOption = False,
) -> None:
    """A pseudo training set: every caption as a query with its most similar moments.

    Example: `moviola dataset pseudo captions.json --kind tvr_ranking --top 20 --out train_top20.json`
    """
    import json as json_format

    from moviola.cli.queries import read_queries
    from moviola.datasets.pseudo import pseudo_training_set
    from moviola.datasets.readers import read_annotations
    from moviola.encoders import load_sentence_encoder

    found = read_annotations(path, kind, durations)
    banned = [query.text for file in held_out or [] for query in read_queries(file)]
    embeddings = load_sentence_encoder(encoder).encode_text(list(found.captions))
    entries = pseudo_training_set(found, embeddings, top, held_out=banned)
    draft = out.with_name(out.name + ".tmp")
    draft.write_text(json_format.dumps(entries, ensure_ascii=False))
    draft.replace(out)
    pairs = sum(len(entry["relevant_moment"]) for entry in entries)
    if json:
        emit_json({"queries": len(entries), "pairs": pairs, "out": str(out)})
    else:
        console.print(f"{out}: {len(entries)} queries, {pairs} pairs", markup=False)
