"""User manifests: what is wrong, where, and what `--write` fixes."""

import copy
import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hpkit.catalog import NETWORK_LAYERS
from hpkit.cluster.jobs.check import check, read_manifests, repaired
from hpkit.cluster.jobs.kinds import TOPOLOGY, templates, units
from hpkit.errors import InputError
from hpkit.plan.derive import derive
from hpkit.project import load_stack
from tests.builders import organization, ranked_handson, team, typed
from tests.cluster.jobs.builders import tainted, text_of
from tests.security.kinds import BAD_PODS, GOOD_PODS, ray
from tests.security.kinds import KINDS as MAKERS
from tests.security.members import container

PLAN = ranked_handson()
WITH_TOPOLOGY = load_stack("topology-prod").plans["prod"]
SHARED = "/dev/shm"  # noqa: S108 - where a pod mounts it
GOOD = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {
        "name": "train",
        "namespace": "hyperpod-ns-john",
        "labels": {"kueue.x-k8s.io/queue-name": "hyperpod-ns-john-localqueue"},
    },
    "spec": {
        "parallelism": 1,
        "template": {
            "metadata": {"labels": {"kueue.x-k8s.io/queue-name": "hyperpod-ns-john-localqueue"}, "annotations": {}},
            "spec": {
                "nodeSelector": {"node.kubernetes.io/instance-type": "ml.g5.12xlarge"},
                "containers": [
                    {
                        "name": "main",
                        "resources": {"limits": {"nvidia.com/gpu": 4}},
                        "volumeMounts": [{"name": "shm", "mountPath": SHARED}],
                    }
                ],
            },
        },
    },
}


def changed(change):
    document = copy.deepcopy(GOOD)
    change(document, document["metadata"]["labels"], document["spec"]["template"])
    return document


def findings(*documents, plan=PLAN):
    return findings_in(text_of(*documents), plan)


def test_a_good_one_has_no_finding():
    assert findings(GOOD) == []


def with_teams(**update):
    teams = (dataclasses.replace(each, spec=each.spec.model_copy(update=update)) for each in PLAN.teams)
    return dataclasses.replace(PLAN, teams=tuple(teams))


def test_a_job_of_a_paused_team_is_not_said_to_never_run():
    found = findings(GOOD, plan=with_teams(activation_state="Disabled"))
    assert [(each.severity, each.message[:19]) for each in found] == [("warning", "team john is paused")]


def annotate(name, value):
    return lambda _document, _labels, template: template["metadata"]["annotations"].update({name: value})


