"""``moviola dataset``: commands on annotations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from moviola.cli.app import JsonOption, app, console, emit_json, leave_partial, note
from moviola.cli.captions import relevant_pairs_

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

    From Python: `moviola.datasets.building.consensus.consensus` and `agreement`.
    """
    from moviola.datasets.building.annotation_files import read_ratings, write_agreed
    from moviola.datasets.building.consensus import agreement, consensus

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
    )
    console.print("levels 0 to 4: " + " / ".join(map(str, histogram)))
    console.print(f"Cohen's kappa {figures.kappa:.3f}, weighted by squares {figures.weighted_kappa:.3f}")


KindOption = Annotated[
    str,
    typer.Option(
        "--kind",
        help="tvr, tvr_ranking, charades, activitynet, tacos, qvhighlights, didemo, or a name of "
        "`moviola public`.",
    ),
]
DurationsOption = Annotated[
    Path | None, typer.Option("--durations", help="File of video durations, where the set has one.")
]


@dataset.command()
def stats(
    path: Annotated[Path, typer.Argument(help="An annotation file.")],
    kind: KindOption,
    durations: DurationsOption = None,
    verbs: Annotated[
        bool, typer.Option("--verbs", help="Count verbs too, with spaCy's tagger (moviola[language]).")
    ] = False,
    json: JsonOption = False,
) -> None:
    """The columns of TVR-Ranking's Tables 1 and 4, and what does not fit in the file.

    Example: `moviola dataset stats tvr_val_release.jsonl --kind tvr`

    From Python: `moviola.datasets.statistics.statistics`.
    """
    from dataclasses import asdict

    from moviola.datasets.readers import QUERIES_OF, read_annotations
    from moviola.datasets.statistics import statistics

    found = read_annotations(path, kind, durations)
    figures = statistics(found, QUERIES_OF[kind](path) if kind in QUERIES_OF else None, count_verbs=verbs)
    if json:
        flaws = [{"kind": flaw.kind, "where": flaw.where} for flaw in found.flaws]
        emit_json({**asdict(figures), "flaws": flaws})
        return
    counts = {
        "queries": figures.queries, "moments": figures.moments, "videos": figures.videos,
        "vocabulary": figures.vocabulary, "verbs": figures.verbs,
    }  # fmt: skip
    for name, count in counts.items():
        console.print(f"{name:>22}  {'–' if count is None else format(count, ',')}")
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
        console.print(f"{flaw:>22}  {count} (first: {first})")


@dataset.command()
def pseudo(
    path: Annotated[Path, typer.Argument(help="Annotations: the pool of moments.")],
    out: Annotated[Path, typer.Option(help="Where the training set goes (TVR-Ranking JSON).")],
    kind: KindOption,
    top: Annotated[int, typer.Option("--top", "-n", min=1, help="Moments per query: N of the paper.")] = 40,
    queries: Annotated[
        Path | None,
        typer.Option(help="Queries (JSON, or one per line); by default the pool's captions, each once."),
    ] = None,
    held_out: Annotated[
        list[Path] | None, typer.Option(help="Pair files (val, test) whose queries are left out; repeatable.")
    ] = None,
    durations: DurationsOption = None,
    encoder: Annotated[str, typer.Option(help="Sentence encoder.")] = "minilm",
    json: JsonOption = False,
) -> None:
    """A pseudo training set: every query with the moments whose captions are most similar to it.

    Example: `moviola dataset pseudo captions.json --kind tvr_ranking --top 20 --out train_top20.json`

    From Python: `moviola.datasets.building.steps.pseudo_pairs`.
    """
    from moviola.datasets.building.steps import pseudo_pairs
    from moviola.datasets.readers import read_annotations
    from moviola.datasets.readers.queries import read_queries
    from moviola.encoders import load_sentence_encoder
    from moviola.files.writing import write_json

    found = read_annotations(path, kind, durations)
    banned = [query.text for file in held_out or [] for query in read_queries(file)]
    asked = None if queries is None else [query.text for query in read_queries(queries)]
    embed = load_sentence_encoder(encoder)
    entries = pseudo_pairs(found, embed, top, queries=asked, held_out=banned)
    write_json(out, entries)
    pairs = sum(len(entry["relevant_moment"]) for entry in entries)
    if json:
        emit_json({"queries": len(entries), "pairs": pairs, "out": str(out)})
    else:
        console.print(f"{out}: {len(entries)} queries, {pairs} pairs")


EncoderOption = Annotated[str, typer.Option(help="Sentence encoder.")]


