"""`hpkit job check` and the cluster agree: each case is checked, and then submitted to a real API server and Kueue."""

import copy
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from hpkit.cluster.jobs.check import check, read_manifests
from hpkit.cluster.jobs.kinds import PodTemplate, templates, units
from hpkit.cluster.jobs.pod_security import violations
from hpkit.cluster.jobs.resources import requests_of
from hpkit.cluster.jobs.server import Server
from hpkit.cluster.live.kubernetes import Kubernetes
from hpkit.kueue.model import per_unit
from hpkit.plan.capacity import quantity
from hpkit.project import load_stack
from tests.cluster.jobs.builders import text_of
from tests.conftest import NIGHTLY
from tests.program.cloud import KUEUE
from tests.running import eventually, making
from tests.security.kinds import CRDS, any_fields
from tests.security.members import ATTACK, CORE, JOBS, NAMESPACE, member, tidy, tried

pytestmark = pytest.mark.platform

PLAN = load_stack("handson-dev").plans["dev"]
QUEUE = {"kueue.x-k8s.io/queue-name": f"{NAMESPACE}-localqueue", **ATTACK}
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"
GPU = {"limits": {"nvidia.com/gpu": 4}, "requests": {"cpu": "4", "memory": "16Gi"}}
SHM = {"volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}  # noqa: S108 - in the container
NOWHERE = {"node.kubernetes.io/instance-type": "nowhere"}


@pytest.fixture(scope="module")
def john(instance):
    return member(instance, "john")


@pytest.fixture(scope="module")
def server(john):
    """Return the API server as a member of john reaches it."""
    return Server(Kubernetes(john._client))


@pytest.fixture(scope="module")
def ray(api):
    """Serve RayJobs, RayClusters, PyTorchJobs, and a RuntimeClass."""
    with making(api) as make:
        for crd in any_fields():
            if crd["spec"]["names"]["kind"] in ("RayJob", "RayCluster", "PyTorchJob"):
                make(CRDS, crd)
        head = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}}
        make("/apis/node.k8s.io/v1/runtimeclasses", {**head, "handler": "kata", "overhead": {"podFixed": OVERHEAD}})
        yield


@pytest.fixture(scope="module")
def free(api):
    """Return the labels of work in a queue that admits everything; without a node, its pods stay pending."""
    amounts = [{"name": name, "nominalQuota": "1000000Gi"} for name in ("cpu", "memory", "nvidia.com/gpu")]
    flavors = [{"name": "free", "resources": amounts}]
    group = {"coveredResources": [each["name"] for each in amounts], "flavors": flavors}
    queues = {
        f"{KUEUE}/resourceflavors": ("ResourceFlavor", {}),
        f"{KUEUE}/clusterqueues": ("ClusterQueue", {"namespaceSelector": {}, "resourceGroups": [group]}),
        f"{KUEUE}/namespaces/{NAMESPACE}/localqueues": ("LocalQueue", {"clusterQueue": "free"}),
    }
    with making(api) as make:
        for folder, (kind, spec) in queues.items():
            version = KUEUE.removeprefix("/apis/")
            make(folder, {"apiVersion": version, "kind": kind, "metadata": {"name": "free"}, "spec": spec})
        yield {**QUEUE, "kueue.x-k8s.io/queue-name": "free"}


@pytest.fixture(autouse=True)
def _tidy(api):
    yield
    tidy(api)


def of(kind, spec, *, version="batch/v1", name="c", labels=QUEUE, **metadata):
    head = {"name": name, "namespace": NAMESPACE, "labels": dict(labels), **metadata}
    return {"apiVersion": version, "kind": kind, "metadata": head, "spec": spec}


def pods(*containers, first=(), **spec):
    """Return a pod template; without containers, one that uses four GPUs."""
    one = {"name": "main", "image": "train", "resources": GPU, **SHM}
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory"}}, *spec.pop("volumes", ())]
    found = {
        "restartPolicy": "Never",
        "initContainers": list(first),
        "containers": list(containers) or [one],
        "volumes": volumes,
        **spec,
    }
    return {"metadata": {"labels": dict(QUEUE), "annotations": {"hpkit.local/run": "1h"}}, "spec": found}


def job(template, **more):
    return of("Job", {"template": template}, **more)


def asking(name, cpu, **more):
    return {"name": name, "image": name, "resources": {"requests": {"cpu": str(cpu), "memory": "1Gi"}}, **more}


