"""What other packages add by entry points: the example package in use, and packages that are broken.

The conformance suites of indexes, encoders and readers run for the example, too.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from fastapi import APIRouter
from fastapi.routing import APIRoute
from safetensors.numpy import save_file
from typer.testing import CliRunner

from awake import Awake
from moviola.cli import all_commands
from moviola.cli.commands import load_commands
from moviola.encoders import load_encoder
from moviola.encoders.readers import load_speech_reader, load_text_reader
from moviola.errors import BrokenPlugin, InvalidValue, LibraryError
from moviola.export import MomentFormat, format_of, write_moments
from moviola.export.formats import FORMATS
from moviola.index import backend_of, backends_of
from moviola.library import diagnosis, verify
from moviola.library.ingest.workers import open_workers
from moviola.media import write_video
from moviola.plugins import GROUPS, naming_plugins, plugin, plugins, server_additions
from moviola.retrieval.opening import open_model
from moviola.search import Library
from moviola.server import Options, create_app
from moviola.study.datasets import gridhouse
from moviola.types import Moment

OTHER = "moviola_broken-2.0.dist-info"


@pytest.fixture(scope="module")
def films(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    gridhouse.build(folder, videos=2, seed=1, workers=1, write_video=write_video)
    return folder / "videos"


@pytest.fixture(scope="module")
def folder(films: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that is indexed by the example's encoder, into its type of index."""
    folder = tmp_path_factory.mktemp("plugged") / "lib"
    with Library(folder, encoder="example") as library:
        library.index(films)
        library.indexer.use_index("example-plain")
    return folder


