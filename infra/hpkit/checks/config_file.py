"""CFG: what reading the file itself finds, and names that stand twice."""

from collections.abc import Iterator

from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.document import Path

__all__ = ["RULES"]

_CONTRACT = "Config contract"


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
            (
                "NodeClass",
                (*base, "autoscaling", "nodeClasses"),
                [each.name for each in autoscaling.node_classes],
            )
        )
        lists.append(("NodePool", (*base, "autoscaling", "nodePools"), [each.name for each in autoscaling.node_pools]))
    if spec.governance is not None and spec.governance.cluster_policy is not None:
        names = [each.name for each in spec.governance.cluster_policy.priority_classes]
        lists.append(("priority class", (*base, "governance", "clusterPolicy", "priorityClasses"), names))
    yield from _twice("group", [(path, group.name) for path, group in context.groups])
    for what, path, names in lists:
        yield from _twice(what, [((*path, index), name) for index, name in enumerate(names)])


def _twice(what: str, named: list[tuple[Path, str]]) -> Iterator[Issue]:
    seen: set[str] = set()
    for path, name in named:
        if name in seen:
            yield Issue((*path, "name"), f"the {what} `{name}` stands twice", "Give each a name of its own.")
        seen.add(name)


RULES = (
    Rule("CFG001", "error", "Every key is one that the contract knows.", _CONTRACT, waivable=False),
    Rule("CFG002", "error", "Every value has the type, form and range that the API takes.", "SageMaker API model",
         waivable=False),
    Rule("CFG003", "error", "Every required key is there.", _CONTRACT, waivable=False),
    Rule("CFG004", "error", "Names and keys stand once.", _CONTRACT, _unique_names, waivable=False),
    Rule("CFG005", "error", "The file is readable YAML, and a map.", "YAML 1.2", waivable=False),
)  # fmt: skip
