"""What `make demo` shows of a worker's log."""

from __future__ import annotations

from demo import Digest

LOG = """\
INFO 2026-11-16 07:22:13,902 Attempting to join next rendezvous
=> rank 2 of world size 4
=> creating model: resnet18
Epoch: [1][ 5/40]\tTime  0.820 ( 0.820)\tData  0.052 ( 0.052)\tLoss 8.5468e-01 (9.4298e-01)\tAcc@1  82.81 ( 82.81)
[INFO] 2026-11-16 07:23:27,257 api: [default] Detected 1 new nodes from group_rank=1; will restart worker group
[INFO] 2026-11-16 07:23:27,257 api: [default] Stopping worker group
=> rank 1 of world size 2
=> start_epoch: 1, best_acc1: 70.1562
=> resuming epoch 1 at step 5 of 40
Epoch: [1][10/40]\tTime  0.567 ( 0.651)\tData  0.022 ( 0.036)\tLoss 7.9262e-01 (8.3983e-01)\tAcc@1  80.47 ( 80.60)
Test: [0/5]\tTime  0.252 ( 0.252)\tLoss 4.7759e-01 (4.7759e-01)\tAcc@1  86.72 ( 86.72)\tAcc@5 100.00 (100.00)
 * Acc@1 83.750 Acc@5 100.000
=> saved checkpoint for epoch 1 at /scratch/checkpoint.pth.tar"""


def test_what_changes_the_group_and_how_far_it_is() -> None:
    digest = Digest()
    assert [sentence for line in LOG.splitlines() if (sentence := digest.of(line))] == [
        "4 workers joined",
        "4 workers, epoch 1, step  5 of 40: loss 0.8547",
        "the group changes",
        "2 workers joined",
        "training continues in epoch 1 at step 5",
        "2 workers, epoch 1, step 10 of 40: loss 0.7926",
        "validation accuracy 83.8 %",
    ]
