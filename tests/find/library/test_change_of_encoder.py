"""Another encoder in place: the end is a library that was indexed by it, and nothing that is kept is lost."""

from __future__ import annotations

import gc
import json
import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from furnished import small_film
from moviola.cli import all_commands
from moviola.errors import EncoderMismatch, InvalidValue, LibraryError, MissingModel
from moviola.features import FeatureShards
from moviola.library import (
    Catalogue,
    IngestProgress,
    LibraryStore,
    Paused,
    compact,
    read_concept,
    united_store,
    verify,
)
from moviola.library.ingest import change_of_encoder, indexer, learning_again, pictures_again
from moviola.library.userdata.values import Mark
from moviola.media import write_subtitles
from moviola.search import Library, LikeMoment, Marked, MarkedMoment
from moviola.search.queries import Without, as_query
from moviola.types import Cue
from operations import stored_library
from other_encoder import write_other_encoder

QUERIES = ("a red square", "lighthouse keeper", "a blue wall @red-walls")
FILMS = ("a", "b", "c", "d")
MARKED = Marked(None, (MarkedMoment("a", 1.0, 3.0),), (MarkedMoment("b", 4.0, 6.0),))


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(write_other_encoder(tmp_path_factory.mktemp("encoders") / "other"))


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world") / "films"
    for seed, name in enumerate(FILMS):
        small_film(folder / f"{name}.mp4", seed, "A lighthouse keeper." if name == "a" else "")
    return folder


def made(folder: Path, films: Path, encoder: str, **sampling: float) -> Path:
    """A library of the films with everything that people keep, ``d`` removed."""
    with Library(folder, encoder=encoder, sentence_encoder="none", **sampling) as library:  # type: ignore[arg-type]
        library.index(films, ocr=False, speech="none", sounds="none")
        library.concepts.teach("Red walls", MARKED)
        library.userdata.put("search", "keepers", {"query": "lighthouse keeper"})
        library.userdata.put("collection", "best", {"moments": [{"video_id": "b", "start": 1.0, "end": 3.0}]})
        library.userdata.mark(Mark(video_id="a", start=1.0, end=2.5), add=["stall"], rating=4)
        library.indexer.remove(["d"])
    return folder


@pytest.fixture(scope="module")
def original(films: Path) -> Path:
    return made(films.parent / "original", films, "demo")


@pytest.fixture(scope="module")
def fresh(films: Path, other: str) -> Path:
    """What the change is to lead to."""
    return made(films.parent / "fresh", films, other)


@pytest.fixture
def library(original: Path, films: Path, tmp_path: Path) -> Iterator[Library]:
    """A copy of the library of copies of the films."""
    shutil.copytree(films, tmp_path / "films")
    shutil.copytree(original, tmp_path / "library")
    with Library(tmp_path / "library") as opened:
        opened.indexer.move(films, tmp_path / "films")
        yield opened


def features(library: Library) -> dict[str, NDArray[np.float16]]:
    store = library.store
    return {
        video.video_id: np.array(store.frame_features.checked(video.frames))
        for video in library.catalogue.videos()
        if video.frames is not None
    }


def answers(library: Library) -> list[Any]:
    return [
        (moment.video_id, moment.start, moment.end, moment.score, moment.source)
        for query in QUERIES
        for moment in library.search(query, top_k=10, weak=True)
    ]


def kept(library: Library) -> Any:
    entries = [
        (one.kind, one.name, one.version, one.value.model_dump_json()) for one in library.userdata.entries()
    ]
    catalogue = library.catalogue
    videos = {
        video.video_id: (
            video.hash,
            catalogue.cues(video.row),
            catalogue.shots(video.row),
            catalogue.repeats(video.row),
        )
        for video in catalogue.videos()
    }
    return entries, videos, [one.video_id for one in catalogue.removed()]


