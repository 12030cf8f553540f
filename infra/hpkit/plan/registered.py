"""Maps registered inputs to settings: from resource and input to the setting in the organization file.

The file might not contain the setting; readers then use the nearest setting above it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hpkit.config.reading.document import Path
from hpkit.plan.model import Plan

__all__ = ["SECTIONS", "Registered", "config_path"]

# Class of the program's component that registers a resource → section of the environment that describes it.
SECTIONS: Final[Mapping[str, Path]] = {
    "Access": ("eks",),
    "Addons": ("addons",),
    "Autoscaling": ("autoscaling",),
    "DataRepositories": ("storage", "lustre", "dataRepositories"),
    "Dependencies": ("cluster", "dependencies"),
    "Eks": ("eks",),
    "Governance": ("governance",),
    "HyperPod": ("cluster",),
    "Identity": ("cluster",),
    "Inference": ("inference",),
    "Network": ("network",),
    "Observability": ("observability",),
    "Registry": ("registry",),
    "Scheduling": ("governance",),
    "Spaces": ("spaces",),
    "Storage": ("storage",),
    "TeamBuckets": ("storage", "teamBuckets"),
    "TeamDisks": ("storage", "localDisk"),
    "TeamVolumes": ("storage", "lustre"),
    "WarmPools": ("autoscaling",),
}
_COMPONENT: Final = "hpkit:index:"
_STEP: Final = re.compile(r"([^.\[\]]+)|\[([^\]]*)\]")


@dataclass(frozen=True, slots=True)
class Registered:
    """A resource as the program registers it: its type, name, URN and inputs."""

    type: str
    name: str
    urn: str
    inputs: Mapping[str, Any]


def config_path(plan: Plan, resource: Registered | None, property_path: str = "") -> Path:
    """Return the path of the setting that an input comes from, or of the section that describes the resource.

    property_path: the input, with list items by name, such as `instanceGroups[gpu].instanceCount`; empty for the whole
    resource. The path begins with the environment, except for tags and the roles of teams, which environments share;
    there, the team's name is in place of its index.
    """
    environment: Path = ("environments", plan.environment)
    if property_path == "tags":
        return ("tags",)
    if property_path == "region":
        return (*environment, "region")
    if resource is None:
        return environment
    if resource.type == "aws:iam/role:Role" and resource.name.startswith("team-"):
        team_name = resource.name.removeprefix("team-")
        overrides = plan.spec.governance.overrides if plan.spec.governance else {}
        is_own = team_name in overrides and overrides[team_name].member_role is not None
        return (*((*environment, "governance", "overrides") if is_own else ("teams",)), team_name, "memberRole")
    own = _OWN.get(resource.type)
    if own is not None:
        return (*environment, *own(plan, resource, property_path))
    component = resource.urn.split("::")[2].partition("$")[0].removeprefix(_COMPONENT)
    return (*environment, *SECTIONS.get(component, ()))


def _cluster(plan: Plan, _resource: Registered, property_path: str) -> Path:
    spec = plan.spec.cluster
    groups = {"instanceGroups": spec.instance_groups, "restrictedInstanceGroups": spec.restricted_instance_groups}
    path: Path = ("cluster",)
    names: Sequence[str] = ()
    for key, label in _STEP.findall(property_path):
        if label and label not in names:
            break
        path = (*path, names.index(label) if label else key)
        names = [group.name for group in groups.get(key, ())]
    return path


def _quota(plan: Plan, resource: Registered, property_path: str) -> Path:
    team_name = resource.name
    if team_name not in (plan.spec.governance.allocations if plan.spec.governance else {}):
        return ("governance", "sharedPool")
    own = [team for team in plan.teams if team.name == team_name]
    types = {label for _, label in _STEP.findall(property_path) if label}
    rows = [row.path for team in own for row in team.quota_resources if row.instance_type in types and row.path]
    return rows[0][2:] if rows else ("governance", "allocations", team_name)


def _node_pool(plan: Plan, resource: Registered, property_path: str) -> Path:
    names = [pool.name for pool in plan.spec.autoscaling.node_pools] if plan.spec.autoscaling else []
    limits: Path = ("limits",) if property_path == "spec.limits" else ()
    return ("autoscaling", "nodePools", *_index(names, _object_name(resource)), *limits)


def _node_class(plan: Plan, resource: Registered, _property_path: str) -> Path:
    names = [node_class.name for node_class in plan.spec.autoscaling.node_classes] if plan.spec.autoscaling else []
    return ("autoscaling", "nodeClasses", *_index(names, _object_name(resource)))


def _eks(_plan: Plan, _resource: Registered, property_path: str) -> Path:
    return ("eks", "endpoint", "publicCidrs") if property_path == "vpcConfig.publicAccessCidrs" else ("eks",)


def _addon(_plan: Plan, resource: Registered, _property_path: str) -> Path:
    return ("addons", str(resource.inputs.get("addonName", resource.name)))


def _administrator(plan: Plan, resource: Registered, _property_path: str) -> Path:
    administrators = plan.spec.eks.administrators
    return ("eks", "administrators", *_index(administrators, str(resource.inputs.get("principalArn"))))


def _guard(plan: Plan, _resource: Registered, property_path: str) -> Path:
    labels = [label for _, label in _STEP.findall(property_path) if label]
    return ("allowReplace", *(index for label in labels for index in _index(plan.spec.allow_replace, label)))


def _object_name(resource: Registered) -> str:
    """Return the name of a Kubernetes object, which its resource in the program needn't have."""
    metadata = resource.inputs.get("metadata")
    return str(metadata.get("name", resource.name)) if isinstance(metadata, Mapping) else resource.name


def _index(names: Sequence[str], name: str) -> Path:
    return (list(names).index(name),) if name in names else ()


_OWN: Final = {
    "hyperpod:index:Cluster": _cluster,
    "hyperpod:index:ComputeQuota": _quota,
    "hyperpod:index:ChangeGuard": _guard,
    "kubernetes:karpenter.sh/v1:NodePool": _node_pool,
    "kubernetes:karpenter.sagemaker.amazonaws.com/v1:HyperpodNodeClass": _node_class,
    "aws:eks/cluster:Cluster": _eks,
    "aws:eks/addon:Addon": _addon,
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": _administrator,
}
