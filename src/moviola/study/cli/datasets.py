"""``moviola dataset``: commands on annotations; ``moviola gridhouse``: generated films with exact ones."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from rich.progress import BarColumn, MofNCompleteColumn, TimeRemainingColumn
from typer import Argument, Option, Typer

from moviola.cli.app import JsonOption, command_group, leave_partial, note, show, show_records, some
from moviola.cli.config import usual_sentence_encoder
from moviola.cli.options import out_option
from moviola.cli.progress import progress_bar
from moviola.errors import InvalidValue, counted
from moviola.files.writing import require_unread, write_json
from moviola.study.cli import STUDIES

if TYPE_CHECKING:
    from moviola.encoders import SentenceEncoder

commands = Typer()
"""What this module adds to ``moviola``."""

dataset = command_group(
    "dataset", "Annotations of data sets: read, build ranked ones.", below=commands, panel=STUDIES
)


@dataset.command("consensus")
def consensus_(
    ratings: Annotated[Path, Argument(help="CSV with pair_id, worker, relevance.")],
    out: Annotated[Path, out_option("File for the agreed levels (CSV).")],
    json: JsonOption = False,
) -> None:
    """Compute the agreed relevance of pairs by TVR-Ranking's rule, and the raters' agreement.

    Every rating counts, also a second one of a pair by the same worker, as in the paper; these are named.

    Example: `moviola dataset consensus raw_annotation.csv --out agreed.csv`

    From Python: `moviola.study.datasets.building.consensus.consensus` and `agreement`.
    """
    from moviola.study.datasets.building.annotation_files import read_ratings, write_agreed
    from moviola.study.datasets.building.consensus import agreement, consensus, repeated

    require_unread(out, ratings)
    given = read_ratings(ratings)
    outcome, figures = consensus(given), agreement(given)
    write_agreed(outcome.agreed, out)
    counts = {name: len(getattr(outcome, name)) for name in ("agreed", "discarded", "open", "uncountable")}
    levels = figures.histogram.tolist()
    more = {
        "levels": levels, "kappa": figures.kappa, "weighted_kappa": figures.weighted_kappa,
        "low_high": figures.low_high.tolist(),
    }  # fmt: skip
    show(
        json, counts | more,
        f"{out}: {counted(counts['agreed'], 'pair')} agreed, {counts['discarded']} discarded, "
        f"{counts['open']} in need of more ratings, {counts['uncountable']} with another number of ratings",
        "levels 0 to 4: " + " / ".join(map(str, levels)),
        f"Cohen's kappa {figures.kappa:.3f}, weighted by squares {figures.weighted_kappa:.3f}",
    )  # fmt: skip
    if again := repeated(given):
        names = some([f"{pair} by {worker}" for pair, worker in again])
        both = "which counts" if len(again) == 1 else "which count"
        note(f"{counted(len(again), 'rating')} by a worker who had rated the pair before, {both}: {names}")


def _sentence_encoder() -> SentenceEncoder:
    from moviola.encoders import load_sentence_encoder

    return load_sentence_encoder(usual_sentence_encoder(), resident=True)


AnnotationsArgument = Annotated[
    Path,
    Argument(
        help="Annotations of TVR, TVR-Ranking, Charades-STA (durations_test.csv beside it counts), "
        "ActivityNet Captions, TACoS, QVHighlights, DiDeMo, or a benchmark of `moviola public`."
    ),
]


@dataset.command()
def stats(
    path: AnnotationsArgument,
    verbs: Annotated[bool, Option("--verbs", help="Count verbs, too, with moviola[language].")] = False,
    json: JsonOption = False,
) -> None:
    """Show the columns of TVR-Ranking's Tables 1 and 4, and the flaws of an annotation file.

    Example: `moviola dataset stats tvr_val_release.jsonl`

    From Python: `moviola.study.datasets.statistics.statistics`.
    """
    from moviola.study.datasets.readers import QUERIES_OF, kind_of, read_annotations
    from moviola.study.datasets.statistics import statistics

    found = read_annotations(path)
    kind = kind_of(path)
    figures = statistics(found, QUERIES_OF[kind](path) if kind in QUERIES_OF else None, count_verbs=verbs)
    values = {}
    for name in ("queries", "moments", "videos", "vocabulary", "verbs"):
        count = getattr(figures, name)
        values[name] = "–" if count is None else f"{count:,}"
    values["hours of moments"] = f"{figures.moment_hours:.2f}"
    values["hours of videos"] = f"{figures.video_hours:.2f}"
    spreads = figures.query_length, figures.moment_seconds, figures.video_seconds
    for name, spread in zip(("query length (words)", "moment (s)", "video (s)"), spreads, strict=True):
        values[name] = f"{spread.least:.2f} / {spread.mean:.2f} / {spread.most:.2f}"
    values["moment / video"] = f"{figures.ratio:.2f}"
    for flaw, count in found.flaw_counts.items():
        first = next(f.where for f in found.flaws if f.kind == flaw)
        values[flaw] = f"{count} (first: {first})"
    show_records(json, {**asdict(figures), "flaws": found.flaws}, ("figure", "value"), values.items())


@dataset.command()
def pseudo(
    path: Annotated[Path, Argument(help="Annotations with the pool of moments.")],
    out: Annotated[Path, out_option("File for the training set (TVR-Ranking JSON).")],
    top: Annotated[int, Option(min=1, help="Number of moments per query, N of the paper.")] = 40,
    queries: Annotated[
        Path | None,
        Option(help="Queries: JSON, or one query per line; by default the captions of the pool, each once."),
    ] = None,
    held_out: Annotated[
        list[Path] | None, Option(help="Pair file (val, test) whose queries are left out; repeatable.")
    ] = None,
    json: JsonOption = False,
) -> None:
    """Build a pseudo training set: each query with the moments whose captions are most similar.

    Example: `moviola dataset pseudo captions.json --top 20 --out train_top20.json`

    From Python: `moviola.study.datasets.building.steps.pseudo_pairs`.
    """
    from moviola.study.datasets.building.steps import pseudo_pairs
    from moviola.study.datasets.readers import durations_beside, read_annotations
    from moviola.study.datasets.readers.queries import read_queries

    require_unread(out, path, queries, durations_beside(path), *(held_out or ()))
    found = read_annotations(path)
    banned = [query.text for file in held_out or [] for query in read_queries(file)]
    texts = None if queries is None else [query.text for query in read_queries(queries)]
    embed = _sentence_encoder()
    entries = pseudo_pairs(found, embed, top, queries=texts, held_out=banned)
    write_json(out, entries)
    pairs = sum(len(entry["relevant_moment"]) for entry in entries)
    said = f"{out}: {counted(len(entries), 'query')}, {counted(pairs, 'pair')}"
    show(json, {"queries": len(entries), "pairs": pairs, "out": str(out)}, said)


@dataset.command()
def convert(
    path: AnnotationsArgument,
    out: Annotated[Path, out_option("File to write (TVR's jsonl; JSON with --pairs).")],
    pairs: Annotated[bool, Option("--pairs", help="Write each query with its own moments.")] = False,
    json: JsonOption = False,
) -> None:
    """Convert annotations of any data set to TVR's jsonl, the form that other programs read.

    With --pairs the result is for `moviola train` and `answer`; `moviola evaluate --tvr` reads the jsonl.
    Flaws are named; where a moment or a query with a flaw is left out, the exit code is 3.

    Example: `moviola dataset convert val_2.json --out activitynet_val.jsonl`

    From Python: `moviola.study.datasets.readers.read_annotations`, `write_tvr` and `write_own_pairs`.
    """
    from moviola.study.datasets.annotations import LEFT_OUT
    from moviola.study.datasets.readers import durations_beside, read_annotations, write_own_pairs, write_tvr

    require_unread(out, path, durations_beside(path))
    if pairs and out.suffix == ".jsonl":
        raise InvalidValue(f"{out}: pairs are one JSON list, not lines; give a file that ends in .json")
    found = read_annotations(path)
    (write_own_pairs if pairs else write_tvr)(found, out)
    flaws = found.flaw_counts
    about = {"out": str(out), "moments": len(found), "flaws": flaws}
    show(json, about, f"{out}: {counted(len(found), 'moment')}")
    for flaw, count in flaws.items():
        fate = "left out: " if flaw in LEFT_OUT else ""
        note(f"{fate}{flaw}: {count:,} ({some([one.where for one in found.flaws if one.kind == flaw])})")
    if LEFT_OUT & flaws.keys():
        leave_partial()


@dataset.command()
def imprecise(
    path: Annotated[Path, Argument(help="Annotations with precise captions.")],
    out: Annotated[Path, out_option("File for the imprecise captions (TVR's jsonl).")],
    types: Annotated[str, Option(help="Types of moments, such as v,vt for TVR; by default all.")] = "",
    endpoint: Annotated[str, Option(help="OpenAI-compatible chat endpoint; by default rules rewrite.")] = "",
    model: Annotated[str, Option(help="Name of the chat model.")] = "",
    names: Annotated[str, Option(help="Check for remaining names: spacy, or lexicon.")] = "spacy",
    threshold: Annotated[
        float, Option(min=-1, max=1, help="Least similarity of a caption and its rewrite.")
    ] = 0.4,
    json: JsonOption = False,
) -> None:
    """Replace names in captions by general nouns; run it again to continue, or after editing the review file.

    Each rewrite must keep the meaning (sentence similarity) and contain no name. Failures are in
    OUT.review.csv, which the next run reads; fill in its column `final`. MOVIOLA_CHAT_KEY has the key of the
    endpoint.

    Example: `moviola dataset imprecise tvr_val_release.jsonl --types v --out imprecise.jsonl`

    From Python: `moviola.study.datasets.building.steps.rewrite_captions`.
    """
    from moviola.study.datasets.building.chat import ChatEndpoint
    from moviola.study.datasets.building.steps import rewrite_captions
    from moviola.study.datasets.readers import durations_beside, read_annotations, write_tvr

    review = out.with_name(out.name + ".review.csv")
    require_unread(out, path, durations_beside(path), review)
    require_unread(review, path, durations_beside(path))
    if bool(endpoint) != bool(model):
        raise InvalidValue("--endpoint and --model go together: give both or neither")
    key = os.environ.get("MOVIOLA_CHAT_KEY", "")
    made = rewrite_captions(
        read_annotations(path), _sentence_encoder(),
        out.with_name(out.name + ".journal"), review,
        types=types.replace(" ", "").split(",") if types else (),
        endpoint=ChatEndpoint(endpoint, model, key) if endpoint else None,
        names=names, threshold=threshold,
    )  # fmt: skip
    write_tvr(made.moments, out)
    outcome = made.outcome
    figures = {
        "moments": len(made.moments), "queries": len(set(made.moments.captions)),
        "captions": made.captions, "changed": made.changed, "reviewed": made.reviewed,
        "failed": len(outcome.failed), "open": len(outcome.open), "out": str(out), "review": str(review),
    }  # fmt: skip
    for line in outcome.trouble:
        note(line)
    show(json, figures, *(f"{name:>10}  {value}" for name, value in figures.items()))
    if outcome.failed or outcome.open:
        leave_partial()


@dataset.command()
def split(
    path: Annotated[Path, Argument(help="Annotations with imprecise captions.")],
    out: Annotated[Path, out_option("Folder for val_queries.json and test_queries.json.")],
    val: Annotated[int, Option(min=1, help="Number of queries for validation.")] = 500,
    test: Annotated[int, Option(min=1, help="Number of queries for test.")] = 2781,
    seed: Annotated[int, Option(min=0, help="Random seed.")] = 0,
    json: JsonOption = False,
) -> None:
    """Draw val and test queries from the captions at random; no text is in both.

    Example: `moviola dataset split imprecise.jsonl --val 50 --test 200 --out ranked`

    From Python: `moviola.study.datasets.building.candidate_pairs.draw_queries`.
    """
    from moviola.study.datasets.building.candidate_pairs import draw_queries
    from moviola.study.datasets.readers import read_annotations

    counts = {"val": val, "test": test}
    files = {name: out / f"{name}_queries.json" for name in counts}
    for file in files.values():
        require_unread(file, path)
    for name, queries in draw_queries(read_annotations(path).captions, counts, seed).items():
        write_json(
            files[name], [{"query_id": number, "query": query} for number, query in queries.items()], indent=0
        )
    show(json, counts, f"{out}: {counted(val, 'query')} for validation, {test} for test")


@dataset.command()
def candidates(
    path: Annotated[Path, Argument(help="Annotations with imprecise captions.")],
    queries: Annotated[Path, Option(help="Queries to annotate: JSON, or one query per line.")],
    out: Annotated[Path, out_option("File for the candidate pairs (CSV).")],
    top: Annotated[int, Option(min=1, max=60, help="Number of candidates per query, in batches of 20.")] = 40,
    drawn: Annotated[
        int,
        Option(
            min=0, help="Further ones per query, drawn from the others: how relevance follows similarity."
        ),
    ] = 0,
    seed: Annotated[int, Option(min=0, help="Random seed of the drawn ones.")] = 0,
    json: JsonOption = False,
) -> None:
    """Find the moments most similar to each query, for people to judge.

    `moviola dataset tasks` takes batches 1 and 2 of them; those of --top 60 --drawn 60, as in TVR-Ranking's
    study of relevance and similarity, are rated as they are.

    Example: `moviola dataset candidates imprecise.jsonl --queries val.json --out pairs.csv`

    From Python: `moviola.study.datasets.building.steps.find_candidates`.
    """
    from moviola.study.datasets.building.annotation_files import write_pairs
    from moviola.study.datasets.building.steps import find_candidates
    from moviola.study.datasets.readers import durations_beside, read_annotations
    from moviola.study.datasets.readers.queries import read_queries

    require_unread(out, path, queries, durations_beside(path))
    texts = {query.query_id: query.text for query in read_queries(queries)}
    found = read_annotations(path)
    pairs = find_candidates(texts, found, _sentence_encoder(), top, drawn=drawn, seed=seed)
    write_pairs(pairs, out)
    said = f"{out}: {counted(len(pairs), 'pair')} of {counted(len(texts), 'query')}"
    show(json, {"queries": len(texts), "pairs": len(pairs), "out": str(out)}, said)


@dataset.command()
def tasks(
    pairs: Annotated[Path, Argument(help="Candidate pairs (CSV of `candidates`).")],
    out: Annotated[Path, out_option("File for the pairs to rate (CSV).")],
    agreed: Annotated[
        Path | None, Option(help="Agreed levels of first batches; then second batches are written where due.")
    ] = None,
    last: Annotated[int, Option(min=1, help="Candidates that decide about the next batch.")] = 5,
    threshold: Annotated[float, Option(help="Mean level of these from which the next batch is due.")] = 2.0,
    json: JsonOption = False,
) -> None:
    """Write the pairs to rate: first batches, or the second batches that are due.

    Example: `moviola dataset tasks pairs.csv --out batch1.csv`

    From Python: `moviola.study.datasets.building.candidate_pairs.next_pairs`.
    """
    from moviola.study.datasets.building.annotation_files import read_agreed, read_pairs, write_pairs
    from moviola.study.datasets.building.candidate_pairs import next_pairs

    require_unread(out, pairs, agreed)
    known = read_pairs(pairs)
    if agreed is None:
        due = [pair for pair in known if pair.batch == 1]
    else:
        due = next_pairs(known, read_agreed(agreed), last=last, threshold=threshold)
    write_pairs(due, out)
    queries = len({pair.query_id for pair in due})
    said = f"{out}: {counted(len(due), 'pair')}"
    show(json, {"pairs": len(due), "queries": queries, "out": str(out)}, said)


@dataset.command()
def exam(
    answers: Annotated[Path, Argument(help="CSV with pair_id, worker, relevance of the exam's pairs.")],
    json: JsonOption = False,
) -> None:
    """Evaluate a qualification exam: each rater's distance from the median, best first, and agreement.

    Out of consensus: more than one level from the median. Kappa: Cohen's with the other raters.

    Example: `moviola dataset exam exam_ratings.csv`

    From Python: `moviola.study.datasets.building.consensus.exam`.
    """
    from moviola.study.datasets.building.annotation_files import read_ratings
    from moviola.study.datasets.building.consensus import exam

    found = exam(read_ratings(answers))
    rows = (
        (worker, f"{rater.distance:.3f}", f"{rater.out_of_consensus:.1%}", f"{rater.kappa:.2f}")
        for worker, rater in found.raters.items()
    )
    show_records(json, found, ("rater", "distance", "out of consensus", "kappa"), rows)
    if not json:
        note(f"mean out of consensus {found.out_of_consensus:.1%}, mean kappa {found.kappa:.2f}")


@dataset.command()
def judgements(
    pairs: Annotated[Path, Argument(help="Candidate pairs (CSV of `candidates`).")],
    agreed: Annotated[Path, Option(help="Agreed levels (CSV of `consensus`).")],
    out: Annotated[Path, out_option("File for the judged pairs (TVR-Ranking JSON).")],
    json: JsonOption = False,
) -> None:
    """Join candidates and agreed levels into a ranked set such as val.json.

    Example: `moviola dataset judgements pairs.csv --agreed agreed.csv --out val.json`

    From Python: `moviola.study.datasets.building.annotation_files.write_judgements`.
    """
    from moviola.study.datasets.building.annotation_files import read_agreed, read_pairs, write_judgements

    require_unread(out, pairs, agreed)
    known, levels = read_pairs(pairs), read_agreed(agreed)
    count = write_judgements(known, levels, out)
    unknown = list(levels.keys() - {pair.pair_id for pair in known})
    found = {"pairs": count, "out": str(out), "unknown": sorted(unknown)}
    show(json, found, f"{out}: {counted(count, 'judged pair')}")
    if unknown:
        note(f"{agreed}: left out: {counted(len(unknown), 'pair')} not in {pairs}: {some(sorted(unknown))}")
        leave_partial()


@dataset.command("relevant-pairs")
def relevant_pairs_(
    path: AnnotationsArgument,
    out: Annotated[Path, out_option("File for the pairs (.npz).")],
    phi: Annotated[str, Option(help="Measure Phi: sent, vp or np-vp.")] = "np-vp",
    theta: Annotated[float, Option(help="Threshold of Phi, in (0, 1].")] = 0.7,
    json: JsonOption = False,
) -> None:
    """Find potentially relevant pairs of captions, for training (+PR, +SL).

    Example: `moviola dataset relevant-pairs charades_sta_train.txt --out pairs.npz`

    From Python: `moviola.study.datasets.building.steps.find_relevant_pairs`.
    """
    from moviola.study.datasets.building.relevant_pairs import write_relevant_pairs
    from moviola.study.datasets.building.steps import find_relevant_pairs
    from moviola.study.datasets.readers import durations_beside, read_annotations

    require_unread(out, path, durations_beside(path))
    captions = read_annotations(path).captions
    embed = _sentence_encoder()
    pairs = find_relevant_pairs(captions, embed, phi=phi, theta=theta)
    write_relevant_pairs(pairs, out)
    found = f"{counted(len(pairs), 'ordered pair')} of {counted(pairs.count, 'caption')}"
    counts = {"captions": pairs.count, "pairs": len(pairs), "phi": phi, "theta": theta, "out": str(out)}
    show(json, counts, f"{out}: {found} with Phi {phi} >= {theta}")


@commands.command(rich_help_panel=STUDIES, short_help="Generate films with captions and judgements.")
def gridhouse(
    folder: Annotated[Path, Argument(help="Folder for the data set.")],
    videos: Annotated[int, Option(min=1, help="Number of ordinary films, 45 to 120 s each.")] = 24,
    seed: Annotated[int, Option(min=0, help="Random seed; the same seed gives the same annotation.")] = 0,
    workers: Annotated[int | None, Option(min=1, help="Processes; by default one per core.")] = None,
    subtitles: Annotated[bool, Option("--subtitles", help="Write subtitle files of a narrator.")] = False,
    long_videos: Annotated[int, Option(min=0, help="Number of further films of ten minutes.")] = 0,
    hour: Annotated[bool, Option("--hour", help="Add a film of an hour.")] = False,
    filler: Annotated[int, Option(min=0, help="Number of further films in which nothing happens.")] = 0,
    edited: Annotated[
        bool, Option("--edited", help="Films of several takes, cut as films are, in many sizes and rates.")
    ] = False,
    edited_videos: Annotated[
        int, Option(min=0, help="Number of further films that are edited, beside plain ones.")
    ] = 0,
    similarity: Annotated[
        str, Option(help="Similarity for pseudo labels: slots, a sentence encoder such as minilm, or truth.")
    ] = "slots",
    absent: Annotated[
        float, Option(min=0, help="Further queries that nothing answers, as a share of the others.")
    ] = 0.0,
    json: JsonOption = False,
) -> None:
    """Generate films of robots in houses, with captions, queries and judgements in TVR-Ranking's format.

    A second call with another --similarity or --absent keeps the films and writes new annotations.

    Example: `moviola gridhouse world --videos 200 --seed 1`

    From Python: `moviola.study.datasets.gridhouse.build`.
    """
    from moviola.media import write_video
    from moviola.study.datasets.gridhouse import build

    with progress_bar(
        BarColumn(), MofNCompleteColumn(), TimeRemainingColumn(), remedy="run the same command again"
    ) as bar:
        task = bar.add_task("making films", total=None)
        report = build(
            folder, videos=videos, seed=seed, workers=workers or os.cpu_count() or 1, write_video=write_video,
            subtitles=subtitles, long_videos=long_videos, hour=hour, filler=filler, edited=edited,
            edited_videos=edited_videos, similarity=similarity,
            absent=absent, progress=lambda done, total: bar.update(task, completed=done, total=total),
        )  # fmt: skip
    queries = ", ".join(f"{count} {split}" for split, count in report.queries.items())
    queries += f"; {report.unanswered} further ones that nothing answers" if report.unanswered else ""
    levels = ", ".join(f"{level}: {count}" for level, count in report.levels.items())
    show(
        json, report,
        f"{folder}: {report.videos} films of {report.mean_duration:.0f} s on average, "
        f"{report.moments} moments of {report.mean_moment:.1f} s ({report.mean_ratio:.2f} of a film)",
        f"queries: {queries}; {report.relevant_per_query:.1f} relevant moments each ({levels})",
    )  # fmt: skip
