"""The page about a data scientist's permissions, from the rules, and about rejections."""

from collections.abc import Callable, Iterable
from pathlib import Path
from string import Template
from typing import Final

from hpkit.program.components.access.rbac import PolicyRule, cluster_rules, team_rules, verbs, workload_rules
from hpkit.program.components.admission.policies import policies_of, policies_of_users

__all__ = ["FILES", "REJECTED"]

_RBAC = "RBAC"
_READ = ("get", "list", "watch")
_LEVEL = "Pod Security `baseline`"
_LIMIT_RANGE = "LimitRange `hpkit-requests`"
_QUOTA = "ResourceQuota `hpkit-quota-and-borrow-limit`"
_REASONS: Final = {
    _LEVEL: "these give root access to the node",
    _LIMIT_RANGE: "instead of rejecting them, it adds `teamLimits.defaultRequests`, so that Kueue counts them",
    _QUOTA: "Kueue frees the quota of pods that begin to end, but they keep their accelerators until they have ended",
}
# Policy and rejected field or action, each tested in tests/security.
REJECTED: Final = (
    (_LEVEL, "privileged containers and capabilities, and the node's files, network, processes and ports"),
    ("hpkit-team-pods", "spec.priorityClassName"),
    ("hpkit-team-pods", "spec.nodeName"),
    ("hpkit-team-pods", "spec.tolerations"),
    ("hpkit-team-pods", "spec.serviceAccountName"),
    ("hpkit-team-pods", "spec.terminationGracePeriodSeconds"),
    ("hpkit-team-pods", "spec.volumes"),
    ("hpkit-team-pods", "spec.containers[].image"),
    ("hpkit-team-pods", "spec.containers[].resources"),
    ("hpkit-team-pods", "spec.resourceClaims"),
    ("hpkit-team-pods", "spec.affinity"),
    ("hpkit-team-workloads", "spec.priorityClassRef"),
    ("hpkit-team-workloads", "spec.priorityClassRef of the team"),
    (_LIMIT_RANGE, "containers that don't request CPU or memory"),
    ("hpkit-team-services", "spec.externalIPs"),
    ("hpkit-member-work", "metadata.ownerReferences"),
    ("hpkit-member-work", "metadata.labels"),
    ("hpkit-member-work", "kueue.x-k8s.io/priority-class"),
    ("hpkit-member-work", "kueue.x-k8s.io/max-exec-time-seconds"),
    ("hpkit-member-work", "spec.runPolicy.schedulingPolicy.priorityClass"),
    ("hpkit-member-work", "labels and annotations of kueue.x-k8s.io"),
    ("hpkit-member-work", "labels and annotations of an existing job"),
    ("hpkit-member-work", "types of replicas"),
    ("hpkit-member-work", "spec.suspend"),
    (_QUOTA, "pods that exceed the team's quota and borrow limit, including pods that are ending or waiting"),
    ("hpkit-member-autoscalers", "spec.scaleTargetRef"),
    ("hpkit-member-pods", "spec.schedulingGates"),
    ("hpkit-member-pods", "metadata"),
    ("hpkit-member-pods", "spec.containers[].image"),
    ("hpkit-member-deletions", "gracePeriodSeconds"),
    ("hpkit-member-deletions", "gracePeriodSeconds of a pod on a node"),
    ("hpkit-member-orphans", "propagationPolicy"),
    ("hpkit-member-orphans", "deletion of a controlled Job"),
    ("hpkit-member-lifecycle", "spec.replicatedJobs[].template.spec.ttlSecondsAfterFinished"),
    ("hpkit-member-lifecycle", "metadata.finalizers"),
    ("hpkit-member-lifecycle", "metadata.finalizers of pod templates"),
    ("hpkit-member-finalizers", "metadata.finalizers"),
    ("hpkit-member-ray", "spec.workerGroupSpecs[].minReplicas"),
    ("hpkit-member-ray", "spec.clusterSelector"),
    ("hpkit-member-ray", "spec.ttlSecondsAfterFinished"),
    ("hpkit-member-ray", "spec.deletionStrategy"),
    ("hpkit-member-ray", "spec.headGroupSpec.serviceType"),
    ("hpkit-member-lifecycle", "changes to a controlled object"),
    ("hpkit-member-lifecycle", "spec.elasticPolicy"),
    ("hpkit-team-sizes", "number and templates of pods"),
    ("hpkit-member-lifecycle", "spec.runPolicy.cleanPodPolicy"),
    ("hpkit-member-lifecycle", "spec.runPolicy.cleanPodPolicy of an MPIJob"),
    ("hpkit-team-ends", "status.replicaStatuses"),
    ("hpkit-team-ends", "status.restarts"),
    ("hpkit-member-services", "spec.type"),
    ("hpkit-member-secrets", "type"),
    (_RBAC, "changing an existing pod"),
    (_RBAC, "resizing a running pod"),
    (_RBAC, "adding ephemeral containers"),
    (_RBAC, "changing nodes, or calling their kubelet through the API server's proxy"),
    (_RBAC, "changing the namespace's labels"),
    (_RBAC, "creating namespaces, and access to other namespaces"),
    (_RBAC, "creating roles or bindings, and the verbs `escalate`, `bind` and `impersonate`"),
    (_RBAC, "creating tokens of service accounts"),
    (_RBAC, "kinds of objects that the team's `workloads` don't include"),
    (_RBAC, "changing a Workload's priority, or ending it"),
    (_RBAC, "changing queues, quotas, flavors, priority classes, Kueue's settings or admission policies"),
)


