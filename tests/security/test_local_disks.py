"""A team's claim on local disks on a real API server: it binds, its pods run where a disk is, and nobody takes it."""

import pytest
import yaml

from tests.program.cloud import ROOT
from tests.program.recorder import recorded_from
from tests.running import eventually, making
from tests.security.members import CORE, JOBS, NAMESPACE, container, job, pod, refused
from tests.security.test_shared_files import FOLDERS, whole

pytestmark = [pytest.mark.platform, pytest.mark.nightly]

G5 = "ml.g5.12xlarge"
MOUNT = {"volumes": [{"name": "local", "persistentVolumeClaim": {"claimName": "local-claim"}}]}
OWN = f"{CORE}/persistentvolumeclaims"


@pytest.fixture(scope="module")
def disks(api):
    data = yaml.safe_load((ROOT / "stacks" / "handson.yaml").read_text(encoding="utf-8"))
    data["environments"]["dev"]["storage"] = {"localDisk": {"instanceTypes": [G5]}}
    recording = recorded_from(data)
    with making(api) as make:
        for resource_type in ("core/v1:PersistentVolume", "core/v1:PersistentVolumeClaim"):
            for entry in recording.all(resource_type):
                make(FOLDERS[resource_type].format(**entry.inputs["metadata"]), whole(entry.inputs))
        eventually(lambda: api.read(f"{OWN}/local-claim")["status"]["phase"] == "Bound", "the claim is bound")
        yield {entry.name: entry.inputs["metadata"]["name"] for entry in recording.all("core/v1:PersistentVolume")}


def test_a_member_can_use_the_claim_on_a_type_with_a_local_disk(api, john, disks):
    document = job("scratch", **MOUNT)
    john.create(JOBS, document)
    selector = {"labels": "job-name=scratch"}
    try:
        eventually(
            lambda: [each["status"].get("phase") for each in api.items(f"{CORE}/pods", **selector)] == ["Running"],
            lambda: api.items(f"{CORE}/pods", **selector),
        )
        (running,) = api.items(f"{CORE}/pods", **selector)
        node = api.read(f"/api/v1/nodes/{running['spec']['nodeName']}")
        assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == G5
    finally:
        john.delete(f"{JOBS}/scratch")
        eventually(lambda: not api.items(f"{CORE}/pods", **selector), "its pod is deleted")


def test_a_member_cannot_mount_a_local_disk_without_the_teams_claim(john, disks):
    path = {"path": "/opt/dlami/nvme/teams/smith", "type": "Directory"}
    spec = {"volumes": [{"name": "local", "hostPath": path}], "containers": [container()]}
    assert "hostPath" in refused(john.create, f"{CORE}/pods", pod("host", **spec))
    volumes = "/api/v1/persistentvolumes"
    assert "cannot patch" in refused(john.merge, f"{volumes}/{disks['local-smith']}", {"spec": {"claimRef": None}})
    assert "cannot list" in refused(john.items, volumes)
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "thief", "namespace": NAMESPACE},
        "spec": {
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "",
            "volumeName": disks["local-smith"],
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    john.create(OWN, claim)
    try:
        eventually(
            lambda: [
                event["message"]
                for event in john.items(f"{CORE}/events", fields="involvedObject.name=thief")
                if "already bound to a different claim" in event["message"]
            ],
            "the claim is rejected",
        )
    finally:
        john.delete(f"{OWN}/thief")