ONLY_GPU = {"name": "main", "image": "train", **SHM, "resources": {"limits": {"nvidia.com/gpu": 4}}}
MAIN = {**ONLY_GPU, "resources": {**ONLY_GPU["resources"], "requests": {"cpu": "20", "memory": "8Gi"}}}
PROXY, LOAD = asking("proxy", 20, restartPolicy="Always"), asking("load", 40)


def whole(**resources):
    """Return a Job whose requests are stated for the whole pod."""
    return job(pods(ONLY_GPU, resources=resources))


def ray_of(cluster_more=None, **more):
    worker = {"groupName": "w", "replicas": 1, "minReplicas": 0, "maxReplicas": 40, "rayStartParams": {}}
    template = pods()
    del template["spec"]["restartPolicy"]
    head = copy.deepcopy(template)
    head["spec"]["containers"] = [asking("head", 1)]
    cluster = {
        "headGroupSpec": {"rayStartParams": {}, "template": head},
        "workerGroupSpecs": [{**worker, "template": template}],
        **(cluster_more or {}),
    }
    if more:
        return of("RayJob", {"entrypoint": "x", "rayClusterSpec": cluster, **more}, version="ray.io/v1")
    return of("RayCluster", cluster, version="ray.io/v1")


def stays(kind, replicas, **more):
    template = pods()
    template["metadata"]["labels"]["app"] = "c"
    template["spec"]["restartPolicy"] = "Always"
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "c"}}, "template": template, **more}
    return of(kind, spec, version="apps/v1")


SKYPILOT = of(
    "Pod",
    {
        **pods({**ONLY_GPU, "securityContext": {"capabilities": {"add": ["IPC_LOCK"]}}})["spec"],
        "serviceAccountName": "skypilot-service-account",
        "volumes": [{"name": "fuse", "hostPath": {"path": "/var/run/fuse"}}, {"name": "shm", "emptyDir": {}}],
    },
    version="v1",
)
NOTEBOOK = of(
    "Pod",
    {
        "securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1024"}]},
        "containers": [
            asking(
                "nb",
                4,
                ports=[{"containerPort": 8888, "hostPort": 8888}],
                securityContext={"capabilities": {"add": ["SYS_PTRACE"]}, "seccompProfile": {"type": "Unconfined"}},
            )
        ],
    },
    version="v1",
)
ELASTIC = of(
    "PyTorchJob",
    {
        "elasticPolicy": {"minReplicas": 1, "maxReplicas": 64, "metrics": [{"type": "Resource"}]},
        "pytorchReplicaSpecs": {"Worker": {"replicas": 2, "template": pods({**ONLY_GPU, "name": "pytorch"})}},
    },
    version="kubeflow.org/v1",
)
TARGET = {"type": "Utilization", "averageUtilization": 70}
HPA = of(
    "HorizontalPodAutoscaler",
    {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "c"},
        "minReplicas": 6,
        "maxReplicas": 20,
        "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": TARGET}}],
    },
    version="autoscaling/v2",
)

JOVYAN = {"runAsUser": 1000, "fsGroup": 100}
OVERHEAD = {"cpu": "500m"}
SCRATCH = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}


def apart(number, key, gpus):
    """Return a Job of several pods that must not share a node, or a zone."""
    rule = {"labelSelector": {"matchLabels": {"job-name": "c"}}, "topologyKey": key}
    one = {**ONLY_GPU, "resources": {"limits": {"nvidia.com/gpu": gpus}}}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}}
    return of("Job", {"completions": number, "parallelism": number, "template": pods(one, affinity=rules)})


