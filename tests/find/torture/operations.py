"""What writes: the operations that are disturbed, each on a small library that holds all that one can hold.

A folder has the library, and beside it what operations write elsewhere: exports, a judging task, an inbox.
The films lie in ``films``, and a copy of them in ``elsewhere``.
"""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

import anyio

from furnished import furnish, small_film
from moviola.encoders import load_encoder
from moviola.errors import InvalidValue
from moviola.export import FORMATS, write_moments
from moviola.files.toml import read_toml, write_toml
from moviola.library import IngestProgress, Paused, compact, mend_settings, repair
from moviola.library.disk.settings import FORMAT_VERSION
from moviola.library.userdata.values import Mark
from moviola.search import Library, Marked, MarkedMoment
from moviola.search.alerts import AlertOptions, Alerts
from moviola.server.receiving import Receiving
from moviola.server.upload_state import Upload, UploadStates
from moviola.study.datasets.building.candidate_pairs import Pair
from moviola.study.judging import JudgingTask, TaskSettings, make_task
from moviola.types import Moment, Query
from other_encoder import write_other_encoder
from sample import STORED, films_in, flip_bit
from written_settings import resealed

__all__ = ["CHANGES", "FOUND", "OPERATIONS", "TASK", "Operation", "stored_library", "todays_library"]

TASK = "task.sqlite"
FOUND = "found.jsonl"
"""What alerts have reported."""

_MOMENTS = (Moment("a", 1.0, 3.0, 0.9, 1), Moment("a", 4.0, 5.5, 0.8, 2))
_UPLOAD = "0" * 32
_STORED = {
    read_toml(path / "library" / "moviola.toml")["format_version"]: path / "library"
    for path in sorted(STORED.iterdir())
    if (path / "library").is_dir()
}
"""Libraries of all formats by number."""


def todays_library(films: Path, folder: Path) -> Path:
    """A library of today's format with everything; afterwards there is a film that it does not have."""
    for name in "abd":
        films_in(films, name)
        (films / f"{name}.srt").unlink()
    films_in(films, "a")
    with Library(folder, encoder="demo", sentence_encoder="none", segment_seconds=2) as library:
        furnish(library, films, "a", "b", "d")
        library.userdata.put("search", "umbrella", {"query": "the lighthouse keeper lost his umbrella"})
        library.userdata.alert_to("umbrella", 0)
    small_film(films / "c.mp4", 5, "A harbour.")
    return folder


def stored_library(number: int, folder: Path) -> Path:
    """A copy of the library of a format, as if today's encoder had made it: its answers are compared with its
    own.
    """
    shutil.copytree(_STORED[number], folder)
    revision = load_encoder("demo").revision
    if number < 4:  # no digest yet
        path = folder / "moviola.toml"
        write_toml(path, {**read_toml(path), "encoder_revision": revision})
    else:
        resealed(folder, encoder_revision=revision)
    return folder


@dataclass(frozen=True)
class Operation:
    """Something that writes, and may be done again.

    Attributes:
        run: called with the folder of the library, and that of the films.
        prepare: what happens before it to the folder that holds the library.
        stored: number of the format of a stored library that it is done to; 0: to one of today's.
        tries: it logs what fails, and is done again by itself at another time.
    """

    run: Callable[[Path, Path], object]
    prepare: Callable[[Path], object] = lambda _: None
    stored: int = 0
    tries: bool = False


def _opened(work: Callable[[Library], object]) -> Callable[[Path, Path], object]:
    """An operation on an opened library."""

    def run(folder: Path, films: Path) -> None:
        with Library(folder) as library:
            work(library)

    return run


def _ids(library: Library) -> set[str]:
    return {video.video_id for video in library.videos()}


def _remove(video_id: str) -> Callable[[Path, Path], object]:
    return _opened(lambda library: library.indexer.remove({video_id} & _ids(library)))


def _index(folder: Path, films: Path) -> None:
    with Library(folder) as library:
        library.index(films, ocr=False)


def _restore(library: Library) -> None:
    library.indexer.restore({"old"} - _ids(library))


def _move(folder: Path, films: Path) -> None:
    with Library(folder) as library:
        if any(Path(video.path).is_relative_to(films) for video in library.catalogue.videos()):
            library.indexer.move(films, films.with_name("elsewhere"))
        else:
            library.indexer.remove([])


def _forget_root(folder: Path, films: Path) -> None:
    with Library(folder) as library:
        if library.catalogue.roots():
            library.indexer.forget_root(films)
        else:
            library.indexer.remove([])


def _forget_concept(library: Library) -> None:
    if "red-walls" in {concept.name for concept in library.concepts.all()}:
        library.concepts.forget("red-walls")


def _keep(library: Library) -> None:
    if not {"walls"} & {entry.name for entry in library.userdata.entries("search")}:
        library.userdata.put("search", "walls", {"query": "a red square"}, version=0)


def _delete_kept(library: Library) -> None:
    if library.userdata.entries("collection"):
        library.userdata.delete("collection", "best")


