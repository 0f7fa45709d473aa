"""What words of a query exclude is excluded, and never silently looked for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.search import Library, LikeMoment, Marked, MarkedMoment, SearchQuery, Text
from moviola.search.negations import NEGATIONS
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


@pytest.mark.parametrize(
    ("text", "wanted", "excluded"),
    [
        ("una strada senza auto", "una strada", "auto"),
        ("un uomo che non porta il cappello", "un uomo", "porta il cappello"),
        ("non c'è un cane", "", "cane"),
        ("een man die geen hoed draagt", "een man", "hoed draagt"),
        ("um gato, mas não um cão", "um gato", "cão"),
        ("улица, где нет машин", "улица", "машин"),
        ("собак нет", "", "собак"),
        ("ce n'est pas un chien", "", "chien"),
        ("犬のいない通り", "通り", "犬"),
        ("通りに犬がいない", "通りに", "犬"),
        ("帽子をかぶっていない男", "男", "帽子をかぶって"),
        ("猫、犬なし", "猫", "犬"),
        ("빨간 자동차 없는 거리", "거리", "빨간 자동차"),
        ("거리에 개 없음", "거리에", "개"),
        ("고양이 말고 개", "개", "고양이"),
        ("बिना टोपी के आदमी", "आदमी", "टोपी"),
        ("सड़क पर कोई कार नहीं है", "सड़क पर", "कार"),
        ("قطة وليس كلبا", "قطة", "كلبا"),
        ("arabasız sokak", "sokak", "araba"),
        ("sokakta araba yok", "sokakta", "araba"),
        ("没戴帽子的人", "人", "帽子"),
    ],
)
def test_languages_say_it_before_and_behind(text: str, wanted: str, excluded: str) -> None:
    assert without_negation(text) == (wanted, (excluded,))


@pytest.mark.parametrize(
    "text",
    [
        "um gato no telhado",  # Portuguese: on the roof
        "en mann med sin hund",  # Norwegian: with his dog
        "un homme nu", "не только собака", "niet alleen een hond", "não só um cão", "少ない人", "危ない道",
        "không gian", "Fransız bayrağı", "deniz kenarı", "un hombre con su perro", "да или нет",
    ],
)  # fmt: skip
def test_words_that_only_look_like_a_negation_exclude_nothing(text: str) -> None:
    assert without_negation(text) == (text, ())


@pytest.mark.parametrize("language", NEGATIONS)
def test_no_word_of_the_table_is_silently_the_opposite(language: str) -> None:
    """Each alone, beside what is wanted, and in capitals; the thing is never left among what is wanted."""
    own, blank = NEGATIONS[language], " " if NEGATIONS[language].spaced else ""
    thing, other = ("zzgrk", "zzblm") if own.spaced else ("牛", "馬")
    texts = [
        (f"{before}{word}{blank}{thing}", before.strip(", ，"))
        for word in filter(None, own.before.split(", "))
        for before in ("", f"{other}{blank}", f"{other}, ")
    ]
    for word in filter(None, own.behind.split(", ")):
        texts.append((f"{thing}{blank}{word.removesuffix('$')}", ""))
        texts += [] if word.endswith("$") else [(f"{thing}{blank}{word}{blank}{other}", other)]
    for text, wanted in texts:
        for written in (text, text.upper()):
            found, excluded = without_negation(written)
            assert (found.lower(), tuple(map(str.lower, excluded))) == (wanted, (thing,)), written


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
