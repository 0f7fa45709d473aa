"""Imprecise captions without a language model: rules replace person names by general nouns.

TVR-Ranking, section 3.1 and appendix A, has a chat model replace character names; these rules do it offline:
"Eric and Dr. Gregory were having a conversation." -> "Two people were having a conversation."
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from moviola.study.datasets.building.person_names import (
    FEMALE,
    MALE,
    TITLES,
    WORD,
    WORDS,
    Gender,
    NameLexicon,
    stem,
    words,
)

__all__ = ["find_names", "rewrite"]

_NOUN: dict[Gender, str] = {"m": "man", "f": "woman", "": "person"}
_PLURAL: dict[Gender, str] = {"m": "men", "f": "women", "": "people"}
_ORDINALS = ("first ", "second ", "third ", "fourth ", "fifth ")
_NUMBERS = ("", "", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_DETERMINERS, _ADJECTIVES, _ROLES = WORDS["determiners"], WORDS["adjectives"], WORDS["roles"]
# A coordinated list directly after one of these is the subject of the verb that follows it.
_BEFORE_SUBJECT = words("and while as when because then where but before after until so that")
_IRREGULAR = {"is": "are", "was": "were", "has": "have", "does": "do", "goes": "go", "isn't": "aren't",
              "wasn't": "weren't", "doesn't": "don't", "hasn't": "haven't"}  # fmt: skip
_COMMAS = frozenset((",", "and", "&", ", and", "/"))
_ABBREVIATED = words("dr mr mrs ms prof")
_TOKEN = re.compile(f"({WORD.pattern}|\\d+)")
_BETWEEN = words("both all then also just slowly quickly suddenly each")


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    word: bool


@dataclass(slots=True)
class _Mention:
    """One person named at tokens ``first`` to ``last``."""

    first: int
    last: int
    key: str
    title: str
    gender: Gender
    possessive: bool


def _noun_of(mention: _Mention) -> str:
    noun = TITLES[mention.title][0] if mention.title else "man"
    return _NOUN[mention.gender] if noun in ("man", "woman") else noun


def _introduced(mention: _Mention, cast: dict[str, str], total: Counter[str]) -> str:
    """Words for a mention: "a man", "another man"; ``cast``: the nouns of the persons mentioned so far."""
    if mention.key not in cast:
        noun = _noun_of(mention)
        article = "another" if noun in cast.values() else "an" if noun[0] in "aeiou" else "a"
        cast[mention.key] = noun
        return f"{article} {noun}"
    noun = cast[mention.key]
    place = [key for key, other in cast.items() if other == noun].index(mention.key)
    ordinals = {0: ("",), 1: ("",), 2: ("first ", "other ")}.get(total[noun], _ORDINALS)
    return f"the {ordinals[min(place, len(ordinals) - 1)]}{noun}"


def _tokens(caption: str) -> list[_Token]:
    """Words and what stands between them, by turns."""
    parts = enumerate(_TOKEN.split(caption))
    return [_Token(part, place % 2 == 1) for place, part in parts if part]


def _opens(tokens: Sequence[_Token], place: int) -> bool:
    before = "".join(token.text for token in tokens[:place]).rstrip()
    return not before or before[-1] in '.!?"'


def _mentions(tokens: Sequence[_Token], lexicon: NameLexicon) -> list[_Mention]:
    """Names with their titles, first and last names joined."""
    mentions: list[_Mention] = []
    place = 0
    while place < len(tokens):
        last, title = place, ""
        if _is_title(tokens, place) and _has_name(tokens, place, lexicon):
            title, last = tokens[place].text.lower(), place + 2
        name, possessive = _named(tokens, last, lexicon)
        if title and not name:
            word, ending = stem(tokens[last].text)
            name, possessive = word.lower(), bool(ending)
        if not name and _is_half_of_a_couple(tokens, place):
            name = title = tokens[place].text.lower()
        if not name:
            place += 1
            continue
        key = name
        while name != title and not possessive and last + 2 < len(tokens) and tokens[last + 1].text == " ":
            following, owns = _named(tokens, last + 2, lexicon)
            if not following:
                following, owns = _surname(tokens[last + 2])
            if not following or tokens[last + 2].text[0].islower():
                break
            key, last, possessive = following, last + 2, owns
        gender = lexicon.gender.get(name, "") or lexicon.gender.get(key, "")
        mentions.append(
            _Mention(place, last, key, title, TITLES[title][1] or gender if title else gender, possessive)
        )
        place = last + 1
    return _as_one(mentions, tokens)


def _as_one(mentions: list[_Mention], tokens: Sequence[_Token]) -> list[_Mention]:
    """A single person of unknown gender takes that of the sentence's pronouns."""
    if len({m.key for m in mentions}) == 1 and not any(m.gender for m in mentions):
        spoken = {token.text.lower() for token in tokens[mentions[0].last :]}
        his, hers = bool(spoken & MALE), bool(spoken & FEMALE)
        if his != hers:
            for mention in mentions:
                mention.gender = "m" if his else "f"
    return mentions


