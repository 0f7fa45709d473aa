"""Tesseract as a reader of text, by a program that stands in for it: what is asked of it, and what is made of
its answers.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import rapidocr

from moviola.encoders.readers import load_text_reader
from moviola.encoders.readers.scripts import require_languages, said_of, script_of
from moviola.encoders.readers.tesseract import tesseract_code
from moviola.errors import BrokenPlugin, InvalidValue, MissingDependency, MissingModel
from moviola.media import write_video
from moviola.search import Library
from title_cards import card

NAMES = "level page_num block_num par_num line_num word_num left top width height conf text"
# A line, a word that is not sure, a line in Thai, which the program cuts into what it takes for words, noise.
WORDS = [
    (5, 1, 1, 1, 1, 1, 96, 135, 200, 40, 96.1, "Смотритель"),
    (5, 1, 1, 1, 1, 2, 310, 130, 100, 45, 90.0, '"маяка"'),
    (5, 1, 1, 1, 2, 1, 96, 300, 100, 40, 31.0, "зонт"),
    (4, 1, 2, 1, 1, 0, 96, 215, 300, 40, -1, ""),
    (5, 1, 2, 1, 1, 1, 96, 215, 60, 40, 93.0, "ยิน"),
    (5, 1, 2, 1, 1, 2, 156, 215, 60, 40, 93.0, "ดี"),
    (5, 1, 3, 1, 1, 1, 10, 10, 5, 5, 99.0, "|"),
]
PROGRAM = """#!{python}
import os, pathlib, sys
here = pathlib.Path(__file__).parent
if sys.argv[1] == "--version":
    print("tesseract 5.3.0\\n leptonica-1.82.0")
elif sys.argv[1] == "--list-langs":
    print('List of available languages in "/usr/share/" (4):\\neng\\nrus\\ntha\\nchi_tra')
elif (here / "fails").exists():
    sys.exit("Error in pixReadMem: no picture")
else:
    assert sys.stdin.buffer.read(8) == b"\\x89PNG\\r\\n\\x1a\\n" and os.environ["OMP_THREAD_LIMIT"] == "1"
    with open(here / "asked", "a") as file:
        print(*sys.argv[1:], file=file)
    sys.stdout.buffer.write((here / "table").read_bytes())
