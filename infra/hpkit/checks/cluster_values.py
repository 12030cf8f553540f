"""CLU: the cluster's region, how its capacity is bought, and when and how far it is updated."""

import datetime
import re
from collections.abc import Iterator

from hpkit.catalog import aws_regions, find_instance_type, is_offered, regions
from hpkit.checks.cron import DAYS, MONTHS, Field, no_such_day, wrong_field
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.autoscaling import NodePool
from hpkit.config.cluster import BatchSize, InstanceGroup
from hpkit.config.document import Path
from hpkit.text.formatting import listing
from hpkit.text.spelling import near

__all__ = ["RULES"]

_API = "SageMaker API: CreateCluster"
_GUIDE = "SageMaker HyperPod developer guide"
# Tests of communication between nodes; InstanceStress tests each node alone.
_CHECKS_BETWEEN_NODES = ("InstanceConnectivity", "MultiNodeTrainingValidation")
_COREDNS = "Amazon EKS user guide, CoreDNS; Kubernetes documentation, taints and tolerations"
_CRON = "Amazon EventBridge user guide, cron expressions"
_KEEPS_AWAY = ("NoSchedule", "NoExecute")
# Of EKS's CoreDNS add-on.
_TOLERATED = ("CriticalAddonsOnly", "node-role.kubernetes.io/control-plane")
_CRON_FIELDS = 6
_CRON_FORM = re.compile(r"cron\((?P<fields>[^()]*)\)\Z")
_CRON_OPEN = re.compile(r"\Acron\s*\(?|\)\Z", re.IGNORECASE)
_EACH_DAY = re.compile(r"@?daily|(?:every|each) (?:day|night)|nightly|@midnight|rate\(1 day\)", re.IGNORECASE)
_FIELD = re.compile(r"[0-9A-Za-z*/,?#L-]+\Z")
_AWS_FIELDS: tuple[Field, ...] = (
    ("minutes", 0, 59, ()),
    ("hours", 0, 23, ()),
    ("days of the month", 1, 31, ()),
    ("months", 1, 12, MONTHS),
    ("days of the week", 1, 7, DAYS),
    ("years", 1970, 2199, ()),
)
_LEAST_MEMORY, _PERCENT = 20, 100
# Letters of a key's name, and of the domain before its slash.
_MOST_NAME, _MOST_PREFIX = 63, 253


def _region(context: Context) -> Iterator[Issue]:
    region, path = context.spec.region, (*context.path, "region")
    governed = context.spec.governance is not None
    offered = [each.name for each in regions() if each.task_governance or not governed]
    if region not in aws_regions():
        zones = sorted({zone.availability_zone for zone in context.plan.network.zones})
        of_zones = {zone[:-1] for zone in zones} & set(offered)
        likely = of_zones.pop() if len(of_zones) == 1 else near(region, offered)
        fix = f"Did you mean `{likely}`?" if likely else f"Use one of {listing(offered, len(offered))}."
        if likely and (others := [zone for zone in zones if zone[:-1] != likely]):
            fix = f"Did you mean `{likely}`? Also replace its zones, such as {others[0]} with {likely}{others[0][-1]}."
        yield Issue(path, f"AWS has no region `{region}`", fix)
    elif not context.knows_region:
        yield Issue(
            path,
            f"as far as known, HyperPod on EKS isn't available in {region}",
            f"Use one of {listing(offered, len(offered))}.",
        )


def _home_of_system_pods(context: Context) -> Iterator[Issue]:
    static = [group.spec for group in context.plan.groups if not group.autoscaled and group.spec.instance_count]
    closed = {
        group.name: [taint.key for taint in group.taints if taint.effect in _KEEPS_AWAY and taint.key not in _TOLERATED]
        for group in static
    }
    if static and all(closed.values()):
        shown = listing([f"{name}: {listing(keys)}" for name, keys in closed.items()])
        yield Issue(
            (*context.path, "cluster", "instanceGroups"),
            f"every group with nodes has a taint ({shown}) that CoreDNS and the add-ons don't tolerate, so they "
            "can't run",
            "Remove the taints of one group, or add a small group without taints.",
        )


