"""KAR: NodePools as the program sends them, held to what Karpenter itself demands."""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from hpkit.catalog import node_pool_schema
from hpkit.checks.cron import DAYS, MONTHS, Field, no_such_day, wrong_field
from hpkit.checks.custom_resources import Violation, violations
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.autoscaling import NodePool
from hpkit.config.document import Path
from hpkit.config.suggest import seconds_of
from hpkit.plan.capacity import ARCHITECTURE_KEY, INSTANCE_TYPE_KEY, unit_problem
from hpkit.plan.derive import ZONE_KEY
from hpkit.plan.karpenter import node_pool_spec
from hpkit.plan.registry import is_out_of_reach
from hpkit.text.formatting import listing

__all__ = ["RULES", "SAID_ELSEWHERE"]

_OS_KEY: Final = "kubernetes.io/os"
_CRD = "Karpenter's CRD of NodePool, karpenter.sh/v1"
# Where in a NodePool's spec the keys of the file are that have another place there.
_PLACES: Final[dict[Path, Path]] = {
    ("template", "metadata"): (),
    ("template", "spec"): (),
    ("template", "spec", "nodeClassRef", "name"): ("nodeClass",),
}
# Rules in CEL that another rule says in words of the file, by the message that the CRD gives them; "" for those about
# what the program writes itself, or never sends.
SAID_ELSEWHERE: Final = {
    "'schedule' must be set with 'duration'": "KAR015",
    'label domain "karpenter.sh" is restricted': "KAR016, KAR004",
    'label "karpenter.sh/nodepool" is restricted': "KAR016, KAR004",
    'label "kubernetes.io/hostname" is restricted': "KAR016, KAR004",
    "requirements with operator 'In' must have a value defined": "KAR004",
    "requirements operator 'Gt', 'Lt', 'Gte', or 'Lte' must have a single positive integer value": "KAR004",
    "requirements with 'minValues' must have at least that many values specified in the 'values' field": "",
    "group may not be empty": "",
    "kind may not be empty": "",
    "name may not be empty": "KAR005",
    "only 'limits.nodes' is supported on static NodePools": "",
    "'weight' is not supported on static NodePools": "",
}
_REQUIREMENTS: Final = ("template", "spec", "requirements")
_ECR: Final = "Amazon ECR user guide, interface VPC endpoints (public repositories have none)"
# Until a new node is ready, so many seconds go by, or more: what lives no longer does no work.
_TO_COME: Final = 600
_REFERENCE: Final = "Distribution, reference: grammar of an image's name"
_PART: Final = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_IMAGE: Final = re.compile(
    rf"(?:(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::[0-9]+)?|localhost(?::[0-9]+)?|[A-Za-z0-9-]+:[0-9]+)/)?"
    rf"{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?(?:@[A-Za-z0-9+.-]+:[0-9a-fA-F]{{32,}})?",
    re.ASCII,
)
_VALIDATION: Final = "Karpenter's source, NodePool.RuntimeValidate"
_CRON: Final = "Karpenter documentation, disruption budgets; robfig/cron, ParseStandard"
# Each field of a schedule.
_FIELDS: Final[tuple[Field, ...]] = (
    ("minutes", 0, 59, ()),
    ("hours", 0, 23, ()),
    ("days of the month", 1, 31, ()),
    ("months", 1, 12, MONTHS),
    ("days of the week", 0, 6, DAYS),
)


def _pools(context: Context) -> Iterator[tuple[NodePool, Path]]:
    pools = context.spec.autoscaling.node_pools if context.spec.autoscaling else ()
    for index, pool in enumerate(pools):
        yield pool, (*context.path, "autoscaling", "nodePools", index)


def _crd(context: Context) -> Iterator[Issue]:
    for pool, path in _pools(context):
        for each in violations(node_pool_schema(), node_pool_spec(pool)):
            place = _place(each.path)
            if not _said_elsewhere(each):
                what = next(step for step in reversed(("the NodePool", *place)) if isinstance(step, str))
                message = f"{pool.name}: {what} {each.message}; Karpenter's API rejects it"
                yield Issue((*path, *place), message, each.fix)


