"""Waits for what controllers, scheduler and kubelet make of an object, and what is told of those that fail."""

import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2

from hpkit_local.kubernetes.control_plane import NODE_ANNOTATION, READY_ANNOTATION
from tests.local.plugins.kubernetes.harness import FailedError, in_background
from tests.running import eventually

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(900)]

DEPLOYMENT, PATCH, JOB, POD = "apps/v1:Deployment", "apps/v1:DeploymentPatch", "batch/v1:Job", "core/v1:Pod"
SERVICE, CLAIM = "core/v1:Service", "core/v1:PersistentVolumeClaim"
NODE = "/api/v1/nodes/waits-0"
PODS = "/api/v1/namespaces/default/pods"
DEPLOYMENTS, REPLICA_SETS = (f"/apis/apps/v1/namespaces/default/{plural}" for plural in ("deployments", "replicasets"))
NOWHERE = {"nodeSelector": {"acme.example/zone": "nowhere"}}


def pod_spec(**fields):
    tolerations = [{"operator": "Exists"}]
    return {"containers": [{"name": "main", "image": "none"}], "tolerations": tolerations, **fields}


def workload(kind, name, *, annotations=None, spec=None, runs=None, **pod):
    """Return a workload of one pod; `spec` adds to its own fields, `pod` to its pods', `runs` says how they run."""
    labels = {"app": name}
    played = {f"hpkit.local/{key}": value for key, value in (runs or {}).items()}
    metadata = {"labels": labels, **({"annotations": played} if played else {})}
    template = {"metadata": metadata, "spec": pod_spec(**pod)}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    told = {f"pulumi.com/{key}": value for key, value in (annotations or {}).items()}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "annotations": told},
        "spec": {**selector, "template": template, **(spec or {})},
    }


def service(name, **spec):
    ports = [{"port": 80}]
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports, **spec}}


def failed(plugin, *arguments, **options):
    """Return why a creation failed, and what it wants kept in state."""
    with pytest.raises(FailedError) as failure:
        plugin.create(*arguments, **options)
    return str(failure.value), failure.value.kept


def names(api, folder, prefix):
    return [
        each["metadata"]["name"] for each in api.read(folder)["items"] if each["metadata"]["name"].startswith(prefix)
    ]


def progress(plugin):
    return [text for severity, text in plugin.logs if severity == "info"]


@pytest.fixture
def node(api):
    """A node of kwok's that takes any pod."""
    document = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "waits-0", "annotations": NODE_ANNOTATION}}
    resources = {"cpu": "8", "memory": "32Gi", "pods": "20"}
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "as the test says"}
    api.apply(NODE, document)
    api.apply(f"{NODE}/status", {**document, "status": {"allocatable": resources, "conditions": [ready]}})
    yield
    api.delete(NODE)


def test_a_deployment_is_waited_for_until_its_pods_are_available(plugin, node):
    found, inputs, outputs = plugin.create(DEPLOYMENT, "web", workload("Deployment", "web", spec={"replicas": 2}))
    assert outputs["status"]["availableReplicas"] == 2
    changed = workload("Deployment", "web", spec={"replicas": 1}, terminationGracePeriodSeconds=1)
    outputs = plugin.update(DEPLOYMENT, "web", inputs, changed, outputs=outputs)
    status = outputs["status"]
    assert (status["replicas"], status["updatedReplicas"], status["availableReplicas"]) == (1, 1, 1)
    assert status["observedGeneration"] == outputs["metadata"]["generation"]
    plugin.delete(DEPLOYMENT, "web", found, outputs)


def test_a_patch_of_a_deployment_is_waited_for_until_it_is_rolled_out(plugin, api, node):
    """The restart of a Deployment that another made, as the program does it."""
    place = "/apis/apps/v1/namespaces/default/deployments/theirs"
    api.apply(place, workload("Deployment", "theirs"))
    patch = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "theirs", "namespace": "default"},
        "spec": {"template": {"metadata": {"annotations": {"restart": "1"}}}},
    }
    _, inputs, outputs = plugin.create(PATCH, "theirs", patch)
    assert outputs["status"]["observedGeneration"] == outputs["metadata"]["generation"]
    assert outputs["status"]["updatedReplicas"] == outputs["status"]["availableReplicas"] == 1
    stuck = {"metadata": {"annotations": {"restart": "2"}}, "spec": NOWHERE}
    text, kept = failed(plugin, PATCH, "theirs", {**patch, "spec": {"template": stuck}}, timeout=3.0)
    assert "pods of before that are still there: 1" in text, "the old one stays until the new one is ready"
    assert kept.id == "default/theirs"
    plugin.delete(PATCH, "theirs", kept.id, {**outputs, **inputs})
    api.delete(place)


