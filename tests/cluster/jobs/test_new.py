"""Manifests that hpkit writes for a team are admitted as predicted."""

import dataclasses
import itertools
import re

import pytest
import yaml

from hpkit.catalog import EFA, NETWORK_LAYERS, instance_types, kubelet_reserved
from hpkit.cluster.jobs.check import Manifest, check, read_manifests, repaired
from hpkit.cluster.jobs.checkpoints import Checkpoints
from hpkit.cluster.jobs.kinds import KINDS, PRIORITY, QUEUE, RUN_TIME, TOPOLOGY, WORKLOADS, templates, units
from hpkit.cluster.jobs.new import resources_of, team_of, verdict, workload_of
from hpkit.config.models.governance import MaxRunTime
from hpkit.config.models.inference import Inference
from hpkit.errors import SelectionError
from hpkit.kueue.configuration import JOB_RESOURCES
from hpkit.kueue.model import UNCONSTRAINED
from hpkit.plan.capacity import quantity
from hpkit.program.components.access.rbac import workload_rules
from hpkit.project import load_stack
from tests.builders import group, ranked_handson
from tests.cluster.jobs.builders import new_job, tainted, text_of

TRAINING = [kind for kind in KINDS if workload_of(kind) == "training"]
ENDPOINTS = ("inferenceendpointconfig", "jumpstartmodel")
KIND, P5 = "ml.g5.12xlarge", "ml.p5.48xlarge"


@pytest.fixture
def plan():
    return tainted(with_workloads("training", "inference"), key="own", value="x")


def with_workloads(*workloads, plan=None):
    plan = with_operators(plan or ranked_handson())
    teams = [
        dataclasses.replace(each, spec=each.spec.model_copy(update={"workloads": workloads})) for each in plan.teams
    ]
    return dataclasses.replace(plan, teams=tuple(teams))


def with_operators(plan):
    more = {"operators": ("kuberay-operator", "lws"), "inference": Inference()}
    return dataclasses.replace(plan, spec=plan.spec.model_copy(update=more))


def made(plan, team="john", **more):
    return new_job(plan, team, **{"priority": "training", "image": "x", **more})


def findings_of(document, plan):
    """Return the findings, without that nothing installs JobSet."""
    found = check(read_manifests("f", text_of(document)), plan)
    return [each for each in found if not each.message.startswith("nothing in ")]


def pods_of(document):
    (unit,) = units(document)
    return list(templates(unit))


@pytest.mark.parametrize("kind", KINDS)
def test_every_pod_and_job_that_is_made_names_the_queue(plan, kind):
    document = made(plan, kind=kind, count=2)
    for pods in pods_of(document):
        # Kueue itself, or the operator, writes the queue into the templates of the others.
        assert bool(pods.labelled) == (kind in TRAINING)
        for path in pods.labelled:
            here = document
            for step in path:
                here = here[step]
            assert here["metadata"]["labels"][QUEUE] == "hyperpod-ns-john-localqueue"


PATHS = ("/fsx/runs/train", "s3://bucket/runs")


@pytest.mark.parametrize(
    ("kind", "path"), [case for case in itertools.product(TRAINING, PATHS) if case != ("pytorchjob", PATHS[0])]
)
def test_each_pod_of_a_job_that_resumes_reaches_its_checkpoints(plan, kind, path):
    john = team_of(plan, "john")
    document = made(plan, kind=kind, count=2, checkpoints=Checkpoints.at(f"{path}/", plan, john))
    assert "&id" not in yaml.safe_dump(document), "no part is an alias of another"
    for pods in pods_of(document):
        spec = pods.template["spec"]
        (container,) = spec["containers"]
        assert container["env"][-1] == {"name": "CHECKPOINTS", "value": path}
        assert spec["terminationGracePeriodSeconds"] == 120
        volumes = {each["name"] for each in spec.get("volumes", ())}
        mounts = {each["name"]: each["mountPath"] for each in container.get("volumeMounts", ())}
        assert volumes == mounts.keys() == {*(["fsx-claim"] * (path[0] == "/")), *(["shm"] * (kind != "rayjob"))}
    assert findings_of(document, plan) == []


