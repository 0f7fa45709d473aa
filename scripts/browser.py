"""Browsers for the tests of the page and its screenshots, strace for the torture: found, or installed.

python scripts/browser.py            # says which they are; installs those that are missing
python scripts/browser.py --find     # only says
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
from pathlib import Path

__all__ = ["can_install", "find_browser", "find_firefox", "require_browser"]

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FIREFOXES = ("firefox-esr", "firefox")
REMEDY = "no Chromium is installed; run: make browser"
FIREFOX_REMEDY = "no Firefox is installed; run: make browser, or name one in MOVIOLA_FIREFOX"


def find_browser() -> Path | None:
    """The Chromium of MOVIOLA_BROWSER, of the system, or else of playwright; None where there is none."""
    named = os.environ.get("MOVIOLA_BROWSER")
    if named:
        return Path(named) if Path(named).is_file() else None
    for name in NAMES:
        if found := shutil.which(name):
            return Path(found)
    return _of_playwright()


def find_firefox() -> Path | None:
    """The Firefox of MOVIOLA_FIREFOX, or else of the system; None where there is none."""
    named = os.environ.get("MOVIOLA_FIREFOX")
    found = named or next(filter(None, map(shutil.which, FIREFOXES)), None)
    return Path(found) if found and Path(found).is_file() else None


def can_install() -> bool:
    """Whether this is root's Debian, for which packages of its own can be installed."""
    return shutil.which("apt-get") is not None and os.geteuid() == 0


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
    """Debian's Chromium where this is root's Debian, else playwright's own.

    Raises:
        SystemExit: neither could be installed.
    """
    if can_install():
        _install_package("chromium")
    elif not _runs(sys.executable, "-m", "playwright", "install", "chromium"):
        raise SystemExit("playwright could not fetch Chromium; install one, or name one in MOVIOLA_BROWSER")


def _install_package(name: str) -> None:
    commands = ("apt-get", "update", "--quiet"), ("apt-get", "install", "--quiet", "--yes", name)
    for command in commands:
        if not _runs(*command):
            raise SystemExit(f"{' '.join(command)} has failed; install {name} by hand")


def _runs(*command: str) -> bool:
    return subprocess.run(command, check=False).returncode == 0


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--find", action="store_true", help="install nothing")
    options = parser.parse_args()
    if not options.find:
        if find_browser() is None:
            install_browser()
        if find_firefox() is None and can_install():
            _install_package("firefox-esr")
        if shutil.which("strace") is None and can_install():
            _install_package("strace")
    print(require_browser())
    print(find_firefox() or FIREFOX_REMEDY)


if __name__ == "__main__":
    main()
