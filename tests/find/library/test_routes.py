"""Films that move are found by any place of their way, and of them what was filmed there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from camera_tracks import BERLIN, gps5, with_data_track
from made_films import Pictures, make_film
from moviola.search import Filter, Library

LISBON = (38.7, -9.14)
NEAR = {"berlin": "52.52,13.405,2km", "lisbon": "38.7,-9.14,2km", "sea": "0,0,5km"}
SRT = """{number}
00:00:{second:02},000 --> 00:00:{after:02},000
[iso: 110] [shutter: 1/1600.0] [fnum: 170] [latitude: {north}] [longitude: {east}] [rel_alt: 1.300]

"""


@pytest.fixture(scope="module", params=["in a track", "in a file beside it"])
def moving(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A film that goes from Berlin to Lisbon and back, four seconds each, and one that stays in Berlin."""
    folder = tmp_path_factory.mktemp("films")
    for name, way in (("moves", [BERLIN, LISBON, BERLIN]), ("stays", [BERLIN] * 3)):
        film = make_film(folder / f"{name}.mp4", Pictures(12.0), tags={"title": f"journey {name}"})
        places = [place for place in way for _ in range(4)]
        if request.param == "in a track":
            with_data_track(film, [gps5(place) for place in places])
        else:
            cues = (
                SRT.format(number=at + 1, second=at, after=at + 1, north=place[0], east=place[1])
                for at, place in enumerate(places)
            )
            film.with_suffix(".srt").write_text("".join(cues))
    return folder


def test_near_finds_films_and_moments_by_any_place(moving: Path, opened: Callable[..., Library]) -> None:
    """Not by the first place alone; each moment is one of the time at which the film was there, however it
    was found; restored films still know their way.
    """
    library = opened(encoder="demo", sentence_encoder="none")
    library.index(moving)

    def found(near: str, query: str = "journey") -> Mapping[str, list[tuple[float, float]]]:
        moments: dict[str, list[tuple[float, float]]] = {}
        for one in library.search(query, top_k=50, filter=Filter.parse(near=NEAR[near]), weak=True):
            moments.setdefault(one.video_id, []).append((one.start, one.end))
        return moments

    def check() -> None:
        for query in ("journey", "a wall"):
            assert found("berlin", query).keys() == {"moves", "stays"}
            assert found("lisbon", query).keys() == {"moves"}
            assert not found("sea", query)
            assert all(4 <= (start + end) / 2 < 8 for start, end in found("lisbon", query)["moves"])
            middles = [(start + end) / 2 for start, end in found("berlin", query)["moves"]]
            assert not any(4 <= middle < 8 for middle in middles)

    check()
    places = {(round(one.latitude), round(one.longitude)): one.videos for one in library.facets().places}
    assert places == {(53, 13): 2, (39, -9): 1}
    library.indexer.remove(["moves"])
    library.indexer.restore(["moves"])
    check()
