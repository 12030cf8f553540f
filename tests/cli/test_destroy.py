"""What deleting a stack removes, according to its state; the rest is tested with the real engine."""

import json
import re
from contextlib import nullcontext
from types import SimpleNamespace

import pytest

from hpkit.cli.account import destroy
from hpkit.cli.common import aws_session
from hpkit.cli.common import live as live_common
from hpkit.cluster.live import read
from hpkit.errors import ToolError
from hpkit.program.teardown import Holder, holders, teardown_of
from hpkit_local.toolchain import TOOLS
from hpkit_local.toolchain.steps import tool_folder
from tests.cli.invoke import hpkit
from tests.cli.test_validate import ROOT
from tests.documents import document


def resource(kind, name, *, outputs=None, **more):
    urn = f"urn:pulumi:acme-dev::hpkit::{kind}::{name}"
    return {"urn": urn, "type": kind, "custom": True, "id": f"{name}-id", "outputs": outputs or {}, **more}


GROUPS = [
    {"instanceGroupName": "gpu", "instanceType": "ml.g5.12xlarge", "instanceCount": 4},
    {"instanceGroupName": "mixed", "instanceRequirements": {"instanceTypes": ["ml.a", "ml.b"]}, "instanceCount": 1},
    {"instanceGroupName": "burst", "instanceType": "ml.g5.8xlarge", "instanceCount": 0},
]
OUTPUTS = {"clusterName": "train", "instanceGroups": GROUPS, "autoscaledInstanceGroups": ["burst"]}
CLUSTER = resource("hyperpod:index:Cluster", "cluster", outputs=OUTPUTS)
STATE = [
    resource("pulumi:providers:aws", "aws"),
    CLUSTER,
    resource("hyperpod:index:ComputeQuota", "nlp", outputs={"computeQuotaTarget": {"teamName": "nlp"}}),
    resource("aws:s3/bucket:Bucket", "lifecycle", outputs={"bucket": "acme"}, protect=True),
    resource("aws:ec2/vpc:Vpc", "vpc", outputs={"id": "vpc-1"}, protect=True),
    resource("aws:ec2/vpc:Vpc", "vpc", outputs={"id": "vpc-0"}, protect=True, delete=True),
    {"urn": "urn:pulumi:acme-dev::hpkit::hpkit:index:Network::network", "type": "hpkit:index:Network"},
]


def ending(*resources):
    return teardown_of("acme-dev", {"deployment": {"resources": list(resources)}})


def test_what_goes_is_named_with_nodes_and_teams_and_what_is_protected_is_known():
    contents = ending(*STATE)
    assert contents.resources == 4
    assert contents.goes == (
        "the HyperPod cluster train",
        "  gpu: 4 × ml.g5.12xlarge",
        "  mixed: 1 × ml.a or ml.b",
        "  burst: Karpenter's count × ml.g5.8xlarge",
        "the quotas of 1 team: nlp",
        "the VPC: vpc-1",
        "the bucket: acme",
    )
    assert [urn.rpartition("::")[2] for urn in contents.protected] == ["lifecycle", "vpc"]
    assert contents.rejection == ""


def test_a_cluster_that_is_protected_stays():
    assert "set `protect: false` in its environment" in ending({**CLUSTER, "protect": True}).rejection
    policy = resource("hyperpod:index:ClusterSchedulerConfig", "policy", protect=True)
    assert ending(policy).rejection.startswith("the cluster policy of acme-dev is protected: set `protect: false`")


CLAIM = {"persistentVolumeClaim": {"claimName": "fsx-claim"}}
PLACE = "/api/v1/namespaces/ada/pods"


def claim(name, namespace="ada"):
    outputs = {"kind": "PersistentVolumeClaim", "metadata": {"name": name, "namespace": namespace}}
    return resource("kubernetes:core/v1:PersistentVolumeClaim", name, outputs=outputs)


def owned(kind, name, version="batch/v1"):
    return {"ownerReferences": [{"apiVersion": version, "kind": kind, "name": name, "controller": True}]}


def pod(name, *, owner=None, phase="Succeeded", node="node", volumes=(CLAIM,), **metadata):
    spec = {"volumes": list(volumes), **({"nodeName": node} if node else {})}
    return {
        "metadata": {"name": name, "namespace": "ada", **(owner or {}), **metadata},
        "spec": spec,
        "status": {"phase": phase},
    }


def workload(name, owner, *, finished=False):
    conditions = [{"type": "Finished", "status": "True"}] if finished else []
    metadata = {"name": name, "namespace": "ada", **owner}
    return {"metadata": metadata, "spec": {"podSets": []}, "status": {"conditions": conditions}}


