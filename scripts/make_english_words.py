"""Write the stems of English words by which a query is judged to be English, and words to offer.

    python scripts/make_english_words.py --wordnet FOLDER

The words are those of WordNet 3.0 (Debian: the package wordnet-base), alone and in compounds, with its
irregular forms and the words below, which it lacks: it lists nothing but nouns, verbs, adjectives and
adverbs. Of its words of one or two letters most are symbols and abbreviations, which are words of other
languages ("la", "es", "un"); only those below are kept.

Words are offered for misspelt ones that are in WordNet's texts (``cntlist.rev`` counts them), or that name
a thing, an animal, a plant, food, a person, a part of a body or a deed; of the rarer kinds of things the
first name of each. Words that have an offensive meaning are left out.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from Stemmer import Stemmer

from moviola.words.english import STEMS, WORDS

# Lexicographer files (lexnames(5WN)) whose nouns can be seen: all names of a thing are taken, or the first.
ALL_NAMES, FIRST_NAMES = {"05", "06", "13"}, {"04", "08", "15", "17", "18", "19", "20"}
OFFENDING = re.compile(r"\b(slur|offensive|obscene|vulgar|derogatory|disparag\w+|insulting|taboo)\b")
OFFENSIVE = ("bitch", "negro", "slut", "whore")
KINDS = ("noun", "verb", "adj", "adv")
OTHERS = re.findall(
    r"\w+",
    """a about above across after against all along although always am among amid an and another any
    anybody anyone anything are around as at away be because been before behind being below beneath
    beside besides between beyond both but by can cannot could did do does doing done down during
    each either else every everybody everyone everything for from gets go goes got had has have
    having he her hers herself hi him himself his how however i if in inside into is isn it its
    itself just least less me might mine more most much must my myself near neither no nobody none
    nor not nothing of off oh ok on once one onto or other others our ours ourselves out outside
    over own ox per please re several shall she should since so some someone something
    somewhere such than that the their theirs them themselves then there these they this those
    though through throughout till to together toward towards tv uk under underneath unless until up
    upon us versus very via vs was we were what whatever when whenever where wherever whether which
    whichever while whilst who whole whom whose why will with within without would yes yet
    you your yours yourself selfie smartphone webcam drone emoji timelapse vlog wifi dj dvd
    rollercoaster waterslide trampoline skatepark paraglider""",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--wordnet", type=Path, required=True, help="folder of WordNet 3.0's index files")
    folder = parser.parse_args().wordnet
    words = {
        word for kind in KINDS for name in (f"index.{kind}", f"{kind}.exc") for word in read(folder / name)
    }
    stem = Stemmer("english").stemWord
    stems = {stem(word) for word in {word for word in words if len(word) > 2} | set(OTHERS)}
    STEMS.write_text("\n" + "\n".join(sorted(stems)) + "\n", encoding="ascii", newline="\n")
    counts = counted(folder)
    offered = {*counts, *things(folder), *OTHERS} - offensive(folder)
    offered = {word for word in offered if re.fullmatch(r"[a-z]{3,}", word)}
    ordered = sorted(offered, key=lambda word: (-counts[word], word))
    WORDS.write_text("\n".join(ordered) + "\n", encoding="ascii", newline="\n")


def counted(folder: Path) -> Counter[str]:
    """How often each word is in the texts that WordNet's makers read."""
    counts: Counter[str] = Counter()
    for line in (folder / "cntlist.rev").read_text(encoding="ascii").splitlines():
        sense, _, number = line.split()
        counts[sense.split("%")[0]] += int(number)
    return counts


def things(folder: Path) -> set[str]:
    """Nouns for what can be seen, and trade names that are written small by most ("Frisbee")."""
    found = set()
    for kind, names, _ in meanings(folder, "noun"):
        found.update(names[: len(names) if kind in ALL_NAMES else kind in FIRST_NAMES])
        found.update(name.lower() for name in names[:1] if kind == "06")
    return found


def offensive(folder: Path) -> set[str]:
    """Words of which WordNet calls a meaning a slur, obscene or the like, and the words above."""
    usages = {"ethnic_slur", "obscenity", "disparagement", "dirty_word", "vulgarism", "insult"}
    nouns = (folder / "data.noun").read_text(encoding="ascii").splitlines()
    called = {line[:8] for line in nouns if usages.intersection(line.partition("|")[0].split())}
    found = set(OFFENSIVE)
    for kind in KINDS:
        for _, names, rest in meanings(folder, kind):
            pointers, _, gloss = rest.partition("|")
            if OFFENDING.search(gloss) or called.intersection(re.findall(r";u (\d+)", pointers)):
                found.update(name.lower() for name in names)
    return found


def meanings(folder: Path, kind: str) -> Iterator[tuple[str, list[str], str]]:
    """Lexicographer file, names, and what follows of each meaning (format: wndb(5WN))."""
    for line in (folder / f"data.{kind}").read_text(encoding="ascii").splitlines():
        if not line.startswith(" "):
            _, file, _, number, *rest = line.split()
            names = 2 * int(number, 16)
            yield file, rest[:names:2], " ".join(rest[names:])


def read(path: Path) -> list[str]:
    """The words of an index or of a list of exceptions (formats: wndb(5WN))."""
    lines = path.read_text(encoding="ascii").splitlines()
    heads = [
        line if path.suffix == ".exc" else line.split(" ", 1)[0] for line in lines if not line.startswith(" ")
    ]
    return [word for head in heads for word in re.findall(r"[a-z]+", head)]


if __name__ == "__main__":
    main()
