"""The manifests of the probes, and their run: with a time limit, and deleted afterward, whatever happens in between."""

import pytest
import yaml
from kubernetes.client import ApiException

from hpkit.cluster.check.probes import NAME, Probe, probes_of
from hpkit.cluster.check.run import cleared, run
from hpkit.cluster.jobs.check import check, read_manifests
from hpkit.cluster.live.model import KubernetesNode
from hpkit.errors import ToolError
from hpkit.plan.derive import derive
from tests import builders

SPACE, JOBS = f"/api/v1/namespaces/{NAME}", "/apis/batch/v1/namespaces/hyperpod-ns-john/jobs"


def probe(name="team john", **more):
    document = {"metadata": {"name": NAME}}
    return Probe(name, "a job", "", JOBS, document, selector="hpkit-check=team", **more)


def pod(phase, **status):
    return {"metadata": {"name": "pod"}, "status": {"phase": phase, **status}}


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds


class Api:
    """Objects by path; pods as a list of what each read returns, the last one forever.

    late: how often the webhook of pods answers that the namespace doesn't exist.
    """

    def __init__(self, *reads, workloads=(), refuses=(), late=0):
        self.objects, self.reads, self.workloads, self.refuses = {}, list(reads), workloads, refuses
        self.late = late

    def create(self, path, document):
        if path == f"{SPACE}/pods" and self.late:
            self.late -= 1
            raise ApiException(status=404, reason="Not Found")
        path = f"{path}/{document['metadata']['name']}"
        if path in self.objects:
            raise ApiException(status=409, reason="Conflict")
        self.objects[path] = document

    def find(self, path):
        return self.objects.get(path)

    def delete(self, path, _options):
        if path in self.refuses:
            raise ApiException(status=403, reason="Forbidden")
        if path not in self.objects:
            raise ApiException(status=404, reason="Not Found")
        self.objects = {key: each for key, each in self.objects.items() if not f"{key}/".startswith(f"{path}/")}

    def version_of(self, group):
        return f"/apis/{group}/v1beta2"

    def pages(self, path, _query=()):
        if path.endswith("/workloads"):
            return iter(self.workloads)
        pods = self.reads.pop(0) if len(self.reads) > 1 else self.reads[0]
        if isinstance(pods, BaseException):
            raise pods
        return iter(pods)


def checked(api, *probes, seconds=60.0):
    said = []
    with cleared(api, clock=(clock := Clock()), say=said.append) as made:
        results = run(api, probes, made, seconds=seconds, clock=clock, report=lambda result: said.append(result.status))
    assert api.objects == {}
    return [(each.status, each.seconds, each.detail) for each in results]


def test_a_probe_ends_with_its_pod_and_has_the_last_lines_of_its_container():
    ended = [{"state": {"terminated": {"message": "7 of 8 GPUs visible\n"}}}]
    assert checked(Api([], [pod("Running")], [pod("Succeeded")]), probe()) == [("ok", 2.0, "a job")]
    assert checked(Api([pod("Failed", containerStatuses=ended)]), probe()) == [("failed", 0.0, "7 of 8 GPUs visible")]
    assert checked(Api([pod("Succeeded")]), probe(pods=2), seconds=3)[0][0] == "failed"
    assert checked(Api([]), Probe("group a", outcome=("skipped", "it has no nodes"))) == [
        ("skipped", 0.0, "it has no nodes")
    ]


WAITING = {"type": "QuotaReserved", "status": "False", "message": "insufficient quota"}


@pytest.mark.parametrize(
    ("pods", "reason"),
    [
        ([], "insufficient quota"),
        ([pod("Pending", conditions=[{"type": "PodScheduled", "status": "False", "message": "no GPU"}])], "no GPU"),
        (
            [pod("Pending", containerStatuses=[{"state": {"waiting": {"reason": "ErrImagePull", "message": "403"}}}])],
            "ErrImagePull: 403",
        ),
        ([pod("Running")], "its pods are Running"),
    ],
    ids=["queued", "unscheduled", "image", "running"],
)
def test_a_probe_over_its_time_limit_fails_with_the_reason(pods, reason):
    workload = {"metadata": {"ownerReferences": [{"name": NAME}]}, "status": {"conditions": [WAITING]}}
    api = Api(pods, workloads=[workload])
    assert checked(api, probe(), seconds=5) == [("failed", 6.0, f"not within 5 s: {reason}")]


def test_a_job_of_a_killed_check_is_replaced():
    api = Api([pod("Succeeded")])
    api.objects[f"{JOBS}/{NAME}"] = {"metadata": {"name": NAME}}
    assert checked(api, probe())[0][0] == "ok"


@pytest.mark.parametrize(("late", "result"), [(2, ("ok", 2.0)), (99, ("failed", 30.0))])
def test_a_pod_waits_until_the_webhook_knows_the_new_namespace(late, result):
    document = {"metadata": {"name": "a"}}
    api = Api([pod("Succeeded")], late=late)
    assert checked(api, Probe("group a", "a pod", "", f"{SPACE}/pods", document))[0][:2] == result


def test_ctrl_c_deletes_everything():
    api = Api([], KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        checked(api, probe())
    assert api.objects == {}


def test_a_second_check_is_refused_and_the_first_one_is_not_disturbed():
    api = Api([])
    with cleared(api, clock=Clock(), say=print):
        with (
            pytest.raises(ToolError, match="another check is running, or was killed"),
            cleared(api, clock=Clock(), say=print),
        ):
            pass
        assert SPACE in api.objects


def test_what_cannot_be_deleted_is_listed_with_commands_and_the_rest_is_deleted():
    api, output = Api([pod("Succeeded")], refuses=[f"{JOBS}/{NAME}"]), []
    with pytest.raises(ApiException), cleared(api, clock=(clock := Clock()), say=output.append) as made:
        run(api, [probe()], made, seconds=5, clock=clock, report=print)
    assert list(api.objects) == [f"{JOBS}/{NAME}"]
    jobs = f"kubectl delete job -n hyperpod-ns-john {NAME}"
    assert output == [f"not everything was deleted. Run: {jobs}; kubectl delete namespace {NAME}"]


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
