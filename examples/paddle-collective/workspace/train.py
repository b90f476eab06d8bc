"""Data-parallel training on Paddle 3: every worker has a share of the data, gradients are averaged after each step.

Volcano's svc and env plugins provide the addresses and the index of each worker. The workers communicate through gloo,
which needs no GPU. They start with equal weights and end with equal weights, whatever their number.
"""

from __future__ import annotations

import os

HOSTS = os.environ.get("VC_WORKER_HOSTS", "127.0.0.1").split(",")
RANK = int(os.environ.get("VC_TASK_INDEX", "0"))
PORT = int(os.environ.get("PADDLE_PORT", "6170"))
# Paddle reads these when it is imported.
os.environ |= {
    "PADDLE_DISTRI_BACKEND": "gloo",
    "PADDLE_TRAINER_ID": str(RANK),
    "PADDLE_TRAINERS_NUM": str(len(HOSTS)),
    "PADDLE_TRAINER_ENDPOINTS": ",".join(f"{host}:{PORT + 1 + rank}" for rank, host in enumerate(HOSTS)),
    "PADDLE_CURRENT_ENDPOINT": f"{HOSTS[RANK]}:{PORT + 1 + RANK}",
    "PADDLE_MASTER": f"{HOSTS[0]}:{PORT}",
}

import numpy as np  # noqa: E402
import paddle  # noqa: E402
import paddle.distributed as dist  # noqa: E402

STEPS = int(os.environ.get("STEPS", "60"))
BATCH = 128
FEATURES, CLASSES = 20, 4


def main() -> None:
    dist.init_parallel_env()
    paddle.seed(7)
    model = paddle.nn.Sequential(paddle.nn.Linear(FEATURES, 64), paddle.nn.ReLU(), paddle.nn.Linear(64, CLASSES))
    optimizer = paddle.optimizer.Adam(learning_rate=0.01, parameters=model.parameters())
    centres = np.random.default_rng(1).normal(0, 1, (CLASSES, FEATURES))
    chance = np.random.default_rng((2, RANK))
    for step in range(STEPS):
        labels = chance.integers(0, CLASSES, BATCH)
        points = (centres[labels] + chance.normal(0, 1.5, (BATCH, FEATURES))).astype("float32")
        guesses = model(paddle.to_tensor(points))
        loss = paddle.nn.functional.cross_entropy(guesses, paddle.to_tensor(labels))
        loss.backward()
        average(model)
        optimizer.step()
        optimizer.clear_grad()
        right = float((guesses.argmax(axis=1).numpy() == labels).mean())
        print(f"step: {step} loss: {float(loss):.6f} accuracy: {right:.4f}", flush=True)
    weights = sum(float(parameter.abs().sum()) for parameter in model.parameters())
    print(f"rank {RANK} of {len(HOSTS)} is done, sum of weights {weights:.4f}", flush=True)


def average(model: paddle.nn.Layer) -> None:
    """DataParallel in four lines."""
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad)
        parameter.grad.set_value(parameter.grad / len(HOSTS))


if __name__ == "__main__":
    main()
