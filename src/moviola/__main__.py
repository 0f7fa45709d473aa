"""``python -m moviola`` is the command ``moviola``."""

from moviola.cli import main

if __name__ == "__main__":
    main()
