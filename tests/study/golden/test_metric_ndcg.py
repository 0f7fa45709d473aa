"""NDCG@K, IoU≥μ against what the releases of TVR-Ranking and SPR compute, queries left out included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from moviola.study.measures import Qrels, Run, evaluate

NAME = "metric_ndcg"


@pytest.mark.parametrize("preset", ["tvr_ranking", "spr"])
def test_every_case(fixture: dict[str, Any], preset: str) -> None:
    atol = fixture["tolerance"]["atol"]
    sign = ">" if preset == "tvr_ranking" else ">="
    names = {(k, mu): f"nDCG@{k},IoU{sign}{mu}" for k in fixture["K"] for mu in fixture["mu"]}
    for case, content in fixture["cases"].items():
        expected = content["expected"][preset]
        run = Run.from_dict(content["predictions"], zero_length=True)
        qrels = Qrels.from_dict(content["qrels"])
        results = evaluate(run, qrels, names.values(), preset)

        assert results.queries == expected["queries_in_mean"], case
        assert set(results.query_ids) == set(expected["per_query"]), case
        unpredicted = expected["left_out_because_unpredicted"]
        assert set(results.missing) == set(unpredicted), case
        left_out = set(qrels.query_ids) - set(results.query_ids) - set(results.missing)
        assert left_out == set(expected["left_out_because_without_relevant_moment"]), case
        assert left_out <= set(results.without_relevant), case
        for (k, mu), name in names.items():
            assert results.measures[name] == pytest.approx(expected["mean"][str(k)][str(mu)], abs=atol), case
            want = [expected["per_query"][query][str(k)][str(mu)] for query in results.query_ids]
            np.testing.assert_allclose(
                results.per_query[name], want, rtol=0, atol=atol, err_msg=f"{case} {name}"
            )


@pytest.mark.parametrize("preset", ["tvr_ranking", "spr"])
def test_the_preset_decides_the_overlap_sign(fixture: dict[str, Any], preset: str) -> None:
    for content in fixture["cases"].values():
        run, qrels = (
            Run.from_dict(content["predictions"], zero_length=True),
            Qrels.from_dict(content["qrels"]),
        )
        one, other = (evaluate(run, qrels, f"nDCG@20,IoU{sign}0.5", preset) for sign in (">", ">="))
        assert list(one.measures.values()) == list(other.measures.values())