def found(pods=(), workloads=(), *more):
    """Return what keeps a stack's claim from being deleted, in a cluster with these pods, Workloads and a few jobs."""
    jobs = {name: {"metadata": {"name": name}} for name in ("train", "waits", "own")}
    jobs["part"] = {"metadata": {"name": "part", **owned("JobSet", "whole", "jobset.x-k8s.io/v1alpha2")}}
    cluster = {
        "/apis/kueue.x-k8s.io": {"preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta2"}},
        "/apis/kueue.x-k8s.io/v1beta2/workloads": {"items": list(workloads)},
        PLACE: {"items": list(pods)},
        "/apis/batch/v1": {"resources": [{"name": "jobs/status", "kind": "Job"}, {"name": "jobs", "kind": "Job"}]},
        "/apis/jobset.x-k8s.io/v1alpha2": {"resources": [{"name": "jobsets", "kind": "JobSet"}]},
        "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ada/jobsets/whole": {"metadata": {"name": "whole"}},
        **{f"/apis/batch/v1/namespaces/ada/jobs/{name}": job for name, job in jobs.items()},
    }
    return [each.command for each in holders(ending(CLUSTER, claim("fsx-claim"), *more), cluster.get)]


def test_a_completed_pod_holds_its_claim_by_the_job_that_made_it():
    pods = [pod("train-a", owner=owned("Job", "train")), pod("train-b", owner=owned("Job", "train"))]
    assert found(pods) == ["kubectl delete job train -n ada"]
    assert found([pod("part-a", owner=owned("Job", "part"))]) == ["kubectl delete jobset whole -n ada"]
    assert found([pod("alone")]) == ["kubectl delete pod alone -n ada"]


def test_a_task_that_has_not_ended_holds_kueues_objects():
    waits = workload("job-waits", owned("Job", "waits"))
    ended = workload("job-train", owned("Job", "train"), finished=True)
    assert found([], [waits, ended]) == ["kubectl delete job waits -n ada"]


@pytest.mark.parametrize(("team", "addons"), [("ada", []), ("nlp", ["amazon-sagemaker-hyperpod-taskgovernance"])])
def test_a_task_holds_the_governance_of_an_existing_cluster(team, addons):
    arn = "arn:aws:eks:us-west-2:123456789012:cluster/theirs"
    eks = {
        "urn": "urn:pulumi:acme-dev::hpkit::hpkit:index:Eks::eks",
        "type": "hpkit:index:Eks",
        "outputs": {"arn": arn},
    }
    quota = {"computeQuotaTarget": {"teamName": team}}
    made = [eks, resource("hyperpod:index:ComputeQuota", "quota", outputs=quota)]
    made += [resource("aws:eks/addon:Addon", each, inputs={"addonName": each}) for each in addons]
    assert ending(*made).eks == arn
    jobs = {"metadata": {"name": "job-waits", "namespace": "hyperpod-ns-ada", **owned("Job", "waits")}}
    cluster = {
        "/apis/kueue.x-k8s.io": {"preferredVersion": {"groupVersion": "kueue.x-k8s.io/v1beta2"}},
        "/apis/kueue.x-k8s.io/v1beta2/workloads": {"items": [jobs]},
        "/apis/batch/v1": {"resources": [{"name": "jobs", "kind": "Job"}]},
        "/apis/batch/v1/namespaces/hyperpod-ns-ada/jobs/waits": {"metadata": {"name": "waits"}},
    }
    commands = [each.command for each in holders(ending(*made), cluster.get)]
    assert commands == ["kubectl delete job waits -n hyperpod-ns-ada"]
    # Without the add-on, tasks of other teams don't use anything of the stack.
    quota["computeQuotaTarget"] = {"teamName": "speech"}
    assert bool(holders(ending(*made), cluster.get)) == bool(addons)


def test_what_uses_no_claim_of_the_stack_or_lets_go_by_itself_holds_nothing():
    other = {"persistentVolumeClaim": {"claimName": "own"}}
    going = pod("going", deletionTimestamp="2026-01-01T00:00:00Z")
    assert found([pod("unplaced", node=""), pod("other", volumes=[other, {"emptyDir": {}}]), going]) == []
    outputs = {"kind": "Job", "metadata": {"name": "own", "namespace": "ada"}}
    mine = resource("kubernetes:batch/v1:Job", "own", outputs=outputs)
    assert found([pod("own-a", owner=owned("Job", "own"))], (), mine) == []