def _said_elsewhere(violation: Violation) -> bool:
    # Keys and operators that HyperPod's Karpenter knows are fewer than those of the CRD: KAR004.
    part_of_requirement = violation.path[:3] == _REQUIREMENTS and len(violation.path) > len(_REQUIREMENTS)
    return part_of_requirement or any(
        violation.rule and violation.message.endswith(message) for message in SAID_ELSEWHERE
    )


def _place(path: Path) -> Path:
    """Return where in the file's NodePool that is which stands at a path of the spec."""
    for length in range(len(path), 0, -1):
        if path[:length] in _PLACES:
            return (*_PLACES[path[:length]], *path[length:])
    return path


def _labels(context: Context) -> Iterator[Issue]:
    planned = {pool.spec.name: pool for pool in context.plan.node_pools}
    for pool, path in _pools(context):
        for key, value in pool.labels.items():
            # As the CRD has it: mykarpenter.sh is refused as well, and a key without a prefix that ends so.
            own = key.partition("/")[0].endswith("karpenter.sh")
            if (own and key != "karpenter.sh/capacity-type") or key == "kubernetes.io/hostname":
                yield Issue(
                    (*path, "labels", key),
                    f"{pool.name}: the label `{key}` is reserved for Karpenter or the kubelet, and Karpenter's API "
                    "rejects it",
                    "Remove it, or use your own prefix.",
                )
            types, zones = planned[pool.name].instance_types, planned[pool.name].zones
            had = {INSTANCE_TYPE_KEY: types, ZONE_KEY: zones, ARCHITECTURE_KEY: ("amd64",), _OS_KEY: ("linux",)}
            # What none of its groups has at all is KAR005's.
            if key in had and had[key] and value not in had[key]:
                yield Issue(
                    (*path, "labels", key),
                    f"{pool.name}: Karpenter treats labels as requirements, and none of its nodes has `{key}: "
                    f"{value}` ({listing(sorted(had[key]))}), so it would never add a node",
                    "Remove it: nodes get this label automatically. To narrow types and zones, use requirements.",
                )


def _taints_differ(context: Context) -> Iterator[Issue]:
    for pool, path in _pools(context):
        taints = [(taint.key, taint.effect) for taint in pool.taints]
        for index, (key, effect) in enumerate(taints):
            if (key, effect) in taints[:index]:
                yield Issue(
                    (*path, "taints", index),
                    f"{pool.name} has the taint {key} with {effect} twice, so Karpenter never marks this NodePool "
                    "Ready",
                    "Remove one, or change its effect.",
                )


def _schedules(context: Context) -> Iterator[Issue]:
    for pool, path in _pools(context):
        for index, budget in enumerate(pool.disruption.budgets):
            place: Path = (*path, "disruption", "budgets", index)
            texts = (budget.schedule or "").split()
            wrong = wrong_field(texts, _FIELDS)
            if wrong is not None:
                text, (what, least, most, names) = wrong
                named = f", or {names[0]}–{names[-1]}" if names else ""
                yield Issue(
                    (*place, "schedule"),
                    f"a budget of {pool.name} has `{text}` for {what}; valid values are {least}–{most}{named}. With "
                    "this schedule, Karpenter disrupts no node",
                    "Write minute, hour, day of the month, month, day of the week, such as `0 9 * * mon-fri`.",
                )
            elif len(texts) == len(_FIELDS) and texts[4] in ("*", "?") and no_such_day(texts[2], texts[3]):
                yield Issue(
                    (*place, "schedule"),
                    f"a budget of {pool.name} starts on day {texts[2]} of month {texts[3]}, a date that doesn't exist",
                    "Use a valid date, such as `0 9 1 * *`.",
                )
            if budget.duration is not None and not any(digit in budget.duration for digit in "123456789"):
                yield Issue(
                    (*place, "duration"),
                    f"a budget of {pool.name} has a duration of {budget.duration}, so it never applies",
                    "Use `8h` or another duration above zero.",
                )


