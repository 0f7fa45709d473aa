"""Several libraries searched as one: the answer of a single library that has all their videos."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import Outcome
from moviola.errors import EncoderMismatch, InvalidValue, LibraryError, MoviolaError, NotFound
from moviola.library.userdata.values import Mark
from moviola.search import (
    Asked,
    Filter,
    Libraries,
    Library,
    LikeMoment,
    Marked,
    MarkedMoment,
    SearchQuery,
    Steps,
    Text,
    WeightedSum,
    Without,
)
from rooms import write_rooms

# Of each film: name, seconds, and lines, one each five seconds, with words of many lines and of one.
FILMS: Sequence[tuple[str, int, Sequence[str]]] = (
    ("harbour at dawn", 34, ("The lighthouse keeper lost his umbrella.", "A red boat leaves the harbour.")),
    (
        "beach_2019",
        21,
        ("The dog runs along the beach.", "The keeper laughs.", "A red umbrella in the wind."),
    ),
    ("Strassenbahn", 16, ("Der Hund läuft durch die Straße.", "Das Haustor steht offen und niemand ist da.")),
    ("kitchen", 18, ()),
    (
        "red door",
        25,
        ("Nobody remembered the harbour in winter.", "The umbrella is red, and so is the door."),
    ),
    ("harbour at night", 19, ("Two dogs bark at the lighthouse.", "The house is dark.")),
)


def _film(path: Path, seconds: int, seed: int, lines: Sequence[str]) -> None:
    """Rooms, and lines every five seconds."""
    write_rooms(path, seconds, seed)
    said = [
        f"{at}\n00:00:{5 * at:02d},000 --> 00:00:{5 * at + 3:02d},000\n{line}\n"
        for at, line in enumerate(lines)
    ]
    if said:
        path.with_suffix(".srt").write_text("\n".join(said), encoding="utf-8")


@pytest.fixture(scope="module")
def shelf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of each film, in the order of the films."""
    folder = tmp_path_factory.mktemp("shelf")
    for number, (name, seconds, lines) in enumerate(FILMS):
        own = folder / f"{number}"
        own.mkdir()
        _film(own / f"{name}.mp4", seconds, number, lines)
    return folder


@pytest.fixture(scope="module")
def library_of(shelf: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int, int], Path]:
    """Gives the library of the films from one on up to another, made once; not to be changed."""
    folder = tmp_path_factory.mktemp("libraries")

    def made(first: int, stop: int) -> Path:
        place = folder / f"{first}-{stop}"
        if not place.exists():
            with Library(place, encoder="demo", sentence_encoder="minilm") as library:
                for number in range(first, stop):
                    library.index(shelf / f"{number}", ocr=False, speech="none", sounds="none")
                for number, (name, *_) in enumerate(FILMS[first:stop], first):
                    if number % 2:
                        library.userdata.mark(Mark(video_id=name), add=["odd"])
        return place

    return made


@pytest.fixture(scope="module")
def joined(library_of: Callable[[int, int], Path]) -> Iterator[Callable[..., Libraries]]:
    """Gives all films in libraries that are divided at some cuts, opened once."""
    known: dict[tuple[int, ...], Libraries] = {}
    with ExitStack() as opened:

        def libraries(*cuts: int) -> Libraries:
            if cuts not in known:
                bounds = [0, *cuts, len(FILMS)]
                parts = [library_of(*own) for own in pairwise(bounds)]
                known[cuts] = opened.enter_context(Libraries(parts))
            return known[cuts]

        yield libraries


@pytest.fixture(scope="module")
def single(library_of: Callable[[int, int], Path]) -> Iterator[Library]:
    with Library(library_of(0, len(FILMS)), read_only=True) as library:
        yield library


# Cuts between the films at which these are divided among libraries.
CUTS = ((1,), (3,), (5,), (2, 4))

