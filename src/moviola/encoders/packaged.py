"""Files of models that other packages carry: found without running the package's code, and held to digests.

Who publishes such packages is not known here; a file is read only if it is the one that was measured.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from pathlib import Path

from moviola.errors import DataError

__all__ = ["packaged_folder", "require_pinned"]


def packaged_folder(package: str) -> Path | None:
    """The folder of an installed package, which is not imported; None without it."""
    there = importlib.util.find_spec(package)
    return Path(there.origin).parent if there is not None and there.origin else None


def require_pinned(folder: Path, digests: Mapping[str, str], wanted: str) -> None:
    """Refuse files of a folder that do not have these SHA-256 digests, by name; ``wanted`` is the requirement
    that brings the right ones.

    Raises:
        DataError: a file is missing, cannot be read or is another one.
    """
    for name, digest in digests.items():
        try:
            with (folder / name).open("rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
        except OSError as error:
            reason = error.strerror or str(error)
            raise DataError(f"{folder / name}: cannot be read ({reason}); install {wanted} again") from error
        if found != digest:
            raise DataError(
                f"{folder / name}: not the file that was measured (SHA-256 {found:.16}…, not {digest:.16}…); "
                f"install {wanted}"
            )
