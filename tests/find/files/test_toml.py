"""TOML goes out and comes back; damage is named with its line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moviola.errors import DataError, NotFound
from moviola.files.toml import read_toml, write_toml

texts = st.text(st.characters(codec="utf-8"), max_size=8)
values = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), texts)
tables = st.dictionaries(
    texts, st.one_of(values, st.lists(values, max_size=3), st.dictionaries(texts, values, max_size=3))
)


def test_a_name_with_an_emoji_or_a_control_sign_comes_back(tmp_path: Path) -> None:
    found = {"folder": "films 🎬", "sign": "\x7f\x00"}
    write_toml(tmp_path / "a.toml", found, head="written by moviola\n\nfor people")
    assert read_toml(tmp_path / "a.toml") == found
    lines = (tmp_path / "a.toml").read_text(encoding="utf-8").splitlines()
    assert lines[:4] == ["# written by moviola", "#", "# for people", ""]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(found=tables)
def test_all_tables_come_back(tmp_path: Path, found: dict[str, Any]) -> None:
    write_toml(tmp_path / "a.toml", found)
    assert read_toml(tmp_path / "a.toml") == found


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ("a = 1\nb = \n", "a.toml: line 2: not valid TOML .*column"),
        ('a = 1\nb = "x', "a.toml: line 2: not valid TOML"),
        ("a = 1\na = 2\n", "a.toml: line 2: not valid TOML"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path: Path, content: str, complaint: str) -> None:
    (tmp_path / "a.toml").write_text(content)
    with pytest.raises(DataError, match=complaint):
        read_toml(tmp_path / "a.toml")


def test_other_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        read_toml(tmp_path / "absent.toml")
    (tmp_path / "a.toml").write_bytes(b"a = '\xff'")
    with pytest.raises(DataError, match="line 1: not UTF-8"):
        read_toml(tmp_path / "a.toml")
