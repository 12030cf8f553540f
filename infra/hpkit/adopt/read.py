"""Reads a live platform: SageMaker, EKS, EC2 and the Kubernetes API. Changes nothing.

A rejected or failed call doesn't mean that something is missing: it's kept as unknown, with the service's message.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import yaml
from boto3 import Session
from kubernetes.client import ApiException

from hpkit.adopt.live_platform import LiveAccessEntry, LiveAddon, LivePlatform
from hpkit.clients.aws import call_all
from hpkit.clients.calls import ApiCall, FailedCall, Responses
from hpkit.clients.kubernetes import KUBERNETES_ERRORS, dynamic_client
from hpkit.errors import ToolError
from hpkit.plan.names import GROUP_PREFIX

__all__ = ["CLUSTER_ARN", "CLUSTER_NAME", "read"]

CLUSTER_ARN: Final = re.compile(r"arn:aws[a-z-]*:sagemaker:([a-z0-9-]+):\d{12}:cluster/[a-z0-9]{12}\Z")
CLUSTER_NAME: Final = re.compile(r"[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}\Z")
Progress = Callable[[str], None]
# Kinds that hpkit creates, or patches in namespaces that HyperPod creates.
_KINDS: Final = (
    ("v1", "LimitRange"),
    ("v1", "Namespace"),
    ("v1", "ResourceQuota"),
    *(("rbac.authorization.k8s.io/v1", kind) for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicyBinding"),
)


def read(session: Session, name_or_arn: str, *, on_progress: Progress) -> LivePlatform:
    """Return the platform of a HyperPod cluster; on_progress gets what is being read.

    Raises ToolError if the cluster, its EKS cluster or its subnets can't be described, because everything else depends
    on them.
    """
    api = _ApiReader(session)
    cluster = _required(api, ApiCall("sagemaker", "DescribeCluster", {"ClusterName": name_or_arn}))
    orchestrator = cluster.get("Orchestrator", {}).get("Eks")
    if orchestrator is None:
        raise ToolError(f"{cluster['ClusterName']} doesn't use EKS, and hpkit supports only EKS")
    name = str(orchestrator["ClusterArn"]).rpartition("/")[2]
    eks = _required(api, ApiCall("eks", "DescribeCluster", {"name": name}))["cluster"]
    subnets = sorted({subnet for config in _networks(cluster) for subnet in config["Subnets"]})
    described_subnets = _required(api, ApiCall("ec2", "DescribeSubnets", {"SubnetIds": subnets}))["Subnets"]
    on_progress(f"reading quotas, policy, add-ons and access of {cluster['ClusterName']}")
    quotas, policies = _governance(api, str(cluster["ClusterArn"]))
    addons, entries, identities = _eks(api, name)
    in_cluster = _KubernetesReader(autoscales=cluster.get("AutoScaling", {}).get("Mode") == "Enable")
    # Without Karpenter and hpkit's groups, no Kubernetes objects are adopted, and the API isn't needed.
    is_needed = in_cluster.autoscales or any(
        group.startswith(GROUP_PREFIX) for entry in entries for group in entry.groups
    )
    on_progress(f"reading Kubernetes objects of {name}")
    in_cluster.read(session, eks, is_needed=is_needed)
    return LivePlatform(
        cluster=cluster,
        eks=eks,
        zones={subnet["SubnetId"]: subnet["AvailabilityZone"] for subnet in described_subnets},
        quotas=quotas,
        policies=policies,
        addons=addons,
        entries=entries,
        identities=identities,
        node_classes=in_cluster.node_classes,
        node_pools=in_cluster.node_pools,
        objects=in_cluster.objects,
        api_groups=in_cluster.api_groups,
        unknown=(*api.unknown, *in_cluster.unknown),
    )


class _ApiReader:
    """Calls AWS APIs in parallel, and keeps the failures."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.unknown: list[str] = []

    def all(self, calls: Sequence[ApiCall]) -> list[Any]:
        """Return the results in order, None for a call that failed."""
        responses = Responses(call_all(self.session, calls, on_progress=lambda *_: None)) if calls else Responses({})
        return [self._result(responses.of(call)) for call in calls]

    def _result(self, response: Any) -> Any:
        if not isinstance(response, FailedCall):
            return response
        if not response.is_absence:  # deleted while others were read
            self.unknown.append(str(response))
        return None


def _required(api: _ApiReader, call: ApiCall) -> Any:
    response = Responses(call_all(api.session, [call], on_progress=lambda *_: None)).of(call)
    if isinstance(response, FailedCall):
        raise ToolError(str(response))
    return response


def _networks(cluster: Any) -> Iterable[Any]:
    yield cluster["VpcConfig"]
    for group in [*cluster.get("InstanceGroups", ()), *cluster.get("RestrictedInstanceGroups", ())]:
        if group.get("OverrideVpcConfig"):
            yield group["OverrideVpcConfig"]