def _groups(context: Context) -> Iterator[tuple[int, Path]]:
    for index in range(len(context.spec.cluster.instance_groups)):
        yield index, (*context.path, "cluster", "instanceGroups", index)


def _purchase(context: Context) -> Iterator[Issue]:
    for index, path in _groups(context):
        group = context.spec.cluster.instance_groups[index]
        if group.training_plan_arn is not None and group.capacity_type == "Spot":
            yield Issue(
                (*path, "capacityType"),
                f"{group.name} is Spot, but uses a training plan, which is reserved and prepaid capacity",
                "Set `capacityType: OnDemand`, or remove trainingPlanArn.",
            )


def _type_is_in_region(context: Context) -> Iterator[Issue]:
    region = context.spec.region
    for path, group in context.groups:
        for index, name in enumerate(group.types):
            if is_offered(name, region):
                continue
            flexible = isinstance(group, InstanceGroup) and not group.instance_type
            short = name.removeprefix("ml.")
            yield Issue(
                (*path, "instanceTypes", index) if flexible else (*path, "instanceType"),
                f"{group.name} has the type {name}; according to the catalog, EC2 doesn't offer it in {region}",
                "Choose another type or region. To check with EC2: `aws ec2 describe-instance-type-offerings "
                f"--region {region} --filters Name=instance-type,Values={short}`.",
            )


def _deep_checks(context: Context) -> Iterator[Issue]:
    for path, group in context.groups:
        types = [instance for name in group.types if (instance := find_instance_type(name)) is not None]
        plain = [instance.name for instance in types if instance.accelerators == 0]
        without_efa = [instance.name for instance in types if instance.accelerators and instance.efa_interfaces == 0]
        between_nodes: list[str] = [check for check in group.deep_health_checks if check in _CHECKS_BETWEEN_NODES]
        if group.deep_health_checks and plain:
            yield Issue(
                (*path, "deepHealthChecks"),
                f"{group.name} has deep health checks, which test GPUs, Trainium, and EFA; {listing(plain)} has "
                "neither GPUs nor Trainium",
                "Remove deepHealthChecks.",
            )
        elif between_nodes and without_efa:
            others = [check for check in group.deep_health_checks if check not in between_nodes]
            yield Issue(
                (*path, "deepHealthChecks"),
                f"{group.name} has {listing(between_nodes)}, and tests between nodes require EFA; "
                f"{listing(without_efa)} has none",
                f"Use `[{', '.join(others)}]`." if others else "Remove deepHealthChecks.",
            )


def _percentages(context: Context) -> Iterator[Issue]:
    cluster = context.spec.cluster
    tiered = cluster.tiered_storage
    percent = tiered.instance_memory_allocation_percentage if tiered else None
    if percent is not None and percent < _LEAST_MEMORY:
        yield Issue(
            (*context.path, "cluster", "tieredStorage", "instanceMemoryAllocationPercentage"),
            f"checkpoints use {percent} % of the nodes' memory; the service accepts {_LEAST_MEMORY}–{_PERCENT}",
            f"Use `{_LEAST_MEMORY}` or more.",
        )
    for size, path in _batch_sizes(context):
        if size.type == "CAPACITY_PERCENTAGE" and size.value > _PERCENT:
            yield Issue(
                (*path, "value"),
                f"the update replaces {size.value} % of a group at a time; the maximum is {_PERCENT}",
                f"Use `{_PERCENT}` or less.",
            )


def _batch_sizes(context: Context) -> Iterator[tuple[BatchSize, Path]]:
    for index, path in _groups(context):
        group = context.spec.cluster.instance_groups[index]
        for key, update in (("autoPatch", group.auto_patch), ("scheduledUpdate", group.scheduled_update)):
            rolling = update.deployment_config if update else None
            if rolling is None:
                continue
            yield rolling.maximum_batch_size, (*path, key, "deploymentConfig", "maximumBatchSize")
            if rolling.rollback_maximum_batch_size is not None:
                place = (*path, key, "deploymentConfig", "rollbackMaximumBatchSize")
                yield rolling.rollback_maximum_batch_size, place


