"""Admission policies of the teams' namespaces, from data/policies.yaml, and their labels and default requests."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import ConfigDict, TypeAdapter

from hpkit.plan.model import POD_SECURITY_LEVEL, TeamPlan
from hpkit.plan.team_limits import PodLimits
from hpkit.program.components.admission.values import values_of, values_of_files
from hpkit.program.iam.documents import fill

__all__ = [
    "AdmissionPolicy",
    "Rejection",
    "ResourceRule",
    "pod_security_labels",
    "policies_of",
    "policies_of_users",
    "request_limits",
]

# An unknown key in the file is an error.
_CLOSED = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class ResourceRule:
    """Resources of API groups that a policy checks, in all versions."""

    __pydantic_config__ = _CLOSED
    groups: tuple[str, ...]
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Rejection:
    """Reject a request with this message unless `expression` (CEL) is true.

    reason: why, for the page of a team's permissions.
    """

    __pydantic_config__ = _CLOSED
    field: str
    expression: str
    message: str
    reason: str


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """A ValidatingAdmissionPolicy of the teams' namespaces.

    conditions: CEL by name; the policy checks only requests for which all are true. variables: CEL by name, which
    expressions read as `variables.<name>`; each can use those before it.
    """

    __pydantic_config__ = _CLOSED
    name: str
    rules: tuple[ResourceRule, ...]
    operations: tuple[str, ...]
    rejections: tuple[Rejection, ...]
    conditions: Mapping[str, str] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)


_POLICY = TypeAdapter(AdmissionPolicy)


def policies_of(teams: Sequence[TeamPlan], limits: PodLimits | None = None) -> list[AdmissionPolicy]:
    """Return the policies of the namespaces of teams; limits: the environment's, absent: the defaults."""
    return _filled("policies", "texts", values_of(teams, PodLimits() if limits is None else limits))


def policies_of_users(teams: Sequence[TeamPlan]) -> list[AdmissionPolicy]:
    """Return the policies of the namespaces of teams whose claim is on the file system."""
    kinds = (("pods", "", "object.spec"), ("jobs", "batch", "object.spec.template.spec"))
    return [
        policy
        for kind, group, spec in kinds
        for policy in _filled(
            "files", "texts_of_files", {**values_of_files(teams), "kind": kind, "group": group, "spec": spec}
        )
    ]


def _filled(section: str, texts: str, values: dict[str, str]) -> list[AdmissionPolicy]:
    """Return the policies of a section; texts: the section of their parts."""
    for name, text in _data()[texts].items():
        values[name] = fill(text, values)
    policies = []
    for name, template in fill(_data()[section], values).items():
        # A list in the list is another policy's.
        lists = [each if isinstance(each, list) else [each] for each in template["rejections"]]
        rejections = [each for part in lists for each in part]
        policies.append(_POLICY.validate_python({"name": name, **template, "rejections": rejections}))
    return policies


@cache
def _data() -> Any:
    return yaml.load((Path(__file__).parent / "data" / "policies.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader)


def pod_security_labels(version: str) -> dict[str, str]:
    """Return the labels of a team's namespace: `baseline` is enforced and warned about, `restricted` is audited.

    When a Job is created, the warning lists what its pods would be rejected for. A warning for `restricted` would
    appear for every job whose image runs as root, as most training images do, although nothing rejects it.

    Baseline is the strictest level that training passes. EFA, GPUs and huge pages are container resources and need no
    privilege. Source: EKS user guide, "Run machine learning training on Amazon EKS with Elastic Fabric Adapter". Shared
    memory is an emptyDir. The version is the cluster's own, so that an upgrade doesn't silently change what is
    admitted.
    """
    levels = {"enforce": POD_SECURITY_LEVEL, "warn": POD_SECURITY_LEVEL, "audit": "restricted"}
    prefix = "pod-security.kubernetes.io"
    return {f"{prefix}/{mode}": level for mode, level in levels.items()} | {
        f"{prefix}/{mode}-version": f"v{version}" for mode in levels
    }


def request_limits(limits: PodLimits) -> tuple[dict[str, str], dict[str, str]]:
    """Return the default requests of containers, and their minimum.

    Kueue adds the same defaults to what it counts (0.19.2, pkg/workload/resources.go, handlePodLimitRange). Without a
    request, it would count nothing and assign no instance type. Limits without requests are rejected in templates.
    """
    defaults = limits.default_requests
    return {"cpu": defaults.cpu, "memory": defaults.memory}, {"cpu": "1m", "memory": "1Mi"}
