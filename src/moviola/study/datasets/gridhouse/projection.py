"""Edits to frames: walks an edit decision list and draws what it says, frame by frame.

Only the houses of the last few takes are kept: a film of an hour needs no more memory than a short one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from moviola.study.datasets.gridhouse.edit import Box, Card, Edit, Footage, Shot, inside
from moviola.study.datasets.gridhouse.motion import looked_at
from moviola.study.datasets.gridhouse.picture import VIEW, Camera
from moviola.study.datasets.gridhouse.sprites import font_within

__all__ = ["Projector", "frames", "signs_seen"]

# Houses that are kept drawn: those of two takes that run to and fro, and of the next ones.
_KEPT = 4
# Pixels that the letters of a sign are tall at least, where it counts as seen, and their part of its height.
_LEGIBLE, _LETTERS = 10.0, 0.5
_PAPER = (236, 232, 220)


def frames(edit: Edit) -> Iterator[NDArray[np.uint8]]:
    """All frames of a film: (height, width, 3) uint8 RGB."""
    return map(Projector(edit).frame, range(edit.shots[-1].stop))


def signs_seen(edit: Edit) -> list[tuple[float, float, str]]:
    """Start, end (seconds of the film) and text of signs that can be read, sorted.

    A sign can be read where it is whole in the picture, and large enough. Frames of a dissolve or a fade do
    not count.
    """
    rate = edit.format.rate
    seen: list[tuple[float, float, str]] = []
    for place, shot in enumerate(edit.shots):
        if not isinstance(shot.shows, Footage):
            continue
        following = edit.shots[place + 1].mixed if place + 1 < len(edit.shots) else 0
        clear = range(shot.first + shot.mixed, shot.stop - following)
        for sign in edit.takes[shot.shows.take].signs:
            legible = [frame for frame in clear if _legible(edit, shot.shows, shot, frame, sign.box)]
            # Frames that follow each other without a gap.
            for _, run in groupby(enumerate(legible), key=lambda one: one[1] - one[0]):
                numbers = [frame for _, frame in run]
                seen.append((numbers[0] / rate, (numbers[-1] + 1) / rate, sign.text))
    return sorted((round(start, 3), round(end, 3), text) for start, end, text in seen)


def _legible(edit: Edit, footage: Footage, shot: Shot, frame: int, sign: Box) -> bool:
    box = _box(edit, footage, shot, frame)
    large = edit.format.picture[1] / (box[3] - box[1]) * _LETTERS >= _LEGIBLE
    return large and inside(sign, box)


def _box(edit: Edit, footage: Footage, shot: Shot, frame: int) -> Box:
    """The part of the house that a frame of a shot shows."""
    time = edit.source_time(shot, frame)
    share = (time - footage.start) / (footage.end - footage.start)
    robot = looked_at(edit.takes[footage.take].episode.beat_at(time), time)
    return footage.view.box(share, robot, edit.format.aspect)


class Projector:
    """Draws the frames of one edit, in any order; only the grain goes by the order of calls."""

    def __init__(self, edit: Edit) -> None:
        self.edit = edit
        self.grain = np.random.default_rng([edit.seed, 0x6772])
        self.camera = lru_cache(_KEPT)(self._camera)
        self.light = lru_cache(_KEPT)(self._light)
        self.card = lru_cache(1)(self._card)

    def frame(self, number: int) -> NDArray[np.uint8]:
        """One frame as it is written, with its bars: (height, width, 3) uint8 RGB."""
        form = self.edit.format
        picture = self._printed(number)
        width, height = form.size
        left, top = (width - form.picture[0]) // 2, (height - form.picture[1]) // 2
        image = np.zeros((height, width, 3), dtype=np.uint8)
        image[top : top + form.picture[1], left : left + form.picture[0]] = picture
        return image

    def _printed(self, number: int) -> NDArray[np.uint8]:
        picture = np.asarray(self._mixed(number))
        if not self.edit.format.noise:
            return picture
        (height, width), whole = picture.shape[:2], self._noise
        y, x = (int(self.grain.integers(size)) for size in (whole.shape[0] - height, whole.shape[1] - width))
        noisy = picture + whole[y : y + height, x : x + width, None]
        return np.clip(noisy, 0, 255).astype(np.uint8)

    @cached_property
    def _noise(self) -> NDArray[np.int16]:
        """Grain of a piece of film that is larger than a picture; each shows another part of it."""
        width, height = self.edit.format.picture
        grain = self.grain.normal(0, self.edit.format.noise, size=(height + 64, width + 64))
        return grain.astype(np.int16)

    def _mixed(self, number: int) -> Image.Image:
        """A frame with what a dissolve or a fade makes of it."""
        shots, place = self.edit.shots, self.edit.shot_at(number)
        shot = shots[place]
        picture = self._shown(shot, number)
        come = min(1.0, (number - shot.first + 1) / (shot.mixed + 1))
        if shot.opening == "dissolve" and come < 1:
            return Image.blend(self._shown(shots[place - 1], number), picture, come)
        light = come if shot.opening == "fade" else 1.0
        if place + 1 < len(shots) and shots[place + 1].opening == "fade":
            light = min(light, (shot.stop - number) / (shots[place + 1].mixed + 1))
        return picture if light == 1 else picture.point([round(level * light) for level in range(256)] * 3)

    def _shown(self, shot: Shot, number: int) -> Image.Image:
        if isinstance(shot.shows, Card):
            return self.card(shot.shows.text)
        box, time = _box(self.edit, shot.shows, shot, number), self.edit.source_time(shot, number)
        picture = self.camera(shot.shows.take).view(time, box, self.edit.format.picture)
        return picture.point(self.light(shot.shows.take))

    def _camera(self, place: int) -> Camera:
        """Drawn so that a camera that follows needs no scaling."""
        take = self.edit.takes[place]
        return Camera(take.episode, VIEW * round(self.edit.format.picture[1] / VIEW), take.signs)

    def _light(self, place: int) -> list[int]:
        """What the light of a take makes of each level of red, green and blue."""
        light = self.edit.takes[place].light
        return [min(255, round(level * part)) for part in light for level in range(256)]

    def _card(self, text: str) -> Image.Image:
        width, height = self.edit.format.picture
        image = Image.new("RGB", (width, height))
        font = font_within(text, 0.8 * width, height / 6)
        ImageDraw.Draw(image).text((width / 2, height / 2), text, fill=_PAPER, font=font, anchor="mm")
        return image
