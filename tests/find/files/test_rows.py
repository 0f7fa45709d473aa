"""Rows of files: what is read, and that each error names the file and the line."""

from __future__ import annotations

import gzip
import os
import re
import tempfile
from pathlib import Path

import pytest

from moviola.errors import DataError, NotFound
from moviola.files.rows import (
    blank_separated_rows,
    csv_rows,
    json_rows,
    line_of,
    listed_rows,
    number,
    parse_json,
    read_csv,
    read_json,
    read_json_lines,
    read_text,
    span,
    text,
)
from moviola.study.datasets.readers.queries import read_queries

HERE = Path("f")


def test_a_byte_order_mark_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_json(file) == {"a": 1}


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="absent: no such file"):
        read_text(tmp_path / "absent")
    os.mkfifo(tmp_path / "pipe")
    for endless in (Path("/dev/zero"), tmp_path / "pipe"):
        with pytest.raises(DataError, match=f"{endless}: a device, pipe or socket; name a text file"):
            read_text(endless)
    with pytest.raises(DataError, match=r"cannot be read \(Is a directory\)"):
        read_text(tmp_path)
    packed = tmp_path / "run.csv.gz"
    packed.write_bytes(gzip.compress(b"query_id,video_id\n"))
    with pytest.raises(DataError, match=r"run\.csv\.gz: compressed with gzip; unpack it first"):
        read_text(packed)
    file = tmp_path / "latin"
    file.write_bytes(b"one\ncaf\xe9\n")
    with pytest.raises(DataError, match="latin: line 2: not UTF-8 text; save the file as UTF-8"):
        read_text(file)


@pytest.mark.parametrize("folder", ["/dev/fd", "/proc/self/fd"])
def test_a_pipe_of_the_shell_is_read(folder: str) -> None:
    """The forms of ``<(command)`` in bash and in zsh."""
    end, begin = os.pipe()
    with os.fdopen(end), os.fdopen(begin, "wb") as file:
        file.write(b"a red door\n")
        file.close()
        assert read_text(f"{folder}/{end}") == "a red door\n"


