"""What the admission policies reject and let in, asked of a real API server that runs no controllers: each field alone.

The files about queues, quotas and lifecycles show, on a whole platform, that the attacks behind these rules fail.
"""

import subprocess
from contextlib import ExitStack
from copy import deepcopy
from dataclasses import replace
from functools import partial
from itertools import chain

import pytest
import yaml

from hpkit.cluster.jobs.kinds import KINDS as KINDS_OF_NEW
from hpkit.cluster.jobs.kinds import templates, units
from hpkit.cluster.jobs.new import service_of, team_of, workload_of
from hpkit.config.models.inference import Inference
from hpkit.plan.derive import derive
from hpkit.plan.team_limits import pod_limits
from hpkit.program.components.admission.policies import policies_of, policies_of_users
from hpkit_local.kubernetes.api import Api, crds_in
from hpkit_local.supervisor.local_cloud import LocalCloud
from hpkit_local.supervisor.services import services_of
from hpkit_local.toolchain import get_all
from hpkit_local.toolchain.table import tool_named
from tests.builders import organization, team, typed
from tests.cluster.jobs.builders import new_job
from tests.conftest import NIGHTLY
from tests.program.cloud import ROOT
from tests.program.recorder import recording_of
from tests.running import WITH_PULUMI, eventually, get_tools
from tests.security.kinds import (
    BAD_PODS,
    CRDS,
    GOOD_PODS,
    KINDS,
    KUBEFLOW,
    RAY_EVASIONS,
    VOLUMES,
    any_fields,
    ray,
    service,
    templates_in,
    workload,
)
from tests.security.members import container, delete, job, member, pod, tried

pytestmark = pytest.mark.cluster

KUEUE, GROUP_OF_LWS = "kueue.x-k8s.io", "leaderworkerset.x-k8s.io"
QUEUE, RANK, RUN_TIME = (f"{KUEUE}/{name}" for name in ("queue-name", "priority-class", "max-exec-time-seconds"))
# Fields for which several tests expect a rejection.
FINALIZERS, SIZES, KEYS = "metadata.finalizers", "number and templates of pods", f"labels and annotations of {KUEUE}"
OWNERS, OF_EXISTING = "metadata.ownerReferences", "labels and annotations of an existing job"
OWNER = {"apiVersion": "v1", "kind": "Owner", "name": "o", "uid": "1"}
ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
# By team: what its entry in the file has besides a name.
TEAMS = {
    **{name: {} for name in ("john", "smith", "serving", "pretraining")},
    "ranked": {"priorityClasses": ["experiment"], "spacePriorityClass": "interactive"},
    "spacious": {"spacePriorityClass": "interactive"},
    "timed": {"maxRunTime": {"limit": "2h"}, "serviceAccounts": ["trainer"]},
}
# The limits of another environment, of the only team `open`.
OPENED = {
    "terminationGracePeriodSeconds": 600,
    "tolerations": ["reserved-for-smith"],
    "volumes": ["nfs"],
    "publish": ["LoadBalancer"],
}


def plan_of(teams, limits=None):
    given = [
        team(name, userIds={"first": 20_000 + 1000 * n, "count": 10}, **teams[name]) for n, name in enumerate(teams)
    ]
    rows = {name: [{"instanceType": "ml.g5.12xlarge", "count": 1}] for name in teams}
    data = organization(teams=given, allocations=rows)
    lustre = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "teams": True}
    data["environments"]["dev"] |= {"storage": {"lustre": lustre}}
    data["environments"]["dev"]["governance"] |= {"teamLimits": limits} if limits else {}
    return derive(typed(data), "dev")


PLANS = (plan_of({"open": {}}, OPENED), plan_of(TEAMS))
JOHN, SMITH = (team_of(PLANS[1], name).user_ids.start for name in ("john", "smith"))
FIELDS = {
    rejection.message: rejection.field
    for plan in PLANS
    for policy in (*policies_of(plan.teams, pod_limits(plan)), *policies_of_users(plan.teams))
    for rejection in policy.rejections
}


def of_kind(kind, version, spec=None):
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, "spec": spec or {}}


def space(name="lab", *, team="john", rank=None):
    labels = {QUEUE: f"hyperpod-ns-{team}-localqueue"} | ({RANK: rank} if rank else {})
    document = of_kind("Workspace", "workspace.jupyter.org/v1alpha1", {"displayName": "Lab"})
    return document | {"metadata": {"name": name, "labels": labels}}


# It exists since before the policies, and waits.
OLD = KINDS["PyTorchJob"]("old", terminationGracePeriodSeconds=86_400)
OLD["spec"]["runPolicy"]["suspend"] = True
OTHERS = (
    workload({}),
    space(),
    of_kind("ScaledObject", "keda.sh/v1alpha1"),
    *(of_kind(kind, "inference.sagemaker.aws.amazon.com/v1") for kind in ("InferenceEndpointConfig", "JumpStartModel")),
)


@pytest.fixture(scope="module")
def api(tmp_path_factory):
    """Return an administrator's client of an API server on which the policies of both environments are in force."""
    get_tools(*WITH_PULUMI)
    cloud = LocalCloud.named("admission", root=tmp_path_factory.mktemp("admission"))
    with ExitStack() as stack:
        stack.enter_context(cloud.claim_ports())
        for one in services_of(cloud):
            if one.name in ("etcd", "kube-apiserver"):
                one.prepare()
                log = stack.enter_context((cloud.folder / f"{one.name}.log").open("wb"))
                process = stack.enter_context(subprocess.Popen(one.command, stdout=log, stderr=log))
                stack.callback(process.terminate)
                eventually(lambda one=one: _answers(one), f"{one.name} is healthy")
        api = Api.of_kubeconfig(cloud.kubeconfig)
        _fill(api)
        api.cloud = cloud
        yield api


