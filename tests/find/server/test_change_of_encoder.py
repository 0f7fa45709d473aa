"""A server, and an agent's tools, beside another process that changes the encoder of their library."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from moviola.mcp.tools import LibraryTools
from moviola.search import Library
from other_encoder import write_other_encoder

CHANGE = """
import sys
from moviola.search import Library

def wait(step):
    print(flush=True)
    sys.stdin.readline()

with Library(sys.argv[1]) as library:
    library.indexer.use_encoder(sys.argv[2], both_from=float(sys.argv[3]), progress=wait)
"""
QUERIES: tuple[Any, ...] = ("a red wall", "umbrella", {"terms": [{"video_id": "harbour", "time": 1.0}]})
Answer = Mapping[str, list[tuple[float, float, float]]]
"""Start, end and score of moments, by their videos."""


@contextmanager
def changing(folder: Path, other: Path, share: float) -> Iterator[subprocess.Popen[str]]:
    """A process that says when it has come a step on, and waits for a line."""
    command = [sys.executable, "-c", CHANGE, str(folder), str(other), str(share)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with process:
        try:
            yield process
        finally:
            process.kill()


def on(process: subprocess.Popen[str]) -> bool:
    """Wait for a step; False: it has ended."""
    assert process.stdout
    return bool(process.stdout.readline())


def go_on(process: subprocess.Popen[str]) -> None:
    assert process.stdin
    process.stdin.write("\n")
    process.stdin.flush()


def by_video(moments: list[Any]) -> Answer:
    found: dict[str, list[tuple[float, float, float]]] = {}
    for one in moments:
        found.setdefault(one["video_id"], []).append((one["start"], one["end"], one["score"]))
    return {name: sorted(own) for name, own in found.items()}


def served(client: TestClient) -> list[Answer]:
    """Answers of the page's address; scores in one order, so on one scale."""
    answers = []
    for query in QUERIES:
        sent = {"query": query, "top_k": 50, "weak": True}
        moments = client.post("/api/search", json=sent).raise_for_status().json()["moments"]
        assert [one["score"] for one in moments] == sorted((one["score"] for one in moments), reverse=True)
        answers.append(by_video(moments))
    return answers


def require_shown(tools: LibraryTools, answers: list[Answer]) -> None:
    """An agent gets the nearest moments of the same answers, their scores to three digits."""
    for query, answer in zip(QUERIES[:2], answers, strict=False):
        shown = tools.search_moments(query=query, top_k=20, weak=True).structured_content
        assert shown and shown["moments"]
        for video_id, own in by_video(shown["moments"]).items():
            assert all(any(one == pytest.approx(two, abs=2e-3) for two in answer[video_id]) for one in own)


def alike(found: Answer, wanted: Answer) -> bool:
    """But for the order in which an index adds numbers up."""
    return found.keys() == wanted.keys() and all(
        len(own) == len(found[name])
        and all(
            one == pytest.approx(two, rel=1e-3, abs=1e-9) for one, two in zip(found[name], own, strict=True)
        )
        for name, own in wanted.items()
    )


@pytest.mark.long
def test_answers_are_of_one_encoder_or_of_each_videos_own_at_every_step(
    folder: Path, tmp_path: Path, serving: Callable[..., TestClient]
) -> None:
    """Pictures of one encoder weighed by the other's scale; answers of both before the share is reached; a
    process that is killed under a server; features that a server still has mapped, and that are gone.
    """
    other, changed = write_other_encoder(tmp_path / "other"), tmp_path / "changed"
    shutil.copytree(folder, changed)
    with Library(changed) as library:
        library.indexer.use_encoder(str(other))
    question = {"query": "a red wall", "video_id": "harbour"}
    with serving(changed) as client:
        new, curve = served(client), client.post("/api/curve", json=question).json()
    shards = {path.name for path in (folder / "features").rglob("*") if path.is_file()}
    seen: list[int] = []
    with (
        serving(folder) as client,
        Library(folder, read_only=True) as reader,
        Library(folder, read_only=True) as agents,
    ):
        tools = LibraryTools(agents)
        old = served(client)
        assert not any(alike(one, another) for one, another in zip(old[::2], new[::2], strict=True))

        def look() -> None:
            """Each video by what it has, as soon as two of three have features by the new encoder."""
            reader.store.refresh()
            target = reader.catalogue.change()
            assert target is not None
            rows = {row for row, key in reader.catalogue.other_frames() if key == target.pictures_key}
            made = {one.video_id for one in reader.catalogue.videos() if one.row in rows}
            both = made if len(made) >= 2 else set()
            answers = served(client)
            for place, (before, after) in enumerate(zip(old, new, strict=True)):
                own = both if place < 2 else set()  # a moment is compared with what all videos have
                wanted = {
                    name: (after if name in own else before)[name]
                    for name in before.keys() | after.keys()
                    if name in (after if name in own else before)
                }
                assert alike(answers[place], wanted), (made, QUERIES[place], answers[place], wanted)
            require_shown(tools, answers)
            seen.append(len(made))

        with changing(folder, other, 0.6) as process:
            while on(process):
                look()
                if seen[-1] == 2:
                    break
                go_on(process)
            process.kill()
        look()
        with changing(folder, other, 0.6) as process:
            while on(process):
                look()
                go_on(process)
            assert process.wait() == 0
        assert {*seen} == {*range(max(seen) + 1)} and max(seen) >= 2
        after = served(client)
        assert all(map(alike, after, new))
        require_shown(tools, new)
        left = {path.name for path in (folder / "features").rglob("*") if path.is_file()}
        assert shards - left, "the old features are still there"
        assert client.post("/api/curve", json=question).json() == curve
