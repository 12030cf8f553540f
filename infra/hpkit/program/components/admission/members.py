"""Admission policies for team members' requests that RBAC allows: fields that only Kueue writes, and publishing.

Kueue doesn't prevent pods from posing as part of an admitted job (0.19.2, pkg/controller/jobframework, reconciler.go).
HyperPod's own policy requires only a queue label.
"""

from collections.abc import Sequence

from hpkit.plan.model import NAMESPACE_PREFIX, TeamPlan
from hpkit.plan.team_limits import REPLICA_TYPES, SCALABLE, WORK_KEYS, PodLimits
from hpkit.program.components.admission.model import (
    BOTH,
    CREATE,
    IS_MEMBER,
    AdmissionPolicy,
    Rejection,
    ResourceRule,
    cel_list,
)
from hpkit.program.components.admission.pods import (
    FRAMEWORKS,
    IMAGES,
    IMAGES_MESSAGE,
    INFERENCE_GROUP,
    LWS_GROUP,
    SPACES_GROUP,
    templates,
)

__all__ = ["member_policies"]

_QUEUE = "kueue.x-k8s.io/queue-name"
_RANK = "kueue.x-k8s.io/priority-class"
_RUN_TIME = "kueue.x-k8s.io/max-exec-time-seconds"
_KUEUE = "kueue.x-k8s.io/"
_ROLE = "kueue.x-k8s.io/role-hash"
_OWNERS = ".?metadata.?ownerReferences.orValue([])"
_MEMBER = {"sent-by-a-member": IS_MEMBER}
_PODS = ResourceRule(("",), ("pods",))
_METADATA = ("labels", "annotations")
# Groups of kinds that run until they are deleted.
_SERVING = ("apps", LWS_GROUP, INFERENCE_GROUP, SPACES_GROUP)
# What Kueue writes into the templates of a LeaderWorkerSet (0.19.2, leaderworkerset_webhook.go).
_OF_LWS = {
    "pod-suspending-parent": f"{LWS_GROUP}/leaderworkerset",
    "pod-group-serving": "true",
    "pod-index-offset": "1",
}
_NOT_ON_A_NODE = (
    "oldObject.spec.?nodeName.orValue('') == '' || oldObject.?status.?phase.orValue('') in ['Succeeded', 'Failed']"
)


