"""Saved models come back whole, errors say what to do, released checkpoints become ours and run no code."""

from __future__ import annotations

import argparse
import io
import json
import os
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from moviola.errors import DataError, InvalidValue, NotFound
from moviola.retrieval.saved.description import read_description
from moviola.study.models.pretrained import ARCHITECTURES, build, classes_of, from_pretrained, save_pretrained
from moviola.study.models.releases import RELEASES, convert_checkpoint
from moviola.study.models.relevant_pairs import RelevantPairsConfig
from moviola.study.models.spr import SegmentRetriever, SegmentRetrieverConfig
from moviola.study.models.xml import XML, XMLConfig

TINY = SegmentRetrieverConfig(hidden_size=8, layers=1, max_clips=6, feed_forward_size=32)


@pytest.fixture
def model() -> SegmentRetriever:
    torch.manual_seed(3)
    return SegmentRetriever(TINY)


@pytest.fixture
def saved(model: SegmentRetriever, tmp_path: Path) -> Path:
    save_pretrained(model, tmp_path / "model", card="# Tiny\n", extra={"features": "demo"})
    return tmp_path / "model"


def edit_config(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    content = json.loads((folder / "config.json").read_text())
    change(content)
    (folder / "config.json").write_text(json.dumps(content))


# --- saving and loading ---


def test_a_saved_model_comes_back(model: SegmentRetriever, saved: Path) -> None:
    loaded = from_pretrained(saved, kind=SegmentRetriever)
    assert loaded.config == model.config
    assert not loaded.training
    frames, mask = torch.randn(3, 4, 8), torch.ones(3, 4)
    assert torch.equal(loaded.encode_segments(frames, mask), model.encode_segments(frames, mask))


def test_the_folder_says_what_it_holds(saved: Path) -> None:
    described = read_description(saved)
    assert described.architecture == "spr-stage1"
    assert described.config["hidden_size"] == 8
    assert described.extra == {"features": "demo"}
    assert described.version
    assert (saved / "README.md").read_text() == "# Tiny\n"
    assert sorted(file.name for file in saved.iterdir()) == [
        "README.md",
        "config.json",
        "graphs",
        "model.safetensors",
    ]


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_every_architecture_is_there_with_defaults_in_its_config(name: str) -> None:
    config_class, model_class = classes_of(name)
    assert config_class() == config_class()
    assert issubclass(model_class, nn.Module)


def test_other_files_of_the_folder_stay(model: SegmentRetriever, tmp_path: Path) -> None:
    save_pretrained(model, tmp_path, card="# Tiny")
    others = (tmp_path / "training.log", tmp_path / "graphs" / ".DS_Store")
    for other in others:
        other.write_text("kept")
    save_pretrained(model, tmp_path, card="# Tiny again")
    assert [other.read_text() for other in others] == ["kept", "kept"]
    assert (tmp_path / "README.md").read_text() == "# Tiny again\n"


@pytest.mark.parametrize("stop_after", range(12))
def test_an_interrupted_save_leaves_old_or_new_or_a_clear_error(
    saved: Path, stop_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process may die at any change of the folder."""
    other = SegmentRetriever(SegmentRetrieverConfig(hidden_size=8, layers=1, max_clips=6, logit_scale=1.0))
    steps = iter(range(stop_after))

    class Killed(Exception):
        pass

    def dying(method: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            if next(steps, None) is None:
                raise Killed
            return method(*arguments, **options)

        return step

    with monkeypatch.context() as patch:
        for name in ("write_bytes", "replace", "unlink"):
            patch.setattr(Path, name, dying(getattr(Path, name)))
        try:
            save_pretrained(other, saved, card="# Other")
            assert stop_after >= 10, "all steps were taken"
        except Killed:
            assert stop_after < 10
    try:
        loaded = from_pretrained(saved, kind=SegmentRetriever)
    except NotFound as error:
        assert "is missing" in str(error)
    else:
        assert loaded.pt_clip_logit_scale.item() == pytest.approx(loaded.config.logit_scale)


def test_what_cannot_be_saved(model: SegmentRetriever, tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match="Linear is no registered model"):
        save_pretrained(nn.Linear(2, 2), tmp_path, card="# Linear")
    with pytest.raises(InvalidValue, match="card is empty"):
        save_pretrained(model, tmp_path, card=" ")
    with pytest.raises(InvalidValue, match="JSON"):
        save_pretrained(model, tmp_path, card="# Tiny", extra={"score": float("nan")})
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_or_file(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="nowhere: there is no such folder"):
        from_pretrained(tmp_path / "nowhere")
    (saved / "model.safetensors").unlink()
    with pytest.raises(NotFound, match=r"model\.safetensors is missing"):
        from_pretrained(saved)
    (saved / "config.json").unlink()
    with pytest.raises(NotFound, match=r"config\.json is missing"):
        from_pretrained(saved)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda c: c.update(architecture="perceiver"),
            "architecture 'perceiver': unknown; choose spr-stage1",
        ),
        (lambda c: c.pop("architecture"), "field 'architecture' is missing or no str"),
        (lambda c: c.update(config=[1]), "field 'config' is missing or no dict"),
        (lambda c: c["config"].update(dimm=9), "unknown setting 'dimm'; choose hidden_size"),
        (lambda c: c["config"].update(hidden_size="wide"), "spr-stage1.hidden_size: "),
        (lambda c: c["config"].update(loss="hinge"), "loss 'hinge': unknown; choose mil-nce"),
        (lambda c: c["config"].update(max_clips=7), r"frame_position_embeddings.weight is \(6, 8\) instead"),
        (lambda c: c["config"].update(layers=2), "is missing instead of .* and 7 more"),
    ],
)
def test_a_wrong_config(saved: Path, change: Callable[[dict[str, Any]], object], message: str) -> None:
    edit_config(saved, change)
    with pytest.raises(DataError, match=message) as caught:
        from_pretrained(saved)
    assert str(saved) in str(caught.value)


def test_a_config_that_is_no_json(saved: Path) -> None:
    (saved / "config.json").write_text("{")
    with pytest.raises(DataError, match="is no JSON"):
        from_pretrained(saved)


def test_damaged_or_foreign_weights(saved: Path) -> None:
    path = saved / "model.safetensors"
    state = load_file(path)
    save_file({**state, "extra": torch.zeros(1)}, path)
    with pytest.raises(DataError, match=r"extra is \(1,\) instead of nothing"):
        from_pretrained(saved)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(DataError, match="cannot be read as safetensors"):
        from_pretrained(saved)


def test_a_model_of_another_kind(saved: Path) -> None:
    with pytest.raises(InvalidValue, match=r"'spr-stage1' .SegmentRetriever., not a Linear"):
        from_pretrained(saved, kind=nn.Linear)


def test_a_pickle_is_not_taken_for_weights(saved: Path) -> None:
    torch.save({}, saved / "model.safetensors")
    with pytest.raises(DataError, match="cannot be read as safetensors"):
        from_pretrained(saved)


def test_settings_within_settings_come_back(tmp_path: Path) -> None:
    pairs = RelevantPairsConfig(segments=True, margin=0.2)
    xml = XML(
        XMLConfig(visual_size=4, subtitle_size=0, query_size=4, hidden_size=4, heads=1, relevant_pairs=pairs)
    )
    save_pretrained(xml, tmp_path, card="# XML")
    assert from_pretrained(tmp_path, kind=XML).config == xml.config


# --- folders written before ---


SMALL: dict[str, dict[str, Any]] = {
    "reloclnet": {"max_clips": 9, "max_tokens": 5, "ranking_loss": "lse", "shortest_span": 3},
    "xml": {"max_clips": 9, "max_tokens": 5, "shortest_span": 3, "longest_span": 7},
    "conquer": {"layers": 1, "shortest_span": 3, "longest_span": 7, "span_weight": 0.3},
    "prem": {
        "max_tokens": 5, "feed_forward_size": 24, "top_videos": 3, "top_moments": 4, "shortest_span": 2,
        "longest_span": 7,
    },
}  # fmt: skip


SILENCE = ("xml", "reloclnet", "conquer", "prem")
"""Architectures in whose formats 1 and 2 silent clips took part in the stream of subtitles."""


@pytest.mark.parametrize("name", SILENCE)
def test_a_folder_of_format_2_goes_on_as_it_learned(tmp_path: Path, name: str) -> None:
    sizes = {"visual_size": 4, "query_size": 4, "subtitle_size": 4, "hidden_size": 8, "heads": 2}
    save_pretrained(build(name, sizes | SMALL[name]), tmp_path, card="# Old")
    assert from_pretrained(tmp_path).config.mask_silent
    edit_config(tmp_path, lambda content: (content.update(format=2), content["config"].pop("mask_silent")))
    assert not from_pretrained(tmp_path).config.mask_silent


@pytest.mark.parametrize("number", [1, 4, "2", None])
def test_a_format_that_is_not_known(saved: Path, number: object) -> None:
    edit_config(saved, lambda content: content.update(format=number))
    with pytest.raises(DataError, match=r"config\.json: format .* reads 2 to 3; update moviola"):
        from_pretrained(saved)


# --- released checkpoints ---


class Case:
    """A golden model: the state dict of a release with what it computes."""

    def __init__(self, folder: Path, name: str) -> None:
        self.facts: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
        with np.load(folder / f"{name}.npz", allow_pickle=False) as arrays:
            self.arrays = {key: torch.from_numpy(arrays[key]) for key in arrays.files}
        self.state = {name: self.arrays[f"state/{name}"] for name in self.facts["state"]}

    def inputs(self, *names: str) -> list[Tensor]:
        return [self.arrays[f"in/{name}"] for name in names]


def spr_stage1(model: Any, case: Case) -> dict[str, Tensor]:
    segments = model.encode_segments(*case.inputs("segment_feat", "segment_mask"))
    queries = model.encode_queries(*case.inputs("query_feat"))
    return {
        "segment_feature": segments,
        "query_feature": queries,
        "logits": model.similarity(queries, segments),
    }


def spans_near(model: Any, case: Case) -> dict[str, Tensor]:
    """Start and end logits of all queries in all videos, and the videos' scores."""
    prefix = "" if "in/video_feat" in case.arrays else "train_"
    names = ("video_feat", "video_mask", "sub_feat", "query_feat", "query_mask")
    visual, mask, subtitles, query, query_mask = case.inputs(*(prefix + name for name in names))
    context, queries = model.encode_context(visual, mask, subtitles), model.encode_query(query, query_mask)
    start, end = every_pair(model, queries, context)
    return {
        "start_logit": start,
        "end_logit": end,
        "query_video_score": model.video_scores(queries, context),
    }


def every_pair(model: Any, queries: Any, context: Any) -> tuple[Tensor, Tensor]:
    if hasattr(model, "boundary_logits"):
        start, end = model.boundary_logits(queries, context)
        return start, end
    shape = len(queries), len(context)
    rows, columns = (index.flatten() for index in torch.meshgrid(*map(torch.arange, shape), indexing="ij"))
    start, end = model.span_logits(queries.select(rows), context.select(columns))
    return start.unflatten(0, shape), end.unflatten(0, shape)


def conquer(model: Any, case: Case) -> dict[str, Tensor]:
    visual, mask, subtitles = (part.flatten(0, 1) for part in case.inputs("visual_feat", "mask", "sub_feat"))
    queries = model.encode_query(*case.inputs("query_feat", "query_mask"))
    rows = torch.arange(len(mask)).view(len(queries.tokens), -1)
    scores = model.match(queries, model.encode_context(visual, mask, subtitles).select(rows))
    found = {"start_logit": scores.start, "end_logit": scores.end}
    return found if scores.video is None else found | {"video_score": scores.video}


PARITY: dict[str, tuple[str, Callable[[Any, Case], dict[str, Tensor]], Callable[[Any], dict[str, Any]]]] = {
    "model_reloclnet_tvr_ranking": (
        "reloclnet-tvr-ranking",
        spans_near,
        lambda config: {"heads": config["n_heads"]},
    ),
    "model_reloclnet_spr_stage3": ("spr-stage3", spans_near, lambda config: {"heads": config["n_heads"]}),
    "model_xml": ("xml", spans_near, lambda config: {"heads": config["n_heads"]}),
    "model_spr_stage1": ("spr-stage1", spr_stage1, lambda config: {"heads": config["heads"]}),
    **{
        f"model_conquer_{similarity}": (
            "conquer",
            conquer,
            lambda config: {
                "heads": config["model_config"]["bert_config"]["num_attention_heads"],
            },
        )
        for similarity in ("general", "disjoint", "exclusive")
    },
}


def wrapped(state: dict[str, Tensor]) -> Iterator[tuple[str, object]]:
    """The shapes in which releases keep their state dicts."""
    yield "bare", state
    yield "in a dict", {"epoch": 3, "model": state}
    yield "parallel", {"state_dict": {f"module.{key}": value for key, value in state.items()}}
    yield "nested", {"model_state_dict": {"model": state}, "optimizer": {"state": {}, "lr": 0.1}}


@pytest.mark.parametrize("name", PARITY)
@torch.inference_mode()
def test_a_converted_release_computes_what_the_release_computes(
    golden: Path, tmp_path: Path, name: str
) -> None:
    case = Case(golden, name)
    release, forward, settings = PARITY[name]
    torch.save({"model": {f"module.{key}": value for key, value in case.state.items()}}, tmp_path / "best.pt")
    convert_checkpoint(tmp_path / "best.pt", release, tmp_path / "ours", **settings(case.facts["config"]))
    model = from_pretrained(tmp_path / "ours")
    found = forward(model, case)
    for key, value in found.items():
        expected = case.arrays[f"out/{key}"]
        valid = expected > -1e3
        assert valid.any(), key
        assert (value[~valid] < -1e3).all(), key
        torch.testing.assert_close(value[valid], expected[valid], rtol=1e-3, atol=5e-3)


def test_what_a_release_is_taken_for(golden: Path, tmp_path: Path) -> None:
    """The two lines of ReLoCLNet and the variants of CONQUER bear what their numbers assume."""
    configs = {}
    for name, (release, _, settings) in PARITY.items():
        case = Case(golden, name)
        torch.save(case.state, tmp_path / "best.pt")
        model = convert_checkpoint(
            tmp_path / "best.pt", release, tmp_path / name, **settings(case.facts["config"])
        )
        configs[name] = model.config
        decoding = case.facts.get("decoding")
        if decoding is not None and release != "conquer":
            limits = decoding["min_pred_l"], decoding["max_pred_l"]
            assert (model.config.shortest_span, model.config.longest_span) == limits
            assert model.config.alpha == decoding["q2c_alpha"]
            assert model.config.clip_seconds == decoding["clip_length"]
    assert configs["model_reloclnet_tvr_ranking"].labels == "tvr_ranking"
    assert configs["model_reloclnet_spr_stage3"].labels == "spr"
    assert configs["model_xml"].release_end
    assert configs["model_conquer_exclusive"].similarity == "exclusive"
    assert configs["model_conquer_general"].similarity == "general"
    assert all(config.reference_padding for name, config in configs.items() if "spr_stage1" not in name)


@pytest.mark.parametrize("shape", [name for name, _ in wrapped({})])
def test_where_a_checkpoint_keeps_its_weights(model: SegmentRetriever, tmp_path: Path, shape: str) -> None:
    torch.save(dict(wrapped(model.state_dict()))[shape], tmp_path / "best.pt")
    convert_checkpoint(tmp_path / "best.pt", "spr-stage1", tmp_path / "ours")
    loaded = from_pretrained(tmp_path / "ours", kind=SegmentRetriever)
    assert loaded.config == model.config
    for key, value in model.state_dict().items():
        assert torch.equal(loaded.state_dict()[key], value), key
    assert read_description(tmp_path / "ours").extra == {"converted_from": "best.pt", "release": "spr-stage1"}


def test_settings_that_a_release_keeps_are_skipped(
    model: SegmentRetriever, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Releases keep easydict's dicts, argparse's namespaces and NumPy's numbers beside the weights."""
    module = types.ModuleType("easydict")
    module.EasyDict = type("EasyDict", (dict,), {"__module__": "easydict"})  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "easydict", module)
    settings = module.EasyDict(hidden_size=384)
    settings.hidden_size = 384
    content = {
        "model": model.state_dict(),
        "model_cfg": settings,
        "options": argparse.Namespace(lr=1e-4, nested=[settings]),
        "best": np.float64(0.4),
    }
    torch.save(content, tmp_path / "best.pt")
    monkeypatch.delitem(sys.modules, "easydict")
    convert_checkpoint(tmp_path / "best.pt", "spr-stage1", tmp_path / "ours")
    assert from_pretrained(tmp_path / "ours", kind=SegmentRetriever).config == model.config


class Malicious:
    """Writes a file when it is unpickled."""

    def __init__(self, target: Path, call: Callable[..., object]) -> None:
        self.target, self.call = target, call

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        arguments: dict[Callable[..., object], tuple[object, ...]] = {
            os.system: (f"touch {self.target}",),
            open: (str(self.target), "w"),
            exec: (f"open({str(self.target)!r}, 'w').close()",),
            os.mkdir: (str(self.target),),
        }
        return self.call, arguments[self.call]


@pytest.mark.parametrize("call", [os.system, open, exec, os.mkdir], ids=lambda call: call.__name__)
@pytest.mark.parametrize("legacy", [False, True])
def test_a_pickle_that_needs_code_is_refused_and_not_executed(
    model: SegmentRetriever, tmp_path: Path, call: Callable[..., object], legacy: bool
) -> None:
    target = tmp_path / "written"
    content = {"model": model.state_dict(), "config": Malicious(target, call)}
    torch.save(content, tmp_path / "best.pt", _use_new_zipfile_serialization=not legacy)
    with pytest.raises(DataError, match=f"would execute code .*{call.__name__}.*refused; if you trust"):
        convert_checkpoint(tmp_path / "best.pt", "spr-stage1", tmp_path / "ours")
    assert not target.exists()
    assert not (tmp_path / "ours").exists()


def test_the_malicious_pickle_would_write(tmp_path: Path) -> None:
    """The test above can fail: an ordinary unpickler does write the file."""
    target = tmp_path / "written"
    pickle.loads(pickle.dumps(Malicious(target, os.mkdir)))
    assert target.exists()


@pytest.mark.parametrize("content", [b"", b"no checkpoint at all", b"PK\x03\x04 half an archive"])
def test_a_file_that_is_no_checkpoint(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "best.pt").write_bytes(content)
    with pytest.raises(DataError, match=r"best\.pt: "):
        convert_checkpoint(tmp_path / "best.pt", "spr-stage1", tmp_path / "ours")


def test_a_truncated_checkpoint(model: SegmentRetriever, tmp_path: Path) -> None:
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    (tmp_path / "best.pt").write_bytes(buffer.getvalue()[:-200])
    with pytest.raises(DataError, match=r"is no PyTorch checkpoint; get the file again"):
        convert_checkpoint(tmp_path / "best.pt", "spr-stage1", tmp_path / "ours")


def test_wrong_uses_of_conversion(model: SegmentRetriever, tmp_path: Path) -> None:
    path, folder = tmp_path / "best.pt", tmp_path / "ours"
    with pytest.raises(NotFound, match="there is no such checkpoint"):
        convert_checkpoint(path, "spr-stage1", folder)
    torch.save(model.state_dict(), path)
    with pytest.raises(InvalidValue, match="release 'reloclnet': unknown; choose spr-stage1"):
        convert_checkpoint(path, "reloclnet", folder)
    with pytest.raises(DataError, match="holds no weights of conquer"):
        convert_checkpoint(path, "conquer", folder)
    with pytest.raises(InvalidValue, match="unknown setting 'head'"):
        convert_checkpoint(path, "spr-stage1", folder, head=2)
    torch.save([1, 2], path)
    with pytest.raises(DataError, match="it has nothing"):
        convert_checkpoint(path, "spr-stage1", folder)
    assert not folder.exists()
    (tmp_path / "README.md").write_text("mine")
    with pytest.raises(InvalidValue, match=r"has a README.md, which would be written over"):
        convert_checkpoint(path, "spr-stage1", tmp_path)


@pytest.mark.parametrize("name", ["hidden_size", "max_clips", "visual_size", "subtitle_size", "dropout"])
def test_settings_that_no_network_can_have_are_named(name: str) -> None:
    sizes = {"visual_size": 8, "subtitle_size": 0, "query_size": 8}
    with pytest.raises(InvalidValue, match=f"{name}=-1"):
        build("xml", sizes | {name: -1})


@pytest.mark.parametrize("name", RELEASES)
def test_what_a_release_sets_are_settings_of_its_model(name: str) -> None:
    release = RELEASES[name]
    config_class, _ = classes_of(release.architecture)
    known = {known.name for known in fields(config_class)}
    assert set(release.sizes) | set(release.settings) <= known
    assert build(release.architecture, {}).config is not None


@pytest.mark.parametrize(
    "architecture, setting, message",
    [
        ("xml", {"heads": 0}, "multiple of heads 0, at least 1"),
        ("spr-stage1", {"heads": 0}, "multiple of heads 0, at least 1"),
        ("conquer", {"kernel": 4}, "conquer: kernel 4: must be odd"),
        ("conquer", {"candidates": 0}, "conquer: candidates=0: give at least 1"),
        ("prem", {"top_videos": 0}, "prem: top_videos=0: give at least 1"),
        ("prem", {"temperature": 0.0}, "prem: temperature 0.0: must be above 0"),
        ("reel", {"kernel": 4}, "reel: kernel 4: must be odd"),
        ("reel", {"least_overlap": 1.0}, "reel: least_overlap 1.0: .* below 1"),
        ("reel", {"hidden_size": "large"}, r"reel\.hidden_size: .* \(got 'large'\)"),
    ],
)
def test_settings_that_a_model_cannot_have(
    architecture: str, setting: dict[str, object], message: str
) -> None:
    with pytest.raises(InvalidValue, match=message):
        build(architecture, setting)


@pytest.mark.parametrize(
    ("name", "setting", "value"),
    [
        ("spr-stage1", "layers", -1),
        ("conquer", "initial_std", -0.1),
        ("prem", "fusion_layers", -1),
        ("xml", "visual_size", -1),
        ("reloclnet", "dropout", 1.0),
    ],
)
def test_a_setting_out_of_its_range_is_refused_by_name(name: str, setting: str, value: float) -> None:
    with pytest.raises(InvalidValue, match=rf"{setting}={value}: give a"):
        build(name, {setting: value})