@pytest.fixture
def broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Installs a package with such an entry point, and a module of some code."""

    def install(group: str, point: str, code: str = "") -> None:
        folder = tmp_path / "site" / OTHER
        folder.mkdir(parents=True)
        if code:
            (tmp_path / "site" / f"{point.partition(' = ')[2].partition(':')[0]}.py").write_text(code)
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: moviola-broken\nVersion: 2.0\n")
        (folder / "entry_points.txt").write_text(f"[{group}]\n{point}\n")
        monkeypatch.syspath_prepend(tmp_path / "site")

    return install


def test_the_example_has_one_of_everything() -> None:
    assert {one.point.group for one in plugins() if one.distribution == "moviola-example 1.0"} == set(GROUPS)
    assert str(plugin("moviola.indexes", "example-plain")) == "index 'example-plain' of moviola-example 1.0"


def test_a_library_is_made_and_searched_with_it(folder: Path, films: Path, tmp_path: Path) -> None:
    with Library(folder, read_only=True) as library:
        assert library.store.encoders.visual is not None and library.store.encoders.visual.id == "example"
        assert verify(library.store) == []
        found = library.search("a robot picks up a key", top_k=3)
    with Library(tmp_path / "own", encoder="demo") as own:
        own.index(films)
        assert [m.span for m in own.search("a robot picks up a key", top_k=3)] == [m.span for m in found]
    assert backend_of(backends_of("example-plain")["example-plain"](4)) == "example-plain"


def test_without_its_package_the_library_says_what_to_install(folder: Path, tmp_path: Path) -> None:
    own = shutil.copytree(folder, tmp_path / "lib")
    settings = own / "moviola.toml"
    settings.write_text(settings.read_text().replace("example-plain", "gone-plain"))
    with pytest.raises(
        LibraryError, match=r"index 'gone-plain': unknown; .*install the package that adds it"
    ):
        Library(own, read_only=True)


def test_its_refiner_is_taken_into_use(folder: Path, tmp_path: Path) -> None:
    model = tmp_path / "wider"
    model.mkdir()
    with Library(folder, read_only=True) as library:
        trained = {"encoder": "example", "encoder_revision": library.settings.encoder_revision}
    content = {
        "format": 3, "architecture": "example-wider", "config": {"seconds": 3.0}, "moviola_version": "0.1.0",
        "extra": {**trained, "clip_seconds": 1.0, "segment_clips": 4},
    }  # fmt: skip
    (model / "config.json").write_text(json.dumps(content))
    save_file({"nothing": np.zeros(1, np.float32)}, model / "model.safetensors")
    with Library(shutil.copytree(folder, tmp_path / "lib")) as wider:
        coarse = wider.search("a red door", top_k=1, refine=False)[0]
        wider.indexer.use(refiner=model)
        assert type(wider.refiner).__name__ == "Wider"
        assert wider.search("a red door", top_k=1)[0].span.duration > coarse.span.duration


def test_its_format_is_written_by_name_and_by_suffix(tmp_path: Path) -> None:
    assert format_of(tmp_path / "m.lines").name == "lines"
    for out, format in ((tmp_path / "m.lines", None), (tmp_path / "m.txt", "lines")):
        write_moments([Moment("a", 1, 2.5, 0.5, 1)], {}, out, format)
        assert out.read_text() == "a 1 2.5\n"


def test_its_readers_are_opened_by_name() -> None:
    assert load_text_reader("example-text").id == "example-text"
    assert list(load_speech_reader("example-speech").read([])) == []
    with pytest.raises(InvalidValue, match=r"text reader 'example-speech': it reads speech.*--speech"):
        load_text_reader("example-speech")
    with pytest.raises(InvalidValue, match=r"speech reader 'example-text': it reads pictures.*--ocr-reader"):
        load_speech_reader("example-text")


def test_the_command_line_reads_text_by_it(films: Path, folder: Path, tmp_path: Path) -> None:
    own = shutil.copytree(folder, tmp_path / "lib")
    command = ["index", str(films), "-l", str(own), "--ocr-reader"]
    assert CliRunner().invoke(all_commands(), [*command, "example-text"]).exit_code == 0
    with Library(own, read_only=True) as library:
        readings = [library.catalogue.readings(video.row) for video in library.catalogue.videos()]
    assert {reading["text"].reader for reading in readings} == {"example-text"}
    refused = CliRunner().invoke(all_commands(), [*command, "nobody"])
    assert "text reader 'nobody': there is rapidocr, tesseract, example-" in str(refused.exception)


def test_its_command_and_its_command_in_a_group_are_there(folder: Path) -> None:
    app = all_commands()
    counted = CliRunner().invoke(app, ["example-count", "-l", str(folder)])
    assert (counted.exit_code, counted.output) == (0, "2\n")
    assert CliRunner().invoke(app, ["models", "example-sizes"]).output == "small\n"
    assert CliRunner().invoke(app, ["models", "list", "--json"]).exit_code == 0
    shown = CliRunner().invoke(app, ["--help"], env={"COLUMNS": "80"}).output
    assert "Examples" in shown and "example-count" in shown


@pytest.mark.parametrize(("word", "greeting"), [("hello", "hello"), (None, "")])
def test_its_routes_are_served_and_it_is_closed(folder: Path, word: str | None, greeting: str) -> None:
    settings = {} if word is None else {"example": word}
    app = create_app(folder, Options(additions=settings))
    with Awake(app) as client:
        assert client.get("/api/example/greeting").json() == {"greeting": greeting}
        assert client.get("/api/library").json()["additions"] == [*settings]
        opened = app.state.service.additions.get("example")
    assert opened is None or opened.word == ""


def test_its_option_of_serve_reaches_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[Options] = []
    monkeypatch.setattr("moviola.server.serve", lambda library, options, started: served.append(options))
    words = ["serve", "-l", str(folder), "--example-greeting", "good day"]
    assert CliRunner().invoke(all_commands(), words).exit_code == 0
    assert served[0].additions == {"example": "good day"}


def test_its_workers_index_the_same(folder: Path, films: Path, tmp_path: Path) -> None:
    with Library(tmp_path / "own", encoder="example") as library:
        assert len(library.index(films, workers="example-inline://here").added) == 2
        library.indexer.use_index("example-plain")  # each type has sums of its own
        found = library.search("a robot picks up a key", top_k=3)
    with Library(folder, read_only=True) as library:
        assert library.search("a robot picks up a key", top_k=3) == found


def test_its_model_is_opened_by_the_architecture_of_its_folder(tmp_path: Path) -> None:
    content = {
        "format": 3, "architecture": "example-scaled", "config": {"factor": 3}, "moviola_version": "0.1.0",
        "extra": {},
    }  # fmt: skip
    (tmp_path / "config.json").write_text(json.dumps(content))
    opened = open_model(tmp_path, purpose="a test")
    assert opened.run("all", np.ones(2, np.float32))[0].tolist() == [3, 3]
    (tmp_path / "config.json").write_text(json.dumps({**content, "architecture": "nobodys"}))
    with pytest.raises(InvalidValue, match=r"architecture 'nobodys'; install the package that trained it"):
        open_model(tmp_path, purpose="a test")


def test_a_broken_command_is_named_and_the_help_shows_the_others(
    broken: Callable[..., None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    broken("moviola.commands", "bad = moviola_nowhere:x")
    load_commands()
    assert "commands 'bad' of moviola-broken 2.0: ModuleNotFoundError" in " ".join(
        capsys.readouterr().err.split()
    )
    with pytest.raises(BrokenPlugin, match=r"commands 'bad' of moviola-broken 2\.0"):
        load_commands("bad")


USES: dict[str, Callable[[], object]] = {
    "moviola.encoders": lambda: load_encoder("bad"),
    "moviola.readers": lambda: load_text_reader("bad"),
    "moviola.exporters": lambda: write_moments([Moment("a", 1, 2, 0.5, 1)], {}, Path("x"), "bad"),
    "moviola.indexes": lambda: backends_of("bad"),
    "moviola.workers": lambda: open_workers("bad://there"),
    "moviola.routes": server_additions.__wrapped__,
}


@pytest.mark.parametrize("group", USES)
@pytest.mark.parametrize(
    ("point", "reason"),
    [
        ("bad = moviola_nowhere:x", "ModuleNotFoundError: No module named 'moviola_nowhere'"),
        ("bad = json:nothing", "AttributeError: .*nothing"),
        ("bad = math:pi", "TypeError: "),
    ],
)
def test_a_broken_one_is_named_and_the_rest_works(
    broken: Callable[..., None], tmp_path: Path, group: str, point: str, reason: str
) -> None:
    broken(group, point)
    with pytest.raises(BrokenPlugin, match=rf"{GROUPS[group]} 'bad' of moviola-broken 2\.0: {reason}"):
        USES[group]()
    assert format_of(tmp_path / "m.lines").name == "lines"
    assert load_encoder("demo").id == "demo"
    with pytest.raises(InvalidValue, match="no format is known by") as refused:
        format_of(tmp_path / "m.xyz")
    said = "exporter 'bad' of moviola-broken 2.0 cannot be used" in str(refused.value)
    assert said is (group == "moviola.exporters")


def test_one_that_returns_nothing_is_named(broken: Callable[..., None]) -> None:
    broken("moviola.encoders", "bad = builtins:print")
    with pytest.raises(BrokenPlugin, match=r"encoder 'bad' of moviola-broken 2\.0: .*print returns nothing"):
        load_encoder("bad")


def test_one_that_lacks_a_member_is_named_with_it_on_opening(broken: Callable[..., None]) -> None:
    """The first film failed after an hour, by an AttributeError."""
    code = """
