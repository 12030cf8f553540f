"""The guards: at preview, they block replacements or deletions by accident, regardless of the cause.

Guards that compare live IDs depend on what they guard: an ID that is no longer known belongs to a replaced resource. At
`up`, that is too late for what was replaced earlier; the engine's own protection then rejects the rest, and the plugin
rejects the HyperPod cluster.
"""

from collections.abc import Mapping, Sequence
from typing import Final

import pulumi

from hpkit.plan.model import Plan
from hpkit.plan.protected import (
    allowed_in,
    contents_of,
    deletion_protected,
    kept,
    nested_of,
    network_of,
    parts_allowed,
    parts_of,
    places_of,
    ranges_of,
)
from hpkit.program.sdk import ChangeGuard

__all__ = ["guard_base", "guard_cluster", "guard_groups", "guard_parts", "guard_version", "untagged"]

# What the last guard keeps, by name in `allowReplace`. The first one keeps what the cluster depends on.
_LAST = ("cluster", "grafana", "prometheus")


def guard_groups(plan: Plan, *, opts: pulumi.ResourceOptions) -> ChangeGuard:
    """Guard the VPC, and places of instance groups and ranges of subnets, before a subnet is created."""
    network = {"network": network_of(plan)} if network_of(plan) else {}
    return ChangeGuard(
        "keep-groups",
        subject=plan.stack,
        fixed=network | places_of(plan),
        ranges=ranges_of(plan),
        where=allowed_in(plan),
        opts=opts,
    )


def guard_version(plan: Plan, *, opts: pulumi.ResourceOptions) -> ChangeGuard:
    """Guard the Kubernetes version of an EKS cluster that hpkit creates: only one minor version up at a time."""
    existing = plan.spec.eks.existing
    return ChangeGuard(
        "keep-eks",
        subject=f"the EKS cluster of {plan.stack}",
        version=None if existing else plan.spec.eks.version,
        opts=opts,
    )


def guard_parts(plan: Plan, *, opts: pulumi.ResourceOptions) -> ChangeGuard:
    """Guard teams, NodePools, add-ons and NAT gateways, which are deleted if the file no longer contains them."""
    parts = parts_of(plan)
    return ChangeGuard(
        "keep-parts",
        subject=plan.stack,
        parts={name: called for name, (called, _) in parts.items()},
        contents={name: words for name, (_, words) in parts.items()},
        allow_replace=sorted(parts_allowed(plan)),
        where=allowed_in(plan),
        opts=opts,
    )


def guard_base(plan: Plan, identity: Mapping[str, pulumi.Output[str]], *, opts: pulumi.ResourceOptions) -> ChangeGuard:
    """Guard the HyperPod cluster's dependencies; the cluster waits for it, so that one rejection lists every loss."""
    names = [name for name in plan.spec.allow_replace if name not in _LAST]
    return _guard("keep-base", plan, identity, names, opts=opts)


def guard_cluster(
    plan: Plan,
    identity: Mapping[str, pulumi.Output[str]],
    *,
    after: Sequence[pulumi.Resource],
    opts: pulumi.ResourceOptions,
) -> ChangeGuard:
    """Guard the HyperPod cluster, workspaces and, after everything else, the whole stack.

    If protected, nothing is deleted.

    The engine doesn't protect the cluster, because one whose creation failed couldn't be replaced then.
    """
    waiting = pulumi.ResourceOptions(depends_on=list(after), protect=kept(plan, "cluster"))
    names = [name for name in plan.spec.allow_replace if name in _LAST]
    return _guard("keep", plan, identity, names, opts=pulumi.ResourceOptions.merge(opts, waiting))


def _guard(
    name: str,
    plan: Plan,
    identity: Mapping[str, pulumi.Output[str]],
    allowed: Sequence[str],
    *,
    opts: pulumi.ResourceOptions,
) -> ChangeGuard:
    return ChangeGuard(
        name,
        subject=plan.stack,
        identity=dict(identity),
        contents=contents_of(plan),
        nested=list(nested_of(plan)),
        protected=[name for name in ("eks", "bucket") if deletion_protected(plan, name)] or None,
        allow_replace=sorted(allowed),
        where=allowed_in(plan),
        opts=opts,
    )


# The position of a resource's tags, by the prefix of its type; tagsAll includes the provider's own.
_TAGS: Final = {"aws:": ("tags", "tagsAll"), "hyperpod:": ("tags",)}


def untagged(args: pulumi.ResourceTransformationArgs) -> pulumi.ResourceTransformationResult | None:
    """Remove the tags from a resource's inputs, and make the engine ignore live ones."""
    kept_tags = next((names for prefix, names in _TAGS.items() if args.type_.startswith(prefix)), ())
    if "tags" not in args.props or not kept_tags:
        return None
    opts = pulumi.ResourceOptions.merge(args.opts, pulumi.ResourceOptions(ignore_changes=list(kept_tags)))
    return pulumi.ResourceTransformationResult({**args.props, "tags": None}, opts)
