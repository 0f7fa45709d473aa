"""Graphs run compiled: in any shape, from the file, on any number of threads; and portable ones anywhere."""

from __future__ import annotations

import errno
import logging
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from moviola.compiled import Compiled, Source, module, read_portable, save_portable
from moviola.compiled.module import least_cosine
from moviola.compiled.runtime import Array, convert, open_graph, save_graph
from moviola.errors import DataError
from moviola.files.sealed import is_sealed

WIDTH = 64


class Encoder(nn.Module):
    """A transformer's layer, with what such modules do: a mask, two outputs, lengths that are asked for."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, WIDTH)
        self.place = nn.Embedding(32, WIDTH)
        self.query, self.key, self.value = (nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.out = nn.Linear(WIDTH, 10)

    def forward(self, ids: Tensor, present: Tensor) -> tuple[Tensor, Tensor]:
        x = self.embed(ids) + self.place(torch.arange(ids.shape[1]))
        logits = self.query(x) @ self.key(x).transpose(1, 2) / WIDTH**0.5
        shares = logits.masked_fill(~present[:, None], -1e9).softmax(-1)
        states = x + shares @ self.value(x)
        return self.out(states), states.mean(1)


def build() -> nn.Module:
    torch.manual_seed(0)
    return Encoder().eval()


def inputs(rows: int, length: int) -> tuple[Array, Array]:
    draw = np.random.default_rng(rows * 100 + length)
    present = np.arange(length) < draw.integers(1, length + 1, (rows, 1))
    return draw.integers(0, 100, (rows, length)), present


def graph() -> Any:
    return convert(build(), inputs(2, 3), [(None, None), (None, None)])


def source(revision: str = "1", threads: int = 1, build: Callable[[], Any] = graph) -> Source:
    return Source("an encoder", revision, build, threads)


def quantised(threads: int = 1, build: Callable[[], Any] = graph) -> Source:
    return Source("an encoder", "1", build, threads, "int8")


def by_torch(*arrays: Array) -> list[Array]:
    with torch.inference_mode():
        return [output.numpy() for output in build()(*map(torch.from_numpy, arrays))]


def test_any_shape_gives_what_torch_gives(tmp_path: Path) -> None:
    compiled = Compiled(tmp_path, source())
    for shape in ((3, 4), (1, 1), (5, 17), (1, 30)):
        for ours, theirs in zip(compiled(*inputs(*shape)), by_torch(*inputs(*shape)), strict=True):
            assert ours.dtype == theirs.dtype == np.float32
            np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_eight_bits_are_near(tmp_path: Path) -> None:
    compiled = Compiled(tmp_path, quantised())
    for shape in ((3, 4), (1, 1), (5, 17)):
        found, wanted = compiled(*inputs(*shape)), by_torch(*inputs(*shape))
        assert least_cosine(found, wanted) > 0.999
        assert not np.array_equal(found[0], wanted[0])


@pytest.mark.parametrize("count", [1, 2])
def test_a_graph_has_the_threads_that_were_asked_for_and_holds_no_core(count: int, tmp_path: Path) -> None:
    save_graph(graph(), tmp_path, "fp32", 1)
    opened = open_graph(tmp_path, "fp32", count)
    settings = {name: opened._plan.get_property(name) for name in ("INFERENCE_NUM_THREADS", "NUM_STREAMS")}
    assert settings == {"INFERENCE_NUM_THREADS": count, "NUM_STREAMS": 1}
    assert opened._plan.get_property("ENABLE_CPU_PINNING") is False
    assert opened._plan.get_property("INFERENCE_PRECISION_HINT").to_string() == "f32"


@pytest.mark.parametrize("make", [source, quantised])
def test_results_depend_on_neither_threads_nor_company(make: Callable[..., Source], tmp_path: Path) -> None:
    one, three = Compiled(tmp_path, make(threads=1)), Compiled(tmp_path, make(threads=3))
    ids, present = inputs(7, 9)
    together = one(ids, present)
    alone = [three(ids[place : place + 1], present[place : place + 1]) for place in range(7)]
    for output, rows in zip(together, zip(*alone, strict=True), strict=True):
        assert np.array_equal(output, np.concatenate(rows))


def test_outputs_stay_when_the_graph_runs_again(tmp_path: Path) -> None:
    compiled = Compiled(tmp_path, source())
    first = compiled(*inputs(2, 5))
    kept = [output.copy() for output in first]
    compiled(*inputs(2, 6))
    assert all(np.array_equal(output, before) for output, before in zip(first, kept, strict=True))


def test_the_second_process_needs_no_torch(tmp_path: Path) -> None:
    compiled = Compiled(tmp_path, source())
    assert not compiled.ready
    (expected, _) = compiled(*inputs(4, 5))
    assert compiled.ready
    np.save(tmp_path / "expected.npy", expected)
    np.savez(tmp_path / "inputs.npz", *inputs(4, 5))
    script = """
