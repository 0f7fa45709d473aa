"""A small library of real films, copied for every test, and tiny random models that fit it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from made_once import made_once
from moviola.retrieval.saved.description import CONFIG
from moviola.retrieval.saved.graphs import place_of
from moviola.search import Library
from moviola.study.models.pretrained import build, save_pretrained
from moviola.study.models.reel import Reel
from rooms import write_rooms

SUBTITLES = """1
00:00:01,000 --> 00:00:03,000
The lighthouse keeper lost his umbrella.

2
00:00:06,500 --> 00:00:08,000
Nobody remembered the harbour in winter.
"""

# Sizes that keep a forward pass at milliseconds; 128 is the demo encoder's, 384 the sentence encoder's.
TINY: dict[str, dict[str, Any]] = {
    "spr-stage1": {"hidden_size": 128, "layers": 1, "max_clips": 8},
    "reel-stage1": {"visual_size": 128, "query_size": 128, "hidden_size": 16},
    "spr-clip": {"hidden_size": 128, "layers": 1, "max_clips": 32},
    "reel": {"visual_size": 128, "query_size": 128, "subtitle_size": 384, "hidden_size": 16,
        "longest_span": 12},
    "reloclnet": {
        "visual_size": 128, "query_size": 128, "subtitle_size": 384, "hidden_size": 16, "heads": 2,
        "max_clips": 32, "labels": "spr", "shortest_span": 1, "clip_seconds": 1.0,
    },
}  # fmt: skip


@pytest.fixture(scope="session")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three films; the last segment of two is short, one has subtitles."""

    def make(folder: Path) -> None:
        for number, seconds in enumerate((34, 21, 16)):
            write_rooms(folder / f"film{number}.mp4", seconds, number)
        (folder / "film0.srt").write_text(SUBTITLES)

    return made_once(tmp_path_factory, "three-films", make)


@pytest.fixture(scope="session")
def original(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Their library; not to be changed."""

    def make(folder: Path) -> None:
        with Library(folder / "library", encoder="demo", sentence_encoder="minilm") as library:
            library.index(films)

    return made_once(tmp_path_factory, "library-of-three", make) / "library"


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    """A copy of the library."""
    return Path(shutil.copytree(original, tmp_path / "library"))


@pytest.fixture
def library(folder: Path) -> Iterator[Library]:
    """The copy, opened."""
    with Library(folder) as opened:
        yield opened


@pytest.fixture(scope="session")
def made_models(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Makes the folder of a model, or gives that which was made with the same words; to be read only."""

    def make(architecture: str, seed: int, config: dict[str, Any]) -> Path:
        def written(out: Path) -> None:
            torch.manual_seed(seed)
            model = build(architecture, {**TINY[architecture], **config})
            with torch.no_grad():
                for weight in model.parameters():
                    weight.add_(
                        torch.randn_like(weight) / 8
                    )  # fresh models say nearly the same of everything
                if config.get("cuts"):
                    cast("Reel", model).crossing.fill_(0.5)
            save_pretrained(model, out, card="A test's.")

        words = json.dumps([architecture, seed, config], sort_keys=True)
        return made_once(tmp_path_factory, f"model-{sha256(words.encode()).hexdigest()[:16]}", written)

    return make


@pytest.fixture
def trained(tmp_path: Path, original: Path, made_models: Callable[..., Path]) -> Callable[..., Path]:
    """``trained("reel", seed=1)``: the folder of a random model that fits the library, a copy of its own.

    ``extra`` changes what is said of its training; None says nothing. Other words are settings of the model.
    """
    with Library(original, read_only=True) as opened:
        settings = opened.settings
    about = {
        "encoder": settings.encoder, "encoder_revision": settings.encoder_revision,
        "clip_seconds": 1.0, "segment_clips": 4,
    }  # fmt: skip

    def make(architecture: str, *, seed: int = 0, extra: dict[str, Any] | None = {}, **config: Any) -> Path:  # noqa: B006
        out = tmp_path / "models" / f"{architecture} {seed}"
        shutil.rmtree(out, ignore_errors=True)  # one that the test made by other words
        shutil.copytree(made_models(architecture, seed, config), out)
        graphs = place_of(out)  # to convert the parts of each model again would take half a second
        content = json.loads((out / CONFIG).read_text(encoding="utf-8"))
        content["extra"] = {} if extra is None else {**about, **extra}
        (out / CONFIG).write_text(json.dumps(content), encoding="utf-8")
        if graphs.is_dir():
            graphs.rename(place_of(out))
        return out

    return make