@pytest.mark.skipif(not os.access("/dev/shm", os.W_OK), reason="no folder below /dev to write to")
def test_a_named_pipe_below_dev_is_none_of_the_shell() -> None:
    """Reading it waited for a writer that never came."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        os.mkfifo(Path(folder, "pipe"))
        with pytest.raises(DataError, match="a device, pipe or socket"):
            read_text(f"{folder}/pipe")


def test_queries_that_are_not_utf_8_are_refused_with_the_remedy(tmp_path: Path) -> None:
    file = tmp_path / "queries.txt"
    file.write_bytes("a man\na café\n".encode("latin-1"))
    with pytest.raises(DataError, match="line 2: not UTF-8 text; save the file as UTF-8"):
        read_queries(file)


@pytest.mark.parametrize("row", ['{"query_id": 1, "query": null}', '{"query_id": 1, "query": ""}'])
def test_a_query_without_text_is_refused(tmp_path: Path, row: str) -> None:
    """Null was searched for as the word "None"."""
    file = tmp_path / "queries.jsonl"
    file.write_text(row)
    with pytest.raises(DataError, match="line 1: the field 'query' is missing"):
        read_queries(file)


@pytest.mark.parametrize("value", ['["a", "b"]', '{"text": "a"}', "NaN", "true"])
def test_a_query_that_is_no_text_is_refused(tmp_path: Path, value: str) -> None:
    """A list was searched for as Python writes it."""
    file = tmp_path / "queries.jsonl"
    file.write_text(f'{{"query_id": 1, "query": {value}}}')
    with pytest.raises(DataError, match="line 1: query: a text is expected, not"):
        read_queries(file)


def test_json_lines_pass_over_empty_lines_and_know_their_own() -> None:
    rows = json_rows(HERE, '{"a": 1}\n\n{"a": "x\u2028y"}\n')
    assert list(rows.objects()) == [("f: line 1", {"a": 1}), ("f: line 3", {"a": "x\u2028y"})]
    assert rows.fields("a") == [[1, "x\u2028y"]]
    with pytest.raises(DataError, match="f: line 1: the field 'b' is missing"):
        rows.fields("b")


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"a": 1}\n{"a": \n', "line 2: not valid JSON"),
        ('{"a": 1, "a": 2}', "line 1: not usable JSON .*'a' stands twice"),
        ('{"a": 1}\n3\n', "line 2: an object is expected, not 3"),
        ('{"a": 1}, {"a": 2}\n', "line 1: not valid JSON"),
    ],
)
def test_damaged_json_lines(tmp_path: Path, content: str, complaint: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(content)
    with pytest.raises(DataError, match=complaint):
        list(read_json_lines(file))


def test_damaged_json_documents() -> None:
    with pytest.raises(DataError, match=r"f: line 2: not valid JSON \(.*, column 1\)"):
        parse_json(HERE, "[1,\n}")
    with pytest.raises(DataError, match="f: not usable JSON"):
        parse_json(HERE, "[" * 100_000)


def test_line_of_a_value_inside_a_document() -> None:
    content = '{"a": [1,\n 2],\n "b": {"c":\n 3}}'
    assert line_of(content, ["a", 1]) == 2
    assert line_of(content, ["b", "c"]) == 4


def test_a_list_is_read_as_lines_are_and_its_entries_have_lines() -> None:
    rows = listed_rows(HERE, '\n[{"a": [1,\n2]}, {"a": 3},\n\n 5]')
    assert [rows.where(i) for i in range(3)] == ["line 2", "line 3", "line 5"]
    assert [line_of('\n[{"a": [1,\n2]}, {"a": 3},\n\n 5]', [i]) for i in range(3)] == [2, 3, 5]
    with pytest.raises(DataError, match="f: line 5: an object is expected, not 5"):
        list(rows.objects())
    assert list(listed_rows(HERE, " [ ]").objects()) == []
    assert list(listed_rows(HERE, '{"a": 1}').objects()) == [("f: line 1", {"a": 1})]


def test_csv_rows_are_lists_and_mappings() -> None:
    rows = csv_rows(HERE, 'a, b\n1,"two\nlines"\n\n3,4\u2028\n', required=("b",))
    assert rows.header == ("a", "b")
    assert rows.fields("b", "a") == [["two\nlines", "4\u2028"], ["1", "3"]]
    assert list(rows.objects())[1] == ("f: line 5", {"a": "3", "b": "4\u2028"})


def test_blanks_after_commas_are_left_out_where_the_header_has_them() -> None:
    assert csv_rows(HERE, '\na, b, c\r\n1, v 2, "3, 4"\n').rows == [["1", "v 2", "3, 4"]]
    assert csv_rows(HERE, "a,b\n1, v 2\n").rows == [["1", " v 2"]]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("\n0", "f: line 2: the field 'a' is missing; the header is 0"),
        ("", "f: line 1: the field 'a' is missing; the header is empty"),
        ("\n\n", "f: line 1: the field 'a' is missing"),
        ("b\na", "f: line 1: the field 'a' is missing; the header is b"),
        ("\na,b\n\n1\n", "f: line 4: the field b is missing"),
        ("a\n1,2\n", "f: line 2: the field number 2 has no name in the header"),
        ("\na,b,a\n1,2,3\n", "f: line 2: two columns are named 'a'; rename or remove one"),
        ("a\n" + "x" * 200_000, "f: line 2: not valid CSV"),
    ],
)
def test_damaged_csv(content: str, complaint: str) -> None:
    with pytest.raises(DataError, match=complaint):
        csv_rows(HERE, content, required=("a",))


@pytest.mark.parametrize(
    ("start", "end", "seconds"),
    [
        ("1,5", "3,0", (1.5, 3.0)),
        ("1,500", "1.299,25", (1.5, 1299.25)),
        ("0:01", "1:05,5", (1.0, 65.5)),
        ("0:01:05.25", "1:00:00", (65.25, 3600.0)),
        ("90:15", "90:16", (5415.0, 5416.0)),
        ("2", "2.5", (2.0, 2.5)),
    ],
)
@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("head", ["", "\ufeff", "sep={}\r\n", "\ufeffsep={}\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_tables_of_spreadsheets_of_any_country(
    tmp_path: Path,
    start: str,
    end: str,
    seconds: tuple[float, float],
    separator: str,
    head: str,
    encoding: str,
) -> None:
    """Semicolons and tabs, decimal commas, clock times; texts stay, and lines keep their numbers."""
    path = tmp_path / "t.csv"
    head = head.format(separator) if encoding == "utf-8" else head.format(separator).lstrip("\ufeff")
    lines = ["video_id;start;end;title", f'v;{start};{end};"1,5; 2:30"', "w;soon;2;x"]
    path.write_bytes((head + "\r\n".join(lines).replace(";", separator)).encode(encoding))
    rows = read_csv(path, ("video_id", "start", "end"))
    assert rows.header == ("video_id", "start", "end", "title")
    (place, first), (_, second) = rows.objects()
    assert (float(first["start"]), float(first["end"])) == seconds
    assert first["title"] == f"1,5{separator} 2:30"
    assert place == f"{path}: line {3 if head.strip(chr(0xFEFF)) else 2}"
    with pytest.raises(
        DataError, match=f"line {4 if head.strip(chr(0xFEFF)) else 3}: start: 'soon' is no number"
    ):
        number(second["start"], "start", f"{path}: {rows.where(1)}")


@pytest.mark.parametrize(
    "table",
    [
        "Video_ID;Start;END\nv;1,5;2\n;;\n\n",
        "VIDEO_ID\tSTART\tEND\nv\t0:01.5\t0:02\n \t\t\n",
        '"Video_id","Start","End"\nv,1.5,2\n,,\n',
    ],
)
def test_capitals_in_a_header_and_lines_without_content(table: str) -> None:
    """As spreadsheets leave them: a name in capitals was missing, and an empty line no number."""
    rows = csv_rows(HERE, table, ("video_id", "start", "end"))
    assert [(row["video_id"], float(row["start"]), float(row["end"])) for _, row in rows.objects()] == [
        ("v", 1.5, 2.0)
    ]


@pytest.mark.parametrize("cell", ["1\u00a0001,5", "1\u202f001.5", "1 001,5", "1'001.5", "1\u2019001,5"])
def test_thousands_that_are_apart(cell: str) -> None:
    ((_, row),) = csv_rows(HERE, f"id;start\nv;{cell}\n", ("id", "start")).objects()
    assert row["start"] == "1001.5"


def test_a_time_in_json_may_be_one_of_a_clock() -> None:
    assert number("0:01:05.5", "start", "here") == 65.5
    with pytest.raises(DataError, match="write seconds"):
        number("0:75:00", "start", "here")
    with pytest.raises(DataError, match="is no number"):
        number("0:05", "score", "here")


@pytest.mark.parametrize(
    ("cell", "complaint"),
    [
        ("1,299", "write 1299, or 1.299"),  # a thousand, or one and a bit?
        ("1,299.00", "write 1299, or 1.299"),
        ("0:75:00", "write seconds, or h:mm:ss.s"),
        ("0:00:75", "write seconds, or h:mm:ss.s"),
        ("00:00:01:12", "write seconds, or h:mm:ss.s"),  # pictures of an unknown rate
    ],
)
def test_numbers_that_may_mean_two_things_are_refused(cell: str, complaint: str) -> None:
    ((place, row),) = csv_rows(HERE, f'id,start\nv,"{cell}"\n', ("id", "start")).objects()
    with pytest.raises(DataError, match=re.escape(f"{cell!r} is no number >= 0; {complaint}")):
        number(row["start"], "start", place)
    assert csv_rows(HERE, 'id,start\nv,"1,5"\n', ("start",)).fields("start") == [["1.5"]]
    assert csv_rows(HERE, 'id,score\nv,"1:05"\n', ("score",)).fields("score") == [["1:05"]]


def test_a_csv_file_that_begins_with_an_empty_line_is_read(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text("\na,b\n1,2\n")
    assert list(read_csv(file).objects()) == [(f"{file}: line 3", {"a": "1", "b": "2"})]


def test_blank_separated_rows() -> None:
    assert blank_separated_rows(HERE, "1 a\n\n 2\tb\n", ("n", "x")).rows == [["1", "a"], ["2", "b"]]
    with pytest.raises(DataError, match="f: line 3: the field 'x' is missing; a row reads: n x"):
        blank_separated_rows(HERE, "1 a\n\n2\n", ("n", "x"))
    with pytest.raises(DataError, match="f: line 1: 3 fields; a row reads: n x"):
        blank_separated_rows(HERE, "1 a b\n", ("n", "x"))


def test_fields() -> None:
    assert text({"a": 7}, "a", "f: line 1") == "7"
    assert number("2.5", "a", "f: line 1") == 2.5
    assert span([1, 2], "ts", "f: line 1") == (1.0, 2.0)


@pytest.mark.parametrize("value", [None, "x", -1, float("nan"), float("inf"), 10**400, [1]])
def test_a_field_that_is_no_number(value: object) -> None:
    with pytest.raises(DataError, match=r"f: line 1: a: .* is no number >= 0"):
        number(value, "a", "f: line 1")


@pytest.mark.parametrize("value", [None, 3, "12", [1], [1, 2, 3], [1, "x"]])
def test_a_field_that_is_no_span(value: object) -> None:
    with pytest.raises(DataError, match="f: line 1: ts: "):
        span(value, "ts", "f: line 1")


@pytest.mark.parametrize("row", [{}, {"a": None}, {"a": ""}])
def test_a_field_that_is_missing(row: dict[str, object]) -> None:
    with pytest.raises(DataError, match="f: line 1: the field 'a' is missing"):
        text(row, "a", "f: line 1")
