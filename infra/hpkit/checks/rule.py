"""A rule, its input, and its output."""

import datetime
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final, Literal

from hpkit.catalog import InstanceType, find_instance_type, find_nearest, find_region
from hpkit.config.models.autoscaling import NodePool
from hpkit.config.models.cluster import InstanceGroup, InstanceGroupBase
from hpkit.config.models.governance import TeamOverride
from hpkit.config.models.organization import Environment, Organization
from hpkit.config.reading.document import Mark, Path, Problem
from hpkit.plan.capacity import TypeQuota, unit_problem
from hpkit.plan.derive import instances_of, quotas_of
from hpkit.plan.model import NodePoolPlan, Plan
from hpkit.plan.principals import admits, made_role_arn, member_role_of
from hpkit.text.printable import printable

__all__ = [
    "OF_SUMS",
    "Context",
    "Finding",
    "Issue",
    "Member",
    "PlacedIssue",
    "Rule",
    "Severity",
    "Summary",
    "groups_of",
    "summarize",
]

# Rules about the sum of all quota in an environment.
OF_SUMS: Final = ("CAP005", "CAP006")
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding with its position in the file.

    - path: as displayed (`teams[john].sharing.borrowLimit`).
    - line, column: counted from 1.
    - message: the problem of the values.
    - fix: what to do.

    path, message and fix are printable.
    """

    rule: str
    severity: Severity
    path: str
    file: str
    line: int
    column: int
    message: str
    fix: str

    def __post_init__(self) -> None:
        """Escape text from the file in path and messages; `file` remains the name that opens it."""
        for name in ("path", "message", "fix"):
            object.__setattr__(self, name, printable(getattr(self, name)))

    @property
    def order(self) -> tuple[Any, ...]:
        """Return the sort key of findings: by file, errors first, of these format errors first, then by position.

        Findings about sums are last, because they can be consequences of errors in the parts.
        """
        form = self.rule.startswith("CFG")
        return (
            self.file,
            self.severity != "error",
            not form,
            self.rule in OF_SUMS,
            self.line,
            self.column,
            self.rule,
            self.message,
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as the JSON contract writes it."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Summary:
    """The number of findings per severity."""

    errors: int
    warnings: int


def summarize(findings: list[Finding]) -> Summary:
    """Count findings by severity."""
    errors = sum(finding.severity == "error" for finding in findings)
    return Summary(errors, len(findings) - errors)


_ZONE = re.compile(r"[a-z]{2}(?:-[a-z]+)+-[0-9][a-z]\Z")


@dataclass(frozen=True, slots=True)
class Issue:
    """A finding of a rule, before the engine adds its position in the file. severity overrides the rule's own.

    policy: the policy that reports the same about registered resources; a waiver of the rule doesn't waive it. other:
    the position that this one repeats. With other_name, its name in the message, it's a position that this one
    contradicts; it's shown if one of the two is a default or belongs to another environment.
    """

    path: Path
    message: str
    fix: str
    severity: Severity | None = None
    policy: str = ""
    other: Path | None = None
    other_name: str = ""


@dataclass(frozen=True, slots=True)
class PlacedIssue:
    """An issue with its rule, and for problems of the text the place that the reader gave."""

    rule: str
    issue: Issue
    mark: Mark | None = None

    @classmethod
    def of_problem(cls, problem: Problem) -> "PlacedIssue":
        """Return the findings from reading the file."""
        return cls(problem.rule, Issue(problem.path, problem.message, problem.fix, problem.severity), problem.mark)


@dataclass(frozen=True, slots=True)
class Member:
    """A role that is a member of a team in one environment: it's in the file, or the program creates it.

    path is where it's set: in the team, or in the environment's override. admitted is False for a role in another
    account than the environment's, which gets no access there.
    """

    team: str
    role: str
    path: Path
    admitted: bool


class Context:
    """A rule's input: one environment with its plan, the organization around it, and the date.

    today: None if no date is given; rules that depend on dates then find nothing. is_whole: False if the organization
    lacks environments whose format is wrong, so that missing settings prove nothing.
    """

    def __init__(
        self,
        organization: Organization,
        environment: str,
        plan: Plan,
        today: datetime.date | None = None,
        *,
        is_whole: bool = True,
    ) -> None:
        self.organization = organization
        self.environment = environment
        self.spec: Environment = organization.environments[environment]
        self.plan = plan
        self.today = today
        self.is_whole = is_whole
        self.path: Final[Path] = ("environments", environment)

    @cached_property
    def instances(self) -> Mapping[str, InstanceType]:
        """Return the catalog's entry of every known type of a group or a quota resource."""
        return instances_of(self.plan)

    @cached_property
    def quotas(self) -> tuple[TypeQuota, ...]:
        """Return capacity and every team's part, one entry per instance type."""
        return quotas_of(self.plan)

    @cached_property
    def _misnamed(self) -> frozenset[str] | None:
        """Return group types that HyperPod doesn't offer, and the types that they may mean; None if that is unknown."""
        groups = self.spec.cluster.instance_groups
        unknown = {name for group in groups for name in group.types if find_instance_type(name) is None}
        nearest = [find_nearest(name) for name in unknown]
        if not all(nearest) or not all(group.types for group in groups):
            return None
        return frozenset(unknown.union(*nearest))

    def is_capacity_certain(self, instance_type: str) -> bool:
        """Return whether no group's type is missing or misspelled in a way that changes the capacity of this type.

        If one is, CLU003 or CLU006 reports the group, and a finding about capacity would only repeat it. The
        misspelled type may be a type that no group provides. With a waiver of CLU003, the names are intended: types
        newer than the catalog.
        """
        if any(waiver.rule == "CLU003" for waiver in self.spec.waivers):
            return all(group.types for group in self.spec.cluster.instance_groups)
        return (
            self._misnamed is not None
            and instance_type not in self._misnamed
            and (instance_type in self.plan.capacity or not self._misnamed)
            and find_instance_type(instance_type) is not None
        )

    @cached_property
    def limits_have_wrong_units(self) -> bool:
        """Return whether a NodePool's limit has a unit that its resource can't have (KAR021)."""
        return any(
            unit_problem(resource, limit)
            for pool in self.plan.node_pools
            for resource, limit in pool.spec.limits.items()
        )

    @cached_property
    def groups(self) -> tuple[tuple[Path, InstanceGroupBase], ...]:
        """Return path and group, as `groups_of` does."""
        return groups_of(self.spec, self.path)

    @cached_property
    def node_settings(self) -> tuple[tuple[InstanceGroup | NodePool, Path], ...]:
        """Return each instance group and NodePool, whose labels and taints nodes get, with its path."""
        pools = self.spec.autoscaling.node_pools if self.spec.autoscaling else ()
        owners: list[tuple[InstanceGroup | NodePool, Path]] = [
            (group, (*self.path, "cluster", "instanceGroups", index))
            for index, group in enumerate(self.spec.cluster.instance_groups)
        ]
        owners += [(pool, (*self.path, "autoscaling", "nodePools", index)) for index, pool in enumerate(pools)]
        return tuple(owners)

    @cached_property
    def node_pools(self) -> tuple[tuple[NodePoolPlan, Path], ...]:
        """Return each NodePool with its path; none for an existing cluster."""
        path: Path = (*self.path, "autoscaling", "nodePools")
        return tuple((pool, (*path, index)) for index, pool in enumerate(self.plan.node_pools))

    @cached_property
    def group_paths(self) -> Mapping[str, Path]:
        """Return group name → path; the first of two groups of one name."""
        paths: dict[str, Path] = {}
        for path, group in self.groups:
            paths.setdefault(group.name, path)
        return paths

    @cached_property
    def team_paths(self) -> Mapping[str, Path]:
        """Return team name → path; the first of two teams of one name."""
        paths: dict[str, Path] = {}
        for index, team in enumerate(self.organization.teams):
            paths.setdefault(team.name, ("teams", index))
        return paths

    @cached_property
    def texts(self) -> tuple[tuple[Path, str], ...]:
        """Return path and value of every text of the environment, then of every team, as the file spells the keys."""
        spec = self.spec.model_dump(by_alias=True, exclude_defaults=True)
        teams = [team.model_dump(by_alias=True, exclude_defaults=True) for team in self.organization.teams]
        return (*_texts({"environments": {self.environment: spec}}, ()), *_texts({"teams": teams}, ()))

    @cached_property
    def members(self) -> tuple[Member, ...]:
        """Return every member of every team in this environment; an override's members replace the team's."""
        overrides = self.spec.governance.overrides if self.spec.governance else {}
        members: list[Member] = []
        for index, team in enumerate(self.organization.teams):
            path: Path = ("teams", index, "members")
            roles = team.members
            override = overrides.get(team.name, TeamOverride())
            own: Path = (*self.path, "governance", "overrides", team.name)
            if override.members is not None:
                path, roles = (*own, "members"), override.members
            members += [
                Member(team.name, role, (*path, position), admits(self.spec, role))
                for position, role in enumerate(roles)
            ]
            role_arn = made_role_arn(self.organization.organization, self.environment, self.spec, team)
            if member_role_of(team, override) is not None and role_arn is not None:
                path = ("teams", index) if override.member_role is None else own
                members.append(Member(team.name, role_arn, (*path, "memberRole"), admitted=True))
        return tuple(members)

    def setting_path(self, team: str, name: str) -> Path:
        """Return where a team's setting is written: in this environment, or with the team; name: of TeamOverride's."""
        overrides = self.spec.governance.overrides if self.spec.governance else {}
        is_own = team in overrides and getattr(overrides[team], name) is not None
        path = (*self.path, "governance", "overrides", team) if is_own else self.team_paths[team]
        return (*path, TeamOverride.model_fields[name].alias or name)

    def own_settings(self, team: str, name: str) -> str:
        """Return where to replace a team's setting in this environment, if another one uses it as well; else ""."""
        for environment, spec in self.organization.environments.items():
            if environment != self.environment and spec.governance and team in spec.governance.allocations:
                override = spec.governance.overrides.get(team)
                if self.setting_path(team, name)[0] == "teams" and getattr(override, name, None) is None:
                    return f"environments.{self.environment}.governance.overrides.{team}"
        return ""

    @cached_property
    def knows_region(self) -> bool:
        """Return whether HyperPod is available in the region; otherwise, no other finding is useful (CLU024)."""
        return find_region(self.spec.region) is not None

    @cached_property
    def zones_meant(self) -> frozenset[str]:
        """Return the network's zones; zones of another region by their letter (NET004)."""
        zones = [zone.availability_zone for zone in self.plan.network.zones]
        return frozenset(self.zone_of_region(zone) or zone for zone in zones)

    def zone_of_region(self, zone: str) -> str | None:
        """Return the zone of the environment's region with the letter of another region's; None for any other."""
        if not self.knows_region or not _ZONE.match(zone) or zone[:-1] == self.spec.region:
            return None
        return f"{self.spec.region}{zone[-1]}"

    @property
    def policy_path(self) -> Path:
        """Return where the policy of this environment is written."""
        governance = self.spec.governance
        if governance is not None and governance.cluster_policy is not None:
            return (*self.path, "governance", "clusterPolicy")
        return ("clusterPolicy",)


class Rule:
    """A rule of the validator.

    title is one sentence that states what must hold; source is the requirement's source (API, documentation page).
    checks yield an issue for every violation; rules about the file's format (CFG) have none, because reading the file
    finds them.
    """

    def __init__(
        self,
        rule_id: str,
        severity: Severity,
        title: str,
        source: str,
        *checks: Callable[[Context], Iterator[Issue]],
        waivable: bool = True,
    ) -> None:
        self.id, self.severity, self.title, self.source = rule_id, severity, title, source
        self.checks, self.waivable = checks, waivable


def groups_of(spec: Environment, path: Path) -> tuple[tuple[Path, InstanceGroupBase], ...]:
    """Return path and group of an environment at a path, ordinary groups first, restricted ones after them."""
    lists: list[tuple[str, tuple[InstanceGroupBase, ...]]] = [
        ("instanceGroups", spec.cluster.instance_groups),
        ("restrictedInstanceGroups", spec.cluster.restricted_instance_groups),
    ]
    return tuple(((*path, "cluster", key, index), group) for key, groups in lists for index, group in enumerate(groups))


def _texts(value: object, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        yield path, value
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    for step, each in entries:
        yield from _texts(each, (*path, step))
