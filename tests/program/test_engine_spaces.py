"""Spaces are added to a live platform, run in one team's queue only, and are removed with their roles and kinds."""

from functools import partial

import pytest

from tests.builders import RANKED
from tests.hyperpod_cli import hyperpod_cli
from tests.running import eventually
from tests.security.members import member, refused

pytestmark = [pytest.mark.platform, pytest.mark.nightly]

NAMESPACE = "hyperpod-ns-john"
ADDONS = ("amazon-sagemaker-spaces", "aws-ebs-csi-driver", "cert-manager")
SPACES = "/apis/workspace.jupyter.org/v1alpha1/namespaces/hyperpod-ns-{}/workspaces"
QUEUE, RANK = "kueue.x-k8s.io/queue-name", "kueue.x-k8s.io/priority-class"


def write(repository, *, spaces=None, **more):
    data = repository.read("handson")
    data["environments"]["dev"].update(more)
    if spaces is not None:
        data["environments"]["dev"]["spaces"] = spaces
        data["clusterPolicy"] |= RANKED
        john = next(team for team in data["teams"] if team["name"] == "john")
        john |= {"workloads": ["training", "inference", "spaces"], "spacePriorityClass": "training"}
    repository.write("handson", data)


def space(name, *, team="john", **labels):
    labels = {QUEUE: f"hyperpod-ns-{team}-localqueue", RANK: "training-priority", **labels}
    requests = {"cpu": "2", "memory": "8Gi"}
    return {
        "apiVersion": "workspace.jupyter.org/v1alpha1",
        "kind": "Workspace",
        "metadata": {"name": name, "labels": labels},
        "spec": {"displayName": name, "resources": {"requests": requests, "limits": requests}},
    }


def admitted(api):
    """Return the class of each admitted pod of a space in john's namespace."""
    workloads = api.items("/apis/kueue.x-k8s.io/v1beta2/namespaces/hyperpod-ns-john/workloads")
    return [
        workload["spec"]["priorityClassRef"]["name"]
        for workload in workloads
        if workload["metadata"]["name"].startswith("pod-workspace-lab-")
        and any(
            item["type"] == "Admitted" and item["status"] == "True"
            for item in workload.get("status", {}).get("conditions", ())
        )
    ]


@pytest.fixture(scope="module")
def spaces(up, repository, live):
    """Add spaces to the live platform, and remove them after the tests."""
    before = live.settled()
    write(repository, spaces={"remoteAccess": True})
    up.up()
    assert up.preview() == {}
    addon = live.client("eks").describe_addon(clusterName="handson-dev", addonName=ADDONS[0])["addon"]
    assert addon["status"] == "ACTIVE"
    yield
    write(repository, allowDelete={"addons": list(ADDONS)})
    up.up()
    assert live.settled() == before
    write(repository)
    up.up()
    assert up.preview() == {}


def is_available(api):
    conditions = api.read(f"{SPACES.format('john')}/lab").get("status", {}).get("conditions", [])
    return any(item["type"] == "Available" and item["status"] == "True" for item in conditions)


def test_spaces_run_in_one_teams_queue_only(spaces, live, instance):
    john, smith, api = member(instance, "john"), member(instance, "smith"), live.api
    mine, theirs = SPACES.format("john"), SPACES.format("smith")
    john.create(mine, space("lab"))
    eventually(lambda: admitted(api) == ["training-priority"], "Kueue admits the space")
    eventually(lambda: is_available(api), "the space is available")
    assert "the team's queue" in refused(john.create, mine, space("other", **{QUEUE: "hyperpod-ns-smith-localqueue"}))
    assert "spacePriorityClass" in refused(john.create, mine, space("other", **{RANK: "experiment-priority"}))
    assert "cannot create" in refused(john.create, theirs, space("other", team="smith"))
    assert "cannot list" in refused(john.read, theirs)
    assert "cannot delete" in refused(smith.delete, f"{mine}/lab")

    john.merge(f"{mine}/lab", {"spec": {"desiredStatus": "Stopped"}})
    eventually(lambda: not admitted(api), "a stopped space gives its quota back")
    john.delete(f"{mine}/lab")
    eventually(lambda: not api.items(mine), "the space is deleted")


def test_members_use_spaces_with_the_hyperpod_cli(spaces, live, instance, tmp_path):
    hyp, api = partial(hyperpod_cli(instance, tmp_path, namespace=NAMESPACE), "john-scientists"), live.api
    of = ("hyp-space", "--name", "lab", "--namespace", NAMESPACE)
    template = "name=sagemaker-jupyter-template,namespace=jupyter-k8s-system"
    create = ("create", *of, "--display-name", "Lab", "--cpu", "2", "--memory", "8Gi", "--template-ref", template)
    queued = ("--queue-name", f"{NAMESPACE}-localqueue", "--priority", "training-priority")
    assert "422 Unprocessable Entity" in hyp(*create, *queued[:2]), "it doesn't print which label is missing"
    assert "created successfully" in hyp(*create, *queued)
    eventually(lambda: admitted(api) == ["training-priority"], "Kueue admits the space")
    eventually(lambda: is_available(api), "the space is available")
    assert "displayName: Lab" in hyp("describe", *of)
    # It lists the caller's own, and the fake controller doesn't record who created one.
    assert "No spaces found" in hyp("list", "hyp-space", "--namespace", NAMESPACE)
    assert "No container runs on the local cloud" in hyp("get-logs", *of)
    assert "stop requested" in hyp("stop", *of)
    eventually(lambda: not admitted(api), "a stopped space gives its quota back")
    assert "not in Available status" in hyp("portforward", *of)
    assert "start requested" in hyp("start", *of)
    eventually(lambda: admitted(api) == ["training-priority"], "Kueue admits the space again")
    assert "Requested deletion" in hyp("delete", *of)
    eventually(lambda: not api.items(SPACES.format("john")), "the space is deleted")
