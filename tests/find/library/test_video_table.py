"""The table of videos beside the catalogue says the same, and is passed over where it is of another state."""

from __future__ import annotations

from mmap import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from moviola.features import Extent
from moviola.library import LibraryStore, VideoRow
from moviola.library.disk.video_table import VideoTable

numbers = st.integers(0, 2**62)
extents = st.none() | st.builds(
    Extent, st.integers(0, 99), numbers, st.integers(0, 10**6), st.integers(0, 2**32 - 1)
)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
videos = st.lists(
    st.builds(
        VideoRow, row=st.integers(1, 10**9), video_id=texts, path=texts, size=numbers, mtime_ns=numbers,
        hash=texts, sidecars=texts, state=st.sampled_from(["ready", "partial"]), error=texts,
        duration=st.floats(0, 1e6), width=st.integers(0, 9999), height=st.integers(0, 9999), codec=texts,
        frames=extents, cues=extents,
    ),
    unique_by=lambda video: video.row,
    max_size=6,
)  # fmt: skip


@given(videos)
def test_a_table_holds_the_rows_that_went_in(rows: list[VideoRow]) -> None:
    table = VideoTable.of(rows)
    assert dict(table) == {row.row: row for row in rows}
    assert list(table) == sorted(row.row for row in rows)
    assert 0 not in table and "1" not in table
    with pytest.raises(KeyError):
        table[0]
    seen = [row for row in sorted(rows, key=lambda row: row.row) if row.frames]
    assert list(table.ids(table.with_frames)) == [row.video_id for row in seen]
    assert list(table.extents(table.with_frames)) == [row.frames for row in seen]


def row(number: int) -> VideoRow:
    return VideoRow(number, f"v{number}", f"/{number}.mp4", 1, 2, "", "", "ready", frames=Extent(0, 0, 3))


@pytest.fixture
def store(tmp_path: Path) -> LibraryStore:
    return LibraryStore(tmp_path / "library", encoder="demo", sentence_encoder="none")


def put(store: LibraryStore, *videos: VideoRow) -> None:
    with store.catalogue.transaction():
        for video in videos:
            store.catalogue.put(video, [])


def test_texts_of_videos_are_mapped(store: LibraryStore) -> None:
    """Those of all videos would be copied for each view of a large library."""
    with store.writing():
        put(store, row(0))
    with store.writing():
        put(store, row(1))
    for text in store.searchable().texts:
        root: object = text
        while isinstance(root, np.ndarray):
            root = root.base
        assert isinstance(root, memoryview) and isinstance(root.obj, mmap)


def test_a_writer_that_ends_leaves_a_table(store: LibraryStore, monkeypatch: pytest.MonkeyPatch) -> None:
    refused = VideoRow(0, "bad", "/bad.mp4", 1, 2, "", "", "refused")
    with store.writing():
        put(store, row(0), refused)
    monkeypatch.setattr(store.catalogue, "searchable", lambda *_: pytest.fail("the catalogue was read"))
    assert [video.video_id for video in store.searchable().values()] == ["v0"]


def test_a_table_of_another_state_is_passed_over(store: LibraryStore) -> None:
    with store.writing():
        put(store, row(0))
    put(store, row(1))  # as by a writer that was killed before it ended
    assert [video.video_id for video in store.searchable().values()] == ["v0", "v1"]
    with store.writing():
        pass
    assert [video.video_id for video in store.searchable().values()] == ["v0", "v1"]


def test_a_library_without_videos_has_a_table(store: LibraryStore) -> None:
    with store.writing():
        pass
    assert len(store.searchable()) == 0
    assert len(store.features_of(store.searchable())) == 0
