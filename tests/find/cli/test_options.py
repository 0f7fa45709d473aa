"""One way to name a library, one name for an option, the user's defaults, output for people and pipes."""

from __future__ import annotations

import inspect
import signal
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer.main

from moviola.__main__ import main as run_moviola
from moviola.cli import all_commands
from moviola.cli.app import console, show_table
from moviola.library import Indexer, IngestProgress
from moviola.library.ingest.watching import Hours, Watcher, WatchOptions
from moviola.mcp.tools import LibraryTools
from moviola.search import Filter, Library, SearchOptions
from moviola.search.schema import Filters
from moviola.server.schemas import SearchRequest

app = all_commands()

Run = Callable[..., Any]

WITHOUT_LIBRARY = {
    "models", "dataset", "study", "evaluate", "compare", "gridhouse", "features convert", "features check",
    "features from-files", "judge progress", "judge export", "judge import", "judge training",
}  # fmt: skip
"""Commands, and groups of them, that open no library."""


def commands(command: Any, name: str = "") -> dict[str, Any]:
    below = getattr(command, "commands", {})
    inner = [commands(one, f"{name} {word}".strip()) for word, one in below.items()]
    return {key: one for found in inner for key, one in found.items()} or {name: command}


COMMANDS = commands(typer.main.get_command(app))


def options(command: str) -> dict[str, Any]:
    return {one.name: one for one in COMMANDS[command].params}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_library_is_named_alike(command: str) -> None:
    if {command, command.partition(" ")[0]} & WITHOUT_LIBRARY:
        assert "library" not in options(command)
        return
    library = options(command)["library"]
    assert library.opts == ["--library", "-l"]
    usual = Path("moviola-library")
    assert (library.envvar, library.default) == ("MOVIOLA_LIBRARY", [usual] if library.multiple else usual)


@pytest.mark.parametrize(
    "command",
    [
        name
        for name, command in COMMANDS.items()
        if any("--out" in option.opts and option.required for option in command.params)
        and name
        not in ("answer", "judge new", "judge export", "judge training")  # with a library or a task at hand
    ],
)
def test_output_beside_a_library_is_not_put_into_one(command: str, moviola: Run, tmp_path: Path) -> None:
    (tmp_path / "moviola.toml").touch()
    answer = moviola(*command.split(), "--out", tmp_path / "models" / "xml")
    assert answer.code == 1 and "lies in the folder of the library" in answer.err.replace("\n", " ")


def test_options_have_the_names_of_python_http_and_agents() -> None:
    settings = {field.name for field in fields(SearchOptions)} - {"filter"}
    filters = {field.name for field in fields(Filter)}
    assert {field for field in SearchRequest.model_fields if field != "query"} == settings | {"filter"}
    assert set(Filters.model_fields) == filters
    agents = set(inspect.signature(LibraryTools.search_moments).parameters)
    assert agents == {"self", "query", "filter"} | settings
    assert filters | settings - {"videos", "weak"} < set(options("search"))
    assert settings - {"weak", "check"} < set(options("answer"))
    assert {"then", "gap", "without", "like", "picture", "save"} < set(options("search"))


# ---- config.toml -------------------------------------------------------------------------------------------


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "config.toml"
    monkeypatch.setenv("MOVIOLA_CONFIG", str(path))
    monkeypatch.delenv("MOVIOLA_LIBRARY", raising=False)
    return path


@pytest.mark.parametrize("words", [("list",), ("library", "info"), ("mcp",), ("serve",), ("kept", "list")])
def test_the_command_line_comes_before_the_environment_and_that_before_the_file(
    moviola: Run, config: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...]
) -> None:
    config.write_text('library = "/of/the/file"\n')
    assert "/of/the/file: no library there" in moviola(*words).err
    monkeypatch.setenv("MOVIOLA_LIBRARY", "/of/the/environment")
    assert "/of/the/environment: no library there" in moviola(*words).err
    assert "/of/the/line: no library there" in moviola(*words, "-l", "/of/the/line").err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('colour = "red"', "colour: unknown key; there are library, encoder"),
        ("ocr = 1", "ocr = 1: write true or false"),
        ("speech = true", "speech = True: write a text in quotes"),
        ('device = "abacus"', "device 'abacus': unknown; choose auto"),
        ('library = "films"', "library = 'films': write a full path"),
        ('encoder = ""', "encoder = '': empty; write a value"),
        ("library", "line 1"),
        ('library = "/x\\u0000y"', "library = '/x\\x00y': letters that cannot be printed"),
        ('encoder = "\\u001b[2J"', "letters that cannot be printed"),
        ('library = "~nobody-at-all/x"', "write a full path"),
        (
            "watch = true",
            "watch = True: write a table, [watch], with hours, cores, poll, force_polling, settle",
        ),
        ("[watch]\nhour = 1", "watch.hour: unknown key; there are watch.hours, watch.cores, watch.poll"),
        ("[watch]\ncores = 0", "watch.cores = 0: write a number above 0"),
        ("[watch]\ncores = 1.5", "watch.cores = 1.5: write a whole number"),
        ("[index]\nstills = 1", "index.stills = 1: write true or false"),
        ("[train]\nstills = 1", "train: unknown key; there are library"),
        ("[watch]\nsettle = true", "watch.settle = True: write a number"),
        ("[watch]\npoll = 0", "watch.poll = 0: write a number above 0"),
    ],
)
def test_a_wrong_file_is_named(moviola: Run, config: Path, content: str, message: str) -> None:
    config.write_text(content)
    answer = moviola("list")
    assert (answer.code, answer.err.count("\n")) == (1, 1)
    assert str(config) in answer.err and message in answer.err