def _answers(service):
    try:
        return service.healthy()
    except OSError:
        return False


def _fill(api):
    tools = [tool_named("jobset-crds"), tool_named("kuberay-crds")] if NIGHTLY else []
    published = chain.from_iterable(crds_in(found.path) for found in get_all(tools, say=print))
    crds = {crd["metadata"]["name"]: crd for crd in (*any_fields(*OTHERS), *published)}
    (served,) = crds["workloads.kueue.x-k8s.io"]["spec"]["versions"]
    crds["workloads.kueue.x-k8s.io"]["spec"]["versions"].append({**served, "name": "v1beta1", "storage": False})
    for crd in crds.values():
        api.create(CRDS, crd)
    names = [*TEAMS, "open", "restricted"]
    for name in names:
        labels = {"pod-security.kubernetes.io/enforce": "restricted"} if name == "restricted" else {}
        api.create("/api/v1/namespaces", {"metadata": {"name": f"hyperpod-ns-{name}", "labels": labels}})
        for account in ("default", "trainer"):
            api.create(f"/api/v1/namespaces/hyperpod-ns-{name}/serviceaccounts", {"metadata": {"name": account}})
    # Members may do everything by RBAC, so that only the policies reject.
    groups = [
        {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": f"hyperpod:team:{name}"} for name in names
    ]
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
    bound = {"metadata": {"name": "members"}, "roleRef": role, "subjects": groups}
    api.create("/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", bound)
    eventually(lambda: not tried(api.create, folder_of(OLD), OLD), "the kind is served")
    recordings = [recording_of(plan) for plan in PLANS]
    for word, plural in (("", "ies"), ("Binding", "ybindings")):
        for recording, prefix in zip(recordings, ("open-", ""), strict=True):
            for entry in recording.all(f"admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy{word}"):
                document = deepcopy(entry.inputs)
                document["metadata"]["name"] = prefix + document["metadata"]["name"]
                if word:
                    document["spec"]["policyName"] = document["metadata"]["name"]
                api.create(f"{ADMISSION}{plural}", document)
    for team_name in ("open", "john"):
        probe = pod("probe", team=team_name, **mounting({}))
        eventually(
            lambda probe=probe, team_name=team_name: created(api, probe, team_name) == "securityContext.runAsUser",
            "the last is in force",
        )


@pytest.fixture(scope="module")
def john(api):
    return member(api.cloud, "john")


def put(document, path, value):
    """Return a copy with a value at a path of keys and positions, separated by spaces."""
    document = here = deepcopy(document)
    *keys, last = path.split()
    for key in keys:
        here = here[int(key)] if isinstance(here, list) else here.setdefault(key, {})
    if isinstance(here, list):
        here[int(last) :] = [deepcopy(value), *here[int(last) + 1 :]]
    else:
        here[last] = deepcopy(value)
    return document


def folder_of(document, team="john"):
    version, kind = document["apiVersion"], document["kind"].lower()
    root = "/apis" if "/" in version else "/api"
    return f"{root}/{version}/namespaces/hyperpod-ns-{team}/{kind}{'es' if kind.endswith('s') else 's'}"


def verdict(call, *arguments):
    """Return the field for which a request is rejected, or None if it is let in."""
    reason = tried(call, *arguments).rpartition(" denied request: ")[2]
    return FIELDS.get(reason, reason) or None


def created(client, document, team="john"):
    """Return for which field a new object is rejected; it isn't kept."""
    return verdict(client.create, f"{folder_of(document, team)}?dryRun=All", document)


def kept(api, document, status=None):
    """Create an object, with its status; return it as the API server has it."""
    live = api.create(folder_of(document), document)
    path = f"{folder_of(document)}/{document['metadata']['name']}/status"
    return api.merge(path, {"status": status}) if status else live


def updated(client, document, part=""):
    """Return for which field another version of an object is rejected."""
    path = f"{folder_of(document)}/{document['metadata']['name']}{part}?dryRun=All"
    return verdict(client.replace, path, document)


def deleted(client, live, **options):
    path = f"{folder_of(live)}/{live['metadata']['name']}"
    return verdict(delete, client, path, {"dryRun": ["All"], **options})


def suspended(kind, name):
    return put(KINDS[kind](name), "spec runPolicy suspend" if kind in KUBEFLOW else "spec suspend", value=True)


def work(kind, name):
    return space(name) if kind == "Workspace" else KINDS[kind](name)


@pytest.mark.parametrize("kind", [*KINDS, "Workspace"])
def test_a_member_creates_changes_and_deletes_work_of_any_kind_with_its_pods(api, john, kind):
    assert created(john, work(kind, "fine")) is None
    live = kept(api, work(kind, "plain"))
    assert updated(john, put(live, "metadata labels note", "mine")) is None
    posing = put(work(kind, "fine"), "metadata ownerReferences", [OWNER])
    assert created(john, posing) == updated(john, put(live, "metadata ownerReferences", [OWNER])) == OWNERS
    moved_away = put(live, f"metadata labels {QUEUE}", "hyperpod-ns-smith-localqueue")
    assert updated(john, moved_away) in ("metadata.labels", "metadata", OF_EXISTING)
    orphans = {"propagationPolicy": "Orphan"}
    for options, orphaned in (
        ({"propagationPolicy": "Background"}, False),
        ({"propagationPolicy": "Foreground"}, False),
        (orphans, True),
        ({"orphanDependents": True}, True),
        ({"orphanDependents": False}, False),
        # Without a policy, a Job orphans its pods.
        ({}, kind == "Job"),
    ):
        assert deleted(john, live, **options) == ("propagationPolicy" if orphaned else None), options
    assert deleted(api, live, **orphans) is None
    # Requested values override the object's values, which override the kind's default.
    held = kept(api, put(work(kind, "orphaning"), "metadata finalizers", ["orphan"]))
    assert deleted(john, held) == "propagationPolicy"
    assert deleted(john, held, propagationPolicy="Background") is updated(john, held) is None
    assert updated(john, put(held, "metadata finalizers", None)) == FINALIZERS
    assert deleted(john, kept(api, put(work(kind, "first"), "metadata finalizers", ["foregroundDeletion"]))) is None
    for names in (["example.com/hold"], ["orphan"], ["kueue.x-k8s.io/managed"]):
        held = put(work(kind, "held"), "metadata finalizers", names)
        # Kueue writes its own into pods alone.
        assert created(john, held) == (None if kind == "Pod" and "kueue" in names[0] else FINALIZERS)
        assert updated(john, put(live, "metadata finalizers", names)) == FINALIZERS
    owned, controlled = (
        kept(api, put(work(kind, name), "metadata ownerReferences", [{**OWNER, "controller": name != "owned"}]))
        for name in ("owned", "controlled")
    )
    background = {"propagationPolicy": "Background"}
    assert updated(john, owned) is deleted(john, owned, **background) is deleted(api, controlled, **background) is None
    assert updated(john, controlled) == "changes to a controlled object"
    assert deleted(john, controlled, **background) == ("deletion of a controlled Job" if kind == "Job" else None)


def moved(document):
    document = deepcopy(document)
    for template in templates_in(document):
        template["spec"]["nodeSelector"] = {"node.kubernetes.io/instance-type": "ml.m5.4xlarge"}
    return document


# By kind: how a member, or an autoscaler, adds pods to it.
GROWTH = {
    "Job": [("spec parallelism", 16)],
    **{
        kind: [(f"spec {field} {role} replicas", 16), (f"spec {field} Other", {"replicas": 1})]
        for kind, (_, field, role) in KUBEFLOW.items()
    },
    "JobSet": [
        ("spec replicatedJobs 0 replicas", 16),
        ("spec replicatedJobs 0 template spec parallelism", 16),
        ("spec replicatedJobs 1", {**KINDS["JobSet"]("x")["spec"]["replicatedJobs"][0], "name": "other"}),
    ],
    "RayCluster": [
        *((f"spec workerGroupSpecs 0 {name}", 16) for name in ("replicas", "numOfHosts")),
        ("spec workerGroupSpecs 0 suspend", False),
        ("spec workerGroupSpecs 1", {**KINDS["RayCluster"]("x")["spec"]["workerGroupSpecs"][0], "groupName": "other"}),
    ],
    "RayJob": [("spec rayClusterSpec workerGroupSpecs 0 replicas", 16)],
    "RayService": [("spec rayClusterConfig workerGroupSpecs 0 replicas", 16)],
    "LeaderWorkerSet": [("spec leaderWorkerTemplate size", 16)],
    "HyperPodPyTorchJob": [(f"spec replicaSpecs 0 {name}", 16) for name in ("replicas", "spares")],
}


@pytest.mark.parametrize("kind", GROWTH)
def test_the_pods_of_a_job_change_only_while_it_is_suspended_and_not_by_members(api, john, kind):
    running, waiting = kept(api, KINDS[kind]("running")), kept(api, suspended(kind, "suspended"))
    suspends = "spec runPolicy suspend" if kind in KUBEFLOW else "spec suspend"
    for change in (moved, *(partial(put, path=path, value=value) for path, value in GROWTH[kind])):
        # Kueue changes templates and numbers when it starts a job, and back when it stops it. If it admits a job
        # while a member changes it, it counts the old number of pods.
        assert updated(api, change(waiting)) is None
        assert updated(john, change(waiting)) in (SIZES, "types of replicas")
        # Of a Job that runs, the API server itself lets nobody change the template.
        if (kind, change) != ("Job", moved):
            stopped = put(change(running), suspends, value=True)
            assert (updated(api, change(running)), updated(api, stopped)) == (SIZES, None)
            assert updated(john, change(running)) in (SIZES, "types of replicas")
            assert updated(john, stopped) in (SIZES, "spec.suspend", "types of replicas")
    started = put(waiting, suspends, value=False)
    assert (updated(john, started), updated(api, started)) == ("spec.suspend", None)
    if kind == "LeaderWorkerSet":
        assert updated(john, put(running, "spec replicas", 16)) is None


def test_no_autoscaler_changes_the_scale_of_a_job_and_members_change_that_of_a_deployment(api, john):
    training = put(KINDS["PyTorchJob"]("scaled"), "spec pytorchReplicaSpecs Worker replicas", 1)
    for client, scaled, field in ((api, training, SIZES), (john, KINDS["Deployment"]("scaled"), None)):
        path = f"{folder_of(kept(api, scaled))}/scaled/scale?dryRun=All"
        assert verdict(client.merge, path, {"spec": {"replicas": 2}}) == field
        assert verdict(client.merge, path, {"spec": {"replicas": 1}}) is None


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "Pod"])
def test_every_template_of_a_kind_is_checked(api, john, kind):
    """Each place of a template, with violations of each policy about templates; the next tests have all others."""
    limited = [container(resources={"limits": {"cpu": "64"}})]
    # The API server completes the pods of a Deployment before Kueue counts them.
    uncounted = None if kind == "Deployment" else "spec.containers[].resources"
    for number, _ in enumerate(templates_in(KINDS[kind]("x"))):
        for path, value, field, own in (
            ("spec terminationGracePeriodSeconds", 121, "spec.terminationGracePeriodSeconds", False),
            ("spec containers", limited, uncounted, False),
            ("spec initContainers", [{**limited[0], "name": "first"}], uncounted, False),
            ("metadata finalizers", ["example.com/hold"], f"{FINALIZERS} of pod templates", True),
            ("metadata labels kueue.x-k8s.io/workload", "theirs", KEYS, True),
            ("metadata annotations kueue.x-k8s.io/workload", "theirs", KEYS, True),
        ):
            document = KINDS[kind]("bad")
            template = list(templates_in(document))[number]
            template.update(put(template, path, value))
            # Controllers make pods too.
            assert (created(john, document), created(api, document)) == (field, None if own else field), path


