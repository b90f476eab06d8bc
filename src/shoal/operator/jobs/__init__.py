"""Running jobs: one loop per job language between the cluster and the engine.

loop.py       the story of one pass
known.py      what this process remembers of a job between passes
children.py   copies of pods and anchors, found by the job they belong to
executing.py  what the engine asks for, carried out
telling.py    Events and history
installing.py definitions and admission, before the first job
"""

from shoal.operator.jobs.loop import JobLoop

__all__ = ["JobLoop"]
