"""Manifests that people have: what is wrong with them, where, and what `--write` puts right."""

import copy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpkit.catalog import NETWORK_LAYERS
from hpkit.errors import InputError
from hpkit.jobs.lint import lint, read_manifests, written
from hpkit.jobs.new import TOPOLOGY
from hpkit.project import load_stack
from tests.jobs.builders import text_of

PLAN = load_stack("handson-dev").plans["dev"]
WITH_TOPOLOGY = load_stack("topology-prod").plans["prod"]
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
            "metadata": {"annotations": {}},
            "spec": {
                "nodeSelector": {"node.kubernetes.io/instance-type": "ml.g5.12xlarge"},
                "containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 4}}}],
            },
        },
    },
}


def changed(change):
    document = copy.deepcopy(GOOD)
    change(document, document["metadata"]["labels"], document["spec"]["template"])
    return document


def findings(*documents, plan=PLAN):
    return list(lint(read_manifests("job.yaml", text_of(*documents)), plan))


def test_a_good_one_has_no_finding():
    assert findings(GOOD) == []


def annotate(name, value):
    return lambda _document, _labels, template: template["metadata"]["annotations"].update({name: value})


def limits(**resources):
    def change(_document, _labels, template):
        template["spec"]["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": 1}, **resources}

    return change


def drop_namespace(document, *_):
    del document["metadata"]["namespace"]


def select(kind):
    return lambda _document, _labels, template: template["spec"]["nodeSelector"].update(
        {"node.kubernetes.io/instance-type": kind}
    )


@pytest.mark.parametrize(
    ("change", "check", "message", "fix"),
    [
        (lambda _d, labels, _t: labels.clear(), "queue", "has no queue", "hyperpod-ns-john-localqueue"),
        (
            lambda _d, labels, _t: labels.update({"kueue.x-k8s.io/queue-name": "hyperpod-ns-smith-localqueue"}),
            "queue",
            "names the queue hyperpod-ns-smith-localqueue; john has hyperpod-ns-john-localqueue",
            "hyperpod-ns-john-localqueue",
        ),
        (
            lambda _d, labels, _t: labels.update({"kueue.x-k8s.io/priority-class": "training"}),
            "priority",
            "has no priority class training",
            "Write `training-priority`",
        ),
        (
            lambda _d, labels, _t: labels.update({"kueue.x-k8s.io/priority-class": "zzz"}),
            "priority",
            "has no priority class zzz",
            "Write one of training-priority, experiment-priority, or leave the label out",
        ),
        (drop_namespace, "namespace", "names no namespace", "Write `namespace: hyperpod-ns-john`"),
        (
            lambda document, _l, _t: document["metadata"].update(namespace="hyperpod-ns-jon"),
            "namespace",
            "hyperpod-ns-jon is no team's namespace",
            "Write `hyperpod-ns-john`",
        ),
        (select("ml.g5.24xlarge"), "instance-type", "has no instances of ml.g5.24xlarge", "Write `ml.g5.12xlarge`"),
        (
            lambda document, _l, _t: document["spec"].update(parallelism=9),
            "quota",
            "it can never run: of its 9 pods, at most 4 fit",
            "hpkit quota --stack handson-dev",
        ),
        (
            limits(requests={"cpu": "44"}),
            "accelerators",
            "takes 1 of 4 nvidia.com/gpu of ml.g5.12xlarge and 44 of its 48 CPUs: nobody can use the other 3",
            "Ask for at most 12 CPUs",
        ),
        (
            lambda _d, _l, template: template["spec"]["containers"][0].pop("resources"),
            "accelerators",
            "ask for none of its 4 nvidia.com/gpu",
            "Ask for `nvidia.com/gpu`",
        ),
    ],
)
def test_each_mistake_is_said_with_what_puts_it_right(change, check, message, fix):
    (found,) = findings(changed(change))
    assert (found.check, found.file) == (check, "job.yaml")
    assert message in found.message
    assert fix in found.fix


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        (TOPOLOGY["required"], "topology.k8s.aws/network-node-layer-4", "is no layer of the network"),
        ("kueue.x-k8s.io/podset-require-topology", NETWORK_LAYERS[0], "Kueue knows no annotation"),
    ],
)
def test_topology_that_kueue_would_not_read_is_said(name, value, message):
    team = WITH_TOPOLOGY.teams[0]
    document = changed(annotate(name, value))
    document["metadata"] |= {"namespace": team.namespace, "labels": {"kueue.x-k8s.io/queue-name": team.local_queue}}
    kind = team.quota_resources[0].instance_type
    document["spec"]["template"]["spec"]["nodeSelector"] = {"node.kubernetes.io/instance-type": kind}
    found = [each for each in findings(document, plan=WITH_TOPOLOGY) if each.check == "topology"]
    assert [message in each.message for each in found] == [True]
    document["metadata"]["annotations"] = document["spec"]["template"]["metadata"].pop("annotations")
    said = [each.message for each in findings(document, plan=WITH_TOPOLOGY) if each.check == "topology"]
    assert said == [f"{name} stands on the Job, and Kueue reads it from the pod template"]


