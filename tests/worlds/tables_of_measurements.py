"""Tables of what was measured once and of published annotations, with what is stored for each row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from printed import Printed
from stored import OVERLAPS, read

__all__ = ["PRINTED"]

Numbers = list[float]


# ---- measured once ---------------------------------------------------------------------------------------


def _three(found: dict[str, float]) -> Numbers:
    return [found[f"nDCG@20,IoU>={over}"] for over in OVERLAPS]


def _edited_models(kind: str) -> list[tuple[str, Numbers]]:
    found = read("edited_models.json")[kind]
    first, *others = ("stage 1, coarse", "SPR_ReLo-S", "Reel")
    return [(f"150 {kind}", _three(found[first])), *(("", _three(found[own])) for own in others)]


def _in_videos(count: int) -> list[Numbers]:
    kept = read("one_video.json")["rows"]
    return [
        [row["nDCG@10,IoU>=0.5"][kind] for kind in ("all", "20", "a quarter")]
        for models in ("none", "demo")
        for row in kept
        if row["models"] == models and row["videos"] == count
    ]


def _sequences(segments: int) -> list[Numbers]:
    names = ("answered", "right among the first 20", "MRR", "processor ms")
    return [[row[name] for name in names] for row in read("sequences.json") if row["segments"] == segments]


def _adapted() -> list[tuple[str, Numbers]]:
    found = read("adapt.json")
    pairs = zip(found[::2], found[1::2], strict=True)
    measured = "nDCG@20,IoU>=0.3"
    return [
        (
            before["encoder"],
            [
                before["lines to learn from"],
                *(
                    own[kind][measured]
                    for kind in ("held-out lines", "test queries")
                    for own in (before, after)
                ),
            ],
        )
        for before, after in pairs
    ]


def _ideas() -> list[tuple[str, Numbers]]:
    made = []
    for place, row in enumerate(read("reel_ideas/results.json")):
        val, test = row["val"], row["test"]
        above = [val["mean_above"][1], *(own[1] for own in val["above"])]
        first = [val["mean"][1], val["deviation"][1]]
        tests = [test["mean"][0], test["mean"][1], test["deviation"][1], test["mean"][2]]
        after = [test["mean_above"][1], *(own[1] for own in test["above"])]
        made.append((row["title"], [*(above if place else first), *tests, *(after if place else [])]))
    return made


def _copies() -> list[tuple[str, Numbers]]:
    found = read("footage/copies.json")
    each = [(kind, [share, found["placed to the second"][kind]]) for kind, share in found["recall"].items()]
    return [*each, ("all", [found["recall of all"]])]


SPINE = {
    "random moments": "random",
    "the same pipeline, encoder with random weights": "untrained encoder, refined",
    "coarse proposals": "coarse proposals",
    "coarse proposals, each 4 s longer in front": "coarse, 4 s in front",
    "refined without training": "refined",
    "trained stage 1, coarse proposals": "trained: coarse proposals",
    "trained stage 1, refined by Reel": "trained: refined",
}


def _spine() -> list[tuple[str, Numbers]]:
    found = read("spine.json")["rows"]
    return [(label, _three(found[row])) for label, row in SPINE.items()]


def _edited() -> list[tuple[str, Numbers]]:
    made = []
    labels = {
        "plain": "24 plain",
        "edited": "24 edited",
        "hour": "an hour and one more, edited",
        "large": "400 plain",
    }
    for kind, label in labels.items():
        found = read("edited.json")[kind]
        # The number of films is in the label, where it is compared as a word.
        first = [found["minutes"], found["test queries"], *_three(found["without training, coarse"])]
        made += [(label, first), ("", _three(found["demo models"]))]
    return made


def _scored(found: dict[str, Any], *, bounds: bool = True) -> Numbers:
    """A row of moments by band; what no query of the kind has is left out."""
    made = [found["queries"], found["calibration error"], found["strong"]]
    shares = (
        "strong right", "answerable with a strong right", "absent with a strong", "strong or possible right",
        "answerable with a possible right",
    )  # fmt: skip
    for name in shares:
        if found[name] is not None:
            made += found[name] if bounds else found[name][:1]
    return made


def _by_evidence() -> list[tuple[str, Numbers]]:
    moments = {(row["by"], row["queries of"]): row for row in read("no_match/results.json")["moments"]}
    said = {row["queries of"]: row for row in read("no_match/lines.json")["lines"]}
    rows = {
        "all evidence, labelled queries": moments["all", "labelled"],
        "all evidence, earlier queries": moments["all", "earlier"],
        "pictures, labelled": moments["visual", "labelled"],
        "pictures, earlier": moments["visual", "earlier"],
        "names alone, labelled": moments["named", "labelled"],
        "text in pictures": moments["text", "written"],
        "likeness of a frame": moments["like", "scenes"],
        "one right mark": moments["marks", "scenes"],
        "lines, all": said["all"],
        "lines: all words are said": said["words"],
        "lines: a share of the words": said["share"],
        "lines: a paraphrase": said["meaning"],
        "lines: nobody says it": said["absent"],
    }
    return [(label, _scored(row)) for label, row in rows.items()]


def _by_kind() -> list[tuple[str, Numbers]]:
    moments = {(row["by"], row["queries of"]): row for row in read("no_match/results.json")["moments"]}
    kinds = ("noun", "phrase", "sentence", "deed", "place", "style", "other language", "absent", "nonsense")
    return [
        (f"{kind}{mark}", _scored(moments[by, kind], bounds=False))
        for by, mark in (("all", ""), ("visual", ", by pictures"))
        for kind in kinds
    ]


def _fitted() -> list[tuple[str, Numbers]]:
    names = ("slope", "line", "certainty", "nearest", "unknown", "calibration error", "strong")
    return [
        (
            row["fitted on"],
            [*(row[name] for name in names), *row["strong right"], *row["absent with a strong"]],
        )
        for row in read("no_match/fit.json")
    ]


def _separated() -> list[tuple[str, Numbers]]:
    names = ("answerable confident", "absent confident", "refused at 95 % kept")
    return [
        (row["case"], [row["answerable"], row["absent"], *row["AUROC"], *(row[name] for name in names)])
        for row in read("no_match/results.json")["queries"]
    ]


ALL_RELEVANT = "Spearman with true relevance, all relevant pairs of training queries"


def _similarities() -> list[tuple[str, Numbers]]:
    found = read("pseudo_similarity.json")
    labels = {
        ALL_RELEVANT: "Spearman with relevance, relevant pairs alone",
        "the same, all pairs": "Spearman with relevance",
        "the same, mean of queries": "Spearman with relevance, mean of queries",
        "mean relevance of a query's best 20 moments": "mean relevance of the best 20",
        "share of these that is not relevant at all": "share of the best 20 that is not relevant",
        "similarity of these, 5 / 25 / 50 / 75 / 95 %": "similarity of the best 20, quantiles",
        "squared": "squared, quantiles",
        "squared, mean at relevance 0 / 1 / 2 / 3 / 4": "squared, by relevance 0 to 4",
        "squared, the 20th beside the first": "squared, 20th beside 1st of a query",
    }
    both = {label: [found[kind][name] for kind in ("slots", "minilm")] for label, name in labels.items()}
    return [
        (label, [number for own in values for number in (own if isinstance(own, list) else [own])])
        for label, values in both.items()
    ]


def _windows() -> list[tuple[str, Numbers]]:
    labels = {
        "Reel, videos read beforehand": "Reel",
        "SPR_CLIP as published": "SPR_CLIP, plain",
        "SPR_CLIP, every window stored": "SPR_CLIP, kept",
        "SPR_ReLo-S as published": "SPR_ReLo-S, plain",
        "SPR_ReLo-S, every window stored": "SPR_ReLo-S, kept",
    }
    found = {row["system"]: row for row in read("refiners.json")}
    rows = [(label, found[system]) for label, system in labels.items()]
    return [
        (label, [row["ms"], row["ratio"], *([row["mb_an_hour"]] if row["mb_an_hour"] else [])])
        for label, row in rows
    ]


def _languages() -> list[tuple[str, Numbers]]:
    found = read("languages/results.json")
    lines = {(row["from, to"], row["by"]): row for row in found["lines"]}
    pictures = {(row["queries"], row["language"]): row["MRR"] for row in found["pictures"]}
    there, back, same = "English to German and Chinese", "German and Chinese to English", "same language"

    def of(direction: str, *encoders: str) -> Numbers:
        return [lines[direction, encoder][recall] for recall in ("R@1", "R@5") for encoder in encoders]

    return [
        (f"60 lines, {there}: MiniLM, e5", of(there, "MiniLM", "e5")),
        (f"{back}: MiniLM, e5, e5 mapped to MiniLM", of(back, "MiniLM", "e5", "e5 mapped to MiniLM")),
        ("60 lines, all in the language of the query: e5", of(same, "e5")),
        (
            "pictures, 20 queries: English; mean of eight languages",
            [pictures["20", language] for language in ("en", "mean of eight")],
        ),
        (
            "pictures, 66 queries: English; German; Chinese",
            [pictures["66", language] for language in ("en", "de", "zh")],
        ),
    ]


# ---- published annotations -------------------------------------------------------------------------------

ANNOTATED = "benchmark/real-annotations.md"
BOTH = ("tvr-val", "charades-sta")


def _annotated(name: str) -> Any:
    return read(f"real_annotations/results/{name}.json")


def _statistics() -> list[tuple[str, Numbers]]:
    names = ("queries", "moments", "videos", "vocabulary", "verbs", "moment_hours", "video_hours")
    sets = {
        "Charades-STA, train and test": "charades-sta",
        "TVR val": "tvr-val",
        "ActivityNet Captions val_2": "activitynet-captions-val_2",
        "TACoS val": "tacos-val",
    }
    return [
        (label, [own for own in map(_annotated(name)["statistics"].get, names) if own is not None])
        for label, name in sets.items()
    ]


def _lengths(found: Any) -> Numbers:
    seconds = [
        found[kind][which]
        for kind in ("moment_seconds", "video_seconds")
        for which in ("least", "mean", "most")
    ]
    return [*seconds, found["ratio"], *(found["query_length"][which] for which in ("least", "mean", "most"))]


def _in_both(*values: Callable[[Any], Any]) -> Numbers:
    """Of TVR val, then of Charades-STA; None and what is no number are not printed."""
    found = [value(_annotated(name)) for name in BOTH for value in values]
    return [own for own in found if own is not None]


def _imprecise() -> list[tuple[str, Numbers]]:
    of = "imprecise"

    def share(name: str) -> tuple[Callable[[Any], Any], ...]:
        def count(own: Any) -> Any:
            return own[of]["below"][name] if name in own[of]["below"] else own[of][name]

        return count, lambda own: count(own) / own[of]["captions"] if count(own) else None

    return [
        (
            "moments; different captions",
            _in_both(lambda own: own["moments"], lambda own: own[of]["captions"]),
        ),
        ("captions that change", _in_both(lambda own: own[of]["changed"])),
        ("words that come in, per moment", _in_both(lambda own: own[of]["words_per_moment"])),
        ("names left, by the second check", _in_both(*share("with_names_left"))),
        ("similarity below .4", _in_both(*share("0.4"))),
        ("the same below .25", _in_both(share("0.25")[0])),
        ("different captions afterwards", _in_both(lambda own: own["captions"]["after"])),
    ]


def _most_frequent() -> Numbers:
    found = _annotated("tvr-val")["imprecise"]
    return [100 * row["count"] / found["replacement_words"] for row in found["most_frequent"]]


def _candidates() -> list[tuple[str, Numbers]]:
    labels = {"queries": "queries", "moments among the candidates": "moments", "videos": "videos"}
    ranks = ("1", "5", "10", "20", "40")
    return [
        *(
            (
                label,
                _in_both(
                    *(
                        lambda own, split=split, name=name: own["splits"][split][name]
                        for split in ("val", "test")
                    )
                ),
            )
            for label, name in labels.items()
        ),
        (
            "mean similarity at rank 1, 5, 10, 20, 40 (test)",
            _in_both(
                *(lambda own, rank=rank: own["splits"]["test"]["similarity_at_rank"][rank] for rank in ranks)
            ),
        ),
    ]


def _made_raters() -> list[tuple[str, Numbers]]:
    def of(name: str, times: float = 1) -> Numbers:
        found = [_annotated(own)["splits"]["test"]["made_raters"][name] for own in BOTH]
        return [times * number for own in found for number in (own if isinstance(own, list) else [own])]

    return [
        ("noise, in levels", of("noise")),
        ("four raters", of("four_raters")),
        ("discarded", of("discarded")),
        ("levels 0 to 4 of the rest, %", of("levels", 100)),
        ("queries with a second batch", of("second_batch")),
    ]


def _pseudo() -> list[tuple[str, Numbers]]:
    return [
        (
            top,
            _in_both(
                lambda own, top=top: own["pseudo"][top]["pairs"],
                lambda own, top=top: own["pseudo"][top]["statistics"]["moments"],
                lambda own, top=top: own["pseudo"][top]["similarity"],
            ),
        )
        for top in ("1", "20", "40")
    ]


def _label_iou(model: str) -> Numbers:
    return [
        row["iou"]
        for name in ("charades-sta-test", "activitynet-val_2")
        for row in read(f"real_annotations/results/studies-{name}.json")["label_iou"]
        if row["model"] == model
    ]


def _answerable() -> list[tuple[str, Numbers]]:
    plain, learned = (read(f"answerable/{name}-0.json") for name in ("reel", "reel-answerable"))
    names = ("AUROC", "Rej-F1,score<=0.2", "Rej-F1,score<=0.5", "G-mIoU@5,score<=0.5", "nDCG@20,IoU>=0.5")
    one_video = ("AUROC", "Rej-F1@0.4", "mAP", "G-mIoU@1 (paper)")

    def found(row: Any) -> Numbers:
        first, *others = (row["measures"][name] for name in names)
        return [first, *row["interval"], *others, *(row["soccer_gmr"][name] for name in one_video)]

    return [
        ("its best score, without the option", found(plain)),
        ("its best score, with it", found(learned)),
        ("the log odds alone", learned["alone"]),
    ]


def _several_libraries() -> list[tuple[str, Numbers]]:
    found = read("several_libraries.json")
    both = [found[name] for name in ("index chosen", "exact search")]

    def in_turn(name: str) -> Numbers:
        return [own[name][kind] for own in both for kind in ("one", "parts")]

    equal = [float(own[name]) for own in both for name in ("answers that are equal", "questions")]
    return [
        ("questions whose 50 best are equal, to the byte", equal),
        ("moments of exact search's that one library / eight give", in_turn("moments of exact search")),
        ("a search, one library / eight, processor ms", in_turn("median processor ms")),
        ("the first one of a process, with opening, processor ms", in_turn("first search, processor ms")),
    ]


def _looks() -> list[tuple[str, Numbers]]:
    names = ["first is right", "nDCG@20,IoU>=0.5"]
    kept = [row for row in read("looker.json")["rows"] if row["counts as"] != "0.75 (measured)"]
    plain, with_models = (
        [row for row in kept if row["system"] == system] for system in ("no training", "demo's models")
    )
    return [
        (
            f"{one['right']}".removeprefix("0") or "no look",
            [
                *(one[name] for name in [*names, "promised", "right of these"]),
                *(other[name] for name in names),
            ],
        )
        for one, other in zip(plain, with_models, strict=True)
    ]


PRINTED = [
    Printed("howto/looker.md", "| verdicts right | counted as", _looks(), (2, None)),
    Printed("howto/plan.md", "| | index that is chosen", _several_libraries()),
    Printed("howto/no-answer.md", "| how sure a query is", _answerable()),
    Printed("papers/002-spr.md", "| system | ms a query", _windows()),
    Printed("papers/000-tvr-ranking.md", "| | slots | MiniLM |", _similarities()),
    Printed("figures.md", "| system | IoU ≥ 0.3", _spine()),
    Printed("figures.md", "| films | minutes", _edited()),
    Printed(
        "figures.md",
        "| searched",
        [
            (label, numbers)
            for count, first in ((1, "one video of some 80 s"), (4, "four"), (24, "all 24"))
            for label, numbers in zip((first, ""), _in_videos(count), strict=True)
        ],
    ),
    Printed(
        "figures.md",
        "| retrieved segments",
        [
            (label, numbers)
            for count in (200, 15)
            for label, numbers in zip((str(count), ""), _sequences(count), strict=True)
        ],
    ),
    Printed(
        "scores.md",
        "| | queries | calibration error | strong moments | of these right | answerable with a r",
        _by_evidence(),
    ),
    Printed("scores.md", "| | queries | calibration error", _by_kind(), place=1),
    Printed("scores.md", "| fitted on", _fitted(), (2, None)),
    Printed("scores.md", "| case", _separated()),
    Printed("howto/encoder.md", "| | right first", _languages()),
    Printed(
        ANNOTATED,
        "| | queries | moments",
        _statistics(),
        without=("paper", "paper, all of TVR", "paper, all of it"),
    ),
    Printed(
        ANNOTATED,
        "| TVR | seconds",
        [
            ("val, all types, names in", _lengths(_annotated("tvr-val")["statistics"])),
            ("val, type v, rewritten, N = 40", _lengths(_annotated("tvr-val")["pseudo"]["40"]["statistics"])),
        ],
        without=("paper, N = 40",),
    ),
    Printed(ANNOTATED, "| | TVR val, type v", _imprecise(), (1, 3)),
    Printed(ANNOTATED, "| rank", [("TVR val", _most_frequent())], without=("paper",)),
    Printed(ANNOTATED, "| | TVR val: val, test", _candidates(), (1, 3)),
    Printed(ANNOTATED, "| | made raters", _made_raters(), (1, 3)),
    Printed(ANNOTATED, "| N | TVR val: pairs", _pseudo(), (1, 3)),
    Printed(
        ANNOTATED,
        "| mean IoU at level",
        [
            ("as the text says (`literal`)", _label_iou("literal")),
            ("`paper_fit`", _label_iou("paper_fit")),
        ],
        without=("printed",),
    ),
    Printed(
        "figures.md", "| films | system", [*_edited_models("edited"), *_edited_models("plain")], (2, None)
    ),
    Printed("figures.md", "| encoder | lines", _adapted()),
    Printed("benchmark/reel-ideas.md", "| | val ≥ .5", _ideas()),
    Printed("benchmark/copies.md", "| kind", _copies()),
]
