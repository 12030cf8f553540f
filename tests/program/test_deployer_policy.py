"""The deployer's policies compared with the calls of real deployments: sufficient for each, and nothing else."""

import json
import re
from fnmatch import fnmatchcase

import pytest

from generate.examples import example_stacks
from hpkit.catalog import program_calls, type_calls
from hpkit.plan.derive import derive
from hpkit.program.iam.deployer import SIZE_LIMIT, actions_of, calling_types, deployer_policies, governance_policies
from hpkit.program.iam.live import AwsAccount, live_resources
from hpkit.program.iam.rules import actions_of_call
from hpkit.program.recording import record
from hpkit.project import load
from hpkit_local.aws.record import read_record
from hpkit_local.plugins.aws.table import RESOURCE_TYPES as FAKE_TYPES
from tests.builders import split
from tests.cli.invoke import hpkit
from tests.program.cloud import ROOT, Program, Repository, change_every_part
from tests.running import AT_ONCE, running

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(1800)]

ACCOUNT = "123456789012"
# Calls that the plugin only makes if the service couldn't create or change a cluster.
ON_FAILURE = {"sagemaker:ListClusterEvents"}
EC2_TYPES = {
    "eipalloc": "elastic-ip",
    "igw": "internet-gateway",
    "nat": "natgateway",
    "rtb": "route-table",
    "sg": "security-group",
    "sgr": "security-group-rule",
    "subnet": "subnet",
    "vpc": "vpc",
    "vpce": "vpc-endpoint",
}
NO_ARN = {"eks:CreateCluster", "kms:CreateKey", "logs:DescribeLogGroups", "aps:CreateWorkspace"} | {
    *("grafana:CreateWorkspace", "sagemaker:ListComputeQuotas", "sagemaker:ListClusterSchedulerConfigs"),
    *("sns:GetSubscriptionAttributes", "sns:Unsubscribe"),
}


# Together, they need every action that any example needs, as a test shows.
DEPLOYED = ("enterprise-prod", "autoscale-dev")


@pytest.fixture(
    scope="module", params=[pytest.param(each, marks=pytest.mark.nightly) for each in (*DEPLOYED, "handson-dev")]
)
def deployed(request, tmp_path_factory):
    """Deploy a stack, change it, refresh it and delete it; return its plan, types, calls and states.

    Each call has the state for which the policies were printed: none in the first `up`, then the resulting state.
    """
    stack, file = request.param, tmp_path_factory.mktemp("record") / "calls.jsonl"
    with running(
        "recording", tmp_path_factory.mktemp("cloud"), *AT_ONCE, "--record", str(file), engine=True
    ) as instance:
        yield _deploy(stack, instance, Repository(tmp_path_factory.mktemp("repository")), file)


def _deploy(stack, instance, repository, file):
    organization, _, environment = stack.rpartition("-")
    program = Program(instance, stack, root=repository.folder)
    data = repository.read(organization)
    data["environments"][environment]["protect"] = False
    data["tags"] = {"cost-center": "ml", "project": "trial"}
    repository.write(organization, data)
    program.up()
    made, first = _state(program), len(read_record(file))
    types = {each["type"] for each in made["deployment"]["resources"]}
    change_every_part(data, data["environments"][environment])
    repository.write(organization, data)
    program.up("--refresh")
    changed = _state(program)
    program.destroy()
    calls = [{**call, "first": number < first} for number, call in enumerate(read_record(file))]
    account = AwsAccount("aws", plan_of(stack).spec.region, ACCOUNT)
    live = {each.arn: each for state in (made, changed) for each in live_resources(state, account)}
    return plan_of(stack), types, calls, tuple(live.values())


def _state(program):
    return json.loads(program.read("stack", "export"))


def plan_of(stack):
    organization, _, environment = stack.rpartition("-")
    return derive(load(ROOT / "stacks" / f"{organization}.yaml").parsed.organization, environment)


def kinds(plan):
    return calling_types(each.type for each in record(plan).resources.values())


