"""Commands in processes of their own, which must not import what they do not need."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence

_SCRIPT = """
import sys
unneeded, sys.argv[1:] = set(sys.argv[1].split(",")), sys.argv[2:]
from moviola.__main__ import main
try:
    main()
except SystemExit as left:
    if left.code:
        raise
if imported := unneeded & {*sys.modules}:
    sys.exit(f"imported: {sorted(imported)}")
"""


def cold(words: Sequence[object], unneeded: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """What became of a command; it fails with their names where one of some modules was imported."""
    command = [sys.executable, "-c", _SCRIPT, ",".join(unneeded), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)
