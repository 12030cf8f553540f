"""Tables and lines that every readable format shows: headline, teams, capacity, cost, findings, as plain text."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

from hpkit.catalog import CLOUDWATCH
from hpkit.catalog.prices import dated_regions, near_note
from hpkit.changes import GUARDED_TYPES, Step, describe, place_text
from hpkit.changes.plan_diff import Change, PlanDiff, TeamChange
from hpkit.changes.review.cost import nat_data_price
from hpkit.changes.review.formatting import arrow, cost, cost_change, cost_sides, maximum, quantity, signed_money
from hpkit.changes.review.losses import TEAM_RESOURCES
from hpkit.changes.review.model import (
    Cost,
    FindingChanges,
    Loss,
    Preview,
    Review,
    Risk,
    ScenarioChange,
    StackReview,
    TeamWaits,
    Verdict,
)
from hpkit.checks import Finding
from hpkit.plan.capacity import Amount
from hpkit.plan.names import short_type
from hpkit.program.teardown import counts_as_resource
from hpkit.text.formatting import figure, listing, percent, plural, span

__all__ = [
    "CAPACITY_HEAD",
    "COST_HEAD",
    "IN_BASE",
    "SUMMARY_HEAD",
    "TEAM_HEAD",
    "WAIT_HEAD",
    "Row",
    "capacity_rows",
    "changed_teams",
    "cost_rows",
    "finding_groups",
    "headline",
    "location",
    "loss_lines",
    "policy_lines",
    "preview_lines",
    "resource_lines",
    "risk_line",
    "rule_and_path",
    "scenario_lines",
    "setting_lines",
    "stack_findings",
    "summary_rows",
    "team_table",
    "unknown_lines",
    "wait_rows",
    "when_lost",
]

T = TypeVar("T")
Row = tuple[str, ...]

_VERDICTS: dict[Verdict, str] = {
    "ok": "OK: nothing is lost, and no new finding",
    "attention": "Attention: review the following before you merge",
    "blocked": "Blocked: this change can't be deployed as it is",
}
CAPACITY_HEAD = ("instance type", "permanent", "at most", "quota", "unallocated")
COST_HEAD = ("cost of", "before", "after", "change")
SUMMARY_HEAD = ("stack", "verdict", "removed", "teams affected", "minimum a month", "maximum a month")
TEAM_HEAD = ("team", "instance type", "quota", "may borrow", "lends", "US$ a month", "weight", "preemption")
# Who can no longer do what, by the kind of loss.
_LOSSES = {
    "priority classes": "its jobs can no longer use the priority class {names}",
    "service accounts": "its pods can no longer run as the service account {names}",
    "buckets": "its pods can no longer use {names}",
    "files": "its files and its claim {names} are deleted with the file system: pods that mount it no longer start",
    "shared files": "its claim {names} is deleted: pods that mount it no longer start (the files stay)",
    "local files": "its claim {names} is deleted: pods that mount it no longer start (the files stay on their nodes)",
    "images kept": "each of its repositories keeps fewer images, {change}: older ones are deleted",
    "untagged images": "its untagged images are deleted after {change} days",
    "topology": "its pods are no longer placed close together in the network, even if its jobs request it",
    "node recovery": "nodes that fail under its jobs are no longer rebooted or replaced automatically",
}
_KINDS: Mapping[str, str] = {
    "training": "training (Jobs, and jobs of Kubeflow, Ray, JobSet and HyperPod's operator)",
    "spaces": "spaces (JupyterLab and Code Editor)",
    "inference": "inference (Deployments, HorizontalPodAutoscalers, ScaledObjects)",
}
# None of these have contents: their inputs repeat the file.
_NOT_SHOWN = ("hyperpod:index:ChangeGuard", "hyperpod:index:Readiness", "pulumi:providers:hyperpod")
# What changes whenever a team is added or removed, by the last part of its type and the changed path.
_LISTS_TEAMS = (
    ("ValidatingAdmissionPolicy", "spec.matchConstraints.namespaceSelector.matchExpressions"),
    ("ClusterRoleBinding", "subjects"),
)
# What the table of teams, their settings and risks, or the lines of the policy show of these types, by the place.
_SAID_ELSEWHERE = re.compile(
    r"ComputeQuota computeQuota(Target\.fairShareWeight|Config\.(preemptTeamTasks|resourceSharingConfig\..*))"
    r"|ClusterSchedulerConfig schedulerConfig\..*"
    # They follow the cluster's version.
    r"|NamespacePatch metadata\.labels\.pod-security\.kubernetes\.io/[a-z]+-version"
)
# The purpose of a ResourceQuota, whose own keys don't tell it.
_POD_LIMIT = "limit for all pods in the team's namespace"
IN_BASE = "Already in the base"
WAIT_HEAD = ("team", "served", "waits p50", "waits p95", "preempted", "never run")


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """Findings under one heading; old ones are grouped by rule.

    rules: the first finding of each group, and the places of the others.
    """

    title: str
    findings: tuple[Finding, ...]
    rules: tuple[tuple[Finding, str], ...]


def headline(review: Review) -> str:
    """Return the verdict in one line."""
    if not review.stacks and not review.files:
        return "OK: no stack is affected"
    changes = [*(file.findings for file in review.files), *(stack.findings for stack in review.stacks)]
    blocking = [risk for stack in review.stacks for risk in stack.risks if risk.verdict == "blocked"]
    # The program checks the file first: errors of the base are then the only cause of a failed preview.
    old = [rule_and_path(each) for findings in changes for each in findings.remaining if each.severity == "error"]
    problems = [" ".join(stack.preview.problems) for stack in review.stacks if stack.preview and stack.preview.ran]
    failing = [text for text in problems if text and not any(each in text for each in old)]
    new = [each for findings in changes for each in findings.new if each.severity == "error"]
    if review.verdict == "blocked" and not (new or blocking or failing):
        return f"Blocked by errors that {review.base} already has: this change adds none"
    return _VERDICTS[review.verdict]


def summary_rows(review: Review) -> list[Row]:
    """Return one row per stack, worst first: verdict, removals, affected teams, cost."""
    return [_summary_row(stack) for stack in review.stacks]


def _summary_row(stack: StackReview) -> Row:
    # A move is rejected, so nothing of it happens.
    moves = stack.change is not None and stack.change.moves
    counts = ((0 if moves else stack.nodes_lost, "node"), (len(stack.change.lost) if stack.change else 0, "resource"))
    goes = ", ".join(plural(number, word) for number, word in counts if number) or "nothing"
    teams = listing(stack.teams_concerned) or "none"
    if stack.status == "unreadable":
        goes = teams = "not known"
    elif stack.status == "removed":
        goes = "its description"
    money = [_cost_both(change) for change in (stack.minimum_cost, stack.maximum_cost)]
    return (stack.stack, f"{stack.verdict} ({stack.status})", goes, teams, *money)


def _cost_both(change: Change[Cost]) -> str:
    if change.after is None and change.before is not None:
        return f"{cost(change.before)} until it is destroyed"
    if change.before is None and change.after is not None:
        return cost(change.after)
    both = arrow(*cost_sides(change))
    difference = cost_change(change)
    return both if difference in ("no change", "unknown", "unbounded") or "–" in both else f"{both} ({difference})"


def risk_line(risk: Risk) -> str:
    """Return a risk on one line, with affected teams and the change of a month's cost."""
    notes = []
    if risk.teams:
        notes.append(f"teams: {listing(list(risk.teams))}")
    if risk.monthly_cost is not None:
        most = "at most " if risk.monthly_cost.of == "maximum" else ""
        about = "about " if risk.monthly_cost.about else ""
        notes.append(f"{most}{about}{signed_money(risk.monthly_cost.change)} a month")
    return f"{risk.message} [{'; '.join(notes)}]" if notes else risk.message