def statements_of(plan, live=()):
    policies = deployer_policies(plan, AwsAccount("aws", plan.spec.region, ACCOUNT), kinds(plan), live=live)
    return [statement for policy in policies for statement in policy.document["Statement"]]


def name_of(call):
    return f"{call['service']}:{call['operation']}"


def ec2_arns(names, arn):
    for value in names.values():
        found = re.fullmatch(r"([a-z]+)-[0-9a-f]{8,}", value)
        if found and found[1] in EC2_TYPES:
            yield f"{arn}:{EC2_TYPES[found[1]]}/{value}"
    for key, value in names.items():
        if re.fullmatch(r"TagSpecification\.\d+\.ResourceType", key):
            yield f"{arn}:{value}/new"


def eks_arns(names, arn):
    cluster = names.get("clusterName") or names["name"]
    yield f"{arn}:cluster/{cluster}"


def eks_parts(names, arn):
    cluster = names["clusterName"]
    if "addonName" in names:
        yield f"{arn}:addon/{cluster}/{names['addonName']}/11aa"
    elif "principalArn" in names:
        kind, _, name = names["principalArn"].rpartition(":")[2].partition("/")
        yield f"{arn}:access-entry/{cluster}/{kind}/{ACCOUNT}/{name}/11aa"
    else:
        yield f"{arn}:podidentityassociation/{cluster}/{names['associationId']}"


def sagemaker_arns(names, arn):
    """Return the call's resources; a quota or policy that it creates has no ID yet."""
    for key, value in names.items():
        if value.startswith("arn:aws:sagemaker:"):
            yield value
        elif key == "ClusterName":
            yield f"{arn}:cluster/{value}"
        elif key in ("ComputeQuotaId", "ClusterSchedulerConfigId"):
            yield f"{arn}:{'compute-quota' if key == 'ComputeQuotaId' else 'cluster-scheduler-config'}/{value}"


def arns_of(call, action):
    """Return the resources that IAM checks a recorded call against, from the call's parameters."""
    service, _, name = action.partition(":")
    arn, names = f"arn:aws:{service}:{call['region']}:{ACCOUNT}", call["names"]
    if action in NO_ARN or (service == "ec2" and name.startswith("Describe") and name != "DescribeVpcAttribute"):
        return ["*"]
    if service == "ec2":
        return list(ec2_arns(names, arn)) or [f"{arn}:vpc/unnamed"]
    if service == "iam":
        return [f"arn:aws:iam::{ACCOUNT}:role/{names['RoleName']}"]
    if service == "s3":
        bucket = f"arn:aws:s3:::{names['Bucket']}"
        return [f"{bucket}/{names['Key']}" if "Key" in names else bucket]
    if service == "kms":
        return [f"{arn}:key/{names['KeyId']}"]
    if service == "logs":
        return [f"{arn}:log-group:{names['logGroupName']}"] if "logGroupName" in names else [names["resourceArn"]]
    if service == "eks":
        if "resourceArn" in names:
            return [names["resourceArn"]]
        of_cluster = name.startswith("Create") or "clusterName" not in names or name == "DescribeUpdate"
        return list((eks_arns if of_cluster else eks_parts)(names, arn))
    if service == "sagemaker":
        return list(sagemaker_arns(names, arn))
    return list(observability_arns(service, names, arn))


def observability_arns(service, names, arn):
    if "resourceArn" in names:
        yield names["resourceArn"]
    elif service == "sns":
        yield names.get("TopicArn") or names.get("ResourceArn") or f"{arn}:{names['Name']}"
    elif service == "events":
        yield names.get("ResourceARN") or f"{arn}:rule/{names.get('Name') or names['Rule']}"
    elif service == "grafana":
        yield f"{arn}:/workspaces/{names['workspaceId']}"
    elif "name" in names:
        yield f"{arn}:rulegroupsnamespace/{names['workspaceId']}/{names['name']}"
    else:
        yield f"{arn}:workspace/{names['workspaceId']}"