@dataset.command()
def convert(
    path: Annotated[Path, typer.Argument(help="An annotation file.")],
    out: Annotated[Path, typer.Option(help="Where TVR's jsonl goes.")],
    kind: KindOption,
    pairs: Annotated[
        bool,
        typer.Option("--pairs", help="A pair file instead, each caption a query with its own moment alone."),
    ] = False,
    durations: DurationsOption = None,
    json: JsonOption = False,
) -> None:
    """Any data set's annotations in TVR's jsonl, the form that the other commands read as `--kind tvr`.

    With --pairs they are what `moviola train` and `answer` read; `moviola evaluate --tvr` takes the jsonl.

    Example: `moviola dataset convert val_2.json --kind activitynet --out activitynet_val.jsonl`

    From Python: `moviola.datasets.readers.read_annotations`, `write_tvr` and `write_own_pairs`.
    """
    from moviola.datasets.readers import read_annotations, write_own_pairs, write_tvr

    found = read_annotations(path, kind, durations)
    (write_own_pairs if pairs else write_tvr)(found, out)
    if json:
        emit_json({"out": str(out), "moments": len(found), "flaws": found.flaw_counts})
    else:
        console.print(f"{out}: {len(found)} moments {found.flaw_counts or ''}")


@dataset.command()
def imprecise(
    path: Annotated[Path, typer.Argument(help="Annotations with precise captions.")],
    out: Annotated[Path, typer.Option(help="Where the moments with imprecise captions go (TVR's jsonl).")],
    kind: KindOption,
    types: Annotated[str, typer.Option(help="Only moments of these types (TVR: v, t, vt), by commas.")] = "",
    endpoint: Annotated[str, typer.Option(help="An OpenAI-compatible chat endpoint; without, by rule.")] = "",
    model: Annotated[str, typer.Option(help="The chat model's name there.")] = "",
    batch: Annotated[int, typer.Option(min=1, help="Captions per request.")] = 20,
    review: Annotated[
        Path | None, typer.Option(help="Failures as CSV to edit; read back. Default OUT.review.csv.")
    ] = None,
    names: Annotated[
        str, typer.Option(help="What looks for names that are left: spacy, or the rules' own lexicon.")
    ] = "spacy",
    threshold: Annotated[float, typer.Option(help="Least similarity of a caption and its rewrite.")] = 0.4,
    durations: DurationsOption = None,
    encoder: EncoderOption = "minilm",
    json: JsonOption = False,
) -> None:
    """Put general nouns for names into captions; run it again to go on, or after editing the review file.

    Each rewrite must keep the meaning (sentence similarity) and hold no name. What failed is in the review
    file; fill in its column `final`. The key of an endpoint is read from MOVIOLA_CHAT_KEY.

    Example: `moviola dataset imprecise tvr_val_release.jsonl --kind tvr --types v --out imprecise.jsonl`

    From Python: `moviola.datasets.building.steps.rewrite_captions`.
    """
    import os

    from moviola.datasets.building.chat import ChatEndpoint
    from moviola.datasets.building.steps import rewrite_captions
    from moviola.datasets.readers import read_annotations, write_tvr
    from moviola.encoders import load_sentence_encoder
    from moviola.errors import InvalidValue

    if bool(endpoint) != bool(model):
        raise InvalidValue("--endpoint and --model go together: give both or neither")
    key = os.environ.get("MOVIOLA_CHAT_KEY", "")
    review = review or out.with_name(out.name + ".review.csv")
    made = rewrite_captions(
        read_annotations(path, kind, durations), load_sentence_encoder(encoder),
        out.with_name(out.name + ".journal"), review,
        types=types.split(",") if types else (),
        endpoint=ChatEndpoint(endpoint, model, key) if endpoint else None,
        names=names, threshold=threshold, batch=batch,
    )  # fmt: skip
    write_tvr(made.moments, out)
    outcome = made.outcome
    figures = {
        "moments": len(made.moments), "queries": len(set(made.moments.captions)),
        "captions": made.captions,
        "changed": made.changed, "reviewed": made.reviewed,
        "failed": len(outcome.failed), "open": len(outcome.open), "out": str(out), "review": str(review),
    }  # fmt: skip
    for line in outcome.trouble:
        note(line)
    if json:
        emit_json(figures)
    else:
        for name, value in figures.items():
            console.print(f"{name:>10}  {value}")
    if outcome.failed or outcome.open:
        leave_partial()


@dataset.command()
def split(
    path: Annotated[Path, typer.Argument(help="Annotations with imprecise captions.")],
    out: Annotated[Path, typer.Option(help="Folder for val_queries.json and test_queries.json.")],
    kind: KindOption,
    val: Annotated[int, typer.Option(min=1, help="Queries to draw for validation.")] = 500,
    test: Annotated[int, typer.Option(min=1, help="Queries to draw for test.")] = 2781,
    seed: Annotated[int, typer.Option(help="Seed of the draw.")] = 0,
    json: JsonOption = False,
) -> None:
    """Draw val and test queries from the captions at random; no text is in both.

    Example: `moviola dataset split imprecise.jsonl --kind tvr --val 50 --test 200 --out ranked`

    From Python: `moviola.datasets.building.splits.draw_queries`.
    """
    from moviola.datasets.building.splits import draw_queries
    from moviola.datasets.readers import read_annotations
    from moviola.files.writing import write_json

    drawn = draw_queries(read_annotations(path, kind).captions, {"val": val, "test": test}, seed)
    for name, queries in drawn.items():
        rows = [{"query_id": number, "query": query} for number, query in queries.items()]
        write_json(out / f"{name}_queries.json", rows, indent=0)
    if json:
        emit_json({name: len(queries) for name, queries in drawn.items()})
    else:
        console.print(f"{out}: {val} queries for validation, {test} for test")


