"""The OpenAPI document is complete, and holds: schemathesis asks what it allows, and what it does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest
from fastapi.testclient import TestClient

from moviola.server import create_app


@pytest.fixture(scope="module")
def document(original: Path) -> dict[str, Any]:
    made: dict[str, Any] = create_app(original).openapi()
    return made


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_operation_says_what_it_does_and_how_it_fails(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        assert operation.get("description"), name
        assert {"401", "403", "404", "409", "413", "422", "500", "503"} <= set(operation["responses"]), name


def test_everything_has_an_example(document: dict[str, Any]) -> None:
    """A field has one, or a default, a fixed set of values, or is made of what has."""
    bare = []
    for name, schema in document["components"]["schemas"].items():
        for field, about in schema.get("properties", {}).items():
            text = str(about)
            if not any(word in text for word in ("'examples'", "'default'", "'enum'", "$ref")):
                bare.append(f"{name}.{field}")
    for name, operation in operations(document):
        for parameter in operation.get("parameters", []):
            text = str(parameter)
            if not any(word in text for word in ("'examples'", "'example'", "'default'", "'enum'")):
                bare.append(f"{name} {parameter['name']}")
    assert not bare


def test_examples_are_valid(document: dict[str, Any]) -> None:
    from moviola.server.routes.exports import ExportRequest
    from moviola.server.routes.jobs import JobRequest
    from moviola.server.schemas import CurveRequest, SearchRequest

    for model in (SearchRequest, CurveRequest, ExportRequest, JobRequest):
        name = model.__name__
        schema = document["components"]["schemas"][name]
        examples = {
            field: about["examples"][0]
            for field, about in schema["properties"].items()
            if "examples" in about
        }
        if name == "ExportRequest":
            examples["moments"] = [{"video_id": "harbour", "start": 1, "end": 2}]
        model.model_validate(examples)


ANSWERED = {
    "GET /healthz", "GET /readyz", "GET /api/library", "POST /api/search", "POST /api/curve",
    "GET /api/videos/{video_id}", "GET /api/videos/{video_id}/shots", "GET /api/videos/{video_id}/cues",
    "GET /api/videos/{video_id}/still", "GET /api/videos/{video_id}/strip", "GET /api/jobs",
    "GET /api/videos", "GET /api/videos/{video_id}/stream", "POST /api/export",
}  # fmt: skip
"""Operations for which random requests that the document allows can succeed."""


@pytest.mark.parametrize(
    ("examples", "served"),
    [
        pytest.param(10, "folder", marks=pytest.mark.slow),
        pytest.param(10, "two", marks=pytest.mark.long(2)),
        pytest.param(40, "folder", marks=pytest.mark.long(2)),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of what schemathesis uses
def test_no_request_gets_an_answer_that_is_not_documented(
    serving: Callable[..., TestClient],
    document: dict[str, Any],
    examples: int,
    served: str,
    request: pytest.FixtureRequest,
) -> None:
    """On a library of its own, and on two: a random request may be one that keeps something."""
    import schemathesis

    @schemathesis.serializer("application/offset+octet-stream")
    def bytes_of_an_upload(_: Any, value: Any) -> bytes:
        return value if isinstance(value, bytes) else str(value).encode("utf-8", "replace")

    with serving(request.getfixturevalue(served)) as client:
        # Until its first query is answered, a server is not ready, which is a 503.
        client.portal.call(asyncio.wait, [client.app.state.service.warming])  # type: ignore[union-attr, attr-defined]
        found = {
            result.ok().label: statuses_of(result.ok(), client, examples)
            for result in schemathesis.openapi.from_dict(document).get_all_operations()
        }
    assert {name for name, statuses in found.items() if 200 in statuses} >= ANSWERED
    # Whether an upload is announced with more bytes than are allowed (413) depends on the numbers that
    # hypothesis collects from the modules which other tests have loaded.
    assert set().union(*found.values()) <= {200, 201, 204, 403, 404, 409, 413, 422}, found


def statuses_of(operation: Any, client: TestClient, examples: int) -> set[int]:
    """Ask for an operation, as allowed and not, and check the answers; gives their statuses."""
    from hypothesis import HealthCheck, given, reject, settings, strategies
    from hypothesis.errors import Unsatisfiable
    from schemathesis import GenerationMode
    from schemathesis.checks import not_a_server_error
    from schemathesis.core.errors import InvalidSchema
    from schemathesis.specs.openapi import checks as openapi

    checks = [
        not_a_server_error, openapi.status_code_conformance, openapi.content_type_conformance,
        openapi.response_schema_conformance,
    ]  # fmt: skip
    seen: set[int] = set()

    @strategies.composite
    def cases(draw: Any, mode: Any) -> Any:
        try:
            return draw(operation.as_strategy(generation_mode=mode))
        except InvalidSchema:
            # A list of more elements than hypothesis draws, whose number is one of those that it collects.
            return reject()

    def send(case: Any) -> None:
        try:
            answer = client.request(**case.as_transport_kwargs(base_url="http://localhost"))
        except httpx2.InvalidURL:  # longer than clients send
            reject()
        seen.add(answer.status_code)
        case.validate_response(answer, checks=checks)

    def ask(mode: Any) -> None:
        @settings(
            max_examples=examples, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=cases(mode), real=strategies.booleans())
        def asked(case: Any, real: bool) -> None:
            if real:
                name_what_is_there(case)
            send(case)
            if real and isinstance(case.body, dict) and "query" in case.body:
                case.body["query"] = "a red ball"  # few random queries are any
                send(case)

        asked()

    ask(GenerationMode.POSITIVE)
    with suppress(Unsatisfiable):  # where there is nothing to get wrong
        ask(GenerationMode.NEGATIVE)
    return seen


def name_what_is_there(case: Any) -> None:
    """Let a request be about a video of the library: no random name is one."""
    if case.path_parameters and "video_id" in case.path_parameters:
        case.path_parameters["video_id"] = "harbour"
    if isinstance(case.body, dict):
        if "video_id" in case.body:
            case.body["video_id"] = "harbour"
        if case.body.get("format"):
            case.body["format"] = "json"
        if case.body.get("moments"):
            case.body["moments"] = [{"video_id": "harbour", "start": 1, "end": 2}]
        case.body.pop("options", None)
        case.body.pop("videos", None)
