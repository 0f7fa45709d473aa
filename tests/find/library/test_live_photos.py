"""Films of Live Photos are recognised by what they say and by the picture beside them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from made_films import Pictures, make_film
from moviola.media import read_facts
from moviola.search import Filter, Library

TAG = {"com.apple.quicktime.content.identifier": "3F2504E0-4F89-11D3-9A0C-0305E82C3301"}


@pytest.mark.parametrize(
    ("name", "seconds", "beside", "tagged", "about"),
    [
        ("IMG_0001.MOV", 2.0, "IMG_0001.HEIC", False, "IMG_0001.HEIC"),
        ("IMG_0001.mov", 3.0, "IMG_0001.jpg", False, "IMG_0001.jpg"),
        ("IMG_0001_HEVC.MOV", 3.0, "IMG_0001.HEIC", False, "IMG_0001.HEIC"),
        ("IMG_0001.mp4", 3.0, "IMG_0001.JPEG", False, "IMG_0001.JPEG"),
        ("IMG_0001.MOV", 2.0, "", True, "by its tag"),
        ("IMG_0001.MOV", 2.0, "IMG_0002.HEIC", False, None),
        ("IMG_0001.MOV", 20.0, "IMG_0001.HEIC", False, None),
        ("IMG_0001.mkv", 2.0, "IMG_0001.HEIC", False, None),
    ],
)
def test_films_of_live_photos(
    tmp_path: Path, name: str, seconds: float, beside: str, tagged: bool, about: str | None
) -> None:
    """A long film beside a picture of its name is a film; one by its tag needs no picture."""
    options = {"movflags": "use_metadata_tags"} if tagged else {}
    film = make_film(tmp_path / name, Pictures(seconds), tags=TAG if tagged else {}, **options)
    if beside:
        (tmp_path / beside).write_bytes(b"a picture")
    facts = read_facts(film)
    held = [one.about for one in facts.holdings if one.held_as == "live photo"]
    assert (facts.live, held) == (about is not None, [about] if about else [])


def test_they_are_left_out_or_looked_for(tmp_path: Path, opened: Callable[..., Library]) -> None:
    """The account says so, and a library that was restored still knows."""
    for name in ("IMG_0001.MOV", "IMG_0002.MOV"):
        make_film(tmp_path / "films" / name, Pictures(2.0), tags={"title": name})
    (tmp_path / "films" / "IMG_0001.HEIC").write_bytes(b"a picture")
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(tmp_path / "films")
    for wanted, ids in (("without", {"IMG_0002"}), ("only", {"IMG_0001"})):
        found = library.search("a wall", filter=Filter.parse(live_photos=wanted))
        assert {moment.video_id for moment in found} == ids
    account = library.catalogue.account(library.catalogue.video("IMG_0001").row)
    (held,) = (one for one in account.holdings or () if one.held_as == "live photo")
    assert str(held) == "IMG_0001.HEIC: film of a Live Photo, chosen by --live-photos"
    library.indexer.remove(["IMG_0001"])
    library.indexer.restore(["IMG_0001"])
    found = library.search("a wall", filter=Filter.parse(live_photos="only"))
    assert {moment.video_id for moment in found} == {"IMG_0001"}
