"""A member tries to get another team's files on the shared file system: volumes, claims and IDs on a real API server.

These tests add the program's objects to the platform that other files share; tests/program/test_engine_options.py shows
that one `up` creates all of them.
"""

from functools import partial

import pytest
import yaml

from tests.program.cloud import ROOT
from tests.program.recorder import recorded_from
from tests.running import eventually, making
from tests.security.members import CORE, JOBS, job, pod, tried

pytestmark = [pytest.mark.platform, pytest.mark.nightly]

VOLUMES = "/api/v1/persistentvolumes"
CLAIMS = f"{CORE}/persistentvolumeclaims"
# The resource types that a file system adds to a stack, in the order in which the API server accepts them.
FOLDERS = {
    "storage.k8s.io/v1:StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "core/v1:PersistentVolume": VOLUMES,
    "core/v1:PersistentVolumeClaim": "/api/v1/namespaces/{namespace}/persistentvolumeclaims",
}
ADMISSION = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
JOHN, SMITH = 20000, 30000


@pytest.fixture(scope="module")
def recording():
    data = yaml.safe_load((ROOT / "stacks" / "handson.yaml").read_text(encoding="utf-8"))
    for team, first in zip(data["teams"], (JOHN, SMITH), strict=True):
        team["userIds"] = {"first": first}
    lustre = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "teams": True}
    data["environments"]["dev"]["storage"] = {"lustre": lustre}
    return recorded_from(data)


def whole(value):
    """Return a recording's value with integers instead of whole floating-point numbers."""
    if isinstance(value, dict):
        return {key: whole(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [whole(inner) for inner in value]
    return int(value) if isinstance(value, float) else value


def is_bound(api, volume):
    return api.read(f"{VOLUMES}/{volume}")["status"]["phase"] == "Bound"


def until_in_force(john):
    """Wait until the API server has compiled both policies."""
    as_root = {
        "volumes": [{"name": "fsx", "persistentVolumeClaim": {"claimName": "fsx-claim"}}],
        "securityContext": {"runAsUser": 0},
    }
    for folder, probe in ((f"{CORE}/pods", pod("probe", **as_root)), (JOBS, job("probe", **as_root))):
        attempt = partial(tried, john.create, f"{folder}?dryRun=All", probe)
        eventually(attempt, "admission is in force")


@pytest.fixture(scope="module")
def thefts(api, john, recording):
    """Create everything on the platform; return, by volume, the state of a claim of john's that was created first."""

    def registered(resource_type):
        return [whole(entry.inputs) for entry in recording.all(resource_type)]

    def put(resource_type):
        for document in registered(resource_type):
            make(FOLDERS[resource_type].format(**document["metadata"]), document)

    def outcome(name):
        events = api.items(f"{CORE}/events", fields=f"involvedObject.name={name}")
        reasons = [event["message"] for event in events if event["reason"] == "FailedBinding"]
        return "Bound" if api.read(f"{CLAIMS}/{name}")["status"]["phase"] == "Bound" else "".join(reasons[:1])

    with making(api) as make:
        put("storage.k8s.io/v1:StorageClass")
        put("core/v1:PersistentVolume")
        outcomes = {}
        for volume in ("fsx-hyperpod-ns-smith", "fsx-root"):
            claim = {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": f"thief-{volume}"},
                "spec": {
                    "accessModes": ["ReadWriteMany"],
                    "storageClassName": "fsx-sc",
                    "volumeName": volume,
                    "resources": {"requests": {"storage": "1Gi"}},
                },
            }
            refusal = tried(john.create, CLAIMS, claim)
            if not refusal:
                eventually(lambda claim=claim: outcome(claim["metadata"]["name"]), "the claim is answered")
                outcomes[volume] = outcome(claim["metadata"]["name"])
                api.delete(f"{CLAIMS}/{claim['metadata']['name']}")
            else:
                outcomes[volume] = refusal
        put("core/v1:PersistentVolumeClaim")
        yield outcomes


def test_a_members_claim_cannot_take_the_volume_of_another_team_or_of_the_whole_file_system(api, thefts):
    for volume, outcome in thefts.items():
        assert outcome == f'volume "{volume}" already bound to a different claim.'
        eventually(lambda volume=volume: is_bound(api, volume), f"{volume} is bound")
        claim = api.read(f"{VOLUMES}/{volume}")["spec"]["claimRef"]
        assert claim["namespace"] == ("kube-system" if volume == "fsx-root" else "hyperpod-ns-smith")
