"""Checkpoints of a worker, and the agreement of a new group on the state to resume from.

Every worker writes its own file: there is no shared file system. Workers that survived a resize have one, new workers
have none or an old one; the rank with the most advanced one sends it to all. Since all workers hold the same state
after each step, any of the files is valid.

A file is written under a temporary name and renamed, so a worker killed in between leaves the previous file.
"""

from __future__ import annotations

import io
import os
import pickle
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import nn

from trainer.order import Progress

START = Progress(0, 0)
NOTHING = Progress(-1, 0)


@dataclass(slots=True)
class State:
    """The state of a training. A checkpoint belongs to this training if its `settings` are equal."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    settings: dict[str, Any]
    progress: Progress = START
    best_acc1: float = 0.0

    def capture(self) -> dict[str, Any]:
        return {
            "settings": self.settings,
            "epoch": self.progress.epoch,
            "step": self.progress.step,
            "best_acc1": self.best_acc1,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
        }

    def restore(self, kept: dict[str, Any]) -> None:
        self.progress = Progress(kept["epoch"], kept["step"])
        self.best_acc1 = kept["best_acc1"]
        self.model.load_state_dict(kept["model"])
        self.optimizer.load_state_dict(kept["optimizer"])


def save(state: State, file: Path) -> None:
    beside = file.with_name(f".{file.name}.{os.getpid()}")
    torch.save(state.capture(), beside)
    beside.replace(file)


def load(state: State, file: Path) -> Progress:
    """Restore from the file if it belongs to this training; returns its progress, or NOTHING."""
    if not file.is_file():
        return NOTHING
    print(f"=> loading checkpoint file: {file}")
    try:
        kept = torch.load(file, map_location="cpu", weights_only=True)
        if kept["settings"] != state.settings:
            print(f"=> ignoring checkpoint file: {file} is of a training with other settings: {kept['settings']}")
            return NOTHING
        state.restore(kept)
    except (OSError, RuntimeError, KeyError, EOFError, pickle.UnpicklingError) as broken:
        print(f"=> ignoring checkpoint file: {file} cannot be read: {broken}")
        return NOTHING
    print(f"=> loaded checkpoint file: {file}")
    return state.progress


def agree(state: State, own: Progress, device: torch.device) -> None:
    """Give every worker the most advanced state."""
    owner, furthest = _most_advanced(own, device)
    if furthest == NOTHING:
        print("=> no workers have checkpoints, starting from epoch 0")
        return
    print(f"=> using checkpoint from rank: {owner}, max_epoch: {furthest.epoch - 1}")
    blob = _broadcast(state if dist.get_rank() == owner else None, owner, device)
    print("=> done broadcasting checkpoint")
    if dist.get_rank() != owner:
        state.restore(torch.load(io.BytesIO(blob), map_location=device, weights_only=True))
    print("=> done restoring from previous checkpoint")


def _most_advanced(own: Progress, device: torch.device) -> tuple[int, Progress]:
    """The first rank with the most advanced progress, and that progress."""
    mine = torch.tensor([own.epoch, own.step], device=device)
    everybody = [torch.zeros_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(everybody, mine)
    reached = [Progress(*pair.tolist()) for pair in everybody]
    furthest = max(reached)
    return reached.index(furthest), furthest


def _broadcast(state: State | None, owner: int, device: torch.device) -> bytes:
    """The owner's state as bytes; the others pass None."""
    buffer = io.BytesIO()
    if state is not None:
        torch.save(state.capture(), buffer)
    size = torch.tensor([buffer.tell()], device=device)
    dist.broadcast(size, src=owner)
    print(f"=> checkpoint broadcast size is: {int(size)}")
    blob = torch.zeros(int(size), dtype=torch.uint8, device=device)
    if state is not None:
        blob.copy_(torch.from_numpy(np.frombuffer(buffer.getvalue(), dtype=np.uint8).copy()))
    dist.broadcast(blob, src=owner)
    return bytes(blob.cpu().numpy())
