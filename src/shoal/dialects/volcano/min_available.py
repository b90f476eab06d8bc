"""What the minima of a Job mean while it is scaled: all pods, the tasks' minima together, or a number.

A number alone is ambiguous: 1 of 1 may mean all, or a 2 for which there were not enough pods. Where that is in doubt,
an annotation on the Job records the meaning at the sizes it was scaled to. A minimum or a size that is changed
otherwise since is taken literally.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from shoal.kube.objects import Obj, annotations_of

MEANING = "shoal.dev/minima"
OF_ALL = ""  # the key of the job's own minimum; tasks have their names
EVERY, TASKS = "all", "tasks"  # meanings that are no number


class MinAvailableNotes:
    """The meanings of one Job's minima, as they were and as they will be."""

    def __init__(self, manifest: Obj) -> None:
        self._manifest = manifest
        self._before = _read_notes(manifest)
        self._after: dict[str, Any] = {}

    def kept(self, key: str, minimum: int, before: int, after: int) -> int:
        """The minimum for another size, meaning the same."""
        meant = self._meant(key, [before, minimum], EVERY if minimum == before else minimum)
        least = after if meant == EVERY else min(int(meant), after)
        self._note(key, meant, [after, least], EVERY if least == after else least)
        return least

    def kept_of_all(self, minimum: int, tasks: Sequence[Obj], minima: Sequence[int], sizes: Sequence[int]) -> int:
        """The job's own minimum, for other sizes and minima of its tasks."""
        together, total = sum(task["minAvailable"] for task in tasks), sum(task["replicas"] for task in tasks)
        meant = self._meant(OF_ALL, [total, together, minimum], _read(minimum, together, total))
        least = {TASKS: sum(minima), EVERY: sum(sizes)}.get(str(meant))
        least = min(int(meant), sum(sizes)) if least is None else least
        self._note(OF_ALL, meant, [sum(sizes), sum(minima), least], _read(least, sum(minima), sum(sizes)))
        return least

    def written(self) -> list[Obj]:
        """The annotation as a patch; nothing where it stays as it is."""
        if self._after == self._before:
            return []
        path = f"/metadata/annotations/{MEANING.replace('/', '~1')}"
        text = json.dumps(self._after, separators=(",", ":"))
        if not annotations_of(self._manifest):
            return [{"op": "add", "path": "/metadata/annotations", "value": {MEANING: text}}]
        return [{"op": "add", "path": path, "value": text} if self._after else {"op": "remove", "path": path}]

    def _meant(self, key: str, shape: list[int], otherwise: str | int) -> str | int:
        """By the note, where it is about this shape; else as the numbers read."""
        note = self._before.get(key)
        if isinstance(note, dict) and note.get("at") == shape and isinstance(note.get("means"), str | int):
            meant = note["means"]
            return meant if isinstance(meant, int) or meant in (EVERY, TASKS) else otherwise
        return otherwise

    def _note(self, key: str, meant: str | int, shape: list[int], reads: str | int) -> None:
        if meant != reads:
            self._after[key] = {"at": shape, "means": meant}


def _read(minimum: int, together: int, total: int) -> str | int:
    """The meaning of the job's minimum without a note."""
    if minimum == together:
        return TASKS
    return EVERY if minimum == total else minimum


def _read_notes(manifest: Obj) -> dict[str, Any]:
    try:
        notes = json.loads(annotations_of(manifest).get(MEANING) or "{}")
    except ValueError:  # not written by Shoal: the numbers alone decide
        return {}
    return notes if isinstance(notes, dict) else {}
