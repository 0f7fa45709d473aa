"""Libraries, models and data with content that nobody made by accident: refused by name."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
import sqlite3
import struct
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from moviola.encoders import load_encoder, load_sentence_encoder
from moviola.encoders.by_torch.modules import load_pretrained
from moviola.encoders.chain import read_chain
from moviola.encoders.checkpoints import DEMO_FOLDER, read_json
from moviola.encoders.weights import Weights
from moviola.errors import DataError, InvalidValue, LibraryError, MoviolaError, NotFound, UnreadableMedia
from moviola.features.published import open_features
from moviola.features.shards import Extent, FeatureShards, KeyedShards, write_table
from moviola.media import probe
from moviola.retrieval.saved.description import read_description
from moviola.search import Library, Text

DEEP = "[" * 100_000


# ---- JSON --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("content", [DEEP, '{"a":' * 100_000, "", "[]", '"a"', "\udcff", '{"weight_map": 5}'])
@pytest.mark.parametrize("name", ["config.json", "modules.json", "model.safetensors.index.json"])
def test_settings_of_a_model_that_are_none(tmp_path: Path, name: str, content: str) -> None:
    folder = shutil.copytree(DEMO_FOLDER, tmp_path / "model")
    if name.endswith("index.json"):
        (folder / "model.safetensors").unlink()
    (folder / name).write_text(content, encoding="utf-8", errors="surrogateescape")
    if name == "config.json":
        with pytest.raises(DataError, match=name):
            read_description(folder)
        with pytest.raises(MoviolaError):
            load_encoder(str(folder))
    elif name == "modules.json":
        with pytest.raises(MoviolaError):
            load_sentence_encoder(str(folder)).encode_text(["a"])
    else:
        with pytest.raises(DataError, match=name):
            Weights.of(folder)


@pytest.mark.parametrize(
    "header",
    [DEEP, "[]", '"a"', '{"a": 5}', '{"a": {"dtype": "F32", "data_offsets": 7}}',
     '{"a": {"dtype": "F32", "data_offsets": [0, 4], "shape": "x"}}', '{"a": {"dtype": []}}'],
)  # fmt: skip
def test_weights_with_a_damaged_header(tmp_path: Path, header: str) -> None:
    data = header.encode()
    (tmp_path / "model.safetensors").write_bytes(struct.pack("<Q", len(data)) + data + b"\0" * 64)
    with pytest.raises(DataError, match=r"model\.safetensors"):
        Weights.of(tmp_path)


def test_a_pickle_that_holds_more_than_weights_is_named(tmp_path: Path) -> None:
    class Command:
        def __reduce__(self) -> tuple[Callable[..., object], tuple[str]]:
            return os.system, ("echo",)

    folder = shutil.copytree(DEMO_FOLDER, tmp_path / "model")
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Command()))

    with pytest.raises(DataError, match=r"model: cannot be loaded .*; take a checkpoint with safetensors"):
        load_pretrained("transformers", "CLIPModel", folder, "cpu", "fp32")


# ---- texts -------------------------------------------------------------------------------------------------


def test_half_a_character_is_no_text() -> None:
    with pytest.raises(InvalidValue, match=r"query 'a \\udcff': not Unicode text"):
        Text("a \udcff")
    with pytest.raises(InvalidValue, match="not Unicode text"):
        load_encoder("demo").encode_text(["a \ud800"])


def test_long_ids_are_shortened(library: Library) -> None:
    with pytest.raises(NotFound) as raised:
        library.catalogue.video("a" * 50_000)
    assert len(str(raised.value)) < 400


# ---- libraries ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE meta SET value = 'x' WHERE key = 'generation'",
        "UPDATE meta SET value = 1.5 WHERE key = 'generation'",
        "CREATE TRIGGER t AFTER INSERT ON jobs BEGIN DELETE FROM videos; END",
        "CREATE VIEW v AS SELECT * FROM videos",
        "ALTER TABLE videos RENAME TO others; CREATE VIEW videos AS SELECT * FROM others",
    ],
)
def test_a_catalogue_that_does_more_than_it_is_asked(library: Library, change: str) -> None:
    library.close()
    with closing(sqlite3.connect(library.folder / "catalogue.sqlite")) as db:
        db.executescript(change)
    with (
        pytest.raises(LibraryError, match=r"catalogue\.sqlite: .*; restore a copy"),
        Library(library.folder) as opened,
    ):
        opened.search("a red square")


@pytest.mark.parametrize("details", ["replace(hex(zeroblob(100000)), '00', '[')", "'[]'", "'5'", "'{}'"])
def test_details_of_a_cue_that_are_none(library: Library, details: str) -> None:
    library.close()
    with closing(sqlite3.connect(library.folder / "catalogue.sqlite")) as db:
        db.execute(f"INSERT INTO recognised SELECT video, number, 'text', {details} FROM cues")
        db.execute("UPDATE cue_tracks SET kind = 'text'")
        db.commit()
    with (
        pytest.raises(LibraryError, match=r"catalogue\.sqlite: damaged catalogue \(a cue"),
        Library(library.folder) as opened,
    ):
        opened.search("the lighthouse keeper", by="text")


@pytest.mark.skipif(os.name != "posix", reason="names of files are Unicode elsewhere")
def test_a_library_in_a_folder_whose_name_is_no_unicode(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/lib\xff"))
    with pytest.raises(InvalidValue, match=r"lib\\xff: its name is not UTF-8; rename the folder"):
        Library(folder, encoder="demo")
    assert not folder.exists()


# ---- files of features -------------------------------------------------------------------------------------


def table(folder: Path, **changes: np.ndarray) -> Path:
    """A folder of two keys with a table in which some columns are others."""
    shards = FeatureShards(folder, "rows", 4)
    extents = [shards.append(np.ones((n, 4)), (0, begin)) for n, begin in ((3, 0), (2, 3))]
    write_table(folder, ["a", "b"], extents, 4)
    with np.load(folder / "offsets.npz") as held:
        columns = dict(held)
    np.savez(folder / "offsets.npz", **{**columns, **changes})
    return folder / "offsets.npz"


@pytest.mark.parametrize(
    "changes",
    [
        {"keys": np.array(["a", "a"])}, {"keys": np.array([1, 2])}, {"keys": np.array([["a", "b"]])},
        {"keys": np.array(["a"])}, {"offset": np.array([0, -3])}, {"offset": np.array([0.0, np.nan])},
        {"count": np.array(["x", "y"])}, {"shard": np.array([0, 9])}, {"count": np.array([3, 2**62])},
        {"shard": np.array(0)},
    ],
)  # fmt: skip
def test_a_table_of_other_columns_is_refused(tmp_path: Path, changes: dict[str, np.ndarray]) -> None:
    table(tmp_path, **changes)
    with pytest.raises(DataError):
        KeyedShards(tmp_path)


def test_a_table_with_flipped_bytes_is_read_or_refused(tmp_path: Path) -> None:
    path = table(tmp_path)
    whole, draw = path.read_bytes(), random.Random(0)
    for _ in range(300):
        harmed = bytearray(whole)
        for _ in range(draw.randint(1, 4)):
            harmed[draw.randrange(len(whole))] = draw.randrange(256)
        path.write_bytes(harmed[: draw.randrange(len(whole))] if draw.random() < 0.2 else harmed)
        try:
            KeyedShards(tmp_path).read("a")
        except (DataError, LibraryError, NotFound) as error:
            assert str(tmp_path) in str(error)


def test_a_table_that_unpacks_to_more_than_it_is(tmp_path: Path) -> None:
    path = table(tmp_path)
    with np.load(path) as held, zipfile.ZipFile(tmp_path / "bomb", "w", zipfile.ZIP_DEFLATED) as bomb:
        for name in held:
            with bomb.open(f"{name}.npy", "w") as part:
                np.lib.format.write_array(part, np.repeat(held[name][:1], 10_000))
    (tmp_path / "bomb").replace(path)
    with pytest.raises(DataError, match="compressed, which moviola never does"):
        KeyedShards(tmp_path)


def test_damaged_hdf5_is_read_or_named(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.h5"
    with h5py.File(path, "w") as file:
        for key in ("a", "b"):
            file.create_dataset(key, data=np.ones((5, 4), np.float32), compression="gzip")
        file["text"] = "words"
        file["complex"] = np.ones((2, 2), complex)
    for key in ("text", "complex"):
        with pytest.raises(DataError, match=key):
            open_features(path).read(key)
    whole, draw = path.read_bytes(), random.Random(0)
    for number in range(300):
        harmed = bytearray(whole)
        for _ in range(draw.randint(1, 6)):
            harmed[draw.randrange(len(whole))] = draw.randrange(256)
        other = tmp_path / f"{number}.h5"
        other.write_bytes(harmed)
        try:
            features = open_features(other)
            for key in features.keys():  # noqa: SIM118 -- no mapping
                features.shape(key)
                features.read(key)
        except MoviolaError as error:
            assert other.name in str(error)


@pytest.mark.parametrize("array", [np.array([["a", "b"]]), np.ones((2, 2), complex)])
def test_npy_of_no_numbers_is_named(tmp_path: Path, array: np.ndarray) -> None:
    np.save(tmp_path / "a.npy", array)
    with pytest.raises(DataError, match="real numbers are expected"):
        open_features(tmp_path).read("a")


# ---- media -------------------------------------------------------------------------------------------------


def test_a_list_of_other_files_is_no_video(films: Path) -> None:
    path = films / "list.mp4"
    path.write_text("ffconcat version 1.0\nfile a.mp4\n")
    with pytest.raises(UnreadableMedia, match=r"a list of other files|a text file"):
        probe(path)


@pytest.mark.parametrize("form", ["JPEG", "PNG", "WEBP"])
def test_a_picture_with_the_name_of_a_video_is_no_video(tmp_path: Path, form: str) -> None:
    path = tmp_path / "a.mp4"
    Image.new("RGB", (320, 240)).save(path, form)
    with pytest.raises(UnreadableMedia, match="a still picture despite its name"):
        probe(path)


# ---- made by several processes -----------------------------------------------------------------------------


def kill_yourself(*_: object, **__: object) -> None:
    os.kill(os.getpid(), 9)


def test_a_killed_maker_of_films_is_reported(tmp_path: Path) -> None:
    from moviola.errors import WorkersError
    from moviola.study.datasets.gridhouse.dataset import build

    with pytest.raises(WorkersError, match="was killed"):
        build(tmp_path / "world", videos=2, seed=0, workers=1, write_video=kill_yourself)


def test_json_of_a_checkpoint_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="fetch the checkpoint again"):
        read_json(tmp_path)
    (tmp_path / "modules.json").write_text(json.dumps([{"type": "a"}]))
    from moviola.encoders.checkpoints import Checkpoint

    with pytest.raises(DataError, match=r"modules\.json"):
        read_chain(Checkpoint("x", tmp_path, ""))


def test_extents_are_what_they_were(tmp_path: Path) -> None:
    table(tmp_path)
    assert KeyedShards(tmp_path).extent("b") == Extent(0, 3, 2)
