"""CLIP, SigLIP and SigLIP 2: frames and texts in one space.

What differs from checkpoint to checkpoint is read from its own files, what differs from family to family is
in :data:`FAMILIES`. Frames come from ``moviola.media`` in the encoder's :class:`FrameSize`, and are
normalised here; transformers' image processors need torchvision.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.compiled import Compiled, Source, cache_folder
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
from moviola.encoders.graphs import clip_frames, siglip_frames, text_states
from moviola.encoders.texts import CheckpointEncoder, check_texts
from moviola.encoders.token_rows import TokenRows
from moviola.encoders.tokens import Tokenize, clip_tokenizer, siglip_tokenizer
from moviola.encoders.weights import Weights
from moviola.errors import DataError, InvalidValue
from moviola.threads import compute_threads
from moviola.types import FrameSize

__all__ = ["FAMILIES", "ClipEncoder", "Family", "family_of", "open_clip", "read_frame_size"]

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Family:
    """Common properties of all checkpoints of one ``model_type``, with the defaults of transformers'
    settings, which a checkpoint's files may leave out.
    """

    module: str
    model_class: str
    tokenizer: Callable[[Checkpoint, dict[str, Any]], Tokenize]
    texts: towers.Texts
    ends: towers.Ends
    frames_graph: Callable[..., Any]
    projection: str
    text_defaults: Mapping[str, Any]
    vision_defaults: Mapping[str, Any]
    preprocessor_defaults: Mapping[str, Any]


_BASE = {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12}

FAMILIES: dict[str, Family] = {
    "clip": Family(
        module="transformers.models.clip.modeling_clip",
        model_class="CLIPModel",
        tokenizer=clip_tokenizer,
        texts=towers.clip_texts,
        ends=towers.clip_ends,
        frames_graph=clip_frames,
        projection="text_projection",
        text_defaults=_BASE | {
            "hidden_size": 512, "num_attention_heads": 8, "max_position_embeddings": 77,
            "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5, "eos_token_id": 49407,
        },
        vision_defaults=_BASE | {
            "image_size": 224, "patch_size": 32, "hidden_act": "quick_gelu", "layer_norm_eps": 1e-5,
        },
        preprocessor_defaults={
            "size": {"shortest_edge": 224}, "crop_size": {"height": 224, "width": 224},
            "do_center_crop": True, "resample": 3, "rescale_factor": 1 / 255,
            "image_mean": [0.48145466, 0.4578275, 0.40821073],
            "image_std": [0.26862954, 0.26130258, 0.27577711],
        },
    ),
    "siglip": Family(
        module="transformers.models.siglip.modeling_siglip",
        model_class="SiglipModel",
        tokenizer=siglip_tokenizer,
        texts=towers.siglip_texts,
        ends=towers.siglip_ends,
        frames_graph=siglip_frames,
        projection="text_model.head",
        text_defaults=_BASE | {
            "max_position_embeddings": 64, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6,
        },
        vision_defaults=_BASE | {
            "image_size": 224, "patch_size": 16, "hidden_act": "gelu_pytorch_tanh", "layer_norm_eps": 1e-6,
        },
        preprocessor_defaults={
            "size": {"height": 224, "width": 224},
            "do_center_crop": False, "resample": 3, "rescale_factor": 1 / 255,
            "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5],
        },
    ),
}  # fmt: skip
"""Encoder families by ``model_type`` (the fixed-resolution SigLIP 2 checkpoints are of type ``siglip``)."""

# SigLIP has 32,000 tokens for English, 250,000 or more for many languages.
_MANY_TOKENS = 100_000

CLIP_LINE = 0.28
"""Cosine of a text with a frame at even odds, of a CLIP whose checkpoint does not state it: chosen so that
few frames reach it that show something else. LAION kept pairs of a cosine of .28 (CLIP ViT-B/32) or more.
"""

_WIDE = 512
"""Width of a layer from which on 8 bits are faster than 32."""

CURVE_OPTIONS = ("context", "level", "floor", "before", "after", "coarse_share")
"""Options of ``moviola.retrieval.CurveRefiner``."""

_RESAMPLE = {1: "lanczos", 2: "bilinear", 3: "bicubic"}


class ClipEncoder(CheckpointEncoder):
    """A frozen encoder of frames and texts; made by :func:`moviola.encoders.load_encoder`.

    Attributes:
        frame_size: size of its input frames, for ``moviola.media``.
        curve: options of ``moviola.retrieval.CurveRefiner`` for its similarity curves, from ``moviola.json``.
        picture_match: calibration of the cosine of two pictures; the same for all checkpoints.
    """

    picture_match = Match(slope=20.0, line=0.8, measured=False)
    _inputs = 1

    def __init__(self, checkpoint: Checkpoint, choice: DeviceChoice) -> None:
        super().__init__(checkpoint, choice)
        self._config = checkpoint.json("config.json")
        self._family = family_of(checkpoint)
        self._text_config = {**self._family.text_defaults, **_tower(checkpoint, "text_config")}
        self._vision_config = {**self._family.vision_defaults, **_tower(checkpoint, "vision_config")}
        preprocessor = (
            checkpoint.json("preprocessor_config.json")
            or checkpoint.json("processor_config.json").get("image_processor")
            or {}
        )
        stated = {key: value for key, value in preprocessor.items() if value is not None}
        self._preprocessor = {**self._family.preprocessor_defaults, **stated}
        self.frame_size = read_frame_size(self._preprocessor, str(checkpoint.folder))
        self.curve = _measured_curve(checkpoint.json("moviola.json").get("curve", {}), checkpoint.folder)
        trained_for = self._vision_config["image_size"]
        if (self.frame_size.height, self.frame_size.width) != (trained_for, trained_for):
            raise DataError(
                f"{checkpoint.folder}: config.json is for {trained_for} pixels, preprocessor_config.json for "
                f"{self.frame_size.width}x{self.frame_size.height}; correct the one that is wrong"
            )

    @cached_property
    def languages(self) -> tuple[str, ...]:
        """Languages that it reads, as its ``moviola.json`` or its model card states them; else English where
        it has as few tokens as CLIP, which many languages do not fit into.
        """
        folder = self._checkpoint.folder
        stated = self._checkpoint.json("moviola.json").get("languages") or languages_of_card(
            folder / "README.md"
        )
        few = int(self._text_config.get("vocab_size", 0)) < _MANY_TOKENS
        return tuple(map(str, stated)) or (("en",) if few else ())

    def __repr__(self) -> str:
        return f"ClipEncoder({self.id!r}, revision={self.revision!r}, dim={self.dim})"

    @property
    def precision(self) -> str:
        """Precision of frames: ``"int8"`` where layers are wide enough to gain by it, if no precision was
        named, else ``"fp32"``, ``"fp16"``, ``"bf16"``; features are always float32.
        """
        wide = self._vision_config["hidden_size"] >= _WIDE
        free = self._choice.is_free and self._is_compiled
        return "int8" if free and wide else self._choice.precision

    @cached_property
    def dim(self) -> int:
        """Length of a feature vector."""
        weights = self._weights
        for name in ("text_projection.weight", "text_model.head.weight"):
            if weights is not None and name in weights:
                return weights.shape(name)[0]
        if "projection_dim" in self._config:
            return int(self._config["projection_dim"])
        return int(self._text_config.get("projection_size") or self._text_config["hidden_size"])

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
        scale = math.exp(self._number("logit_scale", math.log(100.0)))
        if self._family is FAMILIES["siglip"]:
            bias = self._number("logit_bias", -10.0)
            return Match(slope=scale, line=(-math.log(9.0) - bias) / scale, measured=False)
        return Match(slope=scale / 2, line=CLIP_LINE, measured=False)

    def _number(self, name: str, initial: float) -> float:
        """A scalar weight; the initial value of training where the weights are not safetensors."""
        weights = self._weights
        return float(weights.array(name).item()) if weights is not None and name in weights else initial

    def encode_frames(self, images: NDArray[np.uint8]) -> Floats:
        """Features (n, dim) float32 of frames, in the common space, not normalised."""
        check_frames(images, self.frame_size, self.id)
        features = np.empty((len(images), self.dim), dtype=np.float32)
        step = self._choice.batch_size
        for start in range(0, len(images), step):
            features[start : start + step] = self._encode_frames(images[start : start + step])
        return features

    def encode_text(self, texts: Sequence[str]) -> Floats:
        """Features (n, dim) float32 of texts, in the common space, not normalised."""
        texts = check_texts(texts)
        features = np.empty((len(texts), self.dim), dtype=np.float32)
        for batch, states in self._states(texts):
            features[batch.places] = states[np.arange(len(states)), self._ends(batch.ids)]
        return features

    def encode_tokens(self, texts: Sequence[str]) -> list[Floats]:
        """Features (tokens, dim) float32 of each text's tokens, in the common space, not normalised.

        The last row is what :meth:`encode_text` gives, bit for bit. CLIP's tokens end with the first
        end-of-text token; SigLIP's padding counts as tokens.
        """
        texts = check_texts(texts)
        features: dict[int, Floats] = {}
        for batch, states in self._states(texts):
            for place, own, end in zip(batch.places, states, self._ends(batch.ids), strict=True):
                features[place] = own[: end + 1].copy()
        return [features[place] for place in range(len(texts))]

    def _ends(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which of the tokens (b, n) stand for their texts, (b,)."""
        return self._family.ends(self._text_config, ids)

    @cached_property
    def _tokenize(self) -> Tokenize:
        return self._family.tokenizer(self._checkpoint, self._text_config)

    @property
    def _longest(self) -> int:
        return int(self._text_config["max_position_embeddings"])

    def _read_weights(self) -> Weights | None:
        return Weights.of(self._checkpoint.folder)

    @property
    def _has_numpy(self) -> bool:
        return self._weights is not None and self._text_config["hidden_act"] in towers.ACTIVATIONS

    @property
    def _is_compiled(self) -> bool:
        known = self._vision_config["hidden_act"] in towers.ACTIVATIONS
        return known and self._has_numpy and super()._is_compiled

    @cached_property
    def _encode_frames(self) -> Callable[[NDArray[np.uint8]], Floats]:
        if self._is_compiled:
            compiled = Compiled(cache_folder(), self._frames_source())
            return lambda images: compiled(images)[0]
        model = self._load_model()
        from moviola.encoders.by_torch.modules import ClipFrames, run

        module = ClipFrames(model, *self._scale_and_shift).to(self.device)
        return lambda images: run(module, self.device, images)[0]

    def _frames_source(self) -> Source:
        return Source(
            name=f"{self.id} frames",
            revision=self.revision,
            build=lambda: self._family.frames_graph(
                self._own_weights(), self._vision_config, *self._scale_and_shift
            ),
            threads=compute_threads(),
            precision="int8" if self.precision == "int8" else "fp32",
        )

    def _network_states(self, weights: Weights, ids: NDArray[np.int64], present: NDArray[np.bool_]) -> Floats:
        tokens = TokenRows.of(present.sum(1))
        network = towers.Network(weights, self._text_config, tokens)
        return tokens.spread(self._family.texts(network, tokens.packed(ids)), ids.shape[1])

    def _graph(self) -> Any:
        return text_states(self._own_weights(), self._text_config, self._family.texts)

    def _by_torch(self) -> Callable[..., Any]:
        model = self._load_model()
        projection = model.get_submodule(self._family.projection)
        # No mask: CLIP is causal up to the token that is read, SigLIP reads its padding.
        return lambda ids: projection(model.text_model(input_ids=ids).last_hidden_state)

    def _load_model(self) -> Any:
        require_torch(f"{self.id} on {self.device} in {self.precision}")
        from moviola.encoders.by_torch.modules import load_pretrained

        where = (self.device, self.precision)
        return load_pretrained(self._family.module, self._family.model_class, self._checkpoint.folder, *where)

    @cached_property
    def _scale_and_shift(self) -> tuple[Floats, Floats]:
        """``pixel * scale + shift`` is ``(pixel * rescale_factor - mean) / std``."""
        given = self._preprocessor
        mean, std = np.array(given["image_mean"], np.float64), np.array(given["image_std"], np.float64)
        if not given.get("do_normalize", True):
            mean, std = np.zeros(3), np.ones(3)
        factor = given["rescale_factor"] if given.get("do_rescale", True) else 1.0
        return (factor / std).astype(np.float32), (-mean / std).astype(np.float32)


