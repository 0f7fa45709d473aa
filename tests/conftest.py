"""What every test may rely on: no network, few threads, the same examples each time, the reference material.

Property tests are derandomised: one that fails once fails always. ``make fuzz`` runs them with fresh seeds.
"""

from __future__ import annotations

import atexit
import os
import random
import shutil
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from turns import SHARES, TURNS, share

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from milvus_server import RunningMilvus

# torch reads the number of threads when it is imported; conftest comes before any test that imports it.
os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ["MOVIOLA_CONFIG"] = ""  # no config.toml of this machine's user
# Programs that tests start, and runs after this one, read the compiled modules of those before: pytest takes
# half of its start for rewriting the assertions of 360 modules.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False
# A run in the background of a shell ignores interruptions, and so would every program that a test starts.
signal.signal(signal.SIGINT, signal.default_int_handler)
MEMORY, ROOM = Path("/dev/shm"), 8 << 30
"""A folder that is kept in memory, and the bytes that must be free there for the files of a run."""


def _free_memory() -> int:
    """Bytes that may be written to :data:`MEMORY`; 0 where it or its limits are not known."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        available = next(int(line.split()[1]) << 10 for line in lines if line.startswith("MemAvailable:"))
        free = [available, shutil.disk_usage(MEMORY).free]
        limit = Path("/sys/fs/cgroup/memory.max")  # of a container
        if limit.is_file() and (most := limit.read_text(encoding="ascii").strip()) != "max":
            free.append(int(most) - int(limit.with_name("memory.current").read_text(encoding="ascii")))
    except (OSError, StopIteration, ValueError):
        return 0
    return min(free) if os.access(MEMORY, os.W_OK) else 0


# Libraries wait for the disk a hundred times for each test that writes one: in memory that costs nothing.
if "TMPDIR" not in os.environ and _free_memory() >= ROOM:
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))
# Compiled graphs of this run's own, so that none was made by other code than this; its workers share them.
if "PYTEST_XDIST_WORKER" not in os.environ:
    os.environ["MOVIOLA_COMPILED"] = tempfile.mkdtemp(prefix="moviola-compiled-")
    atexit.register(shutil.rmtree, os.environ["MOVIOLA_COMPILED"], ignore_errors=True)

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"


# Fixtures of more than one folder: the command line in this process, and a server with a browser that opens
# its page.
pytest_plugins = ["command_line", "page_fixtures"]

settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.register_profile("fuzz", deadline=None, database=None, max_examples=500, print_blob=True)
settings.load_profile("same")


def pytest_report_header() -> str:
    """Which part of the long tests, and of what torture tries, a run takes."""
    own = share(TURNS)
    long = "long tests: all" if own is None else f"long tests: turn {own} of 0 to {TURNS - 1}"
    return f"{long}; torture: share {share(SHARES) or 0} of 0 to {SHARES - 1}"


@pytest.hookimpl(tryfirst=True)  # before pytest chooses by marks
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep those of the long tests whose turn it is; in an order of the seed's, so that a run that ends early
    does not always end at the same test.
    """
    own = share(TURNS)
    waiting = [item for item in items if own is not None and _turn_of(item) not in (None, own)]
    if waiting:
        config.hook.pytest_deselected(items=waiting)
        items[:] = [item for item in items if item not in set(waiting)]
    if config.getoption("--hypothesis-seed") is not None:
        random.Random(config.getoption("--hypothesis-seed")).shuffle(items)


def _turn_of(item: pytest.Item) -> int | None:
    """The turn of a long test; None for others, and for those of every turn."""
    marker = item.get_closest_marker("long")
    if marker is None or not marker.args:
        return None
    (turn,) = marker.args
    assert turn in range(TURNS), f"{item.nodeid}: turn {turn} is none of 0 to {TURNS - 1}"
    return int(turn)


@pytest.fixture(scope="session", autouse=True)
def texts_of_new_libraries() -> Iterator[None]:
    """Let the demo's encoder read the texts about everything once in a process.

    Each new library has their vectors, which takes as long as all else of it: a seventh of a second,
    a thousand times. All other texts, and those of other encoders and checkpoints, are read each time.
    """
    from moviola.encoders.clip import ClipEncoder
    from moviola.retrieval import unrelated_queries

    read, about_everything = ClipEncoder.encode_text, unrelated_queries()
    known: dict[tuple[str, str, str], NDArray[np.float32]] = {}

    def encode_text(encoder: ClipEncoder, texts: Sequence[str]) -> NDArray[np.float32]:
        if encoder.id != "demo" or texts is not about_everything:
            return read(encoder, texts)
        key = encoder.revision, str(encoder.device), encoder.precision
        if key not in known:
            known[key] = read(encoder, texts)
        return known[key].copy()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ClipEncoder, "encode_text", encode_text)
        yield


def _reference_folder(variable: str, default: Path) -> Path:
    """The folder; without it the test fails in CI and is skipped elsewhere."""
    folder = Path(os.environ.get(variable, default))
    if not folder.is_dir():
        reason = f"no reference material: {folder} is not a folder; set {variable} to the one that holds it"
        if os.environ.get("CI"):
            pytest.fail(f"{reason} (CI skips no test for want of it)", pytrace=False)
        pytest.skip(reason)
    return folder


@pytest.fixture(scope="session")
def golden() -> Path:
    """Folder of golden files, from MOVIOLA_GOLDEN (default ``../shared/golden``)."""
    return _reference_folder("MOVIOLA_GOLDEN", SHARED / "golden")


@pytest.fixture(scope="session")
def footage() -> Path:
    """Folder of real videos with their manifest.json, from MOVIOLA_VIDEOS (default ``../shared/videos``)."""
    return _reference_folder("MOVIOLA_VIDEOS", SHARED / "videos")


@pytest.fixture(scope="session")
def annotations() -> Path:
    """Folder of real annotations, from MOVIOLA_DATA (default ``../shared/data``)."""
    return _reference_folder("MOVIOLA_DATA", SHARED / "data")


@pytest.fixture(scope="session")
def milvus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningMilvus]:
    """A Milvus server of this process's own; tests that use it are slow."""
    from milvus_server import RunningMilvus

    if find_spec("milvus") is None and not os.environ.get("CI"):
        pytest.skip("the server's package is not installed: pip install 'moviola[dev]' on Linux, x86-64")
    server = RunningMilvus(tmp_path_factory.mktemp("milvus"))
    try:
        server.start()
        yield server
    finally:
        server.remove()
