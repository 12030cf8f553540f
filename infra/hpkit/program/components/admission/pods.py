"""Admission policies for all pod specifications of a team: in a pod, a job, or a Workload of Kueue."""

from collections.abc import Mapping, Sequence

from hpkit.plan.model import NAMESPACE_PREFIX, TeamPlan
from hpkit.plan.team_limits import MIG_PREFIX, NOT_READY, REPLICA_TYPES, TOLERATED_SECONDS, PodLimits
from hpkit.program.components.admission.model import (
    BOTH,
    CREATE,
    IS_MEMBER,
    AdmissionPolicy,
    Rejection,
    ResourceRule,
    cel_list,
)

__all__ = [
    "FRAMEWORKS",
    "IMAGES",
    "IMAGES_MESSAGE",
    "INFERENCE_GROUP",
    "LWS_GROUP",
    "SPACES_GROUP",
    "pod_policies",
    "templates",
]

LWS_GROUP = "leaderworkerset.x-k8s.io"
INFERENCE_GROUP = "inference.sagemaker.aws.amazon.com"
SPACES_GROUP = "workspace.jupyter.org"
# API groups of the kinds that make pods.
FRAMEWORKS = (
    "apps",
    "batch",
    INFERENCE_GROUP,
    "jobset.x-k8s.io",
    "kubeflow.org",
    LWS_GROUP,
    "ray.io",
    "sagemaker.amazonaws.com",
    "workload.codeflare.dev",
    SPACES_GROUP,
)
_SPECS = "{0}.map(template, template.?spec.orValue({{}}))"


def pod_policies(teams: Sequence[TeamPlan], limits: PodLimits) -> list[AdmissionPolicy]:
    """Return the policies for pods, for pod templates, and for the Workloads that Kueue counts.

    Controllers create the pods of a job, so these policies check all requests, not only members'. A rejected Workload
    gets no quota, regardless of its job's kind.
    """
    accounts = {
        team.namespace: ["default", *team.spec.service_accounts] for team in teams if team.spec.service_accounts
    }
    rejections = _rejections(accounts, limits)
    return [
        AdmissionPolicy(
            "hpkit-team-pods",
            (ResourceRule(("",), ("pods",)),),
            CREATE,
            rejections,
            variables={"changed": "true", "specs": "[object.spec]"},
        ),
        AdmissionPolicy(
            "hpkit-team-jobs",
            (ResourceRule(FRAMEWORKS, ("*",)),),
            BOTH,
            rejections,
            # Kueue writes into templates itself when it starts a job.
            conditions={"created-or-changed-by-a-member": f"request.operation == 'CREATE' || {IS_MEMBER}"},
            variables={
                "specs": _SPECS.format(templates("object")),
                "before": f"request.operation == 'CREATE' ? [] : {_SPECS.format(templates('oldObject'))}",
                "changed": "request.operation == 'CREATE' || variables.specs != variables.before",
            },
        ),
        AdmissionPolicy(
            "hpkit-team-workloads",
            (ResourceRule(("kueue.x-k8s.io",), ("workloads",)),),
            BOTH,
            (*rejections, *_ranks(teams)),
            variables={
                "specs": "object.spec.podSets.map(podSet, podSet.template.spec)",
                "changed": "request.operation == 'CREATE' || object.spec.podSets != oldObject.spec.podSets",
                # v1beta1 has priorityClassName and priorityClassSource, v1beta2 has priorityClassRef.
                "rank": "object.spec.?priorityClassRef.?name.orValue(object.spec.?priorityClassName.orValue(''))",
                "rankSource": "object.spec.?priorityClassRef.?group.orValue("
                "object.spec.?priorityClassSource.orValue(''))",
                "rankChanged": "request.operation == 'CREATE' || "
                "object.spec.?priorityClassRef != oldObject.spec.?priorityClassRef || "
                "object.spec.?priorityClassName != oldObject.spec.?priorityClassName",
            },
        ),
    ]


def templates(root: str) -> str:
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


