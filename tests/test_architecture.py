"""The rules of DESIGN.md that the source itself can be asked about.

Who may import whom and where a heavy library may be imported, imports inside functions included; no cycle;
no module of more than 500 lines without a reason; no public name without a docstring of its own; no path of
one machine.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "moviola"
MODULES = sorted(PACKAGE.rglob("*.py"))

# ---- the design --------------------------------------------------------------------------------------------

BASE = {"types", "errors", "files", "plugins", "first_use"}
"""What every room may import."""
SMALL = {"temporal", "timing", "devices", "threads"}
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "first_use": set(),
    "plugins": {"errors"},
    "types": {"errors"},
    "files": {"types", "errors"},
    **dict.fromkeys(SMALL, BASE),
    "compiled": BASE,
    "words": BASE,
    "media": BASE | {"threads", "words"},
    "encoders": BASE | {"devices", "threads", "compiled", "words"},
    "features": BASE,
    "index": BASE | {"threads"},
    "retrieval": BASE | {"devices", "features", "index", "temporal", "timing", "threads", "compiled"},
    "library": BASE
    | {"devices", "threads", "media", "encoders", "features", "index", "retrieval", "compiled", "words"},
    "search": BASE
    | {"library", "retrieval", "encoders", "features", "temporal", "threads", "timing", "words"},
    "export": BASE | {"media"},
    "looker": BASE | {"search", "library", "media"},
    "server": BASE | {"search", "library", "export", "media", "threads", "timing", "looker"},
    "mcp": BASE | {"search", "library", "export", "media", "looker"},
}
FINDING = {*MAY_IMPORT, "cli"}
"""One side of the wall: what finds moments. It never names the other side."""
MAY_IMPORT |= {
    "cli": FINDING - {"cli"},
    "__main__": {"cli"},
    "__init__": FINDING - {"server", "mcp", "cli"},
    "addons/dres": BASE | {"library", "search", "server"},
    "addons/milvus": BASE | {"index"},
    "addons/ray": BASE | {"library", "threads"},
    "study/models": BASE | {"retrieval", "features", "temporal", "devices", "threads", "compiled"},
    "study/measures": BASE | {"temporal"},
    "study/datasets": BASE | {"encoders", "features", "study/measures"},
    "study/training": BASE
    | {"temporal", "devices", "features", "retrieval", "study/models", "study/measures", "study/datasets"},
    "study/public": BASE | {"search", "library", "encoders", "study/datasets", "study/measures"},
    "study/judging": BASE | {"search", "library", "export", "server", "study/datasets", "study/measures"},
}
MAY_IMPORT["study/cli"] = FINDING | {room for room in MAY_IMPORT if room.startswith("study/")}
WINGS_OF_PACKAGE = {"study", "addons"}
"""Folders whose own folders are the rooms."""
# Heavy or replaceable libraries live where they are needed and nowhere else.
HOME: dict[str, set[str]] = {
    "av": {"media"},
    "pysubs2": {"media"},
    "transformers": {"encoders"},
    "tokenizers": {"encoders"},
    "onnxruntime": {"encoders"},
    "openvino": {"compiled"},
    "threadpoolctl": {"threads"},
    "rapidocr": {"encoders"},
    "cv2": {"encoders"},
    "faster_whisper": {"encoders"},
    "huggingface_hub": {"encoders"},
    "faiss": {"index", "study/datasets", "threads"},  # data sets: exact nearest captions, which need no index
    "pymilvus": {"addons/milvus"},
    "h5py": {"features", "study/models"},
    "safetensors": {"encoders", "features", "retrieval", "library", "study/models"},
    "torch": {"devices", "compiled", "encoders", "retrieval", "study/models", "study/training"},
    "opentimelineio": {"export"},
    "timecode": {"export"},
    "minigrid": {"study/datasets"},
    "gymnasium": {"study/datasets"},
    "spacy": {"study/datasets"},
    "sqlite3": {"library", "study/judging"},
    "ray": {"addons/ray"},
    "filelock": {"files"},
    "tomli_w": {"files"},
    "Stemmer": {"words", "library"},
    "py3langid": {"words"},
    "typer": {"cli", "study/cli", "study/judging", "addons/dres"},
    "rich": {"cli", "study/cli"},
    "fastapi": {"server", "study/judging", "addons/dres"},
    "uvicorn": {"server"},
    "starlette": {"server"},
    "prometheus_client": {"server"},
    "httpx2": set(),  # of tests and scripts
    "mcp": {"mcp"},
}
# What computes on GPUs, trains, and converts: these import torch, or transformers. On the way of a film into
# a library, and of a question through it, nothing else does.
BY_TORCH = (
    "devices.py", "compiled/runtime.py", "encoders/by_torch/", "encoders/tokens.py", "study/models/",
    "study/training/",
)  # fmt: skip
LONGEST = 500
LONGER: dict[str, str] = {}
"""Modules of more lines, and why they are not two."""

# ---- reading the source ------------------------------------------------------------------------------------


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def room(parts: Sequence[str]) -> str:
    """The room of a module by the parts of its name below the package."""
    own = parts[:2] if parts[0] in WINGS_OF_PACKAGE and len(parts) > 1 else parts[:1]
    return "/".join(own)


def room_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return room(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def name_of(path: Path) -> str:
    """The dotted name of a module."""
    return ".".join(("moviola", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")


NAMES = {name_of(path) for path in MODULES}
FILES = {name_of(path) for path in MODULES if path.stem not in ("__init__", "__main__")}


def imports_of(path: Path) -> Iterator[str]:
    """Absolute names of all that a file imports, wherever in the file; submodules by their own name.

    A text that is the name of a module counts: tables of names are imported by ``import_module``.
    """
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in FILES:
            yield node.value
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            module = str(node.module)
            submodules = [f"{module}.{alias.name}" for alias in node.names]
            yield from (name if module == "moviola" or name in NAMES else module for name in submodules)


def runtime_imports_of(path: Path) -> Iterator[str]:
    """The same without what stands under ``if TYPE_CHECKING``."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = [ast.Pass()]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield str(node.module)


