"""A search on a library with trained models needs no torch, and gives what torch gives."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from cold_commands import cold
from moviola.compiled import Compiled, Source
from moviola.features import QueryFeatures
from moviola.library.derived.indexes import published_index
from moviola.retrieval import Proposals, load_stage1
from moviola.retrieval.compiled_models import CompiledRunner, Graphs
from moviola.retrieval.model_parts import ReelParts, WindowParts
from moviola.retrieval.refiners.trained import WindowRefiner
from moviola.retrieval.trained_models import load_compiled_refiner, load_compiled_stage1, load_refiner
from moviola.search import Library
from moviola.study.models.graphs import convert_part
from moviola.study.models.parts import parts_of
from moviola.study.models.pretrained import build, from_pretrained
from moviola.study.models.running import TorchRunner

Trained = Callable[..., Path]

SCRIPT = """
import sys
from moviola import Library
with Library(sys.argv[1], read_only=True) as library:
    found = library.search("a red square", top_k=5)
    assert found
    heavy = {"torch", "transformers", "av"} & {*sys.modules}
    assert not heavy, heavy
"""


def test_no_torch_is_imported(library: Library, trained: Trained) -> None:
    library.indexer.use(stage1=trained("spr-stage1"), refiner=trained("reel"))
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, library.folder], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


UNNEEDED = [
    "faiss", "rich", "click", "pydantic", "numpy.ma", "safetensors", "scipy", "torch", "av",
    "openvino", "importlib.metadata", "moviola.compiled", "moviola.encoders.conse", "moviola.encoders.graphs",
    "moviola.encoders.hub", "moviola.features.published", "moviola.index.reranked", "moviola.library.check",
    "moviola.library.disk.fingerprints", "moviola.library.disk.models_in_use", "moviola.library.ingest",
    "moviola.library.library_source", "moviola.library.mending", "moviola.library.near_copies",
    "moviola.library.united_store", "moviola.media", "moviola.retrieval.trained_models",
    "moviola.search.concepts", "moviola.search.facets", "moviola.search.negations", "moviola.search.saved",
    "moviola.server",
]  # fmt: skip
"""What a first search in a small library imported once, or would: half of its time were imports."""


def test_what_a_cold_search_does_not_import(library: Library) -> None:
    """With one encoder and without those of other families, into a pipe."""
    found = cold(["search", "a red square", "--weak", "--library", library.folder], UNNEEDED)
    assert found.returncode == 0, found.stderr
    assert found.stdout.count("\t") > 4


def test_what_comparing_names_does_not_import(films: Path, tmp_path: Path) -> None:
    """By their meaning: neither the library of tokenizers, for a text in ASCII, nor half of NumPy."""
    with Library(tmp_path / "library", encoder="none", sentence_encoder="minilm") as library:
        library.index(films)
    found = cold(
        ["search", "a lighthouse", "--weak", "--library", tmp_path / "library"], [*UNNEEDED, "tokenizers"]
    )
    assert found.returncode == 0, found.stderr


def index_dim(library: Library) -> int:
    index = published_index(library.store, "segments")
    assert index is not None
    return index.dim


def test_a_stage_1_may_have_vectors_of_another_size(library: Library, trained: Trained) -> None:
    library.indexer.use(stage1=trained("reel-stage1"))
    found = library.search("a red square", top_k=5)
    assert found and index_dim(library) == 16
    library.indexer.use(stage1="none")
    assert index_dim(library) == 128
    library.indexer.use(stage1=trained("reel-stage1"))
    assert library.search("a red square", top_k=5) == found


def test_graphs_lie_in_the_cache_and_only_those_in_use(library: Library, trained: Trained) -> None:
    graphs = library.folder / "cache" / "compiled"
    library.indexer.use(stage1=trained("spr-stage1"), refiner=trained("reel"))
    parts = sorted(path.name.split("-")[1] for path in graphs.iterdir())
    assert parts == ["clips", "queries", "query", "segments", "spans"]
    library.indexer.use(refiner="none")
    assert sorted(path.name.split("-")[1] for path in graphs.iterdir()) == ["queries", "segments"]
    library.indexer.use(stage1="none")
    assert not list(graphs.iterdir())


def test_graphs_that_a_reader_lacks_are_made_in_the_users_cache(
    library: Library, trained: Trained, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOVIOLA_COMPILED", str(tmp_path / "users"))
    library.indexer.use(stage1=trained("spr-stage1"))
    wanted = library.search("a red square")
    graphs = library.folder / "cache" / "compiled"
    for path in sorted(graphs.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    with Library(library.folder, read_only=True) as reader:
        assert reader.search("a red square") == wanted
    assert not list(graphs.glob("*"))
    revision = library.settings.stage1_revision
    # No segment is embedded for a text.
    assert [path.name.split("-")[1] for path in (tmp_path / "users").glob(f"{revision}-*")] == ["queries"]


# ---- against torch ----------------------------------------------------------------------------------------


def rows(*shape: int) -> NDArray[np.float32]:
    drawn: NDArray[np.float32] = np.random.default_rng(shape).normal(size=shape).astype(np.float32)
    return drawn


@pytest.mark.parametrize("architecture", ["spr-stage1", "reel-stage1"])
@pytest.mark.parametrize("precision", [0.9999])
def test_stage_1(trained: Trained, tmp_path: Path, precision: float, architecture: str) -> None:
    folder = trained(architecture)
    by_torch = load_stage1(folder, "r")
    compiled = load_compiled_stage1(folder, "r", Graphs(tmp_path / "graphs"))
    assert compiled.trained and (compiled.recipe, compiled.dim) == (by_torch.recipe, by_torch.dim)
    for clips in (1, 3, 4, 9, 300):
        ours, theirs = (one.segments(rows(clips, 128), 4) for one in (compiled, by_torch))
        assert ours.shape == theirs.shape and (ours * theirs).sum(axis=1).min() >= precision
    queries = QueryFeatures.of(list("abc"), list("abc"), [rows(1, 128), rows(9, 128), rows(40, 128)])
    ours, theirs = (one.queries(queries) for one in (compiled, by_torch))
    assert (ours * theirs).sum(axis=1).min() >= precision


BOUND = 1e-4
"""Most by which scores of spans, which are logits, may differ; and by how much another span may be better."""


@pytest.mark.parametrize(("reads_cuts", "answerable"), [(True, False), (False, False), (True, True)])
def test_reel(trained: Trained, tmp_path: Path, reads_cuts: bool, answerable: bool) -> None:
    folder = trained("reel", cuts=reads_cuts, answerable=answerable)
    by_torch = ReelParts(TorchRunner(from_pretrained(folder)))
    compiled = ReelParts(CompiledRunner(folder, "r", Graphs(tmp_path / "graphs")))
    for name in ("max_tokens", "subtitle_size", "cuts"):
        assert compiled.settings[name] == by_torch.settings[name]
    assert compiled.settings["cuts"] == reads_cuts
    for clips in (1, 2, 40):
        streams = rows(clips, 128), rows(clips, 384)
        np.testing.assert_allclose(
            compiled.encode_clips(*streams), by_torch.encode_clips(*streams), atol=BOUND / 10
        )
    for tokens in (1, 9, 32):
        ours, theirs = (one.encode_query(rows(tokens, 128)) for one in (compiled, by_torch))
        np.testing.assert_allclose(ours, theirs, atol=BOUND / 10)
    for windows, clips in ((1, 1), (3, 2), (40, 30), (100, 17)):
        lengths = np.random.default_rng(windows).integers(1, clips + 1, windows)
        mask = (np.arange(clips) < lengths[:, None]).astype(np.float32)
        similarity = rows(windows, 3 + answerable, clips) / 3 * mask[:, None]
        cuts = (rows(windows, clips) > 1).astype(np.float32) * mask if reads_cuts else None
        ours, theirs = (one.best_spans(similarity, mask, cuts) for one in (compiled, by_torch))
        np.testing.assert_allclose(ours[0], theirs[0], atol=BOUND)
        assert (ours.answerable is not None) == (theirs.answerable is not None) == answerable
        if ours.answerable is not None and theirs.answerable is not None:
            np.testing.assert_allclose(ours.answerable, theirs.answerable, atol=BOUND)
        same = (ours[1] == theirs[1]) & (ours[2] == theirs[2])
        assert same.mean() > 0.95
        assert (ours[2] < lengths).all() and (ours[1] <= ours[2]).all()


@pytest.mark.parametrize(
    ("architecture", "settings"),
    [
        ("spr-clip", {}),
        ("reloclnet", {}),
        ("reloclnet", {"subtitle_size": 0}),
        ("reloclnet", {"reference_padding": True}),
        ("reloclnet", {"stream_weights": "type", "shared_encoder": False}),
    ],
)
def test_refiners_of_windows(
    library: Library, trained: Trained, architecture: str, settings: dict[str, Any]
) -> None:
    """Of whole queries, proposals and films: the same spans, with the same scores."""
    folder = trained(architecture, **settings)
    compiled = load_compiled_refiner(folder, "r", Graphs(library.folder / "cache" / "test"))
    by_torch = load_refiner(folder, "r")
    assert isinstance(compiled, WindowRefiner) and isinstance(compiled.model, WindowParts)
    assert compiled.model.runner.is_compiled
    assert (compiled.max_clips, compiled.labels, compiled.max_tokens, compiled.needs_tokens) == (
        by_torch.max_clips, by_torch.labels, by_torch.max_tokens, by_torch.needs_tokens,
    )  # fmt: skip
    compiled.model.make()
    features = library.store.features_of(library.store.searchable())
    draw = np.random.default_rng(0)
    queries = QueryFeatures.of(list("ab"), list("ab"), [rows(n, 128) for n in (3, 9)])
    video = draw.integers(0, len(features), 40)
    start = draw.uniform(0, features.durations[video] / 2)
    end = np.minimum(start + draw.uniform(1, 30, 40), features.durations[video])
    many = np.arange(40)
    proposals = Proposals(np.array([0, 40]), video, start, end, np.ones(40, np.float32), many + 1)
    for query in (0, 1):
        ours, theirs = (one.refine(queries, query, features, proposals) for one in (compiled, by_torch))
        np.testing.assert_allclose(ours.score, theirs.score, rtol=BOUND)
        assert ((ours.start == theirs.start) & (ours.end == theirs.end)).mean() > 0.95


@pytest.mark.parametrize("weights", ["mean", "query", "type"])
def test_windows_whose_subtitles_and_queries_are_of_one_text_encoder(tmp_path: Path, weights: str) -> None:
    """Streams that are apart then read queries with the encoder of subtitles."""
    torch.manual_seed(0)
    sizes = {"visual_size": 24, "subtitle_size": 32, "query_size": 32, "hidden_size": 16, "heads": 2}
    model = build("reloclnet", {**sizes, "stream_weights": weights}).eval()
    parts = parts_of(model)
    compiled = {
        name: Compiled(tmp_path, Source(name, weights, partial(convert_part, model, name), threads=1))
        for name in parts
    }
    for count, clips, tokens in ((1, 1, 1), (3, 7, 4), (5, 40, 30)):
        lengths = np.random.default_rng(clips).integers(1, clips + 1, count)
        mask = (np.arange(clips) < lengths[:, None]).astype(np.float32)
        lines = rows(count, clips, 32) * (rows(count, clips, 1) > 0) * mask[..., None]  # some are silent
        films = rows(count, clips, 24), mask, lines
        query = rows(1, tokens, 32), np.ones((1, tokens), np.float32)
        inputs = {"windows": films, "answers": (*query, *compiled["windows"](*films), mask)}
        for name, arrays in inputs.items():
            ours = compiled[name](*arrays)
            with torch.inference_mode():
                theirs = parts[name].module(*map(torch.from_numpy, arrays))
            first = theirs if name == "windows" else theirs[0]  # spans that are as good may differ
            np.testing.assert_allclose(ours[0], first.numpy(), rtol=BOUND, atol=BOUND)
        assert (ours[1] <= ours[2]).all() and (ours[2] < lengths).all()