QUESTIONS: dict[str, SearchQuery] = {
    "of pictures": Text("a red square"),
    "rare and frequent words": Text("the red umbrella"),
    "names of videos": Text("harbour"),
    "a sentence": Text("the lighthouse keeper lost something"),
    "another language": Text("Hund"),
    "a part of a compound": Text("Haus"),
    "a word that nobody says": Text("umbrela"),
    "a moment": LikeMoment("beach_2019", 4.0),
    "a sum": WeightedSum.of([(LikeMoment("kitchen", 2.0), 1.0), (Text("umbrella"), 2.0)]),
    "a sequence": Steps((Text("a red wall"), Text("umbrella")), (30.0,)),
    "an exclusion": Without.of(Text("harbour"), [Text("winter"), Text("red")]),
    "marks": Marked(
        Text("umbrella"), (MarkedMoment("kitchen", 1.0, 5.0),), (MarkedMoment("red door", 3.0, 7.0),)
    ),
    "marks alone": Marked(None, (MarkedMoment("red door", 1.0, 5.0),)),
}
CONDITIONS: dict[str, dict[str, Any]] = {
    "": {},
    "pictures": {"by": "visual"},
    "lines": {"by": "subtitles"},
    "names": {"by": "named"},
    "coarse": {"refine": False},
    "few of each": {"per_video": 1, "top_k": 3},
    "language": {"filter": Filter.parse(language="de")},
    "tag": {"filter": Filter.parse(tag="odd")},
    "folder": {"filter": Filter.parse(folder="4")},
    "part of each": {"filter": Filter.parse(where="0..50%")},
    "lengths": {"filter": Filter.parse(video_length="17..30", moment_length="2..9")},
    "some videos": {"videos": ["kitchen", "red door"]},
}


def _said(library: Library, query: SearchQuery, options: dict[str, Any]) -> object:
    """All that an answer says but for its times, or its error."""
    try:
        answer = library.search(query, **options)
    except MoviolaError as error:
        return type(error)
    return [*answer], answer.notes, answer.confident, answer.videos


@settings(max_examples=60)
@given(
    cuts=st.sampled_from(CUTS),
    question=st.sampled_from(list(QUESTIONS)),
    under=st.sampled_from(list(CONDITIONS)),
)
def test_the_answer_is_that_of_one_library(
    single: Library,
    library_of: Callable[[int, int], Path],
    joined: Callable[..., Libraries],
    cuts: tuple[int, ...],
    question: str,
    under: str,
) -> None:
    """However films are divided among libraries, scores, order, reasons, notes and errors are those of one:
    words weigh by the lines of all, names are compared with all, chance is that of all.
    """
    query, options = QUESTIONS[question], CONDITIONS[under]
    assert _said(joined(*cuts), query, options) == _said(single, query, options)


def test_most_questions_have_answers(single: Library) -> None:
    """Two empty answers would be equal, too."""
    answered = [question for question, query in QUESTIONS.items() if single.search(query)]
    assert answered == list(QUESTIONS)
    filtered = [single.search("the red umbrella", **options) for options in CONDITIONS.values()]
    assert sum(map(bool, filtered)) >= len(filtered) - 1


def test_all_else_is_that_of_one_library(single: Library, joined: Callable[..., Libraries]) -> None:
    """Videos, facets, completions, suggestions and curves."""
    for cuts in CUTS:
        both = joined(*cuts)
        assert both.videos() == single.videos()
        assert both.complete("har") == single.complete("har")
        assert both.facets() == single.facets()
        assert both.examples() == single.examples()
        for own, its in zip(
            both.curve("umbrella", "red door"), single.curve("umbrella", "red door"), strict=True
        ):
            np.testing.assert_array_equal(own, its)
        moment = both.search("a red square")[0]
        assert both.store.kept_still(moment.video_id, moment.start) == single.store.kept_still(
            moment.video_id, moment.start
        )
        assert both.store.file_of(moment.video_id) == single.store.file_of(moment.video_id)


def test_trained_models_answer_as_in_one_library(
    library_of: Callable[[int, int], Path], tmp_path: Path
) -> None:
    """What models compute of whole videos is kept by each library, under its own numbers."""
    folders = []
    for own in ((0, len(FILMS)), (0, 3), (3, len(FILMS))):
        folders.append(shutil.copytree(library_of(*own), tmp_path / f"trained {own}"))
        with Library(folders[-1]) as library:
            library.indexer.use(stage1="demo", refiner="demo")
    with Library(folders[0], read_only=True) as single, Libraries(folders[1:]) as both:
        for question in ("rare and frequent words", "a moment", "a sequence", "marks"):
            assert _said(both, QUESTIONS[question], {}) == _said(single, QUESTIONS[question], {})
    with Library(folders[1]) as library:
        library.indexer.use(stage1="none")
    with pytest.raises(EncoderMismatch, match="stage1 revision"):
        Libraries(folders[1:])


