"""The encoder of the first library: asked for once, at a terminal, and never where nobody can answer."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import httpx2
import huggingface_hub
import huggingface_hub.constants
import huggingface_hub.errors
import numpy as np
import pytest
from typer.testing import CliRunner

import moviola.encoders
from moviola.cli import all_commands, first_encoder
from moviola.encoders import (
    CONSE,
    DEMO,
    BestEncoder,
    HubOffer,
    Recommended,
    offered_model,
    pull_model,
    recommended,
)
from moviola.encoders.checkpoints import hub_snapshot
from moviola.encoders.offers import why_not_fetched
from moviola.errors import MissingModel
from moviola.library import about_seconds
from moviola.media import write_video

BETTER = "maker/better"
WATCH = "# mine\n[watch]\npoll = 2.0\n"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(WATCH)
    monkeypatch.setenv("MOVIOLA_CONFIG", str(path))
    return path


@pytest.fixture
def footage(tmp_path: Path) -> Path:
    frames = [np.full((64, 64, 3), shade, np.uint8) for shade in range(40)]
    (tmp_path / "films" / "deep").mkdir(parents=True)
    for name in ("a.mp4", "deep/b.mp4"):
        write_video(tmp_path / "films" / name, frames, rate=5)
    (tmp_path / "films" / "notes.txt").write_text("no film")
    return tmp_path / "films"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A hub that has the demo's encoder as the better one; calls to it, in order."""
    asked: list[str] = []

    def offer(name: str) -> HubOffer:
        asked.append(f"asked for {name}")
        return HubOffer(name, "hub.example", 300 << 20, 120 << 20)

    better = replace(recommended()[0].model, name=DEMO, languages="robots")
    monkeypatch.setattr(moviola.encoders, "recommended", lambda: [Recommended(better, 30_000.0, "slow")])
    monkeypatch.setattr(moviola.encoders, "best_encoder", lambda: BestEncoder("none", "pull it"))
    monkeypatch.setattr(moviola.encoders, "offered_model", offer)
    monkeypatch.setattr(moviola.encoders, "pull_model", lambda name: asked.append(f"fetched {name}"))
    return asked


@pytest.fixture
def at_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_encoder, "_at_terminal", lambda: True)


def index(footage: Path, library: str, *options: str, answers: str = "") -> Any:
    place = str(footage.parent / library)
    words = ["index", str(footage), "--library", place, "--sentence-encoder", "none", "--no-speech"]
    return CliRunner().invoke(all_commands(), [*words, *options], input=answers)


@pytest.mark.usefixtures("at_terminal")
def test_asked_once_and_remembered(config: Path, footage: Path, hub: list[str]) -> None:
    """With what each is worth; an answer that is neither brings it again, and the file keeps the rest."""
    done = index(footage, "first", answers="three\n2\n")
    assert done.exit_code == 0, done.output
    for said in (
        "none: is here already", "robots; 300 MiB from hub.example, of which 120 are here already",
        "about 8 minutes of computing for 0.0 hours of footage, as measured on another machine",
    ):  # fmt: skip
        assert said in " ".join(done.stderr.split()), done.stderr
    assert hub == [f"asked for {DEMO}", f"fetched {DEMO}"]
    assert config.read_text() == f'encoder = "{DEMO}"\n{WATCH}'
    assert str(config) in done.stderr.replace("\n", "")
    from moviola.cli.config import read_config

    assert read_config() == {"encoder": DEMO, "watch": {"poll": 2.0}}
    again = index(footage, "second")
    assert again.exit_code == 0 and "Which encoder" not in again.stderr and len(hub) == 2
    with moviola.Library(footage.parent / "second", read_only=True) as library:
        assert library.settings.encoder == DEMO


@pytest.mark.usefixtures("at_terminal")
def test_the_packaged_one_is_the_first_answer(config: Path, footage: Path, hub: list[str]) -> None:
    done = index(footage, "first", answers="\n")
    assert done.exit_code == 0 and hub == [f"asked for {DEMO}"]
    assert config.read_text().startswith('encoder = "none"\n')


