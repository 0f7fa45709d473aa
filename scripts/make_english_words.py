"""Write the stems of English words by which a query is judged to be English.

    python scripts/make_english_words.py --wordnet FOLDER

The words are those of WordNet 3.0 (Debian: the package wordnet-base), alone and in compounds, with its
irregular forms and the words below, which it lacks: it lists nothing but nouns, verbs, adjectives and
adverbs. Of its words of one or two letters most are symbols and abbreviations, which are words of other
languages ("la", "es", "un"); only those below are kept.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from Stemmer import Stemmer

from moviola.words.english import STEMS

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


def read(path: Path) -> list[str]:
    """The words of an index or of a list of exceptions (formats: wndb(5WN))."""
    lines = path.read_text(encoding="ascii").splitlines()
    heads = [
        line if path.suffix == ".exc" else line.split(" ", 1)[0] for line in lines if not line.startswith(" ")
    ]
    return [word for head in heads for word in re.findall(r"[a-z]+", head)]


if __name__ == "__main__":
    main()
