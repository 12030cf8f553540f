"""A holder of the printed policies tries to get other resources, or to take over those of other tools."""

import re
from functools import cache

import pytest

from hpkit.plan.derive import derive
from hpkit.program.iam.deployer import actions_of, deployer_policies
from hpkit.program.iam.live import LiveResource
from hpkit.program.iam.rules import rules
from tests import builders
from tests.endpoint import running_endpoint
from tests.local.aws.conftest import Cloud
from tests.program.iam.authorization import access_level, can_be_narrowed, resource_formats
from tests.program.iam.test_deployer import ACCOUNT, END, LIVE, PLANS, types, variants
from tests.provider.harness import CREDENTIALS, FailedError, World, in_process, quota
from tests.security.evaluation import Request, allows

DEPLOYER = "arn:aws:iam::123456789012:role/deploy"
# Parts of the ARN of another owner's resource that is as similar as possible to the stack's own.
NEAREST = {
    "Partition": "aws",
    "Region": "us-west-2",
    "Account": "123456789012",
    "OidcProviderName": "oidc.eks.us-west-2.amazonaws.com/id/OF-OTHERS",
    "Namespace": "hpkit",
}
TAGS = {
    "no tags": {},
    "another environment's": {"hpkit:organization": "{organization}", "hpkit:environment": "another"},
    "another organization's": {"hpkit:organization": "another", "hpkit:environment": "{environment}"},
    "another application's": {"application": "payroll"},
    "GuardDuty's": {"GuardDutyManaged": "true"},
}
# The other known values of an endpoint and a group that GuardDuty created in another VPC.
OF_GUARDDUTY = {
    "ec2:Vpc": "arn:aws:ec2:us-west-2:123456789012:vpc/vpc-of-others",
    "ec2:VpceServiceName": "com.amazonaws.us-west-2.guardduty-data",
}
MAKES = "makes a resource, and has a right to none that exists"
# What is allowed on the most similar resource of another owner, and what limits it.
ALLOWED = {
    **dict.fromkeys(
        (
            *("aps:CreateRuleGroupsNamespace", "aps:CreateWorkspace", "ec2:AllocateAddress"),
            *("ec2:CreateInternetGateway", "ec2:CreateVpc", "eks:CreateCluster", "fsx:CreateFileSystem"),
            *("grafana:CreateWorkspace", "iam:CreateOpenIDConnectProvider", "kms:CreateKey", "sagemaker:CreateCluster"),
        ),
        MAKES,
    ),
    **dict.fromkeys(
        ("ec2:CreateNatGateway", "ec2:CreateSecurityGroup"),
        "makes a resource; IAM asks for the right to its subnet or VPC where the request names one",
    ),
    "route53:AssociateVPCWithHostedZone": "before the VPC exists, the region alone is known",
}
# Tagging at creation, which IAM can't distinguish from later tagging: it grants nothing, as the attack below shows.
TAGGED = {"fsx:TagResource", "iam:TagOpenIDConnectProvider", "kms:TagResource"}
# What the tags of a key grant: nothing that the caller could read or keep.
HARMLESS = {"kms:CreateGrant", "kms:EnableKeyRotation"}


@cache
def plans():
    """Return plans that together need every action of the rules, by name."""
    organizations = list(variants())
    organizations[3]["environments"]["dev"]["permissionsBoundary"] = "arn:aws:iam::123456789012:policy/boundary"
    return {
        "enterprise": next(plan for plan in PLANS if plan.stack == "enterprise-prod"),
        "files": derive(builders.typed(organizations[1]), "dev"),
        "inference": derive(builders.typed(organizations[3]), "dev"),
    }


PLAN_NAMES = ("enterprise", "files", "inference")


@cache
def documents(name, stage):
    own = {key: plans()[name].tags[key] for key in KEPT}
    live = (*LIVE, LiveResource(ACCOUNT.arn("ec2", "vpc/vpc-own"), own)) if stage == "with the state" else ()
    return [policy.document for policy in deployer_policies(plans()[name], ACCOUNT, types(plans()[name]), live=live)]


STAGES = ("first up", "with the state")


def writes(policies):
    """Return the actions of policies that change something, according to the reference's access levels."""
    given = {action for each in policies for statement in each["Statement"] for action in statement["Action"]}
    return sorted(action for action in given if access_level(action) not in ("List", "Read"))


def of_others(action, policies):
    """Return the most similar resources of other owners that each request must name."""
    formats = resource_formats(action)
    patterns = [
        resource
        for policy in policies
        for statement in policy["Statement"]
        if action in statement["Action"]
        for resource in statement["Resource"]
    ]
    services = {pattern.split(":")[5].split("/")[0] for pattern in patterns if pattern != "*"}

    def arn(text):
        return re.sub(r"\$\{(\w+)\}", lambda found: NEAREST.get(found[1], "of-others"), text)

    named = [arn(each) for each in formats if arn(each).split(":", 5)[5].split("/")[0] in services]
    if access_level(action) == "Tagging":
        return [[each] for each in named] or [["*"]]
    required = [arn(each) for each, must in formats.items() if must]
    return [required or named or ["*"]]