@pytest.mark.parametrize(("spec", "field"), BAD_PODS.values(), ids=BAD_PODS)
def test_no_team_has_such_pods(api, john, spec, field):
    whole = pod("bad", **spec)
    # Kueue counts none of them, whatever kind made them.
    for client, document in ((john, whole), (api, whole), (john, job("bad", **spec)), (api, workload(whole["spec"]))):
        assert created(client, document) == field


def sized(name="main", **resources):
    return [container(name=name, resources={name: dict.fromkeys(of, "1") for name, of in resources.items()})]


ALLOWED = {
    **GOOD_PODS,
    "requests of what it limits": {"containers": sized(limits=["cpu", "memory"], requests=["cpu", "memory"])},
    "requests of what it limits first": {"initContainers": sized("first", limits=["cpu"], requests=["cpu"])},
}


@pytest.mark.parametrize("spec", ALLOWED.values(), ids=ALLOWED)
def test_what_training_needs_is_let_in(john, spec):
    assert created(john, pod("good", **spec)) is created(john, job("good", **spec)) is None


def test_the_file_opens_what_it_names_and_no_more(api):
    opened, head = member(api.cloud, "open"), "spec.headGroupSpec.serviceType"
    tolerations = [{"key": "reserved-for-smith", "operator": "Exists"}]
    balanced, routed = (ray("RayCluster", "x", RAY_EVASIONS[name][0]) for name in ("a load balancer", "an ingress"))
    for document, field in (
        (job("x", team="open", terminationGracePeriodSeconds=600, tolerations=tolerations), None),
        (job("x", team="open", terminationGracePeriodSeconds=601), "spec.terminationGracePeriodSeconds"),
        (job("x", team="open", volumes=[{"name": "v", "nfs": VOLUMES["nfs"]}]), None),
        (job("x", team="open", volumes=[{"name": "v", "iscsi": VOLUMES["iscsi"]}]), "spec.volumes"),
        (service("LoadBalancer"), None),
        (service("NodePort"), "spec.type"),
        *((put(document, f"metadata labels {QUEUE}", "hyperpod-ns-open-localqueue"), field)
          for document, field in ((balanced, None), (routed, head))),
    ):  # fmt: skip
        assert created(opened, document, "open") == field


