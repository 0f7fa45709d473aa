"""``python -m moviola`` is the command ``moviola``."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; an interruption ends it with code 130, also while it is being imported."""
    try:
        from moviola.cli import main as run

        run()
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    main()
