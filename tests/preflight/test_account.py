"""Roles that the file passes to services are looked up like roles of people."""

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.derive import derive
from hpkit.preflight.account import check_roles
from hpkit.preflight.calls import CALLER, SERVICE_ROLE, eks_cluster, first_calls, role
from hpkit.program.recording import record
from tests.builders import group, organization, team, typed

ROLE = "arn:aws:iam::123456789012:role/{}"
ON = {"nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}], "clusterRole": ROLE.format("karpenter")}


def plan_of(**more):
    groups = [
        group("gpu", "ml.g5.12xlarge", 4, executionRole=ROLE.format("nodes")),
        group("burst", "ml.g5.8xlarge", 0, executionRole=ROLE.format("nodes")),
    ]
    addons = {
        "aws-ebs-csi-driver": {"role": ROLE.format("volumes")},
        "vpc-cni": {"serviceAccountRoleArn": ROLE.format("network")},
    }
    return derive(typed(organization(groups=groups, environment={"autoscaling": ON, "addons": addons}, **more)), "dev")


def test_they_are_asked_for_and_said_with_what_they_are_for():
    plan = plan_of()
    names = ("karpenter", "network", "nodes", "volumes")
    assert {role(name).key for name in names} <= {call.key for call in first_calls(record(plan))}
    roles = {role(name).key: {"Role": {"Arn": ROLE.format(name)}} for name in names if name != "nodes"}
    absent = FailedCall("iam:GetRole", "NoSuchEntity", "no such role")
    caller = {"Account": "123456789012", "Arn": ROLE.format("x")}
    responses = Responses({**roles, role("nodes").key: absent, CALLER.key: caller})
    rows = {row.what.rpartition("/")[2]: row for row in check_roles(plan, responses)}
    assert {name: (rows[name].status, rows[name].needed) for name in names} == {
        "karpenter": ("ok", "managed Karpenter"),
        "network": ("ok", "pods of vpc-cni"),
        "nodes": ("missing", "execution role of instance groups"),
        "volumes": ("ok", "pods of aws-ebs-csi-driver"),
    }


def test_the_local_cloud_accepts_principals_that_its_iam_does_not_have():
    admin = ROLE.format("Admin")
    plan = plan_of(teams=[team("nlp", members=[admin])], allocations={"nlp": []})
    absent = FailedCall("iam:GetRole", "NoSuchEntity", "no such role")
    none = FailedCall("eks:DescribeCluster", "ResourceNotFoundException", "none")
    answers = {
        **{role(name).key: absent for name in ("Admin", "karpenter", "network", "nodes", "volumes", SERVICE_ROLE)},
        CALLER.key: {"Account": "123456789012", "Arn": ROLE.format("x")},
    }

    def statuses(cluster, *, on_local_cloud):
        responses = Responses({**answers, eks_cluster(plan).key: cluster})
        rows = {row.what: row.status for row in check_roles(plan, responses, on_local_cloud=on_local_cloud)}
        return rows[f"role {admin}"], rows[f"role {ROLE.format('nodes')}"]

    up = {"cluster": {"status": "ACTIVE"}}
    assert statuses(up, on_local_cloud=True) == ("ok", "missing"), "what services assume has to exist there too"
    assert statuses(none, on_local_cloud=True) == ("missing", "missing")
    assert statuses(up, on_local_cloud=False) == ("missing", "missing")