def test_encoders_of_the_file_are_of_new_libraries(
    moviola: Run, config: Path, films: Path, library: Path, tmp_path: Path
) -> None:
    config.write_text('encoder = "none"\nsentence_encoder = "none"\nocr = false\n')
    assert moviola("index", films / "harbour.mp4", "-l", tmp_path / "lib").code == 0
    assert 'encoder = ""' in (tmp_path / "lib" / "moviola.toml").read_text()
    assert moviola("list", "-l", library).code == 0
    config.write_text('encoder = "demo"\n')
    assert moviola("index", films / "street.mp4", "-l", tmp_path / "lib").code == 0
    assert moviola("index", films / "street.mp4", "-l", tmp_path / "lib", "--encoder", "demo").code == 1


def test_watching_is_tuned_by_the_file(
    moviola: Run, config: Path, films: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What few need has no option, and counts by the file."""
    config.write_text(
        '[watch]\nhours = "22:00-06:00"\ncores = 2\npoll = 3\nforce_polling = true\nsettle = 0.5\n'
    )
    cores: list[int] = []
    monkeypatch.setattr("moviola.threads.limit_threads", cores.append)
    given = []
    monkeypatch.setattr("os.nice", lambda step: step)
    monkeypatch.setattr("signal.signal", lambda *handler: None)
    monkeypatch.setattr(Watcher, "run", lambda watcher: given.append(watcher.options))
    assert moviola("watch", films, "-l", library).code == 0
    assert cores == [2]
    assert given == [WatchOptions(poll=3, force_polling=True, settle=0.5, hours=Hours.parse("22:00-06:00"))]


def test_watched_videos_are_read_as_the_file_says(
    moviola: Run, config: Path, films: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were read as without a file: text in their pictures, no speech."""
    config.write_text('ocr = false\nspeech = "tiny.en"\nspeech_language = "en"\n')
    given = []
    monkeypatch.setattr("os.nice", lambda step: step)
    monkeypatch.setattr("signal.signal", lambda *handler: None)
    monkeypatch.setattr(Watcher, "run", lambda watcher: given.append(watcher.index.keywords))
    assert moviola("watch", films, "-l", library).code == 0
    monkeypatch.setenv("MOVIOLA_OCR", "yes")
    monkeypatch.setenv("MOVIOLA_SPEECH", "none")
    assert moviola("watch", films, "-l", library).code == 0
    first = {"ocr": False, "speech": "tiny.en", "speech_language": "en"}
    assert given == [first, first | {"ocr": True, "speech": "none"}]


@pytest.mark.parametrize(
    "words", [("search", "umbrella"), ("kept", "run", "one"), ("concepts", "forget", "one")]
)
def test_searches_compute_on_the_usual_device(
    moviola: Run, config: Path, library: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[object, ...]
) -> None:
    devices = []
    opened = Library.__init__

    def spied(self: Library, folder: Path, **given: Any) -> None:
        devices.append(given.pop("device", "auto"))
        opened(self, folder, **given)

    monkeypatch.setattr(Library, "__init__", spied)
    for line, environment, device in (
        ("", "", "auto"), ('device = "cpu"', "", "cpu"), ('device = "cpu"', "cuda:1", "cuda:1"),
    ):  # fmt: skip
        config.write_text(line)
        monkeypatch.setenv("MOVIOLA_DEVICE", environment)
        moviola(*words, "-l", library)
        assert set(devices) == {device}
        devices.clear()


def test_a_device_that_is_none_is_named(moviola: Run, library: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MOVIOLA_DEVICE", "abacus")
    assert moviola("list", "-l", library).code == 0
    answer = moviola("search", "umbrella", "-l", library)
    assert answer.code == 1 and "device 'abacus': unknown; choose auto" in answer.err


def test_doctor_shows_the_file(moviola: Run, config: Path, library: Path, monkeypatch: Any) -> None:
    config.write_text(f'library = "{library}"\ndevice = "cpu"\n')
    monkeypatch.setenv("MOVIOLA_DEVICE", "auto")
    (found,) = (row for row in moviola("doctor", "--json").rows if row["what"] == "config")
    assert found["detail"] == (
        f"{config}: library = '{library}', device = 'cpu' (MOVIOLA_DEVICE comes first)"
    )
    monkeypatch.setenv("MOVIOLA_CONFIG", str(config.with_name("none.toml")))
    assert "none.toml: no such file" in moviola("doctor").err


# ---- people and pipes --------------------------------------------------------------------------------------


def test_a_row_is_a_line_in_a_pipe_and_a_table_on_a_terminal(
    moviola: Run, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "a name of much more than thirty letters"
    (tmp_path / f"{name}.mp4").write_bytes((films / "harbour.mp4").read_bytes())
    on = ("-l", tmp_path / "lib")
    moviola("index", tmp_path, *on, "--encoder", "none", "--sentence-encoder", "none")
    monkeypatch.setenv("COLUMNS", "40")
    assert moviola("list", *on).out == f"{name}\t0:00:12.0\tready\n"
    assert [row["video_id"] for row in moviola("list", *on, "--json").rows] == [name]
    monkeypatch.setenv("FORCE_COLOR", "1")
    lines = moviola("list", *on).out.splitlines()
    assert "duration" in lines[0] and len(lines) > 2


@pytest.mark.parametrize("width", [80, 40])
def test_a_number_is_never_cut(width: int, moviola: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would read as another number."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setattr(console.rich, "width", width)
    monkeypatch.setattr(console.rich, "_force_terminal", True)
    row = ("1", "cars on a street in Zürich", "0:00:16.0 – 0:00:19.0", "0.999", "a word " * 6, "seen")
    with console.rich.capture() as printed:
        show_table(("rank", "video", "start – end", "score", "snippet", "why"), [row])
    words = printed.get().split()
    assert {"score", "0.999", "0:00:16.0", "0:00:19.0"} <= set(words)


def test_an_interruption_while_commands_are_loaded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def load(_: str) -> None:
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr("moviola.cli.commands.load_commands", load)
    with pytest.raises(SystemExit) as left:
        run_moviola()
    assert (left.value.code, capsys.readouterr().err) == (130, "interrupted\n")


@pytest.mark.parametrize(
    ("words", "hinted"), [(["search", "-fire"], True), (["show", "-fire"], True), (["list", "--josn"], False)]
)
def test_what_begins_with_a_dash_is_given_after_two(moviola: Run, words: list[str], hinted: bool) -> None:
    answer = moviola(*words)
    assert answer.code == 2 and ("is given after --" in answer.err) == hinted


def test_an_interruption_says_where_the_work_stands(
    moviola: Run, films: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def index(self: Indexer, *_: object, progress: Callable[[IngestProgress], None], **__: object) -> None:
        progress(IngestProgress(1, 2, "street", 3.0))
        signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(Indexer, "index", index)
    answer = moviola("index", films, "-l", tmp_path / "lib", "--encoder", "demo")
    assert answer.code == 130
    assert answer.err.splitlines() == [
        "street: 1 of 2 done; finished videos are in the library, and the same command continues",
        "interrupted",
    ]


# ---- long and short ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("search", "x", "--where"), ("search", "x", "--taken"), ("search", "x", "--by"), ("kept", "run"),
        ("library", "use", "--index"), ("library", "forget"), ("concepts", "forget"), ("library",), (),
        ("search", "x", "--top-k"),
    ],
)  # fmt: skip
def test_no_answer_repeats_all_of_what_was_given(moviola: Run, library: Path, words: tuple[str, ...]) -> None:
    """Of 50,000 letters the beginning and the end say which, and the remedy is seen."""
    answer = moviola(*words, "a" * 50_000, *(("-l", library) if words[1:] else ()))
    assert answer.code in (1, 2) and len(answer.out + answer.err) < 4000 and "[…]" in answer.err


def test_a_small_address_space_is_refused_before_anything_breaks(
    moviola: Run, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries in C ended the process by a signal, or Python by a traceback."""
    resource = pytest.importorskip("resource")
    limits = {resource.RLIMIT_AS: (1 << 30, resource.RLIM_INFINITY)}
    monkeypatch.setattr(resource, "getrlimit", limits.__getitem__)
    monkeypatch.setattr("sys.argv", ["moviola", "list", "-l", str(library)])
    with pytest.raises(SystemExit, match="1"):
        run_moviola()
    limits[resource.RLIMIT_AS] = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    with pytest.raises(SystemExit, match="0"):
        run_moviola()


def test_memory_that_runs_out_is_said(
    library: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 5. TiB")

    monkeypatch.setattr("moviola.library.Catalogue.videos", full)
    monkeypatch.setattr("sys.argv", ["moviola", "list", "-l", str(library)])
    with pytest.raises(SystemExit, match="1"):
        run_moviola()
    assert "not enough memory (Unable to allocate 5. TiB); give it 4 GiB" in capsys.readouterr().err


@pytest.mark.parametrize(("name", "value"), [("speech", "tiny.en"), ("sounds", "yamnet")])
def test_a_reader_that_is_named_and_refused_is_an_error(
    moviola: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    """The refusal won without a word; over the environment it may."""
    index = ("index", tmp_path / "none", "-l", tmp_path / "lib", f"--no-{name}")
    answer = moviola(*index, f"--{name}", value)
    assert answer.code == 2 and f"--{name}: contradicts --no-{name}" in " ".join(answer.err.split())
    monkeypatch.setenv(f"MOVIOLA_{name.upper()}", value)
    assert "no such file or folder" in moviola(*index).err
