"""Prepare a release: the fragments of ``changes/`` in the changelog, the version, the wheel in ``dist/``.

    python scripts/release.py 0.2.0

The first version has nothing before it that could change: while it is not tagged, its own number is taken,
and the fragments go to ``docs/history.md``. Nothing is committed, tagged or uploaded.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "pyproject.toml"
HISTORY = ROOT / "docs" / "history.md"
VERSION = re.compile(r'^version = "(.+)"$', re.MULTILINE)
NUMBER = re.compile(r"\d+\.\d+\.\d+")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "version", help="three numbers, above the last ones, or these while they are not tagged"
    )
    version = parser.parse_args().version
    last = version_of(PROJECT.read_text(encoding="utf-8"))
    if not may_be_released(version, last, tagged=bool(_run("git", "tag", "--list", f"v{last}"))):
        sys.exit(f"{version}: give three numbers above {last}, such as 0.2.0")
    build = (sys.executable, "-m", "towncrier", "build", "--version", version)
    if version == last:
        notes = _run(*build, "--draft")
        HISTORY.write_text(with_notes(HISTORY.read_text(encoding="utf-8"), notes), encoding="utf-8")
        for fragment in set(ROOT.glob("changes/*.*.md")):
            fragment.unlink()
    else:
        _run(*build, "--yes")
    PROJECT.write_text(with_version(PROJECT.read_text(encoding="utf-8"), version), encoding="utf-8")
    _run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", "dist", ".")
    print("The wheel lies in dist/; what is left: CONTRIBUTING.md, Releases")


def may_be_released(version: str, last: str, *, tagged: bool) -> bool:
    """Whether a version comes after the last one, or is the last one, which nobody has yet."""
    if not NUMBER.fullmatch(version):
        return False
    return numbers(version) > numbers(last) or (version == last and not tagged)


def with_notes(history: str, notes: str) -> str:
    """The text of the history with a release's notes, without their title, before the others."""
    before, heading, rest = history.partition("### ")
    return f"{before}{heading}{notes.partition(heading)[2].strip()}\n\n{heading}{rest}"


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


def _run(*command: str) -> str:
    """What a command prints; its errors are seen."""
    return subprocess.run(command, cwd=ROOT, check=True, text=True, stdout=subprocess.PIPE).stdout


if __name__ == "__main__":
    main()