def tags_of(plan, tags):
    filled = {
        key: value.format(organization=plan.organization, environment=plan.environment) for key, value in tags.items()
    }
    return {f"aws:ResourceTag/{key}": value for key, value in filled.items()}


def asked(plan):
    """Return what a request can claim in order to be allowed: the stack's tags, and the calling service."""
    kept = {key: plan.tags[key] for key in ("hpkit:organization", "hpkit:environment")}
    return {
        **{f"aws:RequestTag/{key}": value for key, value in kept.items()},
        "aws:TagKeys": list(kept),
        "kms:GrantIsForAWSResource": "true",
        "route53:VPCs": [f"VPCId=vpc-of-others,VPCRegion={plan.spec.region}"],
        "iam:AWSServiceName": "eks.amazonaws.com",
        "iam:PassedToService": "sagemaker.amazonaws.com",
        "aws:CurrentTime": "2027-01-01T00:00:00Z",
    }


def succeeds(action, policies, context):
    about = [{"Statement": [each for each in policy["Statement"] if action in each["Action"]]} for policy in policies]
    return any(
        all(allows(Request(DEPLOYER, action, each, context), identity=about) for each in resources)
        for resources in of_others(action, policies)
    )


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", PLAN_NAMES)
@pytest.mark.parametrize("tags", TAGS)
def test_a_deployer_cannot_change_resources_of_others(name, stage, tags):
    plan, policies = plans()[name], documents(name, stage)
    context = {**asked(plan), **tags_of(plan, TAGS[tags])}
    if tags == "GuardDuty's":
        context |= OF_GUARDDUTY
    done = {action for action in writes(policies) if succeeds(action, policies, context)}
    unnarrowed = {action for action in done if not can_be_narrowed(action)}
    conditions = {*unnarrowed, *ALLOWED, *(TAGGED if "hpkit:environment" not in TAGS[tags] else ())}
    if tags == "GuardDuty's":
        # EC2 has no condition key for the VPC of an endpoint. Before the VPC exists, the group's isn't known either.
        conditions |= {"ec2:DeleteVpcEndpoints", "ec2:ModifyVpcEndpoint"}
        conditions |= {"ec2:DeleteSecurityGroup"} if stage == "first up" else set()
    if tags == "another environment's":
        conditions.add("ec2:ModifySnapshotAttribute")  # For the organization's own images.
    assert done - conditions == set()


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", PLAN_NAMES)
def test_a_deployer_cannot_claim_resources_of_others_by_tagging_them(name, stage):
    plan, policies = plans()[name], documents(name, stage)
    claims = [action for action in writes(policies) if access_level(action) == "Tagging"]
    before, after = asked(plan), {**asked(plan), **tags_of(plan, {key: plan.tags[key] for key in KEPT})}
    claimed = {
        (action.partition(":")[0], policy)
        for action in claims
        for (policy,) in of_others(action, policies)
        if allows(Request(DEPLOYER, action, policy, before), identity=policies)
    }
    services = {service for service, _ in claimed}
    assert services <= {action.partition(":")[0] for action in TAGGED}
    owned = {
        action
        for action in writes(policies)
        if action.partition(":")[0] in services and succeeds(action, policies, after)
    }
    # Before the file system exists, its ARN isn't known.
    unknown = {"fsx:CreateDataRepositoryAssociation"} if stage == "first up" else set()
    assert owned - ALLOWED.keys() - unknown <= HARMLESS


KEPT = ("hpkit:organization", "hpkit:environment")


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("name", PLAN_NAMES)
def test_every_write_names_a_resource_or_a_condition(name, stage):
    policies = documents(name, stage)
    done = {action for action in writes(policies) if succeeds(action, policies, {})}
    assert {action for action in done if can_be_narrowed(action)} == set()


@pytest.mark.parametrize("name", PLAN_NAMES)
def test_a_deployer_cannot_remove_the_stacks_tags_or_pass_resources_on(name):
    plan, policies = plans()[name], documents(name, "with the state")
    own = tags_of(plan, {key: plan.tags[key] for key in KEPT})
    tagging = [action for action in writes(policies) if access_level(action) == "Tagging"]
    by_tags = [each for each in tagging if each.partition(":")[0] in ("aps", "ec2", "grafana", "sagemaker")]
    assert by_tags
    for action in by_tags:
        for resources in of_others(action, policies):
            (arn,) = resources
            removes = re.search(":(Untag|DeleteTags)", action)
            for key in KEPT:
                given = {} if removes else {f"aws:RequestTag/{key}": "another"}
                attack = Request(DEPLOYER, action, arn, {**own, **given, "aws:TagKeys": [key]})
                assert not allows(attack, identity=policies), (action, arn, key)
            change = {} if removes else {"aws:RequestTag/cost-center": "ml"}
            change = Request(DEPLOYER, action, arn, {**own, **change, "aws:TagKeys": ["cost-center"]})
            assert allows(change, identity=policies), (action, arn)


