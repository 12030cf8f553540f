"""ComputeQuota: what a team has reserved on a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from provider.errors import PluginError, RefusedError
from provider.fields import to_api
from provider.governed import Document, Governed
from provider.handler import Diff
from provider.room import Rows, rows_of
from provider.task import Task
from provider.values import Props, walk_unknown

__all__ = ["ComputeQuota"]

_AGE = 0.3  # many quotas wait at once: they may share a look that is this old


class ComputeQuota(Governed):
    """Handler of hyperpod:index:ComputeQuota."""

    name: ClassVar[str] = "ComputeQuota"
    title: ClassVar[str] = "ComputeQuota"
    snake: ClassVar[str] = "compute_quota"

    def diff(self, old: Props, new: Props, state: Props) -> Diff:
        """Compare, and announce a quota that is going to shrink."""
        found = super().diff(old, new, state)
        if not any(walk_unknown(new)) and not found.replaces and new.get("clusterArn"):
            self.cloud.room.announce(new["clusterArn"], new["name"], old=_rows(self, old), new=_rows(self, new))
        return found

    def foresee(self, task: Task, old: Props, new: Props) -> None:
        """Warn of a quota that will find no room to grow into."""
        if any(walk_unknown(new)) or not new.get("clusterArn"):
            return
        rows, room = _rows(self, old), self.cloud.room
        try:
            warning = room.foresee(task, new["clusterArn"], new["name"], old=rows, new=_rows(self, new))
        except PluginError:
            return  # a preview needs no access to the service; the change itself says what is wrong
        if warning:
            task.warn(warning)

    def look(self, task: Task, arn: str, inputs: Props) -> Document | None:
        """Return it from the list of all quotas of its cluster, which one call brings to all who wait."""
        if not inputs.get("clusterArn"):
            return self.describe(task, arn)
        seen = self.cloud.room.quotas(task, inputs["clusterArn"], age=task.fresh_enough(_AGE))
        for entry in seen.value:
            if entry["ComputeQuotaArn"] == arn:
                # The list leaves the description out; it is what was sent.
                return {"Description": inputs.get("description", ""), **entry}
        return self.describe(task, arn)

    def find(self, task: Task, inputs: Props) -> Document | None:
        """Return the quota of that name on that cluster; it must be the same team's."""
        for entry in self.cloud.room.quotas(task, inputs["clusterArn"]).value:
            if entry["Name"] != inputs["name"]:
                continue
            team, wanted = entry["ComputeQuotaTarget"]["TeamName"], inputs["computeQuotaTarget"]["teamName"]
            if team != wanted:
                raise RefusedError(
                    f"There is a ComputeQuota {inputs['name']!r} on this cluster for team {team!r}, not {wanted!r}. "
                    "What to do: choose another name, or delete that quota."
                )
            return entry
        return None

    def complete(self, inputs: Props) -> Props:
        """Write the defaults out: API reference of CreateComputeQuota."""
        config = inputs["computeQuotaConfig"]
        sharing = config.get("resourceSharingConfig", {"strategy": "LendAndBorrow"})
        return {
            **inputs,
            "description": inputs.get("description", ""),
            "activationState": inputs.get("activationState", "Enabled"),
            "computeQuotaTarget": {"fairShareWeight": 0, **inputs["computeQuotaTarget"]},
            "computeQuotaConfig": {
                "preemptTeamTasks": "LowerPriority",
                "computeQuotaResources": [],
                **config,
                "resourceSharingConfig": sharing,
            },
        }

    @contextmanager
    def changing(self, task: Task, inputs: Props, live: Document | None) -> Iterator[None]:
        """Hold room for the quota while it changes."""
        old: Rows = Counter() if live is None else rows_of(live.get("ComputeQuotaConfig", {}))
        with self.cloud.room.reserve(task, inputs["clusterArn"], inputs["name"], old=old, new=_rows(self, inputs)):
            yield


def _rows(handler: Governed, inputs: Props) -> Rows:
    config = inputs.get("computeQuotaConfig", {})
    return rows_of(to_api(handler.spec.by_name["computeQuotaConfig"], config))
