"""The claims of teams on the local disks of nodes."""

import pytest

from hpkit.changes import change
from tests.builders import organization, split, team
from tests.program.recorder import recorded_from

ROWS = [{"instanceType": "ml.g5.12xlarge", "count": 1}]
G5 = {"instanceTypes": ["ml.g5.12xlarge"]}


def file_of(**disk):
    governance = {
        "allocations": {"nlp": ROWS, "vision": ROWS},
        "sharedPool": {"name": "shared", "fairShareWeight": 0},
    }
    return organization(
        teams=[team("nlp"), team("vision")],
        environment={"governance": governance, **({"storage": {"localDisk": disk}} if disk else {})},
    )


@pytest.fixture(scope="module")
def disks():
    return recorded_from(file_of(**G5))


def test_each_team_but_the_shared_pool_has_a_folder_of_its_own(disks):
    volumes, claims = (disks.named(f"core/v1:PersistentVolume{kind}") for kind in ("", "Claim"))
    assert {*volumes} == {*claims} == {"local-nlp", "local-vision"}
    for name in ("nlp", "vision"):
        volume, claim = (each[f"local-{name}"].inputs for each in (volumes, claims))
        spec, namespace = volume["spec"], f"hyperpod-ns-{name}"
        assert spec["hostPath"] == {"path": f"/opt/dlami/nvme/teams/{name}", "type": "DirectoryOrCreate"}
        assert claim["metadata"] == {"name": "local-claim", "namespace": namespace}
        assert claim["spec"]["volumeName"] == volume["metadata"]["name"]
        assert volume["metadata"]["name"].startswith(f"local-{namespace}-")
        reserved = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **claim["metadata"]}
        assert spec["claimRef"] == reserved, "no other team's claim can take it"
        assert (spec.get("storageClassName"), claim["spec"]["storageClassName"]) == (None, ""), (
            "no driver provisions it"
        )


def test_pods_with_the_claim_run_on_types_with_a_disk_and_a_change_of_these_replaces_the_volume(disks):
    volume = disks.one("core/v1:PersistentVolume", "local-nlp")
    (term,) = volume.inputs["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    types = {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["ml.g5.12xlarge"]}
    assert term["matchExpressions"] == [types]
    more = recorded_from(file_of(instanceTypes=["ml.g5.12xlarge", "ml.m5.4xlarge"]))
    replaced = {(step.type, step.name) for step in change(disks, more).steps if step.action == "replace"}
    kinds = ("kubernetes:core/v1:PersistentVolume", "kubernetes:core/v1:PersistentVolumeClaim")
    assert replaced == {(kind, f"local-{name}") for kind in kinds for name in ("nlp", "vision")}


def test_a_claim_waits_for_its_volume_and_its_namespace(disks):
    claim = disks.one("core/v1:PersistentVolumeClaim", "local-nlp")
    assert disks.waits(claim, disks.one("core/v1:PersistentVolume", "local-nlp"))
    assert disks.waits(claim, disks.one("hyperpod:index:ComputeQuota", "nlp"))


def test_governance_of_an_existing_cluster_has_them_too():
    data = split(file_of(**G5))
    data["environments"]["governance"]["storage"] = data["environments"]["dev"].pop("storage")
    governance = recorded_from(data, environment="governance")
    assert {*governance.named("core/v1:PersistentVolumeClaim")} == {"local-nlp", "local-vision"}