"""


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a program of Tesseract's name, the only one on PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "tesseract").write_text(PROGRAM.format(python=sys.executable))
    (folder / "tesseract").chmod(0o755)
    rows = [NAMES.replace(" ", "\t"), *("\t".join(map(str, word)) for word in WORDS)]
    (folder / "table").write_text("\n".join(rows) + "\n", encoding="utf-8")
    monkeypatch.setenv("PATH", str(folder))
    return folder


def test_lines_are_made_of_its_words(program: Path) -> None:
    """Quotes are letters, unsure lines are left out, and Thai has no spaces."""
    reader = load_text_reader(languages=["ru", "th"])
    assert (reader.id, reader.revision) == ("tesseract rus+tha", "5.3.0")
    first, second = reader.read(card("anything", size=(960, 540)))
    assert (first.text, second.text) == ('Смотритель "маяка"', "ยินดี")
    assert first.confidence == pytest.approx(0.9305)
    assert (first.box.left, first.box.right) == pytest.approx((0.1, 410 / 960), abs=1e-3)
    assert (first.box.top, first.box.bottom) == pytest.approx((130 / 540, 175 / 540), abs=1e-3)
    assert (program / "asked").read_text().split() == [
        "stdin",
        "stdout",
        "-l",
        "rus+tha",
        "--psm",
        "11",
        "tsv",
    ]
    assert reader.read(np.zeros((540, 960, 3), np.uint8)) == []  # nothing like letters: nobody is asked
    assert (program / "asked").read_text().count("\n") == 1
    assert load_text_reader(reader.id).id == reader.id  # as workers open it


def test_the_language_chooses_the_reader(program: Path) -> None:
    """What the packaged reader does not know was silently not read."""
    assert load_text_reader(languages=["de", "ja"]).id == "rapidocr"
    assert load_text_reader(languages=["en", "ru"]).id == "tesseract eng+rus"
    assert load_text_reader("tesseract", ["zh-Hant"]).id == "tesseract chi_tra"
    with pytest.raises(InvalidValue, match="does not know the script of ru; it knows Latin, Chinese"):
        load_text_reader("rapidocr", ["en", "ru"])
    with pytest.raises(InvalidValue, match="--ocr-language"):
        load_text_reader("tesseract")
    with pytest.raises(MissingDependency, match="no file for hin; install tesseract-ocr-hin"):
        load_text_reader(languages=["hi"])
    (program / "tesseract").unlink()
    with pytest.raises(MissingDependency, match="its program is not installed; install tesseract-ocr"):
        load_text_reader(languages=["ru"])


def test_languages_scripts_and_files() -> None:
    assert require_languages(" ru, zh-Hant,ru") == ("ru", "zh-Hant")
    assert require_languages(None) == ()
    assert require_languages("Russian,chi_sim,srp_latn,rus") == ("ru", "chi_sim", "srp_latn", "rus")
    for wrong in ("nonsense", "xx", "und"):  # "xx" ended in an exception of another package
        with pytest.raises(InvalidValue, match=f"'{wrong}': no language"):
            require_languages(f"ru,{wrong}")
    codes = {
        "ru": "rus",
        "ar": "ara",
        "ko": "kor",
        "el": "ell",
        "zh": "chi_sim",
        "zh-TW": "chi_tra",
        "ja": "jpn",
    }
    assert {language: tesseract_code(language) for language in codes} == codes
    assert said_of(script_of(one) for one in ("ru", "uk", "ko", "am")) == "Cyrillic, Korean, Ethi"


def test_a_library_is_read_in_other_languages(program: Path, tmp_path: Path) -> None:
    """Named, it reads what another reader has read, once for the same languages; where the program fails, the
    other videos are read all the same.
    """
    (tmp_path / "films").mkdir()
    for name in ("a", "b"):
        write_video(
            tmp_path / "films" / f"{name}.mp4", [card(f"anything {name}", size=(640, 360))] * 4, rate=2
        )
    with Library(tmp_path / "library", encoder="none") as library:

        def read(language: str | None) -> list[str]:
            options = {"speech": "none", "sounds": "none", "ocr_language": language}
            return library.index(tmp_path / "films", **options).read["text"]  # type: ignore[arg-type]

        assert read(None) == ["a", "b"] and library.catalogue.readers() == {"text": ["rapidocr"]}
        assert read("ru") == ["a", "b"] and read("ru") == [] and read("ru,en") == ["a", "b"]
        assert library.search("маяка", by="text")[0].snippet.startswith("Смотритель")
        (program / "fails").touch()
        report = library.index(tmp_path / "films", ocr_language="th", speech="none", sounds="none")
        assert list(report.reading_problems) == ["a", "b"]
        assert "stdin: failed (Error in pixReadMem: no picture)" in report.reading_problems["a"]
        with pytest.raises(BrokenPlugin):
            load_text_reader(languages=["th"]).read(card("anything"))


def test_a_model_of_another_script_is_read_from_a_folder(tmp_path: Path) -> None:
    """The packaged model in a folder reads as it does in the package, and is another reader."""
    with pytest.raises(MissingModel, match=r"0 models \*rec\*.onnx"):
        load_text_reader(str(tmp_path))
    model = Path(rapidocr.__file__).parent / "models" / "PP-OCRv6_rec_small.onnx"
    (tmp_path / model.name).symlink_to(model)
    own, packaged = load_text_reader(str(tmp_path)), load_text_reader()
    assert own.id == str(tmp_path) and own.revision.startswith(f"{packaged.revision} ")
    picture = card("The Harbour at Dawn")
    assert own.read(picture) == packaged.read(picture) != []
