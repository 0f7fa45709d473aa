"""Subtitle files: how fast they are read, and how often their encoding is known by a few lines.

    python benchmarks/subtitles.py

Encodings are tried on translations of programs (``.mo`` files) that are on this machine: lines of 15 to 120
letters, in every encoding that ``moviola.media.subtitles.languages`` names for their language, with the
language in the file's name and without.
"""

from __future__ import annotations

import argparse
import gettext
import re
import sys
import tempfile
import time
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from random import Random

from moviola.media import read_subtitles, within_film
from moviola.media.subtitles.encodings import decode
from moviola.media.subtitles.languages import LANGUAGES

_LINES = (1, 3, 10)
_TRIALS = 6
_WORDS = [
    "walk",
    "they",
    "young",
    "the",
    "lighthouse",
    "keeper",
    "lost",
    "his",
    "umbrella",
    "<i>and</i>",
    "it's",
]


def _document(suffix: str, cues: int) -> str:
    """Cues of two seconds, every two and a half, twelve words each."""
    draw = Random(0)
    blocks = []
    for n in range(cues):
        times = []
        for seconds in (2.5 * n, 2.5 * n + 2):
            whole, hundredths = divmod(round(seconds * 100), 100)
            clock = f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
            times.append(f"{clock}{',' if suffix == '.srt' else '.'}{hundredths:02}")
        said = " ".join(draw.choices(_WORDS, k=12))
        if suffix == ".ass":
            blocks.append(f"Dialogue: 0,{times[0]},{times[1]},Default,,0,0,0,,{{\\an8}}{said}")
        else:
            blocks.append(f"{n + 1}\n{times[0]}0 --> {times[1]}0\n{said}\n")
    return ("WEBVTT\n\n" if suffix == ".vtt" else "") + "\n".join(blocks)


def _time_reading() -> None:
    print("| | MB | processor s | s a MB |\n|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for suffix, cues in ((".srt", 20_000), (".vtt", 20_000), (".ass", 20_000), (".srt", 500_000)):
            path = Path(folder) / f"film{suffix}"
            path.write_text(_document(suffix, cues), encoding="utf-8")
            start = time.process_time()
            found = read_subtitles(path)
            within_film(found.cues, 12.0)
            took, size = time.process_time() - start, path.stat().st_size / 1e6
            assert len(found.cues) == cues
            print(f"| {cues:,} cues, {suffix} | {size:.1f} | {took:.2f} | {took / size:.3f} |")


def _translations() -> dict[str, list[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for file in Path("/usr/share").rglob("LC_MESSAGES/*.mo"):
        match = re.fullmatch(r"([a-z]{2})(_[A-Z]{2})?(\.UTF-8)?", file.parent.parent.name)
        if not match:
            continue
        language = {"nb": "no", "zh_TW": "zh-Hant"}.get(match[1] + (match[2] or ""), match[1])
        with suppress(OSError, ValueError, IndexError), file.open("rb") as opened:
            texts = gettext.GNUTranslations(opened)._catalog.values()  # type: ignore[attr-defined]
            found[language].update(
                text for text in texts
                if isinstance(text, str) and 15 < len(text) < 120 and "\n" not in text and not text.isascii()
            )  # fmt: skip
    return {language: sorted(texts) for language, texts in found.items() if language in LANGUAGES}


def _count_encodings() -> None:
    draw, texts = Random(1), _translations()
    print(
        "| lines | language in the name | Windows and East Asia | ISO 8859, KOI8 | DOS, Macintosh |\n"
        "|---|---|---|---|---|"
    )
    for lines in _LINES:
        for named in (False, True):
            right: dict[str, list[bool]] = defaultdict(list)
            for language, pool in sorted(texts.items()):
                hints = (frozenset([language] if named else ()), frozenset[str]())
                for encoding in LANGUAGES[language].encodings.split():
                    known = [
                        text for text in pool if text.encode(encoding, "ignore").decode(encoding) == text
                    ]
                    for _ in range(_TRIALS if len(known) >= lines else 0):
                        text = "\n".join(draw.sample(known, lines))
                        decoded = decode(text.encode(encoding), hints=lambda hints=hints: hints)  # type: ignore[misc]
                        old = "old" if re.match(r"mac_|cp(?!125|874|932|949)", encoding) else "windows"
                        kind = "iso" if re.match("iso|koi8", encoding) else old
                        right[kind].append(decoded is not None and decoded.text == text)
            shares = (f"{sum(right[kind])} of {len(right[kind])}" for kind in ("windows", "iso", "old"))
            print(f"| {lines} | {'yes' if named else 'no'} | {' | '.join(shares)} |", flush=True)


if __name__ == "__main__":
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    _time_reading()
    print()
    _count_encodings()
    sys.stdout.flush()
