"""Huge and odd requests: each is answered rightly, with an error in JSON where it is one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, get_args

import pytest
from fastapi.testclient import TestClient
from pydantic import ValidationError

from moviola.server.schemas import RequestModel

TWO_LIBRARIES = pytest.mark.long(1)
"""Mistakes in a request are found before a library is asked; the other modules ask what is right."""

JSON = {"Content-Type": "application/json"}

FINE = [
    "😀🎬 एक कुत्ता 犬", "שלום עולם مرحبا", "a\tb\nc",
    "'; DROP TABLE videos; --", '" OR cues MATCH "x', "NEAR(a b) * ^ :",
    "<script>alert(1)</script>", "&lt;b&gt;", "%s %d {0} {{}}", "../../etc/passwd", "a" * 1000,
    "ÿ" * 1000, "a\u0301" * 500,
    "\u202eright to left", "\ufffd", "\U0010ffff", "-", "AND OR NOT",
]  # fmt: skip


@pytest.mark.parametrize("text", FINE)
def test_odd_texts_are_searched_for(client: TestClient, text: str) -> None:
    answer = client.post("/api/search", json={"query": {"terms": [{"text": text}], "without": [text]}})
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"] == "application/json"
    assert client.post("/api/curve", json={"query": text, "video_id": "harbour"}).status_code == 200


BODIES: dict[str, bytes] = {
    "nothing": b"",
    "no JSON": b"query=a",
    "cut short": b'{"query": "a',
    "no object": b'"a"',
    "null": b"null",
    "a list": b"[1]",
    "no text": b'{"query": 5}',
    "empty": b'{"query": ""}',
    "long": json.dumps({"query": "a" * 100_000}).encode(),
    "NUL": b'{"query": "a\\u0000b"}',
    "bell": b'{"query": "a\\u0007b"}',
    "delete": b'{"query": "a\\u007fb"}',
    "half a character": b'{"query": "\\ud83d"}',
    "half a character in a name": b'{"query": "a", "\\ud83d": 1}',
    "half a character in a format": b'{"query": "a", "by": "\\udc00"}',
    "not UTF-8": b'{"query": "\xff\xfe"}',
    "UTF-16": '{"query": 7}'.encode("utf-16"),
    "not a number": b'{"query": "a", "min_score": NaN}',
    "infinite": b'{"query": "a", "min_score": Infinity}',
    "infinite weight": b'{"query": {"terms": [{"text": "a", "weight": 1e999}]}}',
    "no weight": b'{"query": {"terms": [{"text": "a", "weight": 0}]}}',
    "a large number": b'{"query": "a", "top_k": ' + b"9" * 10_000 + b"}",
    "negative": b'{"query": "a", "top_k": -1}',
    "a fraction": b'{"query": "a", "top_k": 1.5}',
    "deep": b"[" * 100_000,
    "deep object": b'{"query":' * 20_000,
    "unknown field": b'{"query": "a", "quality": "high"}',
    "unknown term": b'{"query": {"terms": [{"sound": "a"}]}}',
    "two kinds": b'{"query": {"terms": [{"text": "a", "picture": "' + b"0" * 32 + b'"}]}}',
    "many terms": json.dumps({"query": {"terms": [{"text": "a"}] * 17}}).encode(),
    "many steps": json.dumps(
        {"query": {"terms": [{"text": "a"}], "then": [{"terms": [{"text": "b"}]}] * 9}}
    ).encode(),
    "a path as picture": b'{"query": {"terms": [{"picture": "../../etc/passwd"}]}}',
    "a NUL in a folder": b'{"query": "a", "filter": {"folder": "/a\\u0000b"}}',
    "a date": b'{"query": "a", "filter": {"modified": "yesterday.."}}',
    "a range": b'{"query": "a", "filter": {"where": "90%..10%"}, "top_k": 0}',
}


@pytest.mark.parametrize("what", BODIES)
def test_an_object_that_is_no_query_is_refused_in_words(client: TestClient, what: str) -> None:
    for path in ("/api/search", "/api/export", "/api/jobs"):
        answer = client.post(path, content=BODIES[what], headers=JSON)
        problem = answer.json()["error"]
        assert (answer.status_code, problem["code"]) == (422, "invalid_value"), answer.text
        assert 0 < len(problem["message"]) < 1000


@pytest.mark.parametrize(
    ("headers", "content", "said"),
    [
        ({}, b'{"query": "a"}', "add the header Content-Type: application/json"),
        ({"Content-Type": "application/x-www-form-urlencoded"}, b'{"query": "a"}', "add the header"),
        (JSON, b"[1]", "body [1]: give an object of JSON"),
        (JSON, b'{"query": "a", "filter": 5}', "filter 5: give an object of JSON"),
    ],
)
def test_a_body_that_is_no_object_or_no_json_is_named(
    client: TestClient, headers: dict[str, str], content: bytes, said: str
) -> None:
    """``curl --data`` sends the type of a form."""
    answer = client.post("/api/search", content=content, headers=headers)
    assert answer.status_code == 422 and said in answer.json()["error"]["message"]


COMPLAINTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "long": (
        {"query": {"terms": [{"text": "a" * 100_000}]}},
        "query.terms.1.text",
        "at most 2,000 characters",
    ),
    "plain": ({"query": "a" * 100_000}, "query", "at most 2,000 characters; these are 100,000"),
    "empty": ({"query": {"terms": [{"text": "a"}], "without": [""]}}, "query.without.1.text", "is empty"),
    "filter": ({"query": "a", "filter": {"moment_length": "soon"}}, "filter.moment_length", "'soon'"),
    "date": ({"query": "a", "filter": {"taken": "soon"}}, "filter.taken", "'soon'"),
    "unknown": ({"query": "a", "sort": "best"}, "sort", "no such field here; check the spelling"),
}


@pytest.mark.parametrize("what", COMPLAINTS)
def test_faults_are_named_for_people_with_their_place(client: TestClient, what: str) -> None:
    body, field, said = COMPLAINTS[what]
    problem = client.post("/api/search", json=body).json()["error"]
    assert problem["field"] == field
    assert said in problem["message"]
    assert "object" not in problem["message"] and "String should" not in problem["message"]


@pytest.mark.parametrize(
    "query",
    ["a" * 3000, {"terms": [{"text": "a" * 3000}]}, {"terms": [{"text": "a" * 1500}] * 2}],
    ids=["text", "term", "sum"],
)
def test_a_text_that_is_too_long_is_refused_with_the_limit(client: TestClient, query: Any) -> None:
    problem = client.post("/api/search", json={"query": query}).json()["error"]
    assert problem["field"].startswith("query") and problem["longest"] == 2000


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ({"terms": [{"text": "a"}, {"picture": "0" * 32}]}, "query.terms.2"),
        ({"terms": [{"text": "a"}], "then": [{"terms": [{"picture": "0" * 32}]}]}, "query.then.1.terms.1"),
        (
            {"terms": [{"text": "a"}], "without": ["b", {"terms": [{"picture": "0" * 32}]}]},
            "query.without.2.terms.1",
        ),
    ],
)
def test_an_unknown_picture_is_named_by_its_place(client: TestClient, query: Any, place: str) -> None:
    answer = client.post("/api/search", json={"query": query})
    problem = answer.json()["error"]
    assert (answer.status_code, problem["code"]) == (404, "not_found")
    assert problem["field"] == f"{place}.picture" and "no longer here" in problem["message"]


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("videos?limit=x", "limit 'x': give a whole number"),
        (
            "videos?limit=" + "9" * 400,
            f"limit '{'9' * 27}...{'9' * 28}': ",
        ),
        ("videos?descending=5", "descending '5': give true or false"),
        ("videos?state=odd", "state 'odd': give 'ready', 'partial' or 'refused'"),
        ("videos/harbour/still?time=-1", "time '-1': give at least 0"),
        ("videos/harbour/still?time=1e9", "time '1e9': give at most 10,000,000"),
        ("videos/harbour/still?time=soon", "time 'soon': give a number"),
        ("videos/harbour/clip?end=1", "start: is missing; give it"),
    ],
)
def test_a_parameter_that_is_wrong_is_said_with_its_value(client: TestClient, path: str, said: str) -> None:
    message = client.get(f"/api/{path}").json()["error"]["message"]
    assert message.startswith(said) and len(message) < 150


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("top_k", 0, "top_k 0: give at least 1"),
        ("top_k", 1.5, "top_k 1.5: give a whole number"),
        ("min_score", "high", "min_score 'high': give a number"),
        ("refine", [], "refine []: give true or false"),
        ("videos", "harbour", "videos 'harbour': give a list"),
        ("videos", [5], "videos.1 5: give a text"),
        ("videos", ["a\0"], r"videos.1 'a\x00': control character U+0000 at 1; remove it"),
        ("by", ["x"] * 99, "by ['x', 'x', 'x', 'x', 'x', 'x', ...]: give 'all', "),
    ],
)
def test_a_field_that_is_wrong_is_said_with_its_value(
    client: TestClient, field: str, value: Any, said: str
) -> None:
    message = client.post("/api/search", json={"query": "a", field: value}).json()["error"]["message"]
    assert message.startswith(said), message


def test_a_year_that_no_calendar_has_is_refused(client: TestClient) -> None:
    for modified in (
        "0001-01-01..",
        "..9999-12-31",
        "0000-00-00..",
        "-5..",
        "2024-05-01T25:00..",
        "2024-05-01+99:00..",
    ):
        answer = client.post("/api/search", json={"query": "a", "filter": {"modified": modified}})
        assert answer.status_code in (200, 422), answer.text


@pytest.mark.parametrize("path", ["/api/search", "/api/export", "/api/jobs", "/api/pictures", "/nix"])
def test_a_body_that_is_announced_too_long_is_not_read(client: TestClient, path: str) -> None:
    read = 0

    def pieces() -> Iterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b"x" * 65536

    answer = client.post(path, content=pieces(), headers={"Content-Length": str(10**12)})
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


@pytest.mark.parametrize("path", ["/api/search", "/api/export", "/api/pictures"])
def test_a_body_of_no_announced_length_is_read_only_so_far(client: TestClient, path: str) -> None:
    most = 20 * 2**20 if path == "/api/pictures" else 2**20

    def pieces() -> Iterator[bytes]:
        for _ in range(most // 65536 + 1):
            yield b" " * 65536

    answer = client.post(path, content=pieces(), headers=JSON)
    assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")


NUMBERS = ["nan", "inf", "-1", "1e999", "x", "0x10", "1e308", "9" * 400]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize(
    "path",
    ["still?time=", "still?width=", "strip?count=", "strip?start=", "clip?end=1&start=", "clip?start=0&end=",
     "cues?start="],
)  # fmt: skip
def test_numbers_out_of_range_are_refused(client: TestClient, path: str, number: str) -> None:
    answer = client.get(f"/api/videos/harbour/{path}{number}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (422, "invalid_value"), answer.text


def request_models(model: type[RequestModel] = RequestModel) -> Iterator[type[RequestModel]]:
    for below in model.__subclasses__():
        yield below
        yield from request_models(below)


@pytest.mark.parametrize("model", [*request_models()], ids=lambda model: model.__name__)
@pytest.mark.parametrize("blank", [None, "", " "])
def test_omitted_fields_may_be_sent_as_null(model: type[RequestModel], blank: str | None) -> None:
    """Every field of every request, but where null is a value of its own; what is required stays so."""
    examples: dict[str, Any] = {
        "terms": [{"text": "a"}], "moments": [{"video_id": "a", "start": 0, "end": 1}], "sources": ["a"],
    }  # fmt: skip
    fields = model.model_fields
    given = {
        name: field.examples[0] if field.examples else examples.get(name, name)
        for name, field in fields.items()
        if field.is_required()
    }
    least = model.model_validate(given)
    for name, field in fields.items():
        if field.is_required():
            if isinstance(given[name], str):
                with pytest.raises(ValidationError):
                    model.model_validate({**given, name: None})
        elif not (blank is None and type(None) in get_args(field.annotation)):
            assert model.model_validate({**given, name: blank}) == least, name
        elif field.get_default(call_default_factory=True) is None:
            assert model.model_validate({**given, name: None}) == least, name
    with pytest.raises(ValidationError):
        model.model_validate({**given, "unheard_of": 1})


def test_omitted_fields_may_be_sent_as_null_over_http(client: TestClient) -> None:
    """In bodies, in terms of either kind, and in addresses."""
    plain = client.post("/api/search", json={"query": {"terms": [{"video_id": "harbour", "time": 1}]}})
    term = {"text": None, "picture": "", "video_id": "harbour", "time": 1, "weight": None}
    filled = {
        "query": {"terms": [term], "then": None, "without": "", "concept": None}, "top_k": None, "by": "",
        "filter": {"taken": "", "near": None}, "videos": None, "per_video": "", "min_score": "",
        "refine": None,
    }  # fmt: skip
    answer = client.post("/api/search", json=filled)
    assert answer.status_code == 200, answer.text
    assert answer.json()["moments"] == plain.json()["moments"]
    every = client.get("/api/videos").json()
    assert client.get("/api/videos?limit=&offset=&state=&q=&order=&descending&").json() == every
    assert client.get("/api/videos/harbour/still?width=").status_code == 200
    assert (
        client.get("/api/videos/harbour/clip?start=0&end=")
        .json()["error"]["message"]
        .startswith("end: is missing")
    )


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nix", 404), ("GET", "/api/nix", 404), ("GET", "/api/videos/harbour/nix", 404),
        ("GET", "/api/search", 405), ("PUT", "/api/videos", 405), ("POST", "/", 405),
        ("DELETE", "/api/library", 405),
        ("GET", "/api/jobs/nix", 404), ("DELETE", "/api/jobs/nix", 404), ("GET", "/api/jobs/nix/events", 404),
        ("GET", "/api/videos?limit=0", 422), ("GET", "/api/videos?state=odd", 422), ("GET", "/docs", 404),
    ],
)  # fmt: skip
def test_a_missing_route_is_reported_in_json(client: TestClient, method: str, path: str, status: int) -> None:
    answer = client.request(method, path)
    assert answer.status_code == status
    code = {404: "not_found", 405: "method", 422: "invalid_value"}[status]
    assert answer.json()["error"]["code"] == code


def test_an_address_or_method_that_there_is_not_is_named_with_what_there_is(client: TestClient) -> None:
    missing, wrong = client.get("/api/copies"), client.put("/api/search")
    assert missing.json()["error"]["message"].startswith("GET /api/copies: nothing has this address; ")
    assert wrong.json()["error"]["message"] == "PUT /api/search: this address takes POST"


@pytest.mark.parametrize(
    ("path", "takes"),
    [
        ("/api/videos?limti=5", "it takes descending, limit, offset, sort, state, text"),
        ("/api/videos/harbour/still?time=1&widht=90", "it takes time, v, width"),
        ("/api/library?token=secret", "it takes none"),
    ],
)
def test_a_parameter_that_an_address_does_not_take_is_refused(
    client: TestClient, path: str, takes: str
) -> None:
    answer = client.get(path)
    assert answer.status_code == 422
    error = answer.json()["error"]
    assert error["field"] in ("limti", "widht", "token")
    assert error["message"] == f"{error['field']}: no parameter of this address; {takes}"


def test_every_documented_parameter_is_taken_and_monitors_may_add_theirs(client: TestClient) -> None:
    for path, methods in client.get("/api/openapi.json").json()["paths"].items():
        for method in methods.keys() & {"get", "delete"}:
            parameters = methods[method].get("parameters", [])
            named = {one["name"] for one in parameters if one["in"] == "query"}
            message = client.request(method, path, params=dict.fromkeys(named, "1")).text
            assert "no parameter of this address" not in message, path
    assert client.get("/healthz?at=1700000000").text == "ok"


def test_a_defect_is_logged_and_not_sent(
    original: Any, serving: Any, caplog: pytest.LogCaptureFixture
) -> None:
    from moviola.search import Library

    with serving(original) as client:
        client.app.state.service.library = Broken(client.app.state.service.library)
        answer = client.post("/api/search", json={"query": "a"})
        client.app.state.service.library = client.app.state.service.library.whole
    assert isinstance(client.app.state.service.library, Library)
    assert (answer.status_code, answer.json()["error"]["code"]) == (500, "internal")
    assert "ZeroDivisionError" not in answer.text and "ZeroDivisionError" in caplog.text
    assert answer.headers["X-Content-Type-Options"] == "nosniff"


class Broken:
    """A library with a defect."""

    def __init__(self, whole: Any) -> None:
        self.whole = whole
        self.store = whole.store

    def search(self, *_: object, **__: object) -> None:
        raise ZeroDivisionError
