"""The wheel has every file of the package: nobody misses a file in a checkout."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "moviola"


def files_below(folder: Path) -> set[str]:
    """All files but what Python compiles, relative to the folder."""
    return {
        path.relative_to(folder).as_posix()
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def test_the_build_takes_every_file_of_the_package(tmp_path: Path) -> None:
    """Setuptools is asked, in a copy: it writes beside the sources and believes an earlier build."""
    sources, built = tmp_path / "sources", tmp_path / "built"
    shutil.copytree(PACKAGE, sources / "src" / "moviola")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources / name)
    build = [
        sys.executable,
        "-c",
        "import setuptools; setuptools.setup()",
        "-q",
        "build_py",
        "-d",
        str(built),
    ]
    subprocess.run(build, cwd=sources, check=True, capture_output=True)
    assert files_below(built / "moviola") == files_below(PACKAGE)
    assert not list(built.rglob("*.pyc"))
