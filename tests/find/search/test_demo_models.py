"""The trained models that the package carries: they load, fit the demo's encoder, and help on new films."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import moviola
from moviola.cli import all_commands
from moviola.encoders import load_encoder
from moviola.encoders.checkpoints import DEMO_FOLDER
from moviola.errors import DataError, EncoderMismatch, NotFound
from moviola.library import verify
from moviola.library.disk.models_in_use import DEMO_MODELS, source_of
from moviola.media import write_video
from moviola.retrieval import Calibration
from moviola.retrieval.saved.description import read_description, revision_of
from moviola.retrieval.saved.graphs import read_graph
from moviola.search import Library
from moviola.study.datasets import gridhouse
from moviola.study.datasets.readers.queries import read_queries
from moviola.study.measures import Run, evaluate, read_qrels
from moviola.study.models.pretrained import from_pretrained

app = all_commands()

ROOT = Path(__file__).resolve().parents[3]
PACKAGE = Path(moviola.__file__).parent
SEED = 8_150_005  # nothing was trained or tuned on its films
MEASURES = ("nDCG@20,IoU>=0.5", "nDCG@20,IoU>=0.7")


@pytest.mark.parametrize("role", DEMO_MODELS)
def test_they_load_and_say_what_they_are_from(role: str) -> None:
    folder, encoder = DEMO_MODELS[role], load_encoder("demo")
    extra = read_description(folder).extra
    assert (extra["encoder"], extra["encoder_revision"]) == ("demo", encoder.revision)
    assert sum(p.numel() for p in from_pretrained(folder).parameters()) > 0
    assert (Calibration.of(extra, folder) is not None) == (role == "refiner")
    card = (folder / "README.md").read_text()
    assert "scripts/train_demo_models.py" in card and "On the test films" in card


def test_they_are_a_few_megabytes_and_part_of_the_package() -> None:
    files = [path for folder in DEMO_MODELS.values() for path in folder.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 16e6
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())
    patterns = settings["tool"]["setuptools"]["package-data"]["moviola"]
    assert set(files) <= {path for pattern in patterns for path in PACKAGE.glob(pattern)}


def test_demo_is_a_name_and_a_folder_of_that_name_a_path(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(library.folder.parent)
    for role, folder in DEMO_MODELS.items():
        assert source_of(role, "demo") == folder
        assert source_of(role, "./demo") == source_of(role, Path("demo")) == Path("demo")
        assert source_of(role, "none") is None
    with pytest.raises(NotFound, match="demo"):
        library.indexer.use(refiner="./demo")
    words = [
        "library",
        "use",
        "--library",
        str(library.folder),
        "--stage1",
        "demo",
        "--refiner",
        "demo",
        "--json",
    ]
    library.close()
    answer = CliRunner().invoke(app, words)
    assert answer.exit_code == 0, answer.output
    used = json.loads(answer.stdout)
    for role, folder in DEMO_MODELS.items():
        assert used[role] == {
            "name": f"{folder.name}-{revision_of(folder)[:8]}",
            "revision": revision_of(folder),
        }
    with Library(library.folder, read_only=True) as reopened:
        assert reopened.search("a green robot picks up a key", by="visual")


@pytest.mark.parametrize("role", DEMO_MODELS)
def test_another_encoder_is_refused(role: str, films: Path, tmp_path: Path) -> None:
    other = shutil.copytree(DEMO_FOLDER, tmp_path / "encoder")
    with Library(tmp_path / "library", encoder=str(other), sentence_encoder="none") as library:
        library.index(films / "film2.mp4")
        with pytest.raises(EncoderMismatch, match=r"^demo: a model for encoder 'demo'"):
            library.indexer.use(**{role: "demo"})


@pytest.mark.parametrize("name", ["clips.xml", "query.bin", "SHA256SUMS"])
def test_damaged_graphs_are_found(library: Library, name: str) -> None:
    library.indexer.use(refiner="demo")
    assert not [problem for problem in verify(library.store) if "graphs" in problem.message]
    (damaged,) = (library.folder / "models" / "refiner").rglob(name)
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 4
    damaged.write_bytes(content)
    (problem,) = verify(library.store)
    assert "demo_reel" in problem.message and "get the folder of the model again" in problem.message
    assert problem.commands and "--refiner none" in problem.commands[0]
    with pytest.raises(DataError, match="get the folder of the model again"):
        read_graph(damaged.parents[2], "clips")


# ---- what they find --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Films of a seed of its own."""
    folder = tmp_path_factory.mktemp("world")
    gridhouse.build(folder, videos=16, seed=SEED, workers=1, write_video=write_video)
    return folder


@pytest.fixture(scope="module")
def indexed(world: Path) -> Iterator[Library]:
    with Library(world / "library", encoder="demo", sentence_encoder="none") as library:
        library.index(world / "videos")
        yield library


def figures(library: Library, world: Path, *, refine: bool) -> list[float]:
    queries = read_queries(world / "test.json")
    answers = library.search_many(queries, top_k=100, refine=refine)
    run = Run.from_dict({
        query.query_id: [
            {"video_id": m.video_id, "start": m.start, "end": m.end, "score": m.score} for m in moments
        ]
        for query, moments in zip(queries, answers, strict=True)
    })  # fmt: skip
    return list(evaluate(run, read_qrels(world / "test.json"), MEASURES).measures.values())


@pytest.mark.long(3)
def test_trained_beats_untrained_and_refined_beats_coarse(indexed: Library, world: Path) -> None:
    untrained = figures(indexed, world, refine=True)
    indexed.indexer.use(stage1="demo", refiner="demo")
    coarse, refined = (figures(indexed, world, refine=refine) for refine in (False, True))
    for before, rough, fine in zip(untrained, coarse, refined, strict=True):
        assert 1 - fine < 0.75 * (1 - before)  # of what is missing
        assert 1 - fine < 0.6 * (1 - rough)


@pytest.mark.long(3)
def test_the_demo_runs_twice_and_shows_what_training_brings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spec = importlib.util.spec_from_file_location("demo", ROOT / "examples" / "demo.py")
    assert spec and spec.loader
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    monkeypatch.setattr(demo, "VIDEOS", 12)
    monkeypatch.setattr(sys, "argv", ["demo.py", "photographs", "world", "library"])
    monkeypatch.chdir(tmp_path)
    shown = []
    for _ in range(2):
        demo.main()
        shown.append(capsys.readouterr().out)
        assert "moviola library use" in shown[-1] and "--stage1 demo --refiner demo" in shown[-1]
        assert "index ~/Videos" in shown[-1]
        for sheet in ("demo-results.png", "demo-photographs.png"):
            Path(sheet).unlink()
    first, second = (
        [line.split() for line in text.splitlines() if line.strip().startswith(("coarse, ", "refined, "))]
        for text in shown
    )
    assert first == second and [row[0] for row in first] == ["coarse,", "refined,"] * 2
    assert all(
        1 - float(fine) < 0.6 * (1 - float(coarse))
        for fine, coarse in zip(first[3][2:], first[2][2:], strict=True)
    )
