"""Values in data/policies.yaml that depend on teams and limits, or that repeat an expression for many fields."""

from collections.abc import Mapping, Sequence
from typing import Any

from hpkit.plan.lustre import CLAIM
from hpkit.plan.model import NAMESPACE_PREFIX, TeamPlan
from hpkit.plan.names import GROUP_PREFIX
from hpkit.plan.team_limits import (
    MIG_PREFIX,
    NOT_READY,
    REPLICA_TYPES,
    SCALABLE,
    TOLERATED_SECONDS,
    WORK_KEYS,
    PodLimits,
)

__all__ = ["values_of", "values_of_files"]

_KUEUE = "kueue.x-k8s.io/"
_RANK = f"{_KUEUE}priority-class"
_RUN_TIME = f"{_KUEUE}max-exec-time-seconds"
_LWS_GROUP = "leaderworkerset.x-k8s.io"
_SPACES_GROUP = "workspace.jupyter.org"
# Groups of kinds that run until they are deleted.
_SERVING = ["apps", _LWS_GROUP, "inference.sagemaker.aws.amazon.com", _SPACES_GROUP]
# What Kueue writes into the templates of a LeaderWorkerSet (0.19.2, leaderworkerset_webhook.go).
_OF_LWS = {
    "pod-suspending-parent": f"{_LWS_GROUP}/leaderworkerset",
    "pod-group-serving": "true",
    "pod-index-offset": "1",
}
# Fields of a spec that determine the number of pods and their templates, by kind: Job; JobSet; Kubeflow's kinds;
# RayCluster, RayJob and RayService; HyperPodPyTorchJob; LeaderWorkerSet.
_FIELDS_OF_PODS = (
    *("parallelism", "completions", "template"),
    "replicatedJobs",
    *REPLICA_TYPES,
    *("headGroupSpec", "workerGroupSpecs", "rayClusterSpec", "rayClusterConfig", "submitterPodTemplate"),
    "replicaSpecs",
    "leaderWorkerTemplate",
)


def values_of(teams: Sequence[TeamPlan], limits: PodLimits) -> dict[str, str]:
    """Return the values of the policies of all teams' namespaces; limits: the environment's."""
    accounts = {
        team.namespace: ["default", *team.spec.service_accounts] for team in teams if team.spec.service_accounts
    }
    spaces = {team.namespace: label for team in teams if (label := team.space_priority_label) is not None}
    types = [name for name in limits.publish if name != "Ingress"]
    replicas = (
        f"object.?spec.?{field}.orValue({{}}).all(name, name in {[*names]})" for field, names in REPLICA_TYPES.items()
    )
    return {
        "group_prefix": GROUP_PREFIX,
        "namespace_prefix": str(len(NAMESPACE_PREFIX)),
        "scalable": SCALABLE,
        "templates": _templates("object"),
        "old_templates": _templates("oldObject"),
        "repositories": limits.repositories.rstrip("/"),
        "grace_seconds": str(limits.grace_seconds),
        "tolerations": str([*limits.tolerations]),
        "mig_prefix": MIG_PREFIX,
        "not_ready": str([*NOT_READY]),
        "tolerated_seconds": str(TOLERATED_SECONDS),
        "too_many_seconds": str(TOLERATED_SECONDS + 1),
        "accounts": f"{_map(accounts)}[?request.namespace].orValue(['default'])" if accounts else "['default']",
        "volumes": ", ".join(limits.volumes),
        "has_volume": " || ".join(f"volume.?{volume_type}.hasValue()" for volume_type in limits.volumes),
        "service_types": str(["ClusterIP", "ExternalName", *types]),
        "ingress": "true" if "Ingress" in limits.publish else "false",
        "head_types": str(["", "ClusterIP", *types]),
        "head_ingress": "true" if "Ingress" in limits.publish else "!head.?enableIngress.orValue(false)",
        "rank_of_team": _rank_of_team(teams),
        "ranked": _ranked(teams, spaces),
        "ranked_message": f"the label {_RANK} must name one of the team's priorityClasses in the organization file"
        + ("; that of a Workspace, the team's spacePriorityClass" if spaces else ""),
        "run_time": _run_time(teams),
        "counted_replicas": " && ".join(replicas),
        "replica_types": "; ".join(f"{field}: {', '.join(names)}" for field, names in REPLICA_TYPES.items()),
        "known_keys": f"{_only_known('labels')} && {_only_known('annotations')}",
        "work_keys": ", ".join(key.removeprefix(_KUEUE) for key in WORK_KEYS),
        "kueues_keys_stay": _kueues_keys_stay(),
        "kueues_keys_stay_but_rank": _kueues_keys_stay(except_for=_RANK),
        "same_pods": " && ".join(f"object.?spec.?{field} == oldObject.?spec.?{field}" for field in _FIELDS_OF_PODS),
    }