def _both(change: Change[Amount] | Change[int]) -> str:
    return arrow(quantity(change.before), quantity(change.after))


def _text(change: Change[str]) -> str:
    return arrow(change.before or "–", change.after or "–")


def changed_teams(stack: StackReview) -> list[TeamChange]:
    """Return changed teams: first those that lose quota, then edited ones, then the rest."""
    if stack.diff is None:
        return []
    losing = {loss.team: position for position, loss in reversed(list(enumerate(stack.losses)))}
    last = len(stack.losses)
    teams = [team for team in stack.diff.teams if team.changed]
    return sorted(teams, key=lambda team: (not team.edited, losing.get(team.name, last), team.name))


def _team_rows(diff: PlanDiff, team: TeamChange) -> Iterator[Row]:
    """Return one row per instance type; the first one has the team's settings."""
    name = _marked(diff, team.name, team.present)
    settings = _both(team.fair_share_weight), _text(team.preempt_team_tasks)
    for index, share in enumerate(team.shares):
        quota = _both(share.quota)
        if share.elastic.before or share.elastic.after:
            quota += f" (elastic {_both(share.elastic)})"
        near, money = "about " if share.monthly_usd_is_about else "", share.monthly_usd
        dollars = arrow(*("–" if side is None else f"{near}{side:,}" for side in (money.before, money.after)))
        cells = (share.instance_type, quota, _both(share.borrowable), _both(share.lendable), dollars)
        yield (name, *_only_side(team.present, (*cells, *(settings if index == 0 else ("", "")))))
    if not team.shares:
        yield (name, "–", "–", "–", "–", "–", *_only_side(team.present, settings))


