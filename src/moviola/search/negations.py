"""How languages say what is not wanted: one table, and the reading of texts by it.

Most say it before the thing ("sin coches", "без машин"); others behind it ("犬のいない通り", "개 없는 거리",
"कुत्ते के बिना"), and then what is wanted may follow. Texts are too short to show their language, so all are read
by the whole table; words that say something else in another language are left out, or say beside which
words they do.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

__all__ = ["MARK", "NEGATIONS", "Negation", "before_what_is_not", "marked", "without_ends"]

MARK = "\ue000"
"""Stands before what is not wanted, once :func:`marked` has turned a text; a letter of no language."""


@dataclass(frozen=True, slots=True)
class Negation:
    """The words of one language, each list parted by ", ".

    Attributes:
        before, behind: words before and behind what is not wanted; with ``$`` only at the end of a text.
        only: words behind those of ``before``, of any language, with which nothing is excluded ("not only").
        beside: regular expression of words of other languages, beside which ``before`` does not count.
        leading: what leads over to it, at the end of what is wanted.
        articles: what it begins with.
        places: ends of what is wanted before it, for words behind; regular expressions.
        spaced: whether blanks part words.
    """

    before: str = ""
    behind: str = ""
    only: str = ""
    beside: str = ""
    leading: str = ""
    articles: str = ""
    places: str = ""
    spaced: bool = True


NEGATIONS: Mapping[str, Negation] = {
    "ar": Negation(
        before="من دون, بدون, دون, بلا, بغير, لا يوجد, لا توجد, لا, ليس, ليست, غير, ما عدا, عدا, سوى, لم",
        leading="و, لكن, ولكن, مع, الذي, التي, فيه, فيها, هو, هي, به, بها",
        articles="أي, أية, فيه, فيها, به, بها",
    ),
    "cs": Negation(before="bez, není, nejsou, žádný, žádná, žádné, kromě, ani", leading="ale, a, s, se, kde"),
    "da": Negation(
        before="uden, uten, ikke, ingen, intet, undtagen, unntatt, aldrig, aldri", only="kun, bare",
        leading="men, og, med, som, er, der, hvor, det er", articles="en, et, ei, den, det, noen, nogen",
    ),
    "de": Negation(
        before="ohne, kein, keine, keiner, keines, keinem, keinen, nicht, niemals, nie, außer, ausser",
        only="nur",
        leading="aber, und, mit, ist, sind, es gibt, gibt es, der, die, das",
        articles="ein, eine, einer, eines, einem, einen, der, die, das, den, dem",
    ),
    "el": Negation(
        before="χωρίς, δίχως, όχι, δεν, μην, εκτός από", only="μόνο", leading="αλλά, και, με, που",
    ),
    "es": Negation(
        before="ningún, ninguna, ninguno, nunca, excepto", leading="pero, con, y, que, hay",
        articles="hay, un, una, el, la, los, las",
    ),
    "es, but for other languages": Negation(before="sin", beside="og|och|med|som|på|av|är|ett?"),
    "es, it, but for other languages": Negation(
        before="no", only="solo, sólo", beside="um|uma|do|da|em|com|ao|os|as|na|não"
    ),
    "fr": Negation(
        before="sans, aucun, aucune, sauf, pas de, pas d', pas d’, pas un, pas une", only="seulement",
        leading="mais, et, avec, qui, il y a, il n'y a, c'est, ce n'est",
        articles="un, une, le, la, les, du, des",
    ),
    "he": Negation(before="בלי, ללא, לא, אין, חוץ מ", leading="אבל, ו, עם, שיש", only="רק"),
    "hi": Negation(
        before="बिना", behind="के बिना, की बिना, के बगैर, के बग़ैर, के सिवाय, के सिवा, के अलावा, नहीं, नही",
        leading="लेकिन, और, है, हैं", articles="कोई, है, हैं",
        places=r"(?:पर|में|पे|लेकिन|और)",
    ),
    "hu": Negation(
        before="nem, nincs, nincsenek, kivéve", behind="nélküli, nélkül", only="csak", articles="egy, a, az",
    ),
    "id": Negation(
        before="tanpa, tidak ada, tidak, bukan, kecuali", only="hanya", leading="tapi, tetapi, dan, yang",
    ),
    "it": Negation(
        before="senza, non, nessun, nessuna, né, tranne, eccetto, niente", only="solo, soltanto",
        leading="ma, e, con, che, c'è, ci sono, è",
        articles="c'è, ci sono, è, un, uno, una, il, lo, la, i, gli, le",
    ),
    "ja": Negation(
        behind="ではありません, ではなく, じゃなくて, ではない, じゃない, でない, がいない, のいない,"
        " はいない, もいない, いない, がない, のない, はない, もない, がいません, はいません, いません,"
        " がありません, はありません, なしの, なし$, 無しの, 無し$, 以外の, 以外$, 抜きの, 抜き$",
        places="(?:には|では|に|で|と|の上)", spaced=False,
    ),
    "ko": Negation(
        behind="없는, 없이, 없고, 없다, 없음, 없어요, 없습니다, 아닌, 아니라, 아니고, 말고, 빼고, 제외하고,"
        " 제외한, 지 않는, 지 않은, 지 않고",
        places="(?:에는|에서는|에서|에|지만|이고)",
    ),
    "nl": Negation(
        before="geen, zonder, niet, behalve, nooit", only="alleen",
        leading="maar, en, met, is, zijn, die, dat, er is, er zijn", articles="een, de, het",
    ),
    "pl": Negation(
        before="bez, nie ma, nie, żaden, żadna, żadne, żadnych, oprócz, ani", only="tylko",
        leading="ale, i, a, z, gdzie, który, która, które, jest, są", articles="ma, żadnego, żadnej, żadnych",
    ),
    "pt": Negation(
        before="sem, não há, não tem, não, nenhum, nenhuma, exceto", only="só, apenas",
        leading="mas, e, com, que, há, é", articles="há, é, um, uma, o, os, as, nenhum, nenhuma",
    ),
    "ro": Negation(before="fără, niciun, nicio, cu excepția", leading="dar, și, cu", articles="un, o"),
    "ru": Negation(
        before="без, безо, не, нет, ни, кроме, никаких, никакого, никакой", behind="нет$", only="только",
        leading="но, и, а, с, со, где, есть, это, который, которая, которое, которые, в котором, на котором",
        articles="никаких, никакого, никакой", places="(?:но|и|где)",
    ),
    "sv": Negation(
        before="utan, inte, ingen, inget, inga, förutom", only="bara",
        leading="men, och, med, som, är, där, det finns", articles="en, ett, den, det, några",
    ),
    "th": Negation(before="ไม่มี, ไม่ใช่, ไม่ได้, ไม่, ยกเว้น, ปราศจาก", leading="ที่, แต่, และ", spaced=False),
    "tr": Negation(
        before="", behind="olmadan, olmayan, yok, değil, hariç", leading="ama, ve",
        places=r"(?:\w+[dt][ae]|ama|ve)", articles="hiç, bir",
    ),
    "uk": Negation(
        before="без, не, немає, нема, ні, крім, окрім", behind="немає$, нема$", only="лише, тільки",
        leading="але, і, й, та, а, з, із, де, є, це, який, яка, яке, які", places="(?:але|і|де)",
    ),
    "vi": Negation(
        before="không có, không phải là, không phải, không, ngoại trừ", only="chỉ, gian, khí",
        leading="nhưng, và, với", articles="con, một",
    ),
    "zh": Negation(
        before="没有, 沒有, 不是, 没戴, 没穿, 不戴, 不穿, 没带, 不带", leading="但, 但是, 而, 和",
        spaced=False,
    ),
}  # fmt: skip

# Turkish "arabasız", without a car, but for words that are something by themselves.
_SUFFIXED = re.compile(
    r"(?<!\w)(?!Fransız|sessiz|kablosuz|insansız)(\w{3,}\w)s[ıiuü]z\s+(\w[\w ]*)", re.IGNORECASE
)
# French "ne court pas", and a Hindi "without" around what is not wanted.
_AROUND = (
    (re.compile(r"(?<!\w)(?:ne\s|n['’])(\w+)\s+(?:pas|plus|jamais)$", re.IGNORECASE), MARK + r"\1"),
    (re.compile(r"(?<!\w)बिना\s+([^,]{1,60}?)\s+(?:के|की|वाला|वाले|वाली)\s*([^,]*)"), r"\2, " + MARK + r"\1"),
    # Chinese says what is excluded before what is wanted: "a street that has no people".
    (re.compile(r"((?:没|沒|不)[^，,、。；;的]{1,60})的([^，,、。；;]+)"), r"\2，\1"),
    (_SUFFIXED, r"\2, " + MARK + r"\1"),
)
_CLAUSE = re.compile(r"[^,;，；、。]+")
# Letters of what leads over, or begins, with blanks and marks.
_LONGEST = 64


def _words(text: str) -> list[str]:
    return [word for word in text.split(", ") if word]


def _any(words: Iterable[str]) -> str:
    """Any of some words, the longest first; of several parts, with blanks between these."""
    return "|".join(
        r"\s+".join(map(re.escape, word.split()))
        for word in sorted(set(words), key=lambda one: (-len(one), one))
    )


_NOT_ONLY = rf"(?!\s+(?:{_any(w for one in NEGATIONS.values() for w in _words(one.only))})(?!\w))"


def _before(one: Negation) -> str:
    words = _any(_words(one.before))
    if not one.spaced:
        return f"(?:{words})"
    # Arabic writes "and" with the word that follows.
    return rf"(?:(?<![@\w])و?(?:{words})(?:(?<=['’])|(?![\w-]|\.?\s*\d)){_NOT_ONLY})"


def _behind(one: Negation, *, ends: bool) -> re.Pattern[str]:
    """Words behind what is not wanted, with blanks around them; those that only end a text, too, or not."""
    words = _words(one.behind)
    ended = [word.removesuffix("$") for word in words if word.endswith("$")]
    forms = [_any(word for word in words if not word.endswith("$"))]
    forms += [rf"(?:{_any(ended)})$"] if ends and ended else []
    # Korean and Japanese leave out blanks; "да или нет" is "yes or no".
    blank, after = (r"\s", r"(?!\w)") if one.spaced and "없는" not in one.behind else (r"\s?", "")
    return re.compile(
        rf"(?<!или)(?<!або){blank}(?:{'|'.join(filter(None, forms)) or '(?!)'}){after}\s?", re.IGNORECASE
    )


_SPOKEN = [one for one in NEGATIONS.values() if one.before]
_BEHIND = [
    (one, _behind(one, ends=False), _behind(one, ends=True)) for one in NEGATIONS.values() if one.behind
]
# Those of all languages but the ones that say something else in others.
_FREE = "|".join(_before(one) for one in _SPOKEN if not one.beside)
_BOUND = [
    (re.compile(rf"(?<!\w)(?:{one.beside})(?!\w)", re.IGNORECASE), _before(one))
    for one in _SPOKEN
    if one.beside
]
_LEADING = re.compile(
    rf"(?:^|[\s,;:.，；：。–—-]+)(?:{_any(w for one in NEGATIONS.values() for w in _words(one.leading))})$",
    re.IGNORECASE,
)
_ARTICLE = re.compile(
    rf"^(?:(?:{_any(w for one in NEGATIONS.values() for w in _words(one.articles))})\s+|l['’](?=\w))",
    re.IGNORECASE,
)


def before_what_is_not(text: str) -> str:
    """A regular expression of what says, in a text that is not English, that what follows is not wanted."""
    bound = [pattern for beside, pattern in _BOUND if not beside.search(text)]
    return "|".join((MARK, _FREE, *bound))


def marked(text: str) -> str:
    """A text whose language says it behind what is not wanted, with :data:`MARK` and that at its end.

    >>> marked("개가 없는 거리").split(MARK), marked("sokakta araba yok").split(MARK)
    ([' 거리, ', '개가'], ['sokakta , ', 'araba'])
    """
    text = " ".join(text.split())
    for pattern, turned in _AROUND:
        text = pattern.sub(turned, text)
    for one, within, at_end in _BEHIND:
        last = text.rstrip(",;，；、。 ")
        pieces, begin = [], 0
        for clause in _CLAUSE.finditer(text):  # each by itself: time grows with the length alone
            own = at_end if clause.end() >= len(last) else within
            if found := own.search(text, clause.start() + 1, clause.end()):
                unwanted, wanted = text[clause.start() : found.start()], text[found.end() : clause.end()]
                pieces += [text[begin : clause.start()], _turned(unwanted.strip(), wanted, one)]
                begin = clause.end()
        text = "".join(pieces) + text[begin:]
    return text


def _turned(unwanted: str, wanted: str, one: Negation) -> str:
    blank, before = r"\s" if one.spaced else "", ""
    if one.places and (place := re.match(rf"(.*{one.places}){blank}(.+)$", unwanted)):
        before, unwanted = place[1], place[2]
    return f"{before} {wanted}, {MARK}{unwanted}"


def without_ends(piece: str, *, begins: bool = False) -> str:
    """A piece of a text without what leads over to the next; or, of what is not wanted, without articles."""
    before = ""
    while piece != before:
        before = piece
        if begins:
            piece = _ARTICLE.sub("", piece[:_LONGEST]) + piece[_LONGEST:]
        elif found := _LEADING.search(piece, max(0, len(piece) - _LONGEST)):
            piece = piece[: found.start()]
    return piece
