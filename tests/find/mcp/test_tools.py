"""The tools, through the SDK's client in this process."""

from __future__ import annotations

import json
import socket
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from io import BytesIO
from pathlib import Path
from threading import Event as ThreadEvent
from typing import Any

import anyio
import numpy as np
import pytest
from mcp import Client
from mcp.server import MCPServer
from mcp.types import CallToolResult, ImageContent, ListToolsResult, TextContent, Tool
from PIL import Image

from chat_server import ChatModel, said, verdict
from moviola.errors import InvalidValue
from moviola.library import Catalogue, LibraryStore
from moviola.library.disk.places import Copy
from moviola.looker import Endpoint, Looker, Sending
from moviola.mcp import library_server, serve_http
from moviola.mcp.asking import AskTool
from moviola.mcp.tools import LONGEST_SIDE, picture
from moviola.mcp.values import FoundMoments
from moviola.media import probe
from moviola.search import Library, Marked, MarkedMoment, SearchOptions, SearchResult
from moviola.search.limited import NotDone
from moviola.types import BANDS, Band, Moment, shown_score

Call = Callable[..., CallToolResult]


def structure(result: CallToolResult) -> dict[str, Any]:
    assert not result.is_error, result.content
    assert result.structured_content is not None
    return dict(result.structured_content)


def pictures(result: CallToolResult) -> list[Image.Image]:
    contents = [content for content in result.content if isinstance(content, ImageContent)]
    assert all(content.mime_type == "image/jpeg" for content in contents)
    return [Image.open(BytesIO(b64decode(content.data))) for content in contents]


def text(result: CallToolResult) -> str:
    (content,) = (content for content in result.content if isinstance(content, TextContent))
    return content.text


def error(result: CallToolResult) -> str:
    assert result.is_error and result.structured_content is None
    return text(result)


def answering(monkeypatch: pytest.MonkeyPatch, answer: SearchResult) -> list[tuple[Any, SearchOptions]]:
    """Let the library answer with that; what it is asked."""
    calls: list[tuple[Any, SearchOptions]] = []

    def search(_: Library, query: Any, options: SearchOptions) -> SearchResult:
        calls.append((query, options))
        return answer

    monkeypatch.setattr(Library, "search", search)
    return calls


# ---- what is offered ---------------------------------------------------------------------------------------


def offered(library: Library, clips: Path | None) -> tuple[str, ListToolsResult]:
    async def ask() -> tuple[str, ListToolsResult]:
        async with Client(library_server(library, clips=clips)) as client:
            return client.instructions or "", await client.list_tools()

    return anyio.run(ask)


def test_tools_say_what_they_are(library: Library, clips: Path) -> None:
    instructions, listed = offered(library, clips)
    tools = {tool.name: tool for tool in listed.tools}
    assert set(tools) == {"search_moments", "look", "list_videos", "cut_clip"}
    assert all(name in instructions for name in tools)
    for name, tool in tools.items():
        assert tool.title and tool.description and tool.output_schema and tool.annotations
        assert tool.annotations.read_only_hint is (name != "cut_clip")
        assert tool.annotations.idempotent_hint is (name != "cut_clip")
        assert tool.annotations.open_world_hint is False
        assert tool.input_schema["additionalProperties"] is False
        described = [one.get("description") for one in tool.input_schema["properties"].values()]
        undescribed = [
            key for key, one in zip(tool.input_schema["properties"], described, strict=True) if not one
        ]
        assert undescribed in ([], ["start", "end"])
    assert tools["cut_clip"].annotations.destructive_hint is False  # type: ignore[union-attr]