def test_every_writing_action_of_the_rules_is_tested():
    given = {action for name in PLAN_NAMES for action in writes(documents(name, "with the state"))}
    needed = {action for name in PLAN_NAMES for action in actions_of(plans()[name], types(plans()[name]))}
    ruled = {action for rule in rules() for action in rule.actions}
    left = {action for action in ruled - given if access_level(action) not in ("List", "Read")}
    assert left == set()
    assert needed


@pytest.mark.parametrize("stage", STAGES)
def test_a_deployer_without_environment_tags_cannot_change_resources_of_others(stage):
    plan = next(plan for plan in PLANS if plan.organization == "bare")
    live = (LiveResource(ACCOUNT.arn("ec2", "vpc/vpc-own"), {}), *LIVE) if stage == "with the state" else ()
    policies = [each.document for each in deployer_policies(plan, ACCOUNT, types(plan), live=live, until=END)]
    done = {action for action in writes(policies) if succeeds(action, policies, asked(plan))}
    assert {action for action in done if can_be_narrowed(action)} - ALLOWED.keys() == set()
    during = {**asked(plan), "aws:CurrentTime": "2026-12-01T17:59:59Z"}
    assert succeeds("ec2:DeleteSubnet", policies, during), "the first `up` may, until the end that it was given"


OURS = [{"key": "hpkit:organization", "value": "acme"}, {"key": "hpkit:environment", "value": "dev"}]
THEIRS = [{"key": "hpkit:organization", "value": "acme"}, {"key": "hpkit:environment", "value": "prod"}]


@pytest.fixture
def place(monkeypatch):
    """Create a governed cluster, and two engines: of another stack, and of this one."""
    for name, value in {**CREDENTIALS, "MOTO_IAM_LOAD_MANAGED_POLICIES": "false"}.items():
        monkeypatch.setenv(name, value)
    with running_endpoint() as endpoint:
        world = World(Cloud(endpoint))
        with in_process(**world.settings) as theirs, in_process(**world.settings) as ours:
            yield world, theirs, ours


def policy(arn, **more):
    weights = [{"name": "training", "weight": 80}]
    return {
        "name": "policy",
        "clusterArn": arn,
        "schedulerConfig": {"priorityClasses": weights, "fairShare": "Enabled"},
        **more,
    }


KINDS = {
    "ComputeQuota": lambda arn, tags: {**quota(arn, "nlp", 2), **tags},
    "ClusterSchedulerConfig": lambda arn, tags: policy(arn, **tags),
}


@pytest.mark.parametrize("tags", [{"tags": THEIRS}, {}], ids=["another stack's", "nobody's"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_quota_or_policy_of_another_stack_with_the_same_name_is_refused(place, kind, tags):
    world, theirs, ours = place
    arn = world.governed(theirs)
    made = theirs.up(kind, "x", KINDS[kind](arn, tags))["id"]
    with pytest.raises(FailedError) as refused:
        ours.up(kind, "x", KINDS[kind](arn, {"tags": OURS}))
    message = str(refused.value)
    assert f"({made}), and nothing shows that this stack created it" in message
    assert f"pulumi import --stack dev hyperpod:index:{kind} x {made}" in message
    assert theirs.refresh(kind, "x")["id"] == made, "it was not touched"


def test_a_failed_policy_of_another_stack_with_the_same_name_is_kept(place):
    world, theirs, ours = place
    arn = world.governed(theirs)
    world.endpoint.set_faults({"failed-create": "1@quota"})
    with pytest.raises(FailedError, match="CreateFailed"):
        theirs.up("ComputeQuota", "q", {**quota(arn, "nlp", 2), "tags": THEIRS})
    world.endpoint.set_faults({"failed-create": None})
    with pytest.raises(FailedError, match="nothing shows that this stack created it"):
        ours.up("ComputeQuota", "q", {**quota(arn, "nlp", 2), "tags": OURS})
    (left,) = world.sm.list_compute_quotas()["ComputeQuotaSummaries"]
    assert left["ComputeQuotaArn"] == theirs.state["q"]["id"]


@pytest.mark.parametrize("tags", [{"tags": THEIRS}, {}], ids=["another stack's", "nobody's"])
def test_a_cluster_of_another_stack_with_the_same_name_is_refused(place, tags):
    world, theirs, ours = place
    made = theirs.up("Cluster", "c", {**world.cluster(), **tags})["id"]
    for mine in ({"tags": OURS}, {}):
        with pytest.raises(FailedError) as refused:
            ours.up("Cluster", "c", {**world.cluster(), **mine})
        assert f"pulumi import --stack dev hyperpod:index:Cluster c {made}" in str(refused.value)
    assert "c" not in ours.state


@pytest.mark.parametrize("kind", KINDS)
def test_resources_of_a_killed_run_of_the_same_stack_are_taken_over(place, kind):
    world, theirs, ours = place
    arn = world.governed(theirs)
    made = theirs.up(kind, "x", KINDS[kind](arn, {"tags": OURS}))["id"]
    assert ours.up(kind, "x", KINDS[kind](arn, {"tags": OURS}))["id"] == made
