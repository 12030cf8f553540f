"""The page about a data scientist's permissions, from the rules, and about refusals, with their tests."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from string import Template
from typing import Final

from hpkit.program.components.admission import policies_of
from hpkit.program.components.admission_files import policies_of_users
from hpkit.program.components.rbac import VERBS, PolicyRule, cluster_rules, team_rules, workload_rules

__all__ = ["ATTACKS", "FILES", "FILES_ATTACK", "PREFIX"]

PREFIX: Final = "test_a_member_wants_"
FILES_ATTACK: Final = "test_a_member_reads_files_of_another_team_as_its_user_group_or_root"
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
# By policy and rejected field or action: the tests, whose names begin with PREFIX.
ATTACKS: Final[Mapping[tuple[str, str], tuple[str, ...]]] = {
    (_LEVEL, "privileged containers and capabilities, and the node's files, network, processes and ports"): (
        "root_on_a_node",
        "root_on_a_node_by_a_job_whose_pods_a_controller_makes",
    ),
    ("hpkit-team-pods", "spec.priorityClassName"): (
        "to_evict_others_by_a_priority_of_the_system",
        "to_go_first_in_kueue_by_a_kind_that_carries_a_priority_of_the_system",
    ),
    ("hpkit-team-pods", "spec.nodeName"): ("to_choose_the_node_without_the_scheduler",),
    ("hpkit-team-pods", "spec.tolerations"): (
        "every_node_whatever_its_taints",
        "nodes_devices_or_files_that_are_not_the_teams",
    ),
    ("hpkit-team-pods", "spec.serviceAccountName"): ("the_rights_of_a_service_account_by_a_pod",),
    ("hpkit-team-pods", "spec.terminationGracePeriodSeconds"): ("to_keep_instances_while_the_quota_is_free_again",),
    ("hpkit-team-pods", "spec.volumes"): ("nodes_devices_or_files_that_are_not_the_teams",),
    ("hpkit-team-pods", "spec.containers[].image"): ("the_image_of_another_team",),
    ("hpkit-team-pods", "spec.containers[].resources"): ("more_compute_by_limits_without_requests",),
    ("hpkit-team-pods", "spec.resourceClaims"): ("nodes_devices_or_files_that_are_not_the_teams",),
    ("hpkit-team-pods", "spec.affinity"): ("nodes_that_keep_the_pods_of_another_team_away",),
    ("hpkit-team-workloads", "spec.priorityClassRef"): ("to_go_first_in_kueue_by_a_class_of_the_system",),
    ("hpkit-team-workloads", "spec.priorityClassRef of the team"): ("to_go_first_in_kueue_by_a_class_of_pods",),
    (_LIMIT_RANGE, "containers that don't request CPU or memory"): ("to_run_without_requests",),
    ("hpkit-team-services", "spec.externalIPs"): ("the_traffic_of_an_address_that_is_not_theirs",),
    ("hpkit-member-work", "metadata.ownerReferences"): (
        "more_compute_by_a_pod_that_poses_as_part_of_an_admitted_job",
        "more_compute_by_a_job_that_poses_as_part_of_an_admitted_job",
        "more_compute_by_giving_a_waiting_job_to_an_admitted_one",
        "to_run_without_a_queue_as_pods_of_a_stateful_set_may",
    ),
    ("hpkit-member-work", "metadata.labels"): (
        "to_run_without_the_queue_of_the_team",
        "a_waiting_job_to_start_by_taking_it_out_of_the_queue",
    ),
    ("hpkit-member-work", "kueue.x-k8s.io/priority-class"): ("a_rank_that_is_not_the_teams",),
    ("hpkit-member-work", "spec.runPolicy.schedulingPolicy.priorityClass"): (
        "to_go_first_by_the_scheduling_policy_of_a_framework",
    ),
    ("hpkit-member-work", "labels and annotations of kueue.x-k8s.io"): (
        "more_compute_by_notes_of_kueues_own",
        "more_compute_by_a_group_of_pods",
    ),
    ("hpkit-member-work", "labels and annotations of a running job"): ("to_stop_and_restart_an_admitted_job",),
    ("hpkit-member-work", "types of replicas"): ("more_compute_by_replicas_that_kueue_does_not_count",),
    ("hpkit-member-work", "spec.suspend"): (
        "a_waiting_job_to_start_by_saying_so",
        "to_stop_and_restart_an_admitted_job",
    ),
    (_QUOTA, "pods that exceed the team's quota and borrow limit, including pods that are ending or waiting"): (
        "more_by_deleting_a_job_and_creating_it_again",
        "more_by_deleting_the_pods_of_a_running_job",
    ),
    ("hpkit-member-autoscalers", "spec.scaleTargetRef"): ("an_autoscaler_for_a_running_job",),
    ("hpkit-member-pods", "spec.schedulingGates"): ("a_waiting_pod_to_start_with_the_rights_of_hyperpods_own_policy",),
    ("hpkit-member-pods", "metadata"): ("a_waiting_pod_to_start_with_the_rights_of_hyperpods_own_policy",),
    ("hpkit-member-pods", "spec.containers[].image"): (
        "a_waiting_pod_to_start_with_the_rights_of_hyperpods_own_policy",
    ),
    ("hpkit-member-deletions", "gracePeriodSeconds"): ("to_keep_instances_by_a_slow_deletion",),
    ("hpkit-member-orphans", "propagationPolicy"): ("to_keep_the_pods_of_a_deleted_job",),
    ("hpkit-member-orphans", "deletion of a controlled Job"): ("a_job_of_a_job_set_to_run_again",),
    ("hpkit-member-lifecycle", "spec.replicatedJobs[].template.spec.ttlSecondsAfterFinished"): (
        "a_job_of_a_job_set_to_run_again",
    ),
    ("hpkit-member-lifecycle", "metadata.finalizers"): ("to_keep_the_pods_of_a_deleted_job_by_a_finalizer",),
    ("hpkit-member-lifecycle", "metadata.finalizers of pod templates"): ("a_namespace_that_nobody_can_delete",),
    ("hpkit-member-finalizers", "metadata.finalizers"): ("a_namespace_that_nobody_can_delete",),
    ("hpkit-member-ray", "spec.workerGroupSpecs[].minReplicas"): ("more_of_ray_than_its_queue_counts",),
    ("hpkit-member-ray", "spec.clusterSelector"): ("more_of_ray_than_its_queue_counts",),
    ("hpkit-member-ray", "spec.ttlSecondsAfterFinished"): ("more_of_ray_than_its_queue_counts",),
    ("hpkit-member-ray", "spec.deletionStrategy"): ("more_of_ray_than_its_queue_counts",),
    ("hpkit-member-ray", "spec.headGroupSpec.serviceType"): ("more_of_ray_than_its_queue_counts",),
    ("hpkit-member-lifecycle", "changes to a controlled object"): (
        "more_compute_by_growing_a_part_of_an_admitted_job",
    ),
    ("hpkit-member-lifecycle", "spec.elasticPolicy"): ("an_autoscaler_for_a_running_job",),
    ("hpkit-team-sizes", "number and templates of pods"): (
        "more_pods_for_a_running_job",
        "another_instance_type_for_a_job_that_runs",
    ),
    ("hpkit-member-lifecycle", "spec.runPolicy.cleanPodPolicy"): ("to_keep_workers_after_the_job_ends",),
    ("hpkit-member-lifecycle", "spec.runPolicy.cleanPodPolicy of an MPIJob"): ("workers_of_mpi_that_never_end",),
    ("hpkit-team-ends", "status.replicaStatuses"): ("to_keep_workers_after_the_job_ends",),
    ("hpkit-team-ends", "status.restarts"): ("a_job_of_a_job_set_to_run_again",),
    ("hpkit-member-services", "spec.type"): ("to_publish_work_outside_the_cluster",),
    ("hpkit-member-secrets", "type"): ("the_rights_of_a_service_account_by_a_secret",),
    (_RBAC, "changing an existing pod"): ("a_waiting_pod_to_start_by_taking_its_gate_away",),
    (_RBAC, "resizing a running pod"): ("another_size_for_a_running_pod",),
    (_RBAC, "adding ephemeral containers"): ("a_shell_beside_a_container_that_is_there",),
    (_RBAC, "changing nodes, or calling their kubelet through the API server's proxy"): ("the_kubelet_of_a_node",),
    (_RBAC, "changing the namespace's labels"): ("to_lift_the_level_of_the_namespace",),
    (_RBAC, "creating namespaces, and access to other namespaces"): (
        "a_namespace_where_nobody_counts",
        "the_work_of_another_team_to_end",
        "the_secrets_of_others",
    ),
    (_RBAC, "creating roles or bindings, and the verbs `escalate`, `bind` and `impersonate`"): (
        "to_give_the_team_more_rights",
        "a_right_that_leads_to_others",
    ),
    (_RBAC, "creating tokens of service accounts"): (
        "the_rights_of_a_service_account_by_a_token",
        "the_token_of_a_service_account_by_way_of_keda",
    ),
    (_RBAC, "kinds of objects that the team's `workloads` don't include"): ("to_run_what_the_team_does_not",),
    (_RBAC, "changing a Workload's priority, or ending it"): ("another_priority_for_a_workload",),
    (_RBAC, "changing queues, quotas, flavors, priority classes, Kueue's settings or admission policies"): (
        "to_change_what_governs",
    ),
}


def _page() -> str:
    """Return docs/reference/team-rights.md."""
    parts = {
        "TRAINING": _rights(workload_rules("training")),
        "INFERENCE": _rights(workload_rules("inference")),
        "SPACES": _rights(workload_rules("spaces")),
        "TEAM": _rights(team_rules(())),
        "CLUSTER": _rights(cluster_rules(spaces=True)),
        "VERBS": "\n".join(f"- `{verb}`: {purpose}" for verb, purpose in VERBS.items()),
        "RBAC": "\n".join(f"- {what}" for part, what in ATTACKS if part == _RBAC),
        "REFUSED": _table("rejected", "by", "because", rows=_refused()),
    }
    return Template((Path(__file__).parent / "team_rights.md").read_text(encoding="utf-8")).substitute(parts)


def _rights(rules: Iterable[PolicyRule]) -> str:
    rows = [(_code(rule.resources), f"`{rule.api_groups[0] or 'core'}`", _verbs(rule), rule.reason) for rule in rules]
    return _table("resources", "API group", "verbs", "for", rows=rows)


def _verbs(rule: PolicyRule) -> str:
    """Return the verbs of a rule, as a word if the page explains it."""
    if set(rule.verbs) == set(VERBS):
        return "all"
    read = [verb for verb in _READ if verb in rule.verbs]
    others = [verb for verb in rule.verbs if verb not in _READ]
    return ", ".join(["read", *([_code(others)] if others else [])]) if len(read) == len(_READ) else _code(rule.verbs)


def _refused() -> list[tuple[str, ...]]:
    reasons = {(policy.name, each.field): each.reason for policy in policies_of(()) for each in policy.refusals}
    # The policy for Jobs has the same refusals.
    users = policies_of_users(())[0]
    rows = [
        (
            f"`{attack}`" if (part, attack) in reasons else attack,
            f"`{part}`" if (part, attack) in reasons else part,
            reasons.get((part, attack)) or _REASONS[part],
        )
        for part, attack in ATTACKS
        if part != _RBAC
    ] + [(f"`{each.field}`", f"`{users.name}`", each.reason) for each in users.refusals]
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