def _rejections(accounts: Mapping[str, list[str]], limits: PodLimits) -> tuple[Rejection, ...]:
    """Return the rejections; accounts: the service accounts of each namespace that has others than its default one."""

    def rejection(field: str, expression: str, message: str, reason: str) -> Rejection:
        return Rejection(field, f"!variables.changed || variables.specs.all(spec, {expression})", message, reason)

    # A raw template can use the old name of serviceAccountName, which the API server sets only on pods.
    literal = "{" + ", ".join(f"'{name}': {given}" for name, given in sorted(accounts.items())) + "}"
    allowed = f"{literal}[?request.namespace].orValue(['default'])" if accounts else "['default']"
    names = [f"spec.?{field}.orValue('default')" for field in ("serviceAccountName", "serviceAccount")]
    used = " && ".join(f"({name} == '' || {name} in {allowed})" for name in names)
    volumes = " || ".join(f"volume.?{volume_type}.hasValue()" for volume_type in limits.volumes)
    return (
        rejection(
            "spec.priorityClassName",
            "!spec.?priorityClassName.orValue('').startsWith('system-')",
            "spec.priorityClassName must not be a system class. Set the priority with the label "
            "kueue.x-k8s.io/priority-class",
            "the pod would evict pods of other teams, and Kueue uses the class as the priority of the whole job",
        ),
        rejection(
            "spec.nodeName",
            "spec.?nodeName.orValue('') == ''",
            "spec.nodeName bypasses the scheduler. Use nodeSelector or affinity",
            "the pod would run on instances that its queue didn't assign, despite their taints",
        ),
        rejection(
            "spec.tolerations",
            f"spec.?tolerations.orValue([]).all(toleration, {_tolerated(limits)})",
            "spec.tolerations may name accelerators, EFA, taints of the organization file, and teamLimits.tolerations; "
            f"not-ready and unreachable for at most {TOLERATED_SECONDS} seconds. Remove the others",
            "the pod would run on nodes that are faulty, being checked, being removed, or reserved for others",
        ),
        rejection(
            "spec.serviceAccountName",
            used,
            "spec.serviceAccountName must be `default`, or one of the team's serviceAccounts in the organization file",
            "a pod has the permissions of its service account, in the cluster and, by Pod Identity, in AWS",
        ),
        rejection(
            "spec.terminationGracePeriodSeconds",
            f"spec.?terminationGracePeriodSeconds.orValue(30) >= 1 && "
            f"spec.?terminationGracePeriodSeconds.orValue(30) <= {limits.grace_seconds}",
            f"spec.terminationGracePeriodSeconds must be 1–{limits.grace_seconds} seconds "
            "(teamLimits.terminationGracePeriodSeconds in the organization file)",
            "Kueue frees the quota of a job while its pods stop, but the pods keep their accelerators",
        ),
        rejection(
            "spec.volumes",
            f"spec.?volumes.orValue([]).all(volume, {volumes})",
            f"spec.volumes must be of the types {', '.join(limits.volumes)}. For shared data, use a claim",
            "other types can access the node's files, or mount remote storage with the node's permissions",
        ),
        rejection(
            "spec.containers[].image",
            IMAGES.format(spec="spec", repositories=limits.repositories.rstrip("/"), prefix=len(NAMESPACE_PREFIX)),
            IMAGES_MESSAGE,
            "nodes pull images for all teams, so any pod could read them",
        ),
        rejection(
            "spec.containers[].resources",
            f"request.resource.group == 'apps' || {_REQUESTED}",
            "a container with a limit of cpu or memory must request it too. Add resources.requests.cpu and memory, for "
            "example with the values of the limits",
            "Kueue would count the default requests, but the pod gets its limits",
        ),
        rejection(
            "spec.resourceClaims",
            "spec.?resourceClaims.orValue([]).size() == 0",
            "spec.resourceClaims isn't allowed. Request accelerators as resources, such as nvidia.com/gpu",
            "queues don't count claimed devices",
        ),
        rejection(
            "spec.affinity",
            f"({_TERMS}).all(term, !term.?namespaceSelector.hasValue() && "
            "term.?namespaces.orValue([]).all(name, name == request.namespace))",
            "spec.affinity.podAffinity and podAntiAffinity must not select pods of other namespaces. Remove "
            "namespaces and namespaceSelector from their terms",
            "such a pod can keep the pods of other teams off its nodes",
        ),
    )


