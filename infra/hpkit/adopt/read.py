"""Reads a live platform: SageMaker, EKS, EC2 and the Kubernetes API. Changes nothing.

What is refused or not answered is no absence: it is kept as unknown, with the call and the service's own words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import yaml
from boto3 import Session
from kubernetes.client import ApiException

from hpkit.adopt.live import Live, LiveAddon, LiveEntry
from hpkit.errors import ToolError
from hpkit.plan.names import GROUP_PREFIX
from hpkit.preflight.aws_client import call_all
from hpkit.preflight.kubernetes_client import KUBERNETES_ERRORS, dynamic_client
from hpkit.preflight.model import ApiCall, FailedCall, Responses

__all__ = ["CLUSTER_ARN", "CLUSTER_NAME", "read"]

CLUSTER_ARN: Final = re.compile(r"arn:aws[a-z-]*:sagemaker:([a-z0-9-]+):\d{12}:cluster/[a-z0-9]{12}\Z")
CLUSTER_NAME: Final = re.compile(r"[a-zA-Z0-9](?:-*[a-zA-Z0-9]){0,62}\Z")
Say = Callable[[str], None]


def read(session: Session, name_or_arn: str, *, say: Say) -> Live:
    """Return the platform of a HyperPod cluster; say hears what is being read.

    Raises ToolError when the cluster, its EKS cluster or its subnets cannot be described: nothing follows from that.
    """
    asked = _Asked(session)
    cluster = _required(asked, ApiCall("sagemaker", "DescribeCluster", {"ClusterName": name_or_arn}))
    orchestrator = cluster.get("Orchestrator", {}).get("Eks")
    if orchestrator is None:
        raise ToolError(f"{cluster['ClusterName']} is not orchestrated by EKS, which is all that hpkit provisions")
    name = str(orchestrator["ClusterArn"]).rpartition("/")[2]
    eks = _required(asked, ApiCall("eks", "DescribeCluster", {"name": name}))["cluster"]
    subnets = sorted({subnet for config in _networks(cluster) for subnet in config["Subnets"]})
    found = _required(asked, ApiCall("ec2", "DescribeSubnets", {"SubnetIds": subnets}))["Subnets"]
    say(f"reading quotas, policy, add-ons and access of {cluster['ClusterName']}")
    quotas, policies = _governance(asked, str(cluster["ClusterArn"]))
    addons, entries, identities = _eks(asked, name)
    kinds = _Kubernetes(autoscales=cluster.get("AutoScaling", {}).get("Mode") == "Enable")
    # Nothing else that is taken over lies in Kubernetes: whoever has neither needs no way to its API.
    if kinds.autoscales or any(group.startswith(GROUP_PREFIX) for entry in entries for group in entry.groups):
        say(f"reading Kubernetes objects of {name}")
        kinds.read(session, eks)
    return Live(
        cluster=cluster,
        eks=eks,
        zones={subnet["SubnetId"]: subnet["AvailabilityZone"] for subnet in found},
        quotas=quotas,
        policies=policies,
        addons=addons,
        entries=entries,
        identities=identities,
        node_classes=kinds.node_classes,
        node_pools=kinds.node_pools,
        objects=frozenset(kinds.objects),
        unknown=(*asked.unknown, *kinds.unknown),
    )


class _Asked:
    """Calls of AWS APIs, those of one round at the same time; failures are remembered."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.unknown: list[str] = []

    def all(self, calls: Sequence[ApiCall]) -> list[Any]:
        """Return the results in order; None for one that was not answered."""
        responses = Responses(call_all(self._session, calls, on_progress=lambda *_: None)) if calls else Responses({})
        return [self._result(responses.of(call)) for call in calls]

    def one(self, call: ApiCall) -> Any:
        """Return the result; None if it was not answered."""
        return self.all([call])[0]

    def _result(self, answer: Any) -> Any:
        if not isinstance(answer, FailedCall):
            return answer
        if not answer.is_absence:  # it went while others were read: then it is not live
            self.unknown.append(_sentence(answer))
        return None


def _sentence(failure: FailedCall) -> str:
    return f"{failure.action}: {failure.code}: {failure.message}. {failure.fix}"


def _required(asked: _Asked, call: ApiCall) -> Any:
    answer = Responses(call_all(asked._session, [call], on_progress=lambda *_: None)).of(call)  # noqa: SLF001 - one module, two parts
    if isinstance(answer, FailedCall):
        raise ToolError(_sentence(answer))
    return answer


