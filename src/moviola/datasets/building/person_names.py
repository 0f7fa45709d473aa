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
from typing import Literal

__all__ = [
    "FEMALE", "MALE", "NO_PERSONS", "TITLES", "WORD", "Gender", "NameLexicon", "learn_names", "stem", "words",
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


_MEN = words("""
    aaron adam adrian al alan albert alexander alfred ali allen andrew andy anthony arnold arthur barney
    barry ben benjamin bernard bert bill billy bob bobby brad bradley brandon brendan brent brian bruce
    bryan carl carlos cedric chad charles charlie chester chris christopher chuck clark colin craig
    curtis cyril dan daniel danny dave david dean dennis denny derek dick dirk don donald doug douglas
    duncan dwight earl ed eddie edgar edward eli elliot eric ernest ernie ethan eugene evan felix
    fernando francis frank franklin fred frederick gabe gabriel gary gavin gene geoffrey george gerald
    gilbert glenn gordon graham greg gregory gunther gus guy hank harold harry harvey henry herbert
    howard hugh hugo ian isaac ivan jack jackson jacob jake james jamie jared jason javier jay jeff
    jeffrey jeremy jerome jerry jim jimmy joe joel joey john johnny jonathan jordan jose joseph josh
    joshua juan julian justin karl keith ken kenneth kevin kurt kyle lance larry lawrence leo leon
    leonard leroy lewis lloyd louis lucas luke malcolm marcus mario mark marshall martin marty marvin matt
    matthew max michael mickey mike miles mitch mitchell mohammed morris nathan neil nicholas nick noah
    norman oliver oscar otto owen patrick paul pedro pete peter phil philip phillip raj ralph randy ray
    raymond rick richard ricky rob robert roberto rodney roger ron ronald ross roy russell ryan sam
    samuel scott sean sebastian seth shawn sheldon sidney simon stan stanley stephen steve steven stuart
    ted terry theodore thomas tim timothy tobias todd tom tommy tony travis trevor tyler vernon victor
    vikram vincent wade wallace walter warren wayne wesley will william zach zachary zack
""")
_WOMEN = words("""
    abby abigail addison adele agnes alexis alice alicia alison allison amanda amber amelia amy andrea
    angela anita ann anna anne annie april ashley audrey barbara beatrice becky bernadette beth betty
    beverley beverly bonnie brenda bridget brittany callie camille carla carol caroline carolyn carrie
    catherine cathy charlotte chloe christina christine cindy claire clara colleen courtney cristina
    crystal cynthia daisy dana danielle deborah debbie denise diana diane dolores donna dora doris
    dorothy edith eileen elaine eleanor elena elise elizabeth ella ellen emily emma erica erin estelle
    esther ethel eva eve evelyn faith fiona florence frances gail georgia gina gloria grace greta
    gretchen hannah hazel heather heidi helen hilary hillary holly ida irene iris irma isabel izzie izzy
    jackie jacqueline jane janet janice janine jean jen jenna jennifer jenny jess jessica jill joan
    joanna jodie josephine joy joyce judith judy julia julie june karen kate katherine kathleen kathy
    katie kay kelly kim kimberly kitty kristen lanie laura lauren laurie leah leslie lily lilly linda
    lisa liz lois lori louise lucille lucy lupe lydia lynn mabel maggie mandy margaret maria marie
    marilyn marjorie martha mary matilda maureen maya megan melanie melissa meredith mia michelle
    mildred mindy miranda miriam molly mona monica nadia nancy naomi natalie natasha nicole nina nora
    norma olga olivia pam pamela patricia patty paula pauline peggy penelope penny phoebe phyllis priya
    rachel rachael rebecca regina renee rhonda rita roberta robin rosa rose rosemary roxanne ruby ruth
    sally samantha sandra sandy sara sarah serena shannon sharon sheila shelley sherry shirley sonia
    sophia sophie stacey stacy stella stephanie sue susan suzanne sylvia tammy tara teresa theresa
    tiffany tina tracy ursula valerie vanessa vera veronica vicky victoria violet virginia vivian wanda
    wendy whitney yolanda yvonne zoe zoey cheryl jasmine
""")
# Names of either gender: only pronouns decide.
_EITHER = words("""
    adrian alex alexis ali casey charlie dana drew frankie jackie jamie jordan kelly kim lee leslie marion max
    morgan pat robin sam shannon stacy terry tracy
""")
# Capitalised, but no persons: places, nationalities, brands, days, letters, and words that open a clause.
NO_PERSONS = words("""
    african america american asian australian british canadian central chinese christian cuban dutch
    egyptian english europe european french german greek hindi hispanic indian irish italian italy japan
    japanese jewish korean latin latino london mexican mexico new york paris perk russia russian
    scottish spanish swedish thai texas vegas las hollywood brooklyn manhattan jersey california boston
    chicago monday tuesday wednesday thursday friday saturday sunday january february march april may
    june july august september october november december christmas halloween thanksgiving easter
    valentine hanukkah oreo jenga wars trek star iphone ipad google facebook xbox nintendo disney coke
    pepsi starbucks barbie lego nasa fbi cia nypd swat suv mri iv tv dvd vcr cd pc usa us uk er icu or
    ct ct-scan x-ray xray xrays ok pda id atm t-shirt i i'm a an the he him she her they them his hers
    it its we you and but or as at in on of to with while when then who that this these those there
    after before both all one two three xrays polaroid vodka english-speaking god bible frisbee
    afghanistan africa african-american barbershop capital daily days university factory pictionary
    porsche superman hulk yoda homeland wii journal our cds valentines princess congratulates hungry
    caring foosball monopoly twister bluetooth heimlich velcro post-it styrofoam ping-pong jell-o
""")
# Names that are everyday words too: without a capital they are those words.
_EVERYDAY = words("""
    al amber april art bill bob chase chief cole cross daisy dean dick don drew ed faith flash foreman
    frank gage gates gene grace grant green grey guy hazel honey house hunt iris ivy jack jay jean joy
    june lance lily long mark marshal masters max may miles page park parks past pat patient patty penny
    peg rich ray rob robin rose ruby rusty sandy slaughter star stark sue tag thirteen violet wade
    walker will winters young
""")
# Words that open a sentence before its subject ("So Castle sits"), so that a name after them says nothing.
_BEFORE_SUBJECT = words("""
    so now later here again once next first last finally eventually meanwhile also still even only just not
    how why where what which if since like unlike upon inside outside behind beside above below near past
    today tonight yesterday young old little poor
""")
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
    names = (names | first_names | {w for w in _EVERYDAY & (_MEN | _WOMEN) if inside[w]}) - NO_PERSONS
    owners = {
        word: name
        for word in inside.keys() | opening.keys()
        if (name := word.removesuffix("s")) != word
        if name in names and inside[name] > 3 * inside[word] and not small[word]
    }
    names -= owners.keys()
    known = names | NO_PERSONS | TITLES.keys() | owners.keys()
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
