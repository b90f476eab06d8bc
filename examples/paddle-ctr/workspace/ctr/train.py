"""Predicts clicks: a wide and deep network with its embeddings on parameter servers.

The same program is server and trainer, selected by PADDLE_TRAINING_ROLE. Servers never exit by themselves. Trainers
pull parameters, push gradients, and exit after their share of the data; the first of them saves the model. Addresses
and indexes are in Paddle's environment variables.

    python train.py --is_local 1                      alone, without servers
    python train.py --is_local 0 --cloud_train 1      as one of several, as in the job file
"""

from __future__ import annotations

import argparse
import logging
import os
from pathlib import Path

import numpy as np
import paddle
from clicks import IDS, NUMBERS, SLOTS, batches
from paddle.distributed import fleet
from scoring import Scores

log = logging.getLogger("ctr")
WIDTH = 8  # of an embedding


def main() -> None:
    speak()
    options = arguments()
    paddle.enable_static()
    paddle.seed(7)
    if options.is_local:
        log.info("run local training")
        train(options, *network(local=True), trainer=0)
        return
    log.info("run dist training")
    role = fleet.PaddleCloudRoleMaker(is_collective=False)
    fleet.init(role)
    loss, guess, inputs = network(local=False)
    if fleet.is_server():
        serve()
    else:
        log.info("run trainer")
        train(options, loss, guess, inputs, trainer=fleet.worker_index())


def speak() -> None:
    """A logger for the pod's log; Paddle reconfigures all existing loggers."""
    voice = logging.StreamHandler()
    voice.setFormatter(logging.Formatter("%(asctime)s - %(levelname)s - %(message)s"))
    log.addHandler(voice)
    log.setLevel(logging.INFO)
    log.propagate = False


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--is_local", type=int, default=1, help="1: alone, 0: with servers")
    parser.add_argument("--cloud_train", type=int, default=0, help="taken for the sake of old job files")
    parser.add_argument("--num_passes", type=int, default=int(os.environ.get("PASSES", "2")))
    parser.add_argument("--batches", type=int, default=int(os.environ.get("BATCHES", "60")), help="per pass")
    parser.add_argument("--batch_size", type=int, default=int(os.environ.get("BATCH_SIZE", "256")))
    parser.add_argument("--model_output_dir", default=os.environ.get("MODEL_DIR", "models"))
    return parser.parse_args()


def network(*, local: bool) -> tuple[paddle.static.Variable, paddle.static.Variable, list[paddle.static.Variable]]:
    """Loss, prediction and inputs. Ids are unique across slots, so that all slots share one table."""
    ids = paddle.static.data("ids", [None, SLOTS], "int64")
    numbers = paddle.static.data("numbers", [None, NUMBERS], "float32")
    clicks = paddle.static.data("clicks", [None, 1], "int64")
    table = [SLOTS * IDS, WIDTH + 1]
    start = paddle.ParamAttr("embedding", initializer=paddle.nn.initializer.Uniform(-0.05, 0.05))
    embed = paddle.static.nn.embedding if local else paddle.static.nn.sparse_embedding
    found = paddle.reshape(embed(paddle.reshape(ids, [-1, 1]), table, param_attr=start), [-1, SLOTS, WIDTH + 1])
    wide = paddle.sum(found[:, :, 0], axis=1, keepdim=True)
    deep = paddle.concat([paddle.flatten(found[:, :, 1:], 1), numbers], axis=1)
    for size in (32, 16):
        deep = paddle.static.nn.fc(deep, size, activation="relu")
    guess = paddle.nn.functional.sigmoid(wide + paddle.static.nn.fc(deep, 1))
    loss = paddle.mean(paddle.nn.functional.log_loss(guess, paddle.cast(clicks, "float32")))
    optimizer = paddle.optimizer.Adam(learning_rate=0.01)
    if not local:
        strategy = fleet.DistributedStrategy()
        strategy.a_sync = True
        # Gradients are sent at once, not merged: a trainer that runs ahead of the servers would train on stale
        # parameters, and more so on a busy machine.
        strategy.a_sync_configs = {"send_queue_size": 1, "max_merge_var_num": 1, "thread_pool_size": 1}
        optimizer = fleet.distributed_optimizer(optimizer, strategy)
    optimizer.minimize(loss)
    return loss, guess, [ids, numbers, clicks]


def serve() -> None:
    log.info("run pserver")
    fleet.init_server()
    log.info("Server listening on %s", fleet.server_endpoints()[fleet.server_index()])
    fleet.run_server()


def train(
    options: argparse.Namespace,
    loss: paddle.static.Variable,
    guess: paddle.static.Variable,
    inputs: list[paddle.static.Variable],
    *,
    trainer: int,
) -> None:
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    if not options.is_local:
        fleet.init_worker()
    offsets = np.arange(SLOTS, dtype=np.int64) * IDS
    for turn in range(options.num_passes):
        whole = Scores()
        data = batches(trainer=trainer, turn=turn, count=options.batches, size=options.batch_size)
        for number, (ids, numbers, clicks) in enumerate(data):
            feed = {"ids": ids + offsets, "numbers": numbers, "clicks": clicks}
            cost, guesses = executor.run(feed=feed, fetch_list=[loss, guess])
            whole.add(guesses, clicks)
            alone = Scores()
            alone.add(guesses, clicks)
            log.info(
                "TRAIN --> pass: %d batch: %d loss: %s auc: %s, batch_auc: %s",
                turn, number, float(np.mean(cost)), whole.auc(), alone.auc(),
            )  # fmt: skip
        if trainer == 0 and options.model_output_dir:
            save(options, executor, inputs[:2], guess, turn)
    if not options.is_local:
        fleet.stop_worker()
    log.info("trainer %d has seen its share", trainer)


def save(
    options: argparse.Namespace,
    executor: paddle.static.Executor,
    inputs: list[paddle.static.Variable],
    guess: paddle.static.Variable,
    turn: int,
) -> None:
    """Save the model after a pass, including the embeddings of the servers."""
    place = Path(options.model_output_dir) / f"pass-{turn}"
    place.mkdir(parents=True, exist_ok=True)
    if options.is_local:
        paddle.static.save_inference_model(str(place / "model"), inputs, [guess], executor)
    else:
        fleet.save_inference_model(executor, str(place), [each.name for each in inputs], [guess])
    log.info("model of pass %d saved in %s", turn, place)


if __name__ == "__main__":
    main()