def _marked(diff: PlanDiff, name: str, present: Change[bool]) -> str:
    """Return the name of a team or instance type, marked as new or removed where its stack is neither."""
    if not present.before and diff.before is not None:
        return f"{name} (new)"
    return f"{name} (removed)" if not present.after and diff.after is not None else name


def _only_side(present: Change[bool], cells: Row) -> Row:
    """Return plain values for what exists on one side only, without a comparison."""
    if not present.before:
        return tuple(cell.removeprefix("– → ") for cell in cells)
    return cells if present.after else tuple(cell.removesuffix(" → –") for cell in cells)


def setting_lines(teams: Iterable[TeamChange], losses: Sequence[Loss]) -> Iterator[str]:
    """Return the changes of teams that the table doesn't show.

    A new strategy, and what follows for the limit, is among the risks; members who lose access are among the losses.
    """
    for team in teams:
        before, after = team.borrow_limit_percent.before, team.borrow_limit_percent.after
        edits = [f"{key} {_text(each)}" for key, each in team.written.items()]
        if before is not None and after is not None and before != after and not team.strategy.changed:
            edits.append(f"borrowLimit {before}% → {after}%")
        if edits:
            less = any(loss.team == team.name and loss.instance_type for loss in losses)
            stays = not less and not any(share.changed for share in team.shares)
            same = "; it can use and lend as many instances as before" if stays else ""
            yield f"{team.name}: {', '.join(edits)}{same}"
        for member in team.members_added:
            yield f"{team.name}: gains member {member}"


def team_table(stack: StackReview, teams: Iterable[TeamChange]) -> list[Row]:
    """Return the rows of many teams, with the on-demand cost of each one's quota."""
    return [row for team in teams for row in _team_rows(stack.diff, team)] if stack.diff else []


def capacity_rows(stack: StackReview) -> Iterator[Row]:
    """Return one row per instance type: permanent, at most, quota with elastic quota, unallocated."""
    if stack.diff is None:
        return
    for change in stack.diff.capacity:
        most = arrow(maximum(change, after=False), maximum(change, after=True))
        cells = (_both(change.permanent), most, _both(change.quota), _both(change.unallocated))
        yield (_marked(stack.diff, change.instance_type, change.present), *_only_side(change.present, cells))


def cost_rows(stack: StackReview) -> Iterator[Row]:
    """Return the monthly cost of permanent and maximum capacity, and of the rest of the platform, with the change."""
    rows = (("minimum", stack.minimum_cost), ("maximum", stack.maximum_cost), ("platform", stack.platform_cost))
    for name, change in rows:
        yield (name, *cost_sides(change), cost_change(change))


def unknown_lines(stack: StackReview) -> Iterator[str]:
    """Return what the cost omits, and whose prices it uses, once."""
    changes = (stack.minimum_cost, stack.maximum_cost, stack.platform_cost)
    instances, most, platform = (
        [side for side in (change.before, change.after) if side is not None] for change in changes
    )
    sides = [*instances, *most, *platform]
    # Instances first: they cost most.
    unknown = sorted({name for side in (*instances, *most) for name in side.unknown})
    unknown += sorted({name for side in platform for name in side.unknown})
    unbounded = sorted({name for side in sides for name in side.unbounded})
    if unknown:
        # A region that was read from AWS has its own price for EKS.
        is_read = any(side.own for side in platform)
        fix = "" if is_read else "; `hpkit catalog refresh` reads the region's prices from AWS"
        yield f"price not known: {', '.join(unknown)}{fix}"
    if unbounded:
        yield f"no limit: {', '.join(unbounded)}"
    if own := {name for side in sides for name in side.own}:
        yield f"at prices of {dated_regions(own)}"
    after = stack.diff.after if stack.diff is not None else None
    if after is not None and (price := nat_data_price(after)):
        yield f"not included: data through NAT gateways, ${price} per GB"
    if after is not None and any(each.name == CLOUDWATCH for each in after.addons):
        yield "not included: CloudWatch's metrics of nodes and pods, and its logs"
    about = sorted({name for side in sides for name in side.prices_of})
    if about:
        yield near_note(about)


