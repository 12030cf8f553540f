"""Admission policies that end a job's pods with the job, so that none runs after Kueue frees its quota.

Kueue frees the quota of a job that is being deleted, is deleted, or reports its end, without checking the pods. Source:
Kueue 0.19.2, pkg/controller/jobframework/reconciler.go, loadJob, finalize, step 3. If another job owns a job, Kueue
leaves its size to the owner's controller (same file, isTopLevelJob). In a running job, Kueue compares the containers
with what it admitted, and no other field of the pods (pkg/util/equality/podset.go, comparePodTemplate). It writes the
instance type into nodeSelector once.
"""

from hpkit.plan.team_limits import REPLICA_TYPES
from hpkit.program.components.admission.model import BOTH, IS_MEMBER, AdmissionPolicy, Rejection, ResourceRule
from hpkit.program.components.admission.pods import FRAMEWORKS, LWS_GROUP, templates

__all__ = ["lifecycle_policies"]

_MEMBER = {"sent-by-a-member": IS_MEMBER}
_WORK = (ResourceRule(("",), ("pods",)), ResourceRule(FRAMEWORKS, ("*",)))
_KUBEFLOW = "kubeflow.org"
_JOB_SETS = "jobset.x-k8s.io"
_CONTROLLED = "oldObject.metadata.?ownerReferences.orValue([]).exists(owner, owner.?controller.orValue(false))"
# The other objects that members may create.
_OBJECTS = (
    ResourceRule(("",), ("configmaps", "persistentvolumeclaims", "secrets", "services")),
    ResourceRule(("autoscaling", "keda.sh"), ("*",)),
)
# The API server adds it to each claim (StorageObjectInUseProtection).
_CLAIMS_OWN = "kubernetes.io/pvc-protection"
_FINALIZERS = ".metadata.?finalizers.orValue([])"
# Kueue's webhook adds it to a pod; Kueue removes it only from pods.
_KUEUES_OWN = "kueue.x-k8s.io/managed"
_CLEAN = ".?spec.?runPolicy.?cleanPodPolicy.orValue('')"
_SUSPENDS = ("?suspend", "?runPolicy.?suspend")
# Groups whose kinds Kueue admits as a whole. It counts the pods of a Deployment or a space one by one.
_RUN_AS_A_WHOLE = ("batch", _JOB_SETS, _KUBEFLOW, LWS_GROUP, "ray.io", "sagemaker.amazonaws.com")
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
# Kueue admits each group of a LeaderWorkerSet by itself, so their number can change.
_SAME_REPLICAS = f"(request.resource.group == '{LWS_GROUP}' || object.?spec.?replicas == oldObject.?spec.?replicas)"


def lifecycle_policies() -> list[AdmissionPolicy]:
    """Return the policies of how work is deleted, changed while it runs, and reported as ended."""
    return [
        AdmissionPolicy("hpkit-member-orphans", _WORK, ("DELETE",), (_orphans(), _parts()), conditions=_MEMBER),
        AdmissionPolicy("hpkit-member-lifecycle", _WORK, BOTH, _lifecycle(), conditions=_MEMBER),
        AdmissionPolicy("hpkit-member-finalizers", _OBJECTS, BOTH, (_finalizers(),), conditions=_MEMBER),
        AdmissionPolicy(
            "hpkit-team-sizes",
            (ResourceRule(_RUN_AS_A_WHOLE, ("*", "*/scale")),),
            ("UPDATE",),
            (_sizes(),),
        ),
        AdmissionPolicy(
            "hpkit-team-ends",
            (ResourceRule((_KUBEFLOW, _JOB_SETS), ("*/status",)),),
            ("UPDATE",),
            (_ends(), _restarts()),
        ),
    ]