def test_a_deployment_that_cannot_be_placed_fails_with_what_the_scheduler_says_and_stays_in_state(plugin, api):
    stuck = workload("Deployment", "stuck", annotations={"timeoutSeconds": "2"}, **NOWHERE)
    text, kept = failed(plugin, DEPLOYMENT, "stuck", stuck, timeout=0.0)
    assert text.startswith("Deployment default/stuck is not ready: 0 of 1 pods are available")
    assert "pod stuck-" in text
    assert "Unschedulable" in text
    assert "time-out after 2 s" in text, "pulumi.com/timeoutSeconds is heeded"
    assert kept.id == "default/stuck"
    assert any("0 of 1 pods" in line for line in progress(plugin))
    with pytest.raises(FailedError, match=r"is not ready: 0 of 1 pods are available.*Unschedulable") as failure:
        plugin.read(DEPLOYMENT, "stuck", kept.id, inputs=stuck)
    assert failure.value.kept.id == kept.id, "a refresh keeps it, and that it is not ready"
    skipping = workload("Deployment", "stuck", annotations={"skipAwait": "true"}, **NOWHERE)
    outputs = plugin.update(DEPLOYMENT, "stuck", stuck, skipping, outputs=workload("Deployment", "stuck"))
    plugin.delete(DEPLOYMENT, "stuck", kept.id, outputs)
    eventually(lambda: not names(api, DEPLOYMENTS, "stuck"), "the Deployment goes, though nobody waited for it")


def test_pods_that_are_refused_are_told_with_the_words_of_the_quota(plugin, api):
    api.apply("/api/v1/namespaces/narrow", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "narrow"}})
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": "narrow"}}
    found, _, outputs = plugin.create("core/v1:ResourceQuota", "none", {**quota, "spec": {"hard": {"pods": "0"}}})
    assert outputs["status"]["hard"] == {"pods": "0"}, "a quota is waited for until it is in force"
    deployment = workload("Deployment", "refused")
    deployment["metadata"]["namespace"] = "narrow"
    text, kept = failed(plugin, DEPLOYMENT, "refused", deployment, timeout=3.0)
    assert "exceeded quota: none" in text
    plugin.delete(DEPLOYMENT, "refused", kept.id, {**deployment})
    plugin.delete("core/v1:ResourceQuota", "none", found, outputs)
    api.delete("/api/v1/namespaces/narrow")


def test_a_wait_ends_at_once_when_it_is_cancelled(plugin):
    def stop():
        eventually(lambda: any("of 1 pods" in line for line in progress(plugin)), "it waits")
        plugin.call("Cancel", empty_pb2.Empty())

    with in_background(stop):
        text, kept = failed(plugin, DEPLOYMENT, "late", workload("Deployment", "late", **NOWHERE), timeout=600.0)
    assert text.endswith(": cancelled")
    plugin.call("Attach", plugin_pb2.PluginAttach())  # as a plugin started anew
    plugin.delete(DEPLOYMENT, "late", kept.id, workload("Deployment", "late"))


def test_a_job_is_waited_for_until_it_completes(plugin, node):
    job = workload("Job", "train", runs={"run": "1s"}, restartPolicy="Never")
    found, _, outputs = plugin.create(JOB, "train", job)
    assert outputs["status"]["succeeded"] == 1
    plugin.delete(JOB, "train", found, outputs)


def test_a_job_that_fails_ends_the_wait_with_the_reason(plugin, node):
    ends = {"run": "1s", "exit-code": "3"}
    job = workload("Job", "broken", spec={"backoffLimit": 0}, runs=ends, restartPolicy="Never")
    text, kept = failed(plugin, JOB, "broken", job, timeout=600.0)
    assert text.startswith("Job default/broken is not ready: it failed: BackoffLimitExceeded")
    assert "container main ended with exit code 3: Error" in text
    plugin.delete(JOB, "broken", kept.id, job)


def test_containers_that_end_again_and_again_are_told(plugin, node):
    crashing = workload("Deployment", "crashing", runs={"run": "0s", "exit-code": "7"})
    text, kept = failed(plugin, DEPLOYMENT, "crashing", crashing, timeout=8.0)
    assert "0 of 1 pods are available" in text
    assert "container main ended with exit code 7" in text
    plugin.delete(DEPLOYMENT, "crashing", kept.id, crashing)