def _governance(api: _ApiReader, arn: str) -> tuple[list[Any], list[Any]]:
    """Return the descriptions of all quotas and policies, except deleted ones, which are still listed for a while."""
    operations = (
        ("ListComputeQuotas", "ComputeQuotaSummaries", "ComputeQuotaId", "DescribeComputeQuota"),
        (
            "ListClusterSchedulerConfigs",
            "ClusterSchedulerConfigSummaries",
            "ClusterSchedulerConfigId",
            "DescribeClusterSchedulerConfig",
        ),
    )
    lists = api.all([ApiCall("sagemaker", listing, {"ClusterArn": arn}) for listing, *_ in operations])
    descriptions: list[list[Any]] = []
    for (_, key, ident, describe), listed in zip(operations, lists, strict=True):
        alive = [each for each in (listed or {}).get(key, ()) if each["Status"] not in ("Deleting", "Deleted")]
        described = api.all([ApiCall("sagemaker", describe, {ident: each[ident]}) for each in alive])
        descriptions.append([each for each in described if each is not None])
    return descriptions[0], descriptions[1]


def _eks(api: _ApiReader, name: str) -> tuple[dict[str, LiveAddon], list[LiveAccessEntry], list[Any]]:
    cluster_argument = {"clusterName": name}
    listed = api.all(
        [
            ApiCall("eks", "ListAddons", cluster_argument),
            ApiCall("eks", "ListAccessEntries", cluster_argument),
            ApiCall("eks", "ListPodIdentityAssociations", cluster_argument),
        ]
    )
    names, principals, associations = (
        list((response or {}).get(key, ()))
        for response, key in zip(listed, ("addons", "accessEntries", "associations"), strict=True)
    )
    addons = api.all([ApiCall("eks", "DescribeAddon", {**cluster_argument, "addonName": each}) for each in names])
    entries = api.all(
        [ApiCall("eks", "DescribeAccessEntry", {**cluster_argument, "principalArn": each}) for each in principals]
    )
    policies = api.all(
        [
            ApiCall("eks", "ListAssociatedAccessPolicies", {**cluster_argument, "principalArn": principal})
            for principal in principals
        ]
    )
    identities = api.all(
        [
            ApiCall(
                "eks",
                "DescribePodIdentityAssociation",
                {**cluster_argument, "associationId": association["associationId"]},
            )
            for association in associations
        ]
    )
    return (
        {each["addon"]["addonName"]: _addon(each["addon"]) for each in addons if each},
        [
            LiveAccessEntry(entry["accessEntry"], policy["associatedAccessPolicies"])
            for entry, policy in zip(entries, policies, strict=True)
            if entry and policy is not None
        ],
        [each["association"] for each in identities if each],
    )


def _addon(described: Any) -> LiveAddon:
    """Return an add-on with its configuration, which EKS takes as JSON or as YAML."""
    text = described.get("configurationValues") or ""
    try:
        configuration = yaml.safe_load(text) if text.strip() else {}
    except yaml.YAMLError:
        configuration = None
    return LiveAddon(described, configuration if isinstance(configuration, dict) else None)


class _KubernetesReader:
    """Reads objects from the Kubernetes API."""

    def __init__(self, *, autoscales: bool) -> None:
        self.autoscales = autoscales
        self.node_classes: list[Any] = []
        self.node_pools: list[Any] = []
        self.objects: dict[str, Any] = {}
        self.api_groups: frozenset[str] | None = None
        self.unknown: list[str] = []

    def read(self, session: Session, eks: Any, *, is_needed: bool) -> None:
        """Read the API groups and, if they are needed, the objects, or keep why they can't be read."""
        try:
            with dynamic_client(session, eks) as client:
                self.api_groups = frozenset(client.resources.api_groups)
                if is_needed:
                    self._read(client)
        except KUBERNETES_ERRORS as error:
            if not is_needed:
                return
            said = f"{error.status} {error.reason}" if isinstance(error, ApiException) else str(error)
            self.unknown.append(
                f"the Kubernetes API of {eks['name']} doesn't accept this identity ({said}). "
                "Run the command from a network that reaches the API, with a role that has an access entry with a "
                "view policy"
            )

    def _read(self, client: Any) -> None:
        if self.autoscales:
            self.node_classes = _objects(client, "karpenter.sagemaker.amazonaws.com/v1", "HyperpodNodeClass")
            self.node_pools = _objects(client, "karpenter.sh/v1", "NodePool")
        for api_version, kind in _KINDS:
            found = _objects(client, api_version, kind)
            self.objects |= {f"{kind} {_name(each['metadata'])}": each for each in found}


def _name(metadata: Mapping[str, Any]) -> str:
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _objects(client: Any, api_version: str, kind: str) -> list[Any]:
    """Return all objects of a kind, in all namespaces."""
    found: list[Any] = client.resources.get(api_version=api_version, kind=kind).get().to_dict()["items"]
    return found