def _sizes() -> Rejection:
    """Return the rejection of changing the pods of a job, by a member or by an autoscaler.

    Kueue admits a job as a whole, so its pods aren't gated one by one. The controller of a job that grows starts pods
    at once; Kueue then stops the job and frees its quota, while its pods still end (0.19.2, ensureOneWorkload in
    pkg/controller/jobframework/reconciler.go). It changes a job itself only when it starts or stops it. In a running
    job, Kueue compares only the containers, so other changes could move pods to another team's instance type.

    Members can't change a job that waits either: if Kueue admits it at that moment, it counts the old number and starts
    the new one, and doesn't correct it (updateWorkloadToMatchJob, same file; seen with 0.19.2).
    """
    suspended = (f"{root}.?spec.{path}.orValue(false)" for root in ("object", "oldObject") for path in _SUSPENDS)
    return Rejection(
        "number and templates of pods",
        f"(!({IS_MEMBER}) && ({' || '.join(suspended)})) || ("
        + " && ".join(f"object.?spec.?{field} == oldObject.?spec.?{field}" for field in _FIELDS_OF_PODS)
        + f" && {_SAME_REPLICAS}"
        + ")",
        "the number of pods and the pod templates of a job can't change. Delete the job and create another",
        "Kueue doesn't count the new pods, which keep their instances for the grace period after it stops the job",
    )


def _orphans() -> Rejection:
    """Return the rejection of deletions that orphan.

    Without a policy in the request, the API server follows the finalizers of the object, then the kind's default. For
    Jobs of batch/v1, the default orphans (Kubernetes API reference, DeleteOptions; pkg/registry/batch/job/strategy.go,
    DefaultGarbageCollectionPolicy).
    """
    finalizers = f"oldObject{_FINALIZERS}"
    default = (
        f"'orphan' in {finalizers} ? 'Orphan' : ('foregroundDeletion' in {finalizers} ? 'Foreground' : "
        "(request.resource.group == 'batch' && request.resource.resource == 'jobs' ? 'Orphan' : 'Background'))"
    )
    # propagationPolicy and the older orphanDependents exclude each other.
    older = f"request.?options.?orphanDependents.optMap(orphans, orphans ? 'Orphan' : 'Background').orValue({default})"
    return Rejection(
        "propagationPolicy",
        f"request.?options.?propagationPolicy.orValue({older}) != 'Orphan'",
        "a deletion must not orphan the pods: use --cascade=background or --cascade=foreground. An API client sets "
        "propagationPolicy, since the default of Jobs is Orphan",
        "orphaned pods keep running, but Kueue frees their quota",
    )


def _parts() -> Rejection:
    """Return the rejection of deleting a Job that another object created; see _restarts."""
    return Rejection(
        "deletion of a controlled Job",
        f"request.resource.group != 'batch' || !{_CONTROLLED}",
        "this Job belongs to another object, such as a JobSet, which would create it again. Delete its owner instead",
        "Kueue frees the quota when a Job succeeds, but JobSet runs a deleted Job again",
    )


def _lifecycle() -> tuple[Rejection, ...]:
    pod = "request.resource.group == '' && request.resource.resource == 'pods'"
    old = f"(request.operation == 'CREATE' ? ({pod} ? ['{_KUEUES_OWN}'] : []) : oldObject{_FINALIZERS})"
    return (
        Rejection(
            "metadata.finalizers",
            f"object{_FINALIZERS}.all(name, name in {old}) && "
            f"(request.operation == 'CREATE' || {old}.all(name, name in object{_FINALIZERS}))",
            "only controllers write metadata.finalizers. Don't change them",
            "Kueue frees the quota of a job that is being deleted, but a finalizer keeps the job and its pods",
        ),
        Rejection(
            "metadata.finalizers of pod templates",
            f"{templates('object')}.all(template, template.?metadata.?finalizers.orValue([]).size() == 0)",
            "metadata.finalizers of a pod template aren't allowed. Remove them",
            "deleted pods would remain, so the namespace couldn't be deleted",
        ),
        Rejection(
            "changes to a controlled object",
            f"request.operation == 'CREATE' || !{_CONTROLLED}",
            "this object belongs to another one, such as a Job to its JobSet. Change its owner instead",
            "Kueue counts only the owner: not larger parts, or a pod whose labels no longer match its owner",
        ),
        Rejection(
            "spec.elasticPolicy",
            "!object.?spec.?elasticPolicy.?metrics.hasValue() && (request.resource.group != "
            "'sagemaker.amazonaws.com' || !object.?spec.?elasticPolicy.hasValue())",
            "spec.elasticPolicy must not have metrics, and a HyperPodPyTorchJob can't have spec.elasticPolicy. Set the "
            "number of pods in replicas",
            "the operator would add pods to a running job, which Kueue doesn't count",
        ),
        Rejection(
            "spec.runPolicy.cleanPodPolicy of an MPIJob",
            f"request.kind.kind != 'MPIJob' || object{_CLEAN} in ['Running', 'All']",
            "spec.runPolicy.cleanPodPolicy of an MPIJob must be Running or All",
            "workers would keep running after the launcher ends, and the job would keep its quota",
        ),
        Rejection(
            "spec.runPolicy.cleanPodPolicy",
            f"request.operation == 'CREATE' || object{_CLEAN} == oldObject{_CLEAN}",
            "spec.runPolicy.cleanPodPolicy can't change. Delete the job and create another",
            "if it changes to None before the cleanup of an ended job, pods remain that no quota counts",
        ),
        Rejection(
            "spec.replicatedJobs[].template.spec.ttlSecondsAfterFinished",
            "object.?spec.?replicatedJobs.orValue([]).all(job, "
            "!job.?template.?spec.?ttlSecondsAfterFinished.hasValue())",
            "ttlSecondsAfterFinished of Jobs in a JobSet isn't allowed. Set spec.ttlSecondsAfterFinished of the JobSet",
            "Kueue frees the quota when a Job succeeds, but JobSet runs a deleted Job again",
        ),
    )