def allowed(statements, action, arn, tags):
    """Return whether IAM would allow the call; only conditions on the request's tags can be evaluated here."""
    return any(
        action in statement["Action"]
        and any(fnmatchcase(arn, pattern) for pattern in statement["Resource"])
        and request_tags_match(statement.get("Condition", {}), tags)
        for statement in statements
    )


def request_tags_match(conditions, tags):
    wanted = conditions.get("StringEquals", {})
    asked = {key.partition("/")[2]: value for key, value in wanted.items() if key.startswith("aws:RequestTag/")}
    return tags is None or all(tags.get(key) == value for key, value in asked.items())


def tags_sent(call):
    """Return the tags of an EC2 call that creates something; None if the record doesn't have them."""
    names = call["names"]
    if call["service"] != "ec2":
        return None
    keys = [key for key in names if re.fullmatch(r"(TagSpecification\.\d+\.)?Tag\.\d+\.Key", key)]
    return {names[key]: names.get(f"{key.removesuffix('Key')}Value") for key in keys}


def refused(statements, recorded):
    """Return action and ARN of the recorded calls that statements don't allow."""
    return [
        (action, arn)
        for call in recorded
        for action in actions_of_call(name_of(call))
        for arn in arns_of(call, action)
        if not allowed(statements, action, arn, tags_sent(call))
    ]


def test_the_deployed_stacks_need_every_action_that_an_example_needs():
    needed = {name: actions_of(plan_of(name), kinds(plan_of(name))) for name in example_stacks()}
    assert set().union(*needed.values()) == set().union(*(needed[name] for name in DEPLOYED))


def test_every_recorded_call_is_allowed_on_what_it_was_about(deployed):
    plan, _, recorded, live = deployed
    before, after = statements_of(plan), statements_of(plan, live)
    checked = 0
    for call in recorded:
        for action in actions_of_call(name_of(call)):
            assert arns_of(call, action), f"nothing to check {call} against"
            checked += 1
        assert refused(before if call["first"] else after, [call]) == []
    assert checked > 150, "the deployment made far fewer calls than it must"


def test_roles_may_be_passed_where_calls_pass_them_and_to_no_other_service(deployed):
    plan, _, recorded, _ = deployed
    passing = [each for each in statements_of(plan) if each["Action"] == ["iam:PassRole"]]
    services = {"eks": {"eks.amazonaws.com", "pods.eks.amazonaws.com"}, "grafana": {"grafana.amazonaws.com"}}
    services["sagemaker"] = {"sagemaker.amazonaws.com", "hyperpod.sagemaker.amazonaws.com"}
    passed = 0
    for call in recorded:
        roles = [v for k, v in call["names"].items() if ":role/" in v and k.lower().endswith(("role", "rolearn"))]
        for role in roles:
            passed += 1
            matching = [each for each in passing if fnmatchcase(role, each["Resource"][0])]
            to = {name for each in matching for name in each["Condition"]["StringEquals"]["iam:PassedToService"]}
            assert to & services[call["service"]], f"{call['service']} {call['operation']} passes {role}"
    assert passed >= 3
    assert all("iam:PassedToService" in each["Condition"]["StringEquals"] for each in passing)


def test_nothing_is_allowed_that_no_call_and_no_service_needs(deployed):
    plan, types, recorded, live = deployed
    known_calls = type_calls()
    made = {action for call in recorded for action in actions_of_call(name_of(call))}
    declared = {
        action
        for name in types & FAKE_TYPES.keys()
        for operation in FAKE_TYPES[name].allowed
        for action in actions_of_call(f"{known_calls[name].api}:{operation}")
    }
    permitted = {
        action
        for name in types & known_calls.keys()
        for operation in known_calls[name].more
        for action in actions_of_call(f"{known_calls[name].api}:{operation}")
    } | {action for name in types & known_calls.keys() for action in known_calls[name].service}
    given = {action for each in statements_of(plan, live) for action in each["Action"]}
    assert given - made - declared - permitted - ON_FAILURE == set()
    assert given == actions_of(plan, kinds(plan)), "an action has no rule that says on what"