def member_policies(teams: Sequence[TeamPlan], limits: PodLimits) -> list[AdmissionPolicy]:
    """Return the policies for members' requests."""
    ranks = {team.namespace: list(team.priority_labels) for team in teams if team.spec.priority_classes}
    return [
        AdmissionPolicy(
            "hpkit-member-work",
            (_PODS, ResourceRule(FRAMEWORKS, ("*",))),
            BOTH,
            (*_of_queues(ranks, _space_ranks(teams)), _of_run_times(teams), _of_kueues_keys()),
            conditions=_MEMBER,
            variables={
                "templates": templates("object"),
                "metadata": _metadata("object", "variables.templates"),
                "before": f"request.operation == 'CREATE' ? [] : {_metadata('oldObject', templates('oldObject'))}",
                "isPod": "request.resource.group == '' && request.resource.resource == 'pods'",
            },
        ),
        AdmissionPolicy("hpkit-member-pods", (_PODS,), ("UPDATE",), _of_running_pods(limits), conditions=_MEMBER),
        AdmissionPolicy(
            "hpkit-member-deletions",
            (_PODS,),
            ("DELETE",),
            (
                Rejection(
                    "gracePeriodSeconds",
                    f"request.?options.?gracePeriodSeconds.orValue(0) <= {limits.grace_seconds}",
                    f"a pod may take at most {limits.grace_seconds} seconds to stop. Delete it with a shorter "
                    "--grace-period, or without one",
                    "Kueue frees the quota of a pod while it stops, but the pod keeps its accelerators",
                ),
                Rejection(
                    "gracePeriodSeconds of a pod on a node",
                    f"{_NOT_ON_A_NODE} || request.?options.?gracePeriodSeconds.orValue("
                    "oldObject.spec.?terminationGracePeriodSeconds.orValue(30)) >= "
                    "oldObject.metadata.?deletionGracePeriodSeconds.orValue(1)",
                    "a pod on a node can't be deleted with --force or --grace-period=0, or with a shorter period while "
                    "it already ends. Delete it without them. If its node has failed, ask an administrator",
                    "the pod would no longer exist or count, but the node might still run its containers",
                ),
            ),
            conditions=_MEMBER,
        ),
        AdmissionPolicy(
            "hpkit-member-autoscalers",
            (
                ResourceRule(("autoscaling",), ("horizontalpodautoscalers",)),
                ResourceRule(("keda.sh",), ("scaledobjects",)),
            ),
            BOTH,
            (
                Rejection(
                    "spec.scaleTargetRef",
                    f"object.?spec.?scaleTargetRef.?kind.orValue('{SCALABLE}') == '{SCALABLE}'",
                    f"an autoscaler can only scale a {SCALABLE}. Set the number of a job's pods in the job",
                    f"Kueue counts each new pod of a {SCALABLE}, but not those of a job that grows while it runs",
                ),
            ),
            conditions=_MEMBER,
        ),
        AdmissionPolicy(
            "hpkit-member-services",
            (ResourceRule(("",), ("services",)), ResourceRule(("networking.k8s.io",), ("ingresses",))),
            BOTH,
            (_publication(limits),),
            conditions=_MEMBER,
        ),
        AdmissionPolicy(
            "hpkit-member-secrets",
            (ResourceRule(("",), ("secrets",)),),
            CREATE,
            (
                Rejection(
                    "type",
                    "object.?type.orValue('') != 'kubernetes.io/service-account-token'",
                    "a Secret of type kubernetes.io/service-account-token holds the permissions of a service account. "
                    "Use another type",
                    "Kubernetes would write the token of a service account in the namespace into the Secret",
                ),
            ),
            conditions=_MEMBER,
        ),
    ]


def _metadata(root: str, pod_templates: str) -> str:
    """Return CEL for the metadata of a job, of its pod templates, and of the Jobs of a JobSet."""
    return (
        f"[{root}.metadata] + {pod_templates}.map(template, template.?metadata.orValue({{}})) + "
        f"{root}.?spec.?replicatedJobs.orValue([]).map(job, job.?template.?metadata.orValue({{}}))"
    )


def _space_ranks(teams: Sequence[TeamPlan]) -> dict[str, str]:
    """Return the class of spaces by namespace, of teams that have one."""
    return {team.namespace: label for team in teams if (label := team.space_priority_label) is not None}


