"""Who may ask: hosts, origins, tokens; where paths lead; headers for browsers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import pytest
from fastapi.testclient import TestClient

from moviola.errors import InvalidValue
from moviola.server import Options, security
from moviola.server.running import _address

Serving = Callable[..., TestClient]
TOKEN = "a-long-secret"

# ---- hosts and origins -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8765", "127.0.0.1", "127.0.0.1:1", "[::1]:80", "10.0.0.7"]
)
def test_own_names_and_addresses_are_served(client: TestClient, host: str) -> None:
    assert client.get("/api/library", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "evil.example:8765",
        "",
        "127.0.0.1.evil.example",
        "[::1]x",
        "[::1",
        "[::1]:x",
        "[::1]:80:80",
        "::1]",
        "localhost:x",
        "localhost:80:80",
        "[]",
        ":80",
        "127.0.0.1:999999",
        "[localhost]",
        "a b",
        "ünï",
    ],
)
def test_foreign_host_names_are_refused(client: TestClient, host: str) -> None:
    for path in ("/api/library", "/", "/static/main.js", "/healthz"):
        answer = client.get(path, headers={"Host": host.encode()})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


def test_a_name_can_be_allowed(serving: Serving, original: Path) -> None:
    with serving(original, allow_hosts=("films.example",)) as client:
        assert client.get("/api/library", headers={"Host": "films.example:80"}).status_code == 200
        assert client.get("/api/library", headers={"Host": "evil.example"}).status_code == 403


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://localhost", "http://localhost:99", ""]
)
def test_pages_of_other_sites_may_not_ask(client: TestClient, origin: str) -> None:
    for method, path in (("POST", "/api/search"), ("GET", "/api/library"), ("DELETE", "/api/jobs/x")):
        answer = client.request(method, path, headers={"Origin": origin})
        assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden")


def test_the_own_page_may(client: TestClient) -> None:
    headers = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}
    assert client.post("/api/search", json={"query": "a wall"}, headers=headers).status_code == 200


def test_a_picture_in_a_page_of_another_site_is_refused_a_link_is_not(client: TestClient) -> None:
    foreign = {"Sec-Fetch-Site": "cross-site"}
    still = "/api/videos/harbour/still"
    assert client.get(still, headers={**foreign, "Sec-Fetch-Mode": "no-cors"}).status_code == 403
    assert client.post("/api/search", headers={**foreign, "Sec-Fetch-Mode": "navigate"}).status_code == 403
    assert client.get(still, headers={**foreign, "Sec-Fetch-Mode": "navigate"}).status_code == 200


def test_websockets_are_refused(client: TestClient) -> None:
    from starlette.websockets import WebSocketDisconnect

    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/api/search"):
        pass


# ---- tokens ------------------------------------------------------------------------------------------------


def test_another_host_needs_a_token() -> None:
    for host in ("0.0.0.0", "::", "192.168.0.7", "films.example"):
        with pytest.raises(InvalidValue, match="without a token"):
            Options(host=host)
        assert Options(host=host, token=TOKEN).host == host
    for host in ("127.0.0.1", "::1", "localhost", "127.8.9.1"):
        assert not Options(host=host).token


@pytest.mark.parametrize("token", ["two words", "ü", "a\nb", "\x00"])
def test_a_token_that_no_header_carries_is_refused(token: str) -> None:
    with pytest.raises(InvalidValue, match="token"):
        Options(token=token)


def test_the_printed_address_has_the_token_as_browsers_read_it(serving: Serving, original: Path) -> None:
    token = "a+b/c&d#e=="
    address = urlsplit(_address(Options(host="::1", token=token), 80))
    assert (address.netloc, address.fragment) == ("[::1]:80", "")
    with serving(original, token=token) as client:
        assert client.get(f"/?{address.query}").cookies


WRONG = [
    {}, {"Authorization": "Bearer"}, {"Authorization": "Bearer wrong"}, {"Authorization": f"Basic {TOKEN}"},
    {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": TOKEN}, {"Cookie": f"moviola={TOKEN}"},
    {"Cookie": "moviola="}, {"Cookie": 'moviola="'}, {"Cookie": "=;;=\x7f"}, {"Authorization": "Bearer \xff"},
]  # fmt: skip


@pytest.mark.parametrize("headers", WRONG)
def test_without_the_token_nothing_is_answered(
    serving: Serving, original: Path, headers: dict[str, str]
) -> None:
    raw = {name: value.encode("latin-1") for name, value in headers.items()}
    with serving(original, token=TOKEN) as client:
        for path in (
            "/api/library",
            "/api/openapi.json",
            "/",
            "/static/main.js",
            "/metrics",
            "/nix",
            "/?token=x",
        ):
            answer = client.get(path, headers=raw)
            assert answer.status_code == 401, path
            assert answer.json()["error"]["code"] == "unauthorised"
            assert answer.headers["WWW-Authenticate"] == "Bearer"
        assert client.get("/healthz").text == "ok"


def test_the_token_opens(serving: Serving, original: Path) -> None:
    with serving(original, token=TOKEN) as client:
        for kind in ("Bearer", "bearer"):
            headers = {"Authorization": f"{kind} {TOKEN}"}
            assert client.get("/api/library", headers=headers).status_code == 200


def test_a_link_with_the_token_sets_a_cookie_once(serving: Serving, original: Path) -> None:
    with serving(original, token=TOKEN) as client:
        answer = client.get(f"/?token={TOKEN}")
        cookie = answer.headers["Set-Cookie"]
        assert answer.status_code == 200 and 'content="0; url=./"' in answer.text
        assert "HttpOnly" in cookie and "SameSite=strict" in cookie and TOKEN not in cookie
        assert client.get("/api/library").status_code == 200  # by the cookie
        client.cookies.clear()
        assert client.get(f"/api/library?token={TOKEN}").status_code == 401  # only the page takes it so


# ---- headers for browsers ----------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/api/library", "/nix", "/api/videos/harbour/stream", "/healthz"])
def test_every_answer_limits_what_browsers_do(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy and "frame-ancestors 'none'" in policy and "unsafe" not in policy
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert "access-control-allow-origin" not in headers


# ---- paths -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd",
        "/static/%2fetc%2fpasswd", "/static/..%5capp.py", "/static/%00", "/../app.py", "/judge/../../app.py",
        "/static/page/../../security.py",
    ],
)  # fmt: skip
def test_the_page_is_all_that_is_served_of_the_package(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404, path
    assert "create_app" not in answer.text


OF_A_VIDEO = ["", "/still", "/stream", "/clip?start=0&end=1"]


@pytest.mark.parametrize(
    "video",
    ["..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "nix%00", "%ff%fe", "%", "%zz",
     "x" * 5000, "harbour%20", "'%20OR%201=1%20--", "<script>"],
)  # fmt: skip
@pytest.mark.parametrize("what", OF_A_VIDEO)
def test_only_videos_of_the_library_are_found(client: TestClient, video: str, what: str) -> None:
    require_unknown(client, video, what)


@pytest.mark.parametrize("what", OF_A_VIDEO)
def test_a_path_names_a_video_of_the_library_only(client: TestClient, films: Path, what: str) -> None:
    """A path that is opened instead of being compared with those of the library: its subtitles, its folder,
    a video beside it, another way to a file, a part of a name; or a file that is there and has no pictures.
    """
    beside = films.parent / f"beside-{films.name}.mp4"
    if not beside.exists():
        beside.hardlink_to(films / "harbour.mp4")
    whole = client.get("/api/videos/harbour").json()
    for name in ("harbour.mp4", f"{films.name}/harbour.mp4", str(films / "harbour.mp4")):
        answer = client.get(f"/api/videos/{quote(name, safe='')}{what}")
        assert answer.status_code == 200, answer.text
        assert what or answer.json() == whole
    for name in (
        str(beside), beside.name, f"{films.name}/../{beside.name}", str(films / ".." / beside.name),
        str(films / "deep" / ".." / "harbour.mp4"), "deep/../harbour.mp4", "../harbour.mp4", "~/harbour.mp4",
        str(films / "harbour.srt"), "harbour.srt", str(films), films.name, str(films / "no" / "harbour.mp4"),
        "arbour.mp4", "harbour.mp4\0.jpg", "harbour.MP4", "*.mp4", "%", "/", "./", "//", "file:harbour.mp4",
    ):  # fmt: skip
        require_unknown(client, quote(name, safe=""), what)


def require_unknown(client: TestClient, video: str, what: str) -> None:
    answer = client.get(f"/api/videos/{video}{what}")
    assert answer.status_code in (404, 422), f"{video}: {answer.text}"
    assert answer.json()["error"]["code"] in ("not_found", "invalid_value")


def test_an_id_with_every_sign_is_one_segment(client: TestClient) -> None:
    name = "deep/Straße #1 ?50%&ü"
    for what in ("", "/shots", "/still", "/stream"):
        answer = client.get(f"/api/videos/{quote(name, safe='')}{what}")
        assert answer.status_code == 200, answer.text
    assert client.get(f"/api/videos/{quote(name, safe='')}").json()["video_id"] == name


def test_a_browser_without_the_token_is_shown_where_to_give_it(serving: Serving, original: Path) -> None:
    page = {"Accept": "text/html,*/*"}
    with serving(original, token=TOKEN) as client:
        for path in ("/", "/judge"):
            answer = client.get(path, headers=page)
            assert (answer.status_code, answer.headers["content-type"][:9]) == (401, "text/html")
            assert "Sign in" in answer.text and TOKEN not in answer.text
        assert client.get("/static/style.css").status_code == 200
        assert client.get("/api/library", headers=page).json()["error"]["code"] == "unauthorised"
        for given in ("", "wrong", TOKEN[:-1], "a" * 100_000):
            answer = client.post("/sign-in", data={"token": given})
            assert answer.status_code == 401 and 'data-state="wrong"' in answer.text
            assert "set-cookie" not in answer.headers
        foreign = {"Origin": "http://evil.example"}
        assert client.post("/sign-in", data={"token": TOKEN}, headers=foreign).status_code == 403
        assert client.post("/sign-in", data={"token": f" {TOKEN} "}).status_code == 200
        assert client.get("/api/library").status_code == 200


# ---- rights ------------------------------------------------------------------------------------------------

READER, CHANGER = ({"Authorization": f"Bearer {token}"} for token in ("a-reader", TOKEN))

READING = {
    "POST /api/search", "POST /api/curve", "POST /api/pictures", "POST /api/export", "POST /api/exports",
    "DELETE /api/exports/{export}", "POST /api/judging/sign-in", "POST /api/judging/next",
    "POST /api/judging/answers", "POST /api/judging/undo",
}  # fmt: skip
"""Operations that are no GET, and open to those who only read; a new one is named here."""


def test_every_operation_needs_the_right_that_it_should(client: TestClient) -> None:
    from moviola.server.security import needed_right

    for path, methods in client.get("/api/openapi.json").json()["paths"].items():
        for method in map(str.upper, methods):
            reads = method in ("GET", "HEAD") or f"{method} {path}" in READING
            reads = reads and not path.startswith("/api/questions")  # at the owner's expense
            assert needed_right(method, path, ("/api/judging/",)) == ("read" if reads else "change"), (
                method,
                path,
            )


def test_a_token_that_reads_changes_nothing(serving: Serving, folder: Path, films: Path) -> None:
    changing = [
        ("DELETE", "/api/videos/harbour", None), ("POST", "/api/videos/harbour/restore", None),
        ("POST", "/api/jobs", {"sources": ["harbour.mp4"]}), ("DELETE", "/api/jobs/x", None),
        ("PUT", "/api/kept", {"kind": "search", "name": "a", "value": {"text": "a"}}),
        ("DELETE", "/api/kept?kind=search&name=a", None), ("POST", "/api/concepts", {}),
        ("PATCH", "/api/library", None),
    ]  # fmt: skip
    with serving(folder, token=TOKEN, read_token="a-reader", allow_ingest=(films,)) as client:
        for method, path, body in changing:
            answer = client.request(method, path, json=body, headers=READER)
            assert (answer.status_code, answer.json()["error"]["code"]) == (403, "forbidden"), path
            assert "only reads" in answer.json()["error"]["message"]
            assert client.request(method, path, json=body).status_code == 401
        assert client.post("/api/search", json={"query": "a wall"}, headers=READER).status_code == 200
        export = {"format": "csv", "moments": [{"video_id": "harbour", "start": 1, "end": 2}]}
        assert client.post("/api/export", json=export, headers=READER).status_code == 200
        for headers, right, may in ((READER, "read", False), (CHANGER, "change", True)):
            about = client.get("/api/library", headers=headers).json()
            assert (about["right"], about["writable"], about["can_ingest"]) == (right, may, may)
        assert client.delete("/api/videos/harbour", headers=CHANGER).status_code == 200


def test_both_tokens_sign_in_and_the_cookie_has_the_right(serving: Serving, folder: Path) -> None:
    with serving(folder, token=TOKEN, read_token="a-reader") as client:
        for token, right in (("a-reader", "read"), (TOKEN, "change")):
            form = client.get("/sign-in")
            assert "Sign in" in form.text and "set-cookie" not in form.headers
            assert client.post("/sign-in", data={"token": token}).status_code == 200
            assert client.get("/api/library").json()["right"] == right
        client.cookies.clear()
        assert client.get("/?token=a-reader").status_code == 200
        assert client.get("/api/library").json()["right"] == "read"


def test_with_a_token_that_reads_alone_nobody_changes_anything(serving: Serving, folder: Path) -> None:
    with serving(folder, read_token="a-reader") as client:
        assert client.get("/api/library").status_code == 401
        assert client.delete("/api/videos/harbour").status_code == 401
        assert client.delete("/api/videos/harbour", headers=READER).status_code == 403
        assert client.delete("/api/videos/harbour", headers={"Authorization": "Bearer "}).status_code == 401


def test_tokens_that_say_nothing_of_the_right_are_refused() -> None:
    with pytest.raises(InvalidValue, match="same as the token"):
        Options(token=TOKEN, read_token=TOKEN)
    with pytest.raises(InvalidValue, match="read token"):
        Options(read_token="two words")
    assert Options(host="0.0.0.0", read_token=TOKEN).read_token


# ---- guesses -----------------------------------------------------------------------------------------------


def test_who_guesses_tokens_waits_longer_and_longer_and_is_seen(
    serving: Serving, original: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Thirty wrong ones were answered without a pause, and without a line in the log."""
    pauses: list[float] = []

    async def noted(seconds: float) -> None:
        pauses.append(seconds)

    monkeypatch.setattr(security, "sleep", noted)
    with serving(original, token=TOKEN) as client:
        ways: list[Callable[[str], Any]] = [
            lambda guess: client.get("/api/library", headers={"Authorization": f"Bearer {guess}"}),
            lambda guess: client.get("/api/library", headers={"Cookie": f"moviola={guess}"}),
            lambda guess: client.get(f"/?token={guess}"),
            lambda guess: client.post("/sign-in", content=f"token={guess}"),
        ]
        for number in range(12):
            assert ways[number % 4](f"guess-{number}").status_code == 401
        assert pauses == [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0]
        assert "testclient: 6 wrong tokens within a minute" in caplog.text
        assert caplog.text.count("wrong tokens") == 4 and "guess" not in caplog.text
        # Neither a right one waits, nor who gives none, nor what needs none.
        pauses.clear()
        assert client.get("/api/library", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
        assert client.get("/api/library").status_code == 401
        assert client.get("/static/style.css", headers={"Cookie": "moviola=old"}).status_code == 200
        assert pauses == []


def test_guesses_are_forgotten_and_few_clients_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(security, "monotonic", lambda: now[0])
    tries = security.WrongTokens()
    assert [tries.pause("a") for _ in range(6)] == [0, 0, 0, 0, 0, 0.5]
    now[0] = 61.0
    assert tries.pause("a") == 0
    for number in range(2000):
        tries.pause(str(number))
    assert len(tries._times) == 1000
