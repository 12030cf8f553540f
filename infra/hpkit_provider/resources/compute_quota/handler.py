"""ComputeQuota: a team's reservation on a cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, Final

from hpkit_provider.aws.client import Document
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import PluginError, RefusedError
from hpkit_provider.engine.values import Props, has_unknown
from hpkit_provider.resources.compute_quota.amounts import Amounts, decreased, increased, minimum, reserved_amounts
from hpkit_provider.resources.handler import ResourceDiff, ResourceState
from hpkit_provider.resources.versioned_handler import VersionedHandler
from hpkit_provider.schema.field_table import from_api, to_api

__all__ = ["ComputeQuotaHandler"]

_LIST_MAX_AGE: Final = 0.3  # many quotas wait at the same time: they can share a list of this age


class ComputeQuotaHandler(VersionedHandler):
    """Handler of hyperpod:index:ComputeQuota."""

    name: ClassVar[str] = "ComputeQuota"
    operation: ClassVar[str] = "compute_quota"

    def diff(self, old: Props, new: Props, state: Props) -> ResourceDiff:
        """Compare, and announce a quota that is going to decrease; one that is replaced frees all it has."""
        difference = super().diff(old, new, state)
        is_known = not has_unknown(new) and bool(new.get("clusterArn"))
        if is_known:
            self.clients.ledger.declare(new["clusterArn"], new["name"], new=self._amounts(new))
        arn = state.get("computeQuotaArn")
        if arn and (is_known or difference.replaces) and old.get("clusterArn"):
            left = {**old, "computeQuotaConfig": {}} if difference.replaces else new
            self.clients.ledger.announce(
                old["clusterArn"],
                old["name"],
                old=self._amounts(old),
                new=self._amounts(left),
                quota_arn=arn,
                apply=partial(self._decrease, arn=arn, inputs=left),
            )
        return difference

    def update(self, task: EngineCall, resource_id: str, *, old: Props, new: Props, state: Props) -> ResourceState:
        """Converge; quotas that wait for its decrease learn how it ends."""
        with self.clients.ledger.updating(new["clusterArn"], new["name"]):
            return super().update(task, resource_id, old=old, new=new, state=state)

    def delete(self, task: EngineCall, resource_id: str) -> None:
        """Delete and wait until it is gone."""
        super().delete(task, resource_id)
        self.clients.ledger.deleted(resource_id)

    def preview_warnings(self, task: EngineCall, old: Props, new: Props) -> list[str]:
        """Warn of a quota that will find no capacity for its increase."""
        if has_unknown(new) or not new.get("clusterArn"):
            return []
        before, after = self._amounts(old), self._amounts(new)
        try:
            warning = self.clients.ledger.preview_warning(task, new["clusterArn"], new["name"], old=before, new=after)
        except PluginError:
            return []  # a preview works without access to the service; the change itself reports errors
        return [warning] if warning else []

    def poll(self, task: EngineCall, arn: str, inputs: Props) -> Document | None:
        """Return it from the list of all quotas of its cluster, which one call reads for all that wait."""
        if not inputs.get("clusterArn"):
            return self.describe(task, arn)
        quotas = self.clients.ledger.quotas(task, inputs["clusterArn"], age=task.max_age(_LIST_MAX_AGE))
        for entry in quotas.value:
            if entry["ComputeQuotaArn"] == arn:
                # The list leaves the description out; it is what was sent.
                return {"Description": inputs.get("description", ""), **entry}
        return self.describe(task, arn)

    def find(self, task: EngineCall, inputs: Props) -> Document | None:
        """Return the quota of that name on that cluster; it must be the same team's."""
        for entry in self.clients.ledger.quotas(task, inputs["clusterArn"]).value:
            if entry["Name"] != inputs["name"]:
                continue
            team, stated_team = entry["ComputeQuotaTarget"]["TeamName"], inputs["computeQuotaTarget"]["teamName"]
            if team != stated_team:
                raise RefusedError(
                    f"A ComputeQuota {inputs['name']!r} already exists on this cluster, for team {team!r} instead of "
                    f"{stated_team!r}. What to do: choose another name, or delete that quota."
                )
            return entry
        return None

    @contextmanager
    def changing(self, task: EngineCall, inputs: Props, live: Document | None) -> Iterator[None]:
        """Reserve capacity for the quota while it changes."""
        old: Amounts = {} if live is None else reserved_amounts(live.get("ComputeQuotaConfig", {}))
        new = self._amounts(inputs)
        ledger, arn = self.clients.ledger, inputs["clusterArn"]
        with ledger.reserve(task, arn, inputs["name"], old=old, new=new, empty=self._empty):
            yield

    def next_step(self, inputs: Props, live: Document) -> Props:
        """Decrease first, increase next: two quotas that swap would else wait for each other."""
        new, old = self._amounts(inputs), reserved_amounts(live["ComputeQuotaConfig"])
        smaller = self._decreased(inputs, live)
        if increased(old, new) and decreased(old, self._amounts(smaller)):
            return smaller
        return inputs

    def _decrease(self, task: EngineCall, *, arn: str, inputs: Props) -> None:
        """Decrease before the quota's own step, and change nothing else."""
        live = self.poll(task, arn, {})
        if live is not None:
            self._converge(task, arn, self._decreased(inputs, live), just_sent=False)

    def _empty(self, task: EngineCall, arn: str) -> None:
        self._decrease(task, arn=arn, inputs={})

    def _decreased(self, inputs: Props, live: Document) -> Props:
        """Return the live state, limited to the amounts in `inputs`."""
        wanted = self._config(inputs).get("ComputeQuotaResources", [])
        config = live["ComputeQuotaConfig"]
        resources = minimum(config.get("ComputeQuotaResources", []), wanted)
        return from_api(self.spec, {**live, "ComputeQuotaConfig": {**config, "ComputeQuotaResources": resources}})

    def _config(self, inputs: Props) -> dict[str, Any]:
        return to_api(self.spec.by_name["computeQuotaConfig"], inputs.get("computeQuotaConfig", {}))

    def _amounts(self, inputs: Props) -> Amounts:
        return reserved_amounts(self._config(inputs))