RACKS = {"topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}


def array(number):
    """Return an indexed Job of which a number of pods run at once, with a GPU each."""
    resources = {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": "1", "memory": "1Gi"}}
    template = pods({**ONLY_GPU, "resources": resources})
    return of("Job", {"completions": 32, "parallelism": number, "completionMode": "Indexed", "template": template})


def selecting(key, value):
    return job(pods(nodeSelector={key: value})), ["node"], {"admits": True, "pods": "didn't match Pod's node affinity"}


def claiming(name):
    volume = {"name": "d", "persistentVolumeClaim": {"claimName": name}}
    found = {"admits": True, "pods": f'persistentvolumeclaim "{name}" not found'}
    return job(pods(volumes=[volume])), ["claim"], found


# The API server authorizes a request before it looks for the kind.
UNKNOWN, FORBIDDEN = {"rejects": "404 page not found"}, {"rejects": "cannot create resource"}

CROWDED = {"admits": True, "pods": "didn't match pod anti-affinity rules"}

# Name → documents, the errors (and warnings, with ?) that `check` reports, and what the cluster then says: the
# CPUs that Kueue counts, whether it ever admits the job, or the text with which it rejects it.
CASES = {
    "a sidecar before an init container": (job(pods(MAIN, first=[PROXY, LOAD])), ["quota"], {"cpu": 60}),
    "a sidecar after an init container": (job(pods(MAIN, first=[LOAD, PROXY])), [], {"cpu": 40, "admits": True}),
    "a whole pod that is too large": (
        whole(requests={"cpu": "400", "memory": "4000Gi"}),
        ["quota"],
        {"cpu": 400, "admits": False},
    ),
    "a whole pod": (whole(requests={"cpu": "40", "memory": "100Gi"}), [], {"cpu": 40, "admits": True}),
    "a limit of the whole pod alone": (whole(limits={"cpu": "40", "memory": "100Gi"}), [], {"cpu": 40, "admits": True}),
    "a higher limit of the whole pod": (
        whole(requests={"cpu": "1", "memory": "1Gi"}, limits={"cpu": "40", "memory": "100Gi"}),
        [],
        {"cpu": 1, "admits": True},
    ),
    "default requests": (job(pods(ONLY_GPU, {"name": "log", "image": "log"})), [], {"cpu": 0.2, "admits": True}),
    "fewer pods than asked": (
        of(
            "Job",
            {"parallelism": 6, "completions": 6, "template": pods()},
            annotations={"kueue.x-k8s.io/job-min-parallelism": "2"},
        ),
        [],
        {"admits": True},
    ),
    "a minimum that is no minimum": (
        job(pods(), annotations={"kueue.x-k8s.io/job-min-parallelism": "1"}),
        ["operator"],
        {"rejects": "job-min-parallelism"},
    ),
    "Ray's autoscaler": (
        ray_of({"enableInTreeAutoscaling": True}, shutdownAfterJobFinishes=True, submissionMode="HTTPMode"),
        ["operator"],
        {"rejects": "enableInTreeAutoscaling"},
    ),
    "Ray's autoscaler in a cluster": (
        ray_of({"enableInTreeAutoscaling": True}),
        ["operator"],
        {"rejects": "enableInTreeAutoscaling"},
    ),
    "a cluster that stays": (
        ray_of(shutdownAfterJobFinishes=False, submissionMode="HTTPMode"),
        ["operator"],
        {"rejects": "should delete the cluster after finishing"},
    ),
    "an elastic job": (ELASTIC, ["team-limits"], {"rejects": "spec.elasticPolicy must not have metrics"}),
    "SkyPilot's pod": (SKYPILOT, ["pod-security", "team-limits"], {"rejects": "forbidden"}),
    "a notebook": (NOTEBOOK, ["pod-security"], {"rejects": "violates PodSecurity"}),
    "a StatefulSet": (stays("StatefulSet", 2), ["kind"], FORBIDDEN),
    "a CronJob": (of("CronJob", {"schedule": "0 3 * * *", "jobTemplate": job(pods())}), ["kind"], FORBIDDEN),
    "a LeaderWorkerSet": (
        of(
            "LeaderWorkerSet",
            {"leaderWorkerTemplate": {"size": 2, "workerTemplate": pods()}},
            version="leaderworkerset.x-k8s.io/v1",
        ),
        ["operator"],
        UNKNOWN,
    ),
    "a TrainJob": (of("TrainJob", {}, version="trainer.kubeflow.org/v1alpha1"), ["kind"], FORBIDDEN),
    "an Argo workflow": (of("Workflow", {}, version="argoproj.io/v1alpha1"), ["kind"], FORBIDDEN),
    "a Job of another group": (of("Job", {}, version="batch.volcano.sh/v1alpha1"), ["kind"], FORBIDDEN),
    "a zone without nodes": selecting("topology.kubernetes.io/zone", "us-west-2b"),
    "a label that no node has": selecting("nvidia.com/gpu.product", "NVIDIA-A100-SXM4-80GB"),
    "a node group of EKS": selecting("eks.amazonaws.com/nodegroup", "gpu"),
    "a missing claim of the stack": claiming("fsx-claim"),
    "a missing claim": claiming("data"),
    # Without metrics, an autoscaler still scales to its minimum.
    "a Deployment with an autoscaler above its quota": (
        [stays("Deployment", 1), HPA],
        ["autoscaler"],
        {"runs": 4, "warns": "exceeded quota"},
    ),
    "a Deployment whose rollout never ends": (
        stays("Deployment", 4, strategy={"rollingUpdate": {"maxUnavailable": 0}}),
        ["rollout?"],
        {"runs": 4, "rolls": True, "warns": "exceeded quota"},
    ),
    "a service": (stays("Deployment", 1), [], {"runs": 1}),
    "an array of pods": (
        of("Job", {"completions": 8, "parallelism": 3, "completionMode": "Indexed", "template": pods()}),
        [],
        {"cpu": 4, "admits": True},
    ),
    "an array on all GPUs": (array(16), [], {"admits": True}),
    "an array above them": (array(17), ["quota"], {"admits": False}),
    "one pod in each zone": (apart(2, "topology.kubernetes.io/zone", 4), ["node"], CROWDED),
    "more pods than nodes": (apart(5, "kubernetes.io/hostname", 1), ["node"], CROWDED),
    "a pod on each node": (apart(4, "kubernetes.io/hostname", 1), [], {"admits": True}),
    "pods spread over racks": (
        job(pods(topologySpreadConstraints=[{**RACKS, "maxSkew": 1, "labelSelector": {"matchLabels": ATTACK}}])),
        ["node"],
        {"admits": True, "pods": "missing required label"},
    ),
    # kwok runs it: only a kubelet looks for these.
    "a ConfigMap and a Secret that don't exist": (
        job(pods({**ONLY_GPU, "envFrom": [{"configMapRef": {"name": "a"}}, {"secretRef": {"name": "b"}}]})),
        ["claim"],
        {"admits": True},
    ),
    "a model server with a claim of a missing class": (
        [
            of("PersistentVolumeClaim", {**SCRATCH, "storageClassName": "gp3"}, version="v1", name="models"),
            job(pods(volumes=[{"name": "m", "persistentVolumeClaim": {"claimName": "models"}}])),
        ],
        ["claim?"],
        {"admits": True, "pods": "unbound immediate PersistentVolumeClaims"},
    ),
    "a Kubeflow notebook": (of("Notebook", {}, version="kubeflow.org/v1"), ["kind"], FORBIDDEN),
    "a RayService": (of("RayService", {}, version="ray.io/v1"), ["operator"], UNKNOWN),
    "a DaemonSet": (
        of("DaemonSet", {"selector": {"matchLabels": ATTACK}, "template": pods()}, version="apps/v1"),
        ["kind"],
        {"rejects": "cannot create resource"},
    ),
    "a Service at a port of each node": (
        of("Service", {"type": "NodePort", "ports": [{"port": 80}]}, version="v1"),
        ["server"],
        {"rejects": "the type must be ClusterIP or ExternalName"},
    ),
    "a pod group": (
        of(
            "Pod",
            pods()["spec"],
            version="v1",
            labels={**QUEUE, "kueue.x-k8s.io/pod-group-name": "g"},
            annotations={"kueue.x-k8s.io/pod-group-total-count": "2"},
        ),
        ["team-limits"],
        {"rejects": "Instead of a pod group, use a Job"},
    ),
    "a pod of another scheduler": (job(pods(schedulerName="volcano")), ["node?"], {"admits": True}),
    "a volume without a class": (
        job(pods(volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": SCRATCH}}}])),
        ["claim"],
        {"admits": True, "pods": "unbound immediate PersistentVolumeClaims"},
    ),
    "a pod with a gate": (
        job(pods(schedulingGates=[{"name": "example.com/wait"}])),
        ["node"],
        {"admits": True, "pods": "Scheduling is blocked due to non-empty scheduling gates"},
    ),
    "a runtime of other clouds": (
        job(pods(runtimeClassName="nvidia")),
        ["server"],
        {"admits": True, "warns": 'RuntimeClass "nvidia" not found'},
    ),
    "a runtime with overhead": (job(pods(runtimeClassName="kata")), ["server?"], {"cpu": 4.5, "admits": True}),
    "a runtime with its overhead": (
        job(pods(runtimeClassName="kata", overhead=OVERHEAD)),
        [],
        {"cpu": 4.5, "admits": True},
    ),
    "a priority of Kubernetes": (
        # Kueue makes no Workload of a Job with it, and reports so only in its log.
        of("Pod", {**pods()["spec"], "priorityClassName": "high-priority"}, version="v1"),
        ["server"],
        {"rejects": "no PriorityClass with name high-priority was found"},
    ),
    "an array with a name for each rank": (
        [
            of("Service", {"clusterIP": "None", "selector": {"job-name": "c"}}, version="v1", name="ranks"),
            of(
                "Job",
                {
                    "completions": 2,
                    "parallelism": 2,
                    "completionMode": "Indexed",
                    "ttlSecondsAfterFinished": 600,
                    "template": pods(subdomain="ranks", tolerations=[{"key": "nvidia.com/gpu", "operator": "Exists"}]),
                },
            ),
        ],
        [],
        {"cpu": 4, "admits": True},
    ),
    "a notebook with a home": (
        [
            of("PersistentVolumeClaim", SCRATCH, version="v1", name="home"),
            job(
                pods(volumes=[{"name": "home", "persistentVolumeClaim": {"claimName": "home"}}], securityContext=JOVYAN)
            ),
        ],
        ["claim"],
        {"admits": True, "pods": "unbound immediate PersistentVolumeClaims"},
    ),
    "Kubeflow's example": (
        of(
            "PyTorchJob",
            {"pytorchReplicaSpecs": {"Master": {"template": {"spec": {"containers": [asking("pytorch", 1)]}}}}},
            version="kubeflow.org/v1",
            labels={},
            namespace="kubeflow",
        ),
        ["namespace"],
        FORBIDDEN,
    ),
    "a device without a limit": (
        job(pods({**ONLY_GPU, "resources": {"requests": {"nvidia.com/gpu": "1"}}})),
        ["server"],
        {"rejects": "Limit must be set for non overcommitable resources"},
    ),
    "a step of Argo": (
        of(
            "Pod",
            pods(asking("wait", 1), ONLY_GPU, first=[asking("init", 1)], serviceAccountName="argo")["spec"],
            version="v1",
            labels={**QUEUE, "workflows.argoproj.io/workflow": "c"},
        ),
        ["team-limits"],
        {"rejects": "service account"},
    ),
    "a service with an autoscaler": (
        [stays("Deployment", 1), {**HPA, "spec": {**HPA["spec"], "minReplicas": 2, "maxReplicas": 3}}],
        [],
        {"runs": 2},
    ),
    "a pod as large as no instance": (
        job(pods({**ONLY_GPU, "resources": {"requests": {"cpu": "1", "memory": "300Gi"}}})),
        ["quota"],
        {"admits": True, "pods": "Insufficient memory"},
    ),
    "another controller": (of("Job", {"template": pods(), "managedBy": "a.com/b"}), ["operator"], {"admits": True}),
    "MPI's benchmark": (of("MPIJob", {"mpiReplicaSpecs": {}}, version="kubeflow.org/v2beta1"), ["server"], UNKNOWN),
    "an invalid name": (job(pods({**ONLY_GPU, "name": "UPPER"})), ["server"], {"rejects": "containers[0].name"}),
}


# The controller of autoscalers takes up to 15 seconds; by day, one case waits for it.
BY_NIGHT = "a service with an autoscaler"


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.nightly] if name == BY_NIGHT else []) for name in CASES]
)
def test_what_is_said_of_a_manifest_is_what_the_cluster_does(name, api, john, server, ray):
    del ray
    documents, checks, outcome = CASES[name]
    documents = documents if isinstance(documents, list) else [documents]
    found = list(check(read_manifests("f", text_of(*documents)), PLAN, (), server))
    said = {each.check + "?" * (each.severity == "warning") for each in found}
    assert said == set(checks), [each.message for each in found]
    assert sum(each.check == "server" for each in found) <= len(documents), "each reason is reported once"
    since = datetime.now(UTC).replace(microsecond=0)
    try:
        for document in documents:
            rejects(john, document, outcome.get("rejects", ""))
        if "rejects" not in outcome:
            does(api, documents[-1], since, **outcome)
    finally:
        for document in documents:
            api.delete(f"{folder_of(document)}/{document['metadata']['name']}")


