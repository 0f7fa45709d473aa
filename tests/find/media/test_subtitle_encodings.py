"""Encodings of subtitle files: known by their letters, named, given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from moviola.errors import InvalidValue, UnreadableMedia
from moviola.media import read_subtitles, require_encoding

RUSSIAN = ("Привет, как дела сегодня утром", "Аист летит над рекой и деревней")
CZECH = ("Příliš žluťoučký kůň úpěl ďábelské ódy", "Šťastný čáp letěl nad řekou k vesnici")
POLISH = ("Zażółć gęślą jaźń", "Źrebię pędzi przez łąkę, widzę bociana")
FRENCH = ("C'est déjà l'été, où êtes-vous ?", "Ça va très bien, merci à tous")
GERMAN = ("Grüße aus München, schöne Straße", "Ähnlich hübsch wären Möwen")
TURKISH = ("Günaydın, bugün nasılsın?", "Şimdi gidiyorum, görüşürüz")
JAPANESE = ("犬が水に飛び込む", "ありがとうございます。また会いましょう。")

SAID: list[tuple[str, str, tuple[str, ...]]] = [
    ("cp1250", "windows-1250", CZECH),
    ("iso8859_2", "iso-8859-2", CZECH),
    ("cp852", "cp852", CZECH),
    ("mac_latin2", "mac-latin2", CZECH),
    ("cp1250", "windows-1250", POLISH),
    ("iso8859_2", "iso-8859-2", POLISH),
    (
        "cp1250",
        "windows-1250",
        ("Szeretném, ha eljönnél hozzám este", "Jó reggelt, hogy vagy ma?", "ő fűtött"),
    ),
    ("cp1250", "windows-1250", ("Bună dimineaţa, ce faci azi?", "Ştiu că eşti acasă şi aştepţi")),
    ("cp1250", "windows-1250", ("Dobro jutro, kako si danas?", "Šta želiš? Čovjek leži na cesti")),
    ("cp1250", "windows-1250", ("Dobrý deň, ako sa máš?", "Vôňa kávy, ľúbim ťa, môj drahý")),
    ("cp1251", "windows-1251", RUSSIAN),
    ("koi8_r", "koi8-r", RUSSIAN),
    ("iso8859_5", "iso-8859-5", RUSSIAN),
    ("cp866", "cp866", RUSSIAN),
    ("cp1125", "cp1125", ("Привіт, як справи сьогодні?", "Їжак пливе річкою, а ґава летить")),
    ("cp860", "cp860", ("Não há solução, disse o irmão à mãe", "Amanhã irão à praia às três")),
    ("koi8_u", "koi8-u", ("Привіт, як справи сьогодні?", "Їжак пливе річкою, а ґава летить")),
    ("cp1251", "windows-1251", ("Добро утро, как си днес?", "Щъркелът лети над реката")),
    ("cp1251", "windows-1251", ("Добро јутро, како си данас?", "Рода лети изнад реке и њеног села")),
    ("cp1252", "windows-1252", FRENCH),
    ("cp850", "cp850", FRENCH),
    ("cp1252", "windows-1252", GERMAN),
    ("mac_roman", "mac-roman", GERMAN),
    ("cp1252", "windows-1252", ("¿Qué pasa, señor? Mañana será otro día",)),
    ("cp1252", "windows-1252", ("Não sei, você está em São Paulo", "As ações são péssimas")),
    ("cp1252", "windows-1252", ("Góðan daginn, það er þú", "Ég veit það ekki, þakka þér fyrir")),
    ("cp1252", "windows-1252", ("it’s … “café”", "– no!")),
    ("cp1254", "windows-1254", TURKISH),
    ("cp1257", "windows-1257", ("Labas rytas, kaip šiandien?", "Ąžuolas žydi, šiltą dieną, ėjau į namus")),
    ("cp1257", "windows-1257", ("Labrīt, kā tev šodien iet?", "Ķēniņš dzīvo pilī, es tevi mīlu")),
    ("cp1253", "windows-1253", ("Γεια σου, τι κάνεις;", "Ο σκύλος πηδάει στο νερό")),
    ("cp1255", "windows-1255", ("שלום, מה שלומך?", "הכלב קופץ למים")),
    ("cp1256", "windows-1256", ("مرحبا كيف حالك", "الكلب يقفز في الماء")),
    ("cp874", "windows-874", ("สวัสดี คุณทำอะไรอยู่", "สุนัขกระโดดลงน้ำ")),
    ("shift_jis", "cp932", JAPANESE),
    ("euc_jp", "euc-jp", JAPANESE),
    ("iso2022_jp", "iso2022-jp", JAPANESE),
    ("euc_kr", "cp949", ("안녕하세요, 뭐 하세요?", "개가 물에 뛰어든다")),
    ("gb18030", "gb18030", ("你好,你在做什么?", "一只狗跳进水里")),
    ("big5", "big5hkscs", ("你好,你在做什麼?", "一隻狗跳進水裡")),
]


def written(path: Path, lines: Sequence[bytes]) -> Path:
    cues = (
        b"%d\n00:00:%02d,000 --> 00:00:%02d,500\n%s\n" % (n, n, n, line) for n, line in enumerate(lines, 1)
    )
    path.write_bytes(b"\n".join(cues))
    return path


@pytest.mark.parametrize(("encoding", "name", "lines"), SAID)
def test_two_lines_are_enough_to_know_an_encoding(
    tmp_path: Path, encoding: str, name: str, lines: tuple[str, ...]
) -> None:
    """Windows-1250 as Latin-1 has control letters and symbols in words, KOI8-R as Thai has letters of Thai;
    without the choice being named nobody could see that it was wrong.
    """
    path = written(tmp_path / "film.srt", [line.encode(encoding) for line in lines])
    subtitles = read_subtitles(path)
    assert [cue.text for cue in subtitles.cues] == list(lines)
    assert subtitles.encoding == name
    assert [(notice.kind, notice.example) for notice in subtitles.notices] == [("encoding", name)]


AMBIGUOUS = "na čase je vse"
"""With one letter beyond ASCII, which other encodings have too, as another one."""


def test_the_language_of_the_name_and_of_its_neighbours_decides(tmp_path: Path) -> None:
    """A byte alone fits many languages: è in French, č in Slovenian, и in Russian."""
    line = AMBIGUOUS.encode("cp1250")
    french, slovenian = AMBIGUOUS.replace("č", "è"), AMBIGUOUS
    for name, text in (
        ("film.fr.srt", french),
        ("film.sl.srt", slovenian),
        ("Slovenian.forced.srt", slovenian),
    ):
        assert read_subtitles(written(tmp_path / name, [line])).cues[0].text == text
    for folder, text in (("one.fra.vtt", french), ("one.slv.vtt", slovenian)):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / folder).touch()
        assert read_subtitles(written(tmp_path / folder / "two.srt", [line])).cues[0].text == text


def test_a_wrong_language_in_the_name_does_not_outweigh_letters(tmp_path: Path) -> None:
    path = written(tmp_path / "film.fr.srt", [line.encode("koi8_r") for line in RUSSIAN])
    assert [cue.text for cue in read_subtitles(path).cues] == list(RUSSIAN)


def test_a_given_encoding_is_taken_for_files_that_are_not_unicode(tmp_path: Path) -> None:
    path = written(tmp_path / "film.srt", [AMBIGUOUS.encode("cp1250")])
    for encoding, letter in (("cp1250", "č"), ("cp1252", "è"), ("cp1251", "и")):
        subtitles = read_subtitles(path, encoding=encoding)
        assert subtitles.cues[0].text == AMBIGUOUS.replace("č", letter)
        assert subtitles.notices == ()
    assert require_encoding("Windows-1250") == "cp1250"
    for unknown in ("windows-9", "base64", "rot13", "a\0b", ""):
        with pytest.raises(InvalidValue, match="unknown; give one such as windows-1250"):
            require_encoding(unknown)
    path.write_text(path.read_text("cp1250"), encoding="utf-8")
    assert read_subtitles(path, encoding="cp1251").cues[0].text == AMBIGUOUS


def test_letters_of_no_encoding_are_refused(tmp_path: Path) -> None:
    draw = Random(0)
    path = written(tmp_path / "a.srt", [bytes(draw.choices(range(128, 256), k=30)) for _ in range(20)])
    with pytest.raises(UnreadableMedia, match="--subtitle-encoding, or save it as UTF-8"):
        read_subtitles(path)


@pytest.mark.parametrize("said", ["naïve façade", "一只狗跳进水里"])
def test_a_damaged_letter_leaves_the_others_as_they_are(tmp_path: Path, said: str) -> None:
    """And it is counted."""
    subtitles = read_subtitles(written(tmp_path / "a.srt", [f"{said} ".encode() + b"\xe9t"]))
    assert subtitles.cues[0].text == f"{said} \ufffdt"
    assert [(notice.kind, notice.count) for notice in subtitles.notices] == [("letters", 1)]
