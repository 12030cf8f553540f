"""Spaces are added to a live platform, run in one team's queue only, and are removed with their roles and kinds."""

import pytest

from tests.builders import RANKED
from tests.running import eventually
from tests.security.members import member, refused

pytestmark = [pytest.mark.platform, pytest.mark.nightly]

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
    found = api.items("/apis/kueue.x-k8s.io/v1beta2/namespaces/hyperpod-ns-john/workloads")
    return [
        each["spec"]["priorityClassRef"]["name"]
        for each in found
        if each["metadata"]["name"].startswith("pod-workspace-lab-")
        and any(
            item["type"] == "Admitted" and item["status"] == "True"
            for item in each.get("status", {}).get("conditions", ())
        )
    ]


def test_spaces_come_run_in_one_teams_queue_and_go(up, repository, live, instance):
    before = live.settled()
    write(repository, spaces={"remoteAccess": True})
    up.up()
    assert up.preview() == {}
    addon = live.client("eks").describe_addon(clusterName="handson-dev", addonName=ADDONS[0])["addon"]
    assert addon["status"] == "ACTIVE"

    john, smith, api = member(instance, "john"), member(instance, "smith"), live.api
    mine, theirs = SPACES.format("john"), SPACES.format("smith")
    john.create(mine, space("lab"))
    eventually(lambda: admitted(api) == ["training-priority"], "Kueue admits the space")
    conditions = f"{mine}/lab"
    eventually(
        lambda: any(
            item["type"] == "Available" and item["status"] == "True"
            for item in api.read(conditions).get("status", {}).get("conditions", [])
        ),
        "the space is available",
    )
    assert "the team's queue" in refused(john.create, mine, space("other", **{QUEUE: "hyperpod-ns-smith-localqueue"}))
    assert "spacePriorityClass" in refused(john.create, mine, space("other", **{RANK: "experiment-priority"}))
    assert "cannot create" in refused(john.create, theirs, space("other", team="smith"))
    assert "cannot list" in refused(john.read, theirs)
    assert "cannot delete" in refused(smith.delete, f"{mine}/lab")

    john.merge(f"{mine}/lab", {"spec": {"desiredStatus": "Stopped"}})
    eventually(lambda: not admitted(api), "a stopped space gives its quota back")
    john.delete(f"{mine}/lab")

    write(repository, allowDelete={"addons": list(ADDONS)})
    up.up()
    assert live.settled() == before
    write(repository)
    up.up()
    assert up.preview() == {}
