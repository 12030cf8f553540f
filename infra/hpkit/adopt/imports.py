"""The file for `pulumi import --file`, with the types, names, parents and providers that the program registers.

They come from a recording of the program, so that they can't differ; IDs are those of the live platform. Registered
resources that aren't live are listed: the first `up` creates them. Source of the file's format: `pulumi import --help`,
and cmd/pulumi/operations/import.go of pulumi/pulumi v3.200.0.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from hpkit.adopt.live_platform import LivePlatform, association_of
from hpkit.program.recording import RecordedResource, Recording

__all__ = ["IMPORTED", "Imports", "LiveObject", "imports_of", "is_state_only"]

_PROVIDER: Final = "pulumi:providers:"
# Pulumi's plugin names the field manager of each object so, with random digits behind it.
_MANAGER: Final = "pulumi-kubernetes-"
_APPLIED: Final = (
    "kubernetes:admissionregistration.k8s.io/",
    "kubernetes:core/v1:LimitRange",
    "kubernetes:core/v1:NamespacePatch",
    "kubernetes:core/v1:ResourceQuota",
    "kubernetes:rbac.authorization.k8s.io/",
)
# A second one would be a second platform: the key of the file that has to name the existing one.
_ONLY_ONE: Final = {
    "aws:ec2/vpc:Vpc": ("VPC", "network.existing"),
    "aws:eks/cluster:Cluster": ("EKS cluster", "eks.existing"),
    "hyperpod:index:Cluster": ("HyperPod cluster", "cluster.name"),
}


@dataclass(frozen=True, slots=True)
class LiveObject:
    """A live Kubernetes object or patch that hpkit applied: the live values, and the field manager that owns them.

    It is written into the state: `pulumi import` also takes the server's defaults, and the whole object for a patch.
    """

    urn: str
    id: str
    inputs: Mapping[str, Any]
    manager: str


@dataclass(frozen=True, slots=True)
class Imports:
    """What to import.

    document: the import file; objects: what is written into the state in addition; created: `<type> <name>` of what
    isn't live and the first `up` creates; blockers: reasons that prevent an import.
    """

    document: Mapping[str, Any]
    objects: tuple[LiveObject, ...]
    created: tuple[str, ...]
    blockers: tuple[str, ...]

    @property
    def count(self) -> int:
        """The number of resources added to the state."""
        return len(self.entries) + len(self.objects)

    @property
    def entries(self) -> list[Mapping[str, Any]]:
        """What is imported."""
        return list(self.document["resources"])


def is_state_only(resource: RecordedResource) -> bool:
    """Return whether a resource exists only in Pulumi's state: a component or a provider."""
    return not resource.custom or resource.type.startswith(_PROVIDER)


def imports_of(recording: Recording, live: LivePlatform) -> Imports:
    """Return what to import so that the state contains what the program registers."""
    table = {_label(each, recording.project): each.urn for each in recording.resources.values() if is_state_only(each)}
    entries, objects, created, blockers = [], [], [], []
    for resource in recording.resources.values():
        if is_state_only(resource):
            continue
        applied = _applied(resource, live) if resource.type.startswith(_APPLIED) else None
        if applied is not None:
            objects.append(applied)
            continue
        find = IMPORTED.get(resource.type)
        resource_id = find(resource, live) if find else None
        if resource_id is not None:
            entries.append(_entry(resource, resource_id, recording))
        elif resource.type in _ONLY_ONE:
            what, key = _ONLY_ONE[resource.type]
            blockers.append(f"the file would create a second {what}: name the existing one in {key}")
        else:
            created.append(f"{resource.type} {resource.name}")
    if blockers:
        blockers.append(f"or commit this file, and let hpkit write it again: {_adopt_command(recording, live)}")
    return Imports({"nameTable": table, "resources": entries}, tuple(objects), tuple(created), tuple(blockers))


def _adopt_command(recording: Recording, live: LivePlatform) -> str:
    organization, environment = recording.plan.organization, recording.plan.environment
    return (
        f"hpkit aws adopt --cluster {live.arn} --organization {organization} --environment {environment} "
        f"--output stacks/{organization}.yaml --force"
    )


def _label(resource: RecordedResource, project: str) -> str:
    """Return the name of a resource inside the file, where resources of different types may not share one."""
    return resource.urn.partition(f"::{project}::")[2]


def _entry(resource: RecordedResource, resource_id: str, recording: Recording) -> dict[str, Any]:
    entry = {
        "type": resource.type,
        "name": _label(resource, recording.project),
        "logicalName": resource.name,
        "id": resource_id,
    }
    for key, urn in (("parent", resource.parent), ("provider", resource.provider)):
        if urn:
            entry[key] = _label(recording.resources[urn], recording.project)
    return entry


def _cluster(resource: RecordedResource, live: LivePlatform) -> str | None:
    return live.arn if resource.inputs["clusterName"] == live.cluster["ClusterName"] else None


def _quota(resource: RecordedResource, live: LivePlatform) -> str | None:
    name = resource.inputs["name"]
    return next((str(each["ComputeQuotaArn"]) for each in live.quotas if each["Name"] == name), None)


def _policy(resource: RecordedResource, live: LivePlatform) -> str | None:
    name = resource.inputs["name"]
    return next((str(each["ClusterSchedulerConfigArn"]) for each in live.policies if each["Name"] == name), None)