def _networks(cluster: Any) -> Iterable[Any]:
    yield cluster["VpcConfig"]
    for group in [*cluster.get("InstanceGroups", ()), *cluster.get("RestrictedInstanceGroups", ())]:
        if group.get("OverrideVpcConfig"):
            yield group["OverrideVpcConfig"]


def _governance(asked: _Asked, arn: str) -> tuple[list[Any], list[Any]]:
    """Return the descriptions of all live quotas and policies; deleted ones are listed for a while, and left out."""
    kinds = (
        ("ListComputeQuotas", "ComputeQuotaSummaries", "ComputeQuotaId", "DescribeComputeQuota"),
        (
            "ListClusterSchedulerConfigs",
            "ClusterSchedulerConfigSummaries",
            "ClusterSchedulerConfigId",
            "DescribeClusterSchedulerConfig",
        ),
    )
    lists = asked.all([ApiCall("sagemaker", listing, {"ClusterArn": arn}) for listing, *_ in kinds])
    found: list[list[Any]] = []
    for (_, key, ident, describe), listed in zip(kinds, lists, strict=True):
        alive = [each for each in (listed or {}).get(key, ()) if each["Status"] not in ("Deleting", "Deleted")]
        described = asked.all([ApiCall("sagemaker", describe, {ident: each[ident]}) for each in alive])
        found.append([each for each in described if each is not None])
    return found[0], found[1]


def _eks(asked: _Asked, name: str) -> tuple[dict[str, LiveAddon], list[LiveEntry], list[Any]]:
    of = {"clusterName": name}
    listed = asked.all(
        [
            ApiCall("eks", "ListAddons", of),
            ApiCall("eks", "ListAccessEntries", of),
            ApiCall("eks", "ListPodIdentityAssociations", of),
        ]
    )
    names, principals, associations = (
        list((answer or {}).get(key, ()))
        for answer, key in zip(listed, ("addons", "accessEntries", "associations"), strict=True)
    )
    addons = asked.all([ApiCall("eks", "DescribeAddon", {**of, "addonName": each}) for each in names])
    entries = asked.all([ApiCall("eks", "DescribeAccessEntry", {**of, "principalArn": each}) for each in principals])
    policies = asked.all(
        [ApiCall("eks", "ListAssociatedAccessPolicies", {**of, "principalArn": each}) for each in principals]
    )
    identities = asked.all(
        [
            ApiCall("eks", "DescribePodIdentityAssociation", {**of, "associationId": each["associationId"]})
            for each in associations
        ]
    )
    return (
        {each["addon"]["addonName"]: _addon(each["addon"]) for each in addons if each},
        [
            LiveEntry(entry["accessEntry"], policy["associatedAccessPolicies"])
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


class _Kubernetes:
    """What is asked of the Kubernetes API."""

    def __init__(self, *, autoscales: bool) -> None:
        self.autoscales = autoscales
        self.node_classes: list[Any] = []
        self.node_pools: list[Any] = []
        self.objects: list[str] = []
        self.unknown: list[str] = []

    def read(self, session: Session, eks: Any) -> None:
        """Fill in what is there, or why it could not be seen."""
        try:
            with dynamic_client(session, eks) as client:
                self._read(client)
        except KUBERNETES_ERRORS as error:
            said = f"{error.status} {error.reason}" if isinstance(error, ApiException) else str(error)
            self.unknown.append(
                f"the Kubernetes API of {eks['name']} does not answer this identity ({said}). "
                "Run it from where the API is reachable, as a role that has an access entry with a view policy"
            )

    def _read(self, client: Any) -> None:
        if self.autoscales:
            self.node_classes = _objects(client, "karpenter.sagemaker.amazonaws.com/v1", "HyperpodNodeClass")
            self.node_pools = _objects(client, "karpenter.sh/v1", "NodePool")
        for kind in ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"):
            found = _objects(client, "rbac.authorization.k8s.io/v1", kind)
            self.objects += [f"{kind} {_name(each['metadata'])}" for each in found]


def _name(metadata: Mapping[str, Any]) -> str:
    return "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))


def _objects(client: Any, api_version: str, kind: str) -> list[Any]:
    """Return all objects of a kind, in all namespaces."""
    found: list[Any] = client.resources.get(api_version=api_version, kind=kind).get().to_dict()["items"]
    return found