def limits(selector=GOOD["spec"]["template"]["spec"]["nodeSelector"], **resources):
    def change(_document, _labels, template):
        template["spec"]["nodeSelector"] = dict(selector)
        template["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}, **resources}

    return change


def apart(key):
    """Return a change to five pods with one GPU each, which must not share a node, or a zone."""
    rule = {"topologyKey": key, "labelSelector": {"matchExpressions": [{"key": "app", "operator": "Exists"}]}}

    def change(document, _labels, template):
        document["spec"]["parallelism"] = 5
        template["metadata"]["labels"]["app"] = "apart"
        template["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}}
        rules = {"requiredDuringSchedulingIgnoredDuringExecution": [rule]}
        template["spec"]["affinity"] = {"podAntiAffinity": rules}

    return change


def contain(place, **asked):
    return with_spec(**{place: [{"name": "x", "resources": {"requests": asked, "limits": asked}}]})


def labelled(name, value):
    return lambda _document, labels, _template: labels.update({f"kueue.x-k8s.io/{name}": value})


def placed(namespace):
    return lambda document, *_: document["metadata"].update(namespace=namespace)


def set_spec(**more):
    return lambda document, *_: document["spec"].update(more)


def with_spec(**more):
    return lambda _document, _labels, template: template["spec"].update(more)


def drop_namespace(document, *_):
    del document["metadata"]["namespace"]


def drop_queue(document, labels, _template):
    labels["own"] = labels.pop("kueue.x-k8s.io/queue-name")
    document["metadata"].update(namespace="hyperpod-ns-zq")


def select(value, key="node.kubernetes.io/instance-type"):
    return with_spec(nodeSelector={key: value})


ELSEWHERE = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["ml.p5.48xlarge"]}
TERMS = {"nodeSelectorTerms": [{"matchExpressions": [ELSEWHERE]}]}
BY_AFFINITY = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": TERMS}}
CLASSES = "one of training-priority, experiment-priority, or remove the label"
# Change, check, message, fix.
MISTAKES = [
    (
        lambda _d, labels, _t: (labels.clear(), labels.update(own="a")),
        "queue",
        "has no queue",
        "hyperpod-ns-john-localqueue",
    ),
    (
        labelled("queue-name", "hyperpod-ns-smith-localqueue"),
        "queue",
        "the queue hyperpod-ns-smith-localqueue; the queue of john is hyperpod-ns-john-localqueue",
        "hyperpod-ns-john-localqueue",
    ),
    (labelled("priority-class", "training"), "priority", "no priority class training", "Use `training-priority`"),
    (labelled("priority-class", "zzz"), "priority", "has no priority class zzz", CLASSES),
    (labelled("priority-class", "zzz-priority"), "priority", "has no priority class zzz-priority", CLASSES),
    (drop_namespace, "namespace", "has no namespace,", "`namespace: hyperpod-ns-john`"),
    (placed("hyperpod-ns-jon"), "namespace", "hyperpod-ns-jon isn't a team namespace", "Use `hyperpod-ns-john`"),
    (placed("hyperpod-ns-none"), "namespace", "hyperpod-ns-none isn't a team namespace", "Use `hyperpod-ns-john`"),
    (drop_queue, "namespace", "zq isn't a team namespace", "one of hyperpod-ns-john, hyperpod-ns-smith"),
    (
        select("ml.g5.24xlarge"),
        "instance-type",
        "has no instances of ml.g5.24xlarge",
        "Use one of ml.g5.12xlarge, ml.m5.4xlarge",
    ),
    (select("ml.g5.12xlage"), "instance-type", "has no instances of ml.g5.12xlage", "Use `ml.g5.12xlarge`"),
    (
        with_spec(nodeSelector={}, affinity=BY_AFFINITY),
        "instance-type",
        "no instances of the types that the pods' node affinity",
        "Use one of ml.g5.12xlarge, ml.m5.4xlarge",
    ),
    (set_spec(parallelism=9), "quota", "it can never run: at most 4 of", "hpkit quota --stack handson-dev"),
    (
        contain("containers", **{"nvidia.com/gpu": 5}),
        "quota",
        "5 nvidia.com/gpu of ml.g5.12xlarge, but an instance provides 4",
        "Request less",
    ),
    (
        contain("containers", **{"nvidia.com/gpu": 4, "cpu": 90}),
        "quota",
        "90 cpu of ml.g5.12xlarge, but an instance provides 44.61; Kueue admits it once quota is free, and it holds",
        "Request less",
    ),
    (contain("initContainers", **{"nvidia.com/gpu": 40}), "quota", "40 nvidia.com/gpu", "Request less"),
    (
        contain("containers", **{"nvidia.com/gpu": 4, "example.com/fpga": 1}),
        "quota",
        "the queue of john doesn't count example.com/fpga",
        "Remove that request",
    ),
    (limits(limits={5: 7, "nvidia.com/gpu": 4}), "quota", "the queue of john doesn't count 5", "Remove that request"),
    (
        annotate(TOPOLOGY["required"], NETWORK_LAYERS[2]),
        "topology",
        "its pods request a topology, but EC2 reports no network position for ml.g5.12xlarge",
        "Remove the topology annotation",
    ),
    (
        apart("kubernetes.io/hostname"),
        "node",
        "each of its 5 pods needs a node of its own, and handson-dev has at most 4 of ml.g5.12xlarge",
        "at most 4 pods",
    ),
    (
        apart("topology.kubernetes.io/zone"),
        "node",
        "5 pods needs another topology.kubernetes.io/zone, and the nodes of ml.g5.12xlarge in handson-dev have 1,",
        "at most 1 pod,",
    ),
    (with_spec(os={"name": "windows"}), "node", "its pods need windows, but all nodes run Linux", "Remove os"),
    (select("windows", key="kubernetes.io/os"), "node", "has the label kubernetes.io/os: windows", "Use linux"),
    (
        limits(requests={"cpu": "44"}),
        "accelerators",
        "1 of 4 nvidia.com/gpu of ml.g5.12xlarge and 44 of its 48 CPUs, so no other pod can use the other 3",
        "at most 12 CPUs,",
    ),
    (
        limits({}, requests={"cpu": "44"}),
        "accelerators",
        "1 of 4 nvidia.com/gpu of ml.g5.12xlarge and 44 of its 48 CPUs,",
        "at most 12 CPUs,",
    ),
    (
        lambda _d, _l, template: template["spec"]["containers"][0].pop("resources"),
        "accelerators",
        "none of its 4 nvidia.com/gpu",
        "`nvidia.com/gpu`,",
    ),
]


@pytest.mark.parametrize(("change", "check", "message", "fix"), MISTAKES)
def test_each_mistake_is_said_with_what_puts_it_right(change, check, message, fix):
    (finding,) = findings(changed(change))
    assert (finding.check, finding.file) == (check, "job.yaml")
    assert message in finding.message
    assert fix in finding.fix


def of_team(plan, name, value):
    """Return a job of the first team of a plan, with an annotation of its pods."""
    team = plan.teams[0]
    document = changed(annotate(name, value))
    document["metadata"] |= {"namespace": team.namespace, "labels": {"kueue.x-k8s.io/queue-name": team.local_queue}}
    document["spec"]["template"]["metadata"]["labels"] = dict(document["metadata"]["labels"])
    kind = team.quota_resources[0].instance_type
    document["spec"]["template"]["spec"]["nodeSelector"] = {"node.kubernetes.io/instance-type": kind}
    return document


@pytest.mark.parametrize(
    ("plan", "name", "value", "message"),
    [
        (WITH_TOPOLOGY, TOPOLOGY["required"], "topology.k8s.aws/network-node-layer-4", "isn't a network layer"),
        (WITH_TOPOLOGY, "kueue.x-k8s.io/podset-require-topology", NETWORK_LAYERS[0], "Kueue has no annotation"),
        (load_stack("autoscale-dev").plans["dev"], TOPOLOGY["required"], NETWORK_LAYERS[0], "Kueue ignores"),
    ],
)
def test_topology_that_kueue_would_not_read_is_said(plan, name, value, message):
    document = of_team(plan, name, value)
    found = [each for each in findings(document, plan=plan) if each.check == "topology"]
    assert [message in each.message for each in found] == [True]
    document["metadata"]["annotations"] = document["spec"]["template"]["metadata"].pop("annotations")
    said = [each.message for each in findings(document, plan=plan) if each.check == "topology"]
    assert said == [f"{name} is on the Job, but Kueue reads it from the pod template"]


def of_pods(**more):
    return changed(with_spec(**more))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (of_pods(volumes=[{"name": "data", "hostPath": {"path": "/data"}}]), "its volume data is /data of the node"),
        (of_pods(hostNetwork=True), "the node's network (hostNetwork),"),
        (of_pods(hostIPC=True), "the node's memory (hostIPC),"),
        (
            of_pods(initContainers=[{"name": "first", "securityContext": {"privileged": True}}]),
            "its container first sets privileged: true",
        ),
    ],
)
def test_what_the_namespaces_level_refuses_is_said_where_it_stands(document, message):
    text = text_of(document)
    (finding,) = check(read_manifests("job.yaml", text), PLAN)
    assert finding.check == "pod-security"
    assert message in finding.message
    assert finding.message.endswith("which Pod Security rejects in a team's namespace (level baseline)")
    line = text.splitlines()[finding.line - 1]
    assert any(word in line for word in ("hostPath", "hostNetwork", "hostIPC", "privileged"))