@dataset.command()
def candidates(
    path: Annotated[Path, typer.Argument(help="Annotations with imprecise captions.")],
    queries: Annotated[Path, typer.Option(help="Queries to annotate (JSON, or one per line).")],
    out: Annotated[Path, typer.Option(help="Where the candidate pairs go (CSV).")],
    kind: KindOption,
    top: Annotated[int, typer.Option(min=1, max=40, help="Candidates per query, in batches of 20.")] = 40,
    encoder: EncoderOption = "minilm",
    json: JsonOption = False,
) -> None:
    """The moments most similar to each query, to be judged by people.

    Example: `moviola dataset candidates imprecise.jsonl --kind tvr --queries val.json --out pairs.csv`

    From Python: `moviola.datasets.building.steps.find_candidates`.
    """
    from moviola.datasets.building.annotation_files import write_pairs
    from moviola.datasets.building.steps import find_candidates
    from moviola.datasets.readers import read_annotations
    from moviola.datasets.readers.queries import read_queries
    from moviola.encoders import load_sentence_encoder

    texts = {query.query_id: query.text for query in read_queries(queries)}
    pairs = find_candidates(texts, read_annotations(path, kind), load_sentence_encoder(encoder), top)
    write_pairs(pairs, out)
    if json:
        emit_json({"queries": len(texts), "pairs": len(pairs), "out": str(out)})
    else:
        console.print(f"{out}: {len(pairs)} pairs of {len(texts)} queries")


@dataset.command()
def tasks(
    pairs: Annotated[Path, typer.Argument(help="Candidate pairs (CSV of `candidates`).")],
    out: Annotated[Path, typer.Option(help="Where the pairs to rate go (CSV).")],
    agreed: Annotated[
        Path | None,
        typer.Option(help="Agreed levels of the first batch: gives second batches where they are due."),
    ] = None,
    last: Annotated[int, typer.Option(min=1, help="How many candidates count as the end of a batch.")] = 5,
    threshold: Annotated[
        float, typer.Option(help="Their mean level from which the next batch is due.")
    ] = 2.0,
    json: JsonOption = False,
) -> None:
    """The pairs that people are to rate: first batches, or the second ones that are due.

    Example: `moviola dataset tasks pairs.csv --out batch1.csv`

    From Python: `moviola.datasets.building.candidate_pairs.next_pairs`.
    """
    from moviola.datasets.building.annotation_files import read_agreed, read_pairs, write_pairs
    from moviola.datasets.building.candidate_pairs import next_pairs

    known = read_pairs(pairs)
    if agreed is None:
        due = [pair for pair in known if pair.batch == 1]
    else:
        due = next_pairs(known, read_agreed(agreed), last=last, threshold=threshold)
    write_pairs(due, out)
    if json:
        emit_json({"pairs": len(due), "queries": len({pair.query_id for pair in due}), "out": str(out)})
    else:
        console.print(f"{out}: {len(due)} pairs")


@dataset.command()
def exam(
    answers: Annotated[Path, typer.Argument(help="CSV with pair_id, worker, relevance of the exam's pairs.")],
    json: JsonOption = False,
) -> None:
    """Qualification exam: how far each rater is from the median of all, best first, and how raters agree.

    Out of consensus is what lies more than one level from the median; kappa is Cohen's with the other raters.

    Example: `moviola dataset exam exam_ratings.csv`

    From Python: `moviola.datasets.building.consensus.exam`.
    """
    from dataclasses import asdict

    from moviola.datasets.building.annotation_files import read_ratings
    from moviola.datasets.building.consensus import exam

    found = exam(read_ratings(answers))
    if json:
        emit_json(asdict(found))
        return
    console.print("distance  out of consensus  kappa  rater")
    for worker, rater in found.raters.items():
        console.print(f"{rater.distance:8.3f}  {rater.out_of_consensus:16.1%}  {rater.kappa:5.2f}  {worker}")
    console.print(f"mean out of consensus {found.out_of_consensus:.1%}, mean kappa {found.kappa:.2f}")


@dataset.command()
def judgements(
    pairs: Annotated[Path, typer.Argument(help="Candidate pairs (CSV of `candidates`).")],
    agreed: Annotated[Path, typer.Option(help="Agreed levels (CSV of `consensus`).")],
    out: Annotated[Path, typer.Option(help="Where the judged pair file goes (TVR-Ranking JSON).")],
    json: JsonOption = False,
) -> None:
    """Candidates and agreed levels joined into a ranked set such as val.json.

    Example: `moviola dataset judgements pairs.csv --agreed agreed.csv --out val.json`

    From Python: `moviola.datasets.building.annotation_files.write_judgements`.
    """
    from moviola.datasets.building.annotation_files import read_agreed, read_pairs, write_judgements

    count = write_judgements(read_pairs(pairs), read_agreed(agreed), out)
    if json:
        emit_json({"pairs": count, "out": str(out)})
    else:
        console.print(f"{out}: {count} judged pairs")
