"""Selects notable tasks: those that didn't finish, were preempted most, or waited longest."""

from __future__ import annotations

from collections.abc import Sequence

from hpkit_whatif.simulate.report import TaskReport

__all__ = ["Kept", "notable"]


def notable(tasks: Sequence[TaskReport], most: int) -> list[TaskReport]:
    """Return a maximum number of tasks, in the order of their submission.

    One third is for unfinished tasks: those that can never run before those that still wait. One third is for the most
    preempted tasks. The rest, and any unused places, is for the longest waiting ones.
    """
    found = {task.name: task for task in tasks} if len(tasks) <= most else _chosen(tasks, most)
    return sorted(found.values(), key=lambda task: (task.submit, task.name))


def _chosen(tasks: Sequence[TaskReport], most: int) -> dict[str, TaskReport]:
    third = most // 3
    open_ones = sorted(
        [task for task in tasks if task.finished is None],
        key=lambda task: (task.never is None, task.waits_for is None, -task.wait, task.submit, task.name),
    )
    preempted = sorted(
        [task for task in tasks if task.evictions],
        key=lambda task: (-len(task.evictions), -task.lost, task.submit, task.name),
    )
    chosen = {task.name: task for task in [*open_ones[:third], *preempted[:third]]}
    for task in sorted(tasks, key=lambda task: (-task.wait, task.submit, task.name)):
        if len(chosen) >= most:
            break
        chosen[task.name] = task
    return chosen


class Kept:
    """The notable ones of the tasks of a run, however many there are; twice as many are in memory at a time."""

    def __init__(self, most: int) -> None:
        """Keep a maximum number."""
        self._most = most
        self._tasks: list[TaskReport] = []
        self._count = 0

    def add(self, task: TaskReport) -> None:
        """Add a task whose result is final."""
        self._count += 1
        if self._most:
            self._tasks.append(task)
            if len(self._tasks) >= 2 * self._most:
                self._tasks = notable(self._tasks, self._most)

    def tasks(self) -> tuple[TaskReport, ...]:
        """Return them in the order of their submission."""
        return tuple(notable(self._tasks, self._most))

    def omitted(self) -> int:
        """Return how many more there were."""
        return self._count - min(self._count, self._most)