def test_the_types_of_the_recording_are_those_that_the_engine_made(deployed):
    plan, types, _, _ = deployed
    assert kinds(plan) == calling_types(types)


def test_calls_of_types_are_recorded_or_declared_by_the_fake_plugin(deployed):
    _, types, recorded, _ = deployed
    made = {name_of(call) for call in recorded} | ON_FAILURE
    for name in types & type_calls().keys():
        known = type_calls()[name]
        declared = {f"{known.api}:{each}" for each in getattr(FAKE_TYPES.get(name), "allowed", ())}
        own = {f"{known.api}:{each}" for each in known.calls}
        assert own <= made | declared, f"{name}: {own - made - declared}"
    assert program_calls() <= made


@pytest.mark.nightly
def test_a_change_of_quotas_and_members_needs_the_rights_of_governance_alone(tmp_path):
    file = tmp_path / "calls.jsonl"
    with running("recording", tmp_path / "cloud", *AT_ONCE, "--record", str(file), engine=True) as instance:
        (tmp_path / "repository").mkdir()
        repository = Repository(tmp_path / "repository")
        program = Program(instance, "handson-dev", root=repository.folder)
        data = repository.read("handson")
        program.up()
        first = len(read_record(file))
        account = AwsAccount("aws", plan_of("handson-dev").spec.region, ACCOUNT)
        live = live_resources(_state(program), account)
        for team in data["teams"]:
            team["fairShareWeight"] = 7
            team["members"].append(f"arn:aws:iam::{ACCOUNT}:role/{team['name']}-guests")
        repository.write("handson", data)
        program.up("--refresh")
        recorded = read_record(file)[first:]
        program.destroy()
    plan = plan_of("handson-dev")
    policies = governance_policies(plan, account, kinds(plan), live=live)
    statements = [statement for policy in policies for statement in policy.document["Statement"]]
    assert refused(statements, recorded) == []
    changed = {name_of(call) for call in recorded}
    assert {"sagemaker:UpdateComputeQuota", "eks:CreateAccessEntry"} <= changed


@pytest.mark.nightly
def test_the_stacks_of_a_split_need_no_more_than_the_policies_of_each(tmp_path):
    file = tmp_path / "calls.jsonl"
    with running("recording", tmp_path / "cloud", *AT_ONCE, "--record", str(file), engine=True) as instance:
        (tmp_path / "repository").mkdir()
        repository = Repository(tmp_path / "repository")
        platform, governance = (
            Program(instance, f"handson-{name}", root=repository.folder) for name in ("dev", "governance")
        )
        platform.up()
        repository.write("handson", split(repository.read("handson")))
        move = ("aws", "adopt", "run", "--stack", "handson-governance", "--from-stack", "handson-dev")
        moved = hpkit(*move, cwd=repository.folder, **platform.environment)
        assert moved.returncode == 0, moved.stderr
        organization = load(repository.folder / "stacks" / "handson.yaml").parsed.organization
        for program, name in ((governance, "governance"), (platform, "dev")):
            plan = derive(organization, name)
            live = live_resources(_state(program), AwsAccount("aws", plan.spec.region, ACCOUNT))
            begun = len(read_record(file))
            program.up("--refresh")
            assert refused(statements_of(plan, live), read_record(file)[begun:]) == []
        governance.destroy()
        platform.destroy()


def test_each_document_keeps_within_the_limit_of_a_managed_policy(deployed):
    plan, _, _, live = deployed
    for policy in deployer_policies(plan, AwsAccount("aws", plan.spec.region, ACCOUNT), kinds(plan), live=live):
        assert len(re.sub(r"\s", "", json.dumps(policy.document))) <= SIZE_LIMIT
        assert len(policy.name) <= 128
