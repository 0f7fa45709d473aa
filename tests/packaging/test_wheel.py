"""The wheel alone, in an environment of its own outside the repository: small, without torch, and it works.

Building needs setuptools, installing the package index; the rest needs no network.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from turns import changed

ROOT = Path(__file__).resolve().parents[2]
FILM = "moviepy_chaplin.mp4"
MOST_INSTALLED = 900
"""Megabytes."""
NOT_INSTALLED = ("torch", "transformers", "scipy", "onnxruntime", "nvidia", "triton")

# Where packaging has changed it is built in every turn.
PACKAGING = ("pyproject.toml", "constraints.txt", "tests/packaging", "src/moviola/plugins.py")
pytestmark = [pytest.mark.long(*(() if changed(*PACKAGING) else (1,))), pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that holds the wheel and what it asks for."""
    place = tmp_path_factory.mktemp("wheel")
    sources = place / "sources"
    shutil.copytree(ROOT / "src" / "moviola", sources / "src" / "moviola")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources / name)
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    built = [*pip, "wheel", "--no-deps", "--no-build-isolation", "-w", str(place), str(sources)]
    subprocess.run(built, check=True, timeout=300)
    (wheel,) = place.glob("*.whl")
    shutil.rmtree(sources)
    venv.create(place / "env", with_pip=False)
    python = place / "env" / "bin" / "python"
    constraints = ["--constraint", str(ROOT / "constraints.txt")]
    install = [*pip, "--python", str(python), "install", *constraints, str(wheel)]
    subprocess.run(install, check=True, timeout=1200)
    return place / "env"


@pytest.fixture(scope="module")
def ran(environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """Runs the installed command in a folder of its own, where the repository is out of sight."""
    return Ran(environment, tmp_path_factory.mktemp("elsewhere"))


class Ran:
    """Runs the installed command.

    Attributes:
        place: where; ``films`` and ``library`` lie there.
    """

    def __init__(self, environment: Path, place: Path) -> None:
        self.place = place
        self._bin = environment / "bin"
        kept = ("PATH", "LANG", "TMPDIR", "OMP_NUM_THREADS")
        self.environment = {name: os.environ[name] for name in kept if name in os.environ}
        self.environment |= {"HOME": str(place), "HF_HUB_OFFLINE": "1"}

    def command(self, *words: str | Path) -> list[str]:
        return [str(self._bin / "moviola"), *map(str, words)]

    def __call__(self, *words: str | Path, code: int = 0) -> str:
        done = subprocess.run(
            self.command(*words), cwd=self.place, env=self.environment, capture_output=True, text=True,
            check=False, timeout=300,
        )  # fmt: skip
        assert done.returncode == code, done.stderr
        return done.stdout if code == 0 else done.stderr

    def python(self, script: str) -> str:
        return subprocess.run(
            [str(self._bin / "python"), "-c", script], cwd=self.place, env=self.environment,
            capture_output=True, text=True, check=True, timeout=300,
        ).stdout  # fmt: skip


@pytest.fixture(scope="module")
def films(ran: Ran, footage: Path) -> Path:
    """A folder of one film."""
    films = ran.place / "films"
    films.mkdir()
    shutil.copy(footage / FILM, films / FILM)
    return films


@pytest.fixture(scope="module")
def library(ran: Ran, films: Path) -> Path:
    """A library of the film, made by the installed command with the encoder that it takes by itself."""
    assert "1 added" in ran("index", films, "--library", ran.place / "library")
    return ran.place / "library"


def test_it_is_small_and_without_torch(environment: Path) -> None:
    (packages,) = environment.glob("lib/python*/site-packages")
    names = {path.name.lower().partition("-")[0] for path in packages.iterdir()}
    assert not {name for name in names if name.startswith(NOT_INSTALLED)}
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file()) / 1e6
    print(f"{size:.0f} MB installed")
    assert size <= MOST_INSTALLED


def test_it_is_the_installed_one(ran: Ran, environment: Path) -> None:
    where = ran.python("import moviola; print(moviola.__file__)").strip()
    assert Path(where).is_relative_to(environment)


def test_every_command_says_what_it_takes(ran: Ran) -> None:
    """Also those whose work needs an extra."""
    listed = ran.python(
        "import typer\n"
        "from moviola.cli import all_commands\napp = all_commands()\n"
        "def walk(command, words):\n"
        "    print(*words)\n"
        "    for name, below in getattr(command, 'commands', {}).items():\n"
        "        walk(below, [*words, name])\n"
        "walk(typer.main.get_command(app), ['moviola'])\n"
    )
    commands = [line.split()[1:] for line in listed.splitlines()]
    assert len(commands) > 30
    script = (
        "from typer.testing import CliRunner\n"
        "from moviola.cli import all_commands\napp = all_commands()\n"
        f"for words in {commands!r}:\n"
        "    done = CliRunner().invoke(app, [*words, '--help'])\n"
        "    assert done.exit_code == 0 and 'Usage' in done.output, (words, done.output)\n"
    )
    ran.python(script)


def test_a_film_is_indexed_and_found(ran: Ran, library: Path) -> None:
    found = ran("search", "an old black and white film", "--library", library, "--json")
    assert "moviepy_chaplin" in found
    assert "chaplin" in ran("list", "--library", library)
    assert "conse-lite1 works" in ran("doctor", "--library", library)


def test_trained_models_run(ran: Ran, films: Path) -> None:
    """The demo's, which carry their graphs."""
    library = ran.place / "demo"
    ran("index", films, "--library", library, "--encoder", "demo")
    ran("library", "use", "--library", library, "--stage1", "demo", "--refiner", "demo")
    assert "moviepy_chaplin" in ran("search", "a red ball", "--library", library, "--json")


def test_what_needs_torch_says_how_to_get_it(ran: Ran, library: Path, films: Path) -> None:
    for words in (
        (
            "index",
            films,
            "--library",
            ran.place / "new",
            "--encoder",
            "demo",
            "--device",
            "cuda",
        ),
        (
            "models",
            "convert",
            library / "moviola.toml",
            "--release",
            "spr-stage1",
            "--out",
            ran.place / "out",
        ),
    ):
        said = ran(*words, code=1)
        assert "pip install " in said and "'torch>=" in said
        assert "Traceback" not in said


def test_moments_are_exported(ran: Ran, library: Path) -> None:
    ran("search", "an old black and white film", "--library", library, "--weak")
    for name in ("found.csv", "found.edl", "found.otio", "found.fcpxml", "found.mp4"):
        ran("export", ran.place / name, "--library", library)
        assert (ran.place / name).stat().st_size > 0


def test_it_is_served_with_its_page(ran: Ran, library: Path) -> None:
    server = subprocess.Popen(
        ran.command("serve", "-l", library, "--port", "0", "--json"), cwd=ran.place, env=ran.environment,
        stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert server.stdout is not None
        said = server.stdout.readline()
        assert said
        url = json.loads(said)["url"].rstrip("/")
        page = urlopen(url, timeout=60).read().decode()
        scripts = re.findall(r'(?:src|href)="(/?[^"]+\.(?:js|css|svg))"', page)
        assert scripts
        for script in scripts:
            assert urlopen(f"{url}/{script.lstrip('/')}", timeout=60).status == 200
        request = Request(
            f"{url}/api/search", data=json.dumps({"query": "a film"}).encode(),
            headers={"Content-Type": "application/json"},
        )  # fmt: skip
        assert "moments" in json.load(urlopen(request, timeout=60))
    finally:
        server.terminate()
        server.wait(timeout=60)
        assert server.stdout is not None
        server.stdout.close()
