"""Reads access entries, their policies, and bindings. Changes nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from boto3 import Session
from kubernetes.client import ApiException

from hpkit.clients.aws import call_all
from hpkit.clients.calls import ApiCall, FailedCall, Responses
from hpkit.clients.kubernetes import KUBERNETES_ERRORS, api_client
from hpkit.cluster.access.model import Access, Binding, Entry, Policy
from hpkit.cluster.live.kubernetes import Kubernetes
from hpkit.cluster.live.read import find
from hpkit.errors import ToolError
from hpkit.plan.access import ADMINISTRATOR_POLICY

__all__ = ["read_access", "read_entries"]

_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
# EKS creates the creator's entry with the cluster. It accepts other entries once the cluster is active, minutes later.
# That is inferred: DescribeCluster doesn't report whether an entry exists.
_WITH_THE_CLUSTER: Final = timedelta(minutes=5)


def read_access(session: Session, *, cluster: str) -> Access:
    """Return entries and bindings of a platform; cluster is the HyperPod cluster's name.

    Raises ToolError where the entries cannot be read; bindings that cannot be are unknown.
    """
    eks = find(session, cluster).eks
    entries = read_entries(session, eks["name"], created=eks.get("createdAt"))
    try:
        with api_client(session, eks) as client:
            return Access(entries, tuple(_bindings(Kubernetes(client))))
    except KUBERNETES_ERRORS as error:
        said = f"{error.status} {error.reason}" if isinstance(error, ApiException) else str(error)
        return Access(entries, (), (f"bindings, because the Kubernetes API doesn't accept this identity ({said})",))


def read_entries(session: Session, eks: str, *, created: datetime | None = None) -> tuple[Entry, ...]:
    """Return the access entries of an EKS cluster with their policies. Raises ToolError.

    created: when the cluster was created.
    """
    listed = ApiCall("eks", "ListAccessEntries", {"clusterName": eks})
    (answer,) = _answers(session, [listed])
    principals = sorted(answer["accessEntries"])
    keys = [{"clusterName": eks, "principalArn": principal} for principal in principals]
    described = _answers(session, [ApiCall("eks", "DescribeAccessEntry", key) for key in keys])
    policies = _answers(session, [ApiCall("eks", "ListAssociatedAccessPolicies", key) for key in keys])
    pairs = zip(described, policies, strict=True)
    return tuple(_entry(one["accessEntry"], two["associatedAccessPolicies"], created) for one, two in pairs)


def _answers(session: Session, calls: list[ApiCall]) -> list[Any]:
    responses = Responses(call_all(session, calls, on_progress=lambda *_: None))
    answers = [responses.of(call) for call in calls]
    failed = next((each for each in answers if isinstance(each, FailedCall)), None)
    if failed is not None:
        raise ToolError(f"{failed.action}: {failed.code}: {failed.message}. {failed.fix}")
    return answers


def _entry(entry: Mapping[str, Any], policies: Iterable[Mapping[str, Any]], created: datetime | None) -> Entry:
    groups = tuple(entry.get("kubernetesGroups") or ())
    associated = tuple(
        Policy(policy["policyArn"].rpartition("/")[2], tuple((policy.get("accessScope") or {}).get("namespaces") or ()))
        for policy in policies
    )
    with_the_cluster = (
        created is not None and "createdAt" in entry and abs(entry["createdAt"] - created) <= _WITH_THE_CLUSTER
    )
    return Entry(
        entry["principalArn"],
        entry.get("username") or "",
        groups,
        entry.get("type") or "STANDARD",
        associated,
        with_the_cluster and not groups and associated == (Policy(ADMINISTRATOR_POLICY),),
    )


def _bindings(api: Kubernetes) -> Iterable[Binding]:
    for plural in ("clusterrolebindings", "rolebindings"):
        for binding in api.pages(f"{_RBAC}/{plural}"):
            subjects = binding.get("subjects") or ()
            yield Binding(
                binding["metadata"]["name"],
                binding["metadata"].get("namespace"),
                binding["roleRef"]["name"],
                tuple(subject["name"] for subject in subjects if subject["kind"] == "User"),
                tuple(subject["name"] for subject in subjects if subject["kind"] == "Group"),
            )