def folder_of(document):
    version, plural = document["apiVersion"], f"{document['kind'].lower()}s"
    return f"/api{'s' if '/' in version else ''}/{version}/namespaces/{document['metadata']['namespace']}/{plural}"


def rejects(john, document, text):
    """Submit a document as a member, which must be accepted or rejected with a text."""
    # Kueue serves a new kind a moment later.
    answers = []

    def answered():
        answers.append(tried(john.create, folder_of(document), document))
        return text in answers[-1] and bool(text) == bool(answers[-1])

    eventually(answered, lambda: answers[-1], seconds=60 if text else 1)


def does(api, document, since, *, cpu=None, admits=None, pods=None, runs=None, rolls=False, warns=None):
    """Wait until the cluster does what a case expects.

    cpu: what Kueue counts. admits: whether it ever admits. pods: why a pod is pending. runs: how many pods of c run.
    rolls: the Deployment c gets a new version. warns: an event after `since`.
    """
    uid = api.read(f"{folder_of(document)}/c")["metadata"]["uid"]
    told = lambda: {each["type"]: each for each in workload().get("status", {}).get("conditions", ())}  # noqa: E731

    def workload():
        items = api.items(f"{KUEUE}/namespaces/{NAMESPACE}/workloads")
        owned = [item for item in items if uid in {each["uid"] for each in item["metadata"].get("ownerReferences", ())}]
        return owned[0] if owned else {}

    if cpu is not None:
        eventually(lambda: counted(workload()).get("cpu") == cpu * 1000, workload)
    if admits:
        eventually(lambda: told().get("Admitted", {}).get("status") == "True", told)
    elif admits is not None:
        eventually(lambda: "maximum capacity" in told().get("QuotaReserved", {}).get("message", ""), told)
    if pods is not None:
        messages = lambda: [  # noqa: E731
            each["message"]
            for pod in api.items(f"{CORE}/pods", labels="job-name=c")
            for each in pod["status"].get("conditions", ())
            if each["type"] == "PodScheduled" and each["status"] == "False"
        ]
        eventually(lambda: any(pods in each for each in messages()), messages)
    if runs is not None:
        ready = lambda: api.read(f"{DEPLOYMENTS}/c")["status"].get("readyReplicas")  # noqa: E731
        eventually(lambda: ready() == runs, ready)
    if rolls:
        api.merge(f"{DEPLOYMENTS}/c", {"spec": {"template": {"metadata": {"annotations": {"version": "2"}}}}})
    if warns is not None:
        newest = f"{since:%Y-%m-%dT%H:%M:%SZ}"
        warnings = lambda: [each for each in api.items(f"{CORE}/events") if (each["lastTimestamp"] or "") >= newest]  # noqa: E731
        eventually(lambda: any(warns in each["message"] for each in warnings()), warnings)