# ---- arrows and cycles -------------------------------------------------------------------------------------


def test_the_design_has_no_cycle() -> None:
    TopologicalSorter(MAY_IMPORT).prepare()


def test_every_module_is_in_a_room_of_the_design() -> None:
    assert {room_of(path) for path in MODULES} <= set(MAY_IMPORT) | WINGS_OF_PACKAGE


def test_rooms_import_only_what_the_design_allows() -> None:
    wrong = set()
    for path in MODULES:
        here = room_of(path)
        for name in imports_of(path):
            first, *rest = name.split(".")
            if first == "moviola":
                target = room(rest) if rest else "the package root"
                if target != here and target not in MAY_IMPORT.get(here, ()):
                    wrong.add(f"{path.relative_to(PACKAGE)} imports {target}")
            elif first in HOME and here not in HOME[first]:
                wrong.add(f"{path.relative_to(PACKAGE)} imports {first}")
    assert not wrong, "\n".join(sorted(wrong))


def test_the_wall() -> None:
    """Nothing of finding names a module of study, or an addon, not even in a text; they come in by hooks."""
    other = re.compile(r"\bmoviola\.(study|addons)\b|\bfrom moviola import (study|addons)\b")
    wrong = [
        f"{path.relative_to(PACKAGE)}: {found[0]}"
        for path in MODULES
        if room_of(path).partition("/")[0] not in WINGS_OF_PACKAGE
        for found in other.finditer(path.read_text(encoding="utf-8"))
    ]
    assert not wrong, "\n".join(wrong)