def test_a_suspended_job_is_waited_for_as_on_aws(plugin):
    job = workload("Job", "held", spec={"suspend": True}, restartPolicy="Never")
    text, kept = failed(plugin, JOB, "held", job, timeout=1.0)
    assert "it is suspended: time-out" in text
    plugin.delete(JOB, "held", kept.id, job)


def endpoints_of(api, name):
    slices = api.read("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices")["items"]
    return [each for found in slices if found["metadata"]["name"].startswith(name) for each in found["endpoints"] or []]


def test_a_service_waits_for_the_pods_that_it_selects(plugin, api, node):
    labels = {"app": "behind"}
    lonely, stated, outputs = plugin.create(SERVICE, "lonely", service("lonely", selector=labels))
    metadata = {"name": "behind", "namespace": "default", "labels": labels, "annotations": {READY_ANNOTATION: "false"}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}
    api.apply(f"{PODS}/behind", {**pod, "spec": pod_spec()})
    eventually(lambda: endpoints_of(api, "lonely"), "the pod is known behind a Service that was ready without it")
    text, kept = failed(plugin, SERVICE, "front", service("front", selector=labels), timeout=3.0)
    assert "1 of 1 pods behind it are not ready" in text
    api.merge(f"{PODS}/behind", {"metadata": {"annotations": {READY_ANNOTATION: "true"}}})
    outputs = plugin.update(SERVICE, "lonely", stated, stated, outputs=outputs)
    plugin.delete(SERVICE, "lonely", lonely, outputs)
    plugin.delete(SERVICE, "front", kept.id, service("front"))
    api.delete(f"{PODS}/behind")


@pytest.mark.parametrize(
    ("token", "document", "what"),
    [
        (SERVICE, service("balanced", type="LoadBalancer"), "load balancer controller"),
        (
            "networking.k8s.io/v1:Ingress",
            {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "Ingress",
                "metadata": {"name": "way-in", "namespace": "default"},
                "spec": {"defaultBackend": {"service": {"name": "none", "port": {"number": 80}}}},
            },
            "ingress controller",
        ),
    ],
)
def test_what_nothing_here_can_give_is_said_and_not_waited_for(plugin, token, document, what):
    found, _, outputs = plugin.create(token, "unserved", document)
    (warning,) = [text for severity, text in plugin.logs if severity == "warning"]
    assert f"no {what} runs in the local cloud" in warning
    assert "on AWS `pulumi up` waits" in warning
    plugin.delete(token, "unserved", found, outputs)


def test_a_daemon_set_is_waited_for_on_every_node(plugin, node):
    found, _, outputs = plugin.create("apps/v1:DaemonSet", "agent", workload("DaemonSet", "agent"))
    status = outputs["status"]
    assert status["numberAvailable"] == status["desiredNumberScheduled"] > 0
    plugin.delete("apps/v1:DaemonSet", "agent", found, outputs)


def test_a_pod_that_fails_ends_the_wait(plugin, node):
    annotations = {"hpkit.local/run": "0s", "hpkit.local/exit-code": "3", READY_ANNOTATION: "false"}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "alone", "annotations": annotations}}
    stated = {**pod, "spec": pod_spec(restartPolicy="Never")}
    text, kept = failed(plugin, POD, "alone", stated, timeout=600.0)
    assert text.startswith("Pod default/alone is not ready: it failed: container main ended with exit code 3")
    plugin.delete(POD, "alone", kept.id, stated)


def test_a_deletion_waits_for_what_belongs_to_the_object_unless_told_otherwise(plugin, api, node):
    found, _, outputs = plugin.create(DEPLOYMENT, "owner", workload("Deployment", "owner"))
    plugin.delete(DEPLOYMENT, "owner", found, outputs)
    assert not names(api, PODS, "owner-")
    left = workload("Deployment", "left", annotations={"deletionPropagationPolicy": "orphan"})
    found, _, outputs = plugin.create(DEPLOYMENT, "left", left)
    plugin.delete(DEPLOYMENT, "left", found, outputs)
    (replica_set,) = names(api, REPLICA_SETS, "left-")
    api.delete(f"{REPLICA_SETS}/{replica_set}")


