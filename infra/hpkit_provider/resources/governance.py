"""Resources of task governance: the quota of a team, and the only policy of a cluster."""

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

from botocore.exceptions import ClientError

from hpkit_provider.aws.client import Document
from hpkit_provider.engine.call import EngineCall
from hpkit_provider.engine.errors import RejectedError
from hpkit_provider.engine.values import Props
from hpkit_provider.resources.handler import ResourceDiff
from hpkit_provider.resources.versioned_handler import VersionedHandler
from hpkit_provider.schema.field_table import from_api, to_api

__all__ = [
    "ClusterSchedulerConfigHandler",
    "ComputeQuotaHandler",
    "Measure",
    "decreased",
    "increased",
    "minimum",
    "reserved_amounts",
]

# A whole instance and a fraction are separate measures, and only amounts of one measure are compared. The number of
# accelerators per instance isn't known here.
_WHOLE: Final = "Count"
_PARTITION: Final = "AcceleratorPartition"
# The service fills these in, pro rata, where an entry sets only another fraction (API reference,
# ComputeQuotaResourceConfig; developer guide, "HyperPod task governance: compute allocation").
_PRO_RATA: Final = frozenset({"VCpu", "MemoryInGiB"})


class Measure(NamedTuple):
    """One thing that is counted: `Count`, `Accelerators`, `VCpu`, … of an instance type."""

    instance_type: str
    name: str


_Amounts = dict[Measure, float]
_ComputeQuotaResource = Mapping[str, Any]  # an entry of ComputeQuotaResources, as the API has it


def reserved_amounts(config: Mapping[str, Any]) -> _Amounts:
    """Return a quota's reservation by measure (configuration in API form)."""
    amounts: _Amounts = {}
    for resource in config.get("ComputeQuotaResources", []):
        for name, value in resource.items():
            measure, number = Measure(resource["InstanceType"], name), value
            if name == _PARTITION:
                measure, number = Measure(resource["InstanceType"], f"{name} {value.get('Type')}"), value.get("Count")
            if isinstance(number, (int, float)):
                amounts[measure] = amounts.get(measure, 0) + number
    return amounts


def _with_pro_rata(amounts: _Amounts, like: _Amounts) -> _Amounts:
    """Complete fractions with the service's values: an unset figure isn't a change."""
    types = {measure.instance_type for measure in amounts if measure.name != _WHOLE}
    filled_in = {
        measure: value
        for measure, value in like.items()
        if measure.name in _PRO_RATA and measure.instance_type in types
    }
    return {**filled_in, **amounts}


def increased(old: _Amounts, new: _Amounts) -> set[Measure]:
    """Return the measures that are more than before."""
    before = _with_pro_rata(old, new)
    return {measure for measure, value in _with_pro_rata(new, old).items() if value > before.get(measure, 0)}


def decreased(old: _Amounts, new: _Amounts) -> set[Measure]:
    """Return the measures that are less than before."""
    return increased(new, old)


def minimum(live: Sequence[_ComputeQuotaResource], new: Sequence[_ComputeQuotaResource]) -> list[_ComputeQuotaResource]:
    """Return the resources halfway from `live` to `new`: decreases are done, and nothing has increased yet.

    A type that changes between whole instances and fractions keeps its live entry, because its decrease depends on the
    instance type.
    """
    new_by_key = {_key(resource): resource for resource in new}
    types = {resource["InstanceType"] for resource in new}
    return [
        _smaller(resource, new_by_key.get(_key(resource), resource))
        for resource in live
        if resource["InstanceType"] in types
    ]


def _key(resource: _ComputeQuotaResource) -> tuple[Any, ...]:
    """Return the common part of two entries with comparable values."""
    partition = resource.get(_PARTITION, {}).get("Type")
    return resource["InstanceType"], _WHOLE in resource, bool(resource.get("Accelerators")), partition


def _smaller(resource: _ComputeQuotaResource, target: _ComputeQuotaResource) -> _ComputeQuotaResource:
    """Use the smaller of each set figure; unset ones follow pro rata."""
    smaller = dict(target)
    for name, value in target.items():
        if name == _PARTITION:
            smaller[name] = {**value, "Count": min(value["Count"], resource[name]["Count"])}
        elif isinstance(value, (int, float)):
            smaller[name] = min(value, resource.get(name, value))
    return smaller


# The error of CreateComputeQuota and UpdateComputeQuota in their API reference, in addition to conflicts.
_NO_CAPACITY: Final = "ResourceLimitExceeded"
_FIRST_DELAY, _MAX_DELAY = 0.2, 10.0
_LIST_MAX_AGE: Final = 0.3  # many quotas wait at the same time: they can share a list of this age


