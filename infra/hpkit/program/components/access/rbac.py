"""RBAC rules of data scientists, in their namespace and in the cluster, and of viewers; data/rbac.yaml has them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from hpkit.config.models.governance import Workload
from hpkit.kueue.configuration import resources_of

__all__ = ["PolicyRule", "cluster_rules", "team_rules", "verbs", "viewer_rules", "workload_rules"]


@dataclass(frozen=True, slots=True)
class PolicyRule:
    """A rule of Kubernetes RBAC, and its purpose."""

    api_groups: list[str]
    resources: list[str]
    verbs: list[str]
    reason: str


def team_rules(workloads: Sequence[Workload] = ("training",), *, ingress: bool = False) -> list[PolicyRule]:
    """Return the rules of the Role of a team that runs these kinds of work; ingress: whether it may publish by one."""
    of_work = [name for name in ("training", "inference", "spaces") if name in workloads]
    return _rules(*of_work, "team", *(["ingress"] if ingress else []))


def workload_rules(workload: Workload) -> list[PolicyRule]:
    """Return the rules that one entry of `workloads` adds."""
    return _rules(workload)


def cluster_rules(*, spaces: bool = False) -> list[PolicyRule]:
    """Return the rules of every data scientist's ClusterRole; spaces: whether some team has them."""
    return _rules(*(["clusterSpaces"] if spaces else []), "cluster")


def viewer_rules() -> list[PolicyRule]:
    """Return the rules of the ClusterRole of viewers."""
    return _rules("viewer")


def verbs() -> Mapping[str, str]:
    """Return what each verb is required for."""
    found: Mapping[str, str] = _data()["verbs"]
    return found


def _rules(*sections: str) -> list[PolicyRule]:
    return [
        PolicyRule(
            row["apiGroups"],
            sorted([*row.get("resources", ()), *resources_of(*row.get("jobsOf", ()))]),
            row["verbs"],
            row["reason"],
        )
        for section in sections
        for row in _data()[section]
    ]


@cache
def _data() -> Any:
    return yaml.load((Path(__file__).parent / "data" / "rbac.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader)
