"""The training loop, in one piece, for every model.

A :class:`Task` defines the model, the data and the evaluation. A run has a folder: ``log.csv`` (one row per
evaluation), ``state.pt`` (to resume from, written after each evaluation and on control-C), and TensorBoard
files where that package is installed and requested. Same configuration, same machine, same number of threads:
same weights, bit for bit, interrupted or not.
"""

from __future__ import annotations

import copy
import csv
import math
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.random import Generator
from torch import Tensor, nn

from moviola.errors import DataError, InvalidValue
from moviola.files.drafts import DRAFTS, is_abandoned
from moviola.files.writing import draft_of
from moviola.study.models.checks import require_known, require_positive
from moviola.study.training.optimizers import OptimizerConfig, make_optimizer
from moviola.study.training.running_mean import RunningMean

__all__ = ["Fitted", "LoopConfig", "Task", "fit"]

Batch = TypeVar("Batch")
Listener = Callable[[int, int, Mapping[str, float]], None]
PRECISIONS: dict[str, torch.dtype | None] = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}

_LARGEST_SEED = 10**13  # multiplied by the step's prime, it fits PyTorch's 64 bits


class Task(Protocol[Batch]):
    """A model with its training data and its evaluation."""

    @property
    def model(self) -> nn.Module:
        """The parameters that are learned."""

    def batches_per_epoch(self) -> int:
        """Number of batches of every epoch, >= 1."""

    def batches(self, epoch: int, draw: Generator) -> Iterator[Batch]:
        """The batches of an epoch; ``draw`` is the only source of randomness."""

    def losses(self, batch: Batch, epoch: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        """Weighted terms of the loss."""

    def evaluate(self) -> Mapping[str, float]:
        """Measures on the validation split, higher is better."""


@dataclass(frozen=True)
class LoopConfig:
    """Options of the loop.

    Attributes:
        epochs, steps: maximum numbers; None: no limit of steps. The smaller of both ends the training and
            its schedule.
        batch_size: pairs per batch.
        evaluate_every: steps between evaluations on val; 0: after each epoch.
        patience: stop after this number of evaluations without a better value; 0: never.
        patience_from: the epoch, counted from 0, from which evaluations count for that: the start of the last
            stage of a schedule, so that no training ends before it, nor before it had its own chance.
        select: the measure on val whose best value chooses the weights.
        seed: of everything random, from 0 to 10^13.
        average: decay of a running mean of the weights, in [0, 1), which is judged and kept in their place; 0
            for none.
        precision: "fp32", or "bf16"/"fp16" for mixed precision.
        device: "cpu", "cuda", …
    """

    epochs: int = 100
    steps: int | None = None
    batch_size: int = 128
    optimizer: OptimizerConfig = field(default_factory=OptimizerConfig)
    evaluate_every: int = 0
    patience: int = 10
    patience_from: int = 0
    select: str = "nDCG@20,IoU>=0.5"
    seed: int = 0
    average: float = 0.0
    precision: str = "fp32"
    device: str = "cpu"

    def __post_init__(self) -> None:
        require_positive(epochs=self.epochs, steps=self.steps, batch_size=self.batch_size)
        if not 0 <= self.seed <= _LARGEST_SEED:
            raise InvalidValue(f"seed={self.seed}: give a number from 0 to {_LARGEST_SEED:,}")
        if not 0 <= self.average < 1:
            raise InvalidValue(f"average={self.average}: give a decay from 0 to below 1; 0 for none")
        require_known("precision", self.precision, PRECISIONS)


@dataclass
class Fitted:
    """A run, all that changes of it besides weights and optimiser; at its end the model holds the best ones.

    Attributes:
        epoch, step: how many are done.
        best, best_step: the best value on val, and the step that it was measured at.
        since_best: evaluations without a better value.
        seconds: time of the steps alone, without evaluations.
        cpu_seconds: processor time, evaluations included.
        history: one row per evaluation.
        sums: terms of the loss, added up since the last evaluation.
    """

    epoch: int = 0
    step: int = 0
    best: float = -math.inf
    best_step: int = 0
    since_best: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    history: list[dict[str, float]] = field(default_factory=list)
    sums: dict[str, float] = field(default_factory=dict)

    @property
    def evaluated(self) -> int:
        """The step of the last evaluation."""
        return int(self.history[-1]["step"]) if self.history else 0


def fit(
    task: Task[Any],
    config: LoopConfig,
    folder: Path | None = None,
    *,
    resume: bool = False,
    progress: Listener | None = None,
) -> Fitted:
    """Train ``task.model`` and leave the weights that were best on val in it.

    Args:
        task, config: what is trained, and the options of the loop.
        folder: folder for the log and the state; None keeps nothing. What :class:`KeyboardInterrupt` leaves
            there has every step that was done.
        resume: continue from the state in ``folder``, which must have the same configuration; the device may
            be another one.
        progress: called after each step with steps done, steps in all, and the latest terms of the loss and
            measures on val.

    Raises:
        InvalidValue: the task has no measure of the name to select by.
        DataError: the state to resume from is missing, damaged or of another configuration; the loss is no
            longer a finite number; or the measure to select by has no value.
    """
    torch.manual_seed(config.seed)
    model = task.model.to(config.device)
    per_epoch = task.batches_per_epoch()
    total = min(config.epochs * per_epoch, config.steps or config.epochs * per_epoch)
    optimizer, schedule = make_optimizer(model, config.optimizer, total)
    scaler = torch.amp.GradScaler(config.device, enabled=config.precision == "fp16")
    run = Fitted()
    best = copy.deepcopy(model.state_dict())
    mean = RunningMean(model, config.average) if config.average else None
    state = _State(config, folder, total, run, model, optimizer, schedule, scaler, best, mean)
    if resume:
        state.restore()
    if folder is not None:
        state.log = _Log(folder, run.history)
    if progress:
        state.listener = progress
    try:
        _go_on(task, state, per_epoch)
    except KeyboardInterrupt:
        state.save()
        raise
    model.load_state_dict(state.best)
    model.eval()
    return run


def _go_on(task: Task[Any], state: _State, per_epoch: int) -> None:
    """The steps and evaluations that are still to do; an interruption finds all or nothing of each."""
    config, run, total = state.config, state.run, state.total
    every = config.evaluate_every or per_epoch

    def evaluate_where_due() -> None:
        if run.evaluated < run.step and (run.step % every == 0 or run.step == total):
            _evaluate(task, state)
            state.save()

    evaluate_where_due()  # an interruption may have come between a step and its evaluation
    while run.step < total and not _patience_lost(config, run):
        draw = np.random.default_rng([config.seed, run.epoch])
        for place, batch in enumerate(task.batches(run.epoch, draw)):
            if run.epoch * per_epoch + place < run.step:
                continue  # an interrupted epoch: these batches were learned from before
            latest = _learn(task, state, batch)
            state.listener(run.step, total, latest)
            evaluate_where_due()
            if run.step == total or _patience_lost(config, run):
                break
        else:
            run.epoch += 1


def _learn(task: Task[Any], state: _State, batch: Any) -> dict[str, float]:
    """One step; the terms of its loss.

    Raises:
        DataError: the loss is no longer a finite number.
    """
    config, run, optimizer, scaler = state.config, state.run, state.optimizer, state.scaler
    # Randomness depends on the step alone, so that a resumed run equals an uninterrupted one.
    torch.manual_seed(config.seed * 7_919 + run.step)
    generator = torch.Generator().manual_seed(config.seed * 104_729 + run.step)
    started = time.perf_counter()
    task.model.train()
    dtype = PRECISIONS[config.precision]
    with nullcontext() if dtype is None else torch.autocast(config.device, dtype):
        terms = task.losses(batch, run.epoch, generator)
        loss = torch.stack([term.float() for term in terms.values()]).sum()
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    with _whole():
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        if state.schedule:
            state.schedule.step()
        if state.mean:
            state.mean.add(task.model)
        run.seconds += time.perf_counter() - started
        run.step += 1
        latest = {name: term.item() for name, term in terms.items()}
        if not math.isfinite(sum(latest.values())):
            raise DataError(f"step {run.step}: the loss is {latest}; lower the learning rate, or use fp32")
        for name, value in latest.items():
            run.sums[name] = run.sums.get(name, 0.0) + value
    return latest


@contextmanager
def _whole() -> Iterator[None]:
    """Lets control-C wait until this is done, so that a state that is saved is no half of a step.

    It reaches the main thread alone; where it has been given another meaning, that is kept.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    waiting: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: waiting.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if waiting:
        signal.raise_signal(signal.SIGINT)


def _patience_lost(config: LoopConfig, run: Fitted) -> bool:
    return 0 < config.patience <= run.since_best


def _evaluate(task: Task[Any], state: _State) -> None:
    """Evaluate the model on val, log it, and keep the weights that are the best so far.

    Raises:
        InvalidValue: the measure to select by is not there.
        DataError: it has no value.
    """
    config, run = state.config, state.run
    task.model.eval()
    with state.mean.within(task.model) if state.mean else nullcontext():
        with torch.inference_mode():
            measures = dict(task.evaluate())
        weights = copy.deepcopy(task.model.state_dict())
    if config.select not in measures:
        raise InvalidValue(f"select {config.select!r}: unknown on val; choose {', '.join(measures)}")
    value = measures[config.select]
    if math.isnan(value):  # no weights would ever be the best
        raise DataError(
            f"{config.select}: no query of val has an answer in its videos; give a val split that has some"
        )
    row = {"step": float(run.step), "epoch": float(run.epoch), "seconds": run.seconds}
    since = run.step - run.evaluated
    row |= {f"loss/{name}": added / since for name, added in run.sums.items()} | measures
    with _whole():
        run.history.append(row)
        run.sums.clear()
        if value > run.best:
            run.best, run.best_step, run.since_best = value, run.step, 0
            state.best = weights
        else:
            run.since_best += run.epoch >= config.patience_from
        if state.log is not None:
            state.log.write(row)
    state.listener(run.step, state.total, measures)


# ---- files -----------------------------------------------------------------------------------------------


class _Log:
    """``log.csv``: a row an evaluation, those of a resumed state first."""

    def __init__(self, folder: Path, history: Iterable[dict[str, float]]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "log.csv"
        self._path.unlink(missing_ok=True)
        for row in history:
            self.write(row)

    def write(self, row: dict[str, float]) -> None:
        new = not self._path.exists()
        with self._path.open("a", newline="") as file:
            writer = csv.DictWriter(file, row)
            if new:
                writer.writeheader()
            writer.writerow(row)


@dataclass
class _State:
    """Everything about a run: what it needs to resume, and who hears of it.

    Attributes:
        folder: for the state; None keeps nothing.
        total: steps in all.
        mean: of the weights; None without :attr:`LoopConfig.average`.
        log: takes the row of each evaluation.
        listener: see ``progress`` of :func:`fit`.
    """

    config: LoopConfig
    folder: Path | None
    total: int
    run: Fitted
    model: nn.Module
    optimizer: torch.optim.Optimizer
    schedule: Any
    scaler: Any
    best: Mapping[str, Tensor]
    mean: RunningMean | None = None
    begun: float = field(default_factory=time.process_time)
    log: _Log | None = None
    listener: Listener = lambda step, total, values: None

    def _parts(self) -> dict[str, Any]:
        parts = {"model": self.model, "optimizer": self.optimizer, "schedule": self.schedule}
        parts |= {"scaler": self.scaler, "mean": self.mean}
        return {name: part for name, part in parts.items() if part is not None}

    def save(self) -> None:
        """Write the state; an interruption leaves the last one intact."""
        self.run.cpu_seconds = time.process_time() - self.begun
        if self.folder is None:
            return
        state = {name: part.state_dict() for name, part in self._parts().items()}
        state |= {"config": asdict(self.config), "run": asdict(self.run), "best": dict(self.best)}
        with draft_of(self.folder / "state.pt") as draft:
            torch.save(state, draft)

    def restore(self) -> None:
        path = (self.folder or Path()) / "state.pt"
        if self.folder is None or not path.is_file():
            raise DataError(f"{path}: nothing to resume from; train without resuming first")
        for left in filter(is_abandoned, self.folder.glob(f".{path.name}{DRAFTS}")):
            left.unlink(missing_ok=True)
        try:
            state = torch.load(path, map_location=self.config.device, weights_only=True)
            saved = state["config"]
        except Exception as error:
            raise DataError(f"{path}: damaged ({error}); train again from the start") from error
        wanted = asdict(self.config)
        changed = [name for name, value in wanted.items() if name != "device" and saved.get(name) != value]
        if changed:
            raise DataError(f"{path}: of another configuration ({', '.join(changed)} differ); train again")
        for name, part in self._parts().items():
            part.load_state_dict(state[name])
        for name, value in state["run"].items():
            setattr(self.run, name, value)
        self.begun -= self.run.cpu_seconds
        self.best = state["best"]
