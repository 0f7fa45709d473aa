"""How many threads every pool gets, asked of the libraries themselves, in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from moviola import threads

LIBRARIES = """
import json, os
import moviola
import numpy, torch, faiss
from threadpoolctl import threadpool_info
from moviola.threads import compute_threads, one_blas_thread, one_faiss_thread

def blas():
    return sorted({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})

found = {"cores": compute_threads(), "torch": torch.get_num_threads(), "blas": blas()}
with one_blas_thread(), one_faiss_thread(True):
    found |= {"blas inside": blas(), "faiss inside": faiss.omp_get_max_threads()}
found |= {"blas after": blas(), "faiss after": faiss.omp_get_max_threads()}
found |= {name: os.environ[name] for name in ("OMP_WAIT_POLICY", "OPENBLAS_THREAD_TIMEOUT")}
print(json.dumps(found))
"""

LATER = """
import json
import moviola
from threadpoolctl import threadpool_info
from moviola.threads import one_blas_thread

def blas():
    return sorted({pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"})

with one_blas_thread():  # as a server is
    import scipy.linalg, faiss
    with one_blas_thread():
        found = {"inside": blas()}
print(json.dumps(found | {"after": blas()}))
"""

READER = """
import json
from moviola.encoders.readers.rapid import RapidOcrReader

engine = RapidOcrReader()._engine
sessions = [network.session.session for network in (engine._load_det_model(), engine._load_rec_model())]
plans = [session.get_compiled_model() for session in sessions]
print(json.dumps({
    "threads": [each.get_property("INFERENCE_NUM_THREADS") for each in plans],
    "pinned": [each.get_property("ENABLE_CPU_PINNING") for each in plans],
    "precision": [each.get_property("INFERENCE_PRECISION_HINT").to_string() for each in plans],
}))
"""


def asked(program: str, **environment: str) -> dict[str, Any]:
    """What a program prints as JSON in a process with these variables, and no others that set threads."""
    ours = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_WAIT_POLICY", "OPENBLAS_THREAD_TIMEOUT")
    kept = {name: value for name, value in os.environ.items() if name not in ours}
    done = subprocess.run(
        [sys.executable, "-c", program], env=kept | environment, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_a_library_that_a_search_brings_later_is_limited_too() -> None:
    """Modules are imported where they are used; a server is inside before that, for as long as it serves."""
    assert asked(LATER) == {"inside": [1], "after": asked(LIBRARIES)["blas"]}


def test_no_pool_has_more_threads_than_there_are_cores_and_none_spins() -> None:
    found = asked(LIBRARIES)
    cores = threads.available_cores()
    assert found["cores"] == cores
    assert found["torch"] <= cores
    assert found["faiss after"] <= cores
    assert all(count <= cores for count in found["blas"])
    assert found["blas"] == found["blas after"]
    assert (found["blas inside"], found["faiss inside"]) == ([1], 1)
    assert (found["OMP_WAIT_POLICY"], found["OPENBLAS_THREAD_TIMEOUT"]) == ("PASSIVE", "4")


def test_one_variable_bounds_all_pools() -> None:
    found = asked(LIBRARIES, OMP_NUM_THREADS="1", OMP_WAIT_POLICY="ACTIVE")
    assert found["cores"] == found["torch"] == found["faiss after"] == 1
    assert found["blas"] == [1]
    assert found["OMP_WAIT_POLICY"] == "ACTIVE"  # what the user has set stays


def test_the_reader_of_texts_takes_half_of_the_cores_and_holds_none() -> None:
    found = asked(READER)
    half = max(1, threads.available_cores() // 2)
    assert found == {"threads": [half, half], "pinned": [False, False], "precision": ["f32", "f32"]}


@pytest.mark.parametrize(
    ("variable", "cores", "threads_of_all"),
    [("", 4, 4), ("2", 4, 2), ("9", 4, 4), ("0", 4, 4), ("two", 4, 4), ("1", 1, 1)],
)
def test_compute_threads(
    monkeypatch: pytest.MonkeyPatch, variable: str, cores: int, threads_of_all: int
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", variable)
    monkeypatch.setattr(threads, "available_cores", lambda: cores)
    assert threads.compute_threads() == threads_of_all
    assert threads.reading_threads() == max(1, threads_of_all // 2)
