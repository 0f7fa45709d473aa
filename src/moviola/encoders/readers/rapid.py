"""Text in pictures by RapidOCR: packaged PP-OCR networks, run by OpenVINO.

``rapidocr`` 3.10 carries PP-OCRv6, which found three times as many lines as PP-OCRv4 of
``rapidocr-onnxruntime``, kept the spaces between words, and was surer of what is right: what is misread has
at most .8 (``benchmarks/readers/README.md``). It asks for OpenCV without windows, which needs no system
libraries.

Before a network reads a picture, a fast test says whether it can contain words (:func:`has_strokes`). Letters
are strokes, brighter or darker than their surroundings, several in a row. So are leaves and tiles: the test
only stops pictures that surely have none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moviola.compiled.runtime import prepare, settings
from moviola.encoders.readers.contract import TextLine
from moviola.errors import InvalidValue, MissingModel
from moviola.threads import reading_threads
from moviola.types import Box

__all__ = ["RapidOcrReader", "has_strokes"]

# Lines are detected at this longest side, and read at the given size. Text of 20 pixels in 720p is detected
# at 640 as surely as at 960, in less than half the time.
_FINDS_AT, _READS_AT = 640, 960
# Less sure lines are mostly texture; single characters are no useful text.
_SURE = 0.8
_SIGNS = 2
# A stroke is narrower than this many pixels and differs by this much, of 255, from both its sides.
_NARROW, _CONTRAST = 13, 28
# In a window of this size, at least this many strokes begin in each row, on average, where there are letters.
_WIDE, _TALL, _STROKES = 40, 8, 4.2
# Larger letters are searched in the picture at half its size, down to this side.
_SMALLEST = 64


class RapidOcrReader:
    """Reads text with the package ``rapidocr``; upright lines in the scripts that PP-OCRv6 knows, or in those
    of another model in a folder: one that recognises, ``*rec*.onnx``, and its letters in a ``.txt`` where the
    model does not hold them.

    Raises:
        MissingModel: the folder has no such model, or several.
    """

    id = "rapidocr"
    longest_side = _READS_AT

    def __init__(self, folder: Path | None = None) -> None:
        self._own: dict[str, str] = {}
        self._folder = folder
        if folder is not None:
            models, letters = sorted(folder.glob("*rec*.onnx")), sorted(folder.glob("*.txt"))
            if len(models) != 1 or len(letters) > 1:
                raise MissingModel(
                    f"text reader {folder}: {len(models)} models *rec*.onnx and {len(letters)} lists of "
                    "letters *.txt; a folder has one model, and at most one list"
                )
            self.id = str(folder)
            self._own = {"Rec.model_path": str(models[0])}
            if letters:
                self._own["Rec.rec_keys_path"] = str(letters[0])

    @cached_property
    def revision(self) -> str:
        version = metadata.version("rapidocr")
        return version if self._folder is None else f"{version} {_digest(self._own.values())}"

    @cached_property
    def _engine(self) -> Any:
        prepare()
        from rapidocr import EngineType, RapidOCR
        from rapidocr.inference_engine.openvino import main as sessions

        # Its settings cover threads, but neither precision nor core pinning.
        sessions.CPUConfig = _Settings
        return RapidOCR(
            params={
                "Global.log_level": "error",
                "Global.use_cls": False,
                "Global.text_score": _SURE,
                "Det.limit_type": "max",
                "Det.limit_side_len": _FINDS_AT,
                **self._own,
                **dict.fromkeys(
                    (f"{part}.engine_type" for part in ("Det", "Cls", "Rec")), EngineType.OPENVINO
                ),
            }
        )

    def read(self, image: NDArray[np.uint8]) -> list[TextLine]:
        """The lines of a picture (:class:`~moviola.encoders.readers.TextReader`)."""
        if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
            raise InvalidValue(f"image {image.shape} {image.dtype}: give (height, width, 3) uint8")
        if not has_strokes(image):
            return []
        result = self._engine(image[:, :, ::-1])  # it was trained on BGR
        if result.boxes is None or result.txts is None:
            return []
        size = np.array([image.shape[1], image.shape[0]])
        lines = [
            TextLine(" ".join(text.split()), _box(corners / size), float(score))
            for corners, text, score in zip(result.boxes, result.txts, result.scores, strict=True)
            if sum(sign.isalnum() for sign in text) >= _SIGNS
        ]
        return sorted(lines, key=lambda line: (line.box.top, line.box.left))


class _Settings:
    """Replaces RapidOCR's settings of the runtime."""

    def __init__(self, _: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return settings("fp32", reading_threads())


def _digest(paths: Iterable[str]) -> str:
    """16 hex digits of the content of files."""
    digest = hashlib.blake2b(digest_size=8)
    for path in paths:
        digest.update(Path(path).read_bytes())
    return digest.hexdigest()


def _box(corners: NDArray[np.floating[Any]]) -> Box:
    low, high = np.clip(corners.min(0), 0, 1), np.clip(corners.max(0), 0, 1)
    return Box(*(round(float(side), 4) for side in (*low, *high)))


def has_strokes(image: NDArray[np.uint8]) -> bool:
    """Whether strokes in a picture (height, width, 3) uint8 RGB are as close as in a line of letters."""
    import cv2

    if min(image.shape[:2]) < _TALL:
        return False
    grey = np.asarray(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), np.uint8)
    while True:
        if any(_close(grey, way) >= _STROKES for way in (cv2.MORPH_TOPHAT, cv2.MORPH_BLACKHAT)):
            return True
        height, width = (side // 2 for side in grey.shape)
        if min(height, width) < _SMALLEST:
            return False
        grey = np.asarray(cv2.resize(grey, (width, height), interpolation=cv2.INTER_AREA), np.uint8)


def _close(grey: NDArray[np.uint8], way: int) -> float:
    """Maximum number of strokes per row in a window over greys (height, width): a morphological hat."""
    import cv2

    stroke = cv2.morphologyEx(grey, way, np.ones((1, _NARROW), np.uint8)) > _CONTRAST
    begins = (stroke[:, 1:] & ~stroke[:, :-1]).astype(np.uint8)
    window = (_WIDE, _TALL)
    count = cv2.boxFilter(begins, cv2.CV_32F, window, normalize=False, borderType=cv2.BORDER_CONSTANT)
    return float(count.max()) / _TALL