def test_they_are_named_by_all_their_folders(
    library_of: Callable[[int, int], Path], joined: Callable[..., Libraries], single: Library
) -> None:
    """Not as a library at the first folder, which has fewer videos."""
    folders = f"{str(library_of(0, 3))!r}, {str(library_of(3, len(FILMS)))!r}"
    named = repr(joined(3))
    assert named == repr(single).replace(f"<Library {str(single.folder)!r}", f"<Libraries {folders}")


def test_an_empty_library_adds_nothing(
    single: Library, library_of: Callable[[int, int], Path], tmp_path: Path
) -> None:
    """Before its first video is in, whether it is the first or the last of them."""
    with Library(tmp_path / "empty", encoder="demo", sentence_encoder="minilm"):
        pass
    for folders in ([tmp_path / "empty", single.folder], [single.folder, tmp_path / "empty"]):
        with Libraries(folders) as both:
            for question in ("rare and frequent words", "a moment", "names of videos"):
                assert _said(both, QUESTIONS[question], {}) == _said(single, QUESTIONS[question], {})


# -- ids, copies ---------------------------------------------------------------------------------------------


@pytest.fixture
def clashing(shelf: Path, library_of: Callable[[int, int], Path], tmp_path: Path) -> Path:
    """A library of another film called "kitchen", and of the same file as "red door"."""
    other = tmp_path / "other"
    other.mkdir()
    _film(other / "kitchen.mp4", 15, 17, ["A kettle whistles."])
    for path in (shelf / "4").iterdir():
        shutil.copy(path, other)
    with Library(tmp_path / "second", encoder="demo", sentence_encoder="minilm") as library:
        library.index(other, ocr=False, speech="none", sounds="none")
    return tmp_path / "second"


def test_ids_of_two_videos_name_their_libraries(
    library_of: Callable[[int, int], Path], clashing: Path
) -> None:
    """Neither of two videos of one id hides the other, and each is found by the id that answers give it."""
    with Libraries([library_of(3, 6), clashing]) as both:
        ids = {video.video_id for video in both.videos()}
        assert ids == {
            "3-6:kitchen", "second:kitchen", "3-6:red door", "second:red door", "harbour at night"
        }  # fmt: skip
        (moment,) = both.search("kettle whistles", by="subtitles")
        assert moment.video_id == "second:kitchen"
        assert both.store.file_of(moment.video_id) == clashing.parent / "other" / "kitchen.mp4"
        alike = both.search(LikeMoment("second:kitchen", 1.0), top_k=1)
        assert alike[0].video_id == "second:kitchen"
        assert {one.video_id for one in both.search("harbour", videos=["second:kitchen", "3-6:kitchen"])} <= {
            "second:kitchen", "3-6:kitchen"
        }  # fmt: skip
        with pytest.raises(NotFound, match="2 videos are called so; name one: 3-6:kitchen, second:kitchen"):
            both.search(LikeMoment("kitchen", 1.0))
        assert both.search("bark", by="subtitles")[0].video_id == "harbour at night"


def test_one_file_in_two_libraries_is_shown_once(
    library_of: Callable[[int, int], Path], clashing: Path
) -> None:
    """Its second copy is named as one, not ranked beside the first."""
    with Libraries([library_of(3, 6), clashing]) as both:
        (moment,) = both.search("nobody remembered winter", by="subtitles", top_k=1)
        assert moment.video_id == "3-6:red door"
        assert [copy.video_id for copy in moment.copies] == ["second:red door"]


# -- errors --------------------------------------------------------------------------------------------------


def test_a_library_that_differs_is_named(
    library_of: Callable[[int, int], Path], shelf: Path, tmp_path: Path
) -> None:
    """Scores of other encoders or segments are not comparable, so nothing is answered; both are said."""
    with Library(tmp_path / "long", encoder="demo", sentence_encoder="minilm", segment_seconds=8.0):
        pass
    with pytest.raises(EncoderMismatch, match=r"long: built with segment seconds 8\.0, but .*0-3 with 4\.0"):
        Libraries([library_of(0, 3), tmp_path / "long"])
    with pytest.raises(NotFound, match="nowhere: no library there"):
        Libraries([library_of(0, 3), tmp_path / "nowhere"])
    with pytest.raises(InvalidValue, match="0-3: given twice"):
        Libraries([library_of(0, 3), library_of(0, 3).parent / "." / "0-3"])
    with pytest.raises(InvalidValue, match="name at least one"):
        Libraries([])