def _of_queues(ranks: dict[str, list[str]], spaces: dict[str, str]) -> tuple[Rejection, ...]:
    """Return the rejections about queue and priority class.

    ranks: the classes of each namespace that doesn't have all of them. spaces: the class of spaces in each namespace
    that has one.

    Kueue counts a Deployment's pods one by one. Their class comes from the Deployment's label, or else the template's.
    The pods of a space have all labels of the space (jupyter-infra/jupyter-k8s, deployment_builder.go, buildPodLabels).
    """
    bounds = "{" + ", ".join(f"'{name}': {['', *labels]}" for name, labels in sorted(ranks.items())) + "}"
    labels = [f"object.{place}.?labels[?'{_RANK}'].orValue('')" for place in ("metadata", "?spec.?template.?metadata")]
    suspended = [f".?spec.{path}.orValue(false)" for path in ("?suspend", "?runPolicy.?suspend")]
    unchanged = " && ".join(f"object{path} == oldObject{path}" for path in suspended)
    return (
        Rejection(
            "metadata.ownerReferences",
            f"object{_OWNERS} == (request.operation == 'CREATE' ? [] : oldObject{_OWNERS})",
            "only controllers write metadata.ownerReferences. Remove them",
            "Kueue doesn't count objects that claim to belong to an admitted job",
        ),
        Rejection(
            "metadata.labels",
            f"object.metadata.?labels[?'{_QUEUE}'].orValue('') == request.namespace + '-localqueue'",
            f"the label {_QUEUE} must name the team's queue, `<namespace>-localqueue`",
            "jobs without a queue aren't counted by any quota",
        ),
        Rejection(
            _RANK,
            _ranked(bounds if ranks else "", labels, spaces),
            f"the label {_RANK} must name one of the team's priorityClasses in the organization file"
            + ("; that of a Workspace, the team's spacePriorityClass" if spaces else ""),
            "the job would get a priority that the team may not use",
        ),
        Rejection(
            "spec.runPolicy.schedulingPolicy.priorityClass",
            "object.?spec.?runPolicy.?schedulingPolicy.?priorityClass.orValue('') == ''",
            "spec.runPolicy.schedulingPolicy.priorityClass isn't allowed. Set the priority with the label "
            "kueue.x-k8s.io/priority-class",
            "Kueue accepts any PriorityClass of the cluster as the job's priority, including system classes",
        ),
        Rejection(
            "types of replicas",
            " && ".join(
                f"object.?spec.?{field}.orValue({{}}).all(name, name in {cel_list(names)})"
                for field, names in REPLICA_TYPES.items()
            ),
            "the types of replicas must be spelled as Kueue counts them. "
            + "; ".join(f"{field}: {', '.join(names)}" for field, names in REPLICA_TYPES.items()),
            "the training operator runs replicas with any name in a TFJob, but Kueue counts only these",
        ),
        Rejection(
            "spec.suspend",
            f"request.operation == 'CREATE' || ({unchanged})",
            "only Kueue sets spec.suspend of an existing job. To stop the job, delete it",
            "the job would run without quota, or run again while its old pods still end",
        ),
        Rejection(
            "labels and annotations of an existing job",
            f"variables.isPod || request.operation == 'CREATE' || request.resource.group == 'apps' || "
            f"({_kueues_keys_stay(except_for=_RANK)})",
            f"labels and annotations of {_KUEUE} can't change, except for the job's priority class. Delete the job and "
            "create another",
            "Kueue would stop a running job and start it again while its old pods still end",
        ),
    )


def _of_run_times(teams: Sequence[TeamPlan]) -> Rejection:
    """Return the rejection of jobs without a run time, or with a longer one than their team's; it can't change."""
    most = {team.namespace: team.run_seconds[1] for team in teams if team.run_seconds is not None}
    literal = "{" + ", ".join(f"'{name}': {seconds}" for name, seconds in sorted(most.items())) + "}"
    label = f"object.metadata.?labels[?'{_RUN_TIME}'].orValue('')"
    limited = (
        f"request.operation != 'CREATE' || request.resource.group in {cel_list(_SERVING)} || "
        f"!(request.namespace in {literal}) || ({label}.matches('^[1-9][0-9]{{0,8}}$') && "
        f"int({label}) <= {literal}[request.namespace])"
    )
    return Rejection(
        _RUN_TIME,
        limited if most else "true",
        f"the label {_RUN_TIME} must be the job's run time in seconds, at most the team's maxRunTime.limit in the "
        "organization file",
        "the job would hold its quota without end, and nobody could tell when it is free",
    )


def _ranked(bounds: str, labels: Sequence[str], spaces: dict[str, str]) -> str:
    """Return CEL for whether a rank is one of the team's; bounds: the map of those, empty where no team has any."""
    of_work = " && ".join(f"{label} in {bounds}[request.namespace]" for label in labels)
    work = f"!(request.namespace in {bounds}) || ({of_work})" if bounds else "true"
    if not spaces:
        return work
    literal = "{" + ", ".join(f"'{name}': '{label}'" for name, label in sorted(spaces.items())) + "}"
    of_space = f"request.resource.group == '{SPACES_GROUP}' && request.namespace in {literal}"
    return f"({of_space}) ? {labels[0]} == {literal}[request.namespace] : ({work})"