NOTES = (
    *("role-hash", "pod-suspending-parent", "prebuilt-workload-name", "elastic-job", "pod-group-serving", "workload"),
    *("safe-to-forcefully-delete", "podset", "is-group-workload", "multikueue-origin", "priority-boost"),
    *("admission-gated-by", "pod-group-name", "pod-group-total-count", "retriable-in-group"),
)


@pytest.mark.parametrize("kind", ["Pod", "Job", "Deployment", "LeaderWorkerSet", "Workspace"])
@pytest.mark.parametrize("place", ["labels", "annotations"])
def test_a_member_sends_no_note_of_kueues(john, kind, place):
    for key in (*(f"{KUEUE}/{note}" for note in NOTES), f"alpha.{KUEUE}/x", f"provreq.{KUEUE}/maxRunDurationSeconds"):
        # Kueue adds a hash to each pod, and reads that of pods in groups only.
        expected = None if (kind, key) == ("Pod", f"{KUEUE}/role-hash") else KEYS
        assert created(john, put(work(kind, "forged"), f"metadata {place} {key}", "x")) == expected, key


LWS = "spec leaderWorkerTemplate workerTemplate metadata annotations"
NOTE = "spec template metadata annotations kueue.x-k8s.io/pod-suspending-parent"
MANAGED = "metadata labels kueue.x-k8s.io/managed"
# By kind: where, what, and whether Kueue's webhooks write it.
WRITTEN = (
    ("Pod", MANAGED, "true", True),
    ("Pod", "metadata annotations kueue.x-k8s.io/role-hash", "0a1b2c3d", True),
    ("Deployment", f"spec template {MANAGED}", "true", True),
    ("Deployment", NOTE, "deployment", True),
    ("Deployment", NOTE, "job", False),
    ("Job", f"spec template {MANAGED}", "true", False),
    ("Job", NOTE, "deployment", False),
    ("LeaderWorkerSet", f"{LWS} kueue.x-k8s.io/pod-suspending-parent", f"{GROUP_OF_LWS}/leaderworkerset", True),
    ("LeaderWorkerSet", f"{LWS} kueue.x-k8s.io/pod-group-serving", "true", True),
    ("LeaderWorkerSet", f"{LWS} kueue.x-k8s.io/pod-index-offset", "1", True),
    ("JobSet", "spec replicatedJobs 0 template metadata labels kueue.x-k8s.io/workload", "x", False),
)


