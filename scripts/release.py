"""Prepare a release: the fragments of ``changes/`` in the changelog, the version, the wheel in ``dist/``.

    python scripts/release.py 0.2.0

Nothing is committed, tagged or uploaded.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "pyproject.toml"
VERSION = re.compile(r'^version = "(.+)"$', re.MULTILINE)
NUMBER = re.compile(r"\d+\.\d+\.\d+")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("version", help="three numbers, above the last ones")
    version = parser.parse_args().version
    last = version_of(PROJECT.read_text(encoding="utf-8"))
    if not NUMBER.fullmatch(version) or numbers(version) <= numbers(last):
        sys.exit(f"{version}: give three numbers above {last}, such as 0.2.0")
    _run(sys.executable, "-m", "towncrier", "build", "--yes", "--version", version)
    PROJECT.write_text(with_version(PROJECT.read_text(encoding="utf-8"), version), encoding="utf-8")
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", ".")
    print("The wheel lies in dist/; what is left: CONTRIBUTING.md, Releases")


def version_of(project: str) -> str:
    """The version in the text of ``pyproject.toml``."""
    found = VERSION.search(project)
    assert found, f"{PROJECT}: no version"
    return found[1]


def with_version(project: str, version: str) -> str:
    """The text of ``pyproject.toml`` with another version."""
    return VERSION.sub(f'version = "{version}"', project, count=1)


def numbers(version: str) -> tuple[int, ...]:
    """A version's numbers, to compare."""
    return tuple(map(int, version.split(".")))


def _run(*command: str) -> None:
    subprocess.run(command, cwd=ROOT, check=True)


if __name__ == "__main__":
    main()