def test_the_nodes_shared_memory_becomes_the_pods_own():
    text = mended(text_of(of_pods(volumes=[{"name": "shm", "hostPath": {"path": SHARED}}])))
    (document,) = read_manifests("job.yaml", text).documents
    (volume,) = document["spec"]["template"]["spec"]["volumes"]
    assert volume == {"name": "shm", "emptyDir": {"medium": "Memory"}}


def test_each_finding_says_where_it_is():
    text = text_of(GOOD, changed(labelled("priority-class", "training")))
    (found,) = check(read_manifests("job.yaml", text), PLAN)
    assert text.splitlines()[found.line - 1][found.column - 1 :].startswith("kueue.x-k8s.io/priority-class: training")


def mended(text, plan=PLAN):
    return repaired(read_manifests("job.yaml", text), plan)[0].text


def test_what_can_be_put_right_is_and_comments_stay():
    wrong = changed(labelled("priority-class", "training"))
    text = text_of(wrong).replace("kind: Job", "kind: Job  # mine").replace("hyperpod-ns-john-localqueue", "other")
    after = mended(text)
    assert list(check(read_manifests("job.yaml", after), PLAN)) == []
    assert "kind: Job  # mine" in after
    assert "kueue.x-k8s.io/priority-class: training-priority" in after