def _units(context: Context) -> Iterator[Issue]:
    for pool, path in _pools(context):
        requests = pool.warm_pool.requests if pool.warm_pool else {}
        amounts: list[tuple[str, Path, Mapping[str, str]]] = [
            ("limits", (*path, "limits"), pool.limits),
            ("warmPool.requests", (*path, "warmPool", "requests"), requests),
        ]
        for key, place, quantities in amounts:
            for resource, amount in quantities.items():
                if (problem := unit_problem(resource, amount)) is not None:
                    reason, fix = problem
                    yield Issue((*place, resource), f"{key} of {pool.name} has `{resource}: {amount}`: {reason}", fix)


def _lifetimes(context: Context) -> Iterator[Issue]:
    for pool, path in _pools(context):
        if not any(digit in pool.expire_after for digit in "123456789") and pool.expire_after != "Never":
            yield Issue(
                (*path, "expireAfter"),
                f"nodes of {pool.name} expire after {pool.expire_after}, so Karpenter would replace each node "
                "immediately",
                "Use `Never`, or a duration such as 720h.",
            )
        elif (lives := seconds_of(pool.expire_after)) is not None and lives < _TO_COME:
            yield Issue(
                (*path, "expireAfter"),
                f"nodes of {pool.name} expire after {pool.expire_after}, but take minutes to start, so Karpenter "
                "would replace them before they do any work",
                "Use `Never`, or a duration such as 720h.",
                "warning",
            )


def _warm_pool_image(context: Context) -> Iterator[Issue]:
    for pool, path in _pools(context):
        warm = pool.warm_pool
        if warm is not None and context.spec.network.closed and is_out_of_reach(warm.image, context.spec.region):
            yield Issue(
                (*path, "warmPool", "image"),
                f"the network is closed, but the placeholder pods of {pool.name} pull {warm.image}",
                "Copy the image to an ECR repository of this account, and set `image` to the copy.",
            )


def _images(context: Context) -> Iterator[Issue]:
    for pool, path in _pools(context):
        image = pool.warm_pool.image if pool.warm_pool else ""
        if not image or _IMAGE.fullmatch(image):
            continue
        # A registry's host may have capitals, what it calls its images may not.
        host, slash, name = image.rpartition("/")
        likely = f"{host}{slash}{name.lower()}".replace(" ", ":")
        yield Issue(
            (*path, "warmPool", "image"),
            f"`{image}` isn't a valid image name: use lowercase letters and no spaces",
            f"Did you mean `{likely}`?" if _IMAGE.fullmatch(likely) else "Write it as you would for `docker pull`.",
        )


RULES = (
    Rule("KAR016", "error", "Labels of a NodePool aren't reserved, and match its nodes.",
         f"{_CRD}; Karpenter's source, NewNodeClaimTemplate", _labels),
    Rule("KAR021", "error", "Quantities of a NodePool have units that fit the resource.",
         "Kubernetes documentation, extended resources; resource units in Kubernetes", _units, waivable=False),
    Rule("KAR022", "error", "Nodes of a NodePool live long enough to do work.", "Karpenter documentation, expireAfter",
         _lifetimes),
    Rule("KAR012", "error", "In a closed network, nodes can pull a warm pool's image.", _ECR,
         _warm_pool_image),
    Rule("KAR024", "error", "A warm pool's image has a valid name.", _REFERENCE, _images),
    Rule("KAR018", "error", "NodePools are valid for Karpenter's API.", _CRD, _crd),
    Rule("KAR019", "error", "Taints of a NodePool differ in key or effect.", _VALIDATION, _taints_differ),
    Rule("KAR020", "error", "A budget's schedule matches at least one real time, and its duration is positive.", _CRON,
         _schedules),
)  # fmt: skip
