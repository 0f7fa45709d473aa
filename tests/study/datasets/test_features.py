"""Feature files of every form, their conversion, and what does not fit an annotation."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from numpy.typing import NDArray
from safetensors import safe_open
from safetensors.numpy import save_file
from typer.testing import CliRunner

from moviola.cli import all_commands
from moviola.errors import DataError, InvalidValue, NotFound
from moviola.features import KeyedShards, convert, open_features
from moviola.study.datasets.annotations import Collector
from moviola.study.datasets.feature_check import check_features

app = all_commands()

Arrays = dict[str, NDArray[np.float32]]


@pytest.fixture
def arrays() -> Arrays:
    draw = np.random.default_rng(3)
    return {f"v{n}": draw.normal(size=(n + 2, 4)).astype(np.float32) for n in range(5)}


def as_hdf5(arrays: Arrays, folder: Path) -> Path:
    with h5py.File(folder / "f.h5", "w") as file:
        for key, rows in arrays.items():
            file[key] = rows
    return folder / "f.h5"


def as_npy(arrays: Arrays, folder: Path) -> Path:
    (folder / "npy").mkdir()
    for key, rows in arrays.items():
        np.save(folder / "npy" / f"{key}.npy", rows)
    return folder / "npy"


def as_tensors(arrays: Arrays, folder: Path) -> Path:
    save_file(arrays, folder / "all.safetensors")
    return folder / "all.safetensors"


def as_tensor_folder(arrays: Arrays, folder: Path) -> Path:
    (folder / "st").mkdir()
    for key, rows in arrays.items():
        save_file({"features": rows}, folder / "st" / f"{key}.safetensors")
    return folder / "st"


def as_npz(arrays: Arrays, folder: Path) -> Path:
    np.savez(folder / "all.npz", **arrays)  # type: ignore[arg-type]
    return folder / "all.npz"


def as_npz_folder(arrays: Arrays, folder: Path, **others: NDArray[np.float32]) -> Path:
    (folder / "npz").mkdir()
    for key, rows in arrays.items():
        np.savez_compressed(folder / "npz" / f"{key}.npz", features=rows, **others)  # type: ignore[arg-type]
    return folder / "npz"


def as_groups(arrays: Arrays, folder: Path) -> Path:
    """A group for each key, as the C3D features of ActivityNet."""
    with h5py.File(folder / "g.h5", "w") as file:
        for key, rows in arrays.items():
            file[f"{key}/features"] = rows
            file[f"{key}/deep/more"] = rows[:1]
    return folder / "g.h5"


def as_kinds(arrays: Arrays, folder: Path) -> Path:
    """A group for each kind of features."""
    with h5py.File(folder / "k.h5", "w") as file:
        for key, rows in arrays.items():
            file[f"features/{key}"] = rows
            file[f"others/{key}"] = rows[:1]
    return folder / "k.h5"


FORMS = [as_hdf5, as_npy, as_tensors, as_tensor_folder, as_npz, as_npz_folder]


@pytest.mark.parametrize("write", [*FORMS, as_groups, as_kinds])
def test_every_form_reads_the_same_and_converts(write, arrays: Arrays, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    inner = "features" if write in (as_groups, as_kinds) else None
    source = open_features(write(arrays, tmp_path), inner)
    assert sorted(source.keys()) == sorted(arrays)
    shards = convert(source, tmp_path / "shards", shard_bytes=60)
    assert len(list((tmp_path / "shards").glob("rows-*.f16"))) > 1
    again = open_features(tmp_path / "shards")
    assert isinstance(again, KeyedShards)
    for key, rows in arrays.items():
        assert source.shape(key) == again.shape(key) == rows.shape
        np.testing.assert_array_equal(source.read(key), rows)
        np.testing.assert_array_equal(shards.mapped(key), rows.astype(np.float16))
        assert again.read(key).dtype == np.float32
    for one in (source, again):
        with pytest.raises(NotFound, match="no features of 'gone'"):
            one.read("gone")


def test_one_of_several_arrays_is_named(arrays: Arrays, tmp_path: Path) -> None:
    """Where none is, the error lists them; a guess could be another kind of features."""
    groups, kinds = as_groups(arrays, tmp_path), as_kinds(arrays, tmp_path)
    folder = as_npz_folder(arrays, tmp_path, pooled=np.ones((1, 4), np.float32))
    for inner, said in (
        (None, r"g\.h5: v0: a group, which holds deep, features; name one, as FILE:NAME"),
        ("c3d", r"g\.h5: v0: a group without 'c3d', which holds deep, features; name one"),
        ("deep", r"g\.h5: v0: deep is a group, which holds deep/more; name one"),
    ):
        with pytest.raises(DataError, match=said):
            open_features(groups, inner).shape("v0")
    with pytest.raises(DataError, match=r"k\.h5: features: a group, which holds v0, v1"):
        open_features(kinds).read("features")
    for inner in (None, "c3d"):
        with pytest.raises(
            DataError, match=r"v0\.npz: a file of 2 arrays.* holds features, pooled; name one"
        ):
            open_features(folder, inner).read("v0")
    assert (
        open_features(folder, "pooled").shape("v0")
        == open_features(groups, "deep/more").shape("v0")
        == (1, 4)
    )
    args = ["features", "convert", f"{groups}:features", "--out", str(tmp_path / "out")]
    assert CliRunner().invoke(app, args).exit_code == 0
    np.testing.assert_array_equal(open_features(tmp_path / "out").read("v1"), arrays["v1"].astype(np.float16))


@pytest.mark.parametrize("place", [0, 250, -20])
def test_a_damaged_npz_is_named(arrays: Arrays, tmp_path: Path, place: int) -> None:
    path = as_npz(arrays, tmp_path)
    data = bytearray(path.read_bytes())
    data[place : place + 12] = b"x" * 12
    path.write_bytes(data)
    with pytest.raises(DataError, match=r"all\.npz: no readable npz file"):
        source = open_features(path)
        for key in arrays:
            source.read(key)
    with pytest.raises(DataError, match="no readable npz file"):
        (tmp_path / "objects").mkdir()
        np.savez(tmp_path / "objects" / "a.npz", features=np.array([{}]))
        open_features(tmp_path / "objects").read("a")


@pytest.mark.parametrize(("kind", "bytes_each"), [("BF16", 2), ("F8_E4M3", 1)])
def test_numbers_that_numpy_does_not_have_are_refused_by_name(
    tmp_path: Path, kind: str, bytes_each: int
) -> None:
    path, size = tmp_path / "a.safetensors", 6 * bytes_each
    head = json.dumps({"a": {"dtype": kind, "shape": [2, 3], "data_offsets": [0, size]}}).encode()
    path.write_bytes(len(head).to_bytes(8, "little") + head + bytes(size))
    for source in (tmp_path, path):
        with pytest.raises(DataError, match=r"a\.safetensors: a: .* save them in float16 or float32"):
            open_features(source).read("a")


def test_the_keys_of_one_file_are_listed_once(arrays: Arrays, tmp_path: Path, monkeypatch: Any) -> None:
    file, listed = safe_open(as_tensors(arrays, tmp_path), framework="numpy"), list[str]()

    class Listing:
        def keys(self) -> list[str]:
            listed.append("keys")
            return list(file.keys())

        def __getattr__(self, name: str) -> Any:
            return getattr(file, name)

    monkeypatch.setattr("safetensors.safe_open", lambda *_, **__: Listing())
    source = open_features(tmp_path / "all.safetensors")
    assert [source.read(key).shape for key in source.keys()] == [arrays[key].shape for key in sorted(arrays)]  # noqa: SIM118
    assert listed == ["keys"]


def test_a_vector_is_one_row(tmp_path: Path) -> None:
    (tmp_path / "q").mkdir()
    np.save(tmp_path / "q" / "7.npy", np.ones(5, np.float32))
    assert open_features(tmp_path / "q").read("7").shape == (1, 5)


def test_mixed_dimensions_and_overflow_are_refused_by_name(arrays: Arrays, tmp_path: Path) -> None:
    broken = {**arrays, "w": np.ones((2, 5), np.float32)}
    with pytest.raises(DataError, match=r"^a\.h5: w: dimension 5, but v0 has 4; give features of one"):
        convert(open_features(as_hdf5(broken, tmp_path)), tmp_path / "a", origin="a.h5")
    huge = {**arrays, "w": np.full((2, 4), 1e6, np.float32)}
    (tmp_path / "h").mkdir()
    with pytest.raises(DataError, match="w: a number is not finite"):
        convert(open_features(as_hdf5(huge, tmp_path / "h")), tmp_path / "b")


@pytest.mark.parametrize("there", [True, False])
def test_a_folder_that_could_not_be_filled_can_be_given_again(
    arrays: Arrays, tmp_path: Path, there: bool
) -> None:
    folder, broken = tmp_path / "s", {**arrays, "w": np.full((2, 4), np.nan, np.float32)}
    if there:
        folder.mkdir()
    with pytest.raises(DataError, match="w: a number is not finite"):
        convert(open_features(as_hdf5(broken, tmp_path)), folder)
    assert folder.exists() == there
    convert(open_features(as_hdf5(arrays, tmp_path)), folder)
    assert open_features(folder).keys() == tuple(arrays)


def test_unfinished_or_cut_shards_are_noticed(arrays: Arrays, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    convert(open_features(as_hdf5(arrays, tmp_path)), folder)
    with pytest.raises(InvalidValue, match="not empty"):
        convert(open_features(tmp_path / "f.h5"), folder)
    shard = folder / "rows-00000.f16"
    shard.write_bytes(shard.read_bytes()[:-8])
    with pytest.raises(DataError, match="19 rows, but 20 are listed"):
        open_features(folder)
    (folder / "shards.json").unlink()
    with pytest.raises(DataError, match="holds neither"):
        open_features(folder)


def test_rows_without_numbers_are_refused(tmp_path: Path) -> None:
    np.save(tmp_path / "one.npy", np.empty((5, 0), np.float32))
    with pytest.raises(DataError, match="one: rows without numbers"):
        convert(open_features(tmp_path), tmp_path / "out", origin=tmp_path)
    np.save(tmp_path / "one.npy", np.ones((5, 2), np.float32))
    convert(open_features(tmp_path), tmp_path / "out")
    (tmp_path / "out" / "shards.json").write_text('{"format": 1, "dim": 0}')
    with pytest.raises(DataError, match="with a dim above 0 is expected"):
        open_features(tmp_path / "out")


def test_no_feature_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such file"):
        open_features(tmp_path / "gone.h5")
    (tmp_path / "text.h5").write_text("no")
    with pytest.raises(DataError, match="no readable HDF5"):
        open_features(tmp_path / "text.h5")
    os.mkfifo(tmp_path / "pipe.h5")
    with pytest.raises(DataError, match=r"pipe\.h5: no regular file"):
        open_features(tmp_path / "pipe.h5")


def test_misfits_are_named(tmp_path: Path) -> None:
    gather = Collector("t")
    for name, duration in {"fits": 15.0, "gone": 9.0, "stale": 15.0, "cut": 30.0, "wide": 3.0}.items():
        gather.add_video(name, duration)
    rows = {"fits": (10, 4), "stale": (20, 4), "cut": (5, 4), "wide": (2, 6), "extra": (3, 4)}
    path = as_hdf5({key: np.zeros(shape, np.float32) for key, shape in rows.items()}, tmp_path)
    flaws = check_features(open_features(path), gather.made(), 1.5)
    assert {(flaw.kind, flaw.where) for flaw in flaws} == {
        ("no features", "gone"),
        ("longer than the video", "stale"),
        ("shorter than the video", "cut"),
        ("other dimension", "wide"),
        ("no such video", "extra"),
    }


def test_the_commands_convert_and_check(arrays: Arrays, tmp_path: Path) -> None:
    runner = CliRunner()
    source = as_hdf5(arrays, tmp_path)
    done = runner.invoke(app, ["features", "convert", str(source), "--out", str(tmp_path / "s"), "--json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["rows"] == sum(map(len, arrays.values()))
    notes = tmp_path / "a.jsonl"
    row = {"vid_name": "v0", "duration": 3.0, "ts": [0, 1], "desc": "A man sits.", "type": "v", "desc_id": 1}
    notes.write_text(json.dumps(row) + "\n")
    words = ["features", "check", str(tmp_path / "s"), "--annotations", str(notes), "--json"]
    checked = runner.invoke(app, [*words, "--clip-seconds", "1.5"])
    assert checked.exit_code == 3
    flaws = [json.loads(line) for line in checked.stdout.splitlines()]
    assert [flaw["where"] for flaw in flaws if flaw["kind"] == "no such video"] == ["v1", "v2", "v3", "v4"]
