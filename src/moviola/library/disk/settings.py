"""``moviola.toml``: the settings of a library. Opening it with others is refused.

The file bears a digest of its values, and the catalogue holds a copy of them
(:mod:`moviola.library.disk.noted_settings`), which is compared at every opening: with one wrong digit in it,
none of the features that are stored would seem whole.
"""

from __future__ import annotations

import errno
import hashlib
import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

from moviola.errors import DamagedSettings, DataError, EncoderMismatch, InvalidValue, LibraryError
from moviola.files.toml import read_toml, write_toml
from moviola.index import AUTO, backends_of, name_of

__all__ = ["DIGEST", "FORMAT_VERSION", "OF_PICTURES", "SETTINGS_FILE", "Settings", "digest_of"]

FORMAT_VERSION = 6
"""Goes up with each change that the versions before cannot read; see :mod:`moviola.library.disk.upgrade`."""
SETTINGS_FILE = "moviola.toml"
DIGEST = "digest"
"""The value beside the settings that is the SHA-256 of all others; those before format 4 have none."""
_WITH_DIGEST = 4
# Of a file that may be whole, but is not for this user, or not given by its drive.
_KEPT_FROM = frozenset({errno.EACCES, errno.EPERM, errno.EIO})
OF_SENTENCES = ("sentence_encoder", "sentence_revision", "sentence_dim")
"""Settings that change with the features of all cues, in one transaction of the catalogue: its copy holds."""
OF_PICTURES = ("encoder", "encoder_revision", "encoder_dim", "encoder_precision", "picture_dim", "frame_rate")
"""Settings that change with the features of all frames, in one transaction of the catalogue."""
CHANGEABLE = frozenset(
    {"format_version", "index", "stage1", "stage1_revision", "refiner", "refiner_revision", *OF_SENTENCES}
)
"""Settings that ``moviola.toml`` and the catalogue may have different values of for a moment."""
# The file may come from elsewhere: a name must not lead out of the library.
_FOLDER_NAME = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*)?")
# Larger values would fill any memory with the frames of one film, or of one segment.
_LARGEST = {"frame_rate": 1000.0, "segment_seconds": 3600.0}
_EXACT = 2**53  # whole numbers below it are floats too
_KINDS = {int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True, kw_only=True)
class Settings:  # no model of pydantic's, whose import takes a tenth of a search from the command line
    """Settings that fix the content of a library. Encoder fields are empty where that evidence is off.

    ``encoder_precision`` is that of the first frame features, for information: all precisions of an encoder
    agree to a cosine of .999 (:data:`moviola.compiled.module.LEAST_COSINE`); empty in older libraries.

    ``encoder_dim``, ``picture_dim`` and ``sentence_dim`` are numbers per vector, 0 or more; the second is 0
    where pictures are compared by the same features as texts: the encoder has no others, or the library is
    older than they are. ``frame_rate`` is above 0 and at most 1,000 frames a second, ``segment_seconds``
    above 0 and at most 3,600.

    ``index`` is as in :meth:`moviola.library.Indexer.use_index`, or a plug-in's. ``stage1`` and ``refiner``
    are the trained models in use: names of folders in ``models/stage1`` and ``models/refiner`` of the
    library, empty for none; see :mod:`moviola.library.disk.models_in_use`.

    Raises:
        InvalidValue: a value of another type or outside its range, a segment that is no whole number of
            frames, or an encoder without its size; the message names the setting.
    """

    format_version: int = FORMAT_VERSION
    encoder: str = ""
    encoder_revision: str = ""
    encoder_dim: int = 0
    encoder_precision: str = ""
    picture_dim: int = 0
    sentence_encoder: str = ""
    sentence_revision: str = ""
    sentence_dim: int = 0
    frame_rate: float = 1.0
    segment_seconds: float = 4.0
    index: str = AUTO
    stage1: str = ""
    stage1_revision: str = ""
    refiner: str = ""
    refiner_revision: str = ""

    def __post_init__(self) -> None:
        for one in fields(self):
            value, kind = getattr(self, one.name), type(one.default)
            if kind is float and type(value) is int and abs(value) < _EXACT:  # 1 in a file means 1.0
                object.__setattr__(self, one.name, float(value))
            elif type(value) is not kind:
                raise InvalidValue(f"{one.name} {value!r:.60}: must be {_KINDS[kind]}")
        for name in ("encoder_dim", "picture_dim", "sentence_dim"):
            if getattr(self, name) < 0:
                raise InvalidValue(f"{name} {getattr(self, name)}: must be 0 or more")
        for name, largest in _LARGEST.items():
            if not 0 < getattr(self, name) <= largest:
                raise InvalidValue(f"{name} {getattr(self, name)}: must be above 0, and {largest:g} at most")
        for name in ("stage1", "refiner"):
            if not _FOLDER_NAME.fullmatch(getattr(self, name)):
                value = getattr(self, name)
                raise InvalidValue(f"{name} {value!r:.60}: no name of a folder in models/{name}")
        frames = self.frame_rate * self.segment_seconds
        if abs(frames - round(frames)) > 1e-9 or frames < 1:
            raise InvalidValue(
                f"{self.segment_seconds} s at {self.frame_rate} frames/s is {frames} frames: "
                "a segment must hold a whole number of frames"
            )
        self._require_usable()

    def _require_usable(self) -> None:
        backends = backends_of(self.index)
        if self.index != AUTO and name_of(self.index) not in backends:
            shown = self.index.partition("://")[0]  # an address may hold a secret
            raise InvalidValue(
                f"index {shown!r}: unknown; choose {', '.join((AUTO, *backends))}, or "
                "milvus://HOST:PORT/COLLECTION, or install the package that adds it"
            )
        for name, dim in ((self.encoder, self.encoder_dim), (self.sentence_encoder, self.sentence_dim)):
            if bool(name) != bool(dim):
                raise InvalidValue(f"encoder {name!r} with {dim} dimensions: give both or neither")
        if self.picture_dim and not self.encoder:
            raise InvalidValue(f"picture_dim {self.picture_dim} without an encoder: give both or neither")

    @property
    def shown_index(self) -> str:
        """``index`` without the secret that an address may hold."""
        kind = backends_of(self.index).get(name_of(self.index))
        return (kind.shown() if kind else "") or self.index

    @property
    def frame_dim(self) -> int:
        """Numbers stored per frame: its features, followed by those of likeness."""
        return self.encoder_dim + self.picture_dim

    @property
    def frames_per_segment(self) -> int:
        """T of SPR, section 3.1.1."""
        return round(self.frame_rate * self.segment_seconds)

    def sealed(self) -> dict[str, Any]:
        """All values, and their digest."""
        values = asdict(self)
        return {**values, DIGEST: digest_of(values)}

    def write(self, folder: Path) -> None:
        """Write ``moviola.toml`` in one step."""
        head = (
            "The settings of this library. They are not changed here: `moviola library use` chooses models,\n"
            "index and encoders, and encodes again what that needs."
        )
        write_toml(folder / SETTINGS_FILE, self.sealed(), head)

    @classmethod
    def read(cls, folder: str | Path) -> Settings:
        """Read and validate ``moviola.toml``.

        Raises:
            DamagedSettings: the file is no TOML, does not match its digest, or has a value that none can be.
            LibraryError: it is of a later format, or cannot be read by this user, or now.
        """
        path = Path(folder) / SETTINGS_FILE
        place = shlex.quote(str(folder))
        remedy = f"restore it from a copy, or run `moviola repair --library {place}`, which keeps this one"
        try:
            return cls.unsealed(read_toml(path), str(path))
        except DataError as error:
            cause = error.__cause__
            if isinstance(cause, OSError) and cause.errno in _KEPT_FROM:
                raise LibraryError(
                    f"{path}: cannot be read ({cause.strerror}); give this user the right to read it, or "
                    "check its drive"
                ) from error
            raise DamagedSettings(f"{error}; {remedy}") from error
        except InvalidValue as error:
            raise DamagedSettings(f"{path}: {error}; {remedy}") from error

    @classmethod
    def unsealed(cls, values: Mapping[str, Any], where: str) -> Settings:
        """The settings of :meth:`sealed` values, from ``where``.

        Raises:
            InvalidValue: they do not match their digest, or one before format 4 is unusable.
            LibraryError: of a later format, or unusable though they are as they were written: a plug-in is
                missing. :class:`DamagedSettings` where they do not match their digest either.
        """
        own = {name: value for name, value in values.items() if name != DIGEST}
        version, intact = own.get("format_version"), values.get(DIGEST) == digest_of(own)
        if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
            message = (
                f"{where}: format version {version!r:.40}, but this moviola reads 1 to {FORMAT_VERSION}; "
                "update moviola, or index the videos into a new library"
            )
            if type(version) is not int or version < 1 or (DIGEST in values and not intact):
                raise DamagedSettings(
                    f"{message}; if no later moviola was in use the file is damaged, and `moviola repair` "
                    "writes it again"
                )
            raise LibraryError(message)
        try:
            if unknown := sorted(own.keys() - {one.name for one in fields(cls)}):
                raise InvalidValue(f"{unknown[0]!r:.60}: no such setting")
            settings = cls(**own)
        except InvalidValue as error:
            if intact:
                raise LibraryError(f"{where}: {error}") from error
            raise
        if not intact and (DIGEST in values or version >= _WITH_DIGEST):
            raise InvalidValue(
                "does not match its digest: it is damaged, or was changed by hand (`moviola library use` "
                "changes models, index and encoders)"
            )
        return settings

    @property
    def built_with(self) -> dict[str, Any]:
        """The values that features of frames were made with, and segments are."""
        return {name: value for name, value in asdict(self).items() if name not in CHANGEABLE}

    def require_built_as(self, folder: Path, noted: Settings) -> None:
        """Raise :class:`DamagedSettings` if the catalogue has another value of a lasting setting."""
        ours, theirs = self.built_with, noted.built_with
        for name, value in ours.items():
            if value != theirs[name]:
                raise DamagedSettings(
                    f"{folder / SETTINGS_FILE}: {name} {value!r}, but the catalogue beside it was built with "
                    f"{theirs[name]!r}; is it the file of another library? Restore the own one, or run "
                    f"`moviola repair --library {shlex.quote(str(folder))}`, which keeps this one"
                )

    @property
    def pictures_key(self) -> str:
        """What features of frames are made with: those of equal keys can be searched together."""
        return json.dumps([getattr(self, name) for name in OF_PICTURES if name != "encoder"])

    def with_sentences_of(self, noted: Settings) -> Settings:
        """These settings with the sentence encoder of others."""
        return replace(self, **{name: getattr(noted, name) for name in OF_SENTENCES})

    def require_same(self, folder: Path, wanted: Mapping[str, object]) -> None:
        """Raise :class:`EncoderMismatch` where a value differs from the settings; it names both."""
        for key, value in wanted.items():
            stored = getattr(self, key)
            if stored != value:
                raise EncoderMismatch(
                    f"{folder}: built with {key.replace('_', ' ')} {stored!r}, opened with {value!r}; "
                    f"open it with the former, or {self._change_to(folder, wanted, key)}"
                )

    def _change_to(self, folder: Path, wanted: Mapping[str, object], key: str) -> str:
        """How a library is given another value of a setting, in words."""
        if key in OF_SENTENCES:
            option, value, what = "--sentence-encoder", wanted.get("sentence_encoder"), "its lines"
            value = value or ("none" if key == "sentence_encoder" else self.sentence_encoder)
        elif key in ("frame_rate", "segment_seconds"):
            option, value, what = f"--{key.replace('_', '-')}", wanted[key], "its pictures"
            what = what if key == "frame_rate" else ""
        elif key == "encoder" and not wanted[key]:
            return "index the videos into a new library, with `--encoder none`"
        else:
            option, value, what = "--encoder", wanted.get("encoder") or self.encoder, "its pictures"
        again = f"encodes {what} again" if what else "makes its index again"
        command = f"moviola library use {option} {shlex.quote(str(value))} --library"
        return f"change it in place: `{command} {shlex.quote(str(folder))}` {again}, and keeps all else"


def digest_of(values: Mapping[str, Any]) -> str:
    """SHA-256 of values by name, in whatever order a file has them."""
    return hashlib.sha256(json.dumps(values, sort_keys=True, default=str).encode()).hexdigest()
