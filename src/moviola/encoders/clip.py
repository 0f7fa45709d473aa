"""CLIP and its kin: frames and texts in one space.

What a checkpoint is, :mod:`moviola.encoders.formats` reads from its files. Frames come from ``moviola.media``
in the encoder's :class:`FrameSize`, and are normalised here; transformers' image processors need torchvision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from moviola.devices import require_torch
from moviola.encoders import towers
from moviola.encoders.checkpoints import (
    CONSE,
    DEMO,
    DEMO_FOLDER,
    Checkpoint,
    find_checkpoint,
    languages_of_card,
)
from moviola.encoders.contract import Match, check_frames
from moviola.encoders.device_choice import DeviceChoice
from moviola.encoders.formats import described
from moviola.encoders.pictures import scaled_places
from moviola.encoders.shapes import check_frames_tower, check_texts_tower
from moviola.encoders.texts import CheckpointEncoder, check_texts
from moviola.encoders.token_rows import TokenRows
from moviola.encoders.tokens import Tokenize
from moviola.encoders.weights import Weights
from moviola.errors import DataError
from moviola.threads import compute_threads
from moviola.types import FrameSize

if TYPE_CHECKING:
    from moviola.compiled import Source

__all__ = ["ClipEncoder", "open_checkpoint"]

Floats = NDArray[np.float32]


CLIP_LINE = 0.28
"""Cosine of a text with a frame at even odds, of a CLIP whose checkpoint does not state it: chosen so that
few frames reach it that show something else. LAION kept pairs of a cosine of .28 (CLIP ViT-B/32) or more.
"""

_MOST_LOG_SCALE = 20.0  # of published ones 4.6 to 5

CURVE_OPTIONS = ("context", "level", "floor", "before", "after", "coarse_share")
"""Options of ``moviola.retrieval.CurveRefiner``."""

_LARGEST_SIDE = 4096  # of published ones 224 to 512
_MOST_PATCHES = 16384  # of published ones 256 to 1024
_FEWEST_TOKENS = 3  # the beginning of a text, its end, and one between

_RESAMPLE = {1: "lanczos", 2: "bilinear", 3: "bicubic"}


class ClipEncoder(CheckpointEncoder):
    """A frozen encoder of frames and texts; made by :func:`moviola.encoders.load_encoder`.

    Attributes:
        frame_size: size of its input frames, for ``moviola.media``.
        curve: options of ``moviola.retrieval.CurveRefiner`` for its similarity curves, from ``moviola.json``.
        picture_match: calibration of the cosine of two pictures; the same for all checkpoints.
    """

    picture_match = Match(slope=20.0, line=0.8, measured=False)

    def __init__(self, checkpoint: Checkpoint, choice: DeviceChoice) -> None:
        super().__init__(checkpoint, choice)
        self._is = described(checkpoint)
        self._known_places: dict[tuple[int, int], Floats] = {}
        self._inputs = 2 if self._is.texts.masked else 1
        self.frame_size = read_frame_size(self._is.preprocessor, str(checkpoint.folder))
        self.curve = _measured_curve(checkpoint.json("moviola.json").get("curve", {}), checkpoint.folder)
        sides = "patch_size" if self._is.frames.varied else "image_size"
        trained_for = self._is.frame_settings[sides]
        if (self.frame_size.height, self.frame_size.width) != (trained_for, trained_for):
            what = "patches of " if self._is.frames.varied else ""
            raise DataError(
                f"{checkpoint.folder}: config.json is for {what}{trained_for} pixels, "
                f"preprocessor_config.json for {self.frame_size.width}x{self.frame_size.height}; correct the "
                "one that is wrong"
            )
        if self._is.longest < _FEWEST_TOKENS:
            raise DataError(
                f"{checkpoint.folder}: texts of {self._is.longest} tokens by its settings "
                "(max_position_embeddings, or context_length); fetch the checkpoint again"
            )

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Languages that it reads, as its ``moviola.json`` or its model card states them; else those that its
        vocabulary implies: English where it is as small as CLIP's, Chinese of a BERT for Chinese.
        """
        folder = self._checkpoint.folder
        stated = self._checkpoint.json("moviola.json").get("languages") or languages_of_card(
            folder / "README.md"
        )
        return tuple(map(str, stated)) or self._is.languages

    @property
    def work(self) -> float:
        """About how many multiplications a frame takes, in thousand millions: those of its layers."""
        settings = self._is.frame_settings
        width, size = settings["hidden_size"], self.frame_size
        patches = size.most_patches or (size.height // settings["patch_size"]) ** 2
        layer = 12 * width**2 * patches + 2 * patches**2 * width
        return float(settings["num_hidden_layers"] * layer / 1e9)

    def __repr__(self) -> str:
        return f"ClipEncoder({self.id!r}, revision={self.revision!r}, dim={self.dim})"

    @property
    def precision(self) -> str:
        """Precision of frames: ``"int8"`` where layers are wide enough to gain by it, if no precision was
        named, else ``"fp32"``, ``"fp16"``, ``"bf16"``; features are always float32.
        """
        wide = self._is.frame_settings["hidden_size"] >= self._is.wide
        free = self._choice.is_free and self._is_compiled
        return "int8" if free and wide else self._choice.precision

    @cached_property
    def dim(self) -> int:
        """Length of a feature vector."""
        return self._dim_in(self._weights)

    def _dim_in(self, weights: Weights | None) -> int:
        layers = self._is.texts.projection
        if weights is not None and layers and (name := f"{layers[-1].name}.weight") in weights:
            return weights.shape(name)[0]
        return self._is.dim

    @cached_property
    def match(self) -> Match:
        """Calibration of the cosine of a text with a frame.

        A measured checkpoint states it in its ``moviola.json``: ``{"match": {"slope": 35, "line": 0.51}}``.
        Of others nothing was measured, so that the numbers are cautious: the scale and bias of a SigLIP,
        trained with a sigmoid, give the probability of a match, and the line is at one in ten; of a CLIP half
        the scale is the slope, and the line is :data:`CLIP_LINE`.

        Raises:
            DataError: ``match`` of ``moviola.json`` is not two numbers, the slope above 0.
        """
        if (measured := self._checkpoint.json("moviola.json").get("match")) is not None:
            return _measured_match(measured, self._checkpoint.folder)
        scale = math.exp(self._number("logit_scale", math.log(100.0), most=_MOST_LOG_SCALE))
        if self._is.sigmoid:
            bias = self._number("logit_bias", -10.0)
            return Match(slope=scale, line=(-math.log(9.0) - bias) / scale, measured=False)
        return Match(slope=scale / 2, line=CLIP_LINE, measured=False)

    def _number(self, name: str, initial: float, most: float = math.inf) -> float:
        """A scalar weight; the initial value of training where the weights are not safetensors."""
        weights = self._weights
        if weights is None or name not in weights:
            return initial
        given = weights.array(name)
        if given.size == 1 and math.isfinite(value := float(given.item())) and value <= most:
            return value
        raise DataError(
            f"{weights.source}: {weights.own_name(name)!r} is {given.reshape(-1)[:3].tolist()} of shape "
            f"{list(given.shape)}, where one number up to {most:g} is due; fetch it again, or take another "
            "checkpoint"
        )

    def encode_frames(self, images: NDArray[np.uint8]) -> Floats:
        """Features (n, dim) float32 of frames, in the common space, not normalised."""
        check_frames(images, self.frame_size, self.id)
        features = np.empty((len(images), self.dim), dtype=np.float32)
        step = self._choice.batch_size
        for start in range(0, len(images), step):
            features[start : start + step] = self._encode_frames(images[start : start + step])
        return self._finite(features)

    def encode_text(self, texts: Sequence[str]) -> Floats:
        """Features (n, dim) float32 of texts, in the common space, not normalised."""
        texts = check_texts(texts)
        features = np.empty((len(texts), self.dim), dtype=np.float32)
        for batch, states in self._states(texts):
            features[batch.places] = self._is.texts.vectors(*self._of_texts, states, batch.ids, batch.present)
        return self._finite(features)

    def encode_tokens(self, texts: Sequence[str]) -> list[Floats]:
        """Features (tokens, dim) float32 of each text's tokens, in the common space, not normalised.

        The last row is what :meth:`encode_text` gives, bit for bit. CLIP's tokens end with the first
        end-of-text token; SigLIP's padding counts as tokens.
        """
        texts = check_texts(texts)
        features: dict[int, Floats] = {}
        for batch, states in self._states(texts):
            rows = self._is.texts.tokens(*self._of_texts, states, batch.ids, batch.present)
            features.update(zip(batch.places, rows, strict=True))
        return [self._finite(features[place]) for place in range(len(texts))]

    def has_word(self, word: str, *, english: bool = False) -> bool:  # it has one vocabulary
        """Whether a word is one token (:class:`~moviola.encoders.contract.WordJudge`)."""
        empty, row = self._tokenize(["", word])
        # Padding is part of a row; what is no token of the vocabulary becomes a special one, or several.
        return sum(token not in empty for token in row) == 1

    @property
    def _of_texts(self) -> tuple[Weights | None, Mapping[str, Any]]:
        return self._weights, self._is.text_settings

    @cached_property
    def _tokenize(self) -> Tokenize:
        tokenize, end = self._is.tokenizer(), self._is.text_settings.get("eos_token_id")
        if end is None or self._is.texts.pool != "end":
            return tokenize
        return partial(self._ended, tokenize, int(end))

    def _ended(self, tokenize: Tokenize, end: int, texts: Sequence[str]) -> list[list[int]]:
        """Token ids; DataError: not with the token whose state is that of the text, or first, where a causal
        tower has seen nothing of it: all texts would be alike.
        """
        rows = tokenize(texts)
        first = [len(row) > 1 and row[0] == end and self._is.texts.causal for row in rows]
        if any(first) or not all(end in row for row in rows):
            raise DataError(
                f"{self._checkpoint.folder}: texts end with the token {end} by its settings (eos_token_id, "
                "eos_id), but not by its tokenizer; take both from the same checkpoint"
            )
        return rows

    @property
    def _longest(self) -> int:
        return self._is.longest

    def _read_weights(self) -> Weights | None:
        """The weights, each tensor of a known shape."""
        weights, widths = self._is.weights(), list[int]()
        if weights is not None and self._known(self._is.text_settings):
            widths.append(check_texts_tower(weights, self._is.text_settings, self._is.texts, self._longest))
        if weights is not None and self._known(self._is.frame_settings):
            widths.append(check_frames_tower(weights, self._is.frame_settings, self._is.frames))
        if weights is not None and len({*widths}) > 1:
            raise DataError(
                f"{weights.source}: features of texts have {widths[0]} numbers, those of frames {widths[1]}, "
                "which cannot be compared; fetch the checkpoint again"
            )
        if weights is not None and widths and widths[0] != (dim := self._dim_in(weights)):
            raise DataError(
                f"{weights.source}: features have {widths[0]} numbers, and {dim} by the settings; fetch the "
                "checkpoint again"
            )
        return weights

    @staticmethod
    def _known(settings: Mapping[str, Any]) -> bool:
        return settings["hidden_act"] in towers.ACTIVATIONS

    @property
    def _has_numpy(self) -> bool:
        return self._weights is not None and self._known(self._is.text_settings)

    @property
    def _is_compiled(self) -> bool:
        return self._known(self._is.frame_settings) and self._has_numpy and super()._is_compiled

    @cached_property
    def _encode_frames(self) -> Callable[[NDArray[np.uint8]], Floats]:
        if self._is_compiled:
            from moviola.compiled import Compiled, cache_folder

            compiled = Compiled(cache_folder(), self._frames_source())
            if self._is.frames.varied:
                return lambda images: compiled(images, self._places(*images.shape[1:3]))[0]
            return lambda images: compiled(images)[0]
        tower = self._tower_by_torch()
        from moviola.encoders.by_torch.modules import ClipFrames, run

        module = ClipFrames(tower, *self._scale_and_shift).to(self.device)
        return lambda images: run(module, self.device, images)[0]

    def _places(self, height: int, width: int) -> Floats:
        """Of the patches of frames of varied sides."""
        if (height, width) not in self._known_places:
            table = self._own_weights().array("vision_model.embeddings.position_embedding.weight")
            patch = self.frame_size.height
            made = scaled_places(table, height // patch, width // patch)
            self._known_places[height, width] = made
        return self._known_places[height, width]

    def _tower_by_torch(self) -> Any:
        """From normalised pixels to features."""
        if self._is.by_transformers is None or self._is.frames.varied:
            require_torch(f"{self.id} on {self.device} in {self.precision}")
            from moviola.encoders.by_torch.frames import frames_tower

            settings, parts = self._is.frame_settings, self._is.frames
            return frames_tower(self._own_weights(), settings, parts, self.device, self.precision)
        module, name, _ = self._is.by_transformers
        model = self._load_model(module, name)
        from moviola.encoders.by_torch.modules import image_features

        return image_features(model)

    def _frames_source(self) -> Source:
        from moviola.compiled import Source
        from moviola.encoders.graphs import frames_graph

        return Source(
            name=f"{self.id} frames",
            revision=self.revision,
            build=lambda: frames_graph(
                self._own_weights(), self._is.frame_settings, self._is.frames, *self._scale_and_shift
            ),
            threads=compute_threads(),
            precision="int8" if self.precision == "int8" else "fp32",
        )

    def _network_states(self, weights: Weights, ids: NDArray[np.int64], present: NDArray[np.bool_]) -> Floats:
        tokens = TokenRows.of(present.sum(1))
        network = towers.Network(weights, self._is.text_settings, tokens)
        return tokens.spread(self._is.texts.rows(network, tokens.packed(ids)), ids.shape[1])

    def _graph_inputs(self, ids: NDArray[np.int64], present: NDArray[np.bool_]) -> tuple[NDArray[Any], ...]:
        if not self._is.texts.masked:
            return (ids,)
        assert self._weights is not None
        return ids, present, self._weights.rows(towers.WORDS, ids)

    def _graph(self) -> Any:
        from moviola.encoders.graphs import texts_graph

        return texts_graph(self._own_weights(), self._is.text_settings, self._is.texts)

    def _by_torch(self) -> Callable[..., Any]:
        assert self._is.by_transformers is not None  # others have weights for NumPy
        module, name, projecting = self._is.by_transformers
        model, masked = self._load_model(module, name), self._is.texts.masked
        projection = model.get_submodule(projecting)

        def states(ids: Any, present: Any = None) -> Any:
            # No mask: CLIP is causal up to the token that is read, SigLIP reads its padding.
            given = {"attention_mask": present.long()} if masked else {}
            return projection(model.text_model(input_ids=ids, **given).last_hidden_state)

        return states

    def _load_model(self, module: str, name: str) -> Any:
        require_torch(f"{self.id} on {self.device} in {self.precision}")
        from moviola.encoders.by_torch.modules import load_pretrained

        return load_pretrained(module, name, self._checkpoint.folder, self.device, self.precision)

    @cached_property
    def _scale_and_shift(self) -> tuple[Floats, Floats]:
        """``pixel * scale + shift`` is ``(pixel * rescale_factor - mean) / std``."""
        given = self._is.preprocessor
        mean, std = np.array(given["image_mean"], np.float64), np.array(given["image_std"], np.float64)
        if not given.get("do_normalize", True):
            mean, std = np.zeros(3), np.ones(3)
        factor = given["rescale_factor"] if given.get("do_rescale", True) else 1.0
        return (factor / std).astype(np.float32), (-mean / std).astype(np.float32)


def open_checkpoint(name: str, choice: DeviceChoice) -> ClipEncoder:
    """Open a checkpoint of one of the formats; see :func:`moviola.encoders.load_encoder`."""
    checkpoint = find_checkpoint(
        name, builtin={DEMO: DEMO_FOLDER}, instead=f"or take one that needs no download, such as {CONSE!r}"
    )
    return ClipEncoder(checkpoint, choice)


def _measured_match(stated: Any, folder: Path) -> Match:
    with suppress(TypeError, ValueError, KeyError):
        match = Match(slope=float(stated["slope"]), line=float(stated["line"]))
        if 0 < match.slope < math.inf and math.isfinite(match.line):
            return match
    raise DataError(
        f"{folder / 'moviola.json'}: match is {stated!r}; give two numbers, "
        '{"slope": above 0, "line": cosine at even odds}'
    )


def _measured_curve(stated: Any, folder: Path) -> dict[str, float]:
    if isinstance(stated, dict) and all(
        name in CURVE_OPTIONS and isinstance(value, int | float) and math.isfinite(value)
        for name, value in stated.items()
    ):
        return stated
    options = ", ".join(CURVE_OPTIONS)
    raise DataError(f"{folder / 'moviola.json'}: curve is {stated!r}; give numbers for some of {options}")


def _by_patches(preprocessor: Mapping[str, Any], folder: str, interpolation: Any) -> FrameSize:
    patch, most = (_counted(preprocessor[name], name, folder) for name in ("patch_size", "max_num_patches"))
    if patch > _LARGEST_SIDE or most > _MOST_PATCHES:
        raise DataError(
            f"{folder}: patch_size {patch} and max_num_patches {most} in its settings; give at most "
            f"{_LARGEST_SIDE} and {_MOST_PATCHES}, or fetch it again"
        )
    return FrameSize(patch, patch, "patches", 0, interpolation, most)


def _counted(value: Any, name: str, source: str) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    raise DataError(
        f"{source}: {name} {value!r:.60} in its settings; give a whole number above 0, or fetch it again"
    )


def _pixels(side: Any) -> int:
    """A side in pixels; TypeError: none, or one to which no frame is scaled."""
    if type(side) is not int or not 0 < side <= _LARGEST_SIDE:
        raise TypeError
    return side


def read_frame_size(preprocessor: Mapping[str, Any], folder: str) -> FrameSize:
    """The frame size of a ``preprocessor_config.json`` (completed by defaults). Raises DataError: no fixed
    size, or an unknown interpolation.
    """
    size: Any = preprocessor.get("size")
    size = {"shortest_edge": size} if isinstance(size, int) else size
    crop: Any = preprocessor.get("crop_size") if preprocessor["do_center_crop"] else None
    crop = {"height": crop, "width": crop} if isinstance(crop, int) else crop
    code = preprocessor["resample"]
    interpolation: Any = _RESAMPLE.get(code) if isinstance(code, int) else None
    if interpolation is None:
        raise DataError(
            f"{folder}: resample {preprocessor['resample']!r} in its preprocessor settings; "
            f"moviola knows {', '.join(f'{code} ({name})' for code, name in _RESAMPLE.items())}"
        )
    with suppress(KeyError, TypeError):  # sides that are missing, or no numbers
        if "max_num_patches" in preprocessor:
            return _by_patches(preprocessor, folder, interpolation)
        if crop and "shortest_edge" in size:
            height, width, edge = map(_pixels, (crop["height"], crop["width"], size["shortest_edge"]))
            if edge >= max(height, width):
                return FrameSize(height, width, "crop", edge, interpolation)
        elif "height" in size and crop in (None, {"height": size["height"], "width": size["width"]}):
            return FrameSize(_pixels(size["height"]), _pixels(size["width"]), "stretch", 0, interpolation)
    raise DataError(
        f"{folder}: preprocessor settings size {size}, crop_size {crop} give frames of no fixed size; "
        "take a checkpoint of fixed resolution"
    )