def values_of_files(teams: Sequence[TeamPlan]) -> dict[str, str]:
    """Return the values of the policies about users of the shared file system."""
    ids = {team.namespace: [team.user_ids.start, team.user_ids.stop - 1] for team in teams}
    return {"claim": CLAIM, "user_ids": _map(ids)}


def _map(by_namespace: Mapping[str, Any]) -> str:
    """Return a map as CEL writes it, in which texts and lists look as in Python."""
    return f"{dict(sorted(by_namespace.items()))}"


def _templates(root: str) -> str:
    """Return CEL for all pod templates of a job of any kind; root: the object's name in CEL.

    Sources: batch/v1, apps/v1, kubeflow.org/v1 and v2beta1, jobset.x-k8s.io/v1alpha2, ray.io/v1,
    leaderworkerset.x-k8s.io/v1, sagemaker.amazonaws.com/v1.
    """
    spec = f"{root}.?spec"
    lists = [
        _one(f"{spec}.?template"),
        *(
            f"{spec}.?{field}.orValue({{}}).map(name, {root}.spec.{field}[name].?template.orValue({{}}))"
            for field in REPLICA_TYPES
        ),
        f"{spec}.?replicaSpecs.orValue([]).map(replica, replica.?template.orValue({{}}))",
        f"{spec}.?replicatedJobs.orValue([]).map(job, job.?template.?spec.?template.orValue({{}}))",
        _one(f"{spec}.?leaderWorkerTemplate.?leaderTemplate"),
        _one(f"{spec}.?leaderWorkerTemplate.?workerTemplate"),
        _one(f"{spec}.?submitterPodTemplate"),
    ]
    for cluster in (spec, f"{spec}.?rayClusterSpec", f"{spec}.?rayClusterConfig"):
        lists.append(_one(f"{cluster}.?headGroupSpec.?template"))
        lists.append(f"{cluster}.?workerGroupSpecs.orValue([]).map(group, group.?template.orValue({{}}))")
    return "(" + " + ".join(f"({one})" for one in lists) + ")"


def _one(path: str) -> str:
    return f"{path}.hasValue() ? [{path}.value()] : []"


def _rank_of_team(teams: Sequence[TeamPlan]) -> str:
    """Return CEL for whether the rank of a Workload is one of the team's, of teams that have some."""
    labels = {
        team.namespace: sorted({*team.priority_labels, *([space] if (space := team.space_priority_label) else [])})
        for team in teams
        if team.spec.priority_classes
    }
    if not labels:
        return "true"
    own = (
        f"variables.rankSource in ['kueue.x-k8s.io', '{_KUEUE}workloadpriorityclass'] && "
        f"variables.rank in {_map(labels)}[request.namespace]"
    )
    return f"!variables.rankChanged || variables.rank == '' || !(request.namespace in {_map(labels)}) || ({own})"