def test_torch_is_imported_where_it_computes_and_nowhere_else() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in MODULES
        if any(name.partition(".")[0] in {"torch", "transformers"} for name in runtime_imports_of(path))
    }
    assert not (wrong := {name for name in found if not name.startswith(BY_TORCH)}), wrong
    unused = {place for place in BY_TORCH if not any(name.startswith(place) for name in found)}
    assert not unused, f"no torch there any more; take them out of BY_TORCH: {unused}"


HEAVY = {"torch", "transformers", "scipy"}


def test_no_room_on_the_way_of_a_search_imports_torch_when_it_is_imported() -> None:
    """Also not by way of another module: every module of these rooms, but for BY_TORCH, opens without it."""
    modules = [
        name_of(path)
        for path in MODULES
        if room_of(path) in FINDING and not path.relative_to(PACKAGE).as_posix().startswith(BY_TORCH)
    ]
    script = f"""
import sys
from importlib import import_module
sys.modules |= dict.fromkeys({sorted(HEAVY)!r})  # not to be imported
for name in {modules!r}:
    import_module(name)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_table_of_rooms_says_the_same() -> None:
    """DESIGN.md lists the rooms that are there, and what each may import."""
    text = (ROOT / "DESIGN.md").read_text(encoding="utf-8")
    table = text.partition("[start:rooms]")[2].partition("[end:rooms]")[0]
    said: dict[str, set[str] | None] = {}
    for row in re.findall(r"^\| (`.+?) \| .* \| (.+) \|$", table, re.MULTILINE):
        imports = None if row[1].startswith("all") else {word for word in row[1].split(", ") if word != "–"}
        said |= dict.fromkeys(re.findall(r"`([\w/]+?)/?(?:\.py)?`", row[0]), imports)
    rooms = {room_of(path) for path in MODULES} - {"__init__", "__main__"} - WINGS_OF_PACKAGE
    assert said.keys() == rooms
    listed = {room: imports for room, imports in said.items() if imports is not None and room not in BASE}
    assert listed == {room: MAY_IMPORT[room] - BASE for room in listed}


def test_no_cycles_between_modules() -> None:
    """Imports form no cycle, late ones counted: a late import hides a cycle, it does not undo it."""
    graph = {name_of(path): set(imports_of(path)) & NAMES - {name_of(path)} for path in MODULES}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]), pytrace=False)


WINGS: dict[str, set[str]] = {
    "library/userdata": {"library/disk"},
    "library/derived": {"library/disk"},
    "library/ingest": {"library/disk", "library/derived", "library/userdata"},
    "library/disk": set(),
    "library": {"library/userdata", "library/derived", "library/ingest", "library/disk"},
}
"""Folders of the library, and which of them each may import."""


def folder_of(name: str) -> str:
    """The folder of a module, below the package."""
    package = name if (PACKAGE.parent / name.replace(".", "/")).is_dir() else name.rpartition(".")[0]
    return package.removeprefix("moviola").strip(".").replace(".", "/")


def folders() -> dict[str, set[str]]:
    """Folders, and the folders that their modules import."""
    found: dict[str, set[str]] = {}
    for path in MODULES:
        folder = folder_of(name_of(path))
        imported = {folder_of(name) for name in set(imports_of(path)) & NAMES}
        found.setdefault(folder, set()).update(imported - {folder, ""})
    return found


def test_the_wings_of_the_library_import_one_way() -> None:
    found = {folder: imported for folder, imported in folders().items() if folder.split("/")[0] == "library"}
    assert found.keys() == WINGS.keys()
    for folder, imported in found.items():
        own = {one for one in imported if one.split("/")[0] == "library"}
        assert own <= WINGS[folder], f"{folder} imports {own - WINGS[folder]}"


ONE = {
    "encoders/by_torch", "encoders/formats", "encoders/readers", "media/subtitles", "study/models/conquer",
    "study/models/prem", "retrieval/refiners", "server/routes", "study/training/recipes",
    "study/training/tasks",
}  # fmt: skip
"""Folders that are one with the folder above: what their modules share lies there, and so does what picks
one of them."""


def test_no_cycles_between_folders() -> None:
    def one(folder: str) -> str:
        return folder.rpartition("/")[0] if folder in ONE else folder

    graph: dict[str, set[str]] = {}
    for folder, imported in folders().items():
        graph.setdefault(one(folder), set()).update({one(name) for name in imported} - {one(folder)})
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" <- ".join(error.args[1]), pytrace=False)


# ---- size, words, paths ------------------------------------------------------------------------------------


def test_no_module_outgrows_its_name() -> None:
    lines = {
        str(path.relative_to(PACKAGE)): len(path.read_text(encoding="utf-8").splitlines()) for path in MODULES
    }
    long = {name for name, count in lines.items() if count > LONGEST}
    assert set(LONGER) <= long, f"short enough now; take them out of LONGER: {set(LONGER) - long}"
    assert not long - set(LONGER), "\n".join(sorted(long - set(LONGER)))


def public_names(path: Path) -> list[str]:
    """``__all__`` of a module; none without."""
    for node in tree_of(path).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return list(ast.literal_eval(node.value))
    return []


def test_public_names_exist() -> None:
    wrong = [
        f"{name_of(path)}.{name}"
        for path in MODULES
        if path.stem != "__main__"
        for name in public_names(path)
        if not hasattr(import_module(name_of(path)), name)
    ]
    assert not wrong, "\n".join(wrong)


def test_public_functions_and_classes_have_a_docstring() -> None:
    wrong = []
    for path in MODULES:
        # Of overloads the last definition is the function.
        defined = {
            node.name: node for node in tree_of(path).body if isinstance(node, ast.FunctionDef | ast.ClassDef)
        }
        wrong += [
            f"{name_of(path)}.{name}"
            for name in public_names(path)
            if name in defined and not ast.get_docstring(defined[name])
        ]
    assert not wrong, "\n".join(wrong)


POINTERS = re.compile(r"(See\b[^.]*(\.\w[^.]*)*|No|Yes|As above|Same)\.?")
"""The whole of a docstring that says nothing by itself."""


def test_docstrings_say_what_they_document() -> None:
    wrong = set()
    for path in MODULES:
        for node in ast.walk(tree_of(path)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module):
                text = " ".join((ast.get_docstring(node) or "").split())
                if POINTERS.fullmatch(text):
                    wrong.add(str(path.relative_to(PACKAGE)))
    assert not wrong, "\n".join(sorted(wrong))


ABSOLUTE = re.compile(r"(?<![\w.:/~-])/(?:work|home|root|Users|mnt)/\w|\b[A-Z]:\\\\?Users\b")
WRITTEN = ("src", "tests", "benchmarks", "scripts", "examples", "docs", ".ci")
TEXT = {".py", ".md", ".toml", ".txt", ".yml", ".yaml", ".json", ".csv", ".sh", ".html", ".js", ""}


def test_no_file_names_a_place_on_somebodys_machine() -> None:
    files = [path for folder in WRITTEN for path in (ROOT / folder).rglob("*")]
    files += [*ROOT.glob("[!.]*"), ROOT / ".gitignore"]
    wrong = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in files
        if path.is_file() and path.suffix in TEXT
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if ABSOLUTE.search(line)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("text", ["/{}/ann/films", 'Path("/{}/ann")'])
def test_places_are_recognised(text: str) -> None:
    assert all(ABSOLUTE.search(text.format(root)) for root in ("home", "work", "Users"))


@pytest.mark.parametrize("text", ["example.org/{}/page", "~/{}/films", "src/{}/main", "/tmp/films"])
def test_a_text_that_is_no_place_is_left_alone(text: str) -> None:
    assert not any(ABSOLUTE.search(text.format(root)) for root in ("home", "work", "Users"))
