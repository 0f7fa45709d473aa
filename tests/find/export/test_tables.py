"""Moments as tables: read back as they were, harmless in a spreadsheet, wrong rows named."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.errors import DataError, InvalidValue, MediaError, NotFound
from moviola.export import Selection, read_moments, write_moments
from moviola.files.plain import plain
from moviola.types import Moment

TITLED = [
    Selection(Moment("a", 1.5, 2.25, 0.75, 1), "=HYPERLINK(x)", "first\nsecond"),
    Selection(Moment("b/c", 0.1, 1 / 3, -0.5, 2, "speech", "@home, he said"), "'+1", "-2"),
]
WORDS = st.text(st.characters(codec="utf-8", exclude_characters="\x00\r"), max_size=12)


@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_they_are_read_back(tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"moments{suffix}"
    assert write_moments(TITLED, {"a": "films/a.mp4"}, out).files == (out,)
    assert read_moments(out) == (TITLED, {"a": "films/a.mp4"})


@given(st.lists(st.tuples(WORDS, WORDS, WORDS.filter(str.strip)), min_size=1, max_size=4))
def test_any_words_are_read_back(
    tmp_path_factory: pytest.TempPathFactory, words: list[tuple[str, str, str]]
) -> None:
    chosen = [
        Selection(Moment(video, 0.0, 1.0, 0.5, rank), title, note)
        for rank, (title, note, video) in enumerate(words, 1)
    ]
    for suffix in (".csv", ".json"):
        out = tmp_path_factory.getbasetemp() / f"words{suffix}"
        write_moments(chosen, {}, out)
        assert read_moments(out)[0] == chosen


@pytest.mark.parametrize(
    "word",
    ["\x1b[31mred\x07", "a\rb", "\\u001b", "\\\\u001b", "C:\\u1234", "\\u005cu001b", "\u202eabc", "\x9b2J"],
)
def test_no_letter_steers_the_terminal_that_shows_a_table(tmp_path: Path, word: str) -> None:
    """Subtitles, which are texts of others, could; and what is read back is what was written."""
    chosen = [Selection(Moment(word, 0.0, 1.0, 0.5, 1, "subtitles", word), word, word)]
    out = tmp_path / "moments.csv"
    write_moments(chosen, {word: word}, out)
    assert plain(out.read_text()) == out.read_text()
    assert read_moments(out) == (chosen, {word: word})


def test_short_times_of_steps_are_read_back(tmp_path: Path) -> None:
    steps = tuple(Moment("a", *span, 0.5, 1) for span in ((0.0, 1e-05), (2e-05, 3.5)))
    write_moments([Moment("a", 0.0, 3.5, 0.5, 1, steps=steps)], {}, tmp_path / "steps.csv")
    (read,), _ = read_moments(tmp_path / "steps.csv")
    assert [(step.start, step.end) for step in read.moment.steps] == [(0.0, 1e-05), (2e-05, 3.5)]


@pytest.mark.parametrize("suffix", [".csv", ".json", ".vtt"])
def test_moments_end_with_their_video(tmp_path: Path, suffix: str) -> None:
    steps = (Moment("a", 1.0, 2.0, 0.5, 1), Moment("a", 3.0, 9.0, 0.5, 1))
    cut = replace(steps[1], end=4.5)
    moment, whole = (
        Moment("a", 1.0, 9.0, 0.5, 1, steps=steps),
        Moment("a", 1.0, 4.5, 0.5, 1, steps=(steps[0], cut)),
    )
    given, expected = (tmp_path / f"{name}{suffix}" for name in ("given", "expected"))
    write_moments([moment], {}, given, durations={"a": 4.5, "b": 1.0})
    write_moments([whole], {}, expected)
    assert given.read_text() == expected.read_text()
    with pytest.raises(InvalidValue, match=r"a: start 5: the video ends at 4\.5 s; give a time before that"):
        write_moments([moment, Moment("a", 5.0, 6.0, 0.5, 2)], {}, given, durations={"a": 4.5})


def test_a_carriage_return_ends_no_row(tmp_path: Path) -> None:
    chosen = Selection(Moment("street", 0, 1, 0.5, 1), "one\rtwo", "a\r\nb")
    write_moments([chosen], {"street": "/films/a\rb.mp4"}, tmp_path / "m.csv")
    assert read_moments(tmp_path / "m.csv") == ([chosen], {"street": "/films/a\rb.mp4"})


def test_a_path_that_is_no_name_of_a_file_is_named(tmp_path: Path) -> None:
    moment = Moment("street", 0, 1, 0.5, 1)
    write_moments([moment], {"street": "a\0b"}, tmp_path / "m.json")
    with pytest.raises(MediaError, match="embedded null byte"):
        write_moments([moment], {"street": "a\0b"}, tmp_path / "m.edl")


def test_no_cell_is_a_formula(tmp_path: Path) -> None:
    nasty = [
        Selection(Moment("=v", 0, 1, 0.5, rank, snippet=start + "x"), start + "cmd", start)
        for rank, start in enumerate(("=", "+", "-", "@", "\t", "'="), 1)
    ]
    write_moments(nasty, {"=v": "@p"}, tmp_path / "m.csv")
    with (tmp_path / "m.csv").open(encoding="utf-8", newline="") as file:
        cells = [cell for row in csv.reader(file) for cell in row]
    assert not [cell for cell in cells if cell[:1] in set("=+-@\t\r")]
    assert read_moments(tmp_path / "m.csv")[0] == nasty


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    write_moments(TITLED, {}, tmp_path / "m.csv")
    with (tmp_path / "m.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["start"], row["score"]) for row in rows] == [("1.5", "0.75"), ("0.1", "-0.5")]


def test_json_is_what_search_prints(tmp_path: Path) -> None:
    write_moments(TITLED, {"a": "x"}, tmp_path / "m.json")
    rows = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"))
    assert rows[0]["path"] == "x" and rows[0]["steps"] == []
    printed = [{"video_id": "a", "start": 1, "end": 2, "score": 0.5, "rank": 7, "confident": True}]
    (tmp_path / "printed.json").write_text(json.dumps(printed))
    assert read_moments(tmp_path / "printed.json")[0] == [Selection(Moment("a", 1, 2, 0.5, 1))]


def test_three_columns_are_enough(tmp_path: Path) -> None:
    (tmp_path / "m.csv").write_text("video_id,start,end\na,1,2\n\nb,3,4.5\n")
    chosen, paths = read_moments(tmp_path / "m.csv")
    assert [selection.moment for selection in chosen] == [Moment("a", 1, 2, 0, 1), Moment("b", 3, 4.5, 0, 2)]
    assert paths == {}


def test_a_band_is_read_as_people_write_it(tmp_path: Path) -> None:
    """One that was chosen by hand has none."""
    words = ["strong", "Possible", "WEAK", ""]
    rows = "".join(f"a,{at},{at + 1},{word}\n" for at, word in enumerate(words))
    (tmp_path / "m.csv").write_text(f"video_id,start,end,band\n{rows}")
    read = [selection.moment.band for selection in read_moments(tmp_path / "m.csv")[0]]
    assert read == ["strong", "possible", "weak", "strong"]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("m.csv", "video_id,start\na,1\n", r"m.csv: line 1: the field 'end' is missing"),
        ("m.csv", "video_id,start,end\na,1,2\na,3,x\n", r"m.csv: line 3: end: 'x' is no number"),
        ("m.csv", "video_id,start,end\na,2,2\n", r"m.csv: line 2: end: 2 s is not after the start"),
        ("m.csv", "video_id,start,end\na,-2,2\n", r"m.csv: line 2: start: '-2' is no number >= 0"),
        ("m.csv", "video_id,start,end\n,1,2\n", r"m.csv: line 2: the field 'video_id' is missing"),
        ("m.json", '{"video_id": "a"}', r"m.json: a list of moments is expected, not dict"),
        (
            "m.json",
            '[{"video_id": "a", "start": 0, "end": 1}, 5]',
            r"m.json: moment 2: an object is expected",
        ),
        ("m.json", '[{"video_id": "a", "start": 0, "end": NaN}]', r"m.json: moment 1: end: nan is no number"),
        ("m.json", "[", r"m.json: line 1: not valid JSON"),
        (
            "m.json",
            '[{"video_id": "a", "start": 0, "end": 1, "folded": [{"start": 2, "end": 1}]}]',
            r"m.json: moment 1: folded: end: 1 s is not after the start, 2 s",
        ),
        (
            "m.json",
            '[{"video_id": "a", "start": 0, "end": 1, "copies": [{"video_id": "b", "start": -1, "end": 1}]}]',
            r"m.json: moment 1: copies: start: -1 is no number >= 0",
        ),
        ("m.csv", "video_id,start,end,score\na,1,2,x\n", r"m.csv: line 2: score: 'x' is no number$"),
        ("m.csv", "video_id,start,end,band\na,1,2,maybe\n", r"m.csv: line 2: band: .* not 'maybe'"),
        (
            "m.json",
            '[{"video_id": "a", "start": 0, "end": 1, "band": 1}]',
            r"m.json: moment 1: band: one of strong, possible, weak is expected, not '1'",
        ),
        ("m.jsonl", '{"video_id": "a", "start": 0}', r"m.jsonl: line 1: end: None is no number"),
        ("m.txt", "", r"m.txt: moments are read from .csv, .tsv, .json and .jsonl"),
    ],
)
def test_wrong_rows_are_named(tmp_path: Path, name: str, text: str, message: str) -> None:
    (tmp_path / name).write_text(text)
    with pytest.raises((DataError, InvalidValue), match=message):
        read_moments(tmp_path / name)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match=r"m\.csv: no such file"):
        read_moments(tmp_path / "m.csv")
