"""EDL, OTIO, FCPXML and WebVTT, read back with other readers, at all rates and with start timecodes."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import opentimelineio as otio
import pysubs2
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import InvalidValue, MediaError, NotFound
from moviola.export import (
    FORMATS,
    Selection,
    Timebase,
    clip_name,
    export_clip,
    export_clips,
    lay_out,
    read_sources,
    write_moments,
)
from moviola.export.edl import reel_names
from moviola.export.timebase import parse_rate
from moviola.export.timeline import SourceVideo
from moviola.media import MediaInfo, probe
from moviola.types import Moment
from numbered import NTSC, NTSC_FAST, NTSC_FILM, numbered_film

EVENT = re.compile(r"(\d{3})  (.{8}) ([\w/]+) +C +(\S+) (\S+) (\S+) (\S+)")
ALL = ("film", "24", "25", "df", "ndf", "30", "50", "df60", "60", "odd")


def moments(*spans: tuple[str, float, float]) -> list[Moment]:
    return [Moment(video, start, end, 0.5, rank) for rank, (video, start, end) in enumerate(spans, 1)]


def events(path: Path) -> list[tuple[str, ...]]:
    return [
        found.groups() for line in path.read_text().splitlines() if (found := EVENT.fullmatch(line.rstrip()))
    ]


def seconds(text: str) -> Fraction:
    """A time of FCPXML."""
    assert text.endswith("s")
    return Fraction(text[:-1])


# ---- what a file says --------------------------------------------------------------------------------------


def test_start_timecodes_of_files(rates: dict[str, str]) -> None:
    said = {name: probe(Path(path)).start_timecode for name, path in rates.items()}
    assert said == {
        "film": "01:00:00:00", "24": None, "25": "10:00:00:00", "df": "00:59:59;00", "ndf": "00:59:59:00",
        "30": None, "50": "00:00:59:49", "df60": "00:09:59;30", "60": None, "odd": None,
    }  # fmt: skip


def test_rates_of_files_are_exact(rates: dict[str, str]) -> None:
    chosen = [Selection(moment) for moment in moments(*((name, 0, 1) for name in ALL))]
    videos = read_sources(chosen, rates)
    assert [videos[name].timebase for name in ALL] == [
        Timebase(NTSC_FILM), Timebase(Fraction(24)), Timebase(Fraction(25)), Timebase(NTSC, True),
        Timebase(NTSC), Timebase(Fraction(30)), Timebase(Fraction(50)), Timebase(NTSC_FAST, True),
        Timebase(Fraction(60)), Timebase(Fraction(25, 2)),
    ]  # fmt: skip


# ---- EDL ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("video", "counting", "source", "record"),
    [
        ("film", "NON-DROP", ("01:00:00:12", "01:00:01:12"), ("01:00:00:00", "01:00:01:00")),
        ("24", "NON-DROP", ("00:00:00:12", "00:00:01:12"), ("01:00:00:00", "01:00:01:00")),
        ("25", "NON-DROP", ("10:00:00:12", "10:00:01:13"), ("01:00:00:00", "01:00:01:01")),
        ("df", "DROP", ("00:59:59;15", "01:00:00;15"), ("01:00:00;00", "01:00:01;00")),
        ("ndf", "NON-DROP", ("00:59:59:15", "01:00:00:15"), ("01:00:00:00", "01:00:01:00")),
        ("30", "NON-DROP", ("00:00:00:15", "00:00:01:15"), ("01:00:00:00", "01:00:01:00")),
        ("50", "NON-DROP", ("00:01:00:24", "00:01:01:24"), ("01:00:00:00", "01:00:01:00")),
        ("df60", "DROP", ("00:10:00;00", "00:10:01;00"), ("01:00:00;00", "01:00:01;00")),
        ("60", "NON-DROP", ("00:00:00:30", "00:00:01:30"), ("01:00:00:00", "01:00:01:00")),
        ("odd", "NON-DROP", ("00:00:00:12", "00:00:01:13"), ("01:00:00:00", "01:00:01:01")),
    ],
)
def test_cuts_at_each_rate(
    tmp_path: Path, rates: dict[str, str], video: str, counting: str, source: Any, record: Any
) -> None:
    """From .5 s to 1.5 s, by the frames that are on screen there."""
    out = tmp_path / "cut.edl"
    step = 1 / 12.5 if video == "odd" else 0.0
    write_moments(moments((video, 0.5, 1.5 if not step else 1.52)), rates, out, title="Doors")
    assert out.read_text().startswith(f"TITLE: Doors\nFCM: {counting} FRAME\n\n")
    ((number, _, channel, *times),) = events(out)
    assert (number, channel) == ("001", "B" if video in ("25", "df") else "V")
    assert (tuple(times[:2]), tuple(times[2:])) == (source, record)
    assert f"* FROM CLIP NAME:  {Path(rates[video]).name}\n" in out.read_text()


@pytest.mark.parametrize("video", ["film", "25", "df", "df60", "60"])
def test_cuts_are_read_by_opentimelineio(tmp_path: Path, rates: dict[str, str], video: str) -> None:
    out = tmp_path / "cut.edl"
    chosen = moments((video, 0.2, 0.9), (video, 1.0, 1.7))
    write_moments(chosen, rates, out)
    source = read_sources([Selection(moment) for moment in chosen], rates)[video]
    read = otio.adapters.read_from_file(str(out), rate=float(source.timebase.rate))
    clips = [clip for clip in read.tracks[0] if isinstance(clip, otio.schema.Clip)]
    for clip, moment in zip(clips, chosen, strict=True):
        first, end = source.timebase.frames(moment.span)
        assert clip.name == Path(rates[video]).name
        assert clip.source_range.start_time.to_frames() == source.first_frame + first
        assert clip.source_range.duration.to_frames() == end - first


@given(
    st.lists(
        st.tuples(st.sampled_from(ALL), st.floats(0, 1.9), st.floats(0.001, 1.0)), min_size=1, max_size=8
    ),
    st.sampled_from([None, *(["23.976", "24", "25", "29.97", "30", "50", "59.94", "60"])]),
)
def test_records_follow_each_other_without_gap(
    videos: dict[str, SourceVideo],
    spans: list[tuple[str, float, float]],
    rate: str | None,
) -> None:
    chosen = [
        Selection(m) for m in moments(*((video, start, start + length) for video, start, length in spans))
    ]
    timeline = lay_out(chosen, videos, title="x", rate=None if rate is None else parse_rate(rate))
    ends = [0, *(event.record[1] for event in timeline.events)]
    assert [event.record[0] for event in timeline.events] == ends[:-1]
    assert timeline.duration == sum(event.duration for event in timeline.events)
    for event in timeline.events:
        assert event.duration >= 1 and event.source[1] > event.source[0]
        assert event.source[1] <= (event.video.frame_count or 0)
        length = event.video.timebase.seconds(event.source[1] - event.source[0])
        shown = timeline.timebase.seconds(event.duration)
        assert shown <= length or event.duration == 1
        assert length - shown < 1 / timeline.timebase.rate


def test_mixed_rates_are_counted_at_the_rate_of_the_list(tmp_path: Path, rates: dict[str, str]) -> None:
    write_moments(
        moments(("25", 0, 1), ("25", 1, 2), ("50", 0.5, 1), ("df", 0, 1)), rates, tmp_path / "cut.edl"
    )
    rows = [row[3:] for row in events(tmp_path / "cut.edl")]
    assert rows[:3] == [
        ("10:00:00:00", "10:00:01:00", "01:00:00:00", "01:00:01:00"),
        ("10:00:01:00", "10:00:02:00", "01:00:01:00", "01:00:02:00"),
        # 00:00:59:49 at 50 is 00:00:59:24 or :25 at 25
        ("00:01:00:11", "00:01:00:23", "01:00:02:00", "01:00:02:12"),
    ]
    assert rows[3][2:] == ("01:00:02:12", "01:00:03:12")
    assert [row[2] for row in rows[1:]] == [row[3] for row in rows[:-1]]


def test_counting_can_be_chosen(tmp_path: Path, rates: dict[str, str]) -> None:
    out = tmp_path / "cut.edl"
    for video, chosen, counting, start in (
        ("df", None, "DROP", "01:00:00;00"),
        ("df", False, "NON-DROP", "01:00:00:00"),
        ("ndf", True, "DROP", "01:00:00;00"),
    ):
        write_moments(moments((video, 0, 1)), rates, out, drop_frame=chosen)
        assert f"FCM: {counting} FRAME" in out.read_text()
        ((*_, source, _, record, _),) = events(out)
        # The file's own counting stays.
        assert (source, record) == (f"00:59:59{';' if video == 'df' else ':'}00", start)
    write_moments(moments(("ndf", 0, 1)), rates, out, start_timecode="00:59:59:29", drop_frame=True)
    assert events(out)[0][5:] == ("00:59:59;29", "01:00:00;29")
    with pytest.raises(InvalidValue, match="drop-frame at 25 frames a second"):
        write_moments(moments(("25", 0, 1)), rates, out, drop_frame=True)
    with pytest.raises(InvalidValue, match="timecode '1 hour'"):
        write_moments(moments(("25", 0, 1)), rates, out, start_timecode="1 hour")


def test_reels_are_eight_letters_and_differ(rates: dict[str, str]) -> None:
    info = probe(Path(rates["24"]))
    names = ["interview one.mp4", "interview two.mp4", "Ünï çödé.mp4", "日本.mp4", "日本語.mp4", "a.mp4"]
    videos = [SourceVideo(name, _renamed(info, name), Timebase(Fraction(24))) for name in names]
    reels = reel_names(videos)
    assert list(reels.values()) == ["INTERVIE", "INTERVI2", "UNICODE", "REEL", "REEL2", "A"]
    same, base = _renamed(info, "longest name.mp4"), Timebase(Fraction(24))
    many = [SourceVideo(f"v{n}", same, base) for n in range(2000)]  # took half a minute
    assert len(set(reel_names(many).values())) == 2000
    assert all(re.fullmatch("[A-Z0-9]{1,8}", reel) for reel in reel_names(many).values())


def _renamed(info: MediaInfo, name: str) -> MediaInfo:
    return replace(info, path=Path(name))


def test_an_edl_numbers_a_thousand_events_at_most(tmp_path: Path, rates: dict[str, str]) -> None:
    with pytest.raises(InvalidValue, match="1000 moments: an EDL numbers at most 999"):
        write_moments(moments(*[("24", 0, 1)] * 1000), rates, tmp_path / "cut.edl")
    assert not list(tmp_path.iterdir())


NASTY = Selection(
    Moment("25", 0.0, 1.0, 0.5, 1),
    "one\ntwo\x00\x1b[31m |M:x --> <b> & ]]> \u2028" + "w" * 300,
    "a\r\nb\x07 | c\n",
)


def test_words_stay_on_their_line(tmp_path: Path, rates: dict[str, str]) -> None:
    for name in ("edl", "edl-markers", "edl-markers-video"):
        out = tmp_path / f"{name}.edl"
        write_moments([NASTY], rates, out, name, title="a\nTITLE: b")
        text = out.read_text(encoding="utf-8")
        assert text.startswith("TITLE: a TITLE: b\nFCM:")
        assert all(line.isprintable() and len(line) < 320 for line in text.splitlines())
        assert len(events(out)) == 1


def test_markers_for_resolve(tmp_path: Path, rates: dict[str, str]) -> None:
    chosen = [Selection(m, "A door", "red | old") for m in moments(("df", 0.5, 1.0), ("df", 1.0, 1.5))]
    marker = re.compile(
        r"(\d{3})  001      V     C        (\S+) (\S+) (\S+) (\S+)  \n"
        r"(.*) \|C:ResolveColorGreen \|M:(.*) \|D:(\d+)\n"
    )
    for name, at in (
        ("edl-markers", ("01:00:00;00", "01:00:00;15")),
        ("edl-markers-video", ("00:59:59;15", "01:00:00;00")),
    ):
        write_moments(chosen, rates, tmp_path / "m.edl", name)
        found = marker.findall((tmp_path / "m.edl").read_text())
        assert [row[1] for row in found] == list(at) == [row[3] for row in found]
        assert [row[5:] for row in found] == [("red / old", "A door", "15")] * 2


# ---- OpenTimelineIO ----------------------------------------------------------------------------------------


def test_otio_has_each_clip_at_its_own_rate(
    tmp_path: Path, rates: dict[str, str], videos: dict[str, SourceVideo]
) -> None:
    chosen = [
        Selection(m, f"no. {m.rank}", "so\nit is") for m in moments(*((video, 0.4, 1.2) for video in ALL))
    ]
    write_moments(chosen, rates, tmp_path / "cut.otio", title="All")
    read = otio.adapters.read_from_file(str(tmp_path / "cut.otio"))
    assert read.name == "All"
    pictures, sound = read.tracks
    for clip, selection in zip(pictures, chosen, strict=True):
        video = videos[selection.moment.video_id]
        first, end = video.timebase.frames(selection.moment.span)
        source = clip.source_range
        assert source.start_time.rate == float(video.timebase.rate)
        assert (source.start_time.value, source.duration.value) == (video.first_frame + first, end - first)
        assert clip.available_range().duration.value == video.frame_count
        assert Path(unquote(urlsplit(clip.media_reference.target_url).path)) == Path(rates[video.video_id])
        assert (clip.name, clip.markers[0].comment) == (selection.title, "so\nit is")
        assert clip.metadata["moviola"]["start"] == 0.4
    assert [type(item).__name__ for item in sound] == [
        "Clip" if name in ("25", "df") else "Gap" for name in ALL
    ]
    assert sound.duration().to_seconds() == pytest.approx(pictures.duration().to_seconds())


@pytest.mark.parametrize(
    ("video", "frame"), [("25", 90_000), ("df", 107_892), ("ndf", 108_000), ("film", 86_400)]
)
def test_otio_begins_at_the_timecode(tmp_path: Path, rates: dict[str, str], video: str, frame: int) -> None:
    write_moments(moments((video, 0, 1)), rates, tmp_path / "cut.otio")
    read = otio.adapters.read_from_file(str(tmp_path / "cut.otio"))
    assert read.global_start_time.value == frame


# ---- FCPXML ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("video", ALL)
def test_fcpxml_times_are_whole_frames(tmp_path: Path, rates: dict[str, str], video: str) -> None:
    out = tmp_path / "cut.fcpxml"
    write_moments(moments((video, 0.3, 1.1), (video, 1.2, 1.9), ("25", 0.5, 1.0)), rates, out)
    root = ElementTree.parse(out).getroot()
    assert root.get("version") == "1.9" and "<!DOCTYPE fcpxml>" in out.read_text()
    formats = {
        element.attrib["id"]: seconds(element.attrib["frameDuration"]) for element in root.iter("format")
    }
    (sequence,) = root.iter("sequence")
    frame, at = formats[sequence.attrib["format"]], seconds(sequence.attrib["tcStart"])
    for clip in root.iter("asset-clip"):
        assert seconds(clip.attrib["offset"]) == at
        assert (
            seconds(clip.attrib["duration"]) % frame
            == 0
            == (at - seconds(sequence.attrib["tcStart"])) % frame
        )
        assert seconds(clip.attrib["start"]) % formats[clip.attrib["format"]] == 0
        at += seconds(clip.attrib["duration"])
        (asset,) = (a for a in root.iter("asset") if a.attrib["id"] == clip.attrib["ref"])
        assert seconds(asset.attrib["start"]) <= seconds(clip.attrib["start"])
        (media,) = asset.iter("media-rep")
        assert Path(unquote(urlsplit(media.attrib["src"]).path)).is_file()
    assert seconds(sequence.attrib["duration"]) == at - seconds(sequence.attrib["tcStart"])


@pytest.mark.parametrize(
    ("video", "frame", "start", "clip", "counting"),
    [
        ("film", "1001/24000s", Fraction(86_400 * 1001, 24_000), Fraction(86_412 * 1001, 24_000), "NDF"),
        ("25", "1/25s", Fraction(3600), Fraction(900_012, 25), "NDF"),
        ("df", "1001/30000s", Fraction(107_892 * 1001, 30_000), Fraction(107_877 * 1001, 30_000), "DF"),
        ("ndf", "1001/30000s", Fraction(108_000 * 1001, 30_000), Fraction(107_985 * 1001, 30_000), "NDF"),
        ("df60", "1001/60000s", Fraction(215_784 * 1001, 60_000), Fraction(35_964 * 1001, 60_000), "DF"),
    ],
)
def test_fcpxml_counts_as_the_file(
    tmp_path: Path,
    rates: dict[str, str],
    video: str,
    frame: str,
    start: Fraction,
    clip: Fraction,
    counting: str,
) -> None:
    out = tmp_path / "cut.fcpxml"
    write_moments(moments((video, 0.5, 1.5)), rates, out)
    root = ElementTree.parse(out).getroot()
    (sequence,), (found,) = root.iter("sequence"), root.iter("asset-clip")
    assert [element.attrib["frameDuration"] for element in root.iter("format")] == [frame]
    assert seconds(sequence.attrib["tcStart"]) == seconds(found.attrib["offset"]) == start
    assert seconds(found.attrib["start"]) == clip
    assert (sequence.attrib["tcFormat"], found.attrib["tcFormat"]) == (counting, counting)


def test_fcpxml_is_read_by_opentimelineio(tmp_path: Path, rates: dict[str, str]) -> None:
    """At a whole rate and at binary fractions; its adapter takes 23.976 for 23 and cuts floats off."""
    write_moments(moments(("24", 0.25, 1.0), ("24", 1.25, 2.0)), rates, tmp_path / "cut.fcpxml", title="Cut")
    ((timeline,),) = [otio.adapters.read_from_file(str(tmp_path / "cut.fcpxml"))]
    clips = list(timeline.find_clips())
    assert (timeline.name, [clip.name for clip in clips]) == ("Cut", ["24", "24"])
    assert [clip.source_range.start_time.value for clip in clips] == [6, 30]
    assert [clip.source_range.duration.value for clip in clips] == [18, 18]


def test_otio_holds_any_words(tmp_path: Path, rates: dict[str, str]) -> None:
    halved = Selection(replace(NASTY.moment, video_id="\udcff"), "\udcfe|\x00", "\ud800")
    write_moments([NASTY, halved], {**rates, "\udcff": rates["24"]}, tmp_path / "cut.otio", title="\udcff")
    read = otio.adapters.read_from_file(str(tmp_path / "cut.otio"))
    assert (read.name, [clip.name[:7] for clip in read.tracks[0]]) == ("Moments", ["one two", "|"])


def test_fcpxml_holds_any_words(tmp_path: Path, rates: dict[str, str]) -> None:
    write_moments([NASTY], rates, tmp_path / "cut.fcpxml", title="<&>\"'\x00")
    root = ElementTree.parse(tmp_path / "cut.fcpxml").getroot()
    (project,), (clip,), (note,) = root.iter("project"), root.iter("asset-clip"), root.iter("note")
    assert project.attrib["name"] == "<&>\"'"
    assert clip.attrib["name"].startswith("one two [31m |M:x --> <b> & ]]> www")
    assert note.text == "a\nb | c"
    (asset,) = root.iter("asset")
    assert (asset.attrib["hasAudio"], asset.attrib["audioRate"]) == ("1", "48000")


# ---- WebVTT ------------------------------------------------------------------------------------------------


def cues(path: Path) -> list[tuple[int, int, str]]:
    return [(event.start, event.end, event.text) for event in pysubs2.load(str(path))]


def test_chapters_of_a_video(tmp_path: Path, rates: dict[str, str]) -> None:
    chosen = [Selection(m, f"no. {m.rank}", "why") for m in moments(("24", 1.0, 1.5), ("24", 0.25, 0.5))]
    write_moments(chosen, {}, tmp_path / "a.vtt")
    assert cues(tmp_path / "a.vtt") == [(250, 500, "no. 2"), (1000, 1500, "no. 1")]
    assert (tmp_path / "a.vtt").read_text().startswith("WEBVTT\n\n1\n00:00:00.250 --> ")
    with pytest.raises(InvalidValue, match=r"moments of 2 videos.*vtt-videos or vtt-film"):
        write_moments(moments(("24", 0, 1), ("25", 0, 1)), {}, tmp_path / "b.vtt")


def test_chapters_by_video(tmp_path: Path) -> None:
    chosen = moments(("a/b", 0, 1), ("c", 2, 3), ("a_b", 4, 5), ("a/b", 6, 7))
    written = write_moments(chosen, {}, tmp_path / "out", "vtt-videos")
    assert [path.name for path in written.files] == ["a_b.vtt", "c.vtt", "a_b-2.vtt"]
    assert [cue[:2] for cue in cues(written.files[0])] == [(0, 1000), (6000, 7000)]


def test_chapters_by_video_differ_by_more_than_case(tmp_path: Path) -> None:
    """Where file names are compared without case, one would replace the other."""
    written = write_moments(moments(("Beach", 0, 1), ("beach", 2, 3)), {}, tmp_path / "out", "vtt-videos")
    assert [path.name for path in written.files] == ["Beach.vtt", "beach-2.vtt"]


def test_long_names_of_videos_are_cut(tmp_path: Path) -> None:
    """A name of a file that its file system takes, and what an export adds to it."""
    chosen = moments((f"{'海' * 83}1.mp4", 0, 1), (f"{'海' * 83}2.mp4", 0, 1))
    written = write_moments(chosen, {}, tmp_path / "out", "vtt-videos")
    assert [path.name for path in written.files] == [f"{'海' * 60}.vtt", f"{'海' * 60}-2.vtt"]
    assert len(clip_name(chosen[0]).encode()) < 255


def test_chapters_of_the_film(tmp_path: Path, rates: dict[str, str]) -> None:
    chosen = moments(("25", 0.5, 1.0), ("df", 0.0, 1.0))
    write_moments(chosen, rates, tmp_path / "a.vtt", "vtt-film")
    assert [cue[:2] for cue in cues(tmp_path / "a.vtt")] == [(0, 520), (520, 1520)]
    write_moments(chosen, rates, tmp_path / "a.vtt", "vtt-film", titles=True)
    assert [cue[:2] for cue in cues(tmp_path / "a.vtt")] == [(2000, 2520), (4520, 5520)]


def test_chapters_hold_any_words(tmp_path: Path) -> None:
    write_moments([NASTY], {}, tmp_path / "a.vtt")
    text = (tmp_path / "a.vtt").read_text(encoding="utf-8")
    assert text.count("-->") == 1 and "&lt;b&gt; &amp; ]]&gt;" in text


# ---- what goes wrong ---------------------------------------------------------------------------------------

TIMED = [
    name
    for name, format in FORMATS.items()
    if format.kind == "file" and name not in ("csv", "json", "vtt", "sheet")
]


@pytest.mark.parametrize("name", TIMED)
def test_a_video_that_cannot_be_used_is_named(tmp_path: Path, rates: dict[str, str], name: str) -> None:
    (tmp_path / "broken.mov").write_bytes(b"no film at all")
    out = tmp_path / "out" / f"cut{FORMATS[name].suffix}"
    for paths, error, message in (
        ({"v": tmp_path / "gone.mov"}, MediaError, "gone.mov: cannot be read .no such file"),
        ({"v": tmp_path / "broken.mov"}, MediaError, "broken.mov: a text file, not a video"),
        ({}, NotFound, "v: no path is known for this video"),
    ):
        with pytest.raises(error, match=message):
            write_moments(moments(("v", 0, 1)), paths, out, name)
    with pytest.raises(InvalidValue, match=r"25 100%.mov: 9 s is after the end of the video at 2 s"):
        write_moments(moments(("25", 9, 10)), rates, out, name)
    assert not out.parent.exists()


def test_an_end_past_the_video_is_the_end_of_the_video(tmp_path: Path, rates: dict[str, str]) -> None:
    write_moments(moments(("25", 1.5, 99)), rates, tmp_path / "cut.edl")
    assert events(tmp_path / "cut.edl")[0][3:5] == ("10:00:01:12", "10:00:02:00")


def test_wrong_calls_are_named(tmp_path: Path, rates: dict[str, str]) -> None:
    one = moments(("25", 0, 1))
    for call, message in (
        (lambda: write_moments([], rates, tmp_path / "a.edl"), "no moments to write"),
        (
            lambda: write_moments(one, rates, tmp_path / "a.avi"),
            "no format is known by .avi; end it in .csv,",
        ),
        (lambda: write_moments(one, rates, tmp_path / "a", "aaf"), "format 'aaf': give one of csv, json"),
        (lambda: write_moments(one, rates, tmp_path / "a.csv", rate=25), "csv: no option rate; it has: none"),
        (lambda: write_moments(one, rates, tmp_path / "a.edl", rate="x"), "rate 'x'"),
        (lambda: write_moments(one, rates, tmp_path / "c", "clips", mode="fast"), "mode 'fast'"),
        (lambda: export_clips(one, rates, tmp_path / "c", mode="fast"), "mode 'fast'"),  # type: ignore[arg-type]
        (
            lambda: export_clip(one[0], tmp_path / "a", tmp_path / "a.mp4", mode="fast"),  # type: ignore[arg-type]
            "mode 'fast'",
        ),
        (lambda: write_moments(one, rates, tmp_path / "a.mp4", size="3x3"), "size '3x3'"),
        (lambda: write_moments(one, rates, tmp_path / "a.mp4", size="64xnox48"), "size '64xnox48'"),
        (lambda: write_moments(one, rates, tmp_path / "a.png", columns=0), "columns 0"),
        (lambda: write_moments(one, rates, tmp_path / "a.edl", title=None), "title None: give a text"),
        (lambda: write_moments(one, rates, tmp_path / "a.edl", start_timecode=None), "timecode None: give a"),
        (
            lambda: write_moments(one, rates, tmp_path / "a.edl", drop_frame="no"),
            "drop_frame 'no': give true or",
        ),
        (
            lambda: write_moments(one, rates, tmp_path / "a.mp4", titles="false"),
            "titles 'false': give true or",
        ),
        (lambda: write_moments(one, rates, tmp_path / "a.mp4", titles=1), "titles 1: give true or false"),
    ):
        with pytest.raises(InvalidValue, match=message):
            call()
    assert not list(tmp_path.iterdir())


def test_a_timecode_that_its_rate_does_not_have_is_named(tmp_path: Path) -> None:
    film = numbered_film(tmp_path / "a.mkv", 24, 1, timecode="01:00:00:29")
    with pytest.raises(MediaError, match=r"a\.mkv: its start timecode cannot be at 24 frames a second"):
        write_moments(moments(("a", 0, 1)), {"a": film}, tmp_path / "a.edl")


def test_every_suffix_has_a_format() -> None:
    assert len({format.name for format in FORMATS.values()}) == len(FORMATS)
    assert all(bool(format.suffix) == (format.kind == "file") for format in FORMATS.values())
