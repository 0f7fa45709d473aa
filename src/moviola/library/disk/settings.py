"""``moviola.toml``: the settings of a library. Opening it with others is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from moviola.errors import DataError, EncoderMismatch, InvalidValue, LibraryError
from moviola.files.toml import read_toml, write_toml
from moviola.index import AUTO, MilvusAddress, backends_of, name_of

__all__ = ["FORMAT_VERSION", "SETTINGS_FILE", "Settings", "complaint"]

FORMAT_VERSION = 3
"""Goes up with each change that the versions before cannot read; see :mod:`moviola.library.disk.upgrade`."""
SETTINGS_FILE = "moviola.toml"
# The file may come from elsewhere: a name must not lead out of the library.
_FOLDER_NAME = r"^([A-Za-z0-9_][A-Za-z0-9_.-]*)?$"
# Larger values would fill any memory with the frames of one film, or of one segment.
_MOST_FRAMES, _LONGEST_SEGMENT = 1000.0, 3600.0


class Settings(BaseModel):
    """Settings that fix the content of a library. Encoder fields are empty where that evidence is off.

    ``encoder_precision`` is the precision of the first frame features, for information: it may differ between
    machines, since all precisions of an encoder agree to a cosine of .999
    (:data:`moviola.compiled.module.LEAST_COSINE`); empty in older libraries.

    ``picture_dim`` is 0 where pictures are compared by the same features as texts: the encoder has no others,
    or the library is older than they are.

    ``index`` is a name in :data:`moviola.index.BACKENDS` or of a plug-in, ``"auto"`` (by the number of
    segments), or the address of a Milvus server.

    ``stage1`` and ``refiner`` are the trained models in use: names of folders in ``models/stage1`` and
    ``models/refiner`` of the library, empty for none; see :mod:`moviola.library.disk.models_in_use`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    format_version: int = FORMAT_VERSION
    encoder: str = ""
    encoder_revision: str = ""
    encoder_dim: int = Field(default=0, ge=0)
    encoder_precision: str = ""
    picture_dim: int = Field(default=0, ge=0)
    sentence_encoder: str = ""
    sentence_revision: str = ""
    sentence_dim: int = Field(default=0, ge=0)
    frame_rate: float = Field(default=1.0, gt=0, le=_MOST_FRAMES, allow_inf_nan=False)
    segment_seconds: float = Field(default=4.0, gt=0, le=_LONGEST_SEGMENT, allow_inf_nan=False)
    index: str = AUTO
    stage1: str = Field(default="", pattern=_FOLDER_NAME)
    stage1_revision: str = ""
    refiner: str = Field(default="", pattern=_FOLDER_NAME)
    refiner_revision: str = ""

    @model_validator(mode="after")
    def _whole_frames(self) -> Settings:
        frames = self.frame_rate * self.segment_seconds
        if abs(frames - round(frames)) > 1e-9 or frames < 1:
            raise ValueError(
                f"{self.segment_seconds} s at {self.frame_rate} frames/s is {frames} frames: "
                "a segment must hold a whole number of frames"
            )
        return self

    @model_validator(mode="after")
    def _usable(self) -> Settings:
        backends = backends_of(self.index)
        if self.index != AUTO and name_of(self.index) not in backends:
            raise ValueError(
                f"index {self.index!r}: unknown; choose {', '.join((AUTO, *backends))}, and "
                "milvus://HOST:PORT/COLLECTION"
            )
        for name, dim in ((self.encoder, self.encoder_dim), (self.sentence_encoder, self.sentence_dim)):
            if bool(name) != bool(dim):
                raise ValueError(f"encoder {name!r} with {dim} dimensions: give both or neither")
        if self.picture_dim and not self.encoder:
            raise ValueError(f"picture_dim {self.picture_dim} without an encoder: give both or neither")
        return self

    @property
    def shown_index(self) -> str:
        """``index`` without the secret that an address may hold."""
        return str(MilvusAddress.of(self.index)) if name_of(self.index) == "milvus" else self.index

    @property
    def frame_dim(self) -> int:
        """Numbers stored per frame: its features, followed by those of likeness."""
        return self.encoder_dim + self.picture_dim

    @property
    def frames_per_segment(self) -> int:
        """T of SPR, section 3.1.1."""
        return round(self.frame_rate * self.segment_seconds)

    def write(self, folder: Path) -> None:
        """Write ``moviola.toml`` in one step."""
        head = "The settings of this library; moviola refuses to open it with others."
        write_toml(folder / SETTINGS_FILE, self.model_dump(), head)

    @classmethod
    def of(cls, values: Mapping[str, object]) -> Settings:
        """Settings of a new library.

        Raises:
            InvalidValue: a value outside its range, or a segment that is no whole number of frames.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            raise InvalidValue(complaint(error, "settings")) from error

    @classmethod
    def read(cls, folder: Path) -> Settings:
        """Read and validate ``moviola.toml``.

        Raises:
            LibraryError: the file is damaged, has an unknown field, or is of a later format.
        """
        path = folder / SETTINGS_FILE
        try:
            values = read_toml(path)
            version = values.get("format_version")
            if type(version) is not int or not 1 <= version <= FORMAT_VERSION:
                raise LibraryError(
                    f"{path}: format version {version!r:.40}, but this moviola reads 1 to {FORMAT_VERSION}; "
                    "update moviola (pip install --upgrade moviola), or index the videos into a new library"
                )
            return cls(**values)
        except DataError as error:
            raise LibraryError(f"{error}; restore it from a copy") from error
        except ValidationError as error:
            raise LibraryError(f"{path}: {complaint(error, 'settings')}; restore it from a copy") from error

    def require_same(self, folder: Path, wanted: Mapping[str, object]) -> None:
        """Refuse values that differ from the settings.

        Raises:
            EncoderMismatch: the message names the first field that differs, with both values.
        """
        for key, value in wanted.items():
            stored = getattr(self, key)
            if stored != value:
                raise EncoderMismatch(
                    f"{folder}: built with {key.replace('_', ' ')} {stored!r}, opened with {value!r}; "
                    "open it with the former, or index the videos into a new library"
                )


def complaint(error: ValidationError, whole: str = "") -> str:
    """The first thing that is wrong with a value, after its place, or ``whole`` where it has none."""
    first = error.errors()[0]
    place = ".".join(map(str, first["loc"])) or whole
    return f"{place + ': ' if place else ''}{first['msg'].removeprefix('Value error, ')}"
