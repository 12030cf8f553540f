"""The state of an endpoint as its controllers read it, from any thread: documents of all that exists."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from hpkit_local.aws.api import OPERATIONS
from hpkit_local.aws.backend import Backend, Context, Record
from hpkit_local.aws.eks.addons import addon_document
from hpkit_local.aws.eks.clusters import cluster_document
from hpkit_local.aws.eks.entries import entry_key, principal_arn
from hpkit_local.aws.eks.reachability import admitted_address, why_unreachable
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.hyperpod.nodes import node_details
from hpkit_local.aws.hyperpod.policy import policy_document
from hpkit_local.aws.hyperpod.quota import quota_document
from hpkit_local.aws.hyperpod.reach import is_cut_off, reach_of
from hpkit_local.aws.hyperpod.records import describe
from hpkit_local.aws.references import require_subnet
from hpkit_local.aws.snapshot import Caller, Snapshot

__all__ = ["BackendView"]

_UNMADE = ("CREATING", "CREATE_FAILED")


@dataclass(frozen=True)
class BackendView:
    """The view of a backend; while `held`, nothing in it changes."""

    _backend: Backend

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the backend's lock, so that what is read within belongs together; callbacks wait meanwhile."""
        with self._backend.locked():
            yield

    @property
    def latency_factor(self) -> float:
        """How long changes take: 1 as on AWS, 0 not at all."""
        return self._backend.settings.latency_factor

    def snapshot(self) -> Snapshot:
        """Return what exists."""
        found = Snapshot({}, {}, {}, {}, [], {}, {}, {}, set())
        with self.held():
            for region in self._backend.regions:
                _add(found, self._backend.context(region))
        return found

    def caller(self, access_key: str, *, cluster: str) -> Caller:
        """Return who an access key is, and what an EKS cluster knows of that principal."""
        with self.held():
            ctx = self._home(cluster)
            sts = ctx.backend.moto.backend("sts", ctx.region, account=ctx.backend.settings.caller_account)
            user_id, arn, account = sts.get_caller_identity(access_key, ctx.region)
            principal = principal_arn(ctx, arn)
            found = ctx.table("access").get(entry_key(cluster, principal))
            return Caller(user_id, arn, account, principal, None if found is None else dict(found["entry"]))

    def why_unreachable(self) -> str:
        """Return why the endpoint's callers do not reach the API server of the EKS cluster; empty if they do."""
        address = self._backend.settings.caller_address
        with self.held():
            for region in self._backend.regions:
                for name, cluster in self._backend.table(region, "eks").items():
                    ctx = self._backend.context(region)
                    why = why_unreachable(ctx, cluster, address or admitted_address(ctx, cluster))
                    return f"EKS cluster {name}: {why}" if why else ""
        return "there is no EKS cluster"

    def _home(self, cluster: str) -> Context:
        """Return the context of the region that an EKS cluster is in."""
        homes = [region for region in self._backend.regions if cluster in self._backend.table(region, "eks")]
        return self._backend.context(homes[0] if homes else self._backend.settings.region)

    def call(self, region: str, service: str, operation: str, **parameters: Any) -> Record:
        """Call an operation, not from a callback; ServiceError if it is refused."""
        with self.held():
            self._backend.settle()
            self._backend.touched("own")
            try:
                return OPERATIONS[service, operation](self._backend.context(region), parameters)
            finally:
                self._backend.save()


def _add(found: Snapshot, ctx: Context) -> None:
    for name, cluster in ctx.table("clusters").items():
        if cluster["served"]:
            found.clusters[name] = describe(cluster)
            found.nodes[name] = [node_details(cluster, node) for node in cluster["nodes"].values()]
            _add_subnets(found, ctx, cluster)
            found.cut_off.update(_cut_off(ctx, cluster))
    there = {key: each for key, each in ctx.table("eks").items() if each["status"] not in ("CREATING", "FAILED")}
    found.eks.update({name: cluster_document(eks) for name, eks in there.items()})
    addons = {key: each for key, each in ctx.table("addons").items() if each["status"] not in _UNMADE}
    found.addons.update({key: addon_document(addon) for key, addon in addons.items()})
    items = ctx.table("access").values()
    found.entries.extend({**item["entry"], "policies": list(item["policies"].values())} for item in items)
    quotas, policies = _in_force(ctx, "quotas"), _in_force(ctx, "policies")
    found.quotas.update({entry["id"]: quota_document(entry, version=number) for entry, number in quotas})
    found.policies.update({entry["id"]: policy_document(entry, version=number) for entry, number in policies})


def _in_force(ctx: Context, table: str) -> list[tuple[Record, int]]:
    """Return quotas or policies with the version that is in force."""
    made = [entry for entry in ctx.table(table).values() if entry["status"] not in ("Creating", "CreateFailed")]
    return [(entry, _version(entry)) for entry in made]


def _version(entry: Record) -> int:
    number = int(entry["version"])
    return number - 1 if entry["status"] in ("Updating", "UpdateFailed") and number > 1 else number


def _add_subnets(found: Snapshot, ctx: Context, cluster: Record) -> None:
    configs = [cluster["settings"].get("VpcConfig", {})]
    configs += [group["spec"].get("OverrideVpcConfig", {}) for group in cluster["groups"].values()]
    for subnet_id in {subnet for config in configs for subnet in config.get("Subnets", [])}:
        try:
            subnet = require_subnet(ctx, subnet_id)
        except ServiceError:
            continue
        found.subnets[subnet_id] = {"zone": subnet.zone, "zoneId": subnet.zone_id}


def _cut_off(ctx: Context, cluster: Record) -> Iterator[str]:
    """Yield the instances that lost what they need of their network; those of older records are not judged."""
    reaches: dict[tuple[str, ...], Record] = {}
    for node in cluster["nodes"].values():
        if "reach" not in node:
            continue
        place = (node["subnet"], *node["security_groups"])
        if place not in reaches:
            reaches[place] = reach_of(ctx, node["subnet"], node["security_groups"])
        if is_cut_off(node["reach"], reaches[place]):
            yield node["id"]