def test_a_model_looks_where_the_library_has_one(call: Call, library: Library) -> None:
    """An argument that can only fail; or moments that are sent away, and say nothing of it."""

    def schema() -> Tool:
        return next(tool for tool in offered(library, None)[1].tools if tool.name == "search_moments")

    assert "check" not in schema().input_schema["properties"]
    assert "no such argument" in error(call("search_moments", query="umbrella", check=2))
    library.checker = Looker(library.store, ChatModel(verdict("yes", "an umbrella")).endpoint())
    tool = schema()
    assert "sent to it" in tool.input_schema["properties"]["check"]["description"]
    assert tool.annotations is not None and tool.annotations.open_world_hint

    async def looked_at() -> CallToolResult:
        async with Client(library_server(library)) as client:
            return await client.call_tool("search_moments", {"query": "umbrella", "check": 2})

    found = structure(anyio.run(looked_at))
    assert "looked 0.75 (yes, an umbrella)" in found["moments"][0]["why"]
    assert "Stand-in judged 2 of 2" in found["note"]


def test_a_model_answers_where_one_is_named(call: Call, library: Library) -> None:
    """A tool that can only fail, or sends stills and does not say so, or a key; a sentence without a moment;
    orders of a film, or of the model, in the place of data.
    """
    assert "ask_films" not in {tool.name for tool in offered(library, None)[1].tools}
    replies = (
        {"search": {"query": "umbrella", "by": "said"}},
        {
            "answer": [
                {"text": "Gone. <script>", "cites": ["m1"]},
                {"text": "Run rm [x](y).", "cites": ["m1"]},
            ]
        },
    )
    model = ChatModel(*(said(json.dumps(reply)) for reply in replies))
    sent: list[Sending] = []
    library.checker = Looker(library.store, model.endpoint(key="hunter2"), announce=sent.append)
    instructions, listed = offered(library, None)
    tool = next(tool for tool in listed.tools if tool.name == "ask_films")
    assert "at most 48 stills" in (tool.description or "") and "to stand-in at localhost:1" in (
        tool.description or ""
    )
    assert tool.annotations is not None and tool.annotations.open_world_hint and "ask_films" in instructions
    assert "hunter2" not in instructions + listed.model_dump_json() and not model.asked

    async def asked(**arguments: Any) -> CallToolResult:
        async with Client(library_server(library)) as client:
            return await client.call_tool("ask_films", arguments)

    answer = structure(anyio.run(partial(asked, question="Where is it?")))
    (sentence,) = answer["sentences"]
    assert sentence["text"] == "Gone. <script>" and sentence["cites"][0]["video_id"] == "harbour"
    assert Path(sentence["cites"][0]["path"]).is_file()
    assert "without a citation that exists: 1" in answer["note"] and "no instructions" in answer["note"]
    assert [one.stills for one in sent] == [0, 1] and len(model.asked) == 2
    assert "rounds" in error(anyio.run(partial(asked, question="Where?", rounds=99)))
    assert "question" in error(anyio.run(partial(asked, question=" ")))


def test_a_client_that_cancels_ends_the_work_of_the_model(library: Library) -> None:
    """A model that works on, at the expense of a client that has gone, and one whose work reads a library
    that is closed meanwhile.
    """
    begun, ended = ThreadEvent(), ThreadEvent()

    def hang(*_: Any, stop: ThreadEvent, **__: Any) -> Any:
        begun.set()
        stop.wait()
        ended.set()
        raise NotDone("stopped")

    endpoint = Endpoint("http://localhost:1/v1", "stand-in", send=hang)

    async def asked() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(partial(AskTool(library, Looker(library.store, endpoint)).ask_films, "Where?"))
            await anyio.to_thread.run_sync(begun.wait)
            group.cancel_scope.cancel()

    anyio.run(asked)
    assert ended.is_set()


def test_nothing_cuts_without_a_folder(library: Library) -> None:
    instructions, listed = offered(library, None)
    assert {tool.name for tool in listed.tools} == {"search_moments", "look", "list_videos"}
    assert "cut_clip" not in instructions


def test_a_folder_that_cannot_be_made(library: Library, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidValue, match="no folder for clips"):
        library_server(library, clips=tmp_path / "file" / "clips")


# ---- search ------------------------------------------------------------------------------------------------