def test_topology_where_the_stack_does_not_schedule_by_it_is_said():
    plan = load_stack("autoscale-dev").plans["dev"]
    team = plan.teams[0]
    document = changed(annotate(TOPOLOGY["required"], NETWORK_LAYERS[0]))
    document["metadata"] |= {"namespace": team.namespace, "labels": {"kueue.x-k8s.io/queue-name": team.local_queue}}
    said = [each.message for each in findings(document, plan=plan) if each.check == "topology"]
    assert said == ["autoscale-dev does not schedule by topology, so that the pods may never be placed"]


SHARED = "/dev/shm"  # noqa: S108 - where a pod mounts it


def of_pods(**more):
    return changed(lambda _document, _labels, template: template["spec"].update(more))


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (of_pods(volumes=[{"name": "data", "hostPath": {"path": "/data"}}]), "its volume data is /data of the node"),
        (of_pods(hostNetwork=True), "take part in the node's network (hostNetwork)"),
        (of_pods(hostIPC=True), "take part in the node's memory (hostIPC)"),
        (
            of_pods(initContainers=[{"name": "first", "securityContext": {"privileged": True}}]),
            "its container first is privileged",
        ),
    ],
)
def test_what_the_namespaces_level_refuses_is_said_where_it_stands(document, message):
    text = text_of(document)
    (found,) = lint(read_manifests("job.yaml", text), PLAN)
    assert found.check == "pod-security"
    assert message in found.message
    assert found.message.endswith("which Pod Security refuses in a team's namespace (level baseline)")
    line = text.splitlines()[found.line - 1]
    assert any(word in line for word in ("hostPath", "hostNetwork", "hostIPC", "privileged"))


def test_volumes_of_the_pods_own_and_unprivileged_containers_pass():
    volumes = [{"name": "shm", "emptyDir": {"medium": "Memory"}}, {"name": "fsx", "persistentVolumeClaim": {}}]
    assert findings(of_pods(volumes=volumes, hostNetwork=False)) == []


def test_the_nodes_shared_memory_becomes_the_pods_own():
    manifest = read_manifests("job.yaml", text_of(of_pods(volumes=[{"name": "shm", "hostPath": {"path": SHARED}}])))
    for finding in list(lint(manifest, PLAN)):
        finding.repair()
    (document,) = manifest.documents
    (volume,) = document["spec"]["template"]["spec"]["volumes"]
    assert volume == {"name": "shm", "emptyDir": {"medium": "Memory"}}


def test_each_finding_says_where_it_is():
    text = text_of(GOOD, changed(lambda _d, labels, _t: labels.update({"kueue.x-k8s.io/priority-class": "training"})))
    (found,) = lint(read_manifests("job.yaml", text), PLAN)
    assert text.splitlines()[found.line - 1][found.column - 1 :].startswith("kueue.x-k8s.io/priority-class: training")


def test_what_can_be_put_right_is_and_comments_stay():
    wrong = changed(lambda _d, labels, _t: labels.update({"kueue.x-k8s.io/priority-class": "training"}))
    text = text_of(wrong).replace("kind: Job", "kind: Job  # mine").replace("hyperpod-ns-john-localqueue", "other")
    manifest = read_manifests("job.yaml", text)
    for finding in list(lint(manifest, PLAN)):
        finding.repair()
    after = written(manifest)
    assert list(lint(read_manifests("job.yaml", after), PLAN)) == []
    assert "kind: Job  # mine" in after
    assert "kueue.x-k8s.io/priority-class: training-priority" in after


def test_documents_that_kueue_does_not_queue_are_passed_over():
    assert findings({"kind": "ConfigMap"}, {"kind": "Service", "metadata": {}}) == []
    assert list(lint(read_manifests("job.yaml", ""), PLAN)) == []


def test_a_file_that_is_no_yaml_says_where():
    with pytest.raises(InputError, match=r"job\.yaml:2:\d+: no YAML"):
        read_manifests("job.yaml", "a: [\nb: }")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
PLACES = [
    ("metadata",),
    ("metadata", "labels"),
    ("metadata", "namespace"),
    ("spec",),
    ("spec", "parallelism"),
    ("spec", "template"),
    ("spec", "template", "metadata"),
    ("spec", "template", "spec"),
    ("spec", "template", "spec", "containers"),
    ("spec", "template", "spec", "nodeSelector"),
]


@given(st.sampled_from(PLACES), JSON, st.sampled_from(["Job", "PyTorchJob", "JobSet", "RayJob", "Pod", "Deployment"]))
def test_no_shape_of_a_document_is_a_traceback(path, value, kind):
    document = copy.deepcopy(GOOD)
    document["kind"] = kind
    here = document
    for step in path[:-1]:
        here = here[step]
    here[path[-1]] = value
    manifest = read_manifests("job.yaml", text_of(document))
    for finding in list(lint(manifest, PLAN)):
        assert finding.message
        assert finding.line >= 1
        if finding.repair is not None:
            finding.repair()