WIDE = """\
kind:   Job
metadata:
    name: "train"   # ours
    labels: {kueue.x-k8s.io/priority-class: 'training', team: a}
spec:
    template:
        spec:
            nodeSelector: {node.kubernetes.io/instance-type: ml.g5.12xlarge}
            containers:
            -   name: main
                resources: {limits: {nvidia.com/gpu: 4}}
"""


def test_comments_and_quotes_stay():
    text = WIDE.replace("team: a", "kueue.x-k8s.io/queue-name: hyperpod-ns-john-localqueue")
    after = mended(text)
    assert '  name: "train"     # ours\n' in after
    assert "priority-class: 'training-priority'" in after
    assert "nodeSelector: {node.kubernetes.io/instance-type: ml.g5.12xlarge}" in after
    assert mended(text.replace("\n", "\r\n")).replace("\r\n", "\n") == mended(text)
    assert "\n" not in mended(text.replace("\n", "\r\n")).replace("\r\n", "")


def test_topology_that_is_misplaced_or_misspelt_is_put_right():
    document = of_team(WITH_TOPOLOGY, "kueue.x-k8s.io/podset-require-topology", "topology.k8s.aws/network-node-layer-4")
    document["metadata"]["annotations"] = document["spec"]["template"]["metadata"].pop("annotations")
    after = mended(text_of(document), WITH_TOPOLOGY)
    assert [each for each in check(read_manifests("f", after), WITH_TOPOLOGY) if each.check == "topology"] == []
    (pods,) = templates(next(units(read_manifests("f", after).documents[0])))
    ((name, value),) = pods.template["metadata"]["annotations"].items()
    assert (name, value) in {(TOPOLOGY["required"], layer) for layer in NETWORK_LAYERS}


