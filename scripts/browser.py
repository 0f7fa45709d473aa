"""A Chromium for the tests of the page and for its screenshots: found, or made to be there.

python scripts/browser.py            # says which one it is; installs one where there is none
python scripts/browser.py --find     # only says
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["find_browser", "require_browser"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REMEDY = "no Chromium is installed; run: make browser"


def find_browser() -> Path | None:
    """The Chromium of MOVIOLA_BROWSER, of the system, or else of playwright; None where there is none."""
    named = os.environ.get("MOVIOLA_BROWSER")
    if named:
        return Path(named) if Path(named).is_file() else None
    for name in NAMES:
        if found := shutil.which(name):
            return Path(found)
    return _of_playwright()


def _of_playwright() -> Path | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = Path(playwright.chromium.executable_path)
    return path if path.is_file() else None


def require_browser() -> Path:
    """As :func:`find_browser`.

    Raises:
        SystemExit: there is none.
    """
    found = find_browser()
    if found is None:
        raise SystemExit(REMEDY)
    return found


def install_browser() -> None:
    """Debian's where this is root's Debian, else playwright's own.

    Raises:
        SystemExit: neither could be installed.
    """
    if shutil.which("apt-get") and os.geteuid() == 0:
        commands = [["apt-get", "update", "--quiet"], ["apt-get", "install", "--quiet", "--yes", "chromium"]]
    else:
        commands = [[sys.executable, "-m", "playwright", "install", "chromium"]]
    for command in commands:
        if subprocess.run(command, check=False).returncode != 0:
            raise SystemExit(
                f"{' '.join(command)} has failed; install Chromium by hand, or name one in MOVIOLA_BROWSER"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--find", action="store_true", help="install nothing")
    options = parser.parse_args()
    if find_browser() is None and not options.find:
        install_browser()
    print(require_browser())


if __name__ == "__main__":
    main()
