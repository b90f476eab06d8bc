"""Trains an image classifier with any number of workers, and continues when their number changes.

    torchrun --nnodes=1:4 ... main.py --arch=resnet18 --batch-size=32 --epochs=2 DATA

Each start is the same: join the group, agree on the most advanced checkpoint, train the remaining steps. The result
does not depend on the number of workers over time; trainer/gradients.py explains why and how exactly.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from datetime import timedelta
from pathlib import Path

import torch
import torch.distributed as dist
from trainer import checkpoints
from trainer.checkpoints import State
from trainer.images import Images
from trainer.model import ARCHITECTURES, build
from trainer.order import Order
from trainer.training import Plan, Training

MEETING_SECONDS = 120  # for the start of all workers of a group on a busy machine


def main() -> None:
    args = read_arguments()
    device = choose_device(args.threads)
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo", timeout=timedelta(seconds=MEETING_SECONDS))
    print(f"=> rank {dist.get_rank()} of world size {dist.get_world_size()}")
    training = prepare(args, device)
    own = checkpoints.load(training.state, args.checkpoint_file)
    checkpoints.agree(training.state, own, device)
    at, best = training.state.progress, training.state.best_acc1
    print(f"=> start_epoch: {at.epoch}, best_acc1: {best:g}")
    if at.step:
        print(f"=> resuming epoch {at.epoch} at step {at.step} of {training.order.steps}")
    training.run()
    # A worker leaves after all are done: one that loses a peer would restart the group.
    dist.barrier()
    dist.destroy_process_group()


def read_arguments() -> argparse.Namespace:
    # A container has its own /tmp; processes on one machine share it, hence TMPDIR, which shoal.yaml sets per pod.
    checkpoint = Path(tempfile.gettempdir()) / "checkpoint.pth.tar"
    metrics = os.environ.get("METRICS_FILE")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, help="folder with train/ and val/")
    parser.add_argument("-a", "--arch", choices=sorted(ARCHITECTURES), default="resnet18")
    parser.add_argument("-b", "--batch-size", type=int, default=32, help="per worker, when all of --nnodes are there")
    parser.add_argument("--global-batch", type=int, help="per step; default: batch size x most workers there can be")
    parser.add_argument("--slot", type=int, default=16, help="images computed at once; a worker takes several")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--lr", type=float, default=0.003)
    parser.add_argument("--weight-decay", type=float, default=0.01)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="on the CPU, per worker")
    parser.add_argument("-p", "--print-freq", type=int, default=5, help="in steps")
    parser.add_argument("--checkpoint-freq", type=int, default=5, help="in steps, besides the end of each epoch")
    parser.add_argument("--checkpoint-file", type=Path, default=checkpoint, help=f"default: {checkpoint}")
    parser.add_argument("--metrics-file", type=Path, default=metrics and Path(metrics), help="JSON lines, one a step")
    return parser.parse_args()


def choose_device(threads: int) -> torch.device:
    if torch.cuda.is_available():
        index = int(os.environ.get("LOCAL_RANK", "0"))
        torch.cuda.set_device(index)
        torch.backends.cudnn.deterministic = True
        print(f"=> set cuda device = {index}")
        return torch.device("cuda", index)
    # Equal for all workers: the number of threads determines the order in which a kernel adds.
    torch.set_num_threads(threads)
    print("=> no cuda device, using the cpu")
    return torch.device("cpu")


def prepare(args: argparse.Namespace, device: torch.device) -> Training:
    """The settings of a training, independent of its progress."""
    train, val = Images(args.data / "train"), Images(args.data / "val")
    print(f"=> creating model: {args.arch}")
    torch.manual_seed(args.seed)
    model = build(args.arch, len(train.classes)).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
    global_batch = args.global_batch or args.batch_size * full_size()
    order = Order(len(train), global_batch, args.slot, args.seed)
    settings = {name: getattr(args, name) for name in ("arch", "slot", "lr", "weight_decay", "seed")}
    settings |= {"global_batch": global_batch, "samples": len(train), "classes": len(train.classes)}
    plan = Plan(
        epochs=args.epochs,
        print_every=args.print_freq,
        checkpoint_every=args.checkpoint_freq,
        checkpoint_file=args.checkpoint_file,
        metrics_file=args.metrics_file,
        keeps_files=os.environ.get("LOCAL_RANK", "0") == "0",
    )
    return Training(State(model, optimizer, settings), order, train, val, plan, device)


def full_size() -> int:
    """The maximum number of workers of this job, from the launcher."""
    nodes = os.environ.get("TORCHELASTIC_MAX_NODES")
    if nodes is None:
        raise SystemExit(
            "main.py: the global batch must stay the same when workers come and go. Start with "
            "`python -m torchelastic.distributed.launch`, or add --global-batch=N."
        )
    return int(nodes) * int(os.environ.get("LOCAL_WORLD_SIZE", "1"))


if __name__ == "__main__":
    main()