def _of_kueues_keys() -> Rejection:
    """Return the rejection of Kueue's labels and annotations, except for those that users set.

    Existing keys can stay: Kueue writes some into the templates of a job that it starts. Its webhooks write others
    immediately: `managed` into pods and Deployments, `role-hash` into pods, and into a Deployment which kind suspends
    its pods. It reads `role-hash` only of pods in a group, which members can't create, because Kueue keeps each pod of
    an admitted group, and the group's quota, until an administrator deletes the Workload (0.19.2, pkg/controller/jobs/
    pod/pod_controller.go, Run, constructGroupPodSets, Finished).
    """
    written = " || ".join(
        f"key == '{_KUEUE}{key}' && meta.annotations[key] == '{text}'" for key, text in _OF_LWS.items()
    )
    of_lws = f"(request.resource.group == '{LWS_GROUP}' && ({written}))"

    def only_known(field: str) -> str:
        value = f"meta.{field}[key]"
        return (
            f"variables.metadata.all(meta, meta.?{field}.orValue({{}}).all(key, "
            f"!key.split('/')[0].endsWith('kueue.x-k8s.io') || key in {cel_list(WORK_KEYS)} || "
            f"(variables.isPod && key == '{_ROLE}') || "
            f"(key == '{_KUEUE}managed' && {value} == 'true' && (variables.isPod || request.resource.group == 'apps')) "
            f"|| (key == '{_KUEUE}pod-suspending-parent' && request.resource.group == 'apps' && "
            f"{value} == request.kind.kind.lowerAscii()) || "
            f"{of_lws if field == 'annotations' else 'false'} || "
            f"variables.before.exists(old, old.?{field}[?key].orValue('') == {value})))"
        )

    return Rejection(
        "labels and annotations of kueue.x-k8s.io",
        f"{only_known('labels')} && {only_known('annotations')}",
        "labels and annotations of kueue.x-k8s.io may be: "
        + ", ".join(key.removeprefix(_KUEUE) for key in WORK_KEYS)
        + ". Remove the others. Instead of a pod group, use a Job",
        "with Kueue's internal labels, a pod could use the quota of another pod, and members can't end a pod group",
    )


def _kueues_keys_stay(*, except_for: str = "") -> str:
    """Return CEL for whether no label or annotation of Kueue changes, except for one."""
    fields = [[f"{root}.metadata.?{field}.orValue({{}})" for root in ("object", "oldObject")] for field in _METADATA]
    return " && ".join(
        f"{one}.all(key, !key.startsWith('{_KUEUE}') || key == '{except_for}' || {one}[?key] == {other}[?key])"
        for new, old in fields
        for one, other in ((new, old), (old, new))
    )


def _of_running_pods(limits: PodLimits) -> tuple[Rejection, ...]:
    finalizers = ".metadata.?finalizers.orValue([])"
    return (
        Rejection(
            "spec.schedulingGates",
            "object.spec.?schedulingGates.orValue([]) == oldObject.spec.?schedulingGates.orValue([])",
            "only Kueue removes spec.schedulingGates, when the queue has capacity",
            "the pod would start without quota",
        ),
        Rejection(
            "metadata",
            f"{_kueues_keys_stay()} && "
            f"oldObject{finalizers}.all(name, !name.startsWith('{_KUEUE}') || name in object{finalizers})",
            f"only Kueue changes labels, annotations, and finalizers of {_KUEUE} on an existing pod",
            "Kueue stops counting a pod without its label",
        ),
        Rejection(
            "spec.containers[].image",
            IMAGES.format(
                spec="object.spec", repositories=limits.repositories.rstrip("/"), prefix=len(NAMESPACE_PREFIX)
            ),
            IMAGES_MESSAGE,
            "nodes pull images for all teams, so any pod could read them",
        ),
    )


def _publication(limits: PodLimits) -> Rejection:
    types = cel_list(("ClusterIP", "ExternalName", *(name for name in limits.publish if name != "Ingress")))
    kept = "request.operation == 'UPDATE' && oldObject.spec.?type == object.spec.?type"
    service = f"object.spec.?type.orValue('ClusterIP') in {types} || ({kept})"
    ingress = "true" if "Ingress" in limits.publish else "false"
    return Rejection(
        "spec.type",
        f"request.resource.resource == 'ingresses' ? {ingress} : ({service})",
        "members publish nothing outside the cluster: the type must be ClusterIP or ExternalName, unless "
        "teamLimits.publish in the organization file names the type",
        "the service would be reachable from outside the cluster",
    )