@pytest.mark.usefixtures("at_terminal")
@pytest.mark.parametrize("hindered", ["json", "named", "library", "no config", "offline", "away"])
def test_never_asked_where_nobody_can_answer(
    config: Path, footage: Path, hub: list[str], monkeypatch: pytest.MonkeyPatch, hindered: str
) -> None:
    """A prompt would hang a script for ever, and one in JSON would break its reader."""
    options: list[str] = []
    if hindered == "json":
        options = ["--json"]
    elif hindered == "named":
        options = ["--encoder", "none"]
    elif hindered == "library":
        index(footage, "first", "--encoder", "none")
    elif hindered == "no config":
        monkeypatch.setenv("MOVIOLA_CONFIG", "")
    elif hindered == "offline":
        monkeypatch.setattr(moviola.encoders, "offered_model", offered_model)
        monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    else:

        def away(name: str) -> HubOffer:
            raise MissingModel(f"{name}: the hub cannot be reached")

        monkeypatch.setattr(moviola.encoders, "offered_model", away)
    done = index(footage, "first", *options)
    assert done.exit_code == 0, done.output
    assert "Which encoder" not in done.output and hub == []
    if hindered == "json":
        json.loads(done.stdout)
    if hindered not in ("named", "library"):
        assert [line[:14] for line in done.stderr.splitlines()].count("Encoder: none.") == 1
    said = {"offline": "HF_HUB_OFFLINE is set", "away": "the hub cannot be reached"}.get(hindered, "")
    assert said in " ".join(done.stderr.split())
    assert not config.is_file() or config.read_text() == WATCH


@pytest.mark.usefixtures("at_terminal")
def test_what_cannot_be_fetched_or_kept_is_said(
    config: Path, footage: Path, hub: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No library is made by another encoder than the answer, and the answer is not kept."""

    def fail(name: str) -> Path:
        raise MissingModel(f"{name}: broken off; the same command goes on")

    with monkeypatch.context() as patch:
        patch.setattr(moviola.encoders, "pull_model", fail)
        done = index(footage, "first", answers="2\n")
    assert done.exit_code != 0 and "the same command goes on" in f"{done.output}{done.exception}"
    assert config.read_text() == WATCH and not (footage.parent / "first" / "moviola.toml").exists()

    def full(key: str, value: str) -> Path:
        raise OSError("read-only file system")

    monkeypatch.setattr(first_encoder, "remember", full)
    done = index(footage, "first", answers="1\n")
    assert done.exit_code == 0 and "could not be kept (read-only file system)" in " ".join(
        done.stderr.split()
    )


class _Hub(BaseHTTPRequestHandler):
    asked: list[str] = []  # noqa: RUF012 - of the one server of a test

    def do_GET(self) -> None:
        self.asked.append(self.path)
        siblings = [
            {"rfilename": "model.safetensors", "size": 375 << 20},
            {"rfilename": "flax.msgpack", "size": 9},
        ]
        body = json.dumps({"id": self.path.removeprefix("/api/models/"), "siblings": siblings}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    """The address of a hub on this machine, which gives the sizes of a model's files."""
    _Hub.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hub) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
