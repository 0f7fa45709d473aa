"""Every tool, with arguments of every structure, over the protocol: an answer of its schema, or a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from anyio.from_thread import start_blocking_portal
from hypothesis import HealthCheck, given, settings, strategies
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.types import CallToolResult, Tool
from schemathesis import GenerationMode

from moviola.mcp import library_server
from moviola.search import Library

# How the SDK words an error that nobody has foreseen.
_UNFORESEEN = "Error executing tool"


# Values that fit nowhere, or hardly.
_WRONG: list[Any] = [
    None, True, -1, 0, 10**400, 1e308, "", " ", "\0", "\ud800", "x" * 5000, [], {}, [[]], {"": {}},
    "../x", "@", "1:2:3",
]  # fmt: skip


class Agent:
    """A client that stays connected to a server of a library."""

    def __init__(self, portal: Any, client: Client) -> None:
        self._portal, self._client = portal, client
        self.tools: list[Tool] = portal.call(client.list_tools).tools

    def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        called: CallToolResult = self._portal.call(self._client.call_tool, tool, arguments)
        return called


@pytest.fixture
def agent(library: Library, tmp_path: Path) -> Iterator[Agent]:
    with start_blocking_portal() as portal:
        client = Client(library_server(library, clips=tmp_path / "clips"))
        with portal.wrap_async_context_manager(client):
            yield Agent(portal, client)


def as_operations(tools: list[Tool]) -> dict[str, Any]:
    """The tools as operations, whose arguments schemathesis makes, right ones and wrong ones."""
    paths, parts = {}, {}
    for tool in tools:
        text = json.dumps(tool.input_schema).replace("#/$defs/", f"#/components/schemas/{tool.name}.")
        schema = json.loads(text)
        parts |= {f"{tool.name}.{name}": part for name, part in schema.pop("$defs", {}).items()}
        body = {"required": True, "content": {"application/json": {"schema": schema}}}
        paths[f"/{tool.name}"] = {"post": {"requestBody": body, "responses": {"200": {"description": "ok"}}}}
    about = {"title": "tools", "version": "1"}
    return {"openapi": "3.1.0", "info": about, "paths": paths, "components": {"schemas": parts}}


def with_what_is_there(arguments: dict[str, Any]) -> dict[str, Any]:
    """The same about a video of the library: no random name is one."""
    about = {"video_id": "harbour", "start": 1.0, "end": 2.0, "query": "a red wall"}
    return arguments | {name: value for name, value in about.items() if name in arguments}


def places_in(value: Any, here: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Paths of all values in arguments, and one of an argument that no tool has."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inner:
        yield (*here, key)
        yield from places_in(one, (*here, key))
    if not here:
        yield ("unknown",)


def put(value: Any, path: tuple[Any, ...], wrong: Any) -> Any:
    """A copy of arguments with another value at a path."""
    if not path:
        return wrong
    copied = value.copy()
    copied[path[0]] = put(value.get(path[0]) if isinstance(value, dict) else value[path[0]], path[1:], wrong)
    return copied


def reason_of(tool: Tool, answer: CallToolResult) -> str:
    """Why a call was refused; of an answer, that it is of the tool's schema."""
    if answer.is_error:
        assert answer.structured_content is None
        reason = " ".join(content.text for content in answer.content if content.type == "text")
        assert reason.strip() and "Traceback" not in reason
        return reason
    assert tool.output_schema is not None
    Draft202012Validator(tool.output_schema).validate(answer.structured_content)
    return ""


@pytest.mark.parametrize("name", ["search_moments", "look", "list_videos", "cut_clip"])
def test_arguments_of_any_structure(agent: Agent, name: str) -> None:
    """None is an error that nobody has foreseen, and no answer is of another form than the tool declares."""
    schema = schemathesis.openapi.from_dict(as_operations(agent.tools))
    (tool,) = (tool for tool in agent.tools if tool.name == name)
    operation = schema[f"/{name}"]["POST"]
    answered, refused = [], []

    @settings(max_examples=25, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    @given(
        case=operation.as_strategy(generation_mode=GenerationMode.POSITIVE),
        real=strategies.booleans(),
        wrong=strategies.none()
        | strategies.tuples(strategies.integers(0, 50), strategies.sampled_from(_WRONG)),
    )
    def asked(case: Any, real: bool, wrong: tuple[int, Any] | None) -> None:
        arguments = with_what_is_there(case.body) if real else case.body
        if wrong:
            places = list(places_in(arguments))
            arguments = put(arguments, places[wrong[0] % len(places)], wrong[1])
        reason = reason_of(tool, agent.call(name, arguments))
        assert not reason.startswith(_UNFORESEEN), (arguments, reason)
        (refused if reason else answered).append(reason)

    asked()
    assert answered and refused


def test_an_error_that_nobody_has_foreseen_is_seen(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    """If not, the test above could not fail."""

    def defect(*_: Any, **__: Any) -> None:
        raise ZeroDivisionError("of ours")

    monkeypatch.setattr(Library, "search", defect)
    (tool,) = (tool for tool in agent.tools if tool.name == "search_moments")
    assert reason_of(tool, agent.call(tool.name, {"query": "a red wall"})).startswith(_UNFORESEEN)


def test_an_unknown_tool_is_refused(agent: Agent) -> None:
    assert agent.call("delete_everything", {}).is_error
