"""A member tries to get more compute than Kueue counts: with wrong statements in a job, and with pods that stay."""

from dataclasses import replace
from itertools import chain

import pytest

from hpkit.plan.capacity import quantity
from hpkit.plan.pods import pod_requests
from hpkit.plan.team_limits import pod_limits
from hpkit.program.components.admission.policies import policies_of
from hpkit.project import load_stack
from hpkit_local.kubernetes.api import RejectedError, crds_in
from hpkit_local.toolchain import get_all
from hpkit_local.toolchain.table import tool_named
from tests.conftest import NIGHTLY
from tests.running import eventually, making
from tests.security.kinds import BAD_PODS, KINDS, KUBEFLOW, service, workload
from tests.security.members import ATTACK, CORE, JOBS, NAMESPACE, container, delete, job, pod, refused, tried

pytestmark = pytest.mark.platform

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WORKLOADS = f"/apis/kueue.x-k8s.io/v1beta2/namespaces/{NAMESPACE}/workloads"
QUEUE = f"/apis/kueue.x-k8s.io/v1beta2/clusterqueues/{NAMESPACE}-clusterqueue"
# A repository of the other team, in the stack of the platform.
THEIRS = "123456789012.dkr.ecr.us-west-2.amazonaws.com/handson-dev/smith/train:1"


# As in the CRD of Kubeflow's training operator 1.7.0.
_SCALES = {
    "scale": {
        "specReplicasPath": ".spec.pytorchReplicaSpecs.Worker.replicas",
        "statusReplicasPath": ".status.replicaStatuses.Worker.active",
    }
}


def folder_of(document):
    return f"/apis/{document['apiVersion']}/namespaces/{NAMESPACE}/{document['kind'].lower()}s"


@pytest.fixture(scope="module")
def kinds(api):
    """Serve every kind that members may submit with a CRD that accepts any field; nightly, also the real CRDs."""
    tools = [tool_named("jobset-crds"), tool_named("kuberay-crds")] if NIGHTLY else []
    published = chain.from_iterable(crds_in(found.path) for found in get_all(tools, say=print))
    there = {found["metadata"]["name"] for found in api.items(CRDS, metadata_only=True)}
    with making(api) as make_object:
        for crd in (*published, *_any_fields()):
            if crd["metadata"]["name"] not in there:
                make_object(CRDS, crd)
                there.add(crd["metadata"]["name"])
        for make in KINDS.values():
            document = make("probe")
            if document["kind"] not in ("Pod", "Job", "Deployment"):
                eventually(lambda document=document: _serves(api, folder_of(document)), f"{document['kind']} is served")
        yield


def _any_fields():
    """Serve a CRD that accepts any field for each kind that Kubernetes itself doesn't have."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for kind, make in KINDS.items():
        group_name, _, version = make("probe")["apiVersion"].partition("/")
        if "." in group_name:
            plural = f"{kind.lower()}s"
            yield {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": f"{plural}.{group_name}"},
                "spec": {
                    "group": group_name,
                    "scope": "Namespaced",
                    "names": {"kind": kind, "plural": plural, "singular": kind.lower(), "listKind": f"{kind}List"},
                    "versions": [
                        {
                            "name": version,
                            "served": True,
                            "storage": True,
                            "schema": {"openAPIV3Schema": schema},
                            "subresources": _SCALES if kind == "PyTorchJob" else {},
                        }
                    ],
                },
            }


def _serves(api, folder):
    try:
        api.read(folder)
    except RejectedError:
        return False
    return True


def counted(api):
    """Return what Kueue counts for the team, by resource in base units."""
    total = {}
    for flavor in api.read(QUEUE)["status"].get("flavorsUsage", []):
        for resource in flavor["resources"]:
            total[resource["name"]] = total.get(resource["name"], 0) + quantity(resource["total"])
    return {name: amount for name, amount in total.items() if amount}


def used(api):
    """Return the requests of running pods in the team's namespace, by resource in base units."""
    total = {}
    for found in api.items(f"{CORE}/pods"):
        if found["spec"].get("nodeName") and found["status"].get("phase") in ("Pending", "Running"):
            for name, amount in pod_requests(found["spec"], lambda _, text: quantity(str(text))).items():
                total[name] = total.get(name, 0) + amount
    return {name: amount for name, amount in total.items() if amount}


def is_accounted(api, **expected):
    """Wait until pods with these requests run, and Kueue counts exactly the running pods."""
    wanted = {name.replace("gpu", "nvidia.com/gpu"): quantity(amount) for name, amount in expected.items()}

    def holds():
        running = used(api)
        return running == counted(api) and all(running.get(name, 0) == amount for name, amount in wanted.items())

    eventually(holds, lambda: f"{wanted} wanted, {used(api)} run, {counted(api)} counted")


