"""The tiny CLIP that the package carries: it is small, it is a plain CLIP, and it sees what goes on."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from moviola.encoders import load_encoder
from moviola.encoders.checkpoints import DEMO_FOLDER
from moviola.study.datasets.gridhouse.episode import GridMoment
from moviola.study.datasets.gridhouse.vocabulary import ACTIONS, COLOURS, ROBOTS, TYPES

SEEDS = range(31_000, 31_012)  # never trained on


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[GridMoment], NDArray[np.float32]]:
    """Moments of a few unseen films, and of each the feature of a frame just after its event."""
    from moviola.media import sample_frames, write_video
    from moviola.study.datasets.gridhouse.episode import simulate
    from moviola.study.datasets.gridhouse.picture import Camera

    encoder = load_encoder("demo", device="cpu")
    moments, frames = [], []
    path = tmp_path_factory.mktemp("films") / "film.mp4"
    for seed in SEEDS:
        episode = simulate(seed)
        write_video(path, Camera(episode).frames(6.0), rate=6.0)
        with sample_frames(path, rate=2.0, size=encoder.frame_size) as stream:
            images = [frame.image for frame in stream]
        for moment in episode.moments:
            moments.append(moment)
            frames.append(images[min(len(images) - 1, round(2 * (moment.event + 1.0)))])
    features = encoder.encode_frames(np.stack(frames))
    return moments, features / np.linalg.norm(features, axis=1, keepdims=True)


def text_features(texts: list[str]) -> NDArray[np.float32]:
    features = load_encoder("demo", device="cpu").encode_text(texts)
    return features / np.linalg.norm(features, axis=1, keepdims=True)


def share_right(features: NDArray[np.float32], texts: list[str], truth: list[int]) -> float:
    """How often the right one of several texts is nearest to a frame."""
    return float(np.mean((features @ text_features(texts).T).argmax(1) == truth))


def test_it_is_a_plain_clip_of_a_few_megabytes() -> None:
    config = json.loads((DEMO_FOLDER / "config.json").read_text())
    assert config["architectures"] == ["CLIPModel"]
    assert (DEMO_FOLDER / "model.safetensors").stat().st_size <= 6_000_000
    assert {"README.md", "preprocessor_config.json", "tokenizer.json"} <= {
        p.name for p in DEMO_FOLDER.iterdir()
    }


def test_transformers_loads_it_too(shown: tuple[list[GridMoment], NDArray[np.float32]]) -> None:
    import torch
    from transformers import AutoModel, AutoTokenizer

    texts = ["a red robot picks up the green key", "open a door in the blue room", "zebra crossing"]
    tokens = AutoTokenizer.from_pretrained(DEMO_FOLDER)(texts, padding=True, return_tensors="pt")
    model = AutoModel.from_pretrained(DEMO_FOLDER, dtype=torch.float32).eval()
    with torch.inference_mode():
        wanted = model.get_text_features(**tokens).pooler_output.numpy()
    np.testing.assert_allclose(load_encoder("demo").encode_text(texts), wanted, atol=1e-4)


def test_it_distinguishes_robots(shown: tuple[list[GridMoment], NDArray[np.float32]]) -> None:
    moments, features = shown
    truth = [ROBOTS.index(str(m.slots.robot)) for m in moments]
    assert share_right(features, [f"{colour} robot" for colour in ROBOTS], truth) > 0.8


def test_it_distinguishes_things(shown: tuple[list[GridMoment], NDArray[np.float32]]) -> None:
    """Chance is 1 in 4 for the kind of thing and 1 in 10 for its colour."""
    moments, features = shown
    kinds = [TYPES.index(str(m.slots.thing.type)) for m in moments]
    assert share_right(features, [f"a {kind}" for kind in TYPES], kinds) > 0.8
    right = [
        share_right(
            feature[None],
            [f"{colour} {moment.slots.thing.type}" for colour in COLOURS],
            [COLOURS.index(str(moment.slots.thing.colour))],
        )
        for moment, feature in zip(moments, features, strict=True)
    ]
    assert np.mean(right) > 0.4


def test_it_recognises_actions(shown: tuple[list[GridMoment], NDArray[np.float32]]) -> None:
    """Taking, leaving and doors, from one frame; chance is 1 in 3."""
    moments, features = shown
    group = {"pick up": 0, "put": 1, "drop": 1, "open": 2, "close": 2}
    chosen = [i for i, m in enumerate(moments) if m.slots.action in group]
    truth = [group[moments[i].slots.action] for i in chosen]
    texts = ["a robot picks up something", "a robot drops something", "a robot opens a door"]
    assert set(group) < set(ACTIONS)
    assert share_right(features[chosen], texts, truth) > 0.6


def test_the_right_caption_is_found(shown: tuple[list[GridMoment], NDArray[np.float32]]) -> None:
    """Among all captions of these films, the true one is in the first five for most frames."""
    moments, features = shown
    similarity = features @ text_features([m.caption for m in moments]).T
    own = np.diag(similarity)[:, None]
    assert np.mean((similarity > own).sum(1) < 5) > 0.6


def test_words_it_never_met_do_not_break_it() -> None:
    features = text_features(["", "Übergrößenträger 漢字 🎬", "a red robot " * 50, "\n\t"])
    assert np.isfinite(features).all()


def test_the_model_card_states_figures() -> None:
    card = Path(DEMO_FOLDER / "README.md").read_text()
    assert "frame to caption, recall@1" in card
    assert "colour right" in card
