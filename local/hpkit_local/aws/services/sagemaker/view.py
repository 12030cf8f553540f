"""What controllers read of HyperPod clusters, compute quotas and cluster policies."""

from __future__ import annotations

from collections.abc import Iterator

from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.controllers import Snapshot
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.ec2.rules import require_subnet
from hpkit_local.aws.services.sagemaker.governance import POLICY, document
from hpkit_local.aws.services.sagemaker.nodes import is_cut_off, node_details, reach_of
from hpkit_local.aws.services.sagemaker.quota import QUOTA
from hpkit_local.aws.services.sagemaker.records import describe
from hpkit_local.aws.view import part

__all__: list[str] = []


@part
def _add(snapshot: Snapshot, ctx: Context) -> None:
    for name, cluster in ctx.table("clusters").items():
        if cluster["served"]:
            snapshot.clusters[name] = describe(cluster)
            snapshot.nodes[name] = [node_details(cluster, node) for node in cluster["nodes"].values()]
            _add_subnets(snapshot, ctx, cluster)
            snapshot.cut_off.update(_cut_off(ctx, cluster))
            snapshot.joining.update(node["id"] for node in cluster["nodes"].values() if "joined" in node)
    quotas, policies = _in_force(ctx, "quotas"), _in_force(ctx, "policies")
    snapshot.quotas.update({entry["id"]: document(entry, QUOTA, version=number) for entry, number in quotas})
    snapshot.policies.update({entry["id"]: document(entry, POLICY, version=number) for entry, number in policies})


def _in_force(ctx: Context, table: str) -> list[tuple[Record, int]]:
    """Return quotas or policies with the version that is in force."""
    made = [entry for entry in ctx.table(table).values() if entry["status"] not in ("Creating", "CreateFailed")]
    return [(entry, _version(entry)) for entry in made]


def _version(entry: Record) -> int:
    number = int(entry["version"])
    return number - 1 if entry["status"] in ("Updating", "UpdateFailed") and number > 1 else number


def _add_subnets(snapshot: Snapshot, ctx: Context, cluster: Record) -> None:
    configs = [cluster["settings"].get("VpcConfig", {})]
    configs += [group["spec"].get("OverrideVpcConfig", {}) for group in cluster["groups"].values()]
    for subnet_id in {subnet for config in configs for subnet in config.get("Subnets", [])}:
        try:
            subnet = require_subnet(ctx, subnet_id)
        except ServiceError:
            continue
        snapshot.subnets[subnet_id] = {"zone": subnet.zone, "zoneId": subnet.zone_id}


def _cut_off(ctx: Context, cluster: Record) -> Iterator[str]:
    """Yield the instances that lost what they need from their network; instances in older records aren't checked."""
    reaches: dict[tuple[str, ...], Record] = {}
    for node in cluster["nodes"].values():
        if "reach" not in node:
            continue
        place = (node["subnet"], *node["security_groups"])
        if place not in reaches:
            reaches[place] = reach_of(ctx, node["subnet"], node["security_groups"])
        if is_cut_off(node["reach"], reaches[place]):
            yield node["id"]
