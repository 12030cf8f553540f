"""The state of a platform as JSON."""

from datetime import datetime
from typing import Any

from pydantic import AliasPath, Field

from hpkit.cluster.live.model import AddonHealth, ClusterEvent, NodePool
from hpkit.cluster.live.nodes import Node
from hpkit.cluster.live.status import TaskStatus
from hpkit.text.document import Document, Exact, TextOrNull

__all__ = ["ClusterStatus"]


def _of(*path: str, default: Any = None) -> Any:
    """Return a field that is read from parts of the state, with a default if a part of the platform wasn't read."""
    return Field(default, validation_alias=AliasPath(*path))


class _Cluster(Document):
    name: str
    status: str


class _Policy(Document):
    name: str
    status: str
    message: TextOrNull
    fair_share: TextOrNull
    idle_resource_sharing: TextOrNull = Field(validation_alias="idle_sharing")
    priority_classes: dict[str, int]


class _Group(Document):
    name: str = Field(validation_alias=AliasPath("group", "name"))
    instance_types: list[str] = Field(validation_alias=AliasPath("group", "instance_types"))
    target: int = Field(validation_alias=AliasPath("group", "target"))
    current: int = Field(validation_alias=AliasPath("group", "current"))
    running: int | None = Field(description="null: you may not list the instances.")
    others: dict[str, int] = Field(description="Instances in other states.")
    reasons: list[str] = Field(description="Why instances are missing.")


class _Share(Document):
    instance_type: str = Field(validation_alias="flavor")
    resource: str
    quota: Exact
    used: Exact
    borrowed: Exact
    borrow_limit: Exact | None = Field(validation_alias="borrowing_limit", description="null: no limit.")
    lenders: list[str]
    more_lenders: int
    lent_at_least: Exact = Field(validation_alias=AliasPath("lent", 0))
    lent_at_most: Exact = Field(validation_alias=AliasPath("lent", 1))


class _Team(Document):
    team: str
    shares: list[_Share]
    seen: bool = Field(description="Whether you may read its tasks; if not, the lists are empty.")
    running: list[TaskStatus]
    waiting: list[TaskStatus]
    problem: TextOrNull


class ClusterStatus(Document):
    """State of a running platform."""

    stack: str = ""
    time: datetime = _of("observed", "time")
    cluster: _Cluster | None = _of("observed", "platform")
    policy: _Policy | None = _of("observed", "platform", "policy")
    instance_groups: list[_Group] = Field(validation_alias="groups")
    node_pools: list[NodePool] = Field(validation_alias="pools")
    nodes: list[Node]
    teams: list[_Team]
    waiting_in_no_queue: list[TaskStatus] = Field(validation_alias="unserved")
    addons: list[AddonHealth] = _of("observed", "platform", "addons", default=[])
    events: list[ClusterEvent] = _of("observed", "platform", "events", default=[])
    problems: list[str]
    differences: list[str] = Field([], description="What differs from the organization file.")
    unknown: list[str] = Field(description="What couldn't be read.", validation_alias=AliasPath("observed", "unknown"))
