import json
import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpkit.adopt import AdoptedResource, ManagedResource, as_data, handover, lines, steps
from hpkit.adopt.resource_types import RESOURCE_TYPES
from tests.program.recorder import recorded

ARN = "arn:aws:sagemaker:us-west-2:111122223333:cluster/abcdefghijkl"
CLUSTER = AdoptedResource("hyperpod:index:Cluster", "ml-cluster", frozenset({ARN}), "imported")
ADDON = "aws:eks/addon:Addon"


def terraform(address, kind, *ids):
    return ManagedResource("terraform", address, kind, frozenset(ids))


def stack(address, kind, *ids):
    return ManagedResource("cloudformation", address, kind, frozenset(ids))


def imported(token, *ids, name="x"):
    return AdoptedResource(token, name, frozenset(ids), "imported")


def existing(token, *ids, name="x"):
    return AdoptedResource(token, name, frozenset(ids), "existing")


TF_CLUSTER = terraform("module.c[0].awscc_sagemaker_cluster.c", "awscc_sagemaker_cluster", ARN, "ml-cluster")


def released(found):
    return [each.managed.address for each in found.released]


def test_what_is_imported_is_let_go_and_what_is_only_named_stays():
    vpc = terraform("aws_vpc.main", "aws_vpc", "vpc-1")
    other = terraform("aws_budgets_budget.b", "aws_budgets_budget", "b")
    plan = handover([TF_CLUSTER, vpc, other], [CLUSTER, existing("aws:ec2/vpc:Vpc", "vpc-1")])
    assert released(plan) == [TF_CLUSTER.address]
    assert [each.managed for each in plan.stays] == [vpc]
    assert plan.unknown == (other,)


def test_what_nobody_holds_is_free():
    addon = imported(ADDON, "eks:coredns")
    assert handover([TF_CLUSTER], [CLUSTER, addon]).free == (addon,)


@pytest.mark.parametrize(
    ("token", "ids", "owned"),
    [
        (ADDON, {"eks:vpc-cni"}, stack("s/A", "AWS::EKS::Addon", "eks:vpc-cni", "vpc-cni:eks")),
        (ADDON, {"eks:vpc-cni"}, terraform("aws_eks_addon.a", "aws_eks_addon", "eks:vpc-cni", "arn:aws:eks:x")),
        ("aws:eks/cluster:Cluster", {"arn:aws:eks:r:1:cluster/eks"}, stack("s/E", "AWS::EKS::Cluster", "eks")),
        ("aws:eks/cluster:Cluster", {"eks"}, terraform("e.e", "aws_eks_cluster", "arn:aws:eks:r:1:cluster/eks")),
        ("aws:iam/role:Role", {"arn:aws:iam::1:role/path/node"}, stack("s/R", "AWS::IAM::Role", "node")),
        ("aws:s3/bucket:Bucket", {"arn:aws:s3:::lcs"}, stack("s/B", "AWS::S3::Bucket", "lcs")),
        ("aws:s3/bucketVersioning:BucketVersioning", {"lcs"}, stack("s/B", "AWS::S3::Bucket", "lcs")),
        (
            "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
            {"node/arn:aws:iam::aws:policy/P"},
            stack("s/R", "AWS::IAM::Role", "node"),
        ),
        ("aws:iam/rolePolicy:RolePolicy", {"node:inline"}, stack("s/R", "AWS::IAM::Role", "node")),
        (
            "aws:eks/accessPolicyAssociation:AccessPolicyAssociation",
            {"eks#arn:aws:iam::1:role/r#arn:aws:eks::aws:cluster-access-policy/P"},
            stack("s/E", "AWS::EKS::AccessEntry", "eks:arn:aws:iam::1:role/r"),
        ),
        ("kubernetes:karpenter.sh/v1:NodePool", {"gpu"}, terraform("k.k", "kubernetes_manifest", "NodePool/gpu")),
        ("kubernetes:helm.sh/v3:Release", {"kube-system/deps"}, terraform("h.h", "helm_release", "kube-system/deps")),
        (
            "aws:cloudwatch/logGroup:LogGroup",
            {"arn:aws:logs:r:1:log-group:/g:*"},
            terraform("l.l", "aws_cloudwatch_log_group", "/g", "arn:aws:logs:r:1:log-group:/g"),
        ),
        ("aws:new/thing:Thing", {"arn:aws:new:r:1:thing/t"}, terraform("n.n", "aws_new", "arn:aws:new:r:1:thing/t")),
    ],
)
def test_the_same_thing_is_known_across_tools(token, ids, owned):
    assert released(handover([owned], [AdoptedResource(token, "n", frozenset(ids), "imported")])) == [owned.address]


