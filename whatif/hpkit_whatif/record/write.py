"""Writes tasks as a scenario file: whole, or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from hpkit.errors import InputError
from hpkit_whatif.scenario.model import Rack, TaskSpec, written_duration

__all__ = ["Yaml", "writing"]


@dataclass(frozen=True, slots=True)
class Yaml:
    """A scenario as YAML: description, length in seconds, tasks, and places of nodes."""

    description: str
    until: float
    tasks: Iterable[TaskSpec]
    topology: tuple[Rack, ...] = ()

    def write(self, file: TextIO) -> int:
        """Write it with one line per task, so that it can be edited; return the number of tasks."""
        import yaml

        tasks = [_as_dict(task) for task in self.tasks]
        head = {"description": self.description, "until": written_duration(self.until)}
        yaml.safe_dump(head, file, sort_keys=False, allow_unicode=True)
        yaml.safe_dump(
            {"tasks": tasks}, file, sort_keys=False, allow_unicode=True, default_flow_style=None, width=1_000_000
        )
        if self.topology:
            racks = [rack.model_dump(mode="json", by_alias=True) for rack in self.topology]
            yaml.safe_dump({"topology": racks}, file, sort_keys=False, default_flow_style=None, width=1_000_000)
        return len(tasks)


def _as_dict(task: TaskSpec) -> dict[str, object]:
    fields = {
        "name": task.name,
        "team": task.team,
        "priority": task.priority,
        "instanceType": task.instance_type,
        "count": task.count,
        "accelerators": task.accelerators,
        "vCpu": task.v_cpu,
        "memoryInGiB": task.memory_in_gib,
        "pods": None if task.count is not None else task.pods,
        "placement": task.placement and task.placement.model_dump(exclude_none=True),
        "submit": written_duration(task.submit),
        "run": None if task.run is None else written_duration(task.run),
    }
    return {key: value for key, value in fields.items() if value is not None}


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """Open a file that takes its name when all is written: an error on the way leaves nothing half done.

    InputError where it cannot be written.
    """
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InputError(f"{path} can't be written: {(error.strerror or str(error)).lower()}") from None
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            yield file
        # The permissions of any new file; only the owner can read the temporary file.
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
