"""What a file holds is used, or accounted for: in the report, in the catalogue, by `doctor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from av.stream import Disposition

from made_films import Pictures, Sound, Words, make_film
from moviola.library.diagnosis import diagnose
from moviola.media import read_facts
from moviola.search import Library
from moviola.types import HELD_AS, Holding

SRT = "1\n00:00:01,000 --> 00:00:02,000\nThe otter hums.\n\n2\n00:00:0x,000 --> 00:00:03,000\nlost\n"
DEAF = Disposition.hearing_impaired


def full_film(path: Path) -> Path:
    """A film with parts of many kinds."""
    cover = Pictures(times=[0.0], size=(128, 128), codec="mjpeg", pix_fmt="yuvj420p", options={})
    return make_film(
        path,
        Pictures(3.0, tags={"title": "main"}),
        cover,
        Sound(3.0, tags={"language": "eng"}),
        Sound(3.0, tags={"language": "ger", "title": "Kommentar"}),
        Words([(0.5, 1.0, "a walrus hums")], "subrip", {"language": "eng"}),
        Words([(0.5, 1.0, "[hums] a walrus")], "subrip", {"language": "eng", "title": "SDH"}, DEAF),
        tags={"title": "The Sea", "DESCRIPTION": "walrus " * 30, "encoder": "me", "MAKE": "Acme"},
        chapters=[(0.0, 1.0, "Dawn"), (1.0, 3.0, "Dusk")],
        attachments={"notes.bin": b"notes"},
    )


HELD = [
    ("film", "video, h264, main", 0), ("other pictures", "video, mjpeg", 1), ("sound", "audio, aac, eng", 2),
    ("other sound", "audio, aac, ger, Kommentar", 3), ("subtitles", "subtitle, subrip, eng", 4),
    ("subtitles", "subtitle, subrip, eng, SDH", 5),
    ("attachment", "attachment, application/octet-stream, notes.bin", 6),
    ("chapters", "chapter 1, Dawn", None), ("chapters", "chapter 2, Dusk", None),
    ("words", "title The Sea", None),
]  # fmt: skip


def listed(holdings: tuple[Holding, ...]) -> list[tuple[str, str, int | None]]:
    return [
        (one.held_as, one.about, one.stream) for one in holdings if not one.about.startswith("DESCRIPTION")
    ]


def test_all_parts_of_a_file_are_accounted_for(tmp_path: Path) -> None:
    """Streams as ffprobe numbers them, chapters, words of tags; none of how it was written."""
    held = read_facts(full_film(tmp_path / "film.mkv")).holdings
    assert listed(held) == HELD
    (description,) = (one for one in held if one.about.startswith("DESCRIPTION"))
    assert description.about.endswith("…") and len(description.about) < 100 and description.used
    assert {one.held_as for one in held if one.used} == {"film", "sound", "subtitles", "chapters", "words"}
    with pytest.raises(ValueError, match="nonsense"):
        Holding("nonsense", "")  # type: ignore[arg-type]


def test_the_account_of_a_video(tmp_path: Path, opened: Callable[..., Library]) -> None:
    """Kept with the video, made again where subtitles come or go; a second run repeats nothing."""
    film = full_film(tmp_path / "films" / "film.mkv")
    stray = film.with_name("another.srt")
    stray.write_text(SRT)
    library = opened(encoder="demo", sentence_encoder="none")
    report = library.index(film.parent)
    assert report.unmatched == [str(stray)]
    assert report.unused == {"other pictures": 1, "other sound": 1, "attachment": 1}
    account = library.catalogue.account(library.catalogue.video("film").row)
    assert listed(account.holdings or ()) == HELD and (account.beside, account.problems) == (False, ())
    details = {finding.what: finding.detail for finding in diagnose(library.folder)}
    assert "attachment 1" in details["not used of files"] and "subtitles" not in details

    again = library.index(film.parent)
    assert (again.unused, again.unchanged, again.unmatched) == ({}, ["film"], [str(stray)])
    stray.rename(film.with_name("film_en.srt"))
    report = library.index(film.parent)
    assert report.unmatched == [] and report.unused["beside"] == 2
    account = library.catalogue.account(library.catalogue.video("film").row)
    assert account.beside and "1 damaged cue skipped" in account.problems[0]
    beside = [one.stream for one in account.holdings or () if one.held_as == "beside"]
    assert beside == [4, 5]
    details = {finding.what: finding.detail for finding in diagnose(library.folder)}
    assert "1 video" in details["subtitles"]

    library.indexer.remove(["film"])
    library.indexer.restore(["film"])
    assert library.catalogue.account(library.catalogue.video("film").row) == account


def test_a_file_beside_that_cannot_be_read_displaces_nothing(
    tmp_path: Path, opened: Callable[..., Library]
) -> None:
    """The words in the file are read then, and its account says so."""
    film = full_film(tmp_path / "films" / "film.mkv")
    film.with_suffix(".srt").write_text("no subtitles at all")
    library = opened(encoder="demo", sentence_encoder="none")
    report = library.index(film.parent)
    row = library.catalogue.video("film").row
    said = [cue.text for cue in library.catalogue.cues(row) if cue.kind == "subtitle"]
    assert said == ["a walrus hums", "[hums] a walrus"]
    assert ("subtitles", "subtitle, subrip, eng", 4) in listed(library.catalogue.account(row).holdings or ())
    assert "beside" not in report.unused and report.subtitle_problems


def test_a_library_from_before_gets_its_accounts(tmp_path: Path, opened: Callable[..., Library]) -> None:
    """Without decoding; a file that is away is looked at when it is there again."""
    film = full_film(tmp_path / "films" / "film.mkv")
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(film.parent)
    with library.catalogue.transaction():
        library.catalogue._rows("DROP TABLE accounts")
    library.close()
    library = opened()
    assert library.catalogue.account(1).holdings is None
    assert library.index(film.parent).unchanged == ["film"]
    assert listed(library.catalogue.account(library.catalogue.video("film").row).holdings or ()) == HELD


def test_an_account_of_one_track_of_each_language_is_made_again(
    tmp_path: Path, opened: Callable[..., Library]
) -> None:
    """It called a track not read for ever, though its lines were found."""
    film = full_film(tmp_path / "films" / "film.mkv")
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(film.parent)
    row = library.catalogue.video("film").row
    held = library.catalogue.account(row).holdings or ()
    with library.catalogue.transaction():
        before = [replace(one, held_as="other text") if one.stream == 5 else one for one in held]
        library.catalogue.put_holdings(row, False, before)
        library.catalogue._rows("UPDATE facts SET edition = 1")
        library.catalogue._rows("DELETE FROM tracks_read")
    assert library.catalogue.account(row).holdings == tuple(before)
    library.index(film.parent)
    assert library.catalogue.account(library.catalogue.video("film").row).holdings == held


def test_each_kind_is_said() -> None:
    assert all(HELD_AS.values()) and len(set(HELD_AS.values())) == len(HELD_AS)
