"""Hard negatives against what is true, on a toy world."""

from __future__ import annotations

from dataclasses import replace

from comparison.bench import Bench
from comparison.figures import Coarse
from hard_negatives import shares
from moviola.retrieval import MeanPooling


def test_what_the_pseudo_set_names_is_no_negative_and_what_it_does_not_may_be(bench: Bench) -> None:
    job = bench.job("spr-stage1-n20")
    world = bench.world("report")
    every = world.split("train").pairs
    train = world.split("train", top=1)
    train = replace(train, proposals=Coarse.of(MeanPooling(), train, bench, job).proposals())
    known = shares(train, every)
    assert known[:, 0].any() and not known[:, 1:].any()
    forgotten = replace(train, pairs=replace(train.pairs, beyond=train.pairs.beyond[:0]))
    found = shares(forgotten, every)
    assert found[:, 0].sum() > known[:, 0].sum()
    assert found[:, 1].any() and (found[:, 1] <= found[:, 2]).all() and found.max(axis=0)[2] <= 1