def open_clip(name: str, choice: DeviceChoice) -> ClipEncoder:
    """Open a CLIP, SigLIP or SigLIP 2 checkpoint; see :func:`moviola.encoders.load_encoder`."""
    checkpoint = find_checkpoint(
        name, builtin={DEMO: DEMO_FOLDER}, instead=f"or take one that needs no download, such as {CONSE!r}"
    )
    return ClipEncoder(checkpoint, choice)


def _tower(checkpoint: Checkpoint, name: str) -> dict[str, Any]:
    """The settings of a tower in ``config.json``; in files of 2022 those under ``…_dict`` are valid."""
    config = checkpoint.json("config.json")
    given = config.get(f"{name}_dict") or config.get(name) or {}
    if not isinstance(given, dict):
        raise DataError(
            f"{checkpoint.folder}: {name} in config.json is no object; fetch the checkpoint again"
        )
    return given


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


def read_frame_size(preprocessor: Mapping[str, Any], folder: str) -> FrameSize:
    """The frame size of a ``preprocessor_config.json`` (completed by defaults). Raises DataError: no fixed
    size, or an unknown interpolation.
    """
    size = preprocessor["size"]
    size = {"shortest_edge": size} if isinstance(size, int) else size
    crop = preprocessor.get("crop_size") if preprocessor["do_center_crop"] else None
    crop = {"height": crop, "width": crop} if isinstance(crop, int) else crop
    interpolation: Any = _RESAMPLE.get(preprocessor["resample"])
    if interpolation is None:
        raise DataError(
            f"{folder}: resample {preprocessor['resample']!r} in its preprocessor settings; "
            f"moviola knows {', '.join(f'{code} ({name})' for code, name in _RESAMPLE.items())}"
        )
    with suppress(KeyError, TypeError):  # sides that are missing, or no numbers
        if crop and "shortest_edge" in size:
            return FrameSize(crop["height"], crop["width"], "crop", size["shortest_edge"], interpolation)
        if "height" in size and crop in (None, {"height": size["height"], "width": size["width"]}):
            return FrameSize(size["height"], size["width"], "stretch", 0, interpolation)
    raise DataError(
        f"{folder}: preprocessor settings size {size}, crop_size {crop} give frames of no fixed size; "
        "take a checkpoint of fixed resolution"
    )


def family_of(checkpoint: Checkpoint) -> Family:
    """The family of a checkpoint by its ``model_type``. Raises InvalidValue: none of :data:`FAMILIES`."""
    kind = checkpoint.json("config.json").get("model_type")
    if kind == "siglip2":
        raise InvalidValue(
            f"{checkpoint.id}: a NaFlex checkpoint (frames of varying size) does not run here; take one "
            "of fixed resolution, such as google/siglip2-base-patch16-224"
        )
    if not isinstance(kind, str) or kind not in FAMILIES:
        raise InvalidValue(
            f"{checkpoint.id}: model type {kind!r} is no frame-and-text encoder that moviola knows; "
            f"it knows {', '.join(FAMILIES)}"
        )
    return FAMILIES[kind]