@pytest.mark.parametrize(("kind", "path", "value", "accepted"), WRITTEN)
def test_what_kueues_webhooks_write_is_let_in(john, kind, path, value, accepted):
    assert created(john, put(KINDS[kind]("noted"), path, value)) == (None if accepted else KEYS)


def test_what_kueue_wrote_into_a_running_job_may_stay_and_nothing_else_comes(api, john):
    podset = "spec pytorchReplicaSpecs Master template metadata labels kueue.x-k8s.io/podset"
    live = kept(api, put(KINDS["PyTorchJob"]("noted"), podset, "master"))
    assert updated(john, put(live, "metadata labels note", "mine")) is None
    assert updated(john, put(live, podset, "worker")) in (KEYS, SIZES)
    assert updated(john, put(live, f"metadata labels {RANK}", "x-priority")) is None
    assert updated(john, put(live, f"metadata labels {RUN_TIME}", "60")) == OF_EXISTING
    # The order of the types of replicas doesn't matter.
    live = kept(api, put(KINDS["PyTorchJob"]("ordered"), "spec pytorchReplicaSpecs Worker", {"replicas": 1}))
    turned = dict(reversed(live["spec"]["pytorchReplicaSpecs"].items()))
    assert updated(john, put(live, "spec pytorchReplicaSpecs", turned)) is None


def test_a_template_that_no_team_may_have_stays_for_kueue_and_not_for_members(api, john):
    live = api.read(f"{folder_of(OLD)}/old")
    assert updated(api, moved(live)) is updated(john, live) is None
    assert updated(john, moved(live)) in (SIZES, "spec.terminationGracePeriodSeconds")


def with_policy(kind, name, policy):
    return put(KINDS[kind](name), "spec runPolicy cleanPodPolicy", policy)


PRIORITY = "spec runPolicy schedulingPolicy"
TTL = "spec replicatedJobs 0 template spec ttlSecondsAfterFinished"
TOKEN = {"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token"}
BACKEND = {"defaultBackend": {"service": {"name": "s", "port": {"number": 80}}}}
TARGET = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}
AUTOSCALER = of_kind("HorizontalPodAutoscaler", "autoscaling/v2", {"maxReplicas": 4})
# What a member creates, and for which field it is rejected.
CREATED = (
    *((put(KINDS[kind]("x"), f"spec {field} {other}", {"replicas": 1}), "types of replicas")
      for kind, (_, field, role) in KUBEFLOW.items() for other in (role.lower(), "Other")),
    *((put(KINDS[kind]("x"), PRIORITY, {"priorityClass": "high"}), "spec.runPolicy.schedulingPolicy.priorityClass")
      for kind in KUBEFLOW),
    *((put(KINDS[kind]("x"), PRIORITY, {"minAvailable": 1}), None) for kind in KUBEFLOW),
    (put(KINDS["PyTorchJob"]("x"), "spec elasticPolicy", {"minReplicas": 1, "maxReplicas": 4}), None),
    (put(KINDS["PyTorchJob"]("x"), "spec elasticPolicy", {"metrics": []}), "spec.elasticPolicy"),
    (put(KINDS["HyperPodPyTorchJob"]("x"), "spec elasticPolicy", {"maxReplicas": 4}), "spec.elasticPolicy"),
    *((with_policy("MPIJob", "x", policy), "spec.runPolicy.cleanPodPolicy of an MPIJob") for policy in ("", "None")),
    *((with_policy("PyTorchJob", "x", policy), None) for policy in ("", "None")),
    (put(KINDS["JobSet"]("x"), "spec ttlSecondsAfterFinished", 0), None),
    (put(KINDS["JobSet"]("x"), TTL, 0), "spec.replicatedJobs[].template.spec.ttlSecondsAfterFinished"),
    *((put(made, f"metadata labels {QUEUE}", queue), "metadata.labels")
      for made in (space(), job("x"), pod("x")) for queue in ("hyperpod-ns-smith-localqueue", "")),
    *((pod("x", **{key: name}), None if name in ("", "default") else "spec.serviceAccountName")
      for key in ("serviceAccountName", "serviceAccount") for name in ("", "default", "trainer")),
    *((service(name), None) for name in (None, "ClusterIP")),
    (put(service("ExternalName"), "spec externalName", "example.com"), None),
    *((service(name), "spec.type") for name in ("NodePort", "LoadBalancer")),
    (of_kind("Ingress", "networking.k8s.io/v1", BACKEND), "spec.type"),
    (put(service(), "spec externalIPs", ["198.51.100.1"]), "spec.externalIPs"),
    ({**TOKEN, "metadata": {"name": "x", "annotations": {"kubernetes.io/service-account.name": "default"}}}, "type"),
    *((put(scaler, "spec scaleTargetRef", {**TARGET, "kind": kind}), field)
      for scaler in (AUTOSCALER, of_kind("ScaledObject", "keda.sh/v1alpha1"))
      for kind, field in (("Deployment", None), ("PyTorchJob", "spec.scaleTargetRef"))),
)  # fmt: skip