def _page() -> str:
    """Return docs/reference/team-rights.md."""
    parts = {
        "TRAINING": _rights(workload_rules("training")),
        "INFERENCE": _rights(workload_rules("inference")),
        "SPACES": _rights(workload_rules("spaces")),
        "TEAM": _rights(team_rules(())),
        "CLUSTER": _rights(cluster_rules(spaces=True)),
        "VERBS": "\n".join(f"- `{verb}`: {purpose}" for verb, purpose in verbs().items()),
        "RBAC": "\n".join(f"- {what}" for part, what in REJECTED if part == _RBAC),
        "REJECTED": _table("rejected", "by", "because", rows=_rejected()),
    }
    return Template((Path(__file__).parent / "team_rights.md").read_text(encoding="utf-8")).substitute(parts)


def _rights(rules: Iterable[PolicyRule]) -> str:
    rows = [(_code(rule.resources), f"`{rule.api_groups[0] or 'core'}`", _verbs(rule), rule.reason) for rule in rules]
    return _table("resources", "API group", "verbs", "for", rows=rows)


def _verbs(rule: PolicyRule) -> str:
    """Return the verbs of a rule, as a word if the page explains it."""
    if set(rule.verbs) == set(verbs()):
        return "all"
    read = [verb for verb in _READ if verb in rule.verbs]
    others = [verb for verb in rule.verbs if verb not in _READ]
    return ", ".join(["read", *([_code(others)] if others else [])]) if len(read) == len(_READ) else _code(rule.verbs)


def _rejected() -> list[tuple[str, ...]]:
    reasons = {(policy.name, each.field): each.reason for policy in policies_of(()) for each in policy.rejections}
    # The policy for Jobs has the same rejections.
    users = policies_of_users(())[0]
    rows = [
        (
            f"`{what}`" if (part, what) in reasons else what,
            f"`{part}`" if (part, what) in reasons else part,
            reasons.get((part, what)) or _REASONS[part],
        )
        for part, what in REJECTED
        if part != _RBAC
    ] + [(f"`{each.field}`", f"`{users.name}`", each.reason) for each in users.rejections]
    # Fields that one policy rejects for the same reason share a row.
    fields: dict[tuple[str, str], list[str]] = {}
    for what, part, reason in rows:
        fields.setdefault((part, reason), []).append(what)
    return [(", ".join(whats), part, reason) for (part, reason), whats in fields.items()]


def _code(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)


def _table(*head: str, rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


FILES: Final[dict[str, Callable[[], str]]] = {"docs/reference/team-rights.md": _page}