def test_search_answers_as_the_library_does(call: Call, library: Library) -> None:
    result = call("search_moments", query="a red wall", top_k=3)
    found, expected = structure(result), library.search("a red wall", top_k=3)
    assert found["query"] == "a red wall" and found["confident"] is expected.confident
    names = ("rank", "video_id", "source", "snippet", "snippet_kind")
    assert [[row[name] for name in (*names, "start", "end", "score")] for row in found["moments"]] == [
        [
            *(getattr(moment, name) for name in names),
            round(moment.start, 3), round(moment.end, 3), float(shown_score(moment.score)),
        ]
        for moment in expected
    ]  # fmt: skip
    assert all(Path(row["path"]).is_file() for row in found["moments"])
    assert len(pictures(result)) == expected.confident
    assert FoundMoments.model_validate_json(text(result)).model_dump() == found


def test_a_query_of_several_lines_is_answered_with_a_picture(call: Call) -> None:
    result = call("search_moments", query="a red\nwall", top_k=3)
    assert structure(result)["confident"] and len(pictures(result)) == 1


def test_pictures_come_from_the_library_the_clips_or_a_folder_of_their_own(
    library: Library, films: Path, clips: Path, tmp_path: Path
) -> None:
    given = tmp_path / "pictures"
    for place in (given, clips, films / "deep", tmp_path):
        place.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (8, 8)).save(place / "x.png")
    (given / "link.png").symlink_to(tmp_path / "x.png")
    server = library_server(library, clips=clips, pictures=given)

    async def ask(path: Path) -> CallToolResult:
        async with Client(server) as client:
            return await client.call_tool("search_moments", {"query": {"terms": [{"picture": str(path)}]}})

    for allowed in (given, clips, films / "deep"):
        assert not anyio.run(ask, allowed / "x.png").is_error
    for refused in (tmp_path / "x.png", given / "link.png", given / ".." / "x.png"):
        assert "outside of the folders" in error(anyio.run(ask, refused))
    (films / "deep" / "x.png").unlink()