def _mark(library: Library) -> None:
    if "blue" not in library.userdata.tagged():
        library.userdata.mark(Mark(video_id="a", start=1.0, end=2.5), add=["blue"], remove=["red"], rating=2)


def _import(library: Library) -> None:
    """Entries of another library, as earlier versions exported them: one is new, and one is later."""
    moments = [{"video_id": "a", "start": 0.0, "end": 1.0}]
    entries = [
        {"kind": "collection", "name": "theirs", "version": 1, "value": {"moments": moments}},
        {"kind": "search", "name": "keepers", "version": 7, "value": {"text": "harbour"}},
    ]
    library.userdata.take(json.dumps({**entry, "changed": "2030-01-01T00:00:00Z"}) for entry in entries)


def _change_film(folder: Path) -> None:
    films = folder.parent / "films"
    (films / "c.mp4").unlink()
    small_film(films / "b.mp4", 9, "Another one.")


def _damage(folder: Path) -> None:
    """Damage what can be made again."""
    library = folder / "library"
    for path in (*library.glob("index/segments*"), *library.glob("cache/facts/*")):
        flip_bit(path, path.stat().st_size // 2)


def _damage_settings(folder: Path) -> None:
    path = folder / "library" / "moviola.toml"
    path.write_text(path.read_text().replace("segment_seconds = 2", "segment_seconds = 3"))


def _begin_upload(folder: Path) -> None:
    """One whose last bytes are still to come."""
    inbox, library = folder / "inbox", folder / "library"
    inbox.mkdir()
    upload = Upload(_UPLOAD, inbox, "up.mp4", len(_uploaded(folder)))
    UploadStates(library / "cache" / "uploads", [inbox], library).write(upload)
    upload.part.write_bytes(_uploaded(folder)[:-100])


def _uploaded(folder: Path) -> bytes:
    return (folder.parent / "elsewhere" / "a.mp4").read_bytes()


def _upload(folder: Path, films: Path) -> None:
    async def send() -> None:
        inbox = folder.parent / "inbox"
        receiving = Receiving(
            [inbox], 1 << 30, 5, states=folder / "cache" / "uploads", home=folder
        )  # fmt: skip
        offset = receiving.find(_UPLOAD).offset
        rest = _uploaded(folder.parent)[offset:]

        async def parts() -> AsyncIterator[bytes]:
            if rest:
                yield rest

        await receiving.take(_UPLOAD, offset, parts())

    anyio.run(send)


def _alert(folder: Path, films: Path) -> None:
    """A thread in which the process ends says nothing about that here."""
    command = ("sh", "-c", f'cat >> "{folder.parent / FOUND}"; echo >> "{folder.parent / FOUND}"')
    with mock.patch("threading.excepthook", lambda _: None), Library(folder) as library:
        assert threading.excepthook is not threading.__excepthook__
        with Alerts(library, AlertOptions(("umbrella",), command)) as alerts:
            alerts.check()


def _use_encoder(folder: Path, films: Path) -> None:
    """With a trained model that the library then has no longer."""
    with Library(folder) as library:
        library.indexer.use_encoder(str(films.with_name("encoder")))


def _use_all(folder: Path, films: Path) -> None:
    """Encoder, precision, frame rate and segments in one command."""
    with Library(folder) as library:
        library.indexer.use_encoder(
            str(films.with_name("encoder")), precision="bf16", frame_rate=2.0, segment_seconds=3.0
        )


def _before_encoder(folder: Path) -> None:
    with Library(folder / "library") as library:
        library.indexer.use(refiner="demo")
    for seed, name in enumerate(("encoder", "third")):
        if not folder.with_name(name).exists():
            write_other_encoder(folder.with_name(name), seed)


def _after(videos: int) -> Callable[[IngestProgress], None]:
    """Interrupts a change when some videos are encoded."""

    def stop(step: IngestProgress) -> None:
        if step.done == videos:
            raise Paused

    return stop


def _before_goes_on(folder: Path) -> None:
    """A change of encoder in which a video was renamed, one replaced, one removed and one brought in."""
    _before_encoder(folder)
    films = folder.parent / "films"
    with Library(folder / "library") as library:
        change = str(folder.with_name("encoder"))
        library.indexer.use_encoder(change, frame_rate=2.0, progress=_after(2))
        (films / "a.mp4").rename(films / "renamed.mp4")
        (films / "twice" / "a.mp4").unlink()
        small_film(films / "b.mp4", 9, "Another one.")
        library.indexer.remove(["d"])
        library.index(films, ocr=False)


def _goes_on(folder: Path, films: Path) -> None:
    with Library(folder) as library:
        library.indexer.use_encoder(str(films.with_name("encoder")), frame_rate=2.0)
        library.indexer.restore({"d"} - _ids(library))


def _change_mind(folder: Path, films: Path) -> None:
    """To a second encoder, back to the first one, which gives that up, and to a third one."""
    second, third = (str(films.with_name(name)) for name in ("encoder", "third"))
    with Library(folder) as library:
        begun = library.catalogue.change()
        if library.settings.encoder != third and (begun is None or begun.encoder != third):
            if begun is None:
                library.indexer.use_encoder(second, segment_seconds=3.0, progress=_after(1))
            library.indexer.use_encoder("demo", segment_seconds=2.0)
        library.indexer.use_encoder(third)


def _before_without_files(folder: Path) -> None:
    """A folder, of which a video has a concept and one a moment in a collection, is away."""
    _before_encoder(folder)
    films = folder.parent / "films"
    (films / "b.mp4").unlink()
    (films / "a.mp4").unlink()
    (films / "twice" / "a.mp4").unlink()


def _without_files(folder: Path, films: Path) -> None:
    with Library(folder) as library:
        library.indexer.use_encoder(str(films.with_name("encoder")), without_files=True)


def _before_weights(folder: Path) -> None:
    """The weights of the encoder in use have changed under its name."""
    encoder = folder.with_name("weights")
    shutil.rmtree(encoder, ignore_errors=True)
    write_other_encoder(encoder)
    with Library(folder / "library") as library:
        library.indexer.use_encoder(str(encoder))
    shutil.rmtree(encoder)
    write_other_encoder(encoder, 1)


def _use_weights(folder: Path, films: Path) -> None:
    with Library(folder) as library:
        library.indexer.use_encoder(str(films.with_name("weights")))


def _export(name: str) -> Operation:
    format = FORMATS[name]
    out = f"moments{format.suffix}"

    def run(folder: Path, films: Path) -> None:
        with Library(folder) as library:
            written = write_moments(
                _MOMENTS, {"a": films / "a.mp4"}, folder.parent / out, name, kept=library.store.kept_still
            )
        if written.refused:  # one clip that cannot be cut does not stop the others
            raise InvalidValue("; ".join(written.refused.values()))

    def earlier(folder: Path) -> None:
        (folder / out).write_text("an earlier export")

    return Operation(run, earlier if format.kind == "file" else lambda _: None)


def _new_task(library: Library) -> None:
    if not (path := library.folder.parent / TASK).exists():
        make_task(path, library, [Query("1", "a red square")])


def _judged_once(folder: Path) -> None:
    """A task of which one of two moments has been judged."""
    pairs = [Pair(f"1:{n}", "1", "walls?", "a", n, n + 1.0, 6.0, "", 1 / n, n) for n in (1, 2)]
    with closing(JudgingTask.create(folder / TASK, pairs, TaskSettings(raters=1))) as task:
        task.sign_in("Anna")
        task.answer("Anna", "1:1", 4)


def _judge(folder: Path, films: Path) -> None:
    with closing(JudgingTask(folder.parent / TASK)) as task:
        rater = task.sign_in("Bo")
        task.next_batch(rater)
        task.answer(rater, "1:2", 3)


OPERATIONS: dict[str, Operation] = {
    "index": Operation(_index),
    "update": Operation(_index, _change_film),
    "again": Operation(_opened(lambda library: library.indexer.again(["a"]))),
    "remove": Operation(_remove("b")),
    "restore": Operation(_opened(_restore)),
    "move": Operation(_move),
    "forget root": Operation(_forget_root),
    "forget concept": Operation(_opened(_forget_concept)),
    "use": Operation(_opened(lambda library: library.indexer.use(refiner="demo"))),
    "use encoder": Operation(_use_encoder, _before_encoder),
    "use index": Operation(_opened(lambda library: library.indexer.use_index("reranked"))),
    "compact": Operation(_opened(lambda library: compact(library.store))),
    "repair": Operation(_opened(lambda library: repair(library.store)), _damage),
    "mend settings": Operation(lambda folder, _: mend_settings(folder), _damage_settings),
    "teach": Operation(
        _opened(lambda library: library.concepts.teach("walls", Marked(None, (MarkedMoment("a", 0, 3),))))
    ),
    "keep": Operation(_opened(_keep)),
    "delete kept": Operation(_opened(_delete_kept)),
    "mark": Operation(_opened(_mark)),
    "import": Operation(_opened(_import)),
    "alert": Operation(_alert, tries=True),
    "upload": Operation(_upload, _begin_upload),
    "judge new": Operation(_opened(_new_task)),
    "judge": Operation(_judge, _judged_once),
    **{
        f"upgrade {number}": Operation(_remove("market"), stored=number)
        for number in _STORED
        if number < FORMAT_VERSION
    },
    **{f"export {name}": _export(name) for name in FORMATS},
}

CHANGES: dict[str, Operation] = {
    "use frame rate": Operation(
        _opened(lambda library: library.indexer.use_encoder(frame_rate=2.0, segment_seconds=3.0))
    ),
    "use segments": Operation(_opened(lambda library: library.indexer.use_encoder(segment_seconds=3.0))),
    "use precision": Operation(_opened(lambda library: library.indexer.use_encoder(precision="bf16"))),
    "use all at once": Operation(_use_all, _before_encoder),
    "use weights": Operation(_use_weights, _before_weights),
    "use encoder without files": Operation(_without_files, _before_without_files),
    "change of encoder goes on": Operation(_goes_on, _before_goes_on),
    "change of mind": Operation(_change_mind, _before_encoder),
}
"""Changes of encoder by all ways, which take seconds each; only *changes* disturbs them."""