def test_at_a_real_terminal_and_in_a_pipe(config: Path, footage: Path, server: str) -> None:
    """A mirror, by HF_ENDPOINT, is asked; in a pipe nothing is, neither the hub nor the person."""
    import pty

    environment = {
        **os.environ,
        "HF_ENDPOINT": server,
        "HF_HUB_OFFLINE": "0",
        "COLUMNS": "200",
        "NO_PROXY": "*",
    }
    environment |= {"HF_HOME": str(footage.parent / "hub"), "TERM": "xterm"}
    command = [sys.executable, "-m", "moviola", "index", str(footage), "--no-speech", "--no-ocr", "--library"]
    piped = subprocess.run(
        [*command, str(footage.parent / "piped")],
        env=environment, input="2\n", capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert piped.returncode == 0, piped.stderr
    assert piped.stderr.startswith(f"Encoder: {CONSE}. A better one:") and _Hub.asked == []
    own, theirs = pty.openpty()
    with subprocess.Popen(
        [*command, str(footage.parent / "asked")], env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        said = b""
        while b"1 or 2" not in said:
            assert select.select([own], [], [], 120)[0], said
            said += os.read(own, 4096)
        os.write(own, b"1\n")
        try:
            while select.select([own], [], [], 120)[0] and (more := os.read(own, 4096)):
                said += more
        except OSError:  # it has ended
            pass
    os.close(own)
    assert process.returncode == 0, said
    assert b"375 MiB from 127.0.0.1" in said and recommended()[0].model.name.encode() in said, said
    assert config.read_text() == f'encoder = "{CONSE}"\n{WATCH}'
    assert len([path for path in _Hub.asked if path.startswith("/api/models/")]) == 1


def test_about_how_much_footage(footage: Path, tmp_path: Path) -> None:
    """Two films of eight seconds; a file that is none counts nothing, and a folder of nothing is 0."""
    assert about_seconds([footage]) == pytest.approx(16, abs=0.5)
    (footage / "c.mp4").write_bytes(b"nothing")
    assert about_seconds([footage / "a.mp4", footage / "c.mp4"]) == pytest.approx(8, abs=0.5)
    (tmp_path / "empty").mkdir()
    assert about_seconds([tmp_path / "empty"]) == 0


def http_error(kind: type[huggingface_hub.errors.HfHubHTTPError], status: int) -> Exception:
    request = httpx2.Request("GET", "http://hub.example/api")
    return kind("refused", response=httpx2.Response(status, request=request))


def test_why_in_words(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A mirror is named, a proxy without its password, a token that is refused, terms, and what is here."""
    errors = huggingface_hub.errors
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", "https://mirror.example/hf")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    for variable in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: "hf_secret")
    monkeypatch.setenv("HTTPS_PROXY", "http://me:password@proxy.example:3128")
    blobs = tmp_path / "models--maker--better" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / "abc.part.incomplete").write_bytes(bytes(3 << 20))
    away = str(why_not_fetched(BETTER, ConnectionError("no route")))
    assert (
        "mirror.example cannot be reached through the proxy proxy.example of HTTPS_PROXY (no route)" in away
    )
    assert "3 MiB of it are kept, and the same command goes on" in away and "password" not in away
    assert "refuses the token" in str(why_not_fetched(BETTER, http_error(errors.HfHubHTTPError, 401)))
    for status, words in ((429, "answers with HTTP 429"), (403, "may read it (HTTP 403); set HF_TOKEN")):
        assert words in str(why_not_fetched(BETTER, http_error(errors.HfHubHTTPError, status)))
    gated = str(why_not_fetched(BETTER, http_error(errors.GatedRepoError, 403)))
    assert "agree to its terms" in gated and "HF_TOKEN" in gated
    monkeypatch.setattr(huggingface_hub, "get_token", lambda: None)
    missing = str(why_not_fetched(BETTER, http_error(errors.RepositoryNotFoundError, 401)))
    assert "no such public model at mirror.example" in missing and "a private one needs HF_TOKEN" in missing
    assert not any("hf_secret" in said for said in (away, gated, missing))


def test_a_mirror_that_is_no_hub_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page to sign in to a network, or JSON of another form, ended in a traceback before the first index;
    one that sends a byte a second was waited for without an end.
    """
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)

    class Answers:
        body: Any = None

        def model_info(self, name: str, **_: Any) -> Any:
            if self.body is never:
                never.wait()
            return huggingface_hub.hf_api.ModelInfo(**json.loads(self.body))

    def siblings(*given: Any) -> str:
        return json.dumps({"id": BETTER, "siblings": given})

    never = threading.Event()
    monkeypatch.setattr(huggingface_hub, "HfApi", Answers)
    odd = ["{}", "[]", '"x"', "null", "<html>", "[" * 100_000, siblings({}), siblings(3), siblings("ab")]
    odd += [siblings({"rfilename": name, "size": 1}) for name in ([], 3)]
    odd += [siblings({"rfilename": "config.json", "size": size}) for size in ("many", [])]
    for Answers.body in odd[:-1]:
        with pytest.raises(MissingModel, match=f"{BETTER}: what .* answers is no answer of a hub"):
            offered_model(BETTER)
    Answers.body = siblings({"rfilename": "config.json", "size": -9}, {"rfilename": "x", "size": 7})
    assert offered_model(BETTER).size == 0
    monkeypatch.setattr(huggingface_hub, "snapshot_download", lambda *_, **__: json.loads("{}")["id"])
    with pytest.raises(MissingModel, match="is no answer of a hub"):
        pull_model(BETTER)
    monkeypatch.setattr("moviola.encoders.offers._LONGEST", 0.01)
    Answers.body = never
    with pytest.raises(MissingModel, match=r"is too slow.*no whole answer within 0\.01 s"):
        offered_model(BETTER)
    never.set()


def test_a_download_that_was_not_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One part of sharded weights was taken for all of them; now it is said, with what goes on."""
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    snapshot = tmp_path / "models--maker--better" / "snapshots" / ("0" * 40)
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("0" * 40)
    (snapshot / "config.json").write_text("{}")
    (snapshot / "model-00001-of-00002.safetensors").write_bytes(b"")
    assert hub_snapshot(BETTER) is None
    with pytest.raises(MissingModel, match=f"was not finished; `moviola models pull {BETTER}` goes on"):
        moviola.encoders.load_encoder(BETTER)
    with pytest.raises(MissingModel, match="1 of 2 files of weights"):
        moviola.encoders.load_encoder(str(snapshot))
    (snapshot / "model-00002-of-00002.safetensors").write_bytes(b"")
    assert hub_snapshot(BETTER) == snapshot
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(MissingModel, match="HF_HUB_OFFLINE is set"):
        pull_model(BETTER)
