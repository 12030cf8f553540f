"""The organization that a trial creates: CPU instances, two teams and a third one, and a NodePool that starts empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import yaml

from hpkit.catalog import kubernetes_versions

__all__ = ["BURST", "NAME", "STACK", "TAGGED", "TYPES", "WORK", "Place", "organization_text"]

NAME: Final = "hpkit-trial"
STACK: Final = f"{NAME}-run"
# A filter of EC2 for what a trial created.
TAGGED: Final = ({"Name": "tag:hpkit:organization", "Values": (NAME,)},)
# The smallest types that hold the add-ons and the pods of the dependencies chart.
_SYSTEM, WORK, BURST = "ml.m5.2xlarge", "ml.m5.xlarge", "ml.c5.xlarge"
TYPES: Final = (_SYSTEM, WORK, BURST)
_NODES: Final = 3
_VPC, _ZONE = "10.192.0.0/16", "10.1.0.0/16"


@dataclass(frozen=True, slots=True)
class Place:
    """Where a trial runs, and who runs it.

    principal: ARN of the caller's role or user. address: the caller's public address, as the network sees it.
    """

    region: str
    zone: str
    account: str
    principal: str
    address: str


def organization_text(place: Place, *, third_team: bool = False, shifted: bool = False) -> str:
    """Return the organization file.

    third_team: whether team gamma exists. shifted: whether one instance of alpha's quota is beta's.
    """
    names = ("alpha", "beta", *(("gamma",) if third_team else ()))
    counts = {"alpha": 1, "beta": 2} if shifted else {"alpha": 2, "beta": 1}
    allocations: dict[str, Any] = {team: [{"instanceType": WORK, "count": count}] for team, count in counts.items()}
    if third_team:
        allocations["gamma"] = [{"instanceType": BURST, "count": 1, "elastic": True}]
    requirement = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [BURST]}
    return yaml.safe_dump(
        {
            "organization": NAME,
            "clusterPolicy": {
                "taskPrioritization": "Rank",
                "priorityClasses": [{"name": "training", "weight": 80}],
            },
            "teams": [_team(name, place) for name in names],
            "environments": {
                "run": {
                    "region": place.region,
                    "account": place.account,
                    # `pulumi destroy` deletes it without further steps.
                    "protect": False,
                    "network": {
                        "vpcCidr": _VPC,
                        "zones": [{"availabilityZone": place.zone, "nodeCidr": _ZONE}],
                        "natGateways": "Single",
                    },
                    "eks": {
                        "version": kubernetes_versions()[-1],
                        "endpoint": {"public": True, "publicCidrs": [f"{place.address}/32"]},
                    },
                    "cluster": {
                        "name": NAME,
                        "instanceGroups": [
                            _group("system", _SYSTEM, 1, place),
                            _group("work", WORK, _NODES, place),
                            _group("burst", BURST, 0, place),
                        ],
                    },
                    "autoscaling": {
                        "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
                        "nodePools": [
                            {
                                "name": "burst",
                                "nodeClass": "burst",
                                "requirements": [requirement],
                                "limits": {"cpu": 8},
                                "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "1m"},
                            }
                        ],
                    },
                    "governance": {"allocations": allocations},
                }
            },
        },
        sort_keys=False,
    )


def _team(name: str, place: Place) -> dict[str, Any]:
    return {
        "name": name,
        "fairShareWeight": 50,
        "sharing": {"strategy": "LendAndBorrow", "borrowLimit": 100},
        "memberRole": {"principals": [place.principal]},
    }


def _group(name: str, instance_type: str, count: int, place: Place) -> dict[str, Any]:
    return {
        "name": name,
        "instanceType": instance_type,
        "instanceCount": count,
        "availabilityZone": place.zone,
    }