def test_every_parameter_reaches_the_library(
    call: Call, clips: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picture = clips / "x.png"
    calls = answering(monkeypatch, SearchResult(confident=True))
    terms = [{"text": "a dog"}, {"video_id": "street", "time": 5}, {"picture": str(picture)}]
    right, wrong = ({"video_id": "street", "start": start, "end": start + 1} for start in (1, 3))
    query = {
        "terms": terms, "then": [{"terms": [{"text": "rain"}], "gap": 5}], "without": ["snow"],
        "right": [right], "wrong": [wrong],
    }  # fmt: skip
    texts = {
        "folder": "films", "modified": "2024-05-01..", "video_length": "..60", "moment_length": "2..",
        "where": "0..50%",
    }  # fmt: skip
    call(
        "search_moments", query=query, videos=["street"], filter=texts, by="visual", top_k=4, per_video=1,
        min_score=0.2, refine=False, weak=False,
    )  # fmt: skip
    ((query, options),) = calls
    assert (
        str(query)
        == f"a dog + like street@5 + like {picture}, within 5 s then rain; not snow (1 right, 1 wrong)"
    )
    given = options.filter
    assert (given.folder, given.video_length, given.moment_length) == ("films", (None, 60), (2, None))
    assert given.modified[0].year == 2024 and given.where[1].share
    wanted = SearchOptions(
        top_k=4, per_video=1, videos=["street"], by="visual", filter=given, min_score=0.2, refine=False,
        weak=False,
    )  # fmt: skip
    assert options == wanted


def test_how_a_query_was_read_is_said(call: Call) -> None:
    found = structure(call("search_moments", query="a street without rain"))
    assert found["query"] == "a street; not rain" and "Read as “a street” without “rain”" in found["note"]


def test_more_like_a_moment(call: Call) -> None:
    found = structure(call("search_moments", query={"terms": [{"video_id": "street", "time": 6}]}, top_k=1))
    assert [moment["video_id"] for moment in found["moments"]] == ["street"]


def test_marks_alone_are_a_question(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with what must not be there, and with what comes next."""
    right = [{"video_id": "street", "start": 1, "end": 4}]
    found = structure(call("search_moments", query={"right": right}, top_k=1))
    assert [moment["video_id"] for moment in found["moments"]] == ["street"]
    assert found["query"] == "(1 right)"
    calls = answering(monkeypatch, SearchResult(confident=True))
    call("search_moments", query={"right": right, "without": ["snow"]})
    call("search_moments", query={"right": right, "then": [{"terms": [{"text": "rain"}]}]})
    alone = Marked(None, (MarkedMoment("street", 1, 4),))
    assert [query for query, _ in calls] == [alone.without("snow"), alone.then("rain")]


def test_steps_of_a_sequence(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = (Moment("street", 2.0, 4.0, 0.5, 1), Moment("street", 6.0, 9.0, 0.5, 1))
    answering(monkeypatch, SearchResult([Moment("street", 2.0, 9.0, 0.5, 1, steps=steps)]))
    found = structure(
        call("search_moments", query={"terms": [{"text": "a"}], "then": [{"terms": [{"text": "b"}]}]})
    )
    assert found["moments"][0]["steps"] == [{"start": 2.0, "end": 4.0}, {"start": 6.0, "end": 9.0}]


def test_a_place_without_a_distance_is_said(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, SearchResult([Moment("street", 2.0, 9.0, 0.9, 1)]))
    assert structure(call("search_moments", query="a", filter={"near": "1,2,3km"}))["note"] == ""
    calls = call("search_moments", query="a", filter={"near": "1,2"})
    assert "near 1,2: at most 1 km away" in structure(calls)["note"]


def test_a_weak_score_is_below_the_line(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, SearchResult([Moment("street", 2.0, 9.0, 0.1999, 1, band="weak")]))
    (moment,) = structure(call("search_moments", query="a"))["moments"]
    assert (moment["score"], moment["band"]) == (0.199, "weak")


@pytest.mark.parametrize(
    ("band", "said", "shown"),
    [("weak", "Nothing matches", 3), ("possible", "Nothing certain; 8 possible", 8), ("strong", "", 8)],
)
def test_how_sure_an_answer_is_is_said(
    call: Call, monkeypatch: pytest.MonkeyPatch, band: Band, said: str, shown: int
) -> None:
    """Possible moments are shown; those that are only the nearest have no sheet."""
    moments = [Moment("street", float(at), at + 4.0, BANDS[band], at + 1, band=band) for at in range(8)]
    answering(monkeypatch, SearchResult(moments))
    result = call("search_moments", query="an octopus")
    found = structure(result)
    assert found["confident"] == (band == "strong")
    assert found["note"].startswith(said) and bool(said) == bool(found["note"])
    assert len(found["moments"]) == shown and len(pictures(result)) == (band != "weak")
    if band == "weak":
        return
    (sheet,) = pictures(result)
    assert max(sheet.size) <= LONGEST_SIDE


def test_no_moment_at_all(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, SearchResult(confident=False))
    result = call("search_moments", query="an octopus")
    assert structure(result)["moments"] == [] and pictures(result) == []
    assert "No moment at all" in structure(result)["note"]


def test_a_moment_whose_file_is_gone(call: Call, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(*_: object, **__: object) -> None:
        raise FileNotFoundError("street.mp4")

    monkeypatch.setattr("moviola.export.sheet.frame_at", gone)
    answering(monkeypatch, SearchResult([Moment("street", 2.0, 4.0, 0.9, 1)], confident=True))
    result = call("search_moments", query="a blue wall", videos=["street"], top_k=1)
    assert "No pictures of" not in structure(result)["note"]  # small stills are kept
    monkeypatch.setattr(LibraryStore, "kept_still", lambda *_: None)
    result = call("search_moments", query="a blue wall", videos=["street"], top_k=1)
    assert "No pictures of: street (street.mp4)" in structure(result)["note"]
    assert len(pictures(result)) == 1


OPTIONAL = ("filter", "videos", "by", "top_k", "per_video", "min_score", "refine", "weak")


@pytest.mark.parametrize("blank", [None, "", " ", [], [""], [None]])
def test_omitted_parameters_may_be_sent_as_null(
    call: Call, monkeypatch: pytest.MonkeyPatch, blank: object
) -> None:
    """Some clients fill in every optional argument; refused, they would never get an answer."""
    calls = answering(monkeypatch, SearchResult(confident=False))
    structure(call("search_moments", query="a red wall"))
    structure(call("search_moments", query="a red wall", **dict.fromkeys(OPTIONAL, blank), unheard_of=blank))
    term = {"text": "a red wall", "picture": None, "video_id": "", "time": None, "weight": None}
    query = {"terms": [term], "then": None, "without": [], "right": None, "concept": "", "first": None}
    structure(call("search_moments", query=query, filter={"tag": "", "near": None}))
    assert calls[0] == calls[1] == calls[2]
    monkeypatch.undo()
    plain = structure(call("list_videos"))
    assert structure(call("list_videos", folder=blank, offset=blank)) == plain
    assert error(call("look", video_id=blank, start=0, end=1)) == "video_id: is missing; give it"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "query: is missing; give it"),
        ({"query": {}}, "empty query"),
        ({"query": " "}, "query: is missing; give it"),
        ({"query": {"terms": [{"video_id": "street"}]}}, "query.terms.1.video_id.time: is missing"),
        ({"query": {"terms": [{"video_id": "strete", "time": 2}]}}, "did you mean street"),
        ({"query": {"terms": [{"video_id": "street", "time": 99}]}}, "the video ends at 12 s"),
        ({"query": {"terms": [{"picture": "no/picture.png"}]}}, "outside of the folders"),
        ({"query": {"terms": [{"picture": "/etc/hostname"}]}}, "outside of the folders"),
        ({"query": {"terms": [{"picture": "~no such user/picture.png"}]}}, "cannot be followed"),
        ({"query": {"terms": [{"picture": "0" * 32}]}}, f"picture {'0' * 32}: no saved search has it"),
        (
            {"query": "a", "videos": ["none"]},
            "no such video in this library; list_videos shows what is there",
        ),
        ({"query": "a", "filter": {"folder": "no/folder"}}, "is in this folder; list_videos shows the paths"),
        ({"query": "a", "filter": {"moment_length": "long"}}, "write LOW..HIGH"),
        ({"query": "a", "by": "text"}, "holds no text read in pictures"),
        ({"query": "a", "top_k": 21}, "top_k 21: give at most 20"),
        ({"query": "a" * 2001}, "give at most 2000 characters"),
        ({"query": "a", "by": "smell"}, "by 'smell': give one of 'all'"),
        ({"query": {"terms": [{"text": "a"}], "then": "rain"}}, "query.then 'rain': give a valid list"),
        (
            {"query": {"terms": [{"text": "a"}], "not": ["snow"]}},
            "query.not: no such field; check the spelling",
        ),
        ({"query": "a", "limit": 3}, "did you mean top_k?"),
        ({"query": "a", "tag": "sea"}, "did you mean filter?"),
        ({"text": "a"}, "did you mean query? It takes by, filter"),
    ],
)
def test_what_cannot_be_asked(call: Call, arguments: dict[str, Any], message: str) -> None:
    assert message in error(call("search_moments", **arguments))


def test_a_defect_is_no_answer(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a secret of ours")

    monkeypatch.setattr(Library, "search", broken)
    assert "secret" not in error(call("search_moments", query="a"))


@pytest.mark.parametrize("words", ["💃🏽", "שלום", "'; DROP TABLE videos; --", "<script>alert(1)</script>"])
def test_odd_texts(call: Call, words: str) -> None:
    assert structure(call("search_moments", query=words, top_k=1))["query"] == words


# ---- look --------------------------------------------------------------------------------------------------


def test_look(call: Call) -> None:
    result = call("look", video_id="harbour", start=1, end=5, frames=4)
    seen = structure(result)
    assert seen["times"] == [1.5, 2.5, 3.5, 4.5]
    assert [word["text"] for word in seen["words"]] == ["The umbrella is gone."]
    stills = [np.asarray(still) for still in pictures(result)]
    assert [still.shape for still in stills] == [(384, 512, 3)] * 4
    # The wall is red, but for the time in the corner.
    assert all(np.abs(still[-1, 0].astype(int) - (200, 40, 40)).max() < 25 for still in stills)
    assert all((still[:60, :200] > 200).all(axis=2).any() for still in stills)


def test_look_to_the_end_of_the_video(call: Call) -> None:
    seen = structure(call("look", video_id="street", start=10, end=99, frames=1))
    assert (seen["end"], seen["times"]) == (12.0, [11.0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"video_id": "strete", "start": 0, "end": 1}, "did you mean street"),
        ({"video_id": "broken", "start": 0, "end": 1}, "refused when indexed"),
        ({"video_id": "street", "start": 5, "end": 5}, "the end must come after the start"),
        ({"video_id": "street", "start": 12, "end": 13}, "ends at 12 s"),
        ({"video_id": "street", "start": -1, "end": 1}, "start -1: give at least 0"),
        ({"video_id": "street", "start": 0, "end": 1, "frames": 13}, "frames 13: give at most 12"),
    ],
)
def test_what_cannot_be_looked_at(call: Call, arguments: dict[str, Any], message: str) -> None:
    assert message in error(call("look", **arguments))


def test_large_pictures_are_made_smaller() -> None:
    large = Image.open(BytesIO(b64decode(picture(np.zeros((4000, 2000, 3), np.uint8)).data)))
    assert large.size == (LONGEST_SIDE // 2, LONGEST_SIDE)


# ---- the list ----------------------------------------------------------------------------------------------


def test_pages(call: Call) -> None:
    whole = structure(call("list_videos"))
    assert [video["video_id"] for video in whole["videos"]] == ["broken", "deep/yard", "harbour", "street"]
    assert whole["total"] == 4 and whole["next_offset"] is None
    assert whole["videos"][0]["state"] == "refused" and whole["videos"][0]["error"]
    first = structure(call("list_videos", limit=3))
    rest = structure(call("list_videos", limit=3, offset=first["next_offset"]))
    assert first["videos"] + rest["videos"] == whole["videos"] and rest["next_offset"] is None


def test_filters_of_the_list(call: Call, films: Path) -> None:
    def ids(**arguments: Any) -> list[str]:
        return [video["video_id"] for video in structure(call("list_videos", **arguments))["videos"]]

    assert ids(text="HARB") == ["harbour"]
    assert ids(folder=str(films / "deep")) == ["deep/yard"]
    assert ids(text="harb", folder="*/deep/*") == []
    assert "no video of this library is in this folder" in error(call("list_videos", folder="nowhere"))


# ---- clips -------------------------------------------------------------------------------------------------


def test_a_clip_is_cut(call: Call, clips: Path) -> None:
    clip = structure(call("cut_clip", video_id="street", start=2, end=5, name="a street"))
    path = clips.resolve() / "a street.mp4"
    assert (clip["path"], clip["bytes"]) == (str(path), path.stat().st_size)
    assert probe(path).duration == pytest.approx(3.0, abs=1 / 5)


@pytest.mark.parametrize(
    "name",
    [
        "../out.mp4",
        "/tmp/out.mp4",
        "a/b.mp4",
        "..",
        ".hidden",
        "a\\b.mp4",
        "c:out.mp4",
        "a\x00.mp4",
        "a\nb",
    ],
)
def test_clips_lie_in_their_folder(call: Call, clips: Path, tmp_path: Path, name: str) -> None:
    before = sorted(tmp_path.rglob("*"))
    assert "name of a file" in error(call("cut_clip", video_id="street", start=2, end=5, name=name))
    assert sorted(tmp_path.rglob("*")) == before


def test_nothing_is_written_over(call: Call, clips: Path, tmp_path: Path) -> None:
    """Not a clip, and not what a link among the clips points to."""
    clips.mkdir(parents=True, exist_ok=True)
    (clips / "first.mp4").write_text("a clip")
    (tmp_path / "outside").write_text("something else")
    (clips / "link.mp4").symlink_to(tmp_path / "outside")
    (clips / "dangling.mp4").symlink_to(tmp_path / "nothing")
    for name in ("first", "link", "dangling.mp4"):
        assert "already" in error(call("cut_clip", video_id="street", start=2, end=5, name=name))
    assert (clips / "first.mp4").read_text() == "a clip"
    assert (tmp_path / "outside").read_text() == "something else" and not (tmp_path / "nothing").exists()


def test_clips_of_what_is_not_there(call: Call) -> None:
    assert "no such video" in error(call("cut_clip", video_id="none", start=0, end=1, name="a"))
    assert "ends at 12 s" in error(call("cut_clip", video_id="street", start=20, end=21, name="a"))
    assert "too long" in error(call("cut_clip", video_id="street", start=0, end=1, name="💃" * 100))


def test_a_file_that_cannot_be_examined(
    call: Call, monkeypatch: pytest.MonkeyPatch, library: Library
) -> None:
    lost = replace(library.catalogue.video("street"), path="x" * 300)
    monkeypatch.setattr("moviola.mcp.tools.there", lambda *_: lost)
    monkeypatch.setattr(Catalogue, "video", lambda *_: lost)
    assert "is gone" in error(call("look", video_id="street", start=1, end=5))


def test_a_clip_of_a_copy_where_the_first_file_is_away(
    call: Call, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Copy(1, str(tmp_path / "copy.mp4"), 0, 0)
    monkeypatch.setattr("moviola.library.Catalogue.copies_of", lambda *_: [copy])
    (films / "street.mp4").rename(copy.path)
    try:
        assert structure(call("cut_clip", video_id="street", start=2, end=5, name="from the copy"))["bytes"]
    finally:
        Path(copy.path).rename(films / "street.mp4")


# ---- many at once ------------------------------------------------------------------------------------------


def test_calls_at_once_answer_as_one_by_one(call: Call, library: Library, clips: Path) -> None:
    asks: list[tuple[str, dict[str, Any]]] = [
        ("search_moments", {"query": "a red wall", "top_k": 3}),
        ("search_moments", {"query": "a blue wall", "top_k": 3}),
        ("look", {"video_id": "harbour", "start": 1, "end": 5}),
        ("list_videos", {}),
    ]
    expected = [structure(call(tool, **arguments)) for tool, arguments in asks]
    found: dict[int, CallToolResult] = {}

    async def together() -> None:
        async with Client(library_server(library, clips=clips)) as client, anyio.create_task_group() as tasks:

            async def one(place: int) -> None:
                tool, arguments = asks[place % len(asks)]
                found[place] = await client.call_tool(tool, arguments)

            for place in range(4 * len(asks)):
                tasks.start_soon(one, place)

    anyio.run(together)
    assert [structure(found[place]) for place in range(4 * len(asks))] == expected * 4


def test_of_clips_of_one_name_one_is_cut(library: Library, clips: Path) -> None:
    results: list[CallToolResult] = []

    async def together() -> None:
        async with Client(library_server(library, clips=clips)) as client, anyio.create_task_group() as tasks:

            async def one(start: float) -> None:
                arguments = {"video_id": "street", "start": start, "end": start + 1, "name": "a"}
                results.append(await client.call_tool("cut_clip", arguments))

            for start in (0.0, 2.0, 4.0):
                tasks.start_soon(one, start)

    anyio.run(together)
    assert sorted(bool(result.is_error) for result in results) == [False, True, True]
    assert [path.name for path in clips.iterdir()] == ["a.mp4"]


# ---- over HTTP ---------------------------------------------------------------------------------------------


def test_http_is_for_this_machine_alone(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[Any, ...]] = []
    monkeypatch.setattr(MCPServer, "run", lambda _, *words, **options: ran.append((*words, options)))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(InvalidValue, match=rf"127.0.0.1:{port}: cannot listen there"):
            serve_http(library_server(library), port)
        assert not ran
    with pytest.raises(InvalidValue, match=r"127.0.0.1:70000: no such port"):
        serve_http(library_server(library), 70000)
    serve_http(library_server(library), port)
    assert ran == [("streamable-http", {"host": "127.0.0.1", "port": port})]
