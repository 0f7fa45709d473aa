"""Files of the page as they are sent: addressed by their content, a page's scripts in one, compressed.

Nothing is built: folders hold what is served, and a file that changes has another address from then on.

- Addresses: ``/static/NAME`` is the file as it is, ``/static/v-DIGEST/NAME`` the same for ever. Pages name
  their files by relative addresses, into which the digest of all files is put, so that browsers ask for
  each of them once, below any path of a proxy.
- The script of a page comes with all that it imports (:func:`linked`): fifty modules, fetched six at a time,
  take seconds where each way takes half of one.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from mimetypes import guess_type
from pathlib import Path
from posixpath import dirname, join, normpath
from typing import NamedTuple

from starlette.datastructures import Headers
from starlette.responses import Response

from moviola.files.presence import is_file

__all__ = ["LANGUAGE_NAME", "PageFiles", "linked", "unversioned"]

FOREVER = "private, max-age=31536000, immutable"
LANGUAGE_NAME = "{language}"
"""Message of a language's file that is the language's own name."""
_VERSION = re.compile(r"^/static/v-[0-9a-f]+/")
_NAMED = re.compile(r'(?<=[" ])static/')
_IMPORT = re.compile(r'^import (?:\* as (\w+)|(\{[^}]*\})) from "(\.[^"]+)";$', re.MULTILINE)
_BARE_IMPORT = re.compile(r'^import "(\.[^"]+)";$', re.MULTILINE)
_LATE_IMPORT = re.compile(r'(?<![\w.])import\("(\.[^"]+)"\)')
_EXPORT = re.compile(r"^export ((?:async )?(?:function|class|const) (\w+))", re.MULTILINE)
_COMMENTS = re.compile(r"/\*\*(?:(?!\*/).)*\*/|^[ \t]*//[^\n]*\n", re.DOTALL | re.MULTILINE)
_UNKNOWN = re.compile(r"^(?:import\b|export\b).*$", re.MULTILINE)
_LINKED = """\
const $modules = {};
const $loaded = {};
const $load = (name) => ($loaded[name] ??= $modules[name]());
"""


class _File(NamedTuple):
    content: bytes
    compressed: bytes
    kind: str


def unversioned(path: str) -> str:
    """A path of the server without the digest of the files of its pages."""
    return _VERSION.sub("/static/", path)


class PageFiles:
    """The files of folders, in which a page may import what lies in another one; the first folder counts."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders
        self._seen: object = None
        self._kept: dict[str, _File] = {}
        self._version = ""

    def page(self, name: str, request: Headers) -> Response:
        """A page, with the addresses that its files have now, in the language that a browser likes best."""
        version = self._refresh()
        texts = {path.stem: path for path in sorted(self.folders[0].glob("languages/*.json"))}
        names = {
            code: json.loads(path.read_text(encoding="utf-8"))[LANGUAGE_NAME] for code, path in texts.items()
        }
        text = self._find(f"{name}.html").read_text(encoding="utf-8")
        liked = next(
            (code for code in _liked(request.get("accept-language", "")) if code in {"en", *names}), "en"
        )
        ahead = f'<link rel="preload" as="fetch" crossorigin href="static/languages/{liked}.json">\n</head>'
        if liked != "en":
            text = text.replace("</head>", ahead, 1)
        offered = json.dumps(names, ensure_ascii=False).replace("&", "&amp;").replace("'", "&#39;")
        text = text.replace('<html lang="en">', f"<html lang=\"en\" data-languages='{offered}'>", 1)
        data = _NAMED.sub(f"static/{version}/", text).encode()
        headers = {"Cache-Control": "no-cache", "Vary": "Accept-Language"}
        return _answer(_File(data, gzip.compress(data, mtime=0), "text/html"), request, headers)

    def file(self, path: str, request: Headers) -> Response | None:
        """What an address of the files of pages gives, by its path; None where it names none."""
        version = self._refresh()
        of, _, name = path.removeprefix("/static/").partition("/")
        if of != version:
            return None
        if name not in self._kept and name in self._names:
            source = self._find(name)
            content = linked(name, self.text).encode() if name in self._scripts else source.read_bytes()
            kind = guess_type(name)[0] or "application/octet-stream"
            self._kept[name] = _File(content, gzip.compress(content, mtime=0), kind)
        found = self._kept.get(name)
        return found and _answer(found, request, {"Cache-Control": FOREVER})

    def text(self, name: str) -> str:
        """What a file holds."""
        return self._find(name).read_text(encoding="utf-8")

    def _find(self, name: str) -> Path:
        return next(path for folder in self.folders if is_file(path := folder / name))

    def _refresh(self) -> str:
        """The part of an address that stands for all files as they are now."""
        paths = [
            (path.relative_to(folder).as_posix(), path, (status := path.stat()).st_mtime_ns, status.st_size)
            for folder in self.folders for path in sorted(folder.rglob("*")) if is_file(path)
        ]  # fmt: skip
        if paths == self._seen:
            return self._version
        digest = sha256()
        for name, path, *_ in paths:
            digest.update(f"{name}\n".encode() + sha256(path.read_bytes()).digest())
        self._names = frozenset(name for name, *_ in paths)
        pages = (self.text(name) for name in self._names if name.endswith(".html"))
        self._scripts = {found for text in pages for found in re.findall(r'src="static/([^"]+\.js)"', text)}
        self._seen, self._kept, self._version = paths, {}, f"v-{digest.hexdigest()[:12]}"
        return self._version