def _ranked(teams: Sequence[TeamPlan], spaces: Mapping[str, str]) -> str:
    """Return CEL for whether a job's rank is one of the team's; spaces: the class of spaces in each namespace with one.

    Kueue counts a Deployment's pods one by one. Their class comes from the Deployment's label, or else the template's.
    The pods of a space have all labels of the space (jupyter-infra/jupyter-k8s, deployment_builder.go, buildPodLabels).
    """
    ranks = {team.namespace: ["", *team.priority_labels] for team in teams if team.spec.priority_classes}
    labels = [f"object.{place}.?labels[?'{_RANK}'].orValue('')" for place in ("metadata", "?spec.?template.?metadata")]
    of_work = " && ".join(f"{label} in {_map(ranks)}[request.namespace]" for label in labels)
    work = f"!(request.namespace in {_map(ranks)}) || ({of_work})" if ranks else "true"
    if not spaces:
        return work
    of_space = f"request.resource.group == '{_SPACES_GROUP}' && request.namespace in {_map(spaces)}"
    return f"({of_space}) ? {labels[0]} == {_map(spaces)}[request.namespace] : ({work})"


def _run_time(teams: Sequence[TeamPlan]) -> str:
    """Return CEL for whether a job has a run time, of at most its team's; it can't change."""
    most = {team.namespace: team.run_seconds[1] for team in teams if team.run_seconds is not None}
    if not most:
        return "true"
    label = f"object.metadata.?labels[?'{_RUN_TIME}'].orValue('')"
    return (
        f"request.operation != 'CREATE' || request.resource.group in {_SERVING} || "
        f"!(request.namespace in {_map(most)}) || ({label}.matches('^[1-9][0-9]{{0,8}}$') && "
        f"int({label}) <= {_map(most)}[request.namespace])"
    )


def _only_known(field: str) -> str:
    """Return CEL for whether all of Kueue's labels or annotations are those that users set, or exist already.

    Existing keys can stay: Kueue writes some into the templates of a job that it starts. Its webhooks write others
    immediately: `managed` into pods and Deployments, `role-hash` into pods, and into a Deployment which kind suspends
    its pods. It reads `role-hash` only of pods in a group, which members can't create, because Kueue keeps each pod of
    an admitted group, and the group's quota, until an administrator deletes the Workload (0.19.2, pkg/controller/jobs/
    pod/pod_controller.go, Run, constructGroupPodSets, Finished).
    """
    value = f"meta.{field}[key]"
    written = " || ".join(f"key == '{_KUEUE}{key}' && {value} == '{text}'" for key, text in _OF_LWS.items())
    of_lws = f"(request.resource.group == '{_LWS_GROUP}' && ({written}))"
    return (
        f"variables.metadata.all(meta, meta.?{field}.orValue({{}}).all(key, "
        f"!key.split('/')[0].endsWith('kueue.x-k8s.io') || key in {[*WORK_KEYS]} || "
        f"(variables.isPod && key == '{_KUEUE}role-hash') || "
        f"(key == '{_KUEUE}managed' && {value} == 'true' && (variables.isPod || request.resource.group == 'apps')) "
        f"|| (key == '{_KUEUE}pod-suspending-parent' && request.resource.group == 'apps' && "
        f"{value} == request.kind.kind.lowerAscii()) || "
        f"{of_lws if field == 'annotations' else 'false'} || "
        f"variables.before.exists(old, old.?{field}[?key].orValue('') == {value})))"
    )


def _kueues_keys_stay(*, except_for: str = "") -> str:
    """Return CEL for whether no label or annotation of Kueue changes, except for one."""
    fields = [
        [f"{root}.metadata.?{field}.orValue({{}})" for root in ("object", "oldObject")]
        for field in ("labels", "annotations")
    ]
    return " && ".join(
        f"{one}.all(key, !key.startsWith('{_KUEUE}') || key == '{except_for}' || {one}[?key] == {other}[?key])"
        for new, old in fields
        for one, other in ((new, old), (old, new))
    )
