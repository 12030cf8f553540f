"""The manifests of the probes: devices of the nodes, Pod Security, and the rules for a team's jobs."""

import yaml

from hpkit.cluster.check.probes import probes_of
from hpkit.cluster.jobs.check import check, read_manifests
from hpkit.cluster.live.model import KubernetesNode
from hpkit.plan.derive import derive
from tests import builders

LUSTRE = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 1200, "teams": True}


def plan_with(**lustre):
    rows = {"ada": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}
    data = builders.organization(teams=[builders.team("ada", members=[])], allocations=rows)
    if lustre:
        data["environments"]["dev"]["storage"] = {"lustre": lustre}
    return derive(builders.typed(data), "dev")


def nodes_of(plan, count=2, **more):
    return [
        KubernetesNode(
            name=f"{number}",
            group=group.spec.name,
            instance_type=group.spec.instance_type,
            zone="a",
            pool=None,
            layers=(),
            cordoned=False,
            **{"ready": True, "allocatable": {}, **more},
        )
        for group in plan.groups
        for number in range(count)
    ]


def probes(plan, nodes, torch_image="torch"):
    first, last = probes_of(plan, nodes, image="shell", torch_image=torch_image)
    return {each.name: each for each in (*first, *last)}


def test_a_pod_of_a_group_requests_and_counts_all_devices_of_a_node():
    plan = plan_with()
    found = probes(plan, nodes_of(plan))["group gpu"]
    (container,) = found.document["spec"]["containers"]
    devices = {"nvidia.com/gpu": 4, "vpc.amazonaws.com/efa": 1}
    assert devices.items() <= container["resources"]["limits"].items()
    assert 'count "GPUs" 4 "/dev/nvidia[0-9]*"' in container["command"][2]
    assert found.tests == "image pull, DNS, 4 GPUs, 1 EFA device"


def test_partitions_of_gpus_are_not_counted():
    plan = plan_with()
    found = probes(plan, nodes_of(plan, allocatable={"nvidia.com/mig-1g.5gb": 7}))
    assert "GPU" not in found["group gpu"].tests
    assert "all-reduce gpu" not in found


def test_what_cannot_be_tested_is_skipped_or_failed_with_the_reason():
    plan = plan_with()
    assert probes(plan, nodes_of(plan), None)["all-reduce gpu"].outcome == (
        "skipped",
        "it requires --image with an image that has PyTorch",
    )
    assert probes(plan, nodes_of(plan, 1))["all-reduce gpu"].outcome == ("skipped", "only one node is ready")
    empty = probes(plan, nodes_of(plan, ready=False))
    assert empty["group gpu"].outcome == ("failed", "no node is ready")
    assert empty["team ada"].outcome == ("skipped", "no node of an instance type in its quota is ready")


def test_a_job_of_a_team_is_one_that_its_members_may_run_also_with_a_volume():
    for plan in (plan_with(), plan_with(**LUSTRE)):
        jobs = [each.document for name, each in probes(plan, nodes_of(plan)).items() if name.startswith("team ")]
        assert jobs
        for job in jobs:
            found = check(read_manifests("job.yaml", yaml.safe_dump(job)), plan)
            # It needs no GPU to test the queue.
            assert {each.check for each in found} == {"accelerators"}
    pod = jobs[0]["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsUser"] in plan.teams[0].user_ids
    assert "fsx" in pod["containers"][0]["command"][2]