def require_same(library: Library, fresh: Path) -> None:
    """The library is as one that was indexed by the encoder, to the last digit."""
    with Library(fresh, read_only=True) as wanted:
        assert library.settings == wanted.settings
        ours, theirs = features(library), features(wanted)
        assert ours.keys() == theirs.keys()
        for name, rows in theirs.items():
            np.testing.assert_array_equal(ours[name], rows)
        assert answers(library) == answers(wanted)
        ours_taught, theirs_taught = (one.concepts.all() for one in (library, wanted))
        for one, another in zip(ours_taught, theirs_taught, strict=True):
            assert (one.name, one.moments, one.encoder) == (another.name, another.moments, another.encoder)
            np.testing.assert_array_equal(one.right, another.right)
            np.testing.assert_array_equal(one.wrong, another.wrong)
        assert kept(library) == kept(wanted)
    assert verify(library.store) == []


def test_the_end_is_a_library_that_was_indexed_by_the_encoder(
    library: Library, fresh: Path, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Features, answers, concepts and shots; readers that were open before answer on the way by the old one,
    and then by the new one; nothing of a film but its pictures is read; old features are gone, and a removed
    film comes back with its pictures.
    """
    before = answers(library)
    with Library(library.folder, read_only=True) as reader, monkeypatch.context() as patch:
        for reading in ("read_cues", "facts_of", "read_through"):
            patch.setattr(f"moviola.library.ingest.frame_features.{reading}", None)
        patch.setattr("moviola.library.ingest.film_parts.look_through", None)
        said: list[Any] = []

        def look(step: IngestProgress) -> None:
            assert answers(reader) == before
            with Library(library.folder, read_only=True) as second:
                assert answers(second) == before

        done = library.indexer.use_encoder(other, begin=said.append, progress=look)
        assert (done.done, done.encoded, done.waiting) == (True, ["a", "b", "c"], {})
        (plan,) = said
        assert (plan.videos, plan.encoded, plan.seconds, plan.removed) == (3, 0, 18.0, ["d"])
        assert plan.new_bytes >= sum(rows.nbytes for rows in features(library).values())
        assert plan.old_bytes == sum(rows.nbytes for rows in features(library).values())
        require_same(library, fresh)
        assert answers(reader) == answers(library) != before
    shards = {video.frames.shard for video in library.catalogue.videos() if video.frames}
    removed = {one.extent.shard for one in library.catalogue.other_frames().values()}
    assert removed == set()
    assert set(library.store.frame_features.shards()) - shards <= library.catalogue.shards_in_use()
    assert 0 not in library.store.frame_features.shards()
    library.indexer.restore(["d"])
    with Library(fresh.parent / "restored", encoder=other, sentence_encoder="none") as wanted:
        wanted.index(library.folder.parent / "films" / "d.mp4", ocr=False, speech="none", sounds="none")
        np.testing.assert_array_equal(features(library)["d"], features(wanted)["d"])
    assert library.indexer.use_encoder(other).done


def test_interrupted_it_goes_on_video_by_video(library: Library, fresh: Path, other: str) -> None:
    """No video is encoded twice; what other commands do between is not lost: a film that came in by the old
    encoder is encoded by the new one, one that left is not, a compaction keeps what is done, and a film of
    which only subtitles changed keeps it, too.
    """
    before = answers(library)

    def stop(step: IngestProgress) -> None:
        if step.done == 1:
            raise Paused

    films = library.folder.parent / "films"
    first = library.indexer.use_encoder(other, progress=stop)
    assert (first.done, first.encoded) == (False, ["a"]) and answers(library) == before
    assert library.settings.encoder == "demo" and verify(library.store) == []
    compact(library.store)
    assert answers(library) == before and verify(library.store) == []
    small_film(films / "new.mp4", 9)
    library.indexer.remove(["c"])
    write_subtitles(films / "a.srt", [Cue(1.0, 2.0, "Another lighthouse keeper.")])
    library.index(films, ocr=False, speech="none", sounds="none")
    second = library.indexer.use_encoder(other)
    assert second.done and second.encoded == ["b", "c", "d", "new"]
    library.indexer.remove(["new", "d"])
    (films / "a.srt").unlink()
    library.index(films / "a.mp4", ocr=False, speech="none", sounds="none")
    library.indexer.remove([video.video_id for video in library.videos() if video.video_id not in "abc"])
    with Library(fresh, read_only=True) as wanted:
        ours, theirs = features(library), features(wanted)
        for name in "abc":
            np.testing.assert_array_equal(ours[name], theirs[name])
    assert verify(library.store) == []


def paused(step: IngestProgress) -> None:
    raise Paused


def test_a_film_that_is_away_keeps_it_from_changing_over(library: Library, fresh: Path, other: str) -> None:
    """Its films are named; without them it changes over when that is wanted: they are found by words, a
    concept is learnt from the rest, the old file of it is kept, and all are as new when the files are back.
    """
    films = library.folder.parent / "films"
    away = films / "b.mp4"
    away.rename(films.parent / "b.mp4")
    before = answers(library)
    done = library.indexer.use_encoder(other)
    assert not done.done and [*done.waiting] == ["b"] and str(away) in done.waiting["b"]
    assert answers(library) == before and done.encoded == ["a", "c"]
    over = library.indexer.use_encoder(other, without_files=True)
    assert over.done and over.without == ["b"] and over.encoded == []
    assert "b@4-6" in over.concepts["red-walls"]
    assert (library.folder / "backups" / "red-walls.safetensors").is_file()
    video = library.catalogue.video("b")
    assert video.frames is None and video.state == "partial" and pictures_again.WAITS in video.error
    assert features(library).keys() == {"a", "c"}
    assert library.search("a red square", weak=True)
    # Nothing is lost: a change back that is given up keeps its old features, one that is done uses them.
    library.indexer.use_encoder("demo", progress=paused)
    assert library.indexer.use_encoder(other).given_up == "demo"
    back = library.indexer.use_encoder("demo")
    assert back.done and back.encoded == ["a", "c"] and library.catalogue.video("b").state == "ready"
    assert answers(library) == before
    library.indexer.use_encoder(other, without_files=True)
    (films.parent / "b.mp4").rename(away)
    library.index(films, ocr=False, speech="none", sounds="none")
    library.indexer.remove({"d"} & {one.video_id for one in library.videos()})
    require_same(library, fresh)


def test_a_changed_or_damaged_film_is_named(library: Library, other: str) -> None:
    """Features by the new encoder of other bytes would be another film's."""
    films = library.folder.parent / "films"
    small_film(films / "b.mp4", 77)
    (films / "c.mp4").write_bytes((films / "c.mp4").read_bytes()[:200])
    done = library.indexer.use_encoder(other)
    assert {*done.waiting} == {"b", "c"} and not done.done
    assert all("has changed" in reason for reason in done.waiting.values())


def test_files_that_change_under_way(library: Library, fresh: Path, other: str) -> None:
    """One that is replaced while others are encoded had the pictures of another film from then on; one that
    is renamed, or gone, keeps what it has until it is indexed, and one that comes in is not lost.
    """
    films, hurried = library.folder.parent / "films", list[str]()

    def hurry(step: IngestProgress) -> None:
        if not hurried:
            hurried.append(step.video_id)
            small_film(films.parent / "b.mp4", 77).replace(films / "b.mp4")
            (films / "c.mp4").rename(films / "renamed.mp4")
            small_film(films / "new.mp4", 9)

    before = answers(library)
    # Both are decoded ahead, so that it is only known afterwards what they were.
    done = library.indexer.use_encoder(other, progress=hurry)
    assert hurried and not done.done and "b" in done.waiting
    assert "b.mp4: has changed while it was read" in done.waiting["b"]
    assert answers(library) == before
    library.indexer.use_encoder("demo")
    (films / "b.mp4").unlink()
    shutil.copyfile(fresh.parent / "films" / "b.mp4", films / "b.mp4")
    library.index(films, ocr=False, speech="none", sounds="none")
    assert library.indexer.use_encoder(other).done
    library.indexer.remove(["new", "d"])
    (films / "new.mp4").unlink()
    with Library(fresh, read_only=True) as wanted:
        ours, theirs = features(library), features(wanted)
        for name in "abc":
            np.testing.assert_array_equal(ours[name], theirs[name])


def test_other_frame_rates_segments_and_precisions(library: Library, films: Path, tmp_path: Path) -> None:
    """A frame rate encodes again; a length of segments makes the index again alone."""
    shards = library.store.frame_features.shards()
    assert library.indexer.use_encoder(segment_seconds=2.0).encoded == []
    assert library.store.frame_features.shards() == shards
    with Library(made(tmp_path / "twos", films, "demo", segment_seconds=2.0), read_only=True) as wanted:
        assert library.settings == wanted.settings and answers(library) == answers(wanted)
    done = library.indexer.use_encoder(frame_rate=2.0, segment_seconds=3.0)
    assert done.done and len(done.encoded) == 3
    fast = made(tmp_path / "fast", films, "demo", frame_rate=2.0, segment_seconds=3.0)
    require_same(library, fast)
    assert library.indexer.use_encoder("demo", precision="fp32").encoded == []
    with pytest.raises(InvalidValue, match="whole number of frames"):
        library.indexer.use_encoder(segment_seconds=0.3)
    with pytest.raises(InvalidValue, match="nothing to change"):
        library.indexer.use_encoder()
    with pytest.raises(InvalidValue, match="no encoder to change to"):
        library.indexer.use_encoder("none")
    with pytest.raises(MissingModel):
        library.indexer.use_encoder("nobody/nothing")


def test_weights_that_have_changed_under_the_same_name(films: Path, other: str, tmp_path: Path) -> None:
    """The library could not be searched any more; the same command encodes by the new revision."""
    shutil.copytree(other, tmp_path / "encoder")
    encoder = str(tmp_path / "encoder")
    made(tmp_path / "library", films, encoder)
    shutil.rmtree(encoder)
    write_other_encoder(tmp_path / "encoder", seed=1)
    with Library(tmp_path / "library") as library:
        with pytest.raises(EncoderMismatch, match=f"library use --encoder {encoder} --library"):
            library.search("a red square")
        assert library.indexer.use_encoder(encoder).done
        require_same(library, made(tmp_path / "fresh", films, encoder))


def test_a_library_of_words_gets_pictures(films: Path, tmp_path: Path, other: str) -> None:
    with Library(tmp_path / "library", encoder="none", sentence_encoder="none") as library:
        library.index(films, ocr=False, speech="none", sounds="none")
        with pytest.raises(InvalidValue, match="name one with --encoder"):
            library.indexer.use_encoder(frame_rate=2.0)
        library.indexer.use_encoder(other, both_from=0.1, progress=after(1))
        with Library(library.folder, read_only=True) as reader:
            assert by_video(reader, "a red square").keys() == {"a"}
            assert by_video(reader, "lighthouse", by="said").keys() == {"a"}
        assert library.indexer.use_encoder(other).done
        assert features(library).keys() == {*FILMS} and verify(library.store) == []
        assert library.search("a red square", by="visual", weak=True)


def test_another_change_and_giving_up(library: Library, other: str, tmp_path: Path) -> None:
    """A second encoder on the way is refused with both commands; the one in use gives the change up, and
    leaves no features behind.
    """
    before, shards = answers(library), library.store.frame_features.shards()
    library.indexer.use_encoder(other, frame_rate=2.0, progress=paused)
    third = write_other_encoder(tmp_path / "third", seed=3)
    with pytest.raises(
        InvalidValue, match=r"is being changed to .*goes on with that.*--encoder demo --frame-rate 1 "
    ):
        library.indexer.use_encoder(str(third))
    given = library.indexer.use_encoder("demo", frame_rate=1.0)
    assert given.given_up == other and given.done
    assert answers(library) == before and library.store.frame_features.shards() == shards
    assert library.catalogue.change() is None and verify(library.store) == []


def test_the_disk_must_hold_both(library: Library, other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage(library.folder)
    monkeypatch.setattr(change_of_encoder.shutil, "disk_usage", lambda _: usage._replace(free=100))
    before = asdict(library.settings)
    with pytest.raises(LibraryError, match=r"need 0 MiB more, but 0 MiB are free"):
        library.indexer.use_encoder(other)
    assert asdict(library.settings) == before and library.catalogue.change() is None


class Killed(BaseException):
    """Stands for the end of the process."""


STEPS: dict[str, Any] = {
    "append": FeatureShards, "add_other_frames": Catalogue, "keep_concept": learning_again,
    "choose": LibraryStore, "settle_concepts": change_of_encoder, "delete_others": FeatureShards,
    "publish_indexes": indexer,
}  # fmt: skip
"""Functions that a change calls, in their order, and where it looks for each."""


@pytest.mark.parametrize("step", STEPS)
def test_killed_between_any_two_steps(
    library: Library, fresh: Path, other: str, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A library that is opened then has the old encoder or the new one with all that goes with it, concepts
    included; the same call leaves what an undisturbed one does. ``tests/find/torture`` kills at every write.
    """
    before = answers(library)
    real: Callable[..., Any] = getattr(STEPS[step], step)

    def killed(*arguments: Any, **options: Any) -> Any:
        if step in ("append", "add_other_frames", "settle_concepts"):
            real(*arguments, **options)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(STEPS[step], step, killed)
        with pytest.raises(Killed):
            library.indexer.use_encoder(other)
    gc.collect()
    with Library(library.folder) as opened:
        with Library(fresh, read_only=True) as wanted:
            assert answers(opened) in (before, answers(wanted))
        assert read_concept(opened.folder, opened.settings, "red-walls").encoder[0] == opened.settings.encoder
        assert [one for one in verify(opened.store) if not one.repairable] == []
        assert opened.indexer.use_encoder(other).done
        require_same(opened, fresh)


def test_moviola_toml_of_before_is_followed_and_that_of_another_library_is_not(
    library: Library, fresh: Path, other: str
) -> None:
    """One from a backup of before the change is not damage; one of other settings is."""
    toml = library.folder / "moviola.toml"
    before = toml.read_bytes()
    library.indexer.use_encoder(other)
    toml.write_bytes(before)
    with Library(library.folder, read_only=True) as reader:
        require_same(reader, fresh)
    with Library(library.folder) as writer:
        writer.indexer.remove([])
    assert json.dumps(other) in toml.read_text()
    replace(library.settings, frame_rate=2.0).write(library.folder)
    with pytest.raises(LibraryError, match="is it the file of another library"):
        Library(library.folder)


def test_models_for_the_old_encoder_go_to_backups(library: Library, other: str) -> None:
    """A model that reads features of another encoder would answer wrongly; its copy may be the only one."""
    library.indexer.use(stage1="demo")
    said: list[Any] = []
    name = library.settings.stage1
    done = library.indexer.use_encoder(other, begin=said.append)
    assert done.models == said[0].models == [f"stage1 {name}"]
    assert library.settings.stage1 == "" and (library.folder / "backups" / name / "config.json").is_file()
    assert library.search("a red square", weak=True) and verify(library.store) == []


def test_searches_of_other_threads_get_the_answers_of_one_encoder(
    library: Library, fresh: Path, other: str
) -> None:
    """One encoder's vector compared with the other's features has the same length, and answers nonsense."""
    before, ended, seen = answers(library), threading.Event(), list[Any]()

    def search() -> None:
        while not ended.is_set():
            seen.append(answers(library))

    with ThreadPoolExecutor(2) as pool:
        searching = [pool.submit(search) for _ in range(2)]
        try:
            library.indexer.use_encoder(other)
        finally:
            ended.set()
        for one in searching:
            one.result()
    with Library(fresh, read_only=True) as wanted:
        after = answers(wanted)
    assert answers(library) == after
    singly = [tuple(map(tuple, (before, after)))]
    for answer in seen:  # of several queries, the first may be of before
        assert all(one in before or one in after for one in answer), singly


def test_a_search_that_a_change_overtakes_is_answered_by_the_new_one(
    library: Library, fresh: Path, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its view is of the old encoder, the concept that it then reads is learnt by the new one."""
    read, query = united_store.concept_in, "a blue wall @red-walls"

    def read_late(*given: Any) -> Any:
        monkeypatch.setattr(united_store, "concept_in", read)
        library.indexer.use_encoder(other)
        return read(*given)

    with Library(fresh, read_only=True) as wanted, Library(library.folder, read_only=True) as reader:
        monkeypatch.setattr(united_store, "concept_in", read_late)
        require_alike(by_video(reader, query), by_video(wanted, query), scored=True)


def test_a_library_of_an_earlier_format_keeps_its_way_back(tmp_path: Path, other: str) -> None:
    """The backup of the upgrade names the old features; and with all films away nothing is lost either."""
    stored_library(4, tmp_path / "library")
    with Library(tmp_path / "library") as library:
        whole = features(library)
        said: list[Any] = []
        done = library.indexer.use_encoder(other, without_files=True, begin=said.append)
        assert done.done and {*done.without} == whole.keys() and features(library) == {}
        assert said[0].old_bytes == 0 and said[0].backups == ["format-4"]
        backup = Catalogue(tmp_path / "library" / "backups" / "format-4")
        old = library.store.features_in("frames", 128)
        assert all(old.intact(video.frames) for video in backup.videos() if video.frames)
        backup.close()
        assert library.indexer.use_encoder("demo").encoded == []
        for name, rows in features(library).items():
            np.testing.assert_array_equal(rows, whole[name])


def test_the_command_says_what_it_will_do_and_what_is_left(
    library: Library, other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`index` with another encoder names the command; a film that is away is named, and ends with 3; `info`
    and `index`, which finds the removed film again, say how far it is.
    """
    folder, films = str(library.folder), library.folder.parent / "films"
    library.close()
    monkeypatch.setenv("COLUMNS", "500")

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(all_commands(), [*words, "--library", folder])
        return done.exit_code, f"{done.output} {done.exception or ''}"

    def says(said: str, *wanted: str) -> bool:
        return all("".join(one.split()) in "".join(said.split()) for one in wanted)

    use = f"moviola library use --encoder {other} --library {folder}"
    code, said = run("index", str(films), "--encoder", other)
    assert code and says(said, f"change it in place: `{use}` encodes its pictures again"), said
    (films / "b.mp4").rename(films.parent / "b.mp4")
    code, said = run("library", "use", "--encoder", other)
    assert code == 3
    assert says(
        said, "3 videos; pictures of 0.2 minutes are to be encoded", "On the disk: 0.0 MiB more",
        "1 removed video (d)", "Searches answer by demo until all are done", "not encoded: b: ",
        "2 videos encoded, 1 of 3 not; searches answer by demo as before",
    ), said  # fmt: skip
    begun = f"changing to {other}: 2 of 3 videos; `{use}` goes on"
    assert json.loads(run("library", "info", "--json")[1])["change"] == begun
    assert says(
        run("index", str(films), "--no-speech", "--no-ocr", "--no-sounds")[1], begun.replace("of 3", "of 4")
    )
    assert says(run("doctor")[1], begun.replace("of 3", "of 4"))
    code, said = run("library", "use", "--index", "flat", "--without-files")
    assert code == 2 and says(said, "goes with --encoder")
    (films.parent / "b.mp4").rename(films / "b.mp4")
    code, said = run("library", "use", "--encoder", other, "--json")
    (line,) = [line for line in said.splitlines() if line.startswith("{")]
    assert code == 0 and json.loads(line)["change"]["encoded"] == ["b", "d"]
    assert says(said, f"searches answer by {other}")
    assert json.loads(run("library", "info", "--json")[1])["change"] == ""


# -- by both -------------------------------------------------------------------------------------------------

WORDED = (
    "a red square", "lighthouse keeper", as_query("a red square").then("a blue wall", gap=60),
    as_query("a red square").without("a lighthouse"),
)  # fmt: skip


def by_video(library: Library, query: Any, **options: Any) -> dict[str, list[Any]]:
    """Scores of moments, by their videos."""
    found: dict[str, list[Any]] = {}
    for one in library.search(query, top_k=50, weak=True, **options):
        found.setdefault(one.video_id, []).append((one.start, one.end, one.score, one.source))
    return {name: sorted(own) for name, own in found.items()}


def require_alike(found: dict[str, list[Any]], wanted: dict[str, list[Any]], *, scored: bool) -> None:
    """Moments and scores are the same, but for the order in which an index adds numbers up; an exclusion is
    weighed against all candidates of an encoder, so that its scores differ.
    """
    assert found.keys() == wanted.keys()
    for name, own in wanted.items():
        assert [(start, end, source) for start, end, _, source in found[name]] == [
            (start, end, source) for start, end, _, source in own
        ]
        if scored:
            scores = [one[2] for one in own]
            assert [one[2] for one in found[name]] == pytest.approx(scores, rel=1e-3, abs=1e-12)


def noted(library: Library, query: Any) -> list[tuple[str, ...]]:
    return [note.others for note in library.search(query).notes if note.kind == "by both"]


def at_once(_: IngestProgress) -> None:
    raise Paused


def after(count: int) -> Callable[[IngestProgress], None]:
    """Pause when some videos are encoded."""

    def stop(step: IngestProgress) -> None:
        if step.done == count:
            raise Paused

    return stop


def test_from_a_share_on_each_video_is_answered_by_what_it_has(
    library: Library, original: Path, fresh: Path, other: str
) -> None:
    """Scores of one encoder for pictures of the other; a video that is answered twice, or by none; marks and
    moments compared with features that not all have; an answer that is mixed and does not say so; readers
    that were open; a change that is given up, and goes on answering by both; what a filter leaves over.
    """
    with (
        Library(original, read_only=True) as old,
        Library(fresh, read_only=True) as new,
        Library(library.folder, read_only=True) as reader,
    ):
        marked = Marked(as_query("a red square"), (MarkedMoment("a", 1.0, 3.0),))
        others = (marked, LikeMoment("a", 1.0), LikeMoment("b", 1.0), "@red-walls")
        library.indexer.use_encoder(other, both_from=0.5, progress=after(1))
        assert all(by_video(reader, query) == by_video(old, query) for query in (*WORDED, *others))
        for both_from, pause, made in ((1 / 3, at_once, {"a"}), (None, after(1), {"a", "b"})):
            done = library.indexer.use_encoder(other, both_from=both_from, progress=pause)
            assert len(done.encoded) == len(made) - 1
            compact(library.store)
            with Library(library.folder, read_only=True) as second:
                for one in (library, reader, second):
                    for query in WORDED:
                        theirs, ours = by_video(old, query), by_video(new, query)
                        wanted = {name: (ours if name in made else theirs).get(name) for name in "abc"}
                        found = by_video(one, query)
                        wanted = {name: own for name, own in wanted.items() if own}
                        require_alike(found, wanted, scored=not isinstance(query, Without))
                        ranked = one.search(query, top_k=50, weak=True)
                        assert [m.score for m in ranked] == sorted((m.score for m in ranked), reverse=True)
                        assert noted(one, query) == [(str(len(made)), "3")]
                        only = by_video(one, query, videos=["a", "c"])
                        assert only.keys() <= {"a", "c"}
                    for other_query in others:
                        assert by_video(one, other_query) == by_video(old, other_query)
                        assert noted(one, other_query) == []
                    for name in "abc":
                        theirs_or_ours = (new if name in made else old).curve("a red square", name)
                        np.testing.assert_array_equal(one.curve("a red square", name), theirs_or_ours)
            batch = reader.search_many([*WORDED, *others], top_k=50, weak=True)
            assert [len(one) for one in batch] == [
                len(reader.search(query, top_k=50, weak=True)) for query in (*WORDED, *others)
            ]
        library.indexer.use_encoder("demo")
        for query in WORDED:
            assert by_video(reader, query) == by_video(old, query) and noted(reader, query) == []


def test_by_both_until_all_are_done(library: Library, fresh: Path, other: str) -> None:
    """Videos that leave, or come in, meanwhile; and the end is as ever, for a reader that was open, too."""
    with Library(library.folder, read_only=True) as reader:
        library.indexer.use_encoder(other, both_from=0.1, progress=after(2))
        assert noted(reader, "a red square") == [("2", "3")]
        library.indexer.remove(["a"])
        assert noted(reader, "a red square") == [("1", "2")] and "a" not in by_video(reader, "a red square")
        library.indexer.restore(["a"])
        assert noted(reader, "a red square") == [("2", "3")]
        assert library.indexer.use_encoder(other).done and verify(library.store) == []
        with Library(fresh, read_only=True) as wanted:
            for query in WORDED:
                theirs = by_video(wanted, query)
                for one in (library, reader):
                    require_alike(by_video(one, query), theirs, scored=True)
                    assert noted(one, query) == []


@pytest.mark.parametrize("share", [0, -0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(library: Library, other: str, share: float) -> None:
    with pytest.raises(InvalidValue, match="both_from"):
        library.indexer.use_encoder(other, both_from=share)
    assert library.catalogue.change() is None
