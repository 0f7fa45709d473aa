"""Published encoders have the sizes that are listed; suggestions suit the machine."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from typer.testing import CliRunner

import open_clips
from moviola.cli import all_commands
from moviola.encoders import (
    CONSE,
    DEMO,
    BestEncoder,
    ClipEncoder,
    ModelInfo,
    best_encoder,
    load_encoder,
    loading,
    recommended,
)
from moviola.encoders.published import PUBLISHED, Machine, Published, this_machine, users_language
from moviola.errors import DataError
from published_encoders import row_of
from published_models import MODELS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("model", PUBLISHED, ids=lambda model: model.name)
def test_sizes_are_counted(model: Published) -> None:
    """Parameters and work of a frame, from the shapes of all tensors."""
    made = MODELS[model.name]
    assert round(made.parameters / 1e6) == model.parameters
    assert round(made.work, 1) == model.work


def test_more_machine_gets_a_larger_encoder() -> None:
    """And never one whose licence forbids some use, or that does not fit into memory."""
    sizes = [
        Machine(1, False, 4.0),
        Machine(2, False, 8.0),
        Machine(16, False, 32.0),
        Machine(16, True, 64.0),
    ]
    works = [[one.model.work for one in recommended(machine, "en")] for machine in sizes]
    assert all(len(each) == len(works[0]) == 2 for each in works)
    for less, more in pairwise(works):
        assert all(a <= b for a, b in zip(less, more, strict=True))
    assert works[0] != works[-1]
    for machine in sizes:
        for one in recommended(machine):
            assert one.model.any_use
            assert (one.milliseconds is None) == machine.gpu
    (small, *_), (large, *_) = (recommended(Machine(64, False, size), "en") for size in (1.0, 64.0))
    assert small.model.megabytes < 1000 * 1.0 / 2 < large.model.megabytes
    assert recommended(Machine(64, False, None)) == recommended(Machine(64, False, 1e6))


def test_the_users_language_decides_what_comes_first() -> None:
    """An encoder of English alone for questions in German, or one of Chinese for any others."""
    machine = Machine(2, False, 8.0)
    first = {language: recommended(machine, language)[0].model for language in ("en", "de", "zh", "")}
    assert first["en"].languages == "English"
    assert {first[language].languages for language in ("de", "zh", "")} == {"many languages"}
    for variables, language in (
        ({"LANG": "de_AT.UTF-8"}, "de"), ({"LANG": "de_DE", "LC_ALL": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "C.UTF-8"}, ""), ({"LANG": "POSIX"}, ""), ({}, ""), ({"LC_MESSAGES": "en"}, "en"),
        ({"LANG": "english"}, ""),
    ):  # fmt: skip
        assert users_language(variables) == language, variables


def test_the_best_encoder_reads_the_users_language(monkeypatch: pytest.MonkeyPatch) -> None:
    """The biggest of the cache, which may read another language, or take an hour for a film."""
    cached: dict[str, tuple[float, tuple[str, ...]]] = {}

    def on_the_machine(**encoders: tuple[float, tuple[str, ...]]) -> None:
        cached.clear()
        cached.update(encoders)
        models = [ModelInfo(DEMO, "clip", "built-in", 10**12, "", "")]
        models += [ModelInfo("some/sentences", "sentences", "hub cache", 10**12, "", "")]
        models += [ModelInfo(name, "clip", "hub cache", 1, "", "") for name in cached]
        monkeypatch.setattr("moviola.encoders.hub.available_models", lambda: models)

    def load(name: str, **_: str) -> Any:
        work, languages = cached[name]
        if work < 0:
            raise DataError("damaged")
        return mock.Mock(spec=ClipEncoder, work=work, languages=languages)

    monkeypatch.setattr(loading, "load_encoder", load)
    machine = Machine(2, False, 8.0)
    on_the_machine(
        chinese=(17.6, ("zh",)),
        english=(4.4, ("en",)),
        slow=(167.0, ("en",)),
        many=(4.5, ()),
        damaged=(-1, ()),
    )
    assert best_encoder(machine, "en").name == "many"
    assert best_encoder(Machine(64, True, 8.0), "en").name == "slow"
    assert best_encoder(machine, "de") == BestEncoder("many", "")
    assert best_encoder(machine, "zh") == BestEncoder("chinese", "")
    on_the_machine(chinese=(17.6, ("zh",)))
    for language in ("en", "de", ""):
        assert best_encoder(machine, language).name == CONSE
    on_the_machine(small=(4.4, ("en",)), slow=(81.0, ("en",)), slower=(167.0, ("en",)))
    assert best_encoder(machine, "en") == BestEncoder("small", "")
    assert (
        best_encoder(machine, "de").name == "small"
        and "moviola models pull" in best_encoder(machine, "de").better
    )
    on_the_machine(slow=(81.0, ("en",)), slower=(167.0, ("en",)))
    assert best_encoder(machine, "en").name == "slow"


@pytest.mark.parametrize("kind", ["laion", "siglip2", "pe-core"])
def test_the_work_of_a_checkpoint_is_that_of_its_layers(kind: str, tmp_path: Path) -> None:
    """In formats whose tensors alone say how large their towers are."""
    made = open_clips.KINDS[kind]
    encoder = load_encoder(str(made.make(tmp_path)))
    assert isinstance(encoder, ClipEncoder) and 0 < encoder.work < 0.1


def test_one_recommendation_stands_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The list, the hint of an index, and the page of the documentation name another one each."""
    page = (ROOT / "docs" / "howto" / "encoder.md").read_text(encoding="utf-8")
    for language, label in (
        ("en_GB.UTF-8", "English"),
        ("de_DE.UTF-8", "German"),
        ("C", "whatever language"),
    ):
        monkeypatch.setenv("LC_ALL", language)
        first = recommended()[0].model.name
        assert f"`moviola models pull {first}`" in best_encoder().better
        done = CliRunner().invoke(all_commands(), ["models", "list"])
        assert done.exit_code == 0, done.output
        said = " ".join(done.output.split())
        assert f"Recommended for this machine ({this_machine()}) and queries in {label}" in said
        listed = [one.model.name for one in recommended()]
        assert sorted(listed, key=said.rindex) == listed and recommended()[0].why in said
    two_cores = Machine(2, False, 8.0)
    for language in ("en", ""):
        assert f"`{recommended(two_cores, language)[0].model.name}`" in page.split("<!-- recommended -->")[1]


MEASURED = json.loads((ROOT / "benchmarks" / "published_encoders.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("model", PUBLISHED, ids=lambda model: model.name)
def test_listed_costs_were_measured(model: Published) -> None:
    """The page has the row that the script writes, and suggestions go by the same milliseconds."""
    found = MEASURED.get(model.name, {})
    assert row_of(model.name, found) in (ROOT / "docs" / "howto" / "encoder.md").read_text(encoding="utf-8")
    assert model.milliseconds == (round(found["frame_ms"]) if found else None)
    if found:
        assert min(found["frame_cosine"], found["text_cosine"]) > 0.99999
