"""Which subtitle files belong to a video, by their names, and what these say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from moviola.media import FolderNames, SidecarName, sidecar_name, sidecars


def touch(folder: Path, names: Sequence[str]) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def beside(folder: Path, video: str) -> list[str]:
    return [path.relative_to(folder).as_posix() for path in sidecars(folder / video)]


SAYS = [
    ("", SidecarName()),
    (".en", SidecarName("en")),
    (".ger", SidecarName("de")),
    (".pt-BR.forced", SidecarName("pt-BR", forced=True)),
    (".zh_Hans", SidecarName("zh-Hans")),
    (".en.sdh.default", SidecarName("en", hearing_impaired=True, default=True)),
    ("_track4_[eng]", SidecarName("en")),
    (".stream3.de.forced", SidecarName("de", forced=True)),
    (".default.forced.English", SidecarName("en", forced=True, default=True)),
    (".English [SDH]", SidecarName("en", hearing_impaired=True)),
    (" (en)", SidecarName("en")),
    (" [SDH]", SidecarName(hearing_impaired=True)),
    ("[en]", SidecarName("en")),
    ("_en", SidecarName("en")),
    ("-en", SidecarName("en")),
    ("_eng_sdh", SidecarName("en", hearing_impaired=True)),
    ("-Deutsch-forced", SidecarName("de", forced=True)),
    (" - English", SidecarName("en")),
    (".2", SidecarName()),
    (".en.2", SidecarName("en")),
    (".2.en", SidecarName("en")),
    (" (1)", SidecarName()),
    (".Español (Latino)", SidecarName("es-419")),
    (".Spanish (Latin America)", SidecarName("es-419")),
    (".Serbian (Latin)", SidecarName("sr-Latn")),
    (".Brazilian Portuguese", SidecarName("pt-BR")),
    (".Portuguese (Brazil)", SidecarName("pt-BR")),
    (".pob", SidecarName("pt-BR")),
    (".Chinese (Traditional)", SidecarName("zh-Hant")),
    (".English (United Kingdom).forced", SidecarName("en-GB", forced=True)),
    (".chi_sim", SidecarName("zh-Hans")),
    (".en.closed captions", SidecarName("en", hearing_impaired=True)),
    (".en.hearing_impaired", SidecarName("en", hearing_impaired=True)),
    (".en.non-hi", SidecarName("en")),
    (".en.v2", SidecarName("en")),
    (".en.Director's Commentary", SidecarName("en", title="commentary")),
    (".Signs & Songs.en", SidecarName("en", title="signs")),
    (" china", None),
    (" commentary", None),
    (".en-orig", SidecarName("en")),
    (".hi", SidecarName("hi")),  # Hindi
    (".en.hi", SidecarName("en", hearing_impaired=True)),
    (".en.cc", SidecarName("en", hearing_impaired=True)),
    (".und", SidecarName()),
    (".chs&eng", SidecarName()),
    (".en+de.forced", SidecarName(forced=True)),
    (".zh-Hans&zh", SidecarName("zh-Hans")),
    (".commentary.en", SidecarName("en", title="commentary")),
    ("2", None),
    (" 2", None),
    ("-2", None),
    ("_2", None),
    (".2019", None),
    (" returns", None),
    ("-returns", None),
    (" it", None),
    (" [Director's cut]", None),
    (".one.two.three", None),
]


@pytest.mark.parametrize(("rest", "says"), SAYS)
def test_a_name_says_language_and_kind(rest: str, says: SidecarName | None) -> None:
    """Anything else behind a video's name is part of another film's."""
    assert sidecar_name(rest) == says


@pytest.mark.parametrize("rest", [rest for rest, says in SAYS if says is not None])
@pytest.mark.parametrize("suffix", [".srt", ".SSA", ".ttml"])
def test_what_says_something_belongs_to_the_video(rest: str, suffix: str) -> None:
    names = FolderNames(["film.mp4", "filmed.mp4", f"film{rest}{suffix}", f"FILM{rest.upper()}{suffix}"])
    found = sidecars(Path("film.mp4"), names)
    assert {path.name for path in found} == {f"film{rest}{suffix}", f"FILM{rest.upper()}{suffix}"}
    assert sidecars(Path("filmed.mp4"), names) == ()


def test_sidecars_share_the_stem(tmp_path: Path) -> None:
    touch(
        tmp_path,
        [
            "film.mp4", "film.srt", "film.en.srt", "film.pt-BR.forced.VTT", "film.de.ass", "film.two.mp4",
            "film.two.srt", "film2.srt", "film.en.txt", "film.2019.srt", "film.two.en.srt", "film.mp4.fr.srt",
        ],
    )  # fmt: skip
    assert beside(tmp_path, "film.mp4") == [
        "film.de.ass", "film.en.srt", "film.mp4.fr.srt", "film.pt-BR.forced.VTT", "film.srt",
    ]  # fmt: skip
    assert beside(tmp_path, "film.two.mp4") == ["film.two.en.srt", "film.two.srt"]


def test_sidecars_may_have_accents_in_another_form(tmp_path: Path) -> None:
    one, two = "caf\u00e9", "cafe\u0301"
    touch(tmp_path, [f"{one}.mp4", f"{one}.de.srt", f"{two}.en.srt", f"{two}.srt"])
    assert beside(tmp_path, f"{one}.mp4") == [f"{two}.en.srt", f"{two}.srt", f"{one}.de.srt"]
    (tmp_path / f"{two}.mkv").touch()
    assert beside(tmp_path, f"{one}.mp4") == [f"{one}.de.srt"]


def test_of_two_videos_whose_names_differ_in_capitals_each_has_its_own() -> None:
    names = FolderNames(["Film.mp4", "film.mkv", "Film.en.srt", "film.en.srt", "FILM.de.srt"])
    assert [path.name for path in sidecars(Path("Film.mp4"), names)] == ["FILM.de.srt", "Film.en.srt"]
    assert [path.name for path in sidecars(Path("film.mkv"), names)] == ["FILM.de.srt", "film.en.srt"]


@pytest.mark.parametrize("folder", ["Subs", "subs", "SUBTITLES", "Sub"])
def test_a_folder_of_subtitles(tmp_path: Path, folder: str) -> None:
    """With the video's name, in a folder of that name, or by the language of the only video."""
    touch(
        tmp_path,
        [
            "one/film.mkv", f"one/{folder}/film.en.srt", f"one/{folder}/2_English.srt",
            f"one/{folder}/German.ass", f"one/{folder}/other.srt", f"one/{folder}/3_English [SDH].srt",
            "two/e1.mkv", "two/e2.mkv", f"two/{folder}/e1/2_English.srt", f"two/{folder}/e2/2_English.srt",
            f"two/{folder}/e1.de.srt", f"two/{folder}/English.srt", "two/extras/e1.srt",
        ],
    )  # fmt: skip
    assert beside(tmp_path / "one", "film.mkv") == [
        f"{folder}/2_English.srt", f"{folder}/3_English [SDH].srt", f"{folder}/German.ass",
        f"{folder}/film.en.srt",
    ]  # fmt: skip
    assert beside(tmp_path / "two", "e1.mkv") == [f"{folder}/e1/2_English.srt", f"{folder}/e1.de.srt"]
    assert beside(tmp_path / "two", "e2.mkv") == [f"{folder}/e2/2_English.srt"]
