"""CFG: findings from reading the file, and duplicate names."""

from collections.abc import Iterator

from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.models.base import Model
from hpkit.config.models.governance import Sharing
from hpkit.config.reading.document import Path
from hpkit.plan.derive import OWN_TAGS
from hpkit.plan.existing import makes_script, verified_scripts

__all__ = ["RULES"]

_CONTRACT = "hpkit configuration reference"
_ROLES = "IAM user guide, IAM JSON policy elements: Resource, wildcards"
_TAGGING = "Amazon S3 user guide, object tagging: 10 tags; AWS tagging guide: 50 tags; default tags of pulumi-aws"
_MOST_OBJECT_TAGS, _MOST_TAGS = 10, 50
_UNIQUE = f"{_CONTRACT}; Amazon EKS API: CreateAccessEntry; Kubernetes API, Node: validation of taints"


def _unique_names(context: Context) -> Iterator[Issue]:
    spec, base = context.spec, context.path
    autoscaling = spec.autoscaling
    lists: list[tuple[str, Path, list[str]]] = [
        ("team", ("teams",), [team.name for team in context.organization.teams]),
        (
            "priority class",
            ("clusterPolicy", "priorityClasses"),
            [each.name for each in context.organization.cluster_policy.priority_classes],
        ),
    ]
    if autoscaling is not None:
        lists.append(
            ("NodeClass", (*base, "autoscaling", "nodeClasses"), [each.name for each in autoscaling.node_classes])
        )
        lists.append(("NodePool", (*base, "autoscaling", "nodePools"), [each.name for each in autoscaling.node_pools]))
    if spec.governance is not None and spec.governance.cluster_policy is not None:
        names = [each.name for each in spec.governance.cluster_policy.priority_classes]
        lists.append(("priority class", (*base, "governance", "clusterPolicy", "priorityClasses"), names))
    yield from _twice("group", [(path, group.name) for path, group in context.groups])
    for what, path, names in lists:
        yield from _twice(what, [((*path, index), name) for index, name in enumerate(names)])


def _twice(noun: str, named: list[tuple[Path, str]]) -> Iterator[Issue]:
    seen: dict[str, Path] = {}
    for path, name in named:
        name_path = (*path, "name")
        if seen.setdefault(name, name_path) != name_path:
            message, fix = f"the {noun} name `{name}` is used twice", f"Give each {noun} a unique name."
            yield Issue(name_path, message, fix, other=seen[name])


def _tags(context: Context) -> Iterator[Issue]:
    tags = {key.lower(): value for key, value in context.organization.tags.items()}
    if tags.keys() == {"key", "value"}:
        message = f"the tags `Key` and `Value` are the AWS API's form of one tag, `{tags['key']}`"
        yield Issue(("tags",), message, f"Replace both with `{tags['key']}: {tags['value']}`.", "warning")
        return
    first: dict[str, str] = {}
    for key, value in context.organization.tags.items():
        first_spelling = first.setdefault(key.lower(), key)
        if key.lower().startswith("aws:"):
            message, fix = (
                f"the tag `{key}` begins with `aws:`, a prefix that AWS reserves",
                "Remove the `aws:` prefix.",
            )
        elif key in OWN_TAGS or key.startswith("hpkit:"):
            message = f"the tag `{key}: {value}` would override a tag that hpkit sets and its add-ons rely on"
            fix = "Remove it, or choose another key."
        elif first_spelling != key:
            message = (
                f"the tags `{first_spelling}` and `{key}` differ only in case; an IAM role can have only one of them"
            )
            fix = "Keep one of them."
        else:
            continue
        yield Issue(("tags", key), message, fix)


def _number_of_tags(context: Context) -> Iterator[Issue]:
    """Yield the first tag that is too many. The provider's tags apply to uploaded scripts too; others have a `Name`."""
    plan, own = context.plan, list(context.organization.tags)
    uploads = makes_script(plan) or bool(verified_scripts(plan))
    added = len(plan.tags) - len(own) + (not uploads)
    most = _MOST_OBJECT_TAGS if uploads else _MOST_TAGS
    if context.spec.manage_tags and len(own) + added > most:
        kept = most - added
        limited = "an S3 object, such as the lifecycle script," if uploads else "a resource"
        message = f"{len(own)} tags are too many: {limited} can have {most}, and hpkit adds {added}"
        yield Issue(("tags", own[kept]), message, f"Keep at most {kept} tags.")