def test_a_pytorch_job_on_the_shared_file_system_is_refused(plan):
    checkpoints = Checkpoints.at(PATHS[0], plan, team_of(plan, "john"))
    with pytest.raises(SelectionError, match="starts no pod of a PyTorchJob on the shared file system"):
        made(plan, kind="pytorchjob", checkpoints=checkpoints)
    document = made(plan, kind="pytorchjob", count=2)
    for pods in pods_of(document):
        pods.template["spec"] = checkpoints.pod(pods.template["spec"])
    found = findings_of(document, plan)
    assert [(each.check, "leaves out supplementalGroupsPolicy" in each.message) for each in found] == [
        ("operator", True)
    ] * 2


def test_the_time_to_save_is_within_the_platforms_limit():
    plan = ranked_handson(teamLimits={"terminationGracePeriodSeconds": 45})
    assert Checkpoints.at("/fsx/a", plan, team_of(plan, "john")).grace_seconds == 45


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/fsx", "use a folder of the claim fsx-claim, such as /fsx/train, or s3://BUCKET/PREFIX"),
        ("/fsx/../other", "use a folder of the claim"),
        ("/data/a", "use a folder of the claim"),
        ("runs", "use a folder of the claim"),
        ("s3://bucket", "use a folder of the claim"),
        ("s3://Bucket/a", "use a folder of the claim"),
        ("/fsx/$(HOME)", "use a folder of the claim"),
    ],
)
def test_a_path_that_pods_cannot_reach_is_refused(plan, path, said):
    with pytest.raises(SelectionError, match=re.escape(f"--checkpoint {path}: {said}")):
        Checkpoints.at(path, plan, team_of(plan, "john"))


def test_what_cannot_resume_is_refused(plan):
    john, without = team_of(plan, "john"), load_stack("handson-dev").plans["dev"]
    with pytest.raises(SelectionError, match=r"handson-dev has no claim fsx-claim\. Set storage\.lustre\.teams"):
        Checkpoints.at("/fsx/a", without, john)
    with pytest.raises(SelectionError, match="a Deployment doesn't resume; omit --checkpoint"):
        made(plan, kind="deployment", checkpoints=Checkpoints.at("/fsx/a", plan, john))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ENDPOINTS])
def test_pods_meet_the_level_restricted_as_a_user_of_their_team(plan, kind):
    document = made(plan, kind=kind, count=2)
    assert "&id" not in yaml.safe_dump(document), "no part is an alias of another"
    for pods in pods_of(document):
        spec = pods.template["spec"]
        user = team_of(plan, "john").user_ids.start
        assert spec["securityContext"] == {
            "runAsNonRoot": True,
            "runAsUser": user,
            "runAsGroup": user,
            "seccompProfile": {"type": "RuntimeDefault"},
        }
        (container,) = spec["containers"]
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_the_pods_of_a_pytorch_job_have_a_master_to_find_and_are_as_many_as_asked(plan):
    for count, replicas in ((1, {"Master": 1}), (3, {"Master": 1, "Worker": 2})):
        document = made(plan, kind="pytorchjob", count=count)
        specs = document["spec"]["pytorchReplicaSpecs"]
        assert {name: each["replicas"] for name, each in specs.items()} == replicas
        assert verdict(plan, team_of(plan, "john"), document).words == (
            f"it fits john's own quota: {4 * count} of 12 nvidia.com/gpu of ml.g5.12xlarge"
        )


def test_workers_that_wait_in_a_public_image_are_refused_where_the_network_is_closed(plan):
    spec = plan.spec.model_copy(update={"network": plan.spec.network.model_copy(update={"closed": True})})
    closed = dataclasses.replace(plan, spec=spec)
    with pytest.raises(SelectionError, match=r"the image alpine:3\.10, which nodes in the closed network of handson"):
        made(closed, kind="pytorchjob", count=2)
    document = made(plan, kind="pytorchjob", count=2)
    assert [each.check for each in check(read_manifests("f", text_of(document)), closed)] == ["operator"]
    assert made(closed, kind="pytorchjob")["spec"]