@pytest.mark.parametrize(
    ("selector", "status", "pool", "holds"),
    [
        ({"matchLabels": {"app": "web"}}, {"expectedPods": 1, "disruptionsAllowed": 0}, "burst", True),
        (
            {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web"]}]},
            {"expectedPods": 1},
            "burst",
            True,
        ),
        ({"matchLabels": {"app": "web"}}, {"expectedPods": 2, "disruptionsAllowed": 1}, "burst", False),
        ({"matchLabels": {"app": "other"}}, {"expectedPods": 1, "disruptionsAllowed": 0}, "burst", False),
        ({"matchLabels": {"app": "web"}}, {"expectedPods": 1, "disruptionsAllowed": 0}, "else", False),
    ],
)
def test_a_budget_that_lets_no_pod_go_holds_the_nodes_of_the_stacks_pools(selector, status, pool, holds):
    outputs = {"kind": "NodePool", "metadata": {"name": "burst"}}
    node_pool = resource("kubernetes:karpenter.sh/v1:NodePool", "node-pool-burst", outputs=outputs)
    budget = {"metadata": {"name": "web", "namespace": "ada"}, "spec": {"selector": selector}, "status": status}
    cluster = {
        "/api/v1/nodes": {"items": [{"metadata": {"name": "node", "labels": {"karpenter.sh/nodepool": pool}}}]},
        "/apis/policy/v1/poddisruptionbudgets": {"items": [budget]},
        PLACE: {"items": [pod("web-1", labels={"app": "web"})]},
    }
    said = [each.words for each in holders(ending(CLUSTER, node_pool), cluster.get)]
    text = "PodDisruptionBudget ada/web lets no pod go from the nodes of a NodePool"
    assert said == ([text] if holds else [])


@pytest.fixture
def pulumi(tmp_path, monkeypatch):
    """Return a function that puts a script into the cache in place of Pulumi."""
    monkeypatch.setenv("HPKIT_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", "/usr/bin:/bin")

    def put(script):
        for tool in TOOLS:
            if tool.name in {"pulumi", "pulumi-language-python"}:
                folder = tool_folder(tool) / tool.folder
                folder.mkdir(parents=True)
                for name in tool.executables:
                    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
                    (folder / name).chmod(0o755)

    return put


def exports(folder, state):
    """Return the script of a Pulumi that exports this state and deletes nothing."""
    (folder / "state.json").write_text(json.dumps({"deployment": {"resources": state}}))
    return f'[ "$1" != stack ] || cat {folder}/state.json'


ORCHESTRATED = {
    **CLUSTER,
    "outputs": {**OUTPUTS, "orchestrator": {"eks": {"clusterArn": "arn:aws:eks:eu-west-1:123456789012:cluster/train"}}},
}


def test_destroy_names_at_once_what_to_delete_while_pods_use_a_claim(tmp_path, monkeypatch, pulumi):
    asked = []
    monkeypatch.setattr(live_common, "kubernetes_api", lambda *_, **__: nullcontext(SimpleNamespace(find=None)))
    monkeypatch.setattr(aws_session, "aws_session", lambda _, region: asked.append(region))
    monkeypatch.setattr(read, "ask", lambda _, call: asked.append(call.params["name"]) or {"cluster": {}})
    holder = Holder("/path", "Job", "ada", "train", "uses the claim fsx-claim")
    monkeypatch.setattr(destroy, "holders", lambda *_: [holder])
    pulumi(exports(tmp_path, [ORCHESTRATED, claim("fsx-claim")]))
    result = hpkit("aws", "destroy", "--stack", "acme-dev", "--yes", cwd=ROOT)
    assert (result.returncode, result.stdout, asked) == (1, "", ["eu-west-1", "train"]), result.stderr
    assert result.stderr.splitlines()[-1] == "  kubectl delete job train -n ada    # it uses the claim fsx-claim"


def test_destroy_removes_what_a_failed_up_left_and_names_the_command_for_an_empty_stack(tmp_path, pulumi):
    pulumi(exports(tmp_path, [STATE[0]]))
    result = hpkit("aws", "destroy", "--stack", "acme-dev", "--yes", "--format", "json", cwd=ROOT)
    assert (result.returncode, result.stderr) == (0, "This deletes the entire stack acme-dev, 0 resources\n")
    assert [(item["action"], item["done"]) for item in document(result.stdout)["items"]] == [("delete", True)]
    exports(tmp_path, [])
    result = hpkit("aws", "destroy", "--stack", "acme-dev", "--yes", cwd=ROOT)
    assert result.returncode == 1
    assert result.stderr == "error: the stack acme-dev is already empty; remove it with `pulumi stack rm acme-dev`\n"


def test_destroy_goes_on_where_nobody_can_tell_who_uses_a_claim(tmp_path, monkeypatch, pulumi):
    def fail(*_):
        raise ToolError("the Kubernetes API of train does not answer")

    monkeypatch.setattr(aws_session, "aws_session", fail)
    pulumi(exports(tmp_path, [ORCHESTRATED, claim("fsx-claim")]))
    result = hpkit("aws", "destroy", "--stack", "acme-dev", "--yes", cwd=ROOT)
    assert result.returncode == 0
    assert result.stderr == (
        "warning: can't check whether something keeps the stack from being deleted: the Kubernetes API of train does "
        "not answer\n"
    )


def test_without_pulumi_it_says_how_to_get_it(tmp_path):
    result = hpkit("aws", "destroy", "--stack", "acme-dev", cwd=ROOT, PATH=str(tmp_path), HPKIT_CACHE=str(tmp_path))
    assert result.returncode == 1
    assert re.fullmatch(
        r"error: pulumi [\d.]+ isn't installed\. To install it: hpkit local doctor --fix\n", result.stderr
    )