def _liked(header: str) -> Iterable[str]:
    """Codes of languages without their regions, in the order of an Accept-Language."""
    wanted = []
    for part in header.split(","):
        code, _, quality = part.strip().partition(";q=")
        try:
            wanted.append((-float(quality or 1), code.partition("-")[0].lower()))
        except ValueError:
            continue
    return [code for _, code in sorted(wanted, key=lambda one: one[0])]


def _answer(file: _File, request: Headers, headers: dict[str, str]) -> Response:
    etag = f'"{sha256(file.content).hexdigest()[:20]}"'
    vary = ", ".join(filter(None, (headers.get("Vary"), "Accept-Encoding")))
    headers = {**headers, "ETag": etag, "Vary": vary}
    if etag in request.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    if "gzip" in request.get("accept-encoding", ""):
        return Response(
            file.compressed, headers={**headers, "Content-Encoding": "gzip"}, media_type=file.kind
        )
    return Response(file.content, headers=headers, media_type=file.kind)


def linked(name: str, read: Callable[[str], str]) -> str:
    """A module and all that it imports, now or later, as one script; without comments that fill lines.

    Each module becomes a function that gives its exports when it is first imported: an import of names is
    taken apart, so names that are exported are constant, and no module imports itself round a circle
    (``tests/find/server/test_page_files.py``).

    Args:
        name: path of the module, with ``/``.
        read: gives the text of a module by its path.

    Raises:
        ValueError: an import or export in another form than those of the page.
    """
    parts: dict[str, str] = {}

    def add(module: str) -> None:
        if module in parts:
            return
        parts[module] = ""

        def path(found: str) -> str:
            other = normpath(join(dirname(module), found))
            add(other)
            return json.dumps(other)

        def imported(found: re.Match[str]) -> str:
            whole, names, other = found.groups()
            return f"const {whole or names.replace(' as ', ': ')} = await $load({path(other)});"

        text = _IMPORT.sub(imported, _COMMENTS.sub("", read(module)))
        text = _BARE_IMPORT.sub(lambda found: f"await $load({path(found[1])});", text)
        text = _LATE_IMPORT.sub(lambda found: f"$load({path(found[1])})", text)
        exports = ", ".join(name for _, name in _EXPORT.findall(text))
        text = _EXPORT.sub(r"\1", text).replace(
            "import.meta.url", f"new URL({json.dumps(module)}, $here).href"
        )
        if unknown := _UNKNOWN.search(text):
            raise ValueError(f"{module}: {unknown[0]!r} is no import or export that can be linked")
        parts[module] = (
            f"$modules[{json.dumps(module)}] = async () => {{\n{text}\nreturn {{ {exports} }};\n}};\n"
        )

    add(name)
    # The script lies where its module does, from which addresses of others go on.
    here = f"const $here = new URL({json.dumps('../' * name.count('/') or './')}, import.meta.url);\n"
    return "".join((_LINKED, here, *parts.values(), f"await $load({json.dumps(name)});\n"))
