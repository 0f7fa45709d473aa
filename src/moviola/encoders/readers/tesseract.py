"""Text in pictures by Tesseract (Smith 2007, *An overview of the Tesseract OCR engine*), where its program is
installed: 100 languages, of which the system's packages carry a file each.

One process a picture, half a second of one core for 960 x 540 pixels: four times as slow as the packaged
reader, for scripts that this does not know.
"""

from __future__ import annotations

import csv
import io
import os
import shutil
import subprocess
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from moviola.encoders.readers.contract import TextLine
from moviola.encoders.readers.rapid import has_strokes
from moviola.encoders.readers.scripts import TESSERACT, script_of
from moviola.errors import BrokenPlugin, InvalidValue, MissingDependency
from moviola.types import Box

__all__ = ["TesseractReader", "tesseract_code"]

# Languages that its files do not name by ISO 639-2.
_NAMES = {"Hans": "chi_sim", "Hant": "chi_tra"}
# Text anywhere in the picture: of title cards it reads as much as any other mode, of Thai twice as much.
_SPARSE = "11"
_WORD, _SURE, _SIGNS = "5", 0.5, 2
_SECONDS = 60
_UNSPACED = ("THAI", "LAO", "KHMER", "MYANMAR", "CJK", "HIRAGANA", "KATAKANA")


class TesseractReader:
    """Reads upright lines in some languages.

    Args:
        languages: BCP 47, or codes of Tesseract's own files, at least one.

    Raises:
        MissingDependency: the program, or the file of a language, is not installed.
        InvalidValue: no language.
    """

    longest_side = 960

    def __init__(self, languages: Sequence[str]) -> None:
        if not languages:
            raise InvalidValue(
                f"text reader {TESSERACT!r}: name the languages to read, by --ocr-language ru,en"
            )
        program = shutil.which(TESSERACT)
        if program is None:
            raise MissingDependency(
                f"text reader {TESSERACT!r}: its program is not installed; install tesseract-ocr (Debian) or "
                "tesseract (Homebrew), and add it to PATH"
            )
        self._program = program
        codes = [code if code in self._installed else tesseract_code(code) for code in languages]
        if lacks := [code for code in codes if code not in self._installed]:
            packages = " ".join(f"tesseract-ocr-{code.replace('_', '-')}" for code in lacks)
            raise MissingDependency(
                f"text reader {TESSERACT!r}: no file for {', '.join(lacks)}; install {packages} (Debian) or "
                "tesseract-lang (Homebrew)"
            )
        self.codes = tuple(dict.fromkeys(codes))
        self.id = f"{TESSERACT} {'+'.join(self.codes)}"

    @cached_property
    def revision(self) -> str:
        return self._said("--version").split()[1]

    @cached_property
    def _installed(self) -> frozenset[str]:
        return frozenset(self._said("--list-langs").splitlines()[1:])

    def read(self, image: NDArray[np.uint8]) -> list[TextLine]:
        """The lines of a picture (:class:`~moviola.encoders.readers.TextReader`). Raises BrokenPlugin: the
        program fails.
        """
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise InvalidValue(f"image {image.shape} {image.dtype}: give (height, width, 3) uint8")
        if not has_strokes(image):
            return []
        from PIL import Image

        picture = io.BytesIO()
        Image.fromarray(image).save(picture, "PNG", compress_level=1)
        how = ("stdin", "stdout", "-l", "+".join(self.codes), "--psm", _SPARSE, "tsv")
        table = self._said(*how, given=picture.getvalue())
        return _lines(table, image.shape[1], image.shape[0])

    def _said(self, *arguments: str, given: bytes = b"") -> str:
        """What the program prints, on one core: indexing has others at work."""
        environment = {**os.environ, "OMP_THREAD_LIMIT": "1"}
        try:
            done = subprocess.run(
                [self._program, *arguments], input=given, capture_output=True, check=True, timeout=_SECONDS,
                env=environment,
            )  # fmt: skip
        except (OSError, subprocess.SubprocessError) as error:
            said = getattr(error, "stderr", None) or b""
            reason = said.decode("utf-8", "replace").strip().partition("\n")[0] or str(error)
            raise BrokenPlugin(f"{self._program} {arguments[0]}: failed ({reason})") from error
        return done.stdout.decode("utf-8", "replace")


def tesseract_code(language: str) -> str:
    """The name of Tesseract's file for a language (BCP 47): ``rus`` of ``ru``, ``chi_tra`` of ``zh-Hant``."""
    from langcodes import Language

    tag = Language.get(language.replace("_", "-"))
    chinese = _NAMES.get(script_of(language))
    return chinese if chinese and tag.language == "zh" else tag.to_alpha3()


def _lines(table: str, width: int, height: int) -> list[TextLine]:
    """Lines of the program's table, a word a row, of a picture of that size."""
    rows = csv.DictReader(io.StringIO(table), delimiter="\t", quoting=csv.QUOTE_NONE)
    words = [row for row in rows if row["level"] == _WORD and (row["text"] or "").strip()]
    lines = []
    for _, group in groupby(words, lambda row: (row["block_num"], row["par_num"], row["line_num"])):
        own = list(group)
        sure = sum(float(row["conf"]) for row in own) / len(own) / 100
        text = _joined(row["text"].strip() for row in own)
        if sure >= _SURE and sum(sign.isalnum() for sign in text) >= _SIGNS:
            sides = np.array([[int(row[name]) for name in ("left", "top", "width", "height")] for row in own])
            corners = np.concatenate([sides[:, :2].min(0), (sides[:, :2] + sides[:, 2:]).max(0)])
            box = np.clip(corners / [width, height, width, height], 0, 1)
            lines.append(TextLine(text, Box(*(round(float(side), 4) for side in box)), min(sure, 1.0)))
    return sorted(lines, key=lambda line: (line.box.top, line.box.left))


def _joined(words: Iterable[str]) -> str:
    """Words of a line; in scripts without spaces what the program calls words is one."""
    parts = list(words)
    spaces = ["" if _unspaced(one[-1]) and _unspaced(other[0]) else " " for one, other in pairwise(parts)]
    return "".join(part for pair in zip(parts, [*spaces, ""], strict=True) for part in pair)


def _unspaced(sign: str) -> bool:
    return unicodedata.name(sign, "").startswith(_UNSPACED)