def counted(workload):
    """Return what Kueue counts for one pod: millicores, bytes, units."""
    status = workload.get("status", {})
    assigned = status.get("admission", {}).get("podSetAssignments", ())
    for each in status.get("resourceRequests") or assigned:
        amounts = each.get("resources") or each.get("resourceUsage")
        count = workload["spec"]["podSets"][0]["count"]
        return {name: int(quantity(str(text)) * per_unit(name)) / count for name, text in amounts.items()}
    return {}


def answered(name, server, plan=PLAN):
    """Return the severities of what `check` reports of a case."""
    return [each.severity for each in check(read_manifests("f", text_of(CASES[name][0])), plan, (), server)]


def test_an_autoscaler_alone_is_compared_with_the_deployment_that_runs(api, server):
    assert list(check(read_manifests("f", text_of(*CASES[BY_NIGHT][0])), PLAN, (), server)) == []
    alone = read_manifests("f", text_of(HPA))
    reported = lambda each: [(one.severity, one.message) for one in check(alone, PLAN, (), each)]  # noqa: E731
    administrator = Server(Kubernetes(api._client))
    missing = f"neither a file here nor {NAMESPACE} has the Deployment c: until it exists, nothing is scaled"
    assert reported(server) == reported(administrator) == [("warning", missing)]
    with making(api) as make:
        make(DEPLOYMENTS, stays("Deployment", 1))
        above = "it keeps at least 6 pods, but the quota and borrow limit of john allow 4; the others wait without end"
        assert reported(server) == reported(administrator) == [("error", above)]


