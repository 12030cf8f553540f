"""What an FSx for Lustre file system is inside the cluster."""

import copy
import re
from pathlib import Path

import pytest
import yaml

from hpkit.change import change
from hpkit.plan.names import short_type
from provider.engine.errors import RefusedError
from provider.engine.values import UNKNOWN
from provider.resources.change_guard import ChangeGuardHandler
from provider.server import HyperpodServicer
from tests.builders import organization, team
from tests.program.recorder import recorded_from

PAGE = Path(__file__).parents[2] / "docs" / "storage.md"


def program(**lustre):
    rows = [{"instanceType": "ml.g5.12xlarge", "count": 1}]
    wanted = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 2400, **lustre}
    return recorded_from(
        organization(
            teams=[team("nlp"), team("vision")],
            environment={
                "governance": {
                    "allocations": {"nlp": rows, "vision": rows},
                    "sharedPool": {"name": "shared", "fairShareWeight": 0},
                },
                "storage": {"lustre": wanted},
            },
        )
    )


@pytest.fixture(scope="module")
def shared():
    return program(teams=True)


def test_each_team_but_the_shared_pool_has_a_volume_and_a_claim_of_its_own(shared):
    volumes = shared.named("core/v1:PersistentVolume")
    claims = shared.named("core/v1:PersistentVolumeClaim")
    assert set(volumes) == set(claims) == {"nlp", "vision"}
    for name, claim in claims.items():
        spec, given = claim.inputs["spec"], volumes[name].inputs["spec"]
        assert claim.inputs["metadata"] == {"name": "fsx-claim", "namespace": f"hyperpod-ns-{name}"}
        assert spec["volumeName"] == volumes[name].inputs["metadata"]["name"] == f"fsx-hyperpod-ns-{name}"
        assert given["claimRef"]["namespace"] == f"hyperpod-ns-{name}", "no other team's claim can take it"
        assert spec["storageClassName"] == given["storageClassName"] == "fsx-sc"
        assert spec["accessModes"] == given["accessModes"] == ["ReadWriteMany"]
        assert given["capacity"] == {"storage": "2400Gi"}
        assert spec["resources"]["requests"] == {"storage": "1200Gi"}, "it stays, so that the file system can grow"


def test_a_volume_is_the_stacks_file_system_and_outlives_its_claim(shared):
    spec = shared.named("core/v1:PersistentVolume")["nlp"].inputs["spec"]
    assert spec["persistentVolumeReclaimPolicy"] == "Retain"
    assert (spec["csi"]["driver"], spec["csi"]["volumeHandle"]) == ("fsx.csi.aws.com", "lustre-id")
    assert spec["csi"]["volumeAttributes"] == {"dnsname": "lustre.fsx.example", "mountname": "abcdefgh"}


def test_a_claim_waits_for_its_volume_its_namespace_and_the_driver(shared):
    claim = shared.one("core/v1:PersistentVolumeClaim", "nlp")
    volume = shared.one("core/v1:PersistentVolume", "nlp")
    assert shared.waits(claim, volume)
    assert claim.uses["spec"] == {volume.urn}, "they are replaced together"
    assert shared.waits(claim, shared.one("hyperpod:index:ComputeQuota", "nlp"))
    assert shared.waits(claim, shared.one("eks/addon:Addon", "aws-fsx-csi-driver"))


def test_without_being_asked_for_there_is_none():
    kinds = {short_type(each.type) for each in program().resources.values()}
    assert not [kind for kind in kinds if "PersistentVolume" in kind or "StorageClass" in kind]


def test_at_a_preview_one_that_shrinks_ends_at_the_guard_of_its_id_and_one_that_grows_passes(shared):
    def guarded(size):
        """Ask the plugin's guard as the engine does: it knows no id of what is replaced."""
        found = change(shared, program(teams=True, storageCapacityGiB=size))
        (step,) = [step for step in found.steps if step.name == "keep-base"]
        new = copy.deepcopy(program(teams=True, storageCapacityGiB=size).one(step.type, step.name).inputs)
        for cause in step.causes:
            if cause.because:
                whole, _, part = cause.path.partition(".")
                new[whole][part] = UNKNOWN
        old = shared.one(step.type, step.name).inputs
        return ChangeGuardHandler(HyperpodServicer().clients).diff(old, new, old)

    assert not guarded(4800).changes
    with pytest.raises(RefusedError) as refused:
        guarded(1200)
    for text in (
        "fileSystem: lustre-id is replaced",
        "(2400 GiB) with all files on it",
        "`allowReplace: [fileSystem]`",
    ):
        assert text in str(refused.value)
    assert shared.one("fsx/lustreFileSystem:LustreFileSystem").protect, "without a preview the engine refuses it"


def test_the_manifest_of_the_page_mounts_what_a_team_has(shared):
    (text,) = re.findall(r"```yaml\n(apiVersion: .*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    job = yaml.safe_load(text)
    claims = {
        (each.inputs["metadata"]["namespace"], each.inputs["metadata"]["name"])
        for each in shared.all("core/v1:PersistentVolumeClaim")
    }
    (volume,) = job["spec"]["template"]["spec"]["volumes"]
    assert (job["metadata"]["namespace"], volume["persistentVolumeClaim"]["claimName"]) in claims
    (container,) = job["spec"]["template"]["spec"]["containers"]
    assert [each["name"] for each in container["volumeMounts"]] == [volume["name"]]