def _schedules(context: Context) -> Iterator[Issue]:
    for index, path in _groups(context):
        update = context.spec.cluster.instance_groups[index].scheduled_update
        if update is None:
            continue
        form = _CRON_FORM.match(update.schedule_expression)
        fields = (form["fields"] if form else _CRON_OPEN.sub("", update.schedule_expression)).split()
        if form and len(fields) == _CRON_FIELDS and all(map(_FIELD.match, fields)):
            never = _never(fields, context.today)
            if never is not None:
                yield Issue((*path, "scheduledUpdate", "scheduleExpression"), *never)
            continue
        yield Issue(
            (*path, "scheduledUpdate", "scheduleExpression"),
            f"`{update.schedule_expression}` isn't a valid AWS cron expression: it needs `cron(` and six fields "
            "(minutes, hours, day of month, month, day of week, year)",
            "Use `cron(0 2 * * ? *)`."
            if _EACH_DAY.fullmatch(update.schedule_expression)
            else f"Use `{_as_cron(fields)}`.",
        )


def _never(fields: list[str], today: datetime.date | None) -> tuple[str, str] | None:
    """Return what is wrong with six fields in AWS's form, and what to do; None where they name some time."""
    text = f"cron({' '.join(fields)})"
    # Of L, W and #, which count days from the end and by weeks, nothing is said.
    plain = [
        "?" if each in ("L", "LW") or (re.search(r"[LW#]", each) and not each.isalpha()) else each for each in fields
    ]
    # A week may go on behind its end: SAT-SUN.
    plain[4] = plain[4].replace("-", ",")
    wrong = wrong_field(plain, _AWS_FIELDS)
    if wrong is not None:
        value, (what, least, most, names) = wrong
        named = f", or {names[0].upper()}–{names[-1].upper()}" if names else ""
        return (
            f"`{text}` has `{value}` for {what}; valid values are {least}–{most}{named}",
            "Use a value in this range.",
        )
    day, month, weekday, year = fields[2:]
    if (day == "?") == (weekday == "?"):
        said = "neither" if day == "?" else "both"
        fix = f"Use `{_as_cron(fields)}`." if "*" in (day, weekday) else "Replace the one that you don't need with `?`."
        return f"`{text}` sets {said} day of month and day of week; AWS requires `?` for exactly one of them", fix
    if no_such_day(day, month):
        return f"`{text}` runs on day {day} of month {month}, a date that doesn't exist", "Use a valid date."
    if today is not None and year.isdecimal() and int(year) < today.year:
        return f"`{text}` runs in {year}, which is in the past", "Set the year to `*`, or to a later year."
    return None


def _as_cron(fields: list[str]) -> str:
    """Return five fields as Unix has them, or six, in AWS's form; an example for anything else."""
    if not all(map(_FIELD.match, fields)) or len(fields) not in (_CRON_FIELDS - 1, _CRON_FIELDS):
        return "cron(0 2 ? * SUN *)"
    minute, hour, day, month, weekday, *year = fields
    if weekday == "*":
        weekday = "?"
    elif day == "*":
        day = "?"
        weekday = _weekdays(weekday)
    return f"cron({' '.join((minute, hour, day, month, weekday, *(year or ['*'])))})"


def _weekdays(text: str) -> str:
    """Return days of the week by name: AWS counts them from 1, Unix from 0."""
    names = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT", "SUN")
    return re.sub(r"[0-7]", lambda found: names[int(found[0])], text).upper()