def test_a_token_of_a_service_account_is_waited_for(plugin):
    annotations = {"kubernetes.io/service-account.name": "default"}
    metadata = {"name": "token", "namespace": "default", "annotations": annotations}
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "kubernetes.io/service-account-token"}
    found, _, outputs = plugin.create("core/v1:Secret", "token", secret)
    assert outputs["data"]["token"]
    plugin.delete("core/v1:Secret", "token", found, outputs)


VOLUME = {
    "apiVersion": "v1",
    "kind": "PersistentVolume",
    "metadata": {"name": "kept"},
    "spec": {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "kept",
        "hostPath": {"path": "/kept"},
    },
}


def claim(storage_class):
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    metadata = {"name": "data", "namespace": "default"}
    wanted = {**spec, "storageClassName": storage_class}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": wanted}


def test_a_claim_is_waited_for_until_it_has_a_volume(plugin):
    text, kept = failed(plugin, CLAIM, "data", claim("kept"), timeout=1.0)
    assert "its phase is Pending, not Bound" in text
    found, _, outputs = plugin.create("core/v1:PersistentVolume", "kept", VOLUME)
    assert outputs["status"]["phase"] in ("Available", "Bound")
    bound = plugin.update(CLAIM, "data", claim("kept"), claim("kept"), outputs=claim("kept"))
    assert bound["status"]["phase"] == "Bound"
    plugin.delete(CLAIM, "data", kept.id, bound)
    plugin.delete("core/v1:PersistentVolume", "kept", found, outputs)


def test_a_claim_that_goes_names_the_pods_that_keep_it(plugin, api):
    plugin.create("core/v1:PersistentVolume", "kept", VOLUME)
    wanted = claim("kept")
    wanted["metadata"] = {**wanted["metadata"], "finalizers": ["acme.example/hold"]}
    found, _, outputs = plugin.create(CLAIM, "data", wanted)
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    api.create(PODS, {"metadata": {"name": "train"}, "spec": pod_spec(nodeName="nowhere", volumes=[volume])})
    with pytest.raises(FailedError, match=r"pods use it: train: time-out .*delete these pods, or the job"):
        plugin.delete(CLAIM, "data", found, outputs, timeout=1.0)
    api.delete(f"{PODS}/train")
    api.merge("/api/v1/namespaces/default/persistentvolumeclaims/data", {"metadata": {"finalizers": None}})
    plugin.delete(CLAIM, "data", found, outputs)
    api.delete("/api/v1/persistentvolumes/kept")


@pytest.mark.parametrize(
    ("of_claim", "of_volume"),
    [({"volumeName": "kept"}, {}), ({}, {"claimRef": {"namespace": "default", "name": "data"}})],
    ids=["the claim names the volume", "the volume names the claim"],
)
def test_a_claim_with_a_volume_of_its_own_is_waited_for_whatever_its_class_makes(plugin, api, of_claim, of_volume):
    storage_class = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "kept"}}
    place = "/apis/storage.k8s.io/v1/storageclasses/kept"
    api.apply(place, {**storage_class, "provisioner": "fsx.csi.aws.com"})
    volume = {**VOLUME, "spec": {**VOLUME["spec"], **of_volume}}
    found, _, outputs = plugin.create("core/v1:PersistentVolume", "kept", volume)
    wanted = claim("kept")
    claimed, _, bound = plugin.create(CLAIM, "data", {**wanted, "spec": {**wanted["spec"], **of_claim}})
    assert bound["status"]["phase"] == "Bound"
    assert [text for severity, text in plugin.logs if severity == "warning"] == []
    plugin.delete(CLAIM, "data", claimed, bound)
    plugin.delete("core/v1:PersistentVolume", "kept", found, outputs)
    api.delete(place)


@pytest.mark.parametrize(
    ("mode", "says"), [("Immediate", ["no volume provisioner runs"]), ("WaitForFirstConsumer", [])]
)
def test_a_claim_for_a_volume_that_has_yet_to_be_made_is_not_waited_for(plugin, api, mode, says):
    storage_class = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "made"}}
    place = "/apis/storage.k8s.io/v1/storageclasses/made"
    api.apply(place, {**storage_class, "provisioner": "fsx.csi.aws.com", "volumeBindingMode": mode})
    found, _, outputs = plugin.create(CLAIM, "data", claim("made"))
    told = [text for severity, text in plugin.logs if severity == "warning"]
    assert [text for text in told if any(each in text for each in says)] == told
    assert len(told) == len(says)
    plugin.delete(CLAIM, "data", found, outputs)
    api.delete(place)