# The scheduler heeds the anti-affinity of running pods when it places others (Kubernetes, "Assigning Pods to Nodes",
# inter-pod affinity and anti-affinity; "Namespace selector").
_TERMS = " + ".join(
    f"spec.?affinity.?{field}.?requiredDuringSchedulingIgnoredDuringExecution.orValue([]) + "
    f"spec.?affinity.?{field}.?preferredDuringSchedulingIgnoredDuringExecution.orValue([])"
    ".map(preferred, preferred.?podAffinityTerm.orValue({}))"
    for field in ("podAffinity", "podAntiAffinity")
)

# Where the second part of an image is the stack, the third is the team (registry/stack/team/name:tag). A node also runs
# a local image by the first digits of its ID (containerd, internal/cri/server/images, LocalResolve; go-digest,
# digestset, Lookup). `sha256:1a` is a valid image name.
IMAGES = (
    "({spec}.?initContainers.orValue([]) + {spec}.?containers.orValue([])).all(container, "
    "!container.?image.orValue('').startsWith('sha256:') && ("
    "container.?image.orValue('').split('/').size() < 3 || container.image.split('/')[1] != '{repositories}' || "
    "container.image.split('/')[2] == request.namespace.substring({prefix})))"
)
IMAGES_MESSAGE = (
    "the image must not be in another team's repository, or named by an ID such as sha256:1a. Push it to a repository "
    "of this team, and use its name there"
)
# For a pod template, Kueue sets default requests before it reads limits (0.19.2, pkg/workload/resources.go,
# AdjustResources). The API server reads limits first (SetDefaults_Pod, then LimitRanger). Kueue counts the pods of a
# Deployment one by one, after the API server has completed them.
_REQUESTED = (
    "(spec.?initContainers.orValue([]) + spec.?containers.orValue([])).all(container, ['cpu', 'memory'].all(name, "
    "!container.?resources.?limits[?name].hasValue() || container.?resources.?requests[?name].hasValue()))"
)


def _tolerated(limits: PodLimits) -> str:
    key = "toleration.?key.orValue('')"
    return (
        f"{key} in {cel_list(limits.tolerations)} || {key}.startsWith('{MIG_PREFIX}') || "
        f"({key} in {cel_list(NOT_READY)} && toleration.?effect.orValue('') == 'NoExecute' && "
        f"toleration.?tolerationSeconds.orValue({TOLERATED_SECONDS + 1}) <= {TOLERATED_SECONDS})"
    )


def _ranks(teams: Sequence[TeamPlan]) -> tuple[Rejection, ...]:
    """Return the rejections of a Workload's rank, which Kueue reads from a job of any kind."""
    labels = {
        team.namespace: sorted({*team.priority_labels, *([space] if (space := team.space_priority_label) else [])})
        for team in teams
        if team.spec.priority_classes
    }
    bounds = "{" + ", ".join(f"'{name}': {given}" for name, given in sorted(labels.items())) + "}"
    sources = cel_list(("kueue.x-k8s.io", "kueue.x-k8s.io/workloadpriorityclass"))
    own = f"variables.rankSource in {sources} && variables.rank in {bounds}[request.namespace]"
    return (
        Rejection(
            "spec.priorityClassRef",
            "!variables.rankChanged || !variables.rank.startsWith('system-') || variables.rankSource in " + sources,
            "the priority must not be a system PriorityClass. Set it with the label kueue.x-k8s.io/priority-class",
            "the job would preempt the jobs of all teams",
        ),
        Rejection(
            "spec.priorityClassRef of the team",
            f"!variables.rankChanged || variables.rank == '' || !(request.namespace in {bounds}) || ({own})"
            if labels
            else "true",
            "the priority must be one of the team's priorityClasses in the organization file, set with the label "
            "kueue.x-k8s.io/priority-class",
            "the job would get a priority that the team may not use",
        ),
    )
