"""What takes long to make and is only read: made once for all of pytest's workers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from filelock import FileLock

__all__ = ["made_once"]


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], object]) -> Path:
    """A folder of this run that ``make`` has filled in whichever worker was first; not to be changed.

    Args:
        name: of what is made, another one for everything in the run.
        make: is given the folder, empty and at the place where it stays.
    """
    run = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        run = run.parent
    folder, whole = run / f"once-{name}", run / f"once-{name}.whole"
    with FileLock(f"{folder}.lock"):
        if not whole.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir()
            make(folder)
            whole.touch()
    return folder
