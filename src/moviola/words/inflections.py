"""Further forms of a word of a query, where Snowball's stemmers leave forms of one word apart.

They are searched besides the word's own stem, so that what a library holds need not be made again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

__all__ = ["FURTHER_FORMS"]

_TURKISH_PAST = ("ıyor", "iyor", "uyor", "üyor", "yor", "dı", "di", "du", "dü", "tı", "ti", "tu", "tü")
_RUSSIAN = "бвгджзклмнпрстфхцчшщ"
_FLEETING = f"([{_RUSSIAN}ьй])([{_RUSSIAN}])[аяоеыи]"
_HELD = f"([{_RUSSIAN}])[еёо]([{_RUSSIAN}])"

# Forms of one English word that have no regular ending, in groups; endings are Snowball's part.
_IRREGULAR = """
arise arose arisen / awake awoke / beat beaten / become became / begin began begun / bend bent / bite
bit bitten / bleed bled / blow blew blown / break broke broken / breed bred / bring brought / build
built / burn burnt / buy bought / catch caught / choose chose chosen / cling clung / come came / creep
crept / deal dealt / dig dug / draw drew drawn / dream dreamt / drink drank drunk / drive drove driven /
eat ate eaten / fall fell fallen / feed fed / feel felt / fight fought / find found / flee fled / fly
flew flown / forbid forbade forbidden / forget forgot forgotten / forgive forgave forgiven / freeze
froze frozen / get got gotten / give gave given / go went gone / grow grew grown / hang hung / hear
heard / hide hid hidden / hold held / keep kept / kneel knelt / know knew known / lay laid / lead led /
leap leapt / leave left / lend lent / lie lay lain / light lit / lose lost / make made / mean meant /
meet met / pay paid / ride rode ridden / ring rang rung / rise rose risen / run ran / say said / see saw
seen / seek sought / sell sold / send sent / sew sewn / shake shook shaken / shine shone / shoot shot /
show shown / shrink shrank / sing sang sung / sink sank sunk / sit sat / sleep slept / slide slid /
smell smelt / speak spoke spoken / spend spent / spill spilt / spin spun / spit spat / spring sprang /
stand stood / steal stole stolen / stick stuck / sting stung / strike struck / swear swore sworn / sweep
swept / swim swam swum / swing swung / take took taken / teach taught / tear tore torn / tell told /
think thought / throw threw thrown / understand understood / wake woke woken / wear wore worn / weep
wept / win won / write wrote written / child children / man men / woman women / foot feet / tooth teeth
/ goose geese / mouse mice / louse lice / ox oxen / person people / calf calves / elf elves / half
halves / hoof hooves / knife knives / leaf leaves / life lives / loaf loaves / scarf scarves / shelf
shelves / thief thieves / wife wives / wolf wolves
"""
# Forms that are words of their own, and more often those.
_AMBIGUOUS = frozenset(
    ["bit", "fell", "felt", "found", "lay", "leaves", "left", "lives", "rose", "saw", "shot", "spoke"]
)
_GROUPS_OF_FORMS = [group.split() for group in _IRREGULAR.split("/")]
_HEBREW_PREFIXES, _HEBREW_ENDINGS = "הבלמשוכ", ("ים", "ות")


def _english(word: str) -> list[str]:
    """``ran`` of ``run``, ``child`` of ``children``, ``bring`` of ``brought``."""
    groups = [] if word in _AMBIGUOUS else [group for group in _GROUPS_OF_FORMS if word in group]
    return [form for group in groups for form in group if form != word]


def _hebrew(word: str) -> list[str]:
    """``הילדים`` and ``בילד`` of ``ילד``, ``ילד`` of ``הילדים``: the article is one word with it."""
    bare = re.sub(f"^[{_HEBREW_PREFIXES}](?=\\w{{3}})", "", word)
    stems = {word, bare}
    stems |= {
        stem.removesuffix(ending) for stem in (word, bare) for ending in _HEBREW_ENDINGS if len(stem) > 4
    }
    whole = {stem + ending for stem in stems for ending in ("", *_HEBREW_ENDINGS)}
    return sorted({prefix + form for form in whole for prefix in ("", *_HEBREW_PREFIXES)} - {word})


def _german(word: str) -> list[str]:
    """``kocht`` and ``gekocht`` of ``kochen``."""
    return [f"{word[:-2]}t", f"ge{word[:-2]}t"] if re.fullmatch(r"\w{3,}en", word) else []


def _french(word: str) -> list[str]:
    """``mangent``, ``mangeons``, ``mangions`` of ``manger``."""
    if not re.fullmatch(r"\w{2,}(?:er|ir|re)", word):
        return []
    return [word[:-2] + ending for ending in ("ent", "ons", "eons", "ions")]


def _spanish(word: str) -> list[str]:
    """``peces`` of ``pez``, and ``pez`` of ``peces``."""
    if re.fullmatch(r"\w+z", word):
        return [f"{word[:-1]}ces"]
    return [f"{word[:-3]}z"] if re.fullmatch(r"\w+ces", word) else []


def _russian(word: str) -> list[str]:
    """``кошек`` of ``кошка``, ``кошка`` of ``кошек``, ``пил`` of ``пить``."""
    if re.fullmatch(r"\w{2,}ть", word):
        return [word[:-2] + ending for ending in ("л", "ла", "ли")]
    if found := re.fullmatch(_FLEETING, word[-3:]):
        start = word[:-3] + found[1].strip("ьй")
        return [f"{start}{vowel}{found[2]}" for vowel in "еоё"]
    if found := re.fullmatch(_HELD, word[-3:]):
        return [f"{word[:-3]}{found[1]}{found[2]}{ending}" for ending in "аои"]
    return []


def _turkish(word: str) -> list[str]:
    """``yaz``, ``yazıyor``, ``yazdı`` of ``yazmak``; ``arabası`` of ``araba``."""
    if re.fullmatch(r"\w{2,}m[ae]k", word):
        return [word[:-3], *(word[:-3] + ending for ending in _TURKISH_PAST)]
    return [f"{word}s"] if re.fullmatch(r"\w{2,}[aeıioöuü]", word) else []


FURTHER_FORMS: Mapping[str, Callable[[str], list[str]]] = {
    "de": _german, "en": _english, "es": _spanish, "fr": _french, "he": _hebrew, "ru": _russian,
    "tr": _turkish,
}  # fmt: skip
"""By language, from a word in lower case to other forms of it; some are no words, which finds nothing."""
