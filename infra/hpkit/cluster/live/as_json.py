"""The state of a platform as JSON."""

from collections.abc import Iterable
from typing import Annotated, TypedDict

from hpkit.cluster.live.model import AddonHealth, ClusterEvent, NodePool, SchedulerPolicy
from hpkit.cluster.live.nodes import Node
from hpkit.cluster.live.status import RunningTask, Status, TeamStatus, WaitingTask
from hpkit.plan.model import Plan
from hpkit.text.formatting import json_number

__all__ = ["ClusterStatus", "status_document"]


class _Cluster(TypedDict):
    name: str
    status: str


class _Policy(TypedDict):
    name: str
    status: str
    message: str | None
    fairShare: str | None
    idleResourceSharing: str | None
    priorityClasses: dict[str, int]


class _Group(TypedDict):
    name: str
    instanceTypes: list[str]
    target: int
    current: int
    running: Annotated[int | None, "null: you may not list the instances."]
    others: Annotated[dict[str, int], "Instances in other states."]
    reasons: Annotated[list[str], "Why instances are missing."]


class _Share(TypedDict):
    instanceType: str
    resource: str
    quota: int | float
    used: int | float
    borrowed: int | float
    borrowLimit: Annotated[int | float | None, "null: no limit."]
    lenders: list[str]
    moreLenders: int
    lentAtLeast: int | float
    lentAtMost: int | float


class _Team(TypedDict):
    team: str
    shares: list[_Share]
    running: Annotated[list[RunningTask] | None, "null: you may not read its tasks."]
    waiting: Annotated[list[WaitingTask] | None, "null: you may not read its tasks."]
    problem: str | None


class ClusterStatus(TypedDict):
    """State of a running platform."""

    stack: str
    time: str
    cluster: _Cluster | None
    policy: _Policy | None
    instanceGroups: list[_Group]
    nodePools: list[NodePool]
    nodes: list[Node]
    teams: list[_Team]
    waitingInNoQueue: list[WaitingTask]
    addons: list[AddonHealth]
    events: list[ClusterEvent]
    problems: list[str]
    differences: Annotated[list[str], "What differs from the organization file."]
    unknown: Annotated[list[str], "What couldn't be read."]


def status_document(plan: Plan, status: Status, differs: Iterable[str]) -> ClusterStatus:
    """Return the state as the document of `hpkit cluster status --format json`."""
    observed = status.observed
    platform = observed.platform
    return {
        "stack": plan.stack,
        "time": observed.time.isoformat(),
        "cluster": None if platform is None else {"name": platform.name, "status": platform.status},
        "policy": None if platform is None or platform.policy is None else _policy(platform.policy),
        "instanceGroups": [
            {
                "name": group_status.group.name,
                "instanceTypes": list(group_status.group.instance_types),
                "target": group_status.group.target,
                "current": group_status.group.current,
                "running": group_status.running,
                "others": dict(group_status.others),
                "reasons": list(group_status.reasons),
            }
            for group_status in status.groups
        ],
        "nodePools": list(status.pools),
        "nodes": list(status.nodes),
        "teams": [_team(each) for each in status.teams],
        "waitingInNoQueue": list(status.unserved),
        "addons": [] if platform is None else list(platform.addons),
        "events": [] if platform is None else list(platform.events),
        "problems": list(status.problems),
        "differences": list(differs),
        "unknown": list(observed.unknown),
    }


def _policy(policy: SchedulerPolicy) -> _Policy:
    return {
        "name": policy.name,
        "status": policy.status,
        "message": policy.message or None,
        "fairShare": policy.fair_share or None,
        "idleResourceSharing": policy.idle_sharing or None,
        "priorityClasses": dict(policy.priority_classes),
    }


def _team(team: TeamStatus) -> _Team:
    return {
        "team": team.team,
        "shares": [
            {
                "instanceType": share.flavor,
                "resource": share.resource,
                "quota": json_number(share.quota),
                "used": json_number(share.used),
                "borrowed": json_number(share.borrowed),
                "borrowLimit": None if share.borrowing_limit is None else json_number(share.borrowing_limit),
                "lenders": list(share.lenders),
                "moreLenders": share.more_lenders,
                "lentAtLeast": json_number(share.lent[0]),
                "lentAtMost": json_number(share.lent[1]),
            }
            for share in team.shares
        ],
        "running": list(team.running) if team.seen else None,
        "waiting": list(team.waiting) if team.seen else None,
        "problem": team.problem or None,
    }