@pytest.mark.parametrize(
    ("token", "ids", "owned"),
    [
        (ADDON, {"eks:vpc-cni"}, stack("s/A", "AWS::EKS::Addon", "eks:coredns")),
        ("aws:s3/bucketPolicy:BucketPolicy", {"lcs"}, stack("s/B", "AWS::S3::Bucket", "lcs")),
        (
            "aws:eks/cluster:Cluster",
            {"eks", "arn:aws:eks:eu-west-1:1:cluster/eks"},
            terraform("e.e", "aws_eks_cluster", "eks", "arn:aws:eks:us-west-2:1:cluster/eks"),
        ),
        ("aws:new/thing:Thing", {"t"}, terraform("n.n", "aws_new", "t")),
    ],
)
def test_different_things_are_kept_apart(token, ids, owned):
    found = handover([owned], [AdoptedResource(token, "eks", frozenset(ids), "imported")])
    assert released(found) == []
    assert len(found.free) == 1


def quota(key, *ids):
    return terraform(f'module.t[0].null_resource.compute_quota["{key}"]', "null_resource", *ids)


QUOTA = AdoptedResource(
    "hyperpod:index:ComputeQuota", "vision", frozenset({"arn:aws:sagemaker:r:1:compute-quota/q"}), "imported"
)


def test_a_quota_made_by_a_command_is_let_go_by_its_team():
    found = handover([TF_CLUSTER, quota("q", "81", "vision")], [CLUSTER, QUOTA])
    assert released(found) == [quota("q").address, TF_CLUSTER.address], "before its cluster"


def test_a_name_that_several_things_have_is_said_to_be_unclear():
    plan = handover([quota("a", "vision"), quota("b", "vision")], [QUOTA])
    assert released(plan) == []
    assert plan.free == ()
    assert any(line.startswith("# unclear: hyperpod:index:ComputeQuota vision") for line in lines(plan))


def test_a_part_of_what_stays_cannot_be_imported_alone():
    role = stack("s/Role", "AWS::IAM::Role", "node")
    part = imported("aws:iam/rolePolicy:RolePolicy", "node:inline", name="inline")
    plan = handover([role], [part, existing("aws:iam/role:Role", "node")])
    assert released(plan) == []
    assert [each.adopted for each in plan.parts] == [(part,)]
    assert any("impossible: aws:iam/rolePolicy:RolePolicy inline is part of s/Role" in line for line in lines(plan))


def test_two_tools_may_hold_one_thing_and_both_let_go():
    inner = stack("s/C", "AWS::SageMaker::Cluster", ARN)
    assert released(handover([TF_CLUSTER, inner], [CLUSTER])) == [TF_CLUSTER.address, inner.address]


def test_letting_go_goes_from_what_acts_on_the_cluster_to_what_carries_it():
    tokens = [
        "aws:ec2/vpc:Vpc",
        "hyperpod:index:Cluster",
        ADDON,
        "aws:eks/accessEntry:AccessEntry",
        "hyperpod:index:ClusterSchedulerConfig",
    ]
    owned = [terraform(f"a.a{n}", RESOURCE_TYPES[token].terraform[0], f"id-{n}") for n, token in enumerate(tokens)]
    taken = [imported(token, f"id-{n}") for n, token in enumerate(tokens)]
    assert released(handover(owned, taken)) == [f"a.a{n}" for n in (4, 3, 2, 1, 0)]


def commands(found, start):
    return [each for step in steps(found) for each in step.commands if each.startswith(start)]


def test_terraform_backs_up_first_and_forgets_after_the_import():
    plan = handover([TF_CLUSTER, quota("two words", "vision")], [CLUSTER, QUOTA])
    first, *_, last = steps(plan)
    assert (first.when, first.commands[0]) == (
        "before import",
        "terraform state pull > terraform-state-before-hpkit.json",
    )
    assert last.commands == ("terraform plan",)
    forget = commands(plan, "terraform state rm")
    assert [shlex.split(each)[-1] for each in forget] == released(plan)
    assert forget[0] == """terraform state rm 'module.t[0].null_resource.compute_quota["two words"]'"""


def test_a_removed_block_has_no_keys_and_is_for_blocks_that_go_whole():
    nets = [terraform(f"aws_subnet.p[{n}]", "aws_subnet", f"subnet-{n}") for n in range(2)]
    found = handover([TF_CLUSTER, *nets], [CLUSTER, imported("aws:ec2/subnet:Subnet", "subnet-0")])
    text = "\n".join(lines(found))
    assert "from = module.c.awscc_sagemaker_cluster.c\n" in text
    assert "from = aws_subnet.p" not in text
    assert "aws_subnet.p (only the instances above)" in text