def _is_title(tokens: Sequence[_Token], place: int) -> bool:
    token = tokens[place]
    after = tokens[place + 1].text if place + 1 < len(tokens) else ""
    lower = token.text.lower()
    marks = ("", ".", ",") if lower in _ABBREVIATED else ("", ".")
    return token.word and lower in TITLES and token.text[0].isupper() and after.strip() in marks


def _has_name(tokens: Sequence[_Token], place: int, lexicon: NameLexicon) -> bool:
    """Whether what follows a title is a name, known or not: after "Dr." that is almost anything."""
    if place + 2 >= len(tokens) or not tokens[place + 2].word:
        return False
    if _named(tokens, place + 2, lexicon)[0] or _surname(tokens[place + 2])[0]:
        return True
    word = tokens[place + 2].text
    if word.lower() in WORDS["no_persons"] - {"a"} or word in ("a", "I"):
        return False
    dotted = tokens[place].text.lower() in _ABBREVIATED and tokens[place + 1].text.strip() == "."
    return dotted or (len(word) == 1 and word.isupper())


def _is_half_of_a_couple(tokens: Sequence[_Token], place: int) -> bool:
    """The first title of "Mr. and Mrs. Kopek"."""
    return (
        _is_title(tokens, place)
        and place + 4 < len(tokens)
        and tokens[place + 2].text.lower() == "and"
        and _is_title(tokens, place + 4)
    )


def _named(tokens: Sequence[_Token], place: int, lexicon: NameLexicon) -> tuple[str, bool]:
    """The name at a token in lower case (or nothing), and whether it owns what follows.

    "Sheldons phone", where the apostrophe was forgotten, is seen where "Sheldon" is a name.
    """
    token = tokens[place]
    if not token.word:
        return "", False
    word, ending = stem(token.text)
    if not ending and word[0].isupper() and word.lower() in lexicon.owners:
        return lexicon.owners[word.lower()], True
    opens = _opens(tokens, place)
    return (word.lower(), bool(ending)) if lexicon.is_name(word, opens=opens) else ("", False)


def _surname(token: _Token) -> tuple[str, bool]:
    """Any word with a capital right after a name belongs to it ("Rachel Green")."""
    word, ending = stem(token.text)
    proper = token.word and word[:1].isupper() and word[1:].islower() and len(word) > 2
    return (word.lower(), bool(ending)) if proper else ("", False)


def find_names(caption: str, lexicon: NameLexicon) -> list[str]:
    """Names of persons in a caption, as written."""
    tokens = _tokens(caption)
    return ["".join(t.text for t in tokens[m.first : m.last + 1]) for m in _mentions(tokens, lexicon)]


def rewrite(caption: str, lexicon: NameLexicon) -> str:
    """A caption with general nouns in place of person names, verbs and articles agreeing."""
    caption = " ".join(caption.split())
    tokens = _tokens(caption)
    mentions = _mentions(tokens, lexicon)
    if not mentions:
        return caption
    times = Counter(mention.key for mention in mentions)
    groups = _groups(mentions, tokens, times)
    total = Counter(_noun_of(m) for m in {m.key: m for g in groups for m in g if len(g) == 1}.values())
    cast: dict[str, str] = {}
    text = [token.text for token in tokens]
    for group in groups:
        first, last = group[0].first, group[-1].last
        text[first] = _phrase(group, tokens, text, cast, total)
        text[first + 1 : last + 1] = [""] * (last - first)
        if (group[-1].key == group[-1].title or len(group[-1].key) == 1) and last + 2 < len(text):
            text[last + 1] = text[last + 1].lstrip(".")
        if len(group) > 1 and not group[-1].possessive and _is_subject(tokens, first):
            _agree(text, tokens, last + 1)
    return _tidied("".join(text))


