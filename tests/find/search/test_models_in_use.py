"""``Library.use``: what is taken, what is refused, and that a library stays whole, small and safe to copy."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from moviola.errors import DataError, EncoderMismatch, InvalidValue, LibraryError, NotFound
from moviola.library import LibraryStore, View, Viewer, repair, verify
from moviola.library.derived import view as views
from moviola.library.derived.indexes import current_index
from moviola.library.disk.models_in_use import ROLES
from moviola.library.disk.video_table import VideoTable
from moviola.retrieval.model_parts import ReelParts
from moviola.retrieval.trained_models import REFINERS
from moviola.search import Library
from moviola.types import Moment

Trained = Callable[..., Path]
QUERIES = ("a red square", "the umbrella of the lighthouse keeper", "something green")
REFINED = sorted(REFINERS)


def answers(library: Library, **options: Any) -> list[list[Moment]]:
    return [library.search(query, top_k=100, **options) for query in QUERIES]


def files(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_every_refiner_that_may_be_in_use_can_be_run() -> None:
    assert ROLES["refiner"] == frozenset(REFINERS)


# ---- putting in use ----------------------------------------------------------------------------------------


def test_models_are_copied_and_recorded(library: Library, folder: Path, trained: Trained) -> None:
    library.indexer.use(stage1=trained("spr-stage1"), refiner=trained("reel"))
    used = library.indexer.models_in_use()
    for role, architecture in (("stage1", "spr-stage1"), ("refiner", "reel")):
        about = used[role]
        assert about is not None and about["name"] == f"{architecture}-0-{about['revision'][:8]}"
        copies = folder / "models" / role / about["name"]
        graphs = {name for name in files(copies) if name.startswith(f"graphs/{about['revision']}/")}
        assert graphs and files(copies) - graphs == {"config.json", "model.safetensors", "README.md"}
        assert f'{role} = "{about["name"]}"' in (folder / "moviola.toml").read_text()
    assert verify(library.store) == []


def test_models_that_change_during_a_search_do_not_mix_with_the_index(
    library: Library, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    library.indexer.use(stage1=trained("spr-stage1"), refiner=trained("reel"))
    before, present = answers(library), Viewer.view

    def view(viewer: Viewer) -> View:
        found = present(viewer)
        library.indexer.use(stage1="none", refiner="none")
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Viewer, "view", view)
        first = library.search(QUERIES[0], top_k=100)
    assert first == before[0] and answers(library) != before


def test_a_view_is_of_models_that_came_into_use_while_it_was_made(
    library: Library, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, models = current_index, trained("spr-stage1")

    def index(store: LibraryStore, name: str, videos: VideoTable) -> Any:
        if name == "segments" and not store.settings.stage1:
            library.indexer.use(stage1=models)
        return made(store, name, videos)

    monkeypatch.setattr(views, "current_index", index)
    found = Viewer(library.store).view()
    assert found.settings.stage1 and found.models is library.store.models


def test_the_models_may_be_used_from_where_they_were_copied_to(library: Library, trained: Trained) -> None:
    library.indexer.use(refiner=trained("reel"))
    before = library.indexer.models_in_use()
    assert before["refiner"] is not None
    library.indexer.use(refiner=library.folder / "models" / "refiner" / before["refiner"]["name"])
    assert library.indexer.models_in_use() == before


def test_only_what_is_in_use_is_kept(library: Library, folder: Path, trained: Trained) -> None:
    before = files(folder)
    for seed in (1, 2):
        library.indexer.use(stage1=trained("spr-stage1", seed=seed), refiner=trained("reel", seed=seed))
    assert len(list((folder / "models" / "stage1").iterdir())) == 1
    assert len(list((folder / "models" / "refiner").iterdir())) == 1
    assert len(list((folder / "cache" / "context").iterdir())) == 1
    library.indexer.use(stage1="none", refiner="none")
    left = {name for name in files(folder) if not name.startswith("catalogue")}
    assert left == {name for name in before if not name.startswith("catalogue")} | {".lock"}


@pytest.mark.parametrize("refiner", REFINED)
def test_none_goes_back_to_the_untrained_answers_exactly(
    library: Library, trained: Trained, refiner: str
) -> None:
    before = answers(library)
    library.indexer.use(stage1=trained("spr-stage1"), refiner=trained(refiner))
    assert answers(library) != before
    library.indexer.use(stage1="none", refiner="none")
    assert answers(library) == before
    with Library(library.folder, read_only=True) as reopened:
        assert answers(reopened) == before


def test_one_role_leaves_the_other_alone(library: Library, trained: Trained) -> None:
    library.indexer.use(stage1=trained("spr-stage1"))
    library.indexer.use(refiner=trained("spr-clip"))
    stage1, refiner = (library.indexer.models_in_use()[role] for role in ("stage1", "refiner"))
    assert stage1 and refiner
    library.indexer.use(stage1="none")
    assert library.indexer.models_in_use() == {"stage1": None, "refiner": refiner}


def test_the_index_is_made_again_when_stage_1_changes(library: Library, trained: Trained) -> None:
    def published(**options: Any) -> bytes:
        with Library(library.folder, **options) as reopened:
            assert verify(reopened.store) == []
        (path,) = (library.folder / "index").glob("segments-*.faiss")
        return path.read_bytes()

    plain = published()
    library.indexer.use(stage1=trained("spr-stage1", seed=1))
    first = published()
    library.indexer.use(refiner=trained("reel"))
    assert published() == first
    library.indexer.use(stage1=trained("spr-stage1", seed=2))
    assert len({plain, first, published()}) == 3
    library.indexer.use(stage1="none")
    assert published() == plain


def test_an_index_of_another_stage_1_is_not_searched(library: Library, trained: Trained) -> None:
    """As if the process had been killed between the settings and the index."""
    index = library.folder / "index"
    old = {path.name: path.read_bytes() for path in index.iterdir()}
    library.indexer.use(stage1=trained("spr-stage1"))
    expected = answers(library)
    shutil.rmtree(index)
    index.mkdir()
    for name, content in old.items():
        (index / name).write_bytes(content)
    with Library(library.folder, read_only=True) as reopened:
        assert answers(reopened) == expected
        (problem,) = verify(reopened.store)
        assert "mean of normalised frames" in problem.message and problem.repairable
    with Library(library.folder) as reopened:
        repair(reopened.store)
        assert verify(reopened.store) == []


def test_videos_that_come_later_are_indexed_with_the_models(
    library: Library, films: Path, trained: Trained
) -> None:
    library.indexer.use(stage1=trained("spr-stage1"), refiner=trained("reel"))
    expected = answers(library)
    library.indexer.remove(["film0", "film2"])
    assert {m.video_id for m in answers(library)[0]} == {"film1"}
    library.index(films)
    assert verify(library.store) == []
    rows = {video.row for video in library.catalogue.videos()}
    (contexts,) = (library.folder / "cache" / "context").iterdir()
    assert {int(path.stem) for path in contexts.iterdir()} == rows
    assert {(m.video_id, m.start, m.end) for m in answers(library)[0]} == {
        (m.video_id, m.start, m.end) for m in expected[0]
    }


def test_a_writer_takes_over_the_models_that_another_process_has_put_in_use(
    library: Library, trained: Trained
) -> None:
    with Library(library.folder) as other:
        other.indexer.use(stage1=trained("spr-stage1"), refiner=trained("reel"))
        library.indexer.remove(["film2"])
        assert library.indexer.models_in_use() == other.indexer.models_in_use()
        assert answers(library) == answers(other)
        assert verify(library.store) == []


# ---- refusals ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extra", "message"),
    [
        ({"encoder": "openai/clip"}, r"a model for encoder 'openai/clip', but the library has 'demo'"),
        ({"encoder_revision": "abc"}, r"a model for encoder revision 'abc', but the library has '\w+'"),
        ({"clip_seconds": 1.5}, r"a model for clip seconds 1\.5, but the library has 1\.0; .*--frame-rate"),
    ],
)
@pytest.mark.parametrize(("role", "architecture"), [("stage1", "spr-stage1"), ("refiner", "reel")])
@pytest.mark.parametrize("force", [False, True])
def test_models_for_other_features_are_refused_with_both_values(
    library: Library, trained: Trained, role: str, architecture: str, extra: Any, message: str, force: bool
) -> None:
    settings = (library.folder / "moviola.toml").read_bytes()
    with pytest.raises(EncoderMismatch, match=message):
        library.indexer.use(**{role: trained(architecture, extra=extra), "force": force})  # type: ignore[arg-type]
    assert (library.folder / "moviola.toml").read_bytes() == settings
    assert not (library.folder / "models").exists()


@pytest.mark.parametrize(
    ("architecture", "changes", "message"),
    [
        ("spr-stage1", {"hidden_size": 64}, "frame features of size 64, but the library has 128"),
        ("spr-stage1", {"max_clips": 3}, "at most this many clips 3, but the library has 4"),
        ("spr-stage1", {"extra": {"segment_clips": 8}}, "segment clips 8, but the library has 4"),
        (
            "spr-stage1",
            {"extra": {"settings": {"sampling": {"segment_clips": 2}}}},
            "segment clips 2, but the library has 4",
        ),
        ("reel-stage1", {"visual_size": 64}, "frame features of size 64, but the library has 128"),
        ("reel-stage1", {"query_size": 64}, "query features of size 64, but the library has 128"),
        ("spr-clip", {"hidden_size": 64}, "frame features of size 64, but the library has 128"),
        ("reel", {"visual_size": 64}, "frame features of size 64, but the library has 128"),
        ("reel", {"query_size": 64}, "query features of size 64, but the library has 128"),
        ("reloclnet", {"subtitle_size": 96}, "subtitle features of size 96, but the library has 384"),
    ],
)
def test_models_of_other_sizes_are_refused_with_both_values(
    library: Library, trained: Trained, architecture: str, changes: dict[str, Any], message: str
) -> None:
    role = next(role for role, known in ROLES.items() if architecture in known)
    with pytest.raises(EncoderMismatch, match=message):
        library.indexer.use(**{role: trained(architecture, **changes)})  # type: ignore[arg-type]


def test_a_refiner_does_not_mind_the_length_of_segments(library: Library, trained: Trained) -> None:
    library.indexer.use(refiner=trained("reel"))
    expected = answers(library)
    library.indexer.use(refiner=trained("reel", extra={"segment_clips": 8}))
    assert answers(library) == expected


def test_a_model_that_does_not_say_what_it_was_trained_on(library: Library, trained: Trained) -> None:
    model = trained("reel", extra=None)
    with pytest.raises(InvalidValue, match=r"encoder, encoder_revision, .* missing .*--force"):
        library.indexer.use(refiner=model)
    library.indexer.use(refiner=model, force=True)
    assert answers(library)[0]
    with pytest.raises(EncoderMismatch, match=r"clip seconds 1\.5"):
        library.indexer.use(refiner=trained("reel", extra=None, clip_seconds=1.5), force=True)


def test_a_refiner_that_is_worse_than_none_is_refused(library: Library, trained: Trained) -> None:
    """Four steps of training make a model that finds nothing; searches with it would find nothing, too."""
    measure = "nDCG@20,IoU>=0.5"
    worse = trained("reel", extra={"val": {measure: 0.0021}, "search_on_val": {measure: 0.8255}})
    with pytest.raises(InvalidValue, match=r"worse than no model: on val .* 0.0021, and 0.8255 .* --force"):
        library.indexer.use(refiner=worse)
    library.indexer.use(refiner=worse, force=True)
    for as_good in ({measure: 0.8255}, {"other": 0.1}, None):
        found = {"val": as_good, "search_on_val": {measure: 0.8255}}
        library.indexer.use(refiner=trained("reel", extra=found))


def test_a_model_of_the_wrong_kind_is_refused(library: Library, trained: Trained) -> None:
    with pytest.raises(InvalidValue, match="'reel'; as stage1 a library uses reel-stage1 or spr-stage1"):
        library.indexer.use(stage1=trained("reel"))
    with pytest.raises(InvalidValue, match="'spr-stage1'; as refiner a library uses reel or"):
        library.indexer.use(refiner=trained("spr-stage1"))


def test_both_models_are_looked_at_before_anything_changes(library: Library, trained: Trained) -> None:
    with pytest.raises(InvalidValue):
        library.indexer.use(stage1=trained("spr-stage1"), refiner=trained("spr-stage1"))
    assert library.indexer.models_in_use() == {"stage1": None, "refiner": None}
    assert not (library.folder / "models").exists()


def test_damaged_models_are_refused(library: Library, trained: Trained, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="no such folder"):
        library.indexer.use(refiner=tmp_path / "nowhere")
    model = trained("reel")
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-9])
    with pytest.raises(DataError, match="safetensors"):
        library.indexer.use(refiner=model)


def test_weights_that_are_no_numbers_are_refused(library: Library, trained: Trained) -> None:
    from moviola.study.models.pretrained import from_pretrained, save_pretrained

    folder = trained("spr-stage1")
    model = from_pretrained(folder)
    next(model.parameters()).data.fill_(np.nan)
    save_pretrained(model, folder, card="Broken.")
    with pytest.raises(DataError, match="not finite"):
        library.indexer.use(stage1=folder, force=True)


def test_nothing_to_change_and_read_only(library: Library, trained: Trained) -> None:
    with pytest.raises(InvalidValue, match="nothing to change"):
        library.indexer.use()
    with Library(library.folder, read_only=True) as reader, pytest.raises(InvalidValue, match="read-only"):
        reader.indexer.use(refiner=trained("reel"))


def test_a_library_without_pictures_has_no_use_for_models(tmp_path: Path, trained: Trained) -> None:
    with (
        Library(tmp_path / "words", encoder="none", sentence_encoder="none") as library,
        pytest.raises(LibraryError, match="without a visual encoder"),
    ):
        library.indexer.use(refiner=trained("reel"))


@pytest.mark.parametrize("role", ["stage1", "refiner"])
@pytest.mark.parametrize("damage", ["lost", "changed"])
def test_a_model_in_use_that_is_lost_or_changed_is_said(
    library: Library, trained: Trained, role: str, damage: str
) -> None:
    library.indexer.use(stage1=trained("spr-stage1"), refiner=trained("reel"))
    (model,) = (library.folder / "models" / role).iterdir()
    if damage == "lost":
        shutil.rmtree(model)
    else:
        weights = bytearray((model / "model.safetensors").read_bytes())
        weights[-1] ^= 1
        (model / "model.safetensors").write_bytes(weights)
    with Library(library.folder) as reopened:
        (problem,) = verify(reopened.store)
        assert str(model) in problem.message and not problem.repairable
        with pytest.raises(LibraryError, match=f"moviola library use .* --{role} FOLDER"):
            reopened.search("anything")
        reopened.indexer.use(**{role: "none"})  # type: ignore[arg-type]
        assert reopened.search("anything") and verify(reopened.store) == []


def test_a_name_that_leads_out_of_the_library_is_refused(library: Library) -> None:
    path = library.folder / "moviola.toml"
    path.write_text(path.read_text().replace('refiner = ""', 'refiner = "../../elsewhere"'))
    with pytest.raises(LibraryError, match="refiner"):
        Library(library.folder)


# ---- the cache, copies, read-only --------------------------------------------------------------------------


def test_contexts_are_made_once_and_may_be_deleted(
    library: Library, trained: Trained, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    encode = ReelParts.encode_clips

    def counted(self: ReelParts, visual: Any, subtitles: Any) -> Any:
        made.extend([1] * (len(visual) > 10))  # a film; fewer clips are what the graph is made with
        return encode(self, visual, subtitles)

    monkeypatch.setattr(ReelParts, "encode_clips", counted)
    library.indexer.use(refiner=trained("reel"))
    assert len(made) == 3
    expected = answers(library)
    with Library(library.folder, read_only=True) as reader:
        assert answers(reader) == expected
    assert len(made) == 3
    cache = library.folder / "cache"
    (contexts,) = (cache / "context").iterdir()
    for path in contexts.iterdir():
        rows = np.load(path)
        assert rows.dtype == np.float16 and rows.shape[1:] == (3, 16)
    shutil.rmtree(cache)
    with Library(library.folder, read_only=True) as reader:
        assert answers(reader) == expected
    assert not cache.exists() and len(made) == 6
    with Library(library.folder) as writer:
        assert answers(writer) == expected
    assert len(made) == 9 and len(files(contexts)) == 3


def test_contexts_are_on_disk_again_when_a_model_comes_back(library: Library, trained: Trained) -> None:
    model = trained("reel")
    library.indexer.use(refiner=model)
    contexts = library.folder / "cache" / "context"
    before = files(contexts)
    assert len(before) == 3
    library.indexer.use(refiner="none")
    assert files(contexts) == set()
    library.indexer.use(refiner=model)
    assert files(contexts) == before


@pytest.mark.parametrize("content", [b"", b"not an array", None])
def test_a_damaged_context_is_made_again(library: Library, trained: Trained, content: bytes | None) -> None:
    library.indexer.use(refiner=trained("reel"))
    expected = answers(library)
    (contexts,) = (library.folder / "cache" / "context").iterdir()
    for path in contexts.iterdir():
        path.write_bytes(path.read_bytes()[:-100] if content is None else content)
    with Library(library.folder) as reopened:
        assert answers(reopened) == expected
    assert all(len(np.load(path)) for path in contexts.iterdir())


@pytest.mark.parametrize("refiner", REFINED)
def test_a_reader_writes_nothing(library: Library, trained: Trained, refiner: str) -> None:
    library.indexer.use(stage1=trained("spr-stage1"), refiner=trained(refiner))
    expected = answers(library)
    library.close()
    for part in ("cache", "index"):
        shutil.rmtree(library.folder / part, ignore_errors=True)
    with Library(library.folder, read_only=True) as reader:
        before = files(library.folder)
        assert answers(reader) == expected
        assert files(library.folder) == before


@pytest.mark.parametrize("refiner", REFINED)
def test_a_copy_works_elsewhere(library: Library, trained: Trained, tmp_path: Path, refiner: str) -> None:
    library.indexer.use(stage1=trained("spr-stage1"), refiner=trained(refiner))
    expected = answers(library)
    library.close()
    copy = Path(shutil.copytree(library.folder, tmp_path / "elsewhere" / "copy"))
    shutil.rmtree(library.folder)
    shutil.rmtree(tmp_path / "models")
    with Library(copy, read_only=True) as copied:
        assert answers(copied) == expected