def test_what_the_lines_do_not_say_can_be_run():
    plan = handover([TF_CLUSTER, stack("s/C", "AWS::SageMaker::Cluster", ARN)], [CLUSTER])
    assert max(len(line) for line in lines(plan) if line.startswith("#")) <= 120
    run = [line for line in lines(plan) if line and not line.startswith("#")]
    assert run == [each for step in steps(plan) for each in step.commands]
    assert {shlex.split(each)[0] for each in run} == {"terraform", "aws"}


def test_nothing_to_let_go_of_needs_no_commands():
    found = handover([], [CLUSTER])
    assert steps(found) == []
    assert all(line.startswith("#") for line in lines(found))


def test_json_says_the_same():
    plan = handover([TF_CLUSTER, quota("a", "vision"), quota("b", "vision")], [CLUSTER, QUOTA])
    data = json.loads(json.dumps(as_data(plan)))
    assert [each["address"] for each in data["letGo"]] == released(plan)
    assert data["unclear"][0]["mayBe"] == [quota("a").address, quota("b").address]
    assert [each["run"] for each in data["steps"]] == [list(each.commands) for each in steps(plan)]


# Resources that only hpkit creates: guards, waits, admission policies, limits, and patches of existing objects.
OURS_ALONE = {
    "hyperpod:index:ChangeGuard",
    "hyperpod:index:Readiness",
    "hyperpod:index:AutoscaledGroup",
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy",
    "kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicyBinding",
    "kubernetes:apps/v1:DeploymentPatch",
    "kubernetes:core/v1:ConfigMapPatch",
    "kubernetes:core/v1:LimitRange",
    "kubernetes:core/v1:NamespacePatch",
}


@pytest.mark.parametrize("name", ["bestpractice-prod", "enterprise-prod", "autoscale-dev", "topology-prod"])
def test_every_type_that_the_program_registers_is_known(name):
    tokens = {each.type for each in recorded(name).resources.values()}
    registered = {each for each in tokens if not each.startswith(("pulumi:", "hpkit:"))}
    assert registered - RESOURCE_TYPES.keys() - OURS_ALONE == set()


TOKENS = sorted(
    token for token, kind in RESOURCE_TYPES.items() if token.startswith(("aws:", "hyperpod:")) and kind.cloudformation
)


@st.composite
def platforms(draw):
    """Generate resources with one owner or none, which hpkit has imported, found, or doesn't know."""
    owned, taken = [], []
    for number in range(draw(st.integers(0, 12))):
        token = draw(st.sampled_from(TOKENS))
        tool = draw(st.sampled_from(["terraform", "cloudformation", None]))
        key = f"{draw(st.sampled_from(['id', 'sg', 'a:b']))}-{number}"
        if tool == "terraform":
            kind = draw(st.sampled_from(RESOURCE_TYPES[token].terraform))
            owned.append(terraform(f"module.m[0].{kind}.x[{number}]", kind, key))
        elif tool == "cloudformation":
            kind = draw(st.sampled_from(RESOURCE_TYPES[token].cloudformation))
            owned.append(stack(f"s{number % 3}/L{number}", kind, key))
        role = draw(st.sampled_from(["imported", "existing", None]))
        if role:
            taken.append(AdoptedResource(token, draw(st.sampled_from(["x", "y", key])), frozenset({key}), role))
    return draw(st.permutations(owned)), draw(st.permutations(taken))


@given(platforms())
def test_whatever_is_imported_is_let_go_exactly_once_and_nothing_else(platform):
    owned, taken = platform
    plan = handover(owned, taken)
    wanted = {each.address for each in owned for other in taken if other.owner == "imported" and each.ids & other.ids}
    assert sorted(released(plan)) == sorted(wanted)
    kept = {each.address for each in owned} - wanted
    said = [each.managed for each in plan.released if each.managed.tool == "terraform"]
    forgotten = [shlex.split(each)[-1] for each in commands(plan, "terraform state rm")]
    assert forgotten == [each.address for each in said]
    assert not kept & set(forgotten)
    ours = {each.managed.logical_id for each in plan.released if each.managed.tool == "cloudformation"}
    retain = [step.description for step in steps(plan) if "`DeletionPolicy: Retain`" in step.description]
    named = [word.strip(",.") for say in retain for word in say.partition(" on ")[2].split(". ")[0].split()]
    assert sorted(named) == sorted(ours)
    everything = [each.managed for each in (*plan.released, *plan.stays)] + list(plan.unknown)
    assert sorted(each.address for each in everything) == sorted(each.address for each in owned)
