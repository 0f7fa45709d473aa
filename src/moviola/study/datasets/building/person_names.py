"""Person names in a caption set, and their gender, without an external source.

A name is a word that this set writes with a capital inside its sentences and hardly ever without, or one of a
compact list of first names. Gender follows from the pronouns after a name that is alone in a caption, then
from the list.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from moviola.files.toml import read_toml

__all__ = [
    "FEMALE", "MALE", "TITLES", "WORD", "WORDS", "Gender", "NameLexicon", "learn_names",
    "stem", "words",
]  # fmt: skip

Gender = Literal["m", "f", ""]

WORD = re.compile(r"[A-Za-zÀ-ÿ]+(?:[-'’][A-Za-zÀ-ÿ]+)*['’]?")
"""A word with its inner hyphens and apostrophes, and the closing apostrophe of a plural possessive."""

TITLES: Mapping[str, tuple[str, Gender]] = {
    "dr": ("doctor", ""), "doc": ("doctor", ""), "mr": ("man", "m"), "mister": ("man", "m"),
    "sir": ("man", "m"), "uncle": ("man", "m"), "mrs": ("woman", "f"), "ms": ("woman", "f"),
    "miss": ("woman", "f"), "aunt": ("woman", "f"), "prof": ("professor", ""), "det": ("detective", ""),
    "father": ("priest", "m"), "king": ("king", "m"), "queen": ("queen", "f"),
    **{title: (title, "") for title in (
        "doctor", "professor", "nurse", "captain", "detective", "officer", "agent", "judge", "colonel",
        "sergeant", "baby", "president", "senator", "mayor", "chief", "lieutenant",
    )},
}  # fmt: skip
"""Titles before a name (lower case, no dot), the noun that takes their place, and its gender."""


def words(text: str) -> frozenset[str]:
    """A set of words written as one text."""
    return frozenset(text.split())


WORDS = {
    name: words(listed) for name, listed in read_toml(Path(__file__).with_name("word_lists.toml")).items()
}
"""Sets of words by name; the file says what they are."""

_MEN, _WOMEN, _EITHER = WORDS["men"], WORDS["women"], WORDS["either"]
_EVERYDAY, _BEFORE_SUBJECT, _NO_PERSONS = WORDS["everyday"], WORDS["before_subject"], WORDS["no_persons"]

_FOLLOWS_SUBJECT = re.compile(
    r"(?:is|was|are|were|has|had|does|and|then|who|[a-z]{2,}(?:s|ed))$|(?:tries|can|gets)$"
)
MALE = words("he his him himself")
FEMALE = words("she her hers herself")
# Where one of these is in the caption, its pronouns may not mean the name.
_OTHERS = words("man woman girl boy guy lady patient doctor who")
_NO_OPENER = re.compile(
    r"(?:[a-z]+(?:ly|ing|ed|ness|tion|ment|ers|ists|ants|mates|men|women|one|body|self|where))$"
)


def stem(word: str) -> tuple[str, str]:
    """A word without its possessive ending, and that ending (``"'s"``, ``"'"`` or nothing)."""
    for ending in ("'s", "’s", "'S", "'", "’"):
        if word.endswith(ending):
            return word[: -len(ending)], "'s"
    return word, ""


@dataclass(frozen=True, slots=True)
class NameLexicon:
    """The result of :func:`learn_names`; all in lower case.

    Attributes:
        openers: words that are names where they open a sentence, though never seen inside one.
        plain: names that are recognised without a capital too ("castle walks in").
        owners: possessives whose apostrophe was forgotten, to the name ("sheldons" to "sheldon").
        gender: "m" or "f" of names where it is known.
    """

    names: frozenset[str]
    openers: frozenset[str]
    plain: frozenset[str]
    owners: Mapping[str, str]
    gender: Mapping[str, Gender]

    def is_name(self, word: str, *, opens: bool) -> bool:
        """Whether a word as written, but for a possessive ending, names a person.

        ``opens``: it is the first of its sentence.
        """
        lower = word.lower()
        if word[:1].islower():
            return lower in self.plain
        return lower in self.names or (opens and lower in self.openers)


def learn_names(captions: Iterable[str]) -> NameLexicon:
    """Learn a set's person names from how it capitalises words."""
    captions = list(captions)
    inside: Counter[str] = Counter()
    small: Counter[str] = Counter()
    opening: Counter[str] = Counter()
    acting: set[str] = set()
    after_the: Counter[str] = Counter()
    for caption in captions:
        matches = list(WORD.finditer(caption))
        spoken = [match.group() for match in matches]
        for place, match in enumerate(matches):
            word = stem(match.group())[0]
            lower = word.lower()
            if word[:1].islower():
                small[lower] += 1
            elif place == 0 or caption[: match.start()].rstrip()[-1:] in '.!?"':
                opening[lower] += 1
                if _acts(spoken, place):
                    acting.add(lower)
            elif not (word.isupper() and len(word) > 1):
                inside[lower] += 1
                after_the[lower] += stem(spoken[place - 1])[0].lower() == "the"
    first_names = (_MEN | _WOMEN) - _EVERYDAY
    names = {
        w
        for w, count in inside.items()
        if len(w) > 1 and w not in TITLES and count > small[w] / 3 and after_the[w] < count / 2
    }
    # "March" is no person even if it has a capital; "Mark" is one wherever it has.
    names = (names | first_names | {w for w in _EVERYDAY & (_MEN | _WOMEN) if inside[w]}) - _NO_PERSONS
    owners = {
        word: name
        for word in inside.keys() | opening.keys()
        if (name := word.removesuffix("s")) != word
        if name in names and inside[name] > 3 * inside[word] and not small[word]
    }
    names -= owners.keys()
    known = names | _NO_PERSONS | TITLES.keys() | owners.keys()
    unknown = {word for word in opening.keys() & acting if not small[word] and word not in known}
    openers = {word for word in unknown if len(word) > 1 and not _NO_OPENER.search(word)}
    plain = {w for w in names - _EVERYDAY if small[w] <= 0.05 * (inside[w] + opening[w]) or w in first_names}
    return NameLexicon(
        frozenset(names), frozenset(openers), frozenset(plain), owners, _genders(captions, names | openers)
    )


