"""When, where and with what files say that they were taken, in files that are written here."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

import av
import numpy as np
import pytest

from moviola.errors import UnreadableMedia
from moviola.media import read_facts
from moviola.media.capture import capture_of, parse_point
from moviola.types import Capture


def film(path: Path, tags: Mapping[str, str], **options: str) -> Path:
    """Half a second with some tags."""
    with av.open(str(path), "w", options=options) as container:
        container.metadata.update(tags)
        stream = container.add_stream("mpeg4", rate=4)
        stream.width = stream.height = 64
        for _ in range(2):
            frame = av.VideoFrame.from_ndarray(np.zeros((64, 64, 3), np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


QUICKTIME = {
    "com.apple.quicktime.creationdate": "2023-05-01T14:30:00+0200",
    "com.apple.quicktime.location.ISO6709": "+52.5200+013.4050+034.000/",
    "com.apple.quicktime.make": "Apple",
    "com.apple.quicktime.model": "iPhone 15",
    "creation_time": "2024-01-01T00:00:00Z",
}


def test_quicktime_tags_know_zone_place_and_camera(tmp_path: Path) -> None:
    path = film(tmp_path / "IMG_0001.mov", QUICKTIME, movflags="use_metadata_tags")
    assert read_facts(path).capture == Capture(
        "2023-05-01T14:30:00+02:00", "tags", 52.52, 13.405, "Apple", "iPhone 15"
    )


def test_a_phones_mp4_knows_universal_time_and_place(tmp_path: Path) -> None:
    tags = {"creation_time": "2023-05-01T12:30:00Z", "location": "-33.8568+151.2153/"}
    found = read_facts(film(tmp_path / "a.mp4", tags)).capture
    assert (found.taken, found.source) == ("2023-05-01T12:30:00+00:00", "container")
    assert (found.latitude, found.longitude) == (-33.8568, 151.2153)


def test_matroska_tags(tmp_path: Path) -> None:
    tags = {"DATE_RECORDED": "2019-07-04 08:15:00", "MAKE": "Sony", "MODEL": "A7", "LOCATION": "+48.1+011.5/"}
    found = read_facts(film(tmp_path / "a.mkv", tags)).capture
    assert found == Capture("2019-07-04T08:15:00", "tags", 48.1, 11.5, "Sony", "A7")
    found = read_facts(film(tmp_path / "b.mkv", {"creation_time": "2019-07-04T08:15:00Z"})).capture
    assert (found.taken, found.source) == ("2019-07-04T08:15:00+00:00", "container")


@pytest.mark.parametrize(
    "unset",
    [
        "1904-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "9999-12-31T23:59:59Z",
        "2098-01-01T00:00:00Z",
        "2000-01-01T00:03:12Z",
        "no date",
    ],
)
def test_a_clock_that_was_never_set_says_nothing(tmp_path: Path, unset: str) -> None:
    assert read_facts(film(tmp_path / "a.mkv", {"creation_time": unset})).capture.taken == ""


@pytest.mark.parametrize("text", ["2019:07:04 08:15:00", "2019:07:04T08:15:00+02:00"])
def test_dates_as_exif_writes_them(tmp_path: Path, text: str) -> None:
    found = read_facts(film(tmp_path / "a.mkv", {"DATE_RECORDED": text})).capture
    assert (found.taken, found.source) == (text.replace(":", "-", 2).replace(" ", "T"), "tags")


@pytest.mark.parametrize(
    ("text", "taken"),
    [
        ("MON MAY 01 14:30:00 2023", "2023-05-01T14:30:00"),
        ("Mon May  1 14:30:00 2023", "2023-05-01T14:30:00"),
        ("Mon, 1 May 2023 14:30:00 +0200", "2023-05-01T14:30:00+02:00"),
        ("2023/05/01 14:30:00", "2023-05-01T14:30:00"),
        ("2023-05-01 12:30:00 UTC", "2023-05-01T12:30:00+00:00"),
        ("1 May 2023", ""), ("May 2023 by 12:30:00", ""), ("1904-01-01T00:00:00Z", ""),
        ("1970-01-01 00:00:07", ""),
    ],
)  # fmt: skip
def test_dates_in_other_words(text: str, taken: str) -> None:
    """As cameras write them into AVI, and mail; a day alone says no time, nor does a clock at zero."""
    assert capture_of({"date": text}, Path("a.avi")).taken == taken


def test_a_year_in_the_tags_is_that_of_a_release(tmp_path: Path) -> None:
    assert read_facts(film(tmp_path / "a.mkv", {"DATE": "1927"})).capture.taken == ""


@pytest.mark.parametrize(
    ("name", "taken"),
    [
        ("IMG_20230501_143000", "2023-05-01T14:30:00"),
        ("PXL_20230501_143000123", "2023-05-01T14:30:00"),
        ("DJI_20230501143000_0001_D", "2023-05-01T14:30:00"),
        ("20230501143000", "2023-05-01T14:30:00"),
        ("2023_0501_143000_0012F", "2023-05-01T14:30:00"),
        ("20230501143000_000012A", "2023-05-01T14:30:00"),
        ("Screen Recording 2023-05-01 at 14.30.00", "2023-05-01T14:30:00"),
        ("Screen Recording 2023-05-01 at 2.30.00\u202fPM", "2023-05-01T14:30:00"),
        ("Screen Recording 2023-05-01 at 12.30.00 AM", "2023-05-01T00:30:00"),
        ("Bildschirmaufnahme 2023-05-01 um 14.30.00", "2023-05-01T14:30:00"),
        ("Screen_Recording_20230501_143000_Chrome", "2023-05-01T14:30:00"),
        ("screen-20230501-143000", "2023-05-01T14:30:00"),
        ("2023-05-01_14-30-00", "2023-05-01T14:30:00"),
        ("GMT20230501-143000_Recording_1920x1080", "2023-05-01T14:30:00+00:00"),
        ("WIN_20230501_14_30_00_Pro", "2023-05-01T14:30:00"),
        ("signal-2023-05-01-14-30-00-123", "2023-05-01T14:30:00"),
        ("Schermopname 2023-05-01 om 14.30.00", "2023-05-01T14:30:00"),
        ("Grabación de pantalla 2023-05-01 a las 14.30.00", "2023-05-01T14:30:00"),
        ("ScreenRecording_05-31-2023 14-30-00_1", "2023-05-31T14:30:00"),
        ("ScreenRecording_31-05-2023 14-30-00_1", ""),
        ("RPReplay_Final1682944200", "2023-05-01T12:30:00+00:00"),
        ("mmexport1682944200123", "2023-05-01T12:30:00+00:00"),
        ("film1682944200", ""),
        ("vlc-record-2023-05-01-14h30m00s-film.mp4-", "2023-05-01T14:30:00"),
        ("20230501T143000Z", "2023-05-01T14:30:00+00:00"),
        ("cam 2023-05-01T14-30-00+0200", "2023-05-01T14:30:00+02:00"),
        ("230501_143000_001_FH", "2023-05-01T14:30:00"),
        ("FILE230501-143000F", "2023-05-01T14:30:00"),
        ("230501_143000", ""),
        ("2023-05-01 take 2 11.22.33", "2023-05-01"),
        ("2999-05-01 14.30.00", ""),
        ("20230501 25", "2023-05-01"),
        ("clip 1920_1024", ""),
        ("2000_0101_000012_001F", ""),
        ("2023050192233", ""),
        ("VID-20230501-WA0003", "2023-05-01"),
        ("2023-05-01 14.30.00", "2023-05-01T14:30:00"),
        ("20230501T143000", "2023-05-01T14:30:00"),
        ("film 20231301", ""),
        ("film 20230231", ""),
        ("take 120230501", ""),
        ("trim.1A2B3C4D-1234-5678-9ABC-20230501ABCD", ""),
        ("1080p", ""),
    ],
)
def test_times_in_names(tmp_path: Path, name: str, taken: str) -> None:
    plain = film(tmp_path / "plain.mkv", {})
    found = read_facts(Path(shutil.copy(plain, tmp_path / f"{name}.mkv"))).capture
    assert (found.taken, found.source) == (taken, "name" if taken else "")


@pytest.mark.parametrize(
    ("text", "point"),
    [
        ("+40.6894-074.0447/", (40.6894, -74.0447)),
        ("+4041.5-07402.7/", (40 + 41.5 / 60, -(74 + 2.7 / 60))),
        ("+404122.3-0740241.9+010CRSWGS_84/", (40 + 41 / 60 + 22.3 / 3600, -(74 + 2 / 60 + 41.9 / 3600))),
        ("+00.0000+000.0000/", None),
        ("+91.0+000.0/", None),
        ("Berlin", None),
    ],
)
def test_points_of_iso_6709(text: str, point: tuple[float, float] | None) -> None:
    assert parse_point(text) == (None if point is None else pytest.approx(point, abs=1e-9))


def test_a_file_that_is_no_film_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.mp4").write_text("text")
    with pytest.raises(UnreadableMedia):
        read_facts(tmp_path / "a.mp4")