def _taints_differ(context: Context) -> Iterator[Issue]:
    for index, path in _groups(context):
        group = context.spec.cluster.instance_groups[index]
        taints = [(taint.key, taint.effect) for taint in group.taints]
        for position, (key, effect) in enumerate(taints):
            if (key, effect) in taints[:position]:
                yield Issue(
                    (*path, "taints", position),
                    f"{group.name} has the taint {key} with {effect} twice; a Kubernetes node can have it only once",
                    "Remove one, or change its effect.",
                )


def _lengths_of_keys(context: Context) -> Iterator[Issue]:
    for what, key, path in _keys_on_nodes(context):
        prefix, _, name = key.rpartition("/")
        part, most = (name, _MOST_NAME) if len(name) > _MOST_NAME else (prefix, _MOST_PREFIX)
        if len(part) > most:
            where = "after" if part == name and prefix else "before" if prefix else "in"
            yield Issue(
                path,
                f"a key of {what} has {len(part)} characters {where} the {'slash' if prefix else 'name'}; the limit "
                f"in Kubernetes is {most}",
                f"Shorten it to {most} characters.",
            )


def _keys_on_nodes(context: Context) -> Iterator[tuple[str, str, Path]]:
    """Yield whose it is, key and path of each label and taint that nodes get by their group or their NodePool."""
    places: list[tuple[InstanceGroup | NodePool, Path]] = [
        (context.spec.cluster.instance_groups[index], path) for index, path in _groups(context)
    ]
    pools = context.spec.autoscaling.node_pools if context.spec.autoscaling else ()
    pool_path: Path = (*context.path, "autoscaling", "nodePools")
    places += [(pool, (*pool_path, index)) for index, pool in enumerate(pools)]
    for owner, path in places:
        for key in owner.labels:
            yield owner.name, key, (*path, "labels", key)
        for index, taint in enumerate(owner.taints):
            yield owner.name, taint.key, (*path, "taints", index, "key")


def _one_zone(context: Context) -> Iterator[Issue]:
    # Of a network that is there, who made it has said where its groups stand.
    for group in context.plan.groups if context.spec.network.existing is None else ():
        chosen = group.spec.override_vpc_config is not None
        if group.autoscaled or chosen or len(group.zones) < 2 or group.spec.instance_count < 2:
            continue
        yield Issue(
            context.group_paths[group.spec.name],
            f"{group.spec.name} spans {listing(list(group.zones))}: its {group.spec.instance_count} instances can be "
            "in different zones, where distributed work is slower and its traffic is billed",
            f"Add `availabilityZone: {group.zones[0]}`, or create one group per zone.",
        )


RULES = (
    Rule("CLU045", "warning", "EC2 offers the group's instance types in the region.",
         "Amazon EC2 API, DescribeInstanceTypeOfferings", _type_is_in_region),
    Rule("CLU030", "error", "Taints of a group differ in key or effect.", "Kubernetes API, Node: validation of taints",
         _taints_differ),
    Rule("CLU044", "error", "Keys of labels and taints are short enough for Kubernetes.",
         "Kubernetes documentation, labels and selectors: syntax", _lengths_of_keys),
    Rule("CLU042", "warning", "Static groups are in one zone.", "AWS Machine Learning Blog, auto scaling on "
         "SageMaker HyperPod", _one_zone),
    Rule("CLU023", "error", "CoreDNS and the add-ons can run on a group with nodes.", _COREDNS,
         _home_of_system_pods),
    Rule("CLU024", "error", "HyperPod on EKS is available in the region.", f"{_GUIDE}, regions", _region),
    Rule("CLU025", "error", "A group uses either Spot or a training plan.", _API, _purchase),
    Rule("CLU026", "error", "Deep health checks fit the group's instance types.",
         f"{_GUIDE}, deep health checks (InstanceConnectivity only on instances with multi-node GPU communication)",
         _deep_checks),
    Rule("CLU027", "error", "Percentages are within the range that the service accepts.",
         f"{_GUIDE}, managed tiered checkpointing",
         _percentages),
    Rule("CLU028", "error", "An update's schedule is a valid AWS cron expression.", _CRON, _schedules),
)  # fmt: skip
