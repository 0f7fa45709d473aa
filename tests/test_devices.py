"""Which device computes, and that torch is not loaded to hear of none."""

from __future__ import annotations

import subprocess
import sys

import pytest

from moviola import devices
from moviola.errors import InvalidValue


def test_a_machine_without_a_gpu_is_known_without_torch() -> None:
    program = """
import sys
from moviola import devices
devices.may_have_gpu = lambda: False
print(devices.available_device("auto"), devices.available_device("cpu"), "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["cpu", "cpu", "False"]


@pytest.mark.parametrize(
    ("cuda", "mps", "best"), [(True, False, "cuda"), (False, True, "mps"), (False, False, "cpu")]
)
def test_where_a_gpu_may_be_torch_is_asked(
    monkeypatch: pytest.MonkeyPatch, cuda: bool, mps: bool, best: str
) -> None:
    monkeypatch.setattr(devices, "may_have_gpu", lambda: True)
    monkeypatch.setattr("torch.cuda.is_available", lambda: cuda)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: mps)
    assert devices.available_device("auto") == best
    assert devices.available_device("cpu") == "cpu"


def test_unknown_and_missing_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    wrong = ("tpu", "", "cpu:0", "mps:0", "auto:0", "cuda:", "cuda:one", "cuda:0:1")
    for name, reason in (
        *((name, "choose auto, cpu") for name in wrong),
        ("cuda:1", "this machine has none"),
    ):
        with pytest.raises(InvalidValue, match=reason):
            devices.available_device(name)


def test_a_gpu_is_named_by_its_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 2)
    assert devices.available_device("cuda:1") == "cuda:1"
    with pytest.raises(InvalidValue, match=r"'cuda:2': this machine's last one is cuda:1"):
        devices.available_device("cuda:2")
