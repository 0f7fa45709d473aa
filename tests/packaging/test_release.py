"""A release: which numbers it may have, and where its notes go."""

from __future__ import annotations

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def release() -> ModuleType:
    """The script as a module."""
    spec = spec_from_file_location("release", ROOT / "scripts" / "release.py")
    assert spec is not None and spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("version", "tagged", "may"),
    [
        ("0.1.0", False, True), ("0.1.0", True, False), ("0.0.9", False, False), ("0.1.1", False, True),
        ("0.10.0", True, True), ("0.2", True, False), ("v0.2.0", True, False),
    ],
)  # fmt: skip
def test_a_version_comes_once_and_after_the_last(
    release: ModuleType, version: str, tagged: bool, may: bool
) -> None:
    """The first version could not be released at all: its number stood in pyproject.toml already."""
    assert release.may_be_released(version, "0.1.0", tagged=tagged) is may


def test_notes_of_the_first_version_come_before_the_older_ones(release: ModuleType) -> None:
    history = (ROOT / "docs" / "history.md").read_text(encoding="utf-8")
    notes = "## 0.1.0 (2026-11-29)\n\n### Added\n\n- A door.\n\n### Fixed\n\n- A wall.\n\n"
    made = release.with_notes(history, notes)
    head, _, rest = history.partition("### ")
    assert made == f"{head}### Added\n\n- A door.\n\n### Fixed\n\n- A wall.\n\n### {rest}"


def test_the_version_is_written_and_nothing_else(release: ModuleType) -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    later = release.with_version(project, "7.8.9")
    assert release.version_of(later) == "7.8.9"
    assert release.with_version(later, release.version_of(project)) == project
