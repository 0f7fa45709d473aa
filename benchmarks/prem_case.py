"""What PREM reads of a query, and where it sees the moment begin and end (its paper's figure 5).

    python benchmarks/prem_case.py MODEL FEATURES PAIRS --query ID --tokenizer tokenizer.json --out figures

MODEL is a trained PREM, FEATURES a folder of features, PAIRS a judged pair file of videos in it. Of each
query, in the video of its most relevant moment: the weights of its tokens in the query vector of each stream
(equation 5), and the localizer's confidence that the moment begins, or ends, with a clip, its scores as
probabilities over the clips of this video. Tokens have the names that the tokenizer gives them, else numbers.
A figure and a table for each query, prem-case-1 and so on.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from measure_studies import figures
from measure_studies.reports import Study
from measuring import saying_errors
from moviola.errors import InvalidValue, NotFound
from moviola.features import FeatureFolder, Integers
from moviola.study.models.prem import Prem
from moviola.study.models.pretrained import from_pretrained
from moviola.study.training.batches import token_batch
from moviola.study.training.corpus import encoded_corpus
from moviola.study.training.data import Split
from moviola.study.training.one_video import of_each_video
from moviola.study.training.recipes.prem import PREM

STREAMS = ("pictures", "subtitles")


@dataclass(frozen=True)
class PremCase:
    """A query in the video of its most relevant moment.

    Attributes:
        query, text, video: the query's id and text, and the video's id.
        rows: rows of the query's features, of which a model reads T: all, or the first ones and the last.
        weights: by stream, those of these T tokens, (T,), sum 1.
        boundaries: by boundary, "start" and "end", the confidence in each of the L clips, (L,), sum 1.
        clip_seconds: length of a clip.
        true: the moments in this video that answer the query, in seconds.
    """

    query: str
    text: str
    video: str
    rows: int
    weights: Mapping[str, NDArray[np.float64]]
    boundaries: Mapping[str, NDArray[np.float64]]
    clip_seconds: float
    true: tuple[tuple[float, float], ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", type=Path, help="folder of a trained PREM")
    parser.add_argument("features", type=Path, help="folder of features")
    parser.add_argument("pairs", type=Path, help="judged pair file")
    parser.add_argument("--query", action="append", help="id of a query; repeat. Default: the first.")
    parser.add_argument("--tokenizer", type=Path, help="tokenizer.json of the encoder of the queries")
    parser.add_argument("--out", type=Path, default=Path("study"), help="folder for figures and numbers")
    options = parser.parse_args()
    with saying_errors():
        features = FeatureFolder.open(options.features)
        split = Split.read(features, options.pairs, list(features.durations))
        model = from_pretrained(options.model, kind=Prem)
        wanted = options.query or split.pairs.query_ids[:1]
        for number, case in enumerate(prem_cases(model, split, wanted), 1):
            made = prem_study(case, token_names(case, options.tokenizer), f"prem-case-{number}")
            print(*made.write(options.out), sep="\n")


@torch.no_grad()
def prem_cases(model: Prem, split: Split, queries: Sequence[str]) -> list[PremCase]:
    """What a model makes of some queries of a split, by id, in this order.

    Raises:
        NotFound: a query has no moment in the split that answers it.
        InvalidValue: the model's pooling has no weights.
    """
    found: dict[str, PremCase] = {}
    for part in of_each_video(split):
        here = [row for row, name in enumerate(part.pairs.query_ids) if name in queries]
        if here:
            found |= {case.query: case for case in _cases_in_video(model, part, np.array(here))}
    if missing := [name for name in queries if name not in found]:
        raise NotFound(f"query {missing[0]!r}: no moment of these videos answers it; give another id")
    return [found[name] for name in queries]


def _cases_in_video(model: Prem, part: Split, rows: Integers) -> Iterator[PremCase]:
    videos, tokens = PREM.inputs(model, part)
    query, mask = token_batch(tokens, rows)
    context = encoded_corpus(model, videos)
    only_video = torch.zeros(len(rows), dtype=torch.int64)
    found = model.boundaries(model.encode_query(query, mask), context, only_video)
    weights = model.retriever.token_weights(query, mask)
    sizes = model.config.visual_size, model.config.subtitle_size
    streams = [name for name, size in zip(STREAMS, sizes, strict=True) if size]
    pairs = part.pairs
    for place, row in enumerate(rows.tolist()):
        count = int(mask[place].sum())
        own = pairs.moment[(pairs.query == row) & (pairs.relevance > 0)]
        yield PremCase(
            pairs.query_ids[row], pairs.texts[row], pairs.videos[0], len(tokens.rows[row]),
            dict(zip(streams, weights[place, :, :count].double().numpy(), strict=True)),
            {
                "start": found.start[place].double().softmax(0).numpy(),
                "end": found.end[place].double().softmax(0).numpy(),
            },
            part.features.clip_seconds * float(videos.stretch[0]),
            tuple(zip(pairs.start[own].tolist(), pairs.end[own].tolist(), strict=True)),
        )  # fmt: skip


def token_names(case: PremCase, tokenizer: Path | None) -> list[str]:
    """A name for each token that the model reads: the tokenizer's, or numbers from 1 without one.

    Where the features have one row more than the text has tokens, it is the first, of the whole sentence, as
    in the comparison (:mod:`comparison.streams`).

    Raises:
        InvalidValue: no readable tokenizer, or another number of tokens than the features have rows.
    """
    if tokenizer is None:
        names = [str(number + 1) for number in range(case.rows)]
    else:
        words = _words(case.text, tokenizer)
        names = [*["(sentence)"] * (case.rows == len(words) + 1), *words]
    if len(names) != case.rows:
        raise InvalidValue(
            f"query {case.query!r}: {case.rows} rows of features, but {len(names)} tokens by {tokenizer}; "
            "give the tokenizer of the encoder that made them, or none"
        )
    read = len(next(iter(case.weights.values())))
    return names if read == len(names) else [*names[: read - 1], names[-1]]


def _words(text: str, tokenizer: Path) -> list[str]:
    try:
        words = Tokenizer.from_file(str(tokenizer)).encode(text).tokens
    except Exception as error:  # tokenizers has no narrower one
        raise InvalidValue(
            f"{tokenizer}: no readable tokenizer ({error}); give a checkpoint's tokenizer.json, or none"
        ) from error
    return [word.removesuffix("</w>") for word in words]


def prem_study(case: PremCase, names: Sequence[str], name: str) -> Study:
    """A case as a table and a figure of this name; ``names`` are those of its tokens."""
    rows: list[tuple[object, ...]] = [
        (case.query, case.video, stream, token, None, float(weight))
        for stream, weights in case.weights.items()
        for token, weight in zip(names, weights, strict=True)
    ]
    rows += [
        (case.query, case.video, boundary, None, clip * case.clip_seconds, float(confidence))
        for boundary, curve in case.boundaries.items()
        for clip, confidence in enumerate(curve)
    ]
    figure = figures.reading(
        names, {stream: own.tolist() for stream, own in case.weights.items()},
        {boundary: own.tolist() for boundary, own in case.boundaries.items()},
        clip_seconds=case.clip_seconds, true=case.true, title=f"“{case.text}” in {case.video}",
    )  # fmt: skip
    return Study.of(name, "query video curve token seconds value", rows, figure)


if __name__ == "__main__":
    main()
