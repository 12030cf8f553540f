"""The resources that a process uses."""

from __future__ import annotations

from dataclasses import dataclass

import psutil

from hpkit_local.processes.process import Identity

__all__ = ["Usage", "usage_of"]


@dataclass(frozen=True)
class Usage:
    """Memory in bytes, and processor time in seconds since the start.

    On Linux, memory is the PSS: each process gets its part of a shared page. The sum over processes is then what they
    use together. On other systems, memory is the resident size.
    """

    memory: int = 0
    cpu_seconds: float = 0.0

    def __add__(self, other: Usage) -> Usage:
        return Usage(self.memory + other.memory, self.cpu_seconds + other.cpu_seconds)


def usage_of(identity: Identity, *, family: bool = True) -> Usage:
    """Return a process's usage, with its children unless `family` is false; nothing if it has ended."""
    if not identity.alive():
        return Usage()
    try:
        process = psutil.Process(identity.pid)
        members = [process, *(process.children(recursive=True) if family else [])]
    except psutil.Error:
        return Usage()
    return sum((_process_usage(each) for each in members), Usage())


def _process_usage(process: psutil.Process) -> Usage:
    try:
        with process.oneshot():
            return Usage(_memory(process), sum(process.cpu_times()[:2]))
    except psutil.Error:
        return Usage()


def _memory(process: psutil.Process) -> int:
    try:
        whole = process.memory_full_info()
    except psutil.AccessDenied:  # A hardened Linux shows a process's pages to its own kind only.
        return process.memory_info().rss
    return getattr(whole, "pss", whole.rss)