def policy_lines(stack: StackReview) -> Iterator[str]:
    """Return the changes of the cluster policy and its priority classes."""
    if stack.diff is None:
        return
    present = Change(stack.diff.before is not None, stack.diff.after is not None)
    rows = [(key, _text(change)) for key, change in stack.diff.policy.items() if change.changed]
    rows += [
        (f"priority class {name}", f"weight {''.join(_only_side(present, (_both(weight),)))}")
        for name, weight in stack.diff.priority_classes.items()
        if weight.changed
    ]
    for name, value in rows:
        yield f"{name}: {''.join(_only_side(present, (value,)))}"


def stack_findings(stack: StackReview) -> FindingChanges:
    """Return the findings to show with a stack; warnings in an unchanged one aren't about the change."""
    if stack.status != "unchanged":
        return stack.findings
    errors = tuple(finding for finding in stack.findings.remaining if finding.severity == "error")
    return replace(stack.findings, remaining=errors)


def finding_groups(changes: FindingChanges) -> list[FindingGroup]:
    """Return the groups that have findings."""
    groups = (("New", changes.new), ("Fixed", changes.fixed), ("Waived", changes.waived))
    shown = [FindingGroup(title, findings, tuple((each, "") for each in findings)) for title, findings in groups]
    alike: dict[tuple[str, str], list[Finding]] = {}
    for finding in changes.remaining:
        alike.setdefault((finding.severity, finding.rule), []).append(finding)
    rules = tuple(
        (first, listing([f"{location(each)} {each.path}" for each in rest])) for first, *rest in alike.values()
    )
    return [group for group in (*shown, FindingGroup(IN_BASE, changes.remaining, rules)) if group.findings]


def rule_and_path(finding: Finding) -> str:
    """Return rule and path; a finding of a whole file has no path."""
    return f"{finding.rule} {finding.path}".rstrip()


def location(finding: Finding) -> str:
    """Return file and line."""
    return f"{finding.file}:{finding.line}"


def when_lost(stack: StackReview) -> str:
    """Return when teams lose what is listed, if not with the change: a removed stack isn't deleted automatically."""
    return " once it is destroyed" if stack.status == "removed" else ""


def loss_lines(stack: StackReview) -> list[str]:
    """Return one line for each team that loses something, with everything that it loses.

    A borrow limit that falls as what can be borrowed is no second loss.
    """
    lost: dict[str, list[str]] = {}
    borrowable = {replace(loss, what="borrow limit") for loss in stack.losses if loss.what == "borrowable"}
    for loss in stack.losses:
        if loss in borrowable:
            continue
        lost.setdefault(loss.team, []).append(_loss_text(loss))
    return [f"{team}: {'; '.join(texts)}" for team, texts in lost.items()]


def _loss_text(loss: Loss) -> str:
    if loss.what == "queue":
        return "its queue"
    if loss.what == "access":
        return f"access of {plural(len(loss.names), 'member')}, {listing(list(loss.names))}"
    if loss.what == "run time":
        before = "" if loss.before is None else f", not {span(float(loss.before))}"
        label = "label kueue.x-k8s.io/max-exec-time-seconds"
        return f"its new jobs must set a run time of at most {span(float(loss.after))}{before} ({label})"
    if loss.what in _LOSSES:
        change = f"{'all' if loss.before is None else quantity(loss.before)} → {quantity(loss.after)}"
        return _LOSSES[loss.what].format(names=listing(list(loss.names), 20), change=change)
    if loss.what == "workloads":
        return f"can no longer run {' or '.join(_KINDS[name] for name in loss.names)}"
    instance_type = f" of {loss.instance_type}" if loss.instance_type else ""
    what = "may borrow instances" if loss.what == "borrowable" else loss.what.replace("borrowable", "may borrow")
    return f"{what}{instance_type} {quantity(loss.before)} → {quantity(loss.after)}"


def resource_lines(stack: StackReview) -> list[str]:
    """Return the changes, one line per resource."""
    rows = _resource_rows(stack)
    return [
        " ".join(part for part in (action, resource_type, names, f"({why})" if why else "") if part)
        for action, resource_type, names, why in rows
    ]


