"""How large a job may be, the same in every job language: in the schema, at admission and where a manifest is read.

The operator keeps a record per task, and what it stores of a job has to fit into one object. A stored state may have
been written by a user of the job, so that what it unfolds to is bounded too, before anything is unfolded.
"""

from __future__ import annotations

from shoal.kube.objects import Obj

LARGEST_JOB = 10_000  # tasks, over all roles
LARGEST_INDEXED = 100_000  # completions of a batch Job by index, each of which is remembered
MOST_INDEXES = 10 * LARGEST_JOB  # that the ranges of one stored state expand to: a task is in several of them
MOST_INDEXES_OF_INDEXED = 3 * LARGEST_INDEXED
MOST_TASKS = 3 * LARGEST_JOB  # of one stored status, with those that were scaled away and still have a pod
MOST_SECONDS = 2**31 - 1  # of a stored duration: a time that far ahead can still be written


def stored_seconds(value: int | None) -> int | None:
    """A duration of a stored state. Raises ValueError where no time could be computed with it."""
    if value is not None and abs(value) > MOST_SECONDS:
        raise ValueError(f"a duration of {value} seconds is longer than {MOST_SECONDS}")
    return value


def within_limit(size: str) -> Obj:
    """The rule of a list of roles `r`, for a definition. A role that is too large alone is what its schema refuses."""
    # In one loop, because the loops of a rule have at most 9,999 iterations: a role too large alone counts as a debt.
    sizes = f"self.map(r, {size} > {LARGEST_JOB} ? -{LARGEST_JOB**2} : {size})"
    return {
        "rule": f"{sizes}.sum() <= {LARGEST_JOB}",
        "message": f"a job has at most {LARGEST_JOB} tasks in all: split it into several jobs",
        "reason": "FieldValueInvalid",
    }


def size_error(count: int) -> str:
    """What is wrong with a job of so many tasks, and the way out; empty where nothing is."""
    if count <= LARGEST_JOB:
        return ""
    return f"{count} tasks in all, and a job has at most {LARGEST_JOB}: split it into several jobs"