def test_a_library_that_fails_is_an_error(library_of: Callable[[int, int], Path], tmp_path: Path) -> None:
    """An answer without one library's moments would say that they are not there."""
    second = shutil.copytree(library_of(3, 6), tmp_path / "second")
    with Libraries([library_of(0, 3), second]) as both:
        both.search("umbrella")
        for shard in (second / "features").glob("frames*"):
            shard.unlink()
        (second / "catalogue.sqlite").write_bytes(b"damaged" * 100)
        for own in second.glob("catalogue.sqlite-*"):
            own.unlink()
    with pytest.raises(LibraryError, match="second"), Libraries([library_of(0, 3), second]) as both:
        both.search("umbrella")


def test_writing_needs_one_library(joined: Callable[..., Libraries]) -> None:
    """Nothing is kept in a library that nobody named for it."""
    both = joined(3)
    for write in (
        lambda: both.index("films"),
        lambda: both.indexer.remove(["kitchen"]),
        lambda: both.concepts.teach("red", Marked(None, (MarkedMoment("red door", 1.0, 5.0),))),
        lambda: both.saved.save("red", Asked(Text("red"))),
        lambda: both.userdata.put("collection", "reds", {"moments": []}),
        lambda: [*both.userdata.export()],
    ):
        with pytest.raises(MoviolaError, match="searched as one"):
            write()


def test_concepts_are_those_of_all(
    library_of: Callable[[int, int], Path], clashing: Path, tmp_path: Path
) -> None:
    """Also where it is the second library that was taught, and a video that it was taught by is called there
    as one of the first; of two of one name it is that of the first, named as before.
    """
    first, second = shutil.copytree(library_of(3, 6), tmp_path / "first"), clashing
    marked = Marked(None, (MarkedMoment("kitchen", 1.0, 5.0),))
    with Library(second) as library:
        library.concepts.teach("kettle", marked)
        (alone,) = library.concepts.all()
        best = library.search("@kettle")[0]
    with Libraries([first, second]) as both:
        (known,) = both.concepts.all()
        assert (known.name, known.moments) == ("kettle", ("second:kitchen@1-5",))
        assert np.array_equal(known.right, alone.right)
        found = both.search("@kettle")
        assert not found.notes and str(found.query) == "@kettle"
        top = found[0]
        assert (top.video_id, top.start, top.end) == ("second:kitchen", best.start, best.end)
    with Library(first) as library:
        library.concepts.teach("kettle", marked)
    with Libraries([first, second]) as both:
        assert both.concepts.all()[0].moments == ("first:kitchen@1-5",)
        assert both.search("@kettle")[0].video_id == "first:kitchen"


def test_tags_go_to_the_library_of_their_video(
    library_of: Callable[[int, int], Path], clashing: Path, tmp_path: Path
) -> None:
    """Under the id that the video has there, and read under the one that it has among all; collections are
    those of all, named apart where two libraries have one of a name.
    """
    first = shutil.copytree(library_of(3, 6), tmp_path / "first")
    for folder in (first, clashing):
        with Library(folder) as library:
            moments = [{"video_id": "kitchen", "start": 1.0, "end": 2.0}]
            library.userdata.put("collection", "reds", {"moments": moments})
    with Libraries([first, clashing]) as both:
        tagged = both.userdata.mark(Mark(video_id="second:kitchen"), add=["kettle"], rating=4)
        assert tagged is not None and tagged.name == "second:kitchen"
        moment = {"video_id": "harbour at night", "start": 1.0, "end": 2.0, "tags": ["dark"]}
        both.userdata.put("mark", "harbour at night@1-2", moment, 0)
        with pytest.raises(NotFound, match="no such video"):
            both.userdata.mark(Mark(video_id="attic"), add=["dark"])
        with pytest.raises(InvalidValue, match="ends at 15 s"):
            both.userdata.mark(Mark(video_id="second:kitchen", start=400.0, end=500.0), add=["late"])
        assert both.userdata.tagged()["kettle"] == {"second:kitchen"}
        names = [entry.name for entry in both.userdata.entries()]
        assert names == [
            "first:reds", "second:reds", "first:kitchen", "harbour at night", "harbour at night@1-2",
            "second:kitchen",
        ]  # fmt: skip
        reds = both.userdata.entry("collection", "second:reds").value.model_dump()
        assert [one["video_id"] for one in reds["moments"]] == ["second:kitchen"]
        both.userdata.delete("mark", "first:kitchen")
        with pytest.raises(NotFound, match="no such entry"):
            both.userdata.delete("mark", "first:kitchen")
    kept = {}
    for folder in (first, clashing):
        with Library(folder, read_only=True) as library:
            kept[folder] = [entry.name for entry in library.userdata.entries("mark")]
    assert kept == {first: ["harbour at night", "harbour at night@1-2"], clashing: ["kitchen"]}