def test_a_kind_that_the_cluster_has_needs_no_operator_of_the_file(server, ray):
    del ray
    document = ray_of(shutdownAfterJobFinishes=True, submissionMode="HTTPMode")
    found = lambda: list(check(read_manifests("f", text_of(document)), PLAN, (), server))  # noqa: E731
    assert found() == []
    document["apiVersion"] = "ray.io/v1alpha1"
    (finding,) = found()
    assert (finding.check, finding.fix) == ("server", "Use `apiVersion: ray.io/v1`")
    assert finding.message == "the cluster has no kind RayJob of ray.io/v1alpha1"


def test_another_scheduler_is_found_by_a_pod_that_it_placed_and_by_an_administrator_also_by_its_deployment(
    api, john, server
):
    administrator = Server(Kubernetes(api._client))
    found = lambda: [answered("a pod of another scheduler", each) for each in (server, administrator)]  # noqa: E731
    assert found() == [["warning"], ["error"]]
    with making(api) as make:
        own = {"app": "volcano"}
        template = {"metadata": {"labels": own}, "spec": {"containers": [{"name": "main", "image": "volcano"}]}}
        spec = {"selector": {"matchLabels": own}, "template": template}
        head = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "volcano-scheduler"}}
        make("/apis/apps/v1/namespaces/default/deployments", {**head, "spec": spec})
        eventually(lambda: found() == [["warning"], []], found)
    eventually(lambda: found() == [["warning"], ["error"]], found)
    document = CASES["a pod of another scheduler"][0]
    john.create(JOBS, document)
    does(api, document, None, admits=True)
    eventually(lambda: api.items(f"{CORE}/pods", labels="job-name=c"), "its pod exists")
    (made,) = api.items(f"{CORE}/pods", labels="job-name=c")
    node = {"apiVersion": "v1", "kind": "Node", "name": api.items("/api/v1/nodes")[0]["metadata"]["name"]}
    binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": made["metadata"]["name"]}, "target": node}
    api.create(f"{CORE}/pods/{made['metadata']['name']}/binding", binding)
    assert found() == [[], []]