def _resource_rows(stack: StackReview) -> list[Row]:
    """Return action, type, names and reason of changed resources; losses come first.

    Resources of one type that change for the same reason share a row. So do those of a team that is added or removed;
    the JSON lists each of them. A new stack is one row.
    """
    if stack.change is None:
        return []
    if stack.status == "added":
        made = [step for step in stack.change.steps if counts_as_resource(step.type)]
        return [("create", plural(len(made), "resource"), "", "a new stack")] if made else []
    shown = [step for step in stack.change.steps if step.custom and step.type not in _NOT_SHOWN]
    owners = _owners(stack)
    rows: dict[Row, list[str]] = {}
    for step in sorted(shown, key=lambda step: not (step.lost and step.type in GUARDED_TYPES)):
        action = "forget" if step.retained and step.action == "delete" else step.action
        resource_type, last, why = short_type(step.type), step.type.rpartition(":")[2], _why(step)
        if (last, step.name) in owners:
            rows.setdefault((action, f"team {owners[last, step.name]}", ""), []).append(resource_type)
        elif action == "update" and (last, why) in _LISTS_TEAMS:
            rows.setdefault((action, "list of teams", ""), []).append(last)
        else:
            rows.setdefault((action, resource_type, why), []).append(step.name)
    return [
        (action, resource_type, listing(list(dict.fromkeys(names)), 10), why)
        for (action, resource_type, why), names in rows.items()
    ]


def _owners(stack: StackReview) -> dict[tuple[str, str], str]:
    """Return the team that is added or removed with each resource, by the last part of its type and its name."""
    owners: dict[tuple[str, str], str] = {}
    for team in stack.diff.teams if stack.diff else ():
        if team.present.before != team.present.after:
            owners |= {(resource_type, team.name): team.name for resource_type in TEAM_RESOURCES}
            members = (*team.members_added, *team.members_removed)
            owners |= {("AccessEntry", member.partition(":iam::")[2]): team.name for member in members}
    return owners


def _why(step: Step) -> str:
    last = step.type.rpartition(":")[2]
    deciding = [
        cause
        for cause in step.causes
        if cause.replaces or (step.action != "replace" and not _SAID_ELSEWHERE.fullmatch(f"{last} {cause.place}"))
    ]
    why = [
        describe(cause)
        if not cause.because
        else f"{place_text(cause.place)} ({_names(cause.because)})"
        if cause.place
        else f"with {_names(cause.because)}"
        for cause in deciding
    ]
    text = "; ".join(dict.fromkeys(why))
    return f"{_POD_LIMIT}: {text.replace('spec.hard.requests.', '')}" if last == "ResourceQuota" and text else text


def _names(urns: Sequence[str]) -> str:
    return ", ".join(urn.rpartition("::")[2] for urn in urns)


def preview_lines(preview: Preview) -> Iterator[str]:
    """Return a preview's result: its errors, one line per resource, and how many are unchanged."""
    for problem in preview.problems:
        yield f"{'error' if preview.ran else 'not previewed'}: {problem}"
    for step in preview.steps:
        changed = f" ({', '.join(step.properties)})" if step.properties else ""
        yield f"{step.action} {step.type} {step.name}{changed}"
    if preview.unchanged or not preview.problems:
        yield f"{plural(preview.unchanged, 'resource')} unchanged"


def scenario_lines(scenario: ScenarioChange) -> Iterator[str]:
    """Return the change's effect on the scenario as a whole, what is omitted, or why it's unknown."""
    if scenario.note:
        yield scenario.note
    if not scenario.teams:
        return
    yield f"in use: {_shown(scenario.utilization, percent)}"
    yield f"instance-hours waited for: {_shown(scenario.waited_instance_hours, figure)}"
    yield f"preemptions: {_shown(scenario.preemptions, str)}"


def wait_rows(scenario: ScenarioChange) -> list[Row]:
    """Return a row for each team: its service, waits, and preemptions."""
    return [_wait_row(team) for team in scenario.teams]


def _wait_row(team: TeamWaits) -> Row:
    return (
        team.team,
        _shown(team.service, percent),
        _shown(team.wait_median, span),
        _shown(team.wait_p95, span),
        _shown(team.preempted, str),
        _shown(team.never, str),
    )


def _shown(change: Change[T], write: Callable[[T], str]) -> str:
    before, after = ("–" if side is None else write(side) for side in (change.before, change.after))
    return arrow(before, after)
