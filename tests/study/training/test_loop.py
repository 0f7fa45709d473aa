"""The loop: same seed, same weights; interrupted or not; the best weights on val are those that stay."""

from __future__ import annotations

import csv
import signal
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from moviola.errors import DataError, InvalidValue
from moviola.study.training.loop import Fitted, LoopConfig, fit
from moviola.study.training.optimizers import OptimizerConfig

PER_EPOCH = 4


class Line:
    """A task that uses every source of chance there is: the order of batches, dropout, and the generator."""

    def __init__(self, judgements: list[float] | None = None) -> None:
        torch.manual_seed(5)
        self.model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.3), nn.LayerNorm(8), nn.Linear(8, 1))
        self.inputs = torch.from_numpy(np.random.default_rng(1).normal(size=(32, 3)).astype(np.float32))
        self.targets = self.inputs.sum(dim=1, keepdim=True)
        self.judgements = judgements
        self.judged: list[dict[str, Tensor]] = []
        self.seen: list[np.ndarray] = []

    def batches_per_epoch(self) -> int:
        return PER_EPOCH

    def batches(self, epoch: int, draw: np.random.Generator) -> Iterator[np.ndarray]:
        yield from np.split(draw.permutation(32), PER_EPOCH)

    def losses(self, batch: np.ndarray, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        assert self.model.training
        self.seen.append(batch)
        noise = torch.randn(len(batch), 1, generator=generator) / 10
        output = self.model(self.inputs[batch])
        wrong = (output.float() - self.targets[batch] + noise).square().mean()
        return {"error": wrong, "size": output.float().square().mean() / 100}

    def evaluate(self) -> Mapping[str, float]:
        assert not self.model.training
        assert torch.is_inference_mode_enabled()
        self.judged.append({name: tensor.clone() for name, tensor in self.model.state_dict().items()})
        if self.judgements:
            return {"fit": self.judgements[len(self.judged) - 1]}
        return {"fit": -float((self.model(self.inputs) - self.targets).square().mean())}


def config(**changes: Any) -> LoopConfig:
    optimizer = OptimizerConfig(name="adamw", lr=1e-2, warmup=0.1, schedule="cosine")
    base: dict[str, Any] = {"epochs": 3, "optimizer": optimizer, "select": "fit", "patience": 0, "seed": 3}
    return LoopConfig(**(base | changes))


def same(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> bool:
    return all(torch.equal(one[name], other[name]) for name in one)


def timeless(fitted: Fitted) -> list[dict[str, float]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in fitted.history]


def test_same_seed_same_weights_bit_for_bit() -> None:
    first, second, other = Line(), Line(), Line()
    one, two = fit(first, config()), fit(second, config())
    fit(other, config(seed=4))
    assert same(first.model.state_dict(), second.model.state_dict())
    assert timeless(one) == timeless(two)
    assert not same(first.model.state_dict(), other.model.state_dict())


def test_chance_outside_the_run_changes_nothing() -> None:
    first, second = Line(), Line()
    fit(first, config())

    def disturb(step: int, total: int, values: Mapping[str, float]) -> None:
        torch.rand(step)
        np.random.default_rng().random()

    torch.manual_seed(99)
    fit(second, config(), progress=disturb)
    assert same(first.model.state_dict(), second.model.state_dict())


class Stop(Exception):
    """Something ended the program, which had no time to save anything."""


def logged(folder: Path) -> list[dict[str, str]]:
    with (folder / "log.csv").open() as file:
        return list(csv.DictReader(file))


def stop_when(
    condition: Callable[[int, Mapping[str, float]], bool], by: type[BaseException] = Stop
) -> Callable[..., None]:
    def listen(step: int, total: int, values: Mapping[str, float]) -> None:
        if condition(step, values):
            raise by

    return listen


@settings(max_examples=25, deadline=None)
@given(
    every=st.integers(1, 7),
    at=st.integers(1, 12),
    in_evaluation=st.booleans(),
    optimizer=st.sampled_from(["adamw", "bert_adam"]),
    patience=st.sampled_from([0, 2]),
    steps=st.sampled_from([None, 10]),
    average=st.sampled_from([0.0, 0.9]),
    by=st.sampled_from([Stop, KeyboardInterrupt]),
)
def test_a_resumed_run_is_the_run_that_was_not_interrupted(
    every: int,
    at: int,
    in_evaluation: bool,
    optimizer: str,
    patience: int,
    steps: int | None,
    average: float,
    by: type[BaseException],
) -> None:
    schedule = OptimizerConfig(name=optimizer, lr=3e-2, warmup=0.2, schedule="linear")
    how = config(
        evaluate_every=every, optimizer=schedule, patience=patience, steps=steps, average=average
    )  # fmt: skip
    whole, begun, resumed = Line(), Line(), Line()
    with tempfile.TemporaryDirectory() as scratch:
        one, two = Path(scratch) / "one", Path(scratch) / "two"
        expected = fit(whole, how, one)

        def here(step: int, values: Mapping[str, float]) -> bool:
            return step >= at and in_evaluation == ("fit" in values)

        try:
            fit(begun, how, two, progress=stop_when(here, by))
        except KeyboardInterrupt:
            assert torch.load(two / "state.pt", weights_only=True)["run"]["step"] >= at
        except Stop:
            if not (two / "state.pt").exists():
                with pytest.raises(DataError, match="nothing to resume"):
                    fit(resumed, how, two, resume=True)
                return
        found = fit(resumed, how, two, resume=True)
        logs = [logged(one), logged(two)]
    assert same(whole.model.state_dict(), resumed.model.state_dict())
    assert timeless(found) == timeless(expected)
    assert (found.best, found.best_step, found.step) == (expected.best, expected.best_step, expected.step)
    assert [row["step"] for row in logs[0]] == [row["step"] for row in logs[1]]


class Interrupted(Line):
    """Control-C is pressed at the sixth step: while its loss is computed, its weights change, or val runs."""

    def __init__(self, where: str) -> None:
        super().__init__()
        self.where = where
        self.model[0].weight.register_post_accumulate_grad_hook(lambda _: self.press("gradients"))

    def press(self, where: str) -> None:
        if (where, len(self.seen)) == (self.where, 6):
            signal.raise_signal(signal.SIGINT)

    def losses(self, batch: np.ndarray, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        terms = super().losses(batch, epoch, generator)
        self.press("loss")
        return terms

    def evaluate(self) -> Mapping[str, float]:
        found = super().evaluate()
        self.press("evaluation")
        return found


@pytest.mark.parametrize(
    ("where", "steps"), [("loss", 5), ("gradients", 5), ("weights", 6), ("evaluation", 6)]
)
def test_control_c_loses_no_step_wherever_it_falls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, steps: int
) -> None:
    how = config(evaluate_every=3)
    whole, begun, resumed = Line(), Interrupted(where), Line()
    expected = fit(whole, how, tmp_path / "one")
    with monkeypatch.context() as patch:
        step = torch.amp.GradScaler.step

        def pressed(*given: Any, **named: Any) -> Any:
            begun.press("weights")
            return step(*given, **named)

        patch.setattr(torch.amp.GradScaler, "step", pressed)
        with pytest.raises(KeyboardInterrupt):
            fit(begun, how, tmp_path / "two")
    assert torch.load(tmp_path / "two" / "state.pt", weights_only=True)["run"]["step"] == steps
    found = fit(resumed, how, tmp_path / "two", resume=True)
    assert len(resumed.seen) == 12 - steps
    assert same(whole.model.state_dict(), resumed.model.state_dict())
    assert timeless(found) == timeless(expected)


def test_what_began_on_another_device_goes_on(tmp_path: Path) -> None:
    expected = fit(Line(), config(), tmp_path)
    path = tmp_path / "state.pt"
    state = torch.load(path, weights_only=True)
    state["config"]["device"] = "cuda"
    torch.save(state, path)
    assert timeless(fit(Line(), config(), tmp_path, resume=True)) == timeless(expected)


def test_what_began_with_other_settings_or_does_not_say_them_is_refused(tmp_path: Path) -> None:
    fit(Line(), config(), tmp_path)
    with pytest.raises(DataError, match=r"another configuration \(average differ\)"):
        fit(Line(), config(average=0.9), tmp_path, resume=True)
    path = tmp_path / "state.pt"
    state = torch.load(path, weights_only=True)
    del state["config"]["average"]
    torch.save(state, path)
    with pytest.raises(DataError, match=r"another configuration \(average differ\)"):
        fit(Line(), config(), tmp_path, resume=True)


def test_a_finished_run_resumes_to_itself(tmp_path: Path) -> None:
    task, again = Line(), Line()
    expected = fit(task, config(), tmp_path)
    found = fit(again, config(), tmp_path, resume=True)
    assert not again.seen
    assert same(task.model.state_dict(), again.model.state_dict())
    assert found.history == expected.history


def test_the_running_mean_is_judged_and_kept_while_the_weights_go_their_way() -> None:
    plain, averaged = Line(), Line()
    fit(plain, config(evaluate_every=1))
    found = fit(averaged, config(evaluate_every=1, average=0.5))
    torch.manual_seed(5)
    mean = Line().model.state_dict()
    for number, (weights, judged) in enumerate(zip(plain.judged, averaged.judged, strict=True)):
        decay = min(0.5, (1 + number) / (10 + number))
        mean = {name: value.lerp(weights[name], 1 - decay) for name, value in mean.items()}
        for name, value in mean.items():
            torch.testing.assert_close(judged[name], value)
    best = averaged.judged[found.best_step - 1]
    assert same(best, averaged.model.state_dict())


def test_every_epoch_sees_everything_once_in_another_order() -> None:
    task = Line()
    fit(task, config())
    epochs = [np.concatenate(task.seen[at : at + PER_EPOCH]) for at in range(0, 3 * PER_EPOCH, PER_EPOCH)]
    for order in epochs:
        assert sorted(order) == list(range(32))
    assert not np.array_equal(epochs[0], epochs[1])


def test_the_best_weights_stay_and_the_earliest_of_equals() -> None:
    judgements = [1.0, 5.0, 3.0, 5.0, 2.0]
    task = Line(judgements)
    fitted = fit(task, config(epochs=5))
    assert (fitted.best, fitted.best_step) == (5.0, 2 * PER_EPOCH)
    assert same(task.model.state_dict(), task.judged[1])
    assert not task.model.training


@pytest.mark.parametrize(("patience", "steps"), [(2, 4), (3, 5), (0, 6)])
def test_patience(patience: int, steps: int) -> None:
    task = Line([1.0, 2.0, 2.0, 1.5, 1.9, 1.0])
    fitted = fit(task, config(epochs=6, patience=patience))
    assert fitted.step == steps * PER_EPOCH
    assert fitted.best_step == 2 * PER_EPOCH


@pytest.mark.parametrize(("begins", "steps"), [(0, 3), (2, 4), (3, 5), (5, 6)])
def test_patience_waits_for_the_last_stage(begins: int, steps: int) -> None:
    """Val rises no more after the first epoch; two evaluations of the stage itself must say so."""
    task = Line([2.0, 1.0, 1.5, 1.9, 1.0, 1.0])
    fitted = fit(task, config(epochs=6, patience=2, patience_from=begins))
    assert fitted.step == steps * PER_EPOCH
    assert fitted.best_step == PER_EPOCH


@pytest.mark.parametrize(("epochs", "steps", "total"), [(3, None, 12), (3, 5, 5), (2, 100, 8)])
def test_the_sooner_of_steps_and_epochs_ends_it_and_the_end_is_judged(
    epochs: int, steps: int | None, total: int
) -> None:
    heard: list[tuple[int, int]] = []
    fitted = fit(
        Line(),
        config(epochs=epochs, steps=steps),
        progress=lambda step, whole, values: heard.append((step, whole)),
    )
    assert fitted.step == total == fitted.history[-1]["step"]
    assert {whole for _, whole in heard} == {total}
    assert sorted({step for step, _ in heard}) == list(range(1, total + 1))


def test_logged_losses_are_means_since_the_last_evaluation() -> None:
    """Evaluations that fall between epochs."""
    terms: dict[int, float] = {}

    def listen(step: int, total: int, values: Mapping[str, float]) -> None:
        if "error" in values:
            terms[step] = values["error"]

    fitted = fit(Line(), config(evaluate_every=5), progress=listen)
    assert [row["step"] for row in fitted.history] == [5, 10, 12]
    for row, steps in zip(fitted.history, [range(1, 6), range(6, 11), range(11, 13)], strict=True):
        assert row["loss/error"] == pytest.approx(np.mean([terms[step] for step in steps]), rel=1e-6)


def test_the_log_holds_the_history(tmp_path: Path) -> None:
    fitted = fit(Line(), config(), tmp_path)
    assert [{name: float(value) for name, value in row.items()} for row in logged(tmp_path)] == fitted.history
    fit(Line(), config(epochs=1), tmp_path)
    assert len(logged(tmp_path)) == 1


def test_it_learns() -> None:
    fitted = fit(Line(), config(epochs=40))
    assert fitted.history[-1]["loss/error"] < fitted.history[0]["loss/error"] / 3


def test_bf16_learns_too_and_keeps_full_weights() -> None:
    task = Line()
    fitted = fit(task, config(epochs=40, precision="bf16"))
    assert fitted.history[-1]["loss/error"] < fitted.history[0]["loss/error"] / 3
    assert {tensor.dtype for tensor in task.model.state_dict().values()} == {torch.float32}
    exact = Line()
    fit(exact, config(epochs=40))
    assert not same(task.model.state_dict(), exact.model.state_dict())


def test_a_loss_that_is_no_number_is_named() -> None:
    task = Line()
    task.targets[:] = torch.nan
    with pytest.raises(DataError, match=r"step 1: the loss is .*learning rate"):
        fit(task, config())


def test_a_measure_without_a_value_chooses_no_weights() -> None:
    with pytest.raises(DataError, match="fit: no query of val has an answer"):
        fit(Line([float("nan")] * 99), config())


def test_a_measure_that_is_not_there() -> None:
    with pytest.raises(InvalidValue, match=r"select 'beauty': unknown on val; choose fit"):
        fit(Line(), config(select="beauty"))


def test_a_state_of_another_configuration_or_a_damaged_one(tmp_path: Path) -> None:
    fit(Line(), config(), tmp_path)
    with pytest.raises(DataError, match=r"another configuration \(epochs differ\)"):
        fit(Line(), config(epochs=4), tmp_path, resume=True)
    (tmp_path / "state.pt").write_bytes(b"not a state")
    with pytest.raises(DataError, match="damaged"):
        fit(Line(), config(), tmp_path, resume=True)
    with pytest.raises(DataError, match="nothing to resume"):
        fit(Line(), config(), None, resume=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"epochs": 0},
        {"steps": 0},
        {"batch_size": 0},
        {"precision": "fp8"},
        {"seed": -1},
        {"seed": 10**20},
        {"average": 1.0},
        {"average": -0.1},
    ],
)
def test_wrong_configurations(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        config(**wrong)


class Chance(Line):
    """Notes what each source of chance gives at every step."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[tuple[float, float]] = []

    def losses(self, batch: np.ndarray, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        self.given.append((torch.rand(()).item(), torch.rand((), generator=generator).item()))
        return super().losses(batch, epoch, generator)


def test_every_source_of_chance_follows_the_seed() -> None:
    """The order of batches, dropout, and the generator, each by itself: one alone would part two runs."""
    first, second, other = Chance(), Chance(), Chance()
    for task, seed in ((first, 3), (second, 3), (other, 4)):
        fit(task, config(epochs=1, seed=seed))
    assert first.given == second.given
    assert (np.array(first.given) != np.array(other.given)).all()
    assert not np.array_equal(np.concatenate(first.seen), np.concatenate(other.seen))
