"""One of everything that a package can add to moviola; ``entry_points.txt`` beside it names the objects.

A package of one's own has them in its pyproject.toml, ``[project.entry-points."moviola.encoders"]``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
import typer
from fastapi import APIRouter, Request
from numpy.typing import NDArray

from moviola.cli.app import JsonOption, show
from moviola.cli.options import DEFAULT_LIBRARY, LibraryOption
from moviola.encoders import DeviceChoice, FrameTextEncoder, load_encoder
from moviola.encoders.readers import (
    SpeechReader,
    TextReader,
    Utterance,
    Voiced,
    load_text_reader,
)
from moviola.export import Export, MomentFormat, Written
from moviola.files.writing import write_text
from moviola.index import Index
from moviola.plugins import ServerAddition
from moviola.retrieval import Calibration
from moviola.retrieval.refiners import Refined


class Renamed:
    """Something of moviola's under a name of its own; a real package has its own model here."""

    def __init__(self, own: Any, name: str) -> None:
        self._own, self.id = own, name

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)


def open_encoder(name: str, choice: DeviceChoice) -> FrameTextEncoder:
    """An encoder, on the device that was chosen."""
    encoder: Any = Renamed(load_encoder("demo", device=choice.device, precision=choice.precision), name)
    return encoder  # type: ignore[no-any-return]


def open_text_reader(language: str | None) -> TextReader:
    """A reader of text in pictures."""
    reader: Any = Renamed(load_text_reader(), "example-text")
    return reader  # type: ignore[no-any-return]


class Silent:
    """Hears nothing."""

    id, revision = "example-speech", "1"

    def read(self, speech: Iterable[Voiced]) -> Iterator[Utterance]:
        return iter(())


def open_speech_reader(language: str | None) -> SpeechReader:
    """A reader of speech."""
    return Silent()


def write_lines(export: Export) -> Written:
    """One moment a line."""
    moments = [chosen.moment for chosen in export.chosen]
    write_text(export.out, "".join(f"{one.video_id} {one.start:g} {one.end:g}\n" for one in moments))
    return Written((export.out,))


LINES = MomentFormat("lines", "Lines of text", ".lines", "file", frozenset(), write_lines)


@dataclass(frozen=True)
class Wider:
    """Proposals with some seconds more on both sides, as ``config.json`` of the model says."""

    seconds: float
    calibration: Calibration | None

    needs_tokens = False
    in_encoder_space = True
    suppress_above = 0.5
    longest_shot = None

    def evidence(self, score: NDArray[Any]) -> NDArray[np.float64]:
        return np.asarray(score, dtype=np.float64)

    def prepare(self, features: Any, video: int) -> None:
        """Nothing is known of a video before the query."""

    def refine(self, queries: Any, query: int, features: Any, proposals: Any) -> Refined:
        start, end = features.clip_spans(
            proposals.video, proposals.start - self.seconds, proposals.end + self.seconds
        )
        return Refined(start, end, proposals.score)


def open_refiner(
    folder: Path, revision: str, device: str, *, context: float, calibration: Calibration | None
) -> Wider:
    """The refiner of a model's folder."""
    return Wider(json.loads((folder / "config.json").read_text())["config"]["seconds"], calibration)


class Plain(Index):
    """Exact search with NumPy."""

    def __init__(self, dim: int) -> None:
        super().__init__(dim)
        self._ids, self._vectors = np.empty(0, np.int64), np.empty((0, dim), np.float32)

    def __len__(self) -> int:
        return len(self._ids)

    def ids(self) -> NDArray[np.int64]:
        return self._ids

    def _add(self, ids: NDArray[np.int64], vectors: Any) -> None:
        self._ids, self._vectors = np.append(self._ids, ids), np.concatenate([self._vectors, vectors])

    def _remove(self, ids: NDArray[np.int64]) -> None:
        keep = ~np.isin(self._ids, ids)
        self._ids, self._vectors = self._ids[keep], self._vectors[keep]

    def _search(
        self, queries: NDArray[np.float32], depth: int, allowed: NDArray[np.int64] | None
    ) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        searched = np.arange(len(self)) if allowed is None else np.flatnonzero(np.isin(self._ids, allowed))
        rows = self._vectors[searched]
        scores = np.array([rows @ query for query in queries])  # each by itself, see `Index.search`
        best = np.argsort(-scores, axis=1, kind="stable")[:, :depth]
        return np.take_along_axis(scores, best, axis=1), self._ids[searched][best]

    def write(self, path: Path) -> None:
        with path.open("wb") as file:
            np.savez(file, ids=self._ids, vectors=self._vectors)

    @classmethod
    def read(cls, path: Path) -> Self:
        with np.load(path) as stored:
            index = cls(stored["vectors"].shape[1])
            index._add(stored["ids"], stored["vectors"])
        return index


@dataclass(frozen=True)
class Scaled:
    """A model that multiplies by its one setting."""

    settings: Mapping[str, Any]
    is_compiled = False

    def number(self, name: str) -> int:
        return int(self.settings[name])

    def run(self, name: str, *inputs: NDArray[np.float32] | None, threads: int = 1) -> tuple[Any, ...]:
        return tuple(self.number("factor") * each for each in inputs if each is not None)

    def graph(self, name: str) -> Any:
        raise NotImplementedError("the folder has its graphs")


def open_model(folder: Path, device: str) -> Scaled:
    """The model in a folder."""
    return Scaled(json.loads((folder / "config.json").read_text())["config"])


class Inline:
    """Workers that are this process."""

    def __init__(self, where: int | str) -> None:
        self.where = where

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing was started."""

    def require(self, check: Callable[[Any], object], item: Any) -> None:
        check(item)

    def map(
        self, function: Callable[[Any], Any], items: Iterable[Any], *, gpu: bool = False
    ) -> Iterator[Any]:
        yield from map(function, items)


commands = typer.Typer()
more_models = typer.Typer(name="models")
commands.add_typer(more_models)


@commands.command("example-count", rich_help_panel="Examples")
def count(library: LibraryOption = DEFAULT_LIBRARY, json: JsonOption = False) -> None:
    """Print the number of videos of a library.

    Example: `moviola example-count --library films`

    From Python: `moviola.Library.videos`.
    """
    from moviola import Library

    with Library(library, read_only=True) as opened:
        show(json, {"videos": len(opened.videos())}, str(len(opened.videos())))


@more_models.command("example-sizes")
def sizes(json: JsonOption = False) -> None:
    """Print the sizes that there are, in a group of moviola's own.

    Example: `moviola models example-sizes`

    From Python: `moviola.encoders.available_models`.
    """
    show(json, {"sizes": ["small"]}, "small")


def _options(
    example_greeting: Annotated[str, typer.Option(help="Word at /api/example/greeting.")] = "",
) -> str | None:
    return example_greeting or None


@dataclass
class Greeter:
    word: str

    def close(self) -> None:
        self.word = ""


def _router() -> APIRouter:
    router = APIRouter(prefix="/api/example", tags=["example"])

    def greeting(request: Request) -> dict[str, str]:
        """The word that the server was started with."""
        greeter: Greeter | None = request.app.state.service.additions.get("example")
        return {"greeting": greeter.word if greeter else ""}

    router.add_api_route("/greeting", greeting, methods=["GET"])
    return router


ADDITION = ServerAddition(options=_options, opened=lambda library, word: Greeter(word), router=_router)
