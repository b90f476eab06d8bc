"""The training loop: steps, checkpoints, validation. Every worker runs it; they synchronize once per step.

It is elastic because each step depends only on the state and the progress (`order`, `gradients`), and both are saved
every few steps (`checkpoints`). torchrun restarts the workers when their number changes.
"""

from __future__ import annotations

import json
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

import torch
import torch.distributed as dist

from trainer import checkpoints
from trainer.checkpoints import State
from trainer.gradients import Score, Tally
from trainer.images import Images
from trainer.lines import Board
from trainer.order import Order, Progress


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of a training; only `epochs` changes its result."""

    epochs: int
    print_every: int
    checkpoint_every: int
    checkpoint_file: Path
    metrics_file: Path | None
    keeps_files: bool  # by one worker per node


@dataclass(slots=True)
class Training:
    state: State
    order: Order
    train: Images
    val: Images
    plan: Plan
    device: torch.device

    def run(self) -> None:
        """From the state's progress to the end of the last epoch."""
        while self.state.progress.epoch < self.plan.epochs:
            epoch = self.state.progress.epoch
            self._learn_epoch(epoch)
            acc1 = self.validate()
            self._finish_epoch(epoch, acc1)

    def _learn_epoch(self, epoch: int) -> None:
        board = Board(with_data=True)
        tally = Tally(list(self.state.model.parameters()), self.device)
        self.state.model.train()
        while self.state.progress.epoch == epoch:
            at = self.state.progress
            started = time.monotonic()
            score, data_seconds = self._step(at, tally)
            board.time.update(time.monotonic() - started)
            board.data.update(data_seconds)
            _show(board, score)
            if at.step % self.plan.print_every == 0:
                print(board.line(f"Epoch: [{epoch}]", at.step, self.order.steps))
            self._record(at, score)
            self.state.progress = self.order.after(at)
            if self.state.progress.step and self.state.progress.step % self.plan.checkpoint_every == 0:
                self._keep()

    def _step(self, at: Progress, tally: Tally) -> tuple[Score, float]:
        """Train one global batch; returns its score and this worker's loading time."""
        data_seconds = 0.0
        for slot in self.order.share(at, rank=dist.get_rank(), world=dist.get_world_size()):
            started = time.monotonic()
            images, labels = self.train.load(slot, turn_by=f"{self.order.seed}/{at.epoch}")
            data_seconds += time.monotonic() - started
            images, labels = images.to(self.device), labels.to(self.device)
            tally.add(self.state.model(images), labels)
        score = tally.share()
        self.state.optimizer.step()
        return score, data_seconds

    def validate(self) -> float:
        """Accuracy on the validation images, in percent."""
        board = Board(with_data=False)
        tally = Tally([], self.device)
        batches = Order(len(self.val), self.order.global_batch, self.order.slot)
        self.state.model.eval()
        with torch.no_grad():
            for step in range(batches.steps):
                started = time.monotonic()
                for slot in batches.share(Progress(0, step), rank=dist.get_rank(), world=dist.get_world_size()):
                    images, labels = self.val.load(slot)
                    tally.add(self.state.model(images.to(self.device)), labels.to(self.device))
                _show(board, tally.share())
                board.time.update(time.monotonic() - started)
                if step % self.plan.print_every == 0:
                    print(board.line("Test: ", step, batches.steps))
        print(board.summary())
        return board.top1.mean

    def _finish_epoch(self, epoch: int, acc1: float) -> None:
        is_best = acc1 > self.state.best_acc1
        self.state.best_acc1 = max(acc1, self.state.best_acc1)
        self._keep()
        if not self.plan.keeps_files:
            return
        print(f"=> saved checkpoint for epoch {epoch} at {self.plan.checkpoint_file}")
        if is_best:
            best = self.plan.checkpoint_file.with_name("model_best.pth.tar")
            print(f"=> best model found at epoch {epoch} saving to {best}")
            shutil.copyfile(self.plan.checkpoint_file, best)

    def _keep(self) -> None:
        if self.plan.keeps_files:
            checkpoints.save(self.state, self.plan.checkpoint_file)

    def _record(self, at: Progress, score: Score) -> None:
        """One line per step for the picture, by rank 0 only."""
        if self.plan.metrics_file is None or dist.get_rank() != 0:
            return
        line = {
            "time": time.time(),
            "epoch": at.epoch,
            "step": at.step,
            "steps": self.order.steps,
            "world": dist.get_world_size(),
            "loss": score.loss,
            "acc1": score.top1,
        }
        append(self.plan.metrics_file, line)


def append(file: Path, line: dict[str, object]) -> None:
    with file.open("a") as metrics:
        metrics.write(json.dumps(line) + "\n")


def _show(board: Board, score: Score) -> None:
    board.loss.update(score.loss, score.samples)
    board.top1.update(score.top1, score.samples)
    board.top5.update(score.top5, score.samples)
