"""Nothing that mends can destroy: settings are put back, lost features waited for, all else can be undone."""

from __future__ import annotations

import ast
import os
import re
import shutil
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import moviola
from moviola.errors import DamagedSettings, FeaturesAway, LibraryError, NotFound
from moviola.library import Catalogue, Settings, compact, diagnosis, mend_settings, repair, verify
from moviola.library.diagnosis import Finding
from moviola.library.disk.settings import FORMAT_VERSION
from moviola.search import Library, SearchResult
from written_settings import in_format

IDS = ["a", "b", "d", "deep/c"]


def answers(folder: Path) -> SearchResult:
    with Library(folder, read_only=True) as library:
        return library.search("a red square", top_k=50)


def ids(folder: Path) -> list[str]:
    with Library(folder, read_only=True) as library:
        return [video.video_id for video in library.videos()]


def wrong(folder: Path) -> list[Finding]:
    return [finding for finding in diagnosis._library(folder) if not finding.ok]


def content(folder: Path) -> dict[str, bytes]:
    """All files of a library but SQLite's journals and the lock."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-wal", "-shm")) and not path.name.startswith(".lock")
    }


@pytest.fixture
def closed(library: Library) -> Path:
    """The folder of a library of four films that is not open."""
    library.close()
    return library.folder


# ---- settings ----------------------------------------------------------------------------------------------

WRONG = [
    ("encoder_dim = 128", "encoder_dim = 64"), ("encoder_dim = 128", "encoder_dim = 129"),
    ("frame_rate = 1.0", "frame_rate = 9.0"), ("segment_seconds = 4.0", "segment_seconds = 5.0"),
    ('index = "auto"', 'index = "flat"'), ('refiner = ""', 'refiner = "x"'), ("digest", "digesT"),
    (f"format_version = {FORMAT_VERSION}", f"format_version = {FORMAT_VERSION - 1}"),
    (f"format_version = {FORMAT_VERSION}", f"format_version = {FORMAT_VERSION + 1}"),
    ("sentence_dim = 0", "sentence_dim = "), ('encoder_revision = "', 'encoder_revision = "\\u0000'),
]  # fmt: skip


@pytest.mark.parametrize(("old", "new"), WRONG)
def test_settings_that_a_user_or_a_fault_has_changed_are_put_back(closed: Path, old: str, new: str) -> None:
    """One wrong digit made all features seem damaged, and the repair that was advised took every video."""
    path, expected = closed / "moviola.toml", answers(closed)
    whole = path.read_text()
    assert old in whole
    path.write_text(whole.replace(old, new, 1))
    for read_only in (True, False):
        with pytest.raises(DamagedSettings, match=r"moviola\.toml.*moviola repair") as refusal:
            Library(closed, read_only=read_only)
    assert "by hand" not in str(refusal.value) or "library use" in str(refusal.value)
    (found,) = wrong(closed)
    assert found.commands == (f"moviola repair --library {closed}",)
    (planned,) = mend_settings(closed, dry_run=True)
    assert planned.repairable and "backups/" in planned.repair and path.read_text() != whole
    assert mend_settings(closed) == [planned]
    assert path.read_text() == whole and ids(closed) == IDS and answers(closed) == expected
    assert (closed / "backups" / "moviola.toml").read_text() == whole.replace(old, new, 1)
    assert wrong(closed) == [] and mend_settings(closed) == []


def test_settings_that_are_gone_are_written_again(closed: Path) -> None:
    """As after a restore of a part."""
    expected, whole = answers(closed), (closed / "moviola.toml").read_bytes()
    (closed / "moviola.toml").unlink()
    with pytest.raises(NotFound, match=r"no moviola.toml.*`moviola repair"):
        Library(closed)
    assert len(mend_settings(closed)) == 1
    assert (closed / "moviola.toml").read_bytes() == whole and answers(closed) == expected


def test_settings_of_another_library_are_refused(closed: Path, tmp_path: Path) -> None:
    """Their digest is right, and nothing in them is of this library."""
    with Library(tmp_path / "other", encoder="demo", sentence_encoder="none", segment_seconds=2):
        pass
    whole = (closed / "moviola.toml").read_bytes()
    shutil.copy(tmp_path / "other" / "moviola.toml", closed)
    with pytest.raises(DamagedSettings, match=r"segment_seconds 2\.0, but the catalogue .* built with 4\.0"):
        Library(closed)
    assert len(mend_settings(closed)) == 1 and (closed / "moviola.toml").read_bytes() == whole


def test_a_library_that_is_open_notices_settings_of_another(library: Library, tmp_path: Path) -> None:
    with Library(tmp_path / "other", encoder="demo", sentence_encoder="none", segment_seconds=2):
        pass
    shutil.copy(tmp_path / "other" / "moviola.toml", library.folder)
    os.utime(library.folder / "moviola.toml", (1, 1))
    with pytest.raises(DamagedSettings):
        library.store.refresh()
    with pytest.raises(DamagedSettings):
        library.indexer.remove(["a"])
    assert ids_in_catalogue(library.folder) == IDS


def ids_in_catalogue(folder: Path) -> list[str]:
    with closing(Catalogue(folder, read_only=True)) as catalogue:
        return [video.video_id for video in catalogue.videos()]


def test_settings_that_the_catalogue_has_wrong_are_noted_again(closed: Path) -> None:
    with closing(Catalogue(closed)) as catalogue:
        catalogue._rows("UPDATE settings SET content = replace(content, '128', '129')")
    with pytest.raises(DamagedSettings, match=r"catalogue\.sqlite.*settings.*`moviola repair`"):
        Library(closed)
    assert len(mend_settings(closed)) == 1
    assert ids(closed) == IDS and wrong(closed) == []
    with closing(Catalogue(closed)) as catalogue:
        catalogue._rows("UPDATE settings SET content = '[]'")
    (closed / "moviola.toml").write_text("nothing")
    with pytest.raises(LibraryError, match="restore both from a copy"):
        mend_settings(closed)


def test_comments_and_order_are_nobodys_business(closed: Path) -> None:
    path = closed / "moviola.toml"
    lines = path.read_text().splitlines()
    path.write_text("# mine\n" + "\n".join(line for line in reversed(lines) if line[:1] != "#") + "\n")
    assert ids(closed) == IDS


@pytest.mark.parametrize("change", [{"encoder_dim": 64}, {"encoder_dim": 1280}, {"frame_rate": 9.0}])
def test_wrong_settings_of_an_earlier_format_are_not_sealed(closed: Path, change: dict[str, float]) -> None:
    """They have no digest: what is stored says whether they are right."""
    whole = content(closed)["features/frames-00000.f16"]
    in_format(closed, 3, **change)
    with Library(closed) as library:
        (problem,) = [one for one in verify(library.store) if "moviola.toml" in one.message]
        assert not problem.repairable and f" {next(iter(change.values())):g} " in problem.message
        for write in (lambda: repair(library.store), lambda: library.indexer.remove(["a"])):
            with pytest.raises(DamagedSettings, match=r"moviola\.toml: .*restore it from a copy"):
                write()
    assert ids_in_catalogue(closed) == IDS and content(closed)["features/frames-00000.f16"] == whole
    put_right(closed)
    with Library(closed) as library:
        library.indexer.remove(["a"])
        assert Settings.read(closed).format_version == FORMAT_VERSION and verify(library.store) == []


def put_right(folder: Path) -> None:
    text = (folder / "moviola.toml").read_text()
    text = re.sub(r"encoder_dim = \d+", "encoder_dim = 128", text)
    (folder / "moviola.toml").write_text(re.sub(r"frame_rate = [\d.]+", "frame_rate = 1.0", text))


def test_models_that_are_chosen_are_noted(closed: Path) -> None:
    """Else a repair would put back what nobody uses any more."""
    with Library(closed) as library:
        library.indexer.use(refiner="demo")
        chosen = library.settings
    (closed / "moviola.toml").write_text("")
    assert len(mend_settings(closed)) == 1
    assert Settings.read(closed) == chosen != replace(chosen, refiner="", refiner_revision="")


# ---- features ----------------------------------------------------------------------------------------------


def a_folder_away(closed: Path) -> Callable[[], object]:
    (closed / "features").rename(closed.parent / "elsewhere")
    return lambda: (closed.parent / "elsewhere").rename(closed / "features")


def a_link_that_leads_nowhere(closed: Path) -> Callable[[], object]:
    back = a_folder_away(closed)
    (closed / "features").symlink_to(closed.parent / "unplugged")
    return lambda: ((closed / "features").unlink(), back())


def a_shard_away(closed: Path) -> Callable[[], object]:
    shard = closed / "features" / "frames-00000.f16"
    shard.rename(closed.parent / "shard")
    return lambda: (closed.parent / "shard").rename(shard)


def a_shard_of_length_0(closed: Path) -> Callable[[], object]:
    shard = closed / "features" / "frames-00000.f16"
    whole = shard.read_bytes()
    shard.write_bytes(b"")
    return lambda: shard.write_bytes(whole)


def a_shard_that_is_a_folder(closed: Path) -> Callable[[], object]:
    back = a_shard_away(closed)
    shard = closed / "features" / "frames-00000.f16"
    shard.mkdir()
    (shard / "lost+found").mkdir()
    return lambda: (shutil.rmtree(shard), back())


@pytest.mark.parametrize(
    "take",
    [
        a_folder_away, a_link_that_leads_nowhere, a_shard_away, a_shard_of_length_0, a_shard_that_is_a_folder,
    ],
)  # fmt: skip
def test_features_that_are_away_cost_nothing(
    closed: Path, film: Callable[..., Path], films: Path, take: Callable[[Path], Callable[[], object]]
) -> None:
    """The repair that was advised took every video out for good; new features were written beside them."""
    expected, catalogue = answers(closed), ids_in_catalogue(closed)
    put_back = take(closed)
    film(films / "new.mp4", 7, 9)
    found = wrong(closed)
    assert "features of 4 videos lie there" in found[0].detail
    assert not any("repair" in command for finding in found for command in finding.commands)
    with Library(closed) as library:
        with pytest.raises(FeaturesAway, match="features") as searching:
            library.search("a red square", by="visual")
        for options in ({}, {"dry_run": True}, {"confirm": lambda *_: True}):
            with pytest.raises(FeaturesAway, match="features of 4 videos lie there") as refusal:
                repair(library.store, **options)
        for write in (
            lambda: library.index(films),
            lambda: compact(library.store),
            lambda: library.indexer.again(["a"]),
        ):
            before = content(closed)
            try:
                write()
            except FeaturesAway:
                assert {name for name, data in content(closed).items() if before.get(name) != data} <= {
                    "stills.sqlite", "catalogue.sqlite",
                }  # fmt: skip
    assert "moviola repair`" not in str(searching.value) and "repair --for-good" not in str(refusal.value)
    assert ids_in_catalogue(closed) == catalogue
    put_back()
    assert answers(closed) == expected
    with Library(closed) as library:
        assert library.index(films).added == ["new"]
        assert verify(library.store) == []


def test_features_that_this_user_may_not_read_are_not_called_damaged(
    closed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected, opened = answers(closed), Path.open

    def refused(path: Path, *arguments: object, **options: object) -> object:
        if path.suffix == ".f16":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, *arguments, **options)  # type: ignore[call-overload]

    def unmapped(path: Path, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    with monkeypatch.context() as context, Library(closed) as library:
        context.setattr(Path, "open", refused)
        context.setattr(np, "memmap", unmapped)
        (problem,) = [one for one in verify(library.store) if "features" in one.message]
        assert "cannot be read (Permission denied)" in problem.message and not problem.repairable
        with pytest.raises(FeaturesAway, match="Permission denied"):
            repair(library.store, confirm=lambda *_: True)
    assert answers(closed) == expected


def damage(folder: Path, *video_ids: str) -> Callable[[], object]:
    """Flip a bit of the features of pictures; returns what makes them whole again."""
    shard = folder / "features" / "frames-00000.f16"
    whole = shard.read_bytes()
    harmed = bytearray(whole)
    with closing(Catalogue(folder, read_only=True)) as catalogue:
        for video in catalogue.listed(video_ids):
            assert video.frames is not None
            harmed[video.frames.offset * 256 + 3] ^= 0x10
    shard.write_bytes(harmed)
    return lambda: shard.write_bytes(whole)


def test_a_repair_of_much_asks_and_can_be_undone(closed: Path) -> None:
    expected = answers(closed)
    make_whole = damage(closed, "a", "d")
    asked: list[tuple[list[str], int]] = []

    def no(videos: object, total: int) -> bool:
        asked.append((sorted(videos), total))  # type: ignore[call-overload]
        return False

    with Library(closed) as library:
        before = content(closed)
        planned = repair(library.store, dry_run=True)
        assert {one.video_id for one in planned if "takes the video out" in one.repair} == {"a", "d"}
        for options in ({"confirm": no}, {}):
            with pytest.raises(LibraryError, match="2 of 4 videos would be taken out, more than a tenth"):
                repair(library.store, **options)  # type: ignore[arg-type]
        assert content(closed) == before and asked == [(["a", "d"], 4)]
        repair(library.store, confirm=lambda *_: True)
        assert [one.video_id for one in library.videos()] == ["b", "deep/c"]
        assert [one for one in verify(library.store) if one.repairable] == []
        with pytest.raises(LibraryError, match="its features are damaged"):
            library.indexer.restore(["a"])
        make_whole()
        assert library.indexer.restore(["a", "d"]) == ["a", "d"]
    assert answers(closed) == expected and wrong(closed) == []


def test_vectors_lost_for_ever_can_be_given_up(closed: Path, films: Path) -> None:
    (closed / "features" / "frames-00000.f16").unlink()
    with Library(closed) as library:
        with pytest.raises(LibraryError, match="4 of 4 videos would be taken out, for good"):
            repair(library.store, for_good=True)
        assert len(library) == 4
        repair(library.store, for_good=True, confirm=lambda *_: True)
        assert len(library) == 0 and library.catalogue.removed() == [] and verify(library.store) == []
        assert sorted(library.index(films).added) == IDS and verify(library.store) == []
    assert not (closed / "features" / "frames-00000.f16").exists()  # which may be back some day


def test_a_shard_that_has_become_shorter_gets_no_more_rows(closed: Path, films: Path) -> None:
    """A gap of zeros was written, and the whole file put back would have been short of the new rows."""
    shard = closed / "features" / "frames-00000.f16"
    whole = shard.read_bytes()
    shard.write_bytes(whole[: len(whole) // 2])
    with Library(closed) as library:
        repair(library.store, confirm=lambda *_: True)
        gone = {one.video_id for one in library.catalogue.removed()}
        assert gone and set(library.index(films).added) == gone and verify(library.store) == []
    assert shard.stat().st_size == len(whole) // 2
    shard.write_bytes(whole)
    assert ids(closed) == IDS and wrong(closed) == []


# ---- what else is replaced ---------------------------------------------------------------------------------


def test_damaged_stills_are_kept_beside(closed: Path) -> None:
    """They are all there is to see of a film whose drive is away; a newer SQLite may read them."""
    path = closed / "stills.sqlite"
    harmed = bytearray(path.read_bytes())
    harmed[4096:4200] = b"\xff" * 104
    path.write_bytes(harmed)
    with Library(closed) as library:
        assert any("backups/" in one.repair for one in repair(library.store, dry_run=True))
        repair(library.store)
        assert verify(library.store) == []
    assert (closed / "backups" / "stills.sqlite").read_bytes() == harmed
    path.write_bytes(harmed)
    with Library(closed) as library:
        repair(library.store)
    assert (closed / "backups" / "stills.sqlite-2").read_bytes() == harmed


def test_a_damaged_model_that_is_no_longer_used_is_kept(closed: Path) -> None:
    """The command that was advised deleted it, though its drive may only have been away for a moment."""
    with Library(closed) as library:
        library.indexer.use(refiner="demo")
        model = closed / "models" / "refiner" / library.settings.refiner
        weights = bytearray((model / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (model / "model.safetensors").write_bytes(weights)
        (problem,) = verify(library.store)
        assert problem.commands == (f"moviola library use --refiner none --library {closed}",)
        library.indexer.use(refiner="none")
        assert verify(library.store) == [] and not model.exists()
        assert (closed / "backups" / model.name / "model.safetensors").read_bytes() == weights
        weights[-1] ^= 1
        (closed / "backups" / model.name / "model.safetensors").write_bytes(weights)
        library.indexer.use(refiner=closed / "backups" / model.name)
        assert verify(library.store) == []


def test_a_folder_that_was_forgotten_comes_back_with_its_videos(library: Library, films: Path) -> None:
    library.index(films, exclude=["proxies/"])
    (before,) = library.catalogue.roots()
    assert library.indexer.only_in(films) == IDS == sorted(library.indexer.forget_root(films))
    assert library.catalogue.roots() == []
    library.indexer.restore(["a"])
    assert library.catalogue.roots() == [before] and before.patterns == ("proxies/",)


UNDONE_BY_NOTHING = re.compile(
    r"moviola compact|--for-good|concepts forget|kept delete|delete (it|this|the file|its)\b|rm -",
    re.IGNORECASE,
)
ALLOWED = {
    "files/sealed.py": "of a cache, which is made again",
    "files/array_file.py": "of a cache, which is made again",
    "compiled/runtime.py": "a graph in the user's cache, which is made again",
    "cli/upkeep.py": "the option itself, and the question",
}


def test_no_message_recommends_what_cannot_be_undone() -> None:
    """Texts of the product, but for the documentation of functions: ten said "delete it", or worse."""
    folder = Path(moviola.__file__).parent
    found: dict[str, list[str]] = {}
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text())
        documented = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and node.body
            and isinstance(node.body[0], ast.Expr)
        }
        for node in ast.walk(tree):
            text = node.value if isinstance(node, ast.Constant) and id(node) not in documented else ""
            if isinstance(text, str) and UNDONE_BY_NOTHING.search(text):
                found.setdefault(path.relative_to(folder).as_posix(), []).append(text)
    assert {name: texts for name, texts in found.items() if name not in ALLOWED} == {}
    assert ALLOWED.keys() <= found.keys()