class Half:
    id, revision, curve, device, precision, dim = "bad", "1", {}, "cpu", "fp32", 4
    def encode_frames(self, images): ...
    def encode_text(self, texts): ...
    @property
    def match(self): raise RuntimeError("read too early")

def open_encoder(name, choice):
    return Half()
"""
    broken("moviola.encoders", "bad = moviola_half:open_encoder", code)
    lacks = r"encoder 'bad' of moviola-broken 2\.0: .* lacks frame_size, picture_match, encode_tokens, which "
    with pytest.raises(BrokenPlugin, match=lacks + r"moviola\.encoders\..*FrameTextEncoder asks for"):
        load_encoder("bad")


def test_two_of_one_name_are_refused(broken: Callable[..., None]) -> None:
    broken("moviola.encoders", "example = math:pi")
    with pytest.raises(BrokenPlugin, match=r"moviola-broken 2\.0 .* have one name|have one name"):
        load_encoder("example")


def test_a_format_that_fails_is_named(broken: Callable[..., None], tmp_path: Path) -> None:
    code = """
from moviola.export import MomentFormat
BAD = MomentFormat("bad", "Bad", ".bad", "file", frozenset(), lambda export: {}["a"])
"""
    broken("moviola.exporters", "bad = moviola_bad_format:BAD", code)
    with pytest.raises(
        BrokenPlugin, match=r"^moviola-broken 2\.0: <lambda> failed \(KeyError: 'a'\); update"
    ):
        write_moments([Moment("a", 1, 2, 0.5, 1)], {}, tmp_path / "m.bad")


def test_a_format_that_does_not_say_what_it_wrote_is_named(tmp_path: Path) -> None:
    silent = MomentFormat("silent", "Silent", ".silent", "file", frozenset(), lambda export: None)  # type: ignore[arg-type,return-value]
    with (
        pytest.MonkeyPatch.context() as patched,
        pytest.raises(BrokenPlugin, match=r"format 'silent': returned NoneType where .*Written is due"),
    ):
        patched.setitem(FORMATS, "silent", silent)
        write_moments([Moment("a", 1, 2, 0.5, 1)], {}, tmp_path / "m.silent")


def test_routes_that_are_elsewhere_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rights go by paths; one without a path ended in an error of FastAPI's."""
    router = APIRouter()
    elsewhere = {"example": replace(server_additions()["example"], router=lambda: router)}
    monkeypatch.setattr("moviola.server.app.server_additions", lambda: elsewhere)
    for path in ("", "/api/library/mine"):
        router.routes[:] = [APIRoute(path, lambda: None)]
        where = rf"moviola-example .*route '{path}' is not below /api/example"
        with pytest.raises(BrokenPlugin, match=where):
            create_app(folder)