@pytest.mark.parametrize(("document", "field"), CREATED, ids=[f"{one['kind']}-{field}" for one, field in CREATED])
def test_a_member_creates_only_what_the_team_may_have(john, document, field):
    assert created(john, document) == field


def test_what_is_no_members_is_not_checked_for_members(api, john):
    assert created(api, service("LoadBalancer")) is None
    published = kept(api, put(service("NodePort"), "metadata name", "published"))
    assert updated(john, published) is None
    assert updated(john, put(published, "spec type", "LoadBalancer")) == "spec.type"
    cleaned = kept(api, with_policy("PyTorchJob", "cleaned", "Running"))
    changed = put(cleaned, "spec runPolicy cleanPodPolicy", "None")
    assert updated(john, changed) == "spec.runPolicy.cleanPodPolicy"
    assert created(api, put(service(), "spec externalIPs", ["198.51.100.1"])) == "spec.externalIPs"


CLAIMED = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
NO_WORK = (
    *({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}} for kind in ("ConfigMap", "Secret")),
    service(),
    of_kind("PersistentVolumeClaim", "v1", CLAIMED),
    put(AUTOSCALER, "spec scaleTargetRef", TARGET),
    of_kind("ScaledObject", "keda.sh/v1alpha1"),
)


@pytest.mark.parametrize("plain", NO_WORK, ids=[each["kind"] for each in NO_WORK])
def test_a_member_adds_no_finalizer_to_what_is_no_work(api, john, plain):
    held, claimed = (
        put(plain, "metadata finalizers", [f"{each}"]) for each in ("a.b/c", "kubernetes.io/pvc-protection")
    )
    assert created(john, plain) is created(john, claimed) is created(api, held) is None
    assert created(john, held) == FINALIZERS
    live = kept(api, held)
    assert updated(john, live) is updated(john, put(live, "metadata finalizers", None)) is None
    assert updated(john, put(live, "metadata finalizers", ["a.b/c", "a.b/d"])) == FINALIZERS


def ended(end, workers=None, **more):
    statuses = {"replicaStatuses": {"worker": {"active": workers}}} if workers is not None else more
    return {"conditions": [{"type": "Created", "status": "True"}, {"type": end, "status": "True"}], **statuses}


# Policy; status before and after; whether the change is let in.
ENDS = (
    ("", None, ended("Succeeded", 2), False),
    ("None", ended("Running", 2), ended("Failed", 2), False),
    ("None", None, ended("Succeeded", 0), True),
    # Operators write null for empty values.
    ("None", None, ended("Succeeded", replicaStatuses=None), True),
    ("None", None, ended("Succeeded", replicaStatuses={"Master": {}}), True),
    ("None", None, {"conditions": None, "replicaStatuses": None}, True),
    ("None", {"conditions": None}, ended("Running", 2), True),
    ("Running", None, ended("Succeeded", 2), True),
    ("All", None, ended("Failed", 2), True),
)
# Number of restarts, and how many of each Job have succeeded: before, after; whether the change is let in.
RESTARTS = (
    ((0, 0, 0), (1, 0, 0), True),
    ((0, 2, 0), (1, 2, 0), False),
    # A Job can succeed when another one fails.
    ((0, 0, 0), (1, 2, 0), False),
    ((0, 2, 0), (1, 0, 0), False),
    ((0, 0, 0), (0, 2, 0), True),
    ((1, 0, 0), (1, 2, 0), True),
)


def restarted(count, *succeeded):
    others = dict.fromkeys(("active", "failed", "ready", "suspended"), 0)
    jobs = [{"name": f"w{number}", "succeeded": one, **others} for number, one in enumerate(succeeded)]
    return {"restarts": count, "replicatedJobsStatus": jobs}


def test_a_job_ends_after_the_last_of_its_pods_and_no_job_of_a_job_set_runs_again(api):
    for number, (policy, before, after, accepted) in enumerate(ENDS):
        live = kept(api, with_policy("PyTorchJob", f"ends-{number}", policy), before)
        field = None if accepted else "status.replicaStatuses"
        assert updated(api, {**live, "status": after}, "/status") == field, ENDS[number]
    for number, (before, after, accepted) in enumerate(RESTARTS):
        live = kept(api, KINDS["JobSet"](f"restarts-{number}"), restarted(*before))
        field = None if accepted else "status.restarts"
        assert updated(api, {**live, "status": restarted(*after)}, "/status") == field, RESTARTS[number]


@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "RayService"])
def test_no_ray_cluster_is_larger_lives_longer_or_is_seen_further_than_its_queue_knows(api, john, kind):
    for name, (change, field, kinds) in RAY_EVASIONS.items():
        if kind in kinds:
            document = ray(kind, "x", change)
            assert (created(john, document), created(api, document)) == (field, None), name
    small = ray(
        kind, "x", lambda _, cluster: [cluster["workerGroupSpecs"][0].pop(one) for one in ("replicas", "minReplicas")]
    )
    assert created(john, small) is None


