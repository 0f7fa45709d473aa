"""The import arrows of DESIGN.md: who may import whom, and where a heavy library may be imported."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "src" / "moviola"

GROUND = {"types", "errors", "files", "temporal"}
"""What every room may import."""
EVERYTHING = GROUND | {
    "media", "encoders", "models", "index", "propose", "refine", "library", "search", "measures", "datasets",
    "training", "export", "server",
}  # fmt: skip
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "types": {"errors"},
    "files": {"types", "errors"},
    "temporal": {"types", "errors"},
    "media": GROUND,
    "encoders": GROUND,
    "models": GROUND,
    "index": GROUND,
    "propose": GROUND,
    "refine": GROUND | {"models"},
    "library": GROUND | {"media", "encoders", "models", "index"},
    "search": GROUND | {"library", "index", "propose", "refine", "encoders"},
    "measures": GROUND,
    "datasets": GROUND | {"encoders", "measures"},
    "training": GROUND | {"datasets", "models", "measures", "propose"},
    "export": GROUND | {"media"},
    "server": GROUND | {"search", "library", "export", "datasets"},
    "benchmark": EVERYTHING | {"cli"},
    "cli": EVERYTHING | {"benchmark"},
    "__main__": {"cli"},
    "__init__": EVERYTHING,
}
# Heavy or replaceable libraries live in one room each.
HOME: dict[str, set[str]] = {
    "av": {"media"},
    "faiss": {"index", "datasets"},  # datasets: exact nearest captions, which need no index
    "transformers": {"encoders"},
    "onnxruntime": {"encoders"},
    "huggingface_hub": {"encoders"},
    "minigrid": {"datasets"},
    "gymnasium": {"datasets"},
    "h5py": {"datasets"},
    "safetensors": {"models", "datasets"},
    "pysubs2": {"media"},
    "filelock": {"files"},
    "tomli_w": {"files"},
    "torch": {"encoders", "models", "refine", "training", "library", "search", "benchmark"},
}


def room_of(path: Path) -> str:
    first = path.relative_to(PACKAGE).parts[0]
    return first.removesuffix(".py")


def imports_of(path: Path) -> Iterator[tuple[str, int]]:
    """Absolute names of all modules that a file imports, wherever in the file, with the line."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            if node.module == "moviola":
                yield from ((f"moviola.{alias.name}", node.lineno) for alias in node.names)
            elif node.module:
                yield node.module, node.lineno


def test_rooms_import_only_what_the_design_allows() -> None:
    wrong = []
    for path in sorted(PACKAGE.rglob("*.py")):
        room = room_of(path)
        assert room in MAY_IMPORT, f"{path}: no such room in DESIGN.md"
        for name, line in imports_of(path):
            parts = name.split(".")
            if parts[0] == "moviola":
                target = parts[1] if len(parts) > 1 else "the package root"
                if target != room and target not in MAY_IMPORT[room]:
                    wrong.append(f"{path.relative_to(PACKAGE)}:{line}: {room} may not import {target}")
            elif parts[0] in HOME and room not in HOME[parts[0]]:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line}: {parts[0]} belongs to {HOME[parts[0]]}")
    assert not wrong, "\n".join(wrong)


def test_no_cycles_between_modules() -> None:
    """Imports at the top of modules form no cycle (those inside functions are late on purpose)."""
    graph: dict[str, set[str]] = {}
    modules = {
        ".".join(("moviola", *path.relative_to(PACKAGE).with_suffix("").parts)).removesuffix(".__init__")
        for path in PACKAGE.rglob("*.py")
    }
    for path in PACKAGE.rglob("*.py"):
        name = ".".join(("moviola", *path.relative_to(PACKAGE).with_suffix("").parts))
        name = name.removesuffix(".__init__")
        edges = graph.setdefault(name, set())
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("moviola"):
                for alias in node.names:
                    submodule = f"{node.module}.{alias.name}"
                    edges.add(submodule if submodule in modules else str(node.module))
            elif isinstance(node, ast.Import):
                edges.update(alias.name for alias in node.names if alias.name in modules)
        edges.discard(name)

    done: set[str] = set()

    def visit(module: str, trail: tuple[str, ...]) -> None:
        assert module not in trail, " -> ".join((*trail, module))
        if module in done:
            return
        for target in sorted(graph.get(module, ())):
            visit(target, (*trail, module))
        done.add(module)

    for module in sorted(graph):
        visit(module, ())