def test_a_member_cannot_get_more_compute_by_a_group_of_pods(john):
    document = pod("grouped", labels={"kueue.x-k8s.io/pod-group-name": "g"})
    document["metadata"]["annotations"]["kueue.x-k8s.io/pod-group-total-count"] = "2"
    assert "Instead of a pod group, use a Job" in refused(john.create, f"{CORE}/pods", document)


def test_a_member_cannot_get_more_compute_by_notes_of_kueues_own(john):
    for name, value in (("pod-suspending-parent", "deployment"), ("prebuilt-workload-name", "theirs")):
        document = pod("forged", annotations={f"kueue.x-k8s.io/{name}": value})
        assert "kueue.x-k8s.io" in refused(john.create, f"{CORE}/pods", document)
    for key in ("managed", "elastic-job"):
        document = job("forged")
        document["spec"]["template"]["metadata"]["labels"][f"kueue.x-k8s.io/{key}"] = "true"
        assert "kueue.x-k8s.io" in refused(john.create, JOBS, document)


def test_a_member_cannot_run_without_requests(john, api):
    nothing = [container(resources={})]
    for number in range(5):
        john.create(f"{CORE}/pods", pod(f"free-{number}", containers=nothing))
    john.create(JOBS, job("free", pods=2, containers=nothing, initContainers=[container(name="first", resources={})]))
    is_accounted(api, cpu="700m", memory="1792Mi")
    assert all(found["spec"]["nodeSelector"] for found in api.items(f"{CORE}/pods")), "each has an instance type"
    zero = [container(resources={"requests": {"cpu": "0", "memory": "0"}})]
    assert "minimum" in refused(john.create, f"{CORE}/pods", pod("zero", containers=zero))
    assert "limitranges" in refused(john.delete, f"{CORE}/limitranges/hpkit-requests")


def test_a_member_cannot_get_more_compute_by_limits_without_requests(john, api):
    limits = {"cpu": "2", "memory": "4Gi"}
    greedy = [container(resources={"limits": limits})]
    assert "must request it too" in refused(john.create, JOBS, job("greedy", containers=greedy))
    # The API server uses a pod's limits as its requests, and Kueue counts the requests.
    john.create(f"{CORE}/pods", pod("limited", containers=greedy))
    john.create(JOBS, job("requesting", containers=[container(resources={"limits": limits, "requests": limits})]))
    is_accounted(api, cpu="4", memory="8Gi")


def test_a_member_cannot_get_more_compute_by_replicas_that_kueue_does_not_count(kinds, john):
    document = KINDS["TFJob"]("uncounted")
    replicas = document["spec"]["tfReplicaSpecs"]
    replicas["worker"] = {**replicas["Worker"], "replicas": 100}
    assert "types of replicas" in refused(john.create, folder_of(document), document)


def test_a_member_cannot_move_a_running_job_to_another_instance_type(kinds, john, api):
    document = KINDS["PyTorchJob"]("moving")
    replicas = document["spec"]["pytorchReplicaSpecs"]
    replicas["Worker"] = replicas["Master"]
    path = f"{folder_of(document)}/moving"
    john.create(folder_of(document), document)
    try:
        # As when Kueue admits it, for which Kueue would first have to notice the new kind.
        api.merge(path, {"spec": {"runPolicy": {"suspend": False}}})
        replicas = john.read(path)["spec"]["pytorchReplicaSpecs"]
        replicas["Master"]["template"]["spec"]["nodeSelector"] = {"node.kubernetes.io/instance-type": "ml.m5.4xlarge"}
        message = refused(john.merge, path, {"spec": {"pytorchReplicaSpecs": replicas}})
        assert "pod templates of a job can't change" in message
        # An autoscaler that an operator creates isn't a member.
        scaled = {"spec": {"replicas": 16}}
        assert "number of pods" in refused(api.merge, f"{path}/scale", scaled)
        john.merge(path, {"metadata": {"labels": {"note": "mine"}}})
    finally:
        delete(john, path, {"propagationPolicy": "Background"})


def test_a_member_cannot_keep_instances_while_the_quota_is_free_again(kinds, john):
    for kind, make in KINDS.items():
        slow = make("slow", terminationGracePeriodSeconds=315_360_000)
        folder = f"{CORE}/pods" if kind == "Pod" else folder_of(slow)
        assert "terminationGracePeriodSeconds" in refused(john.create, folder, slow)
        assert not tried(john.create, f"{folder}?dryRun=All", make("quick", terminationGracePeriodSeconds=120))


def test_a_member_cannot_keep_instances_by_a_slow_deletion(john, api):
    john.create(f"{CORE}/pods", pod("slow"))
    is_accounted(api, gpu="1")
    label = ",".join(f"{key}={value}" for key, value in ATTACK.items())
    for path, seconds in (("pods/slow", 315_360_000), (f"pods?labelSelector={label}", 121)):
        assert "seconds to stop" in refused(delete, john, f"{CORE}/{path}", {"gracePeriodSeconds": seconds})
    assert not api.read(f"{CORE}/pods/slow")["metadata"].get("deletionTimestamp")
    delete(john, f"{CORE}/pods/slow", {"gracePeriodSeconds": 5})