def test_a_ray_job_selects_a_cluster_from_its_creation_on_and_without_a_pod_of_its_own(api, john):
    selector, field = "spec clusterSelector", "spec.clusterSelector"
    selecting = kept(api, put(KINDS["RayJob"]("selects"), selector, {"ray.io/cluster": "small"}))
    assert created(john, put(KINDS["RayJob"]("x"), selector, {"ray.io/cluster": "small"})) is None
    assert updated(john, selecting) is None
    assert updated(john, put(selecting, selector, {})) == field
    assert updated(john, put(selecting, "spec ttlSecondsAfterFinished", 5)) == "spec.ttlSecondsAfterFinished"
    assert updated(john, put(kept(api, KINDS["RayJob"]("is-counted")), selector, {"a": "b"})) == field


@pytest.mark.parametrize(
    ("group", "kind", "name", "field"),
    [
        ("scheduling.k8s.io", "PriorityClass", "system-node-critical", "spec.priorityClassRef"),
        ("scheduling.k8s.io", "PriorityClass", "high", "spec.priorityClassRef of the team"),
        (KUEUE, "WorkloadPriorityClass", "training-priority", "spec.priorityClassRef of the team"),
        (KUEUE, "WorkloadPriorityClass", "experiment-priority", None),
        (KUEUE, "WorkloadPriorityClass", "interactive-priority", None),
    ],
)
@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_workload_has_a_rank_of_the_team(api, version, group, kind, name, field):
    rank = {"priorityClassRef": {"group": group, "kind": kind, "name": name}}
    if version == "v1beta1":
        rank = {"priorityClassName": name, "priorityClassSource": f"{group}/{kind.lower()}"}
    unranked = put(workload(pod("x")["spec"]), "metadata name", f"{version}-{name}")
    ranked = {**unranked, "apiVersion": f"{KUEUE}/{version}", "spec": {**unranked["spec"], **rank}}
    unlimited = field if name.startswith("system-") else None
    assert (created(api, ranked, "ranked"), created(api, ranked)) == (field, unlimited)
    live = kept(api, unranked)
    assert updated(api, {**live, "spec": ranked["spec"]}) == unlimited


@pytest.mark.parametrize("name", ["ranked", "spacious"])
def test_work_has_a_rank_of_the_team_and_a_space_that_of_its_teams_spaces(api, name):
    client = member(api.cloud, name)
    for given in ("", "experiment", "interactive", "x"):
        label = given and f"{given}-priority"
        expected = None if given in ("", "experiment") or name == "spacious" else RANK
        assert created(client, job("train", team=name, labels={RANK: label}), name) == expected
        assert created(client, space(team=name, rank=label), name) == (None if given == "interactive" else RANK)
        # The class of a Deployment's pods is that of its label, or else of its template's.
        served = put(KINDS["Deployment"]("x"), f"metadata labels {QUEUE}", f"hyperpod-ns-{name}-localqueue")
        assert created(client, put(served, f"spec template metadata labels {RANK}", label), name) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_has_a_run_time_within_its_teams(api, kind):
    client = member(api.cloud, "timed")
    document = put(KINDS[kind]("train"), f"metadata labels {QUEUE}", "hyperpod-ns-timed-localqueue")
    served = kind in ("Deployment", "LeaderWorkerSet")
    assert created(client, document, "timed") == (None if served else RUN_TIME)
    for seconds in ("7201", "0", "x", "7200"):
        limited = put(document, f"metadata labels {RUN_TIME}", seconds)
        assert created(client, limited, "timed") == (None if served or seconds == "7200" else RUN_TIME), seconds
        if kind == "Pod":
            named = put(put(document, f"metadata labels {RUN_TIME}", "60"), "spec serviceAccountName", "trainer")
            assert created(client, named, "timed") is None, "the file names the account"


ON_NODE, GRACE = "gracePeriodSeconds of a pod on a node", "gracePeriodSeconds"


def test_a_pod_that_is_deleted_stops_in_time_and_on_a_node_has_its_time_to_stop(api, john):
    def on_a_node(name):
        live, target = kept(api, pod(name)), {"kind": "Node", "name": "node"}
        api.create(f"{folder_of(live)}/{name}/binding", {"metadata": {"name": name}, "target": target})
        return live

    def verdicts(live, *seconds):
        return [deleted(john, live, **({} if each is None else {GRACE: each})) for each in seconds]

    assert verdicts(kept(api, pod("unplaced")), None, 0) == [None, None]
    live = on_a_node("placed")
    assert verdicts(live, None, 1, 120, 0, 121) == [None, None, None, ON_NODE, GRACE]
    delete(john, f"{folder_of(live)}/placed", {GRACE: 120})
    # Without a period, the API server leaves a pod that ends as it is.
    assert verdicts(live, 0, 1, 120, None) == [ON_NODE, ON_NODE, None, None]
    live = on_a_node("ended")
    api.merge(f"{folder_of(live)}/ended/status", {"status": {"phase": "Failed"}})
    assert verdicts(live, 0) == [None]


PATHS = ("/fsx/runs/train", "s3://bucket/runs")
NEW = [(kind, None) for kind in KINDS_OF_NEW]
# An endpoint has no checkpoints; the training operator loses a field that the file system requires.
NEW += [(kind, path) for kind in KINDS_OF_NEW if workload_of(kind) == "training" for path in PATHS]
NEW.remove(("pytorchjob", PATHS[0]))