def _finalizers() -> Rejection:
    old = f"(request.operation == 'CREATE' ? ['{_CLAIMS_OWN}'] : oldObject{_FINALIZERS})"
    return Rejection(
        "metadata.finalizers",
        f"object{_FINALIZERS}.all(name, name in {old})",
        "only controllers write metadata.finalizers. Remove those that you add",
        "a finalizer that no controller removes keeps the namespace, so the team can't be deleted",
    )


def _ends() -> Rejection:
    """Return the rejection of an end that leaves pods: with `None`, the default, operators leave what still runs.

    Source: kubeflow/training-operator 1.7.0, pkg/controller.v1/common/job.go, DeletePodsAndServices. The operator tries
    again, and whenever a pod of the job changes; until then the job runs, and Kueue counts it.
    """

    def status(root: str, field: str, empty: str) -> str:
        # Operators write null for empty values.
        return f"{root}.?status.?{field}.optMap(value, value == null ? {empty} : value).orValue({empty})"

    def ended(root: str) -> str:
        conditions = status(root, "conditions", "[]")
        return f"{conditions}.exists(item, item.type in ['Succeeded', 'Failed'] && item.status == 'True')"

    replicas = status("object", "replicaStatuses", "{}")
    return Rejection(
        "status.replicaStatuses",
        f"!{ended('object')} || {ended('oldObject')} || object{_CLEAN} in ['Running', 'All'] || "
        f"{replicas}.all(role, object.status.replicaStatuses[role].?active.orValue(0) == 0)",
        "a job whose cleanPodPolicy is None ends when all of its pods have ended. Set spec.runPolicy.cleanPodPolicy to "
        "Running to end them with the job",
        "Kueue frees the quota when a job ends, but the operator leaves running pods",
    )


def _restarts() -> Rejection:
    """Return the rejection of a JobSet's restart after one of its Jobs has succeeded: all of them would run again.

    When a Job succeeds while others run, Kueue frees its quota and never counts it again. Source: Kueue 0.19.2,
    pkg/controller/jobs/jobset/jobset_controller.go, ReclaimablePods, and pkg/webhooks/workload_webhook.go,
    validateReclaimablePodsUpdate. JobSet writes status.restarts, and how many have succeeded, before it deletes the
    Jobs (0.12.0, pkg/controllers/jobset_controller.go, reconcile).
    """
    none_succeeded = " && ".join(
        f"{root}.?status.?replicatedJobsStatus.orValue([]).all(job, job.?succeeded.orValue(0) == 0)"
        for root in ("oldObject", "object")
    )
    return Rejection(
        "status.restarts",
        f"request.resource.group != '{_JOB_SETS}' || "
        f"object.?status.?restarts.orValue(0) <= oldObject.?status.?restarts.orValue(0) || ({none_succeeded})",
        "a JobSet can't restart after one of its Jobs has succeeded. Delete the JobSet and create another",
        "Kueue frees the quota when a Job succeeds, but a restart runs it again",
    )