def _groups(mentions: list[_Mention], tokens: Sequence[_Token], times: Counter[str]) -> list[list[_Mention]]:
    """Lists of names ("A, B and C") without repetitions later are one group; all others are single."""
    runs: list[list[_Mention]] = []
    for mention in mentions:
        if runs and not runs[-1][-1].possessive:
            between = "".join(t.text for t in tokens[runs[-1][-1].last + 1 : mention.first]).lower()
            if runs[-1][-1].key == runs[-1][-1].title:
                between = between.lstrip(".")
            # "Sheldon. Raj. and Leonard": a full stop typed for a comma.
            stopped = "." in between and (between == "." or _opens(tokens, runs[-1][0].first))
            if between.replace(".", ",").strip() in _COMMAS and ("." not in between or stopped):
                runs[-1].append(mention)
                continue
        runs.append([mention])
    groups: list[list[_Mention]] = []
    for run in runs:
        closed = len(run) > 1 and all(times[m.key] == 1 for m in run)
        if closed:
            between = "".join(t.text for t in tokens[run[-2].last + 1 : run[-1].first]).lower()
            closed = "and" in between or "&" in between
        # "He talks to Stuart and Bernadette walks over": the last one begins a clause.
        if closed and not _is_subject(tokens, run[0].first) and _acts(tokens, run[-1]):
            groups.extend([run[:-1], run[-1:]] if len(run) > 2 else [[m] for m in run])
            continue
        groups.extend([run] if closed else [[m] for m in run])
    return groups


def _acts(tokens: Sequence[_Token], mention: _Mention) -> bool:
    """Whether a verb in the third person singular follows a name."""
    after = tokens[mention.last + 2].text if mention.last + 2 < len(tokens) else ""
    spaced = mention.last + 1 < len(tokens) and tokens[mention.last + 1].text == " "
    return spaced and (after in ("is", "was", "has") or _plural_verb(after) != after)


def _phrase(
    group: list[_Mention],
    tokens: Sequence[_Token],
    text: list[str],
    cast: dict[str, str],
    total: Counter[str],
) -> str:
    before = _word_before(tokens, group[0].first)
    owner = "'s" if group[-1].possessive else ""
    if len(group) > 1:
        kinds = {m.gender if not m.title or TITLES[m.title][1] else "" for m in group}
        noun = _PLURAL[kinds.pop()] if len(kinds) == 1 else "people"
        number = _NUMBERS[len(group)] if len(group) < len(_NUMBERS) else "several"
        owner = owner and ("'" if noun.endswith("s") else "'s")
        return f"{number} {noun}{owner}"
    mention = group[0]
    if before in _ROLES and not mention.title:
        cast.setdefault(mention.key, before)
        text[mention.first - 1] = ""  # the blank after the role
        return owner
    words = _introduced(mention, cast, total)
    described = before.endswith(("ing", "ed")) and (
        mention.first >= 4 and tokens[mention.first - 4].text.lower() in _DETERMINERS
    )
    if described or before in _DETERMINERS | _ADJECTIVES:
        words = words.split()[-1]
    return words + owner


def _word_before(tokens: Sequence[_Token], place: int) -> str:
    if place < 2 or tokens[place - 1].text.strip() or not tokens[place - 2].word:
        return ""
    return tokens[place - 2].text.lower()


def _is_subject(tokens: Sequence[_Token], first: int) -> bool:
    before = _word_before(tokens, first)
    return _opens(tokens, first) or before in _BEFORE_SUBJECT or tokens[first - 1].text.strip() == ","


def _agree(text: list[str], tokens: Sequence[_Token], place: int) -> None:
    """Make the verb after a plural subject plural: the first word that is no adverb."""
    for at in range(place, min(place + 5, len(tokens))):
        token = tokens[at]
        if not token.word:
            if token.text.strip():
                return
            continue
        word = token.text.lower()
        if word in _BETWEEN or word.endswith("ly"):
            continue
        text[at] = _plural_verb(token.text)
        return


def _plural_verb(word: str) -> str:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if len(word) < 4 or not word.islower() or not word.endswith("s") or word.endswith("ss"):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if re.search(r"(?:ss|sh|ch|x|zz)es$", word):
        return word[:-2]
    return word[:-1]


def _tidied(text: str) -> str:
    text = re.sub(r"\s+([,.;:!?])", r"\1", re.sub(r"\s{2,}", " ", text)).strip()
    text = re.sub(r"\s+'s\b", "'s", text)
    sentences = re.sub(
        r"([.!?]\s+)(a|an|another|the|two|three|four) ", lambda m: m[1] + m[2].capitalize() + " ", text
    )
    return sentences[:1].upper() + sentences[1:]