def _acts(spoken: Sequence[str], place: int) -> bool:
    """Whether a word that opens a sentence owns what follows, does it, or is followed by another name."""
    if stem(spoken[place])[1]:
        return True
    after = spoken[place + 1 : place + 3]
    if after and after[0].endswith("ly"):
        after = after[1:]
    if not after:
        return False
    named = after[0][0].isupper() and spoken[place].lower() not in _BEFORE_SUBJECT
    return named or bool(_FOLLOWS_SUBJECT.search(after[0]))


def _genders(captions: Iterable[str], names: set[str]) -> dict[str, Gender]:
    """Pronouns after a name that is alone in its caption; a clear majority of them beats the list."""
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for caption in captions:
        spoken = [stem(m.group())[0] for m in WORD.finditer(caption)]
        there = [place for place, w in enumerate(spoken) if w[:1].isupper() and w.lower() in names]
        alone = len({spoken[place].lower() for place in there}) == 1
        if alone and not {w.lower() for w in spoken} & _OTHERS:
            name, after = spoken[there[0]].lower(), {w.lower() for w in spoken[there[0] :]}
            seen[name]["m"] += bool(after & MALE)
            seen[name]["f"] += bool(after & FEMALE)
    genders: dict[str, Gender] = {}
    for name in names:
        men, women = seen[name]["m"], seen[name]["f"]
        listed: Gender = "" if name in _EITHER else "m" if name in _MEN else "f" if name in _WOMEN else ""
        if men + women >= (3 if listed else 1) and max(men, women) >= 0.75 * (men + women):
            listed = "m" if men > women else "f"
        genders[name] = listed
    return {name: gender for name, gender in genders.items() if gender}