class ComputeQuotaHandler(VersionedHandler):
    """Handler of hyperpod:index:ComputeQuota."""

    name: ClassVar[str] = "ComputeQuota"
    operation: ClassVar[str] = "compute_quota"

    def poll(self, call: EngineCall, arn: str, inputs: Props) -> Document | None:
        """Return it from the list of all quotas of its cluster, which one call reads for all that wait."""
        if not inputs.get("clusterArn"):
            return self.describe(call, arn)
        for entry in self.clients.quotas.get(call, inputs["clusterArn"], age=call.max_age(_LIST_MAX_AGE)):
            if entry["ComputeQuotaArn"] == arn:
                # The list leaves the description out; it is what was sent.
                return {"Description": inputs.get("description", ""), **entry}
        return self.describe(call, arn)

    def find(self, call: EngineCall, inputs: Props) -> Document | None:
        """Return the quota of that name on that cluster; it must be the same team's."""
        for entry in self.clients.quotas.get(call, inputs["clusterArn"]):
            if entry["Name"] != inputs["name"]:
                continue
            team, stated_team = entry["ComputeQuotaTarget"]["TeamName"], inputs["computeQuotaTarget"]["teamName"]
            if team != stated_team:
                raise RejectedError(
                    f"A ComputeQuota {inputs['name']!r} already exists on this cluster, for team {team!r} instead of "
                    f"{stated_team!r}. To fix: choose another name, or delete that quota."
                )
            return entry
        return None

    def next_step(self, inputs: Props, live: Document) -> Props:
        """Decrease first, increase next: the service may accept no increase of two quotas that swap."""
        new, old = self._amounts(inputs), reserved_amounts(live["ComputeQuotaConfig"])
        smaller = self._decreased(inputs, live)
        if increased(old, new) and decreased(old, self._amounts(smaller)):
            return smaller
        return inputs

    def send(self, call: EngineCall, operation: str, arn: str, **params: Any) -> Document:
        """Send a request; one that the service rejects for lack of capacity is sent again, as others may decrease."""
        until = time.monotonic() + self.clients.capacity_wait
        for delay in call.delays(_FIRST_DELAY, _MAX_DELAY):
            try:
                return self.api.raw(call, operation, **params)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") != _NO_CAPACITY:
                    raise
                if time.monotonic() >= until:
                    raise RejectedError(_rejection(error)) from None
            self._empty_leaving(call, arn)
            call.progress("the service rejects the increase, so it is tried again when other quotas have decreased")
            call.pause(delay)
        raise AssertionError  # pragma: no cover - delays never end

    def _empty_leaving(self, call: EngineCall, arn: str) -> None:
        """Empty the quotas of removed teams, because the engine deletes them only after it updates others."""
        if not self.clients.leaving_teams:
            return
        for entry in self.clients.quotas.get(call, arn, age=_LIST_MAX_AGE):
            if entry["ComputeQuotaTarget"]["TeamName"] in self.clients.leaving_teams:
                with self.clients.emptying:
                    live = self.describe(call, entry["ComputeQuotaArn"])
                    if live is not None:
                        empty = self._decreased({}, live)
                        self._converge(call, entry["ComputeQuotaArn"], empty, just_sent=False)

    def _decreased(self, inputs: Props, live: Document) -> Props:
        """Return the live state, limited to the amounts in `inputs`."""
        wanted = self._config(inputs).get("ComputeQuotaResources", [])
        config = live["ComputeQuotaConfig"]
        resources = minimum(config.get("ComputeQuotaResources", []), wanted)
        return from_api(self.spec, {**live, "ComputeQuotaConfig": {**config, "ComputeQuotaResources": resources}})

    def _config(self, inputs: Props) -> dict[str, Any]:
        return to_api(self.spec.by_name["computeQuotaConfig"], inputs.get("computeQuotaConfig", {}))

    def _amounts(self, inputs: Props) -> _Amounts:
        return reserved_amounts(self._config(inputs))


def _rejection(error: ClientError) -> str:
    return (
        f"The service rejects the increase, and no other quota has decreased enough: "
        f"{error.response['Error'].get('Message', _NO_CAPACITY)}. To fix: lower another quota first, or add "
        "instances. If this run lowers or deletes quotas: Pulumi changes only some resources at once, so raise "
        "`--parallel`; it deletes quotas last, so name their teams in `leavingTeams` of the provider, which hpkit does."
    )


class ClusterSchedulerConfigHandler(VersionedHandler):
    """Handler of hyperpod:index:ClusterSchedulerConfig."""

    name: ClassVar[str] = "ClusterSchedulerConfig"
    operation: ClassVar[str] = "cluster_scheduler_config"

    def diff(self, old: Props, new: Props, state: Props) -> ResourceDiff:
        """Compare; another name is rejected, because the service deletes a policy only after all quotas."""
        if old["clusterArn"] == new["clusterArn"] and old["name"] != new["name"]:
            raise RejectedError(
                f"The policy {old['name']} can't get another name: the service would have to delete it, which it does "
                f"only after all quotas. To fix: set `policyName: {old['name']}`."
            )
        return super().diff(old, new, state)

    def poll(self, call: EngineCall, arn: str, inputs: Props) -> Document | None:
        """Return it; a cluster has only one, so a separate call costs nothing."""
        del inputs
        return self.describe(call, arn)

    def find(self, call: EngineCall, inputs: Props) -> Document | None:
        """Return the cluster's policy; one with another name is a conflict."""
        for entry in self.api.pages(
            call,
            "list_cluster_scheduler_configs",
            member="ClusterSchedulerConfigSummaries",
            ClusterArn=inputs["clusterArn"],
        ):
            if entry["Status"] == "Deleted":
                continue
            if entry["Name"] != inputs["name"]:
                raise RejectedError(
                    f"The cluster already has the policy {entry['Name']!r}, and can only have one. To fix: "
                    "`pulumi import hyperpod:index:ClusterSchedulerConfig NAME "
                    f"{entry['ClusterSchedulerConfigArn']}`, or delete it."
                )
            return entry
        return None
