"""Scenario 22 of the gang specification, the half about queues themselves, and what a queue may say of itself."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from kit.planner_board import Board, binds, cores
from shoal.scheduler.messages import text
from shoal.scheduler.planner.from_objects import queue_from
from shoal.scheduler.planner.gang_types import Queue
from shoal.scheduler.planner.queue_state import (
    QueueInvalid,
    admit_deletion,
    admit_group,
    admit_queue,
    close,
    reopen,
    state,
)

FAMILY = (
    Queue("root", parent=""),
    Queue("default"),
    Queue("dept", capability=cores(cpu=10), deserved=cores(cpu=8)),
    Queue("dev", parent="dept", deserved=cores(cpu=4)),
    Queue("ops", parent="dept"),
    Queue("night", parent="dept", open=False),
    Queue("shift", parent="night"),
)


def family(*changed: Queue) -> dict[str, Queue]:
    return {queue.name: queue for queue in (*FAMILY, *changed)}


def open_ones(queues: dict[str, Queue]) -> list[str]:
    return sorted(name for name, queue in queues.items() if queue.open)


def test_22_closing_a_parent_closes_its_children_and_reopening_spares_one_closed_by_hand() -> None:
    queues = family()
    shut = family(*close(queues, "dept"))
    assert open_ones(shut) == ["default", "root"]
    assert {name for name, queue in shut.items() if queue.closed_by_parent} == {"dev", "ops", "shift"}
    again = {**shut, **{queue.name: queue for queue in reopen(shut, "dept")}}
    assert open_ones(again) == ["default", "dept", "dev", "ops", "root"]
    assert not again["night"].closed_by_parent


def test_22_a_child_that_is_closed_by_hand_while_its_parent_is_closed_stays_closed() -> None:
    shut = family(*close(family(), "dept"))
    shut |= {queue.name: queue for queue in close(shut, "dev")}
    assert [queue.name for queue in reopen(shut, "dept")] == ["dept", "ops"]


def test_22_running_pods_stay_and_reopening_resumes() -> None:
    board = Board(sharing="capacity")
    board.nodes(3)
    board.queue("dept")
    board.queue("dev", parent="dept")
    board.running("old", 1, ["n0"], queue="dev")
    board.group("new", 2, queue="dev")
    for queue in close(board.view.queues, "dept"):
        board.view.set_queue(queue)
    made = board.cycle()
    assert (made.binds, made.evictions) == ((), ())
    for queue in reopen(board.view.queues, "dept"):
        board.view.set_queue(queue)
    assert sorted(binds(board.cycle())) == ["new-0", "new-1"]


@pytest.mark.parametrize(("opened", "groups", "word"), [(True, 3, "Open"), (False, 1, "Closing"), (False, 0, "Closed")])
def test_a_queue_is_closing_while_it_has_groups(opened: bool, groups: int, word: str) -> None:
    assert state(Queue("q", open=opened), groups) == word


def test_who_closed_a_queue_is_read_from_it() -> None:
    notes = {"volcano.sh/closed-by-parent": "true"}
    obj = {"metadata": {"name": "q", "annotations": notes}, "status": {"state": "Closed"}}
    assert queue_from(obj) == Queue("q", open=False, closed_by_parent=True)


REFUSED: list[tuple[str, Callable[[], object], str]] = [
    ("22 a job for a closed queue", lambda: admit_group(family(), "night"), "night is closed and admits no PodGroups"),
    ("a job for no queue", lambda: admit_group(family(), "nowhere"), "queue nowhere does not exist; create it"),
    ("a job for a parent", lambda: admit_group(family(), "dept"), "dept has queues below it, and jobs go into those"),
    ("closing root", lambda: close(family(), "root"), "root is the parent of all queues and cannot be closed"),
    ("opening below a closed one", lambda: reopen(family(), "shift"), "below night, which is closed; open night"),
    ("deleting default", lambda: admit_deletion(family(), "default"), "always exists and cannot be deleted"),
    ("deleting a parent", lambda: admit_deletion(family(), "dept"), r"below it \(dev, night, ops\); delete those"),
    ("deleting one in use", lambda: admit_deletion(family(), "dev", holds_pods=["dev"]), "dev runs pods; close it"),
    ("below itself", lambda: admit_queue(family(), Queue("dept", parent="dev")), "would be below itself"),
    ("its own parent", lambda: admit_queue(family(), Queue("dev", parent="dev")), "would be below itself"),
    ("no such parent", lambda: admit_queue(family(), Queue("q", parent="x")), "parent 'x' does not exist"),
    (
        "a parent that runs pods",
        lambda: admit_queue(family(), Queue("q", parent="ops"), holds_pods=["ops"]),
        "ops runs pods and cannot have queues below it",
    ),
    (
        "more kept than deserved",
        lambda: admit_queue(family(), Queue("q", guarantee=cores(cpu=3), deserved=cores(cpu=2))),
        "guarantee of cpu is 3, more than deserved 2; lower guarantee or raise deserved",
    ),
    (
        "kept and nothing deserved",
        lambda: admit_queue(family(), Queue("q", guarantee=cores(cpu=3))),
        "guarantee of cpu is 3, more than deserved 0",
    ),
    (
        "more deserved than it may hold",
        lambda: admit_queue(family(), Queue("q", deserved=cores(cpu=3), capability=cores(cpu=2))),
        "deserved of cpu is 3, more than capability 2",
    ),
    (
        "below zero",
        lambda: admit_queue(family(), Queue("q", capability=cores(cpu=-1))),
        "capability of cpu is below zero",
    ),
    (
        "more than the parent may hold",
        lambda: admit_queue(family(), Queue("q", parent="dept", capability=cores(cpu=11))),
        "may hold 11 cpu, but dept above it only 10",
    ),
    (
        "more deserved than the parent together",
        lambda: admit_queue(family(), Queue("q", parent="dept", deserved=cores(cpu=5))),
        "below dept would have a deserved of 9 cpu in total, but dept has 8",
    ),
]


@pytest.mark.parametrize(("ask", "words"), [pytest.param(ask, words, id=name) for name, ask, words in REFUSED])
def test_what_is_refused_says_why_and_what_to_do(ask: Callable[[], object], words: str) -> None:
    with pytest.raises(QueueInvalid) as refused:
        ask()
    assert re.search(words, text(refused.value.message))


def test_a_queue_that_keeps_every_rule_is_taken() -> None:
    queue = Queue("q", parent="dept", guarantee=cores(cpu=1), deserved=cores(cpu=4), capability=cores(cpu=10))
    admit_queue(family(), queue)
    admit_queue(family(queue), replace(queue, deserved=cores(cpu=3)))
    admit_group(family(queue), "q")
    admit_deletion(family(queue), "q")