def test_a_ray_job_is_submitted_without_a_job_that_would_name_no_queue_and_its_head_has_no_gpu(plan):
    spec = made(plan, kind="rayjob")["spec"]
    assert spec["submissionMode"] == "HTTPMode"
    head = spec["rayClusterSpec"]["headGroupSpec"]
    assert head["rayStartParams"] == {"num-gpus": "0"}
    assert {"name": "NVIDIA_VISIBLE_DEVICES", "value": "void"} in head["template"]["spec"]["containers"][0]["env"]


def test_half_of_the_memory_is_shared_where_a_pod_has_several_accelerators(plan):
    (pods,) = pods_of(made(plan))
    assert pods.template["spec"]["volumes"] == [{"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "73Gi"}}]
    (pods,) = pods_of(made(plan, instance_type="ml.m5.4xlarge"))
    assert "volumes" not in pods.template["spec"]


def test_karpenter_keeps_the_nodes_of_training():
    plan = with_operators(load_stack("autoscale-dev").plans["dev"])
    for kind in ("job", "pytorchjob", "rayjob"):
        document = made(plan, plan.teams[0].name, kind=kind, count=2, instance_type="ml.g5.8xlarge", priority=None)
        for pods in pods_of(document):
            assert pods.template["metadata"]["annotations"] == {"karpenter.sh/do-not-disrupt": "true"}
            del pods.template["metadata"]["annotations"]
        found = [each for each in check(read_manifests("f", text_of(document)), plan) if each.check == "disruption"]
        assert len(found) == len(pods_of(document))


@pytest.mark.parametrize("kind", KINDS)
def test_a_job_ends_after_the_default_run_time_of_its_team(plan, kind):
    john = team_of(plan, "john")
    limits = MaxRunTime(limit="7d", default="24h")
    john = dataclasses.replace(john, spec=john.spec.model_copy(update={"max_run_time": limits}))
    limited = dataclasses.replace(plan, teams=(john,))
    document = made(limited, kind=kind)
    labels = document["metadata"]["labels"]
    assert labels.pop(RUN_TIME, None) == ("86400" if kind in TRAINING else None)
    checks = ["run-time"] if kind in TRAINING else []
    for more, expected in (({}, checks), ({RUN_TIME: "604801"}, checks), ({RUN_TIME: "604800"}, [])):
        given = {**document, "metadata": {**document["metadata"], "labels": {**labels, **more}}}
        assert [each.check for each in findings_of(given, limited)] == expected
    with pytest.raises(ValueError, match="above the limit"):
        MaxRunTime(limit="1h", default="61m")


def test_a_new_version_of_a_deployment_needs_no_more_quota_than_it_has(plan):
    document = made(plan, kind="deployment", count=4)
    assert document["spec"]["strategy"]["rollingUpdate"] == {"maxSurge": 0, "maxUnavailable": 1}
    del document["spec"]["strategy"]
    document["spec"]["replicas"] = 3
    assert [each.check for each in check(read_manifests("f", text_of(document)), plan)] == []
    team = team_of(plan, "john")
    lends = team.spec.model_copy(update={"sharing": team.spec.sharing.model_copy(update={"strategy": "Lend"})})
    narrow = dataclasses.replace(plan, teams=(dataclasses.replace(team, spec=lends),))
    assert [each.check for each in check(read_manifests("f", text_of(document)), narrow)] == ["rollout"]
    # Kubernetes deletes one pod if both bounds round to 0.
    for bounds in ({"maxSurge": 0}, {"maxSurge": 0, "maxUnavailable": "25%"}):
        document["spec"]["strategy"] = {"rollingUpdate": bounds}
        assert list(check(read_manifests("f", text_of(document)), narrow)) == []


def test_a_priority_class_that_is_not_the_teams_is_refused(plan):
    john = team_of(plan, "john")
    john = dataclasses.replace(john, spec=john.spec.model_copy(update={"priority_classes": ("experiment",)}))
    narrow = dataclasses.replace(plan, teams=(john,))
    with pytest.raises(
        SelectionError, match=r"john can't use the priority class training: its priorityClasses are experiment"
    ):
        made(narrow, priority="training")
    assert made(narrow, priority="experiment")["metadata"]["labels"][PRIORITY] == "experiment-priority"


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_carries_queue_priority_and_whole_instances_and_has_no_finding(plan, kind):
    document = made(plan, kind=kind, count=2)
    assert document["metadata"]["namespace"] == "hyperpod-ns-john"
    assert document["metadata"]["labels"] == {QUEUE: "hyperpod-ns-john-localqueue", PRIORITY: "training-priority"}
    assert findings_of(document, plan) == []
    pods = pods_of(document)
    if kind == "jumpstartmodel":
        assert verdict(plan, team_of(plan, "john"), document).words.startswith("the operator chooses")
        return
    workers = pods[-1]
    assert sum(each.count for each in pods if each.template["spec"].get("nodeSelector")) == 2
    (container,) = workers.template["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == 4
    assert isinstance(read_manifests("f", text_of(document)), Manifest)


OPERATORS = {
    "rayjob": "operators: [kuberay-operator]",
    "leaderworkerset": "operators: [lws]",
    **dict.fromkeys(ENDPOINTS, "inference: {}"),
}


@pytest.mark.parametrize(("kind", "key"), OPERATORS.items())
def test_a_kind_whose_operator_the_file_does_not_install_is_an_error_with_the_key(plan, kind, key):
    document = made(plan, kind=kind)
    without = dataclasses.replace(plan, spec=plan.spec.model_copy(update={"operators": (), "inference": None}))
    with pytest.raises(SelectionError, match=re.escape(f"add `{key}` to `environments.dev`")):
        made(without, kind=kind)
    (found,) = check(read_manifests("f", text_of(document)), without)
    assert (found.check, found.severity, found.fix) == ("operator", "error", f"Add `{key}` to `environments.dev`")


def test_kinds_that_the_teams_workloads_do_not_include_are_refused():
    with pytest.raises(SelectionError) as refused:
        made(with_workloads("inference"))
    assert str(refused.value) == "john can't run Jobs: its workloads are inference; use --kind " + " or ".join(
        kind for kind in KINDS if kind not in TRAINING
    )
    with pytest.raises(SelectionError, match=r"can't run Deployments.*use --kind job or pytorchjob or"):
        made(with_workloads("training"), kind="deployment")
    with pytest.raises(SelectionError, match="its workloads are spaces; this command writes no other kind for them"):
        made(with_workloads("spaces"))
    assert made(with_workloads("inference"), kind="deployment")["kind"] == "Deployment"


def test_every_kind_needs_the_workload_whose_rules_create_it():
    for kind, workload in WORKLOADS.items():
        opened = [
            workload_type
            for workload_type in ("training", "inference")
            if any(f"{kind.lower()}s" in rule.resources for rule in workload_rules(workload_type))
        ]
        assert opened == [workload], kind


def test_a_pod_fits_beside_the_kubelet_and_daemon_sets_on_every_type_whose_size_is_known():
    known = [each for each in instance_types() if each.vcpu and each.memory_gib]
    assert len(known) > 50
    for kind in known:
        asked = resources_of(kind.name)["requests"]
        cpu, memory = kubelet_reserved(kind.vcpu, kind.memory_gib)
        assert 0 < quantity(asked["cpu"]) < kind.vcpu - cpu, kind.name
        assert 0 < quantity(asked["memory"]) < (kind.memory_gib - memory) * 2**30, kind.name
        assert asked.get(EFA, 0) == (kind.efa_interfaces or 0)


@pytest.mark.parametrize(
    ("team", "asked", "kind", "words"),
    [
        ("john", {"instance_type": "ml.m5.4xlarge"}, "never", "which has quota of ml.g5.12xlarge"),
        ("john", {"count": 3}, "quota", "it fits john's own quota: 12 of 12 nvidia.com/gpu of ml.g5.12xlarge"),
        ("smith", {"count": 2}, "borrowing", "1 instance of ml.g5.12xlarge"),
        (
            "smith",
            {"count": 6},
            "never",
            "at most 2 of its 6 pods fit the quota and borrow limit of smith (ml.g5.12xlarge: 1, and 1 to borrow)",
        ),
    ],
)
def test_the_answer_is_that_of_kueues_admission(plan, team, asked, kind, words):
    found = verdict(plan, team_of(plan, team), made(plan, team, **asked))
    assert found.kind == kind
    assert words in found.words


def test_topology_stands_on_the_pods_where_the_stack_schedules_by_it(plan):
    close = {"priority": None, "topology": ("required", NETWORK_LAYERS[2])}
    with pytest.raises(SelectionError, match=r"EC2 reports no network position for ml.g5.12xlarge"):
        made(plan, **close)
    scaled = load_stack("autoscale-dev").plans["dev"]
    silent = scaled.spec.governance.model_copy(update={"topology_aware_scheduling": None})
    for governance, words in ((scaled.spec.governance, ""), (silent, ", the default with `autoscaling`")):
        scaled = dataclasses.replace(scaled, spec=scaled.spec.model_copy(update={"governance": governance}))
        with pytest.raises(SelectionError, match=f"topologyAwareScheduling is Disabled{words}; remove --topology"):
            made(scaled, "research", instance_type="ml.g5.8xlarge", **close)
    topology = load_stack("topology-prod").plans["prod"]
    (pods,) = pods_of(made(topology, "pretraining", instance_type=P5, **close))
    assert pods.template["metadata"]["annotations"] == {TOPOLOGY["required"]: NETWORK_LAYERS[2]}
    (pods,) = pods_of(made(topology, "pretraining", instance_type=P5, priority=None))
    assert "annotations" not in pods.template["metadata"]
    document = made(topology, "pretraining", kind="pytorchjob", count=2, instance_type=P5, **close)
    names = [pods.template["metadata"]["annotations"]["kueue.x-k8s.io/podset-group-name"] for pods in pods_of(document)]
    assert names == ["train", "train"]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ENDPOINTS])
def test_pods_request_a_topology_where_only_some_types_of_their_queue_have_one(kind):
    allocations = {"john": [{"instanceType": each, "count": 2} for each in (KIND, P5)], "smith": []}
    plan = with_workloads("training", "inference", plan=ranked_handson(group("p5", P5, 2), allocations=allocations))
    off = dataclasses.replace(plan, topology_aware_scheduling=False)
    unmanaged = plan.spec.governance.model_copy(update={"topology_aware_scheduling": "Unmanaged"})
    unknown = dataclasses.replace(off, spec=plan.spec.model_copy(update={"governance": unmanaged}))
    for each, chosen, asks in ((plan, P5, True), (plan, KIND, False), (off, P5, False), (unknown, P5, True)):
        document = made(each, kind=kind, count=2, instance_type=chosen)
        assert verdict(each, team_of(each, "john"), document).kind == "quota"
        annotations = [pods.template["metadata"].pop("annotations", {}) for pods in pods_of(document)]
        assert annotations == [{UNCONSTRAINED: "true"} if asks else {}] * len(annotations)
        errors = {found.check for found in findings_of(document, each) if found.severity == "error"}
        assert errors == ({"topology"} if asks and each is plan else set())
        mended, _ = repaired(read_manifests("f", text_of(document)), each)
        assert [found for found in check(mended, each) if found.severity == "error"] == []


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"team": "jon"}, "has no team jon; did you mean john?"),
        ({"instance_type": "ml.g5.12xlage"}, "has no instances of ml.g5.12xlage; did you mean ml.g5.12xlarge?"),
        (
            {"instance_type": "ml.p5.48xlarge"},
            "has no instances of ml.p5.48xlarge; it has ml.g5.12xlarge, ml.m5.4xlarge",
        ),
        ({"instance_type": "z"}, "has no instances of z; it has ml.g5.12xlarge, ml.m5.4xlarge"),
        ({"priority": "trainin"}, "has no priority class trainin; did you mean training?"),
        ({"priority": "zzz"}, "has no priority class zzz; it has training, experiment"),
    ],
)
def test_what_the_stack_does_not_have_is_said_with_the_nearest_name(plan, more, message):
    with pytest.raises(SelectionError) as caught:
        made(plan, **more)
    assert message in str(caught.value)


def test_team_members_may_create_each_kind_that_is_written_or_checked():
    assert {kind.lower() for kind in JOB_RESOURCES} >= set(KINDS)
    assert JOB_RESOURCES.keys() == WORKLOADS.keys()