def test_a_missing_namespace_does_not_hide_what_else_is_wrong():
    document = changed(drop_namespace)
    document["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] = "zzz"
    assert {each.check for each in findings(document)} == {"namespace", "priority"}
    fixed = repaired(read_manifests("job.yaml", text_of(document)), PLAN)
    assert [each.check for each in fixed[1]] == ["namespace"]
    assert [each.check for each in check(fixed[0], PLAN)] == ["priority"]


def test_pods_that_name_no_queue_are_said_though_the_job_does():
    (found,) = findings(changed(lambda _d, _l, template: template["metadata"].pop("labels")))
    assert found.message.startswith(
        "for the objects that it creates: they have no queue, so the admission policy rejects each"
    )
    after = mended(text_of(changed(lambda _d, _l, template: template.pop("metadata"))))
    assert findings_in(after) == []


def findings_in(text, plan=PLAN):
    """Return the findings, without the one that most documents here have: no memory at /dev/shm."""
    return [each for each in check(read_manifests("job.yaml", text), plan) if each.check != "shared-memory"]


def test_the_jobs_of_a_job_set_name_the_queue_too():
    job = {"spec": GOOD["spec"]}
    head = {"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet"}
    document = {**GOOD, **head, "spec": {"replicatedJobs": [{"name": "a", "replicas": 2, "template": job}]}}
    operator, queue = findings(document)
    assert (operator.check, operator.severity, queue.check) == ("operator", "warning", "queue")
    after = mended(text_of(document))
    assert [each.check for each in findings_in(after)] == ["operator"]
    labels = read_manifests("f", after).documents[0]["spec"]["replicatedJobs"][0]["template"]["metadata"]["labels"]
    assert labels == {"kueue.x-k8s.io/queue-name": "hyperpod-ns-john-localqueue"}


def test_a_job_that_completes_with_fewer_pods_than_run_side_by_side_asks_for_those():
    assert findings(changed(set_spec(parallelism=5, completions=2))) == []


def test_pods_that_never_run_are_found_and_a_job_without_labels_has_those_of_its_pods():
    assert findings(changed(lambda document, _l, _t: document["metadata"].pop("labels"))) == []
    (none,) = findings(changed(set_spec(parallelism=0)))
    paused = {**changed(set_spec(replicas=1, paused=True)), "kind": "Deployment", "apiVersion": "apps/v1"}
    held, *_ = findings(paused)
    assert [(each.severity, each.check) for each in (none, held)] == [
        ("warning", "parallelism"),
        ("warning", "rollout"),
    ]
    wide = changed(contain("containers", **{"nvidia.com/gpu": 3}))
    wide["spec"] |= {"parallelism": 5, "completions": 5}
    (found,) = findings(wide)
    assert found.message.startswith("it can never run: at most 4 of its 5 pods find a place: handson-dev has no more ")


def test_a_deployment_of_which_some_pods_fit_is_warned_of():
    document = {**changed(set_spec(replicas=5)), "kind": "Deployment", "apiVersion": "apps/v1"}
    (found,) = findings(document)
    words = "at most 4 of its 5 pods fit the quota and borrow limit of john (ml.g5.12xlarge: 3, and 1 to borrow)"
    assert (found.severity, found.check, found.message) == ("warning", "quota", words)
    # Their quota of CPUs would do for more.
    document["spec"]["replicas"] = 300
    tiny = {"limits": {"nvidia.com/gpu": 0, "cpu": "10m", "memory": "1Mi"}}
    document["spec"]["template"]["spec"]["containers"][0]["resources"] = tiny
    words = "at most 196 of its 300 pods find a place: a kubelet runs at most 49 pods on ml.g5.12xlarge"
    (found,) = (each for each in findings(document) if each.check == "quota")
    assert (found.severity, found.message, found.fix) == ("warning", words, "Run at most 196 pods")


BIG = changed(contain("containers", **{"nvidia.com/gpu": 5}))
POD = BIG["spec"]["template"]
HEAD = {"metadata": BIG["metadata"]}


@pytest.mark.parametrize(
    "document",
    [
        {"kind": "List", "items": [{"kind": "ConfigMap"}, BIG]},
        {
            "kind": "CronJob",
            **HEAD,
            "spec": {"jobTemplate": {"metadata": {"labels": BIG["metadata"]["labels"]}, "spec": BIG["spec"]}},
        },
        {"kind": "AppWrapper", **HEAD, "spec": {"components": [{"template": BIG}]}},
        {
            "kind": "HyperPodPyTorchJob",
            **HEAD,
            "spec": {"replicaSpecs": [{"name": "pods", "replicas": 2, "template": POD}]},
        },
        {"kind": "LeaderWorkerSet", **HEAD, "spec": {"leaderWorkerTemplate": {"size": 2, "workerTemplate": POD}}},
        {"kind": "StatefulSet", **HEAD, "spec": {"replicas": 1, "template": POD}},
    ],
    ids=lambda document: document["kind"],
)
def test_every_kind_that_is_queued_is_looked_into(document):
    found = {each.check: each for each in findings(document) if each.severity == "error"}
    not_installed = ["operator"] if document["kind"] in ("LeaderWorkerSet", "HyperPodPyTorchJob") else []
    assert list(found) == [
        *(["kind"] if document["kind"] in ("AppWrapper", "CronJob", "StatefulSet") else not_installed),
        "quota",
    ]
    assert "5 nvidia.com/gpu" in found["quota"].message


@pytest.mark.parametrize(
    ("taint", "toleration", "words"),
    [
        ({"key": "own", "value": "x"}, {}, "don't tolerate, such as own=x:NoSchedule, so its"),
        ({"key": "own", "value": "x", "effect": "NoExecute"}, {"key": "own", "value": "y"}, "own=x:NoExecute"),
        ({"key": "own", "value": "x"}, {"key": "own", "value": "x"}, None),
        ({"key": "own"}, {"key": "own", "operator": "Exists"}, None),
        ({"key": "own", "effect": "PreferNoSchedule"}, {}, None),
        # The API server adds the toleration of a requested resource.
        ({"key": "nvidia.com/gpu"}, {}, None),
    ],
)
def test_taints_of_all_nodes_for_its_pods_must_be_tolerated(taint, toleration, words):
    tolerate = lambda _d, _l, template: template["spec"].update(tolerations=[toleration] if toleration else [])  # noqa: E731
    # Other groups have no taint, but no GPUs either.
    found = findings(changed(tolerate), plan=tainted(PLAN, **taint))
    assert [each.check for each in found] == ["node"] * bool(words)
    assert all(words in each.message for each in found)


@pytest.mark.parametrize(
    ("group", "count", "words"),
    [
        ({"replicas": 2, "minReplicas": 0, "maxReplicas": 2}, 2, None),
        ({"replicas": 1, "rayStartParams": None}, 1, "rejects a group without rayStartParams"),
        ({"minReplicas": 0}, 0, "has no workers, because KubeRay's default for replicas is 0"),
        ({"minReplicas": 2}, 0, "at least minReplicas workers, 2, but Kueue counts replicas, 0"),
        ({"replicas": 4, "maxReplicas": 3}, 4, "at most maxReplicas workers, 3: the other 1 only hold quota"),
    ],
)
@pytest.mark.parametrize("kind", ["RayCluster", "RayJob", "RayService"])
def test_workers_of_ray_are_those_that_kueue_and_kuberay_count(kind, group, count, words):
    def change(_spec, cluster):
        (workers,) = cluster["workerGroupSpecs"]
        cluster["workerGroupSpecs"] = [{"template": workers["template"], "rayStartParams": {}, **group}]

    document = in_namespace(ray(kind, "c", change))
    (unit,) = units(document)
    assert [each.count for each in templates(unit) if "workerGroupSpecs" in each.path] == [count]
    messages = [each.message for each in findings(document)]
    assert not words or any(words in each for each in messages)
    assert bool(words) == any("workers" in each or "rayStartParams" in each for each in messages)
    document["spec"]["managedBy"] = "kueue.x-k8s.io/multikueue"
    assert "has no controller kueue.x-k8s.io/multikueue: no pod is created" in str(findings(document))


def test_scratch_space_is_limited_and_not_requested():
    def scratch(requests):
        def change(_document, _labels, template):
            template["spec"]["volumes"] = [{"name": "local", "emptyDir": {"sizeLimit": "20Gi"}}]
            template["spec"]["containers"][0]["resources"]["requests"] = requests

        return changed(change)

    assert findings(scratch({})) == []
    (found,) = findings(scratch({"ephemeral-storage": "20Gi"}))
    assert "doesn't count ephemeral-storage" in found.message
    assert found.fix == "Remove that request"


def test_a_priority_class_that_is_not_the_teams_is_said():
    wrong = changed(labelled("priority-class", "training-priority"))
    (finding,) = findings(wrong, plan=with_teams(priority_classes=("experiment",)))
    assert (finding.check, finding.edit) == ("priority", None)
    assert finding.fix == "Use one of experiment-priority, or remove the label"
    (finding,) = findings(wrong, plan=load_stack("handson-dev").plans["dev"])
    assert (finding.fix, finding.edit) == ("Remove the label", None)


def test_a_kind_that_the_teams_workloads_do_not_include_is_said():
    (finding,) = findings(GOOD, plan=with_teams(workloads=("inference",)))
    assert (finding.check, finding.line) == ("kind", 2)
    assert finding.message == "members of john can't create the kind Job: the team's workloads are inference"
    assert finding.fix == "Use a kind that they can create (Deployment), or add training to `teams[john].workloads`"


def test_documents_that_kueue_does_not_queue_are_passed_over():
    assert findings({"kind": "ConfigMap"}, {"kind": "Service", "metadata": {}}) == []
    assert list(check(read_manifests("job.yaml", ""), PLAN)) == []


def test_a_file_that_is_no_yaml_says_where():
    with pytest.raises(InputError, match=r"job\.yaml:2:\d+: invalid YAML"):
        read_manifests("job.yaml", "a: [\nb: }")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PLACES = [
    *("metadata", "metadata.labels", "metadata.namespace", "spec", "spec.parallelism", "spec.template"),
    *("spec.template.metadata", "spec.template.spec", "spec.template.spec.containers"),
    "spec.template.spec.nodeSelector",
]
KINDS = [
    *("Job", "PyTorchJob", "JobSet", "RayJob", "Pod", "Deployment", "CronJob", "List", "AppWrapper", "LeaderWorkerSet"),
    "HyperPodPyTorchJob",
]


@settings(max_examples=30)
@given(st.sampled_from(PLACES), JSON, st.sampled_from(KINDS))
def test_no_shape_of_a_document_is_a_traceback(path, value, kind):
    document = copy.deepcopy(GOOD)
    document["kind"] = kind
    here = document
    *above, last = path.split(".")
    for step in above:
        here = here[step]
    here[last] = value
    manifest = read_manifests("job.yaml", text_of(document))
    for finding in list(check(manifest, PLAN)):
        assert finding.message
        assert finding.line >= 1
    repaired(manifest, PLAN)


@pytest.mark.parametrize(("spec", "field"), BAD_PODS.values(), ids=BAD_PODS)
@pytest.mark.parametrize("kind", ["Pod", "PyTorchJob", "RayJob"])
def test_what_the_admission_policies_refuse_of_any_kind_is_said(kind, spec, field):
    text = text_of(in_namespace(MAKERS[kind]("bad", **spec))).replace("/acme-dev/", "/handson-dev/")
    said = {each.check for each in check(read_manifests("job.yaml", text), PLAN) if each.severity == "error"}
    assert said & {"team-limits", "pod-security"}, field


def in_namespace(document):
    document["metadata"]["namespace"] = "hyperpod-ns-john"
    return document


REFUSED = {
    "a hash": annotate("kueue.x-k8s.io/role-hash", "cheap"),
    "a group": annotate("kueue.x-k8s.io/pod-group-name", "group"),
    "a workload": labelled("prebuilt-workload-name", "x"),
    "no CPU": limits(requests={"cpu": "0"}),
    "a limit": limits(limits={"nvidia.com/gpu": 1, "memory": "64Gi"}),
    "a scheduling policy": set_spec(runPolicy={"schedulingPolicy": {"priorityClass": "high"}}),
    "uncounted replicas": set_spec(tfReplicaSpecs={"worker": {}}),
    "elastic": set_spec(elasticPolicy={"maxReplicas": 4, "metrics": []}),
}


@pytest.mark.parametrize("change", REFUSED.values(), ids=REFUSED)
def test_what_the_admission_policies_refuse_of_a_job_is_said(change):
    assert [each.check for each in findings(changed(change))] == ["team-limits"]


@pytest.mark.parametrize(
    ("claim", "policy", "checks"),
    [("fsx-claim", "Merge", ["team-limits"]), ("fsx-claim", "Strict", []), ("local-claim", "Merge", ["claim"])],
)
def test_groups_that_the_image_adds_to_a_user_of_the_shared_file_system_are_reported(claim, policy, checks):
    def mount(_document, _labels, template):
        template["spec"]["volumes"] = [{"name": "files", "persistentVolumeClaim": {"claimName": claim}}]
        template["spec"]["securityContext"] = {"supplementalGroupsPolicy": policy}

    found = findings(changed(mount))
    assert [each.check for each in found] == checks
    fixes = {each.fix for each in found if each.check == "team-limits"}
    assert fixes <= {"Set `supplementalGroupsPolicy: Strict` in the pods' securityContext"}


def test_a_kind_whose_operator_the_file_does_not_install_is_an_error():
    def reported(kind, **sections):
        teams = [team("a", members=["arn:aws:iam::123456789012:role/a"], workloads=["training", "inference", "spaces"])]
        quota = {"a": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}
        plan = derive(typed(organization(teams=teams, allocations=quota, environment=sections)), "dev")
        document = {"kind": kind, "metadata": {"name": "x", "namespace": "hyperpod-ns-a"}}
        return [(each.check, each.fix) for each in check(read_manifests("x.yaml", text_of(document)), plan)]

    training = "addons: {cert-manager: {}, amazon-sagemaker-hyperpod-training-operator: {}}"
    kinds = {"ScaledObject": "autoscaling: {keda: {}}", "Workspace": "spaces: {}", "HyperPodPyTorchJob": training}
    for kind, section in kinds.items():
        assert ("operator", f"Add `{section}` to `environments.dev`") in reported(kind)
    assert reported("ScaledObject", autoscaling={"keda": {}}) == []
    assert reported("ScaledObject", inference={}) == []
    assert reported("Workspace", spaces={}) == []


@pytest.mark.parametrize("kind", ["HorizontalPodAutoscaler", "ScaledObject"])
@pytest.mark.parametrize(
    ("target", "place", "message"),
    [
        ("PyTorchJob", "kind: PyTorchJob", "it scales a PyTorchJob"),
        ("Deployment", "scaleTargetRef:", "no file here has the Deployment x, so its pods aren't compared"),
        (None, "scaleTargetRef:", "no file here has the Deployment x"),
    ],
)
def test_an_autoscaler_scales_only_deployments_and_those_of_the_files_are_compared(kind, target, place, message):
    reference = {"name": "x", **({"kind": target} if target else {})}
    document = in_namespace({"kind": kind, "metadata": {"name": "x"}, "spec": {"scaleTargetRef": reference}})
    for text in (text_of(document), text_of({"kind": "List", "items": [document]})):
        found = [each for each in check(read_manifests("job.yaml", text), PLAN) if each.check == "autoscaler"]
        assert [each.message[: len(message)] for each in found] == [message]
        assert all(text.splitlines()[each.line - 1].endswith(place) for each in found)


@pytest.mark.parametrize(("kind", "checks"), [("Pod", []), ("Deployment", []), ("Job", ["team-limits"])])
def test_a_limit_without_a_request_is_said_of_templates_that_the_api_server_does_not_complete(kind, checks):
    resources = {"limits": {"nvidia.com/gpu": "1", "cpu": "4"}, "requests": {"memory": "1Gi"}}
    text = text_of(in_namespace(MAKERS[kind]("large", containers=[container(resources=resources)])))
    assert [each.check for each in check(read_manifests("job.yaml", text), PLAN) if each.severity == "error"] == checks


@pytest.mark.parametrize("spec", GOOD_PODS.values(), ids=GOOD_PODS)
def test_what_the_admission_policies_let_in_is_not_said(spec):
    text = text_of(in_namespace(MAKERS["JobSet"]("good", **spec))).replace("/acme-dev/", "/handson-dev/")
    # Whether the claim of the pod with volumes exists, no file says.
    assert {each.check for each in findings_in(text)} - {"claim"} == {"operator"}