def test_a_changed_library_is_seen(
    library_of: Callable[[int, int], Path], shelf: Path, tmp_path: Path
) -> None:
    """What comes into one of them is found by the next search."""
    second = shutil.copytree(library_of(3, 6), tmp_path / "second")
    with Libraries([library_of(0, 3), second]) as both:
        both.search("umbrella")
        before = len(both.videos())
        _film(tmp_path / "new.mp4", 15, 23, ["A kettle whistles."])
        with Library(second) as library:
            library.index(tmp_path / "new.mp4", ocr=False, speech="none", sounds="none")
        assert both.search("kettle", by="subtitles")[0].video_id == "new"
        assert len(both.videos()) == before + 1


# -- the command line ----------------------------------------------------------------------------------------


@pytest.fixture
def two(library_of: Callable[[int, int], Path], tmp_path: Path) -> list[object]:
    """Words that name two libraries of all films."""
    copies = [shutil.copytree(library_of(*own), tmp_path / f"part {own[0]}") for own in ((0, 3), (3, 6))]
    return [word for copy in copies for word in ("--library", copy)]


def test_commands_on_moments_of_several_libraries(
    single: Library,
    two: list[object],
    moviola: Callable[..., Outcome],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The printed answer is that of one library, and its moments are played, cut, exported, shown and
    marked, whichever library their video is in: also by commands that name the first alone.
    """
    first = two[:2]
    rows = moviola("search", "red umbrella", *two, "--json").rows
    wanted = single.search("red umbrella")
    assert [(row["video_id"], row["start"], row["score"]) for row in rows] == [
        (one.video_id, one.start, one.score) for one in wanted
    ]
    assert {row["path"] for row in rows} == {str(single.store.file_of(one.video_id)) for one in wanted}
    rank = next(row["rank"] for row in rows if row["video_id"] == "red door")

    with monkeypatch.context() as patched:
        patched.setattr(subprocess, "Popen", lambda *_, **__: None)
        played = moviola("open", rank, *first, "--player", "true {path} {start}", "--json").rows[0]
    assert played["path"] == str(single.store.file_of("red door"))
    clip = tmp_path / "clip.mp4"
    moviola("cut", rank, *first, "--out", clip)
    assert clip.stat().st_size
    moviola("export", tmp_path / "all.csv", *first)
    exported = (tmp_path / "all.csv").read_text(encoding="utf-8")
    assert all(row["path"] in exported for row in rows)
    assert moviola("show", "red door", *two, "--json").rows[0]["path"] == played["path"]

    again = moviola("mark", "--right", rank, *first, "--json").rows
    video = rows[rank - 1]
    marked = Marked(Text("red umbrella"), (MarkedMoment("red door", video["start"], video["end"]),))
    assert [row["score"] for row in again] == [one.score for one in single.search(marked)]
    refused = moviola("teach", "umbrella", *first)
    assert (
        refused.code == 1 and "of several libraries" in refused.err and "search and mark there" in refused.err
    )


def test_commands_that_take_one_library_refuse_two(
    two: list[object], moviola: Callable[..., Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of two would count, without a word."""
    for command in (["list"], ["index", "films"], ["library", "use"], ["kept", "list"]):
        refused = moviola(*command, *two)
        assert refused.code == 2, command
        assert "given 2 times" in refused.err.replace("\n", " "), command
    short = moviola("list", *(f"-l{folder}" for folder in two[1::2]))
    assert short.code == 2 and "given 2 times" in short.err.replace("\n", " ")
    saved = moviola("search", "umbrella", *two, "--save", "red")
    assert saved.code == 1 and "belong to one library" in saved.err
    monkeypatch.setenv("MOVIOLA_LIBRARY", os.pathsep.join(str(word) for word in two[1::2]))
    assert {row["video_id"] for row in moviola("search", "umbrella", "--json").rows} >= {
        "red door",
        "beach_2019",
    }