def _entries(context: Context) -> Iterator[Issue]:
    places: list[tuple[Model, Path]] = [(context.spec, context.path)]
    places += [(team, ("teams", index)) for index, team in enumerate(context.organization.teams)]
    overrides = context.spec.governance.overrides if context.spec.governance else {}
    places += [(each, (*context.path, "governance", "overrides", team)) for team, each in overrides.items()]
    for model, path in places:
        for key, values, place in _lists(model, path):
            for index, value in enumerate(values):
                # KAR001 and CLU006 report the consequences of these.
                if value in values[:index] and key not in ("instanceGroups", "instanceTypes"):
                    yield Issue((*place, index), f"`{key}` lists {value} twice", "List it once.")
    yield from _limits_once(context)


def _limits_once(context: Context) -> Iterator[Issue]:
    governance = context.spec.governance
    overrides = governance.overrides if governance else {}
    sharings: list[tuple[Sharing | None, Path]] = [
        (team.sharing, ("teams", index, "sharing")) for index, team in enumerate(context.organization.teams)
    ]
    sharings += [
        (each.sharing, (*context.path, "governance", "overrides", name, "sharing")) for name, each in overrides.items()
    ]
    for sharing, path in sharings:
        # Accelerators and each MIG profile of a type need limits of their own.
        types = [
            (limit.instance_type, limit.accelerator_partition and limit.accelerator_partition.type)
            for limit in (sharing.absolute_borrow_limits if sharing else ())
        ]
        for index, (name, profile) in enumerate(types):
            if types[:index].count((name, profile)) == 1:
                where = (*path, "absoluteBorrowLimits", index)
                yield Issue(where, f"`absoluteBorrowLimits` lists {name} twice", "List it once.")


def _taints(context: Context) -> Iterator[Issue]:
    for owner, path in context.node_settings:
        taints = [(taint.key, taint.effect) for taint in owner.taints]
        for index, (key, effect) in enumerate(taints):
            if (key, effect) in taints[:index]:
                message = f"`{owner.name}` has the taint `{key}` with {effect} twice"
                yield Issue((*path, "taints", index), message, "Remove one, or change its effect.")


def _lists(model: Model, path: Path) -> Iterator[tuple[str, tuple[str, ...], Path]]:
    """Yield key, entries and path of every list of texts in a part of the file."""
    for name, value in model:
        key = type(model).model_fields[name].alias or name
        if isinstance(value, Model):
            yield from _lists(value, (*path, key))
        elif isinstance(value, tuple) and value and isinstance(value[0], str):
            yield key, value, (*path, key)
        elif isinstance(value, tuple):
            for index, each in enumerate(value):
                if isinstance(each, Model):
                    yield from _lists(each, (*path, key, index))


RULES = (
    Rule("CFG001", "error", "All keys are known.", _CONTRACT, waivable=False),
    Rule(
        "CFG002",
        "error",
        "Values have the type, format and range that the API accepts.",
        "SageMaker API model",
        waivable=False,
    ),
    Rule("CFG003", "error", "Required keys are present.", _CONTRACT, waivable=False),
    Rule(
        "CFG004",
        "error",
        "Names, keys, and entries of lists are unique.",
        _UNIQUE,
        _unique_names,
        _entries,
        _taints,
        waivable=False,
    ),
    Rule("CFG005", "error", "The file is valid YAML, and its top level is a map.", "YAML 1.2", waivable=False),
    Rule(
        "CFG006",
        "error",
        "Tag keys aren't reserved, and differ by more than case.",
        "AWS tagging guide, tag naming limits; IAM user guide, tags: case sensitivity",
        _tags,
    ),
    Rule(
        "CFG007",
        "error",
        "An organization file in stacks/ is named after its organization, and ends in .yaml.",
        _CONTRACT,
        waivable=False,
    ),
    Rule(
        "CFG008",
        "error",
        "Stack files are readable, and each names another existing organization and environment.",
        _CONTRACT,
        waivable=False,
    ),
    Rule("CFG009", "error", "Resources have no more tags than AWS allows.", _TAGGING, _number_of_tags, waivable=False),
    Rule(
        "CFG011",
        "warning",
        "Cluster names are unique across organization files.",
        "SageMaker API: CreateCluster",
        waivable=False,
    ),
    Rule("CFG013", "warning", "Keys have a value.", _CONTRACT, waivable=False),
    Rule(
        "CFG014",
        "error",
        "The paths in `include` and `defaults` lead to files in the organization file's folder.",
        _CONTRACT,
        waivable=False,
    ),
    Rule("CFG015", "error", "A stack's role names don't begin like another stack's.", _ROLES, waivable=False),
)
