"""Subtitles on their way into a library: which files, in which encoding, and what is said of them."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from moviola.errors import InvalidValue
from moviola.search import Library

CUE = "1\n00:00:01,000 --> 00:00:03,000\n{}\n"
AMBIGUOUS = "na čase je vse"
"""Slovenian; its only letter beyond ASCII is one of many languages."""


def said(library: Library, video_id: str) -> list[str]:
    row = library.catalogue.video(video_id).row
    return [cue.text for cue in library.catalogue.cues(row) if cue.kind == "subtitle"]


def test_files_by_any_usual_name_are_found_and_followed(library: Library, films: Path) -> None:
    """Of a folder ``Subs`` too, where a change is noticed as beside the video."""
    (films / "A.English [SDH].srt").write_text(CUE.format("a walrus hums"))
    (films / "deep" / "Subs").mkdir()
    (films / "deep" / "Subs" / "2_English.ttml").write_text(
        '<tt><body><p begin="1s" end="2s">a zebra sings</p></body></tt>'
    )
    assert sorted(library.index(films).updated) == ["a", "deep/c"]
    assert (said(library, "a"), said(library, "deep/c")) == (["a walrus hums"], ["a zebra sings"])
    assert not library.index(films).updated
    (films / "deep" / "Subs" / "2_English.ttml").unlink()
    assert library.index(films).updated == ["deep/c"]
    assert said(library, "deep/c") == []


def test_a_guessed_encoding_is_named_and_can_be_corrected(library: Library, films: Path) -> None:
    """For good: it is kept when the video moves and when its subtitles change, until another is given."""
    (films / "a.srt").write_bytes(CUE.format(AMBIGUOUS).encode("cp1250"))
    report = library.index(films)
    assert report.subtitle_notes == {"a": "a.srt: not in Unicode, by its letters read as windows-1252"}
    assert (report.subtitle_problems, said(library, "a")) == ({}, [AMBIGUOUS.replace("č", "è")])
    report = library.index(films, subtitle_encoding="windows-1250")
    assert (sorted(report.updated), said(library, "a")) == (["a", "d"], [AMBIGUOUS])
    assert not library.index(films).updated
    assert not library.index(films, subtitle_encoding="cp1250").updated
    for name in ("a.mp4", "a.srt"):
        (films / name).rename(films / f"moved {name}")
    assert library.index(films).moved == ["a"]
    (films / "moved a.srt").write_bytes(CUE.format(f"{AMBIGUOUS}!").encode("cp1250"))
    library.index(films)
    assert said(library, "a") == [f"{AMBIGUOUS}!"]
    library.indexer.again(["a"], pictures=False)
    library.index(films)
    assert said(library, "a") == [f"{AMBIGUOUS}!"]
    library.index(films, subtitle_encoding="auto")
    assert said(library, "a") == [AMBIGUOUS.replace("č", "è") + "!"]
    with pytest.raises(InvalidValue, match="unknown; give one such as"):
        library.index(films, subtitle_encoding="windows-9")


def test_readings_that_are_not_kept_are_named(library: Library, films: Path) -> None:
    """Cues after the end of the film, damaged ones, and those of instruments; the last are no problem."""
    (films / "a.srt").write_text(f"{CUE.format('said')}\n2\n01:00:10,000 --> 01:00:12,000\ncondor\n")
    (films / "b.srt").write_text(
        "".join(
            f"{n}\n00:00:0{n},000 --> 00:00:0{n},900\n"
            "[iso: 100] [shutter: 1/50] [latitude: 48.2] [longitude: 1.5]\n\n"
            for n in range(1, 8)
        )
    )
    report = library.index(films)
    assert said(library, "a") == ["said"]
    assert said(library, "b") == []
    assert report.subtitle_problems == {
        "a": "a.srt: 1 cue after the end of the film, not kept (1:00:10.0 condor)"
    }
    assert "b.srt: 7 cues of a camera's or a drone's instruments, no speech" in report.subtitle_notes["b"]


def test_pictures_are_counted_by_the_rate_of_the_film(library: Library, films: Path) -> None:
    (films / "a.sub").write_text("{5}{10}a walrus hums\n")
    library.index(films)
    (cue,) = library.catalogue.cues(library.catalogue.video("a").row)
    assert (cue.start, cue.end, cue.text) == (1.0, 2.0, "a walrus hums")


def test_subtitles_of_hours_beside_a_short_film(
    tmp_path: Path, films: Path, opened: Callable[..., Library]
) -> None:
    """40,000 cues in nine seconds are read as ten a second, else each would be encoded."""
    folder = tmp_path / "one"
    folder.mkdir()
    shutil.copy(films / "a.mp4", folder)
    times = [(n * 9000 // 40_000, n * 9000 // 40_000 + 1) for n in range(40_000)]
    stamps = [f"00:00:0{a // 1000},{a % 1000:03} --> 00:00:0{b // 1000},{b % 1000:03}" for a, b in times]
    (folder / "a.srt").write_text("\n".join(f"{n}\n{stamp}\nword{n}\n" for n, stamp in enumerate(stamps)))
    library = opened(encoder="demo", sentence_encoder="none")
    report = library.index(folder)
    assert len(said(library, "a")) == 90
    assert library.search("word39000", by="subtitles")[0].start >= 7.0
    assert "40,000 cues more than ten a second" in report.subtitle_notes["a"]