def _autoscaled(resource: RecordedResource, live: LivePlatform) -> str | None:
    name = resource.inputs["instanceGroupName"]
    there = {group["InstanceGroupName"] for group in live.cluster["InstanceGroups"]}
    return f"{live.arn}/{name}" if name in there else None


def _guard(resource: RecordedResource, live: LivePlatform) -> str:
    """Return a guard's inputs as its ID, because it exists only in the state.

    The cluster's ARN is the only ID of a live resource in it; resources that the first `up` creates have none yet.
    Parts are guarded by their names in the file.
    """
    inputs = dict(resource.inputs)
    if "identity" in inputs:
        inputs["identity"] = {"cluster": live.arn} if "cluster" in inputs["identity"] else {}
    return _id_of(inputs)


def _readiness(resource: RecordedResource, live: LivePlatform) -> str | None:
    """Return a wait's inputs as its ID: live resources can be used, so there is nothing to wait for."""
    inputs = dict(resource.inputs)
    given = {"endpoint": live.eks["endpoint"], "certificateAuthority": live.eks["certificateAuthority"]["data"]}
    given |= {"eksClusterName": live.eks_name, "clusterArn": live.arn}
    inputs.update({name: value for name, value in given.items() if name in inputs})
    associations = {
        account: association_of(live, *account.split("/")) for account in inputs.get("podIdentityAssociations", {})
    }
    if "keyArn" in inputs or None in associations.values():
        return None
    if associations:
        found = {account: each["associationId"] for account, each in associations.items() if each is not None}
        inputs["podIdentityAssociations"] = found
    return _id_of(inputs)


def _id_of(inputs: Mapping[str, Any]) -> str:
    """Return inputs as an id. Pulumi's own numbers are all floats."""
    whole = {key: int(each) if isinstance(each, float) and each.is_integer() else each for key, each in inputs.items()}
    return json.dumps(whole, sort_keys=True)


def _addon(resource: RecordedResource, live: LivePlatform) -> str | None:
    name = resource.inputs["addonName"]
    return f"{live.eks_name}:{name}" if name in live.addons else None


def _access_entry(resource: RecordedResource, live: LivePlatform) -> str | None:
    principal = resource.inputs["principalArn"]
    return f"{live.eks_name}:{principal}" if any(each.principal == principal for each in live.entries) else None


def _access_policy(resource: RecordedResource, live: LivePlatform) -> str | None:
    principal, policy = resource.inputs["principalArn"], resource.inputs["policyArn"]
    found = any(each.principal == principal and each.has(policy.rpartition("/")[2]) for each in live.entries)
    return f"{live.eks_name}#{principal}#{policy}" if found else None


def _pod_identity(resource: RecordedResource, live: LivePlatform) -> str | None:
    found = association_of(live, resource.inputs["namespace"], resource.inputs["serviceAccount"])
    return f"{live.eks_name},{found['associationId']}" if found else None


def _of_karpenter(objects: str) -> Callable[[RecordedResource, LivePlatform], str | None]:
    def find(resource: RecordedResource, live: LivePlatform) -> str | None:
        name: str = resource.inputs["metadata"]["name"]
        return name if any(each["metadata"]["name"] == name for each in getattr(live, objects)) else None

    return find


def object_name(inputs: Mapping[str, Any]) -> str:
    """Return namespace and name of an object, as the plugin `kubernetes` writes its ID; a release has no metadata."""
    metadata = inputs.get("metadata") or inputs
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _applied(resource: RecordedResource, live: LivePlatform) -> LiveObject | None:
    """Return an object, or a patch of one, if Pulumi applied it."""
    name = object_name(resource.inputs)
    live_object = live.objects.get(f"{resource.inputs['kind']} {name}", {"metadata": {}})
    for entry in live_object["metadata"].get("managedFields") or ():
        if entry["operation"] == "Apply" and str(entry["manager"]).startswith(_MANAGER):
            return LiveObject(resource.urn, name, _live_values(resource.inputs, live_object), str(entry["manager"]))
    return None


def _live_values(registered: Any, live: Any) -> Any:
    """Return the live values of the fields that a resource registers, without the server's defaults."""
    if isinstance(registered, dict) and isinstance(live, dict):
        return {key: _live_values(value, live[key]) for key, value in registered.items() if key in live}
    if isinstance(registered, list) and isinstance(live, list) and len(registered) == len(live):
        return [_live_values(*pair) for pair in zip(registered, live, strict=True)]
    return live


# Type → function that returns the id of the live resource. Forms of the ids: "Import" in the pages of the Pulumi
# registry.
IMPORTED: Final[Mapping[str, Callable[[RecordedResource, LivePlatform], str | None]]] = {
    "hyperpod:index:Cluster": _cluster,
    "hyperpod:index:ComputeQuota": _quota,
    "hyperpod:index:ClusterSchedulerConfig": _policy,
    "hyperpod:index:AutoscaledGroup": _autoscaled,
    "hyperpod:index:ChangeGuard": _guard,
    "hyperpod:index:Readiness": _readiness,
    "aws:eks/addon:Addon": _addon,
    "aws:eks/accessEntry:AccessEntry": _access_entry,
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": _access_policy,
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": _pod_identity,
    "kubernetes:karpenter.sagemaker.amazonaws.com/v1:HyperpodNodeClass": _of_karpenter("node_classes"),
    "kubernetes:karpenter.sh/v1:NodePool": _of_karpenter("node_pools"),
}
