"""Standard measures of information retrieval on matched moments, through ``ir_measures`` or ``ranx``.

Both are optional. They get the matched form (:func:`moviola.measures.match_documents`), so ``nDCG@20`` of
theirs is over moments, at the IoU threshold given. A judged query that the run does not answer counts 0.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import Any

from moviola.errors import InvalidValue, MissingDependency
from moviola.measures.trec import Matched

__all__ = ["with_ir_measures", "with_ranx"]


def with_ir_measures(matched: Matched, measures: Iterable[str]) -> dict[str, float]:
    """Means of ``ir_measures`` by name, for instance ``nDCG@20``, ``AP``, ``RR@10``.

    Raises:
        MissingDependency: the package is not installed.
        InvalidValue: it does not know a measure.
    """
    tool = _optional("ir_measures")
    names = list(measures)
    try:
        parsed = [tool.parse_measure(name) for name in names]
    except (ValueError, NameError) as error:
        raise InvalidValue(f"ir_measures: {error}") from None
    found = tool.calc_aggregate(parsed, matched.qrels, _answered(matched))
    return {name: float(found[measure]) for name, measure in zip(names, parsed, strict=True)}


def with_ranx(matched: Matched, measures: Iterable[str]) -> dict[str, float]:
    """Means of ``ranx`` by name, for instance ``ndcg_burges@20`` (gain 2^grade - 1), ``map``, ``mrr@10``.

    Raises:
        MissingDependency: the package is not installed.
        InvalidValue: it does not know a measure.
    """
    tool = _optional("ranx")
    names = list(measures)
    try:
        found = tool.evaluate(tool.Qrels(matched.qrels), tool.Run(_answered(matched)), names)
    except (ValueError, KeyError) as error:
        raise InvalidValue(f"ranx: {error}") from None
    # One measure comes back as a number, several as a mapping.
    return {name: float(found[name] if len(names) > 1 else found) for name in names}


def _answered(matched: Matched) -> dict[str, dict[str, float]]:
    """The run on exactly the judged queries; one without answer holds a document that nobody judged."""
    return {query: matched.run.get(query) or {"unmatched:nothing": 0.0} for query in matched.qrels}


def _optional(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        package = name.replace("_", "-")
        raise MissingDependency(f"{name} is not installed; run: pip install {package}") from None