def test_a_reader_that_fails_is_named_for_its_video_and_the_others_are_read(
    broken: Callable[..., None], films: Path, folder: Path, tmp_path: Path
) -> None:
    code = """
class Reader:
    id, revision, longest_side, read_once = "bad", "1", 640, False

    def read(self, image):
        if not Reader.read_once:
            Reader.read_once = True
            raise ZeroDivisionError("no letters")
        return []

def open_reader(language):
    return Reader()
"""
    broken("moviola.readers", "bad = moviola_bad_reader:open_reader", code)
    with Library(shutil.copytree(folder, tmp_path / "lib")) as library:
        report = library.index(films, ocr_reader="bad")
    (problem,) = report.reading_problems.values()
    assert "moviola-broken 2.0: Reader.read failed (ZeroDivisionError: no letters)" in problem
    assert len(report.read["text"]) == 1


def test_an_encoder_that_fails_is_named(broken: Callable[..., None], films: Path, tmp_path: Path) -> None:
    code = """
from moviola.encoders import load_encoder

def open_encoder(name, choice):
    encoder = load_encoder("demo", device=choice.device)
    encoder.id, encoder.encode_frames = name, lambda images: images.nothing
    return encoder
"""
    broken("moviola.encoders", "bad = moviola_bad_encoder:open_encoder", code)
    with (
        Library(tmp_path / "lib", encoder="bad", sentence_encoder="none") as library,
        pytest.raises(
            BrokenPlugin, match=r"moviola-broken 2\.0: .*<lambda> failed \(AttributeError: .*nothing"
        ),
    ):
        library.index(films)


@pytest.mark.parametrize(
    ("number", "method", "returned", "said"),
    [
        (
            1,
            "encode_frames",
            "encode(given)[:, 1:]",
            r"returned float32 \(\d+, \d+\) where float32 \(\d+, \d+\) is",
        ),
        (2, "encode_frames", "encode(given).astype('f8')", "returned float64"),
        (3, "encode_frames", "list(encode(given))", "returned list where float32"),
        (4, "encode_frames", "encode(given) * float('nan')", "infinite or NaN; update the package"),
        (5, "encode_text", "encode(given)[:-1]", "returned float32"),
        (6, "encode_text", "encode(given)[:, (given == ['a red door']):]", r"returned float32 \(1, \d+\)"),
    ],
)
def test_an_encoder_that_returns_something_else_is_named(
    broken: Callable[..., None],
    films: Path,
    tmp_path: Path,
    number: int,
    method: str,
    returned: str,
    said: str,
) -> None:
    code = f"""
from moviola.encoders import load_encoder

def open_encoder(name, choice):
    encoder = load_encoder("demo", device=choice.device)
    encode, encoder.id = encoder.{method}, name
    encoder.{method} = lambda given: {returned}
    return encoder
"""
    broken("moviola.encoders", f"bad = moviola_odd_encoder_{number}:open_encoder", code)
    with (
        Library(tmp_path / "lib", encoder="bad", sentence_encoder="none") as library,
        pytest.raises(BrokenPlugin, match=f"encoder 'bad': .*{said}"),
    ):
        library.index(films)
        library.search("a red door")


def test_an_index_that_fails_is_named(broken: Callable[..., None], folder: Path, tmp_path: Path) -> None:
    code = """
from moviola_example import Plain

class Bad(Plain):
    def _search(self, queries, depth, allowed):
        return super()._search(queries, "many", allowed)
"""
    broken("moviola.indexes", "bad = moviola_bad_index:Bad", code)
    with Library(shutil.copytree(folder, tmp_path / "lib")) as library:
        library.indexer.use_index("bad")
        with pytest.raises(
            BrokenPlugin, match=r"moviola-example 1\.0: Plain\._search failed \(TypeError: slice"
        ):
            library.search("a red door")


def test_other_errors_are_as_they_were() -> None:
    with pytest.raises(KeyError), naming_plugins():
        {}["a"]


def test_doctor_lists_them(broken: Callable[..., None], tmp_path: Path) -> None:
    broken("moviola.readers", "bad = moviola_nowhere:x")
    found = {one.detail: one.ok for one in diagnosis._plugins()}
    assert found["encoder 'example' of moviola-example 1.0"]
    assert [detail for detail, ok in found.items() if not ok] == [
        "reader 'bad' of moviola-broken 2.0: ModuleNotFoundError: No module named 'moviola_nowhere'; "
        "update the package, or uninstall it"
    ]