import sys
from pathlib import Path
from typing import Any
import numpy as np
from moviola.compiled import Compiled, Source

def build():
    raise AssertionError("the graph is there")

folder = Path(sys.argv[1])
arrays = list(np.load(folder / "inputs.npz").values())
compiled = Compiled(folder, Source("an encoder", "1", build, 1))
assert compiled.ready
assert np.array_equal(compiled(*arrays)[0], np.load(folder / "expected.npy"))
assert "torch" not in sys.modules
assert not any(name.startswith("openvino_telemetry") and sys.modules[name] for name in sys.modules)
"""
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)


def test_other_weights_are_another_graph(tmp_path: Path) -> None:
    first, second = Compiled(tmp_path, source("1")), Compiled(tmp_path, source("2"))
    first(*inputs(2, 4))
    assert first.ready
    assert not second.ready
    assert first.path.name.startswith("an-encoder-")


class Folded(nn.Module):
    """Convolutions with norms, which the runtime folds into one."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            *(
                layer
                for _ in range(6)
                for layer in (nn.Conv2d(8, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU6())
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.layers(x * 1.7 - 0.3).mean((2, 3))
        return result


def test_the_process_that_makes_a_graph_computes_what_all_others_do(tmp_path: Path) -> None:
    images = np.random.default_rng(0).standard_normal((3, 8, 16, 16)).astype(np.float32)

    def build() -> Any:
        torch.manual_seed(0)
        network = Folded()
        network(torch.randn(8, 8, 16, 16))  # the norms learn something
        return convert(network.eval(), [images[:2]], [(None, 8, 16, 16)])

    source = Source("a network", "1", build, 1)
    first, second = Compiled(tmp_path, source), Compiled(tmp_path, source)
    np.testing.assert_array_equal(first(images)[0], second(images)[0])


def spread() -> Any:
    """Of a layer with weights so uneven that 8 bits cannot hold them."""
    torch.manual_seed(0)
    layer = nn.Linear(WIDTH, 10)
    with torch.no_grad():
        layer.weight[:, 0] = 3e4
    return convert(layer.eval(), [np.ones((2, WIDTH), np.float32)], [(None, WIDTH)])


def test_eight_bits_that_are_far_off_are_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    given = np.random.default_rng(0).normal(size=(3, WIDTH)).astype(np.float32)
    given[:, 0] = 0  # what is large is not asked for, and the rest is lost
    full = Compiled(tmp_path / "full", source(build=spread))
    compiled = Compiled(tmp_path, quantised(build=spread))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            np.testing.assert_array_equal(compiled(given)[0], full(given)[0])
    (record,) = caplog.records
    assert "an encoder: its 8-bit results have a cosine of" in record.getMessage()
    assert compiled.ready
    again = Compiled(tmp_path, quantised(build=spread))
    np.testing.assert_array_equal(again(given)[0], full(given)[0])
    assert len(caplog.records) == 1


def test_without_a_place_to_keep_the_plan_every_process_plans_and_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    compiled, kept = Compiled(tmp_path / "file" / "cache", source()), Compiled(tmp_path, source())
    for _ in range(2):
        np.testing.assert_array_equal(compiled(*inputs(3, 4))[0], kept(*inputs(3, 4))[0])
    (record,) = caplog.records
    assert "an encoder: its compiled graph cannot be kept; " in record.getMessage()


def test_a_portable_graph_gives_the_same(tmp_path: Path) -> None:
    save_portable(graph(), tmp_path / "encoder.xml")
    portable = Compiled(tmp_path / "1", source(build=lambda: read_portable(tmp_path / "encoder.xml")))
    made = Compiled(tmp_path / "2", source())
    np.testing.assert_array_equal(portable(*inputs(3, 4))[0], made(*inputs(3, 4))[0])
    (tmp_path / "encoder.xml").write_text("<net>")
    with pytest.raises(DataError, match=r"encoder\.xml: not a readable graph"):
        read_portable(tmp_path / "encoder.xml")


def test_nothing_is_left_of_a_graph_that_was_not_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(graph: object, folder: Path, *settings: object) -> None:
        (folder / "graph.blob").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "save_graph", stop)
    compiled = Compiled(tmp_path, source())
    with pytest.raises(KeyboardInterrupt):
        compiled(*inputs(3, 4))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "damage", [lambda whole: b"", lambda whole: b"no graph", lambda whole: whole[:99] + b"?" + whole[100:]]
)
def test_a_damaged_graph_is_named_and_made_again(
    damage: Callable[[bytes], bytes], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    compiled = Compiled(tmp_path, source())
    before = compiled(*inputs(3, 4))
    path = compiled.path / "graph.blob"
    whole = path.read_bytes()
    path.write_bytes(damage(whole))
    np.testing.assert_array_equal(Compiled(tmp_path, source())(*inputs(3, 4))[0], before[0])
    (record,) = caplog.records
    assert f"{compiled.path.name}: not a readable graph" in record.getMessage() and is_sealed(path)


@pytest.mark.parametrize(
    ("found", "wanted", "cosine"),
    [
        ([[1.0, 0.0], [0.0, 2.0]], [[2.0, 0.0], [0.0, 1.0]], 1.0),
        ([[1.0, 0.0], [0.0, 2.0]], [[2.0, 0.0], [1.0, 0.0]], 0.0),
        ([[0.0, 0.0]], [[0.0, 0.0]], 1.0),
        ([[0.0, 0.0]], [[0.0, 1.0]], -1.0),
        ([[np.nan, 0.0]], [[1.0, 0.0]], -1.0),
        ([[1.0, 0.0]], [[1.0, 0.0, 0.0]], -1.0),
        ([[3.0], [4.0]], [[4.0], [3.0]], 0.96),
        ([3.0, 4.0], [4.0, 3.0], 0.96),
        (np.zeros((0, 4)), np.zeros((0, 4)), 1.0),
    ],
)
def test_the_least_cosine(found: Array, wanted: Array, cosine: float) -> None:
    assert least_cosine([np.array(found)], [np.array(wanted)]) == pytest.approx(cosine)


def test_a_full_disk_is_no_place_to_keep_a_plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(graph: object, folder: Path, *settings: Any) -> None:
        if folder.is_relative_to(tmp_path):
            raise OSError(errno.ENOSPC, "No space left on device")
        save_graph(graph, folder, *settings)

    monkeypatch.setattr(module, "save_graph", full)
    assert Compiled(tmp_path, source())(*inputs(3, 4))[0].shape == (3, 4, 10)
    (record,) = caplog.records
    assert "cannot be kept; [Errno 28] No space left" in record.getMessage()
    assert not list(tmp_path.iterdir())
