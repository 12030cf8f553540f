"""The user of a pod that mounts the shared file system: checked in CEL, evaluated like the API server."""

import copy

import pytest

from hpkit.plan.derive import derive
from hpkit.program.components.access.rbac import cluster_rules, team_rules
from hpkit.program.components.admission.policies import policies_of, policies_of_users
from tests.builders import organization, team, typed
from tests.program.components.evaluation import answers, request_of

ROWS = [{"instanceType": "ml.g5.12xlarge", "count": 1}]
JOHN, SMITH = 20000, 30000
CLAIM = [{"name": "fsx", "persistentVolumeClaim": {"claimName": "fsx-claim"}}]
OWN = {"runAsUser": JOHN, "runAsGroup": JOHN, "supplementalGroupsPolicy": "Strict"}
LOCKED = {"allowPrivilegeEscalation": False}
MOUNTS = {"volumeMounts": [{"name": "fsx", "mountPath": "/fsx"}]}


@pytest.fixture(scope="module")
def teams():
    given = [team("john", userIds={"first": JOHN, "count": 10}), team("smith", userIds={"first": SMITH, "count": 10})]
    return derive(typed(organization(teams=given, allocations={"john": ROWS, "smith": ROWS})), "dev").teams


@pytest.fixture(scope="module")
def refused(teams):
    def ask(own_spec, name="john", **more):
        spec = {"containers": [{"name": "main", "securityContext": LOCKED}], "volumes": CLAIM, **own_spec}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
        job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {}, "spec": {"template": {"spec": spec}}}
        rejected = [
            {
                field.removeprefix("securityContext.")
                for field in answers(policies_of_users(teams), request_of(document, team=name, **more), document)
            }
            for document in (pod, job)
        ]
        assert rejected[0] == rejected[1], "a Job is rejected for what its pods would be rejected for"
        return rejected[0]

    return ask


def container(**security):
    return [{"name": "main", **MOUNTS, "securityContext": {**LOCKED, **security}}]


def without(field):
    return {key: value for key, value in OWN.items() if key != field}


def test_a_pod_with_ids_of_the_team_mounts_the_claim(refused):
    assert refused({"securityContext": OWN}) == set()
    assert refused({"securityContext": {**OWN, "fsGroup": JOHN + 9, "supplementalGroups": [JOHN + 1]}}) == set()
    groups = {"supplementalGroupsPolicy": "Strict"}
    assert refused({"securityContext": groups, "containers": container(runAsUser=JOHN, runAsGroup=JOHN)}) == set()
    assert refused({"securityContext": OWN, "initContainers": container()}, member=False) == set()
    token = {"volumeMounts": [{"name": "kube-api-access", "mountPath": "/var/run/secrets"}]}
    assert refused({"securityContext": OWN, "initContainers": [{"name": "init-pytorch", **token}]}) == set()


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"securityContext": {**OWN, "runAsUser": 0}}, "runAsUser"),
        ({"securityContext": {**OWN, "runAsUser": SMITH}}, "runAsUser"),
        ({"securityContext": {**OWN, "runAsUser": JOHN + 10}}, "runAsUser"),
        ({"securityContext": {**OWN, "runAsUser": JOHN - 1}}, "runAsUser"),
        ({"securityContext": without("runAsUser")}, "runAsUser"),
        ({"securityContext": OWN, "containers": container(runAsUser=0)}, "runAsUser"),
        ({"securityContext": OWN, "containers": container() + container(runAsUser=SMITH)}, "runAsUser"),
        ({"securityContext": OWN, "initContainers": container(runAsUser=SMITH)}, "runAsUser"),
        ({"securityContext": {**OWN, "runAsGroup": SMITH}}, "runAsGroup"),
        ({"securityContext": without("runAsGroup")}, "runAsGroup"),
        ({"securityContext": OWN, "containers": container(runAsGroup=0)}, "runAsGroup"),
        ({"securityContext": {**OWN, "fsGroup": SMITH}}, "supplementalGroups"),
        ({"securityContext": {**OWN, "fsGroup": 0}}, "supplementalGroups"),
        ({"securityContext": {**OWN, "supplementalGroups": [JOHN, SMITH]}}, "supplementalGroups"),
        ({"securityContext": {**OWN, "supplementalGroupsPolicy": "Merge"}}, "supplementalGroupsPolicy"),
        ({"securityContext": without("supplementalGroupsPolicy")}, "supplementalGroupsPolicy"),
        ({"securityContext": OWN, "containers": [{"name": "main", **MOUNTS}]}, "allowPrivilegeEscalation"),
        ({"securityContext": OWN, "containers": container(allowPrivilegeEscalation=True)}, "allowPrivilegeEscalation"),
        ({"securityContext": OWN, "shareProcessNamespace": True}, "allowPrivilegeEscalation"),
        ({"securityContext": OWN, "initContainers": [{"name": "first", **MOUNTS}]}, "allowPrivilegeEscalation"),
    ],
    ids=str,
)
def test_a_member_cannot_run_as_another_teams_user_group_or_root(refused, spec, field):
    assert refused(spec) == {field}
    assert refused(spec, member=False) == {field}, "a controller makes the pods of a Job"


def test_an_ephemeral_claim_of_the_same_name_needs_the_teams_ids(refused):
    """Pod `fsx` with a volume `claim` creates the claim `fsx-claim`, which binds the team's volume."""
    volume = {"name": "claim", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}
    spec = {"volumes": [volume], "securityContext": {**OWN, "runAsUser": SMITH}}
    assert refused(spec) == {"runAsUser"}


def test_a_team_cannot_use_the_ids_of_another_team(refused):
    assert refused({"securityContext": OWN}, name="smith") == {"runAsUser", "runAsGroup"}
    assert refused({"securityContext": OWN}, name="stranger") == {"runAsUser", "runAsGroup"}


def test_a_pod_without_the_claim_runs_as_anybody(refused):
    assert refused({"volumes": [{"name": "cache", "emptyDir": {}}], "containers": [{"name": "main"}]}) == set()


def test_a_member_cannot_mount_the_file_system_by_a_volume_in_the_pod(teams):
    volume = {"name": "fsx", "csi": {"driver": "fsx.csi.aws.com", "volumeAttributes": {"mountname": "abcdefgh"}}}
    spec = {"containers": [{"name": "main"}], "volumes": [volume]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}, "spec": spec}
    assert "spec.volumes" in answers(policies_of(teams), request_of(pod), pod)
    claimed = copy.deepcopy(pod)
    claimed["spec"]["volumes"] = CLAIM
    assert "spec.volumes" not in answers(policies_of(teams), request_of(claimed), claimed)


def test_a_member_cannot_create_a_persistent_volume():
    rules = [*team_rules(("training", "inference")), *cluster_rules()]
    assert not [rule for rule in rules if {"persistentvolumes", "storageclasses", "*"} & set(rule.resources)]
