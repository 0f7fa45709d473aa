"""What words of a query exclude is excluded, and never silently looked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.search import Library, LikeMoment, Marked, MarkedMoment, SearchQuery, Text
from moviola.search.understanding import says_only_what_not, understood, without_negation

RIGHT = MarkedMoment("film0", 3.0, 6.0)


@pytest.mark.parametrize(
    ("text", "wanted", "excluded"),
    [
        ("a street without cars", "a street", ("cars",)),
        ("a cat, not a dog", "a cat", ("dog",)),
        ("a cat but no dog", "a cat", ("dog",)),
        ("A man who isn't wearing a hat", "A man", ("wearing a hat",)),
        ("a man who isn’t wearing a hat", "a man", ("wearing a hat",)),
        ("a dog that does not bark", "a dog", ("bark",)),
        ("a road with no cars or people", "a road", ("cars", "people")),
        ("a dog without a leash and without a collar", "a dog", ("leash", "collar")),
        ("a beach with nobody", "a beach", ("people",)),
        ("a room without any people", "a room", ("people",)),
        ("everything except for cars", "everything", ("cars",)),
        ("a man w/o hat", "a man", ("hat",)),
        ("cat -dog", "cat", ("dog",)),
        ("no dog", "", ("dog",)),
        ("not a dog", "", ("dog",)),
        ("without snow", "", ("snow",)),
        ("neither cars nor people", "", ("cars", "people")),
        # In other languages, with what leads over to it and the articles.
        ("kein Hund", "", ("Hund",)),
        ("eine Straße ohne Autos oder Busse", "eine Straße", ("Autos", "Busse")),
        ("Ein Mann, der keinen Hut trägt", "Ein Mann", ("Hut trägt",)),
        ("eine Katze, aber kein Hund", "eine Katze", ("Hund",)),
        ("una calle sin coches", "una calle", ("coches",)),
        ("un gato pero no un perro", "un gato", ("perro",)),
        ("no hay perros", "", ("perros",)),
        ("une rue sans voitures, mais pas d'arbres", "une rue", ("voitures", "arbres")),
        ("没有狗", "", ("狗",)),
        ("一只没有尾巴的猫", "一只猫", ("尾巴",)),
        ("街上没有车", "街上", ("车",)),
        ("nicht nur ein Hund", "nicht nur ein Hund", ()),
        ("„kein Hund“", "„kein Hund“", ()),
        ("sin city", "sin city", ()),
        # Nothing is excluded where nothing follows, in quotation marks, and by other words.
        ("no", "no", ()),
        ("yes or no", "yes or no", ()),
        ("No. 5", "No. 5", ()),
        ("no 5", "no 5", ()),
        ("not only a dog", "not only a dog", ()),
        ('"no dog"', '"no dog"', ()),
        ('a "no smoking" sign', 'a "no smoking" sign', ()),
        ("“no dog” without a cat", "“no dog”", ("cat",)),
        ("a knot in a snowy-not-icy rope", "a knot in a snowy-not-icy rope", ()),
        ("-dash-", "-dash-", ()),
        ("@nobody in a suit", "@nobody in a suit", ()),
        ("a cat with @no-one", "a cat with @no-one", ()),
        ("a well-known T-shirt", "a well-known T-shirt", ()),
    ],
)
def test_what_a_text_excludes(text: str, wanted: str, excluded: tuple[str, ...]) -> None:
    assert without_negation(text) == (wanted, excluded)
    assert says_only_what_not(text) == (not wanted)


@given(st.text(max_size=60))
def test_any_text_can_be_read(text: str) -> None:
    wanted, excluded = without_negation(text)
    assert wanted == text or excluded
    assert all(any(letter.isalnum() or letter == "_" for letter in one) for one in excluded)


@pytest.mark.parametrize(
    ("query", "read"),
    [
        (Text("a wall without doors").then("a street, no cars"),
         Text("a wall").without("doors").then(Text("a street").without("cars"))),
        (Text("a wall without doors") + 0.5 * LikeMoment("film0", 1),
         (Text("a wall") + 0.5 * LikeMoment("film0", 1)).without("doors")),
        (Text("a wall without doors").without("windows"), Text("a wall").without("doors", "windows")),
        (Marked(Text("a wall without doors"), (RIGHT,)), Marked(Text("a wall"), (RIGHT,)).without("doors")),
        (Text("a wall").without("no doors"), Text("a wall").without("no doors")),
    ],
)  # fmt: skip
def test_every_part_of_a_query_is_read(query: SearchQuery, read: SearchQuery) -> None:
    """An exclusion is taken as it is: a double negation says too little to guess."""
    assert understood(query, lambda name: False)[0] == read


def test_an_exclusion_in_words_is_one(library: Library) -> None:
    """The answer says so, and takes words in quotation marks as they are."""
    said = library.search("a red wall without a green door", top_k=50)
    assert said == library.search(Text("a red wall").without("green door"), top_k=50)
    (note,) = [note for note in said.notes if note.kind == "without"]
    assert (note.about, note.others) == ("a red wall", ("green door",)) and "quotation marks" in str(note)
    assert not any(n.kind == "without" for n in library.search('"a red wall without a green door"').notes)
    _, scores = library.curve(Text("a red wall without a green door"), "film0")
    assert scores.tolist() == library.curve(Text("a red wall").without("green door"), "film0")[1].tolist()


def test_an_exclusion_alone_shows_nothing(library: Library) -> None:
    """Words are still words: "no umbrella" may be said."""
    found = library.search("no umbrella", top_k=50)
    assert found.notes[0].kind == "only without" and found and not found.confident
    assert {moment.snippet_kind for moment in found} == {"subtitle"}
    assert library.search("not a red wall", by="visual", top_k=50) == []
    assert library.search('"not a red wall"', by="visual", top_k=50) != []