def test_a_member_cannot_go_first_by_the_scheduling_policy_of_a_framework(kinds, john):
    for kind in KUBEFLOW:
        document = KINDS[kind]("first")
        document["spec"]["runPolicy"]["schedulingPolicy"] = {"priorityClass": "system-node-critical"}
        assert "schedulingPolicy.priorityClass" in refused(john.create, folder_of(document), document)


def test_a_member_cannot_go_first_in_kueue_by_a_class_of_the_system(api):
    # Kueue creates Workloads for any kind; an administrator's permission to write one shows that the rule applies to
    # all.
    reference = {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "system-node-critical"}
    document = workload(pod("first")["spec"])
    document["metadata"] |= {"labels": ATTACK}
    document["spec"]["podSets"][0]["count"] = 100
    ranked = {**document, "spec": {**document["spec"], "priorityClassRef": reference, "priority": 2_000_001_000}}
    assert "system PriorityClass" in refused(api.create, WORKLOADS, ranked)
    api.create(WORKLOADS, document)
    try:
        change = {"spec": {"priorityClassRef": reference, "priority": 2_000_001_000}}
        assert "system PriorityClass" in refused(api.merge, f"{WORKLOADS}/w", change)
    finally:
        api.delete(f"{WORKLOADS}/w")


@pytest.fixture
def ranked(api, john):
    """Apply the policy for Workloads with only the class experiment for the team john."""
    (plan,) = load_stack("handson-dev").plans.values()
    team = replace(plan.teams[0], spec=plan.teams[0].spec.model_copy(update={"priority_classes": ("experiment",)}))
    (policy,) = (each for each in policies_of([team], pod_limits(plan)) if each.name == "hpkit-team-workloads")
    path = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/hpkit-team-workloads"
    before = api.read(path)["spec"]["validations"]
    now = [{"expression": refusal.expression, "message": refusal.message} for refusal in policy.rejections]
    api.merge(path, {"spec": {"validations": now}})
    yield
    api.merge(path, {"spec": {"validations": before}})


def test_a_member_cannot_go_first_in_kueue_by_a_class_of_pods(api, ranked):
    document = workload(pod("first")["spec"])
    reference = {"group": "scheduling.k8s.io", "kind": "PriorityClass", "name": "high"}
    document["spec"] |= {"priorityClassRef": reference, "priority": 1000}
    # The API server takes a moment to load a policy.
    eventually(
        lambda: "one of the team's priorityClasses" in tried(api.create, f"{WORKLOADS}?dryRun=All", document), "refused"
    )


# An API server without image volumes drops the field.
_OTHERS = {name: spec for name, (spec, _) in BAD_PODS.items() if "image" not in name}


def test_a_member_cannot_get_nodes_devices_or_files_that_are_not_the_teams(john):
    for name, spec in _OTHERS.items():
        for folder, document in ((f"{CORE}/pods", pod("bad", **spec)), (JOBS, job("bad", **spec))):
            message = refused(john.create, folder, document)
            assert "hpkit-team-" in message or "violates PodSecurity" in message, name


def test_a_member_cannot_run_the_image_of_another_team(john):
    for spec in ({"containers": [container(image=THEIRS)]},
                 {"initContainers": [container(name="first", image=THEIRS)]},
                 {"containers": [container(image="sha256:1a")]}):  # fmt: skip
        for folder, document in ((f"{CORE}/pods", pod("theirs", **spec)), (JOBS, job("theirs", **spec))):
            assert "another team's repository" in refused(john.create, folder, document)
    own = pod("own", containers=[container(image=THEIRS.replace("smith", "john"))])
    assert not tried(john.create, f"{CORE}/pods?dryRun=All", own)


def test_a_member_cannot_resize_a_running_pod(john, api):
    john.create(f"{CORE}/pods", pod("grows"))
    larger = {"spec": {"containers": [{"name": "main", "resources": {"requests": {"cpu": "40"}}}]}}
    assert 'cannot patch resource "pods/resize"' in refused(john.merge, f"{CORE}/pods/grows/resize", larger)


def test_a_member_cannot_publish_work_outside_the_cluster(john):
    for kind in ("NodePort", "LoadBalancer"):
        assert "publish" in refused(john.create, f"{CORE}/services", service(kind))
    ingresses = f"/apis/networking.k8s.io/v1/namespaces/{NAMESPACE}/ingresses"
    assert 'cannot create resource "ingresses"' in refused(john.create, ingresses, {"metadata": {"name": "i"}})
    inside = service()
    inside["metadata"]["labels"] = ATTACK
    john.create(f"{CORE}/services", inside)
    assert "publish" in refused(john.merge, f"{CORE}/services/s", {"spec": {"type": "NodePort"}})
