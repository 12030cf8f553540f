"""ComputeQuota: what a team has reserved on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar

from provider.errors import PluginError, RefusedError
from provider.fields import from_api, to_api
from provider.governed import Document, Governed
from provider.handler import Diff, Live
from provider.rows import Rows, grown, lesser, rows_of, shrunk
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
        """Compare, and announce a quota that is going to shrink; one that is replaced gives all it has."""
        found = super().diff(old, new, state)
        known = not any(walk_unknown(new)) and bool(new.get("clusterArn"))
        if known:
            self.cloud.room.declare(new["clusterArn"], new["name"], new=self._rows(new))
        arn = state.get("computeQuotaArn")
        if arn and (known or found.replaces) and old.get("clusterArn"):
            left = {**old, "computeQuotaConfig": {}} if found.replaces else new
            self.cloud.room.announce(
                old["clusterArn"],
                old["name"],
                old=self._rows(old),
                new=self._rows(left),
                resource=arn,
                give=partial(self._give, arn=arn, inputs=left),
            )
        return found

    def update(self, task: Task, resource_id: str, *, old: Props, new: Props, state: Props) -> Live:
        """Converge; those who wait for it to shrink hear how it ends."""
        with self.cloud.room.updating(new["clusterArn"], new["name"]):
            return super().update(task, resource_id, old=old, new=new, state=state)

    def delete(self, task: Task, resource_id: str) -> None:
        """Delete and wait until it is gone."""
        super().delete(task, resource_id)
        self.cloud.room.vanished(resource_id)

    def foresee(self, task: Task, old: Props, new: Props) -> None:
        """Warn of a quota that will find no room to grow into."""
        if any(walk_unknown(new)) or not new.get("clusterArn"):
            return
        rows, room = self._rows(old), self.cloud.room
        try:
            warning = room.foresee(task, new["clusterArn"], new["name"], old=rows, new=self._rows(new))
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
        old: Rows = {} if live is None else rows_of(live.get("ComputeQuotaConfig", {}))
        with self.cloud.room.reserve(task, inputs["clusterArn"], inputs["name"], old=old, new=self._rows(inputs)):
            yield

    def step(self, inputs: Props, live: Document) -> Props:
        """Give first, take next: two quotas that swap would else wait for each other."""
        new, old = self._rows(inputs), rows_of(live["ComputeQuotaConfig"])
        smaller = self._lessened(inputs, live)
        if grown(old, new) and shrunk(old, self._rows(smaller)):
            return smaller
        return inputs

    def _give(self, task: Task, *, arn: str, inputs: Props) -> None:
        """Shrink ahead of the quota's own step, and change nothing else."""
        live = self.look(task, arn, {})
        if live is not None:
            self._converge(task, arn, self._lessened(inputs, live), fresh=False)

    def _lessened(self, inputs: Props, live: Document) -> Props:
        """Return what is live, with no more rows than `inputs` has."""
        wanted = self._config(inputs).get("ComputeQuotaResources", [])
        config = {**live["ComputeQuotaConfig"]}
        config["ComputeQuotaResources"] = lesser(config.get("ComputeQuotaResources", []), wanted)
        found: Props = from_api(self.spec, {**live, "ComputeQuotaConfig": config})
        return found

    def _config(self, inputs: Props) -> dict[str, Any]:
        found: dict[str, Any] = to_api(self.spec.by_name["computeQuotaConfig"], inputs.get("computeQuotaConfig", {}))
        return found

    def _rows(self, inputs: Props) -> Rows:
        return rows_of(self._config(inputs))