@pytest.mark.parametrize(("kind", "path"), NEW)
def test_what_hpkit_job_new_writes_is_let_in(api, john, kind, path):
    given = team_of(PLANS[1], "john")
    given = replace(given, spec=given.spec.model_copy(update={"workloads": ("training", "inference")}))
    operators = {"operators": ("kuberay-operator", "lws"), "inference": Inference()}
    plan = replace(PLANS[1], teams=(given,), spec=PLANS[1].spec.model_copy(update=operators))
    document = new_job(plan, "john", path, kind=kind, count=2)
    for each in filter(None, (document, service_of(document))):
        assert created(john, each) is None
    (unit,) = units(document)
    for pods in templates(unit):
        spec = {"restartPolicy": "Never", **pods.template["spec"]}
        made = {"apiVersion": "v1", "kind": "Pod", "metadata": {**pods.template["metadata"], "name": "x"}, "spec": spec}
        assert created(api, made) is None
        if kind not in ("inferenceendpointconfig", "jumpstartmodel"):
            # The pods of hpkit's own manifests also pass the stricter level of Pod Security.
            made["metadata"] = {"name": "x"}
            assert created(api, made, "restricted") is None


SAMPLES = [
    pytest.param(document, id=f"{file.stem}-{document['kind']}")
    for file in sorted((ROOT / "docs" / "examples").glob("*.yaml"))
    for document in yaml.safe_load_all(file.read_text(encoding="utf-8"))
    if "namespace" in document["metadata"]
]


@pytest.mark.parametrize("document", SAMPLES)
def test_the_samples_of_the_documentation_are_let_in(api, document):
    owner = document["metadata"]["namespace"].removeprefix("hyperpod-ns-")
    assert created(member(api.cloud, owner), document, owner) is None


CLAIM = [{"name": "fsx", "persistentVolumeClaim": {"claimName": "fsx-claim"}}]
MOUNTS = {"volumeMounts": [{"name": "fsx", "mountPath": "/fsx"}]}
OWN = {"runAsUser": JOHN, "runAsGroup": JOHN, "supplementalGroupsPolicy": "Strict"}


def mounting(security=OWN, **spec):
    """Return the spec of a pod with the claim on the shared file system."""
    return {"securityContext": security, "volumes": CLAIM, "containers": main(), **spec}


def main(name="main", **security):
    return [container(name=name, **MOUNTS, securityContext={"allowPrivilegeEscalation": False, **security})]


def without(field):
    return {key: value for key, value in OWN.items() if key != field}


USER, GROUP, GROUPS = "runAsUser", "runAsGroup", "supplementalGroups"
POLICY, ESCALATION = "supplementalGroupsPolicy", "allowPrivilegeEscalation"
# What a pod with the claim may be, and for which field another is rejected.
MOUNTED = (
    (mounting(), None),
    (mounting({**OWN, "fsGroup": JOHN + 9, "supplementalGroups": [JOHN + 1]}), None),
    (mounting({POLICY: "Strict"}, containers=main(runAsUser=JOHN, runAsGroup=JOHN)), None),
    (mounting(initContainers=main("first")), None),
    # The operator adds a container that doesn't mount the claim.
    (mounting(initContainers=[container(name="init-pytorch")]), None),
    ({"volumes": [{"name": "cache", "emptyDir": {}}]}, None),
    *((mounting({**OWN, USER: user}), USER) for user in (0, SMITH, JOHN + 10, JOHN - 1)),
    (mounting(without(USER)), USER),
    (mounting(containers=main(runAsUser=0)), USER),
    (mounting(containers=main() + main("other", runAsUser=SMITH)), USER),
    (mounting(initContainers=main("first", runAsUser=SMITH)), USER),
    (mounting({**OWN, GROUP: SMITH}), GROUP),
    (mounting(without(GROUP)), GROUP),
    (mounting(containers=main(runAsGroup=0)), GROUP),
    *((mounting({**OWN, "fsGroup": group}), GROUPS) for group in (SMITH, 0)),
    (mounting({**OWN, GROUPS: [JOHN, SMITH]}), GROUPS),
    (mounting({**OWN, POLICY: "Merge"}), POLICY),
    (mounting(without(POLICY)), POLICY),
    (mounting(containers=[container(**MOUNTS)]), ESCALATION),
    (mounting(containers=main(allowPrivilegeEscalation=True)), ESCALATION),
    (mounting(shareProcessNamespace=True), ESCALATION),
    (mounting(initContainers=[container(name="first", **MOUNTS)]), ESCALATION),
)


@pytest.mark.parametrize(("spec", "field"), MOUNTED)
def test_a_pod_with_the_claim_runs_as_its_team_and_becomes_nobody_else(api, john, spec, field):
    field = field and f"securityContext.{field}"
    for client in (john, api):
        assert created(client, pod("fsx", **spec)) == created(client, job("fsx", **spec)) == field


def test_the_ids_of_a_pod_are_those_of_its_own_team_also_with_an_ephemeral_claim(api, john):
    assert created(api, pod("fsx", team="smith", **mounting()), "smith") == "securityContext.runAsUser"
    # Pod `fsx` with a volume `claim` creates the claim `fsx-claim`, which binds the team's volume.
    claim = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}}
    volume = {"name": "fsx", "ephemeral": {"volumeClaimTemplate": {"spec": claim}}}
    assert created(john, pod("fsx", **mounting({**OWN, USER: SMITH}, volumes=[volume]))) == "securityContext.runAsUser"