def test_a_claim_without_a_class_is_no_error_where_the_cluster_has_a_default(api, server):
    assert answered("a volume without a class", server) == ["error"]
    with making(api) as make:
        default = {"name": "gp3", "annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}
        head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": default}
        make("/apis/storage.k8s.io/v1/storageclasses", {**head, "provisioner": "ebs.csi.aws.com"})
        eventually(lambda: answered("a volume without a class", server) == [], "the default is known")


# Each example takes a while, so a failing one isn't shrunk.
ONCE = {"suppress_health_check": [*HealthCheck], "phases": [Phase.generate], "database": None}
AMOUNTS = st.fixed_dictionaries(
    {},
    optional={
        name: st.sampled_from(["1", "2", "3"]).map(lambda text, unit=unit: text + unit)
        for name, unit in (("cpu", ""), ("memory", "Gi"), ("nvidia.com/gpu", ""))
    },
)


@st.composite
def containers(draw, *, first=False):
    requests, limits = draw(AMOUNTS), draw(AMOUNTS)
    # The API server rejects requests above limits, and different ones of devices.
    limits = {name: max(each, requests.get(name, "0")) for name, each in limits.items()}
    requests = {name: each for name, each in requests.items() if "/" not in name or name in limits}
    limits |= {name: each for name, each in requests.items() if "/" in name}
    resources = {"requests": requests, "limits": limits}
    return {"resources": resources, **({"restartPolicy": "Always"} if first and draw(st.booleans()) else {})}


@st.composite
def specs(draw):
    """Return the spec of a pod with random containers, and sometimes requests of the whole pod."""
    spec = {
        "restartPolicy": "Never",
        "initContainers": draw(st.lists(containers(first=True), max_size=3)),
        "containers": draw(st.lists(containers(), min_size=1, max_size=2)),
        "nodeSelector": NOWHERE,
    }
    for number, each in enumerate([*spec["initContainers"], *spec["containers"]]):
        each |= {"name": f"c{number}", "image": "x"}
    if draw(st.booleans()):
        parts = draw(st.lists(st.sampled_from(["requests", "limits"]), min_size=1, max_size=2, unique=True))
        # More than all containers together: the API server rejects less.
        large = {"cpu": "40", "memory": "40Gi"}
        chosen = draw(st.lists(st.sampled_from([*large]), min_size=1, unique=True))
        spec["resources"] = {part: {name: large[name] for name in chosen} for part in parts}
    return spec


@pytest.mark.timeout(1800)
@settings(max_examples=20 if NIGHTLY else 4, **ONCE)
@given(st.lists(specs(), min_size=5, max_size=5))
def test_requests_are_those_that_kueue_and_the_api_server_count(api, free, made):
    """Of Jobs, Kueue counts the template; of pods, what the API server makes of them."""
    wanted, refusals = {}, []
    # The ResourceQuota of the namespace counts pods, also those of Jobs.
    for kind, folder in (("pod", f"{CORE}/pods"), ("job", JOBS)):
        for number, spec in enumerate(made):
            name = f"r{number}"
            template = {"metadata": {"labels": free}, "spec": requesting(spec)}
            document = job(template, name=name, labels=free)
            if kind == "pod":
                document = of("Pod", spec, version="v1", name=name, labels=free)
            refusals.append(tried(api.create, folder, document))
            if not refusals[-1]:
                wanted[f"{kind}-{name}"] = template_of(document)
    assert len(wanted) >= len(made), refusals

    def differing():
        items = api.items(f"{KUEUE}/namespaces/{NAMESPACE}/workloads")
        found = {item["metadata"]["name"].rpartition("-")[0]: counted(item) for item in items}
        expected = {
            name: {key: each for key, each in requests_of(pods, PLAN).items() if each} for name, pods in wanted.items()
        }
        return [
            (wanted[name].template["spec"], found.get(name, "no Workload"), expected[name])
            for name in wanted
            if {key: each for key, each in found.get(name, {}).items() if each} != expected[name]
        ]

    try:
        eventually(lambda: not differing(), differing, seconds=60)
    finally:
        tidy(api)


def requesting(spec):
    """Return a spec of which the admission policy for templates accepts the limits: each has a request."""
    spec = copy.deepcopy(spec)
    for each in (*spec["initContainers"], *spec["containers"]):
        resources = each["resources"]
        for name in ("cpu", "memory"):
            if name not in resources["requests"]:
                resources["limits"].pop(name, None)
    return spec


def template_of(document):
    (unit,) = units(document)
    (pods,) = templates(unit)
    return pods


CONTEXTS = st.fixed_dictionaries(
    {},
    optional={
        "privileged": st.booleans(),
        "procMount": st.sampled_from(["Default", "Unmasked"]),
        "capabilities": st.lists(st.sampled_from(["CHOWN", "KILL", "IPC_LOCK"])).map(lambda names: {"add": names}),
        "seccompProfile": st.sampled_from([{"type": "Unconfined"}, {"type": "RuntimeDefault"}]),
        "appArmorProfile": st.sampled_from([{"type": "Unconfined"}, {"type": "RuntimeDefault"}]),
        "seLinuxOptions": st.fixed_dictionaries(
            {}, optional={name: st.sampled_from(["", "container_t", "spc_t"]) for name in ("type", "user", "role")}
        ),
    },
)
PROBES = st.sampled_from(
    [{}, {"livenessProbe": {"httpGet": {"port": 80, "host": "a"}}}, {"livenessProbe": {"httpGet": {"port": 80}}}]
)
PORTS = st.sampled_from([[], [{"containerPort": 80}], [{"containerPort": 80, "hostPort": 80}]])
HOLES = st.fixed_dictionaries(
    {},
    optional={
        **{name: st.booleans() for name in ("hostNetwork", "hostPID", "hostIPC")},
        "volumes": st.sampled_from([[{"name": "v", "hostPath": {"path": "/"}}], [{"name": "v", "emptyDir": {}}]]),
    },
)
SYSCTLS = st.lists(st.sampled_from(["net.core.somaxconn", "net.ipv4.tcp_syncookies", "net.ipv4.tcp_rmem"]), max_size=1)


@settings(max_examples=300 if NIGHTLY else 60, **ONCE)
@given(HOLES, SYSCTLS, CONTEXTS, CONTEXTS, PORTS, PROBES)
def test_pod_security_rejects_what_the_table_has(api, holes, sysctls, context, first, ports, probe):
    of_pod = {
        key: each for key, each in context.items() if key in ("seccompProfile", "appArmorProfile", "seLinuxOptions")
    }
    spec = {
        "containers": [{"name": "a", "image": "a", "ports": ports, "securityContext": context, **probe}],
        "initContainers": [{"name": "b", "image": "b", "securityContext": first}],
        "securityContext": {**of_pod, "sysctls": [{"name": name, "value": "1"} for name in sysctls]},
        **holes,
    }
    document = of("Pod", spec, version="v1")
    rejected = tried(api.create, f"{CORE}/pods?dryRun=All", document)
    if rejected and "PodSecurity" not in rejected and "ValidatingAdmissionPolicy" not in rejected:
        return  # Values that aren't allowed together.
    said = list(violations(PodTemplate((), 1, document)))
    if "ValidatingAdmissionPolicy" in rejected:
        assert "volume" in rejected
        assert any("hostPath" in each.path for each in said)
    else:
        assert bool(said) == bool(rejected), (rejected, said)
