"""The adapter between the pack and Pulumi's SDK: values, values unknown before the update, waivers, levels."""

import dataclasses
import datetime
import json
import re
from pathlib import Path

import pulumi_policy as sdk
import pytest
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE, UnknownValueError, unknown_checking_proxy

from generate.pages import policies_page
from hpkit_policies.adapter import plain, to_pulumi
from hpkit_policies.configuration import problems
from hpkit_policies.model import UNKNOWN, Undecided
from hpkit_policies.pack import POLICIES
from hpkit_policies.waivers import RunState, configuration_policy
from tests.policies.builders import ABSENT, CLUSTER_ARN, TODAY, changed, group, happy, messages, quota, results_of, urn

BY_NAME = {policy.name: policy for policy in POLICIES}
OPTIONS = sdk.PolicyResourceOptions(
    protect=False,
    ignore_changes=[],
    delete_before_replace=None,
    aliases=[],
    custom_timeouts=sdk.PolicyCustomTimeouts(0, 0, 0),
    additional_secret_outputs=[],
)


def arguments(props, config=None, kind="aws:ec2/vpc:Vpc", stack="dev"):
    return sdk.ResourceValidationArgs(
        kind, unknown_checking_proxy(props), f"urn:pulumi:{stack}::hpkit::{kind}::it", "it", OPTIONS, None, config or {}
    )


class Run:
    """One run of policies that share a state, as in the engine."""

    def __init__(self):
        self.state = RunState(TODAY)
        self.said = []

    def report(self, message, _urn=None):
        self.said.append(message)

    def resource(self, name, props, *, stack="dev", **config):
        policy = to_pulumi(BY_NAME[name], self.state)
        policy.validate(arguments(props, config, stack=stack), self.report)
        return self.said

    def configuration(self):
        self.said.clear()
        policy = to_pulumi(configuration_policy(self.state), self.state)
        policy.validate(sdk.StackValidationArgs([]), self.report)
        return self.said


def waiver(until=datetime.date(2026, 12, 31), resource="it"):
    return {"resource": resource, "reason": "moves in May", "until": str(until)}


def test_values_are_plain_whole_numbers_whole_and_unknown_ones_marked():
    props = {"count": 4.0, "weight": 0.5, "list": [1.0, {"arn": UNKNOWN_STRING_VALUE}], "none": None}
    assert plain(unknown_checking_proxy(props)) == {
        "count": 4,
        "weight": 0.5,
        "list": [1, {"arn": UNKNOWN}],
        "none": None,
    }
    assert isinstance(plain(4.0), int)


def test_a_violation_ends_with_how_to_fix_it():
    messages = Run().resource("mandatory-tags", {"tags": {}}, keys=["team"])
    fix = (
        "Add it. To have it added automatically, set its value in the parameter values, and the level to remediate. "
        "Exceptions: `keys`, `values`, "
        "`waivers` of mandatory-tags in stacks/<organization>.policy.json."
    )
    assert messages == [f"`it` has no tag team. {fix}"]


@pytest.mark.parametrize(("stack", "config"), [("acme-dev", "{}"), ("dev", '{"hpkit:organization": "acme"}')])
def test_a_fix_names_the_policy_file_of_the_stack(monkeypatch, stack, config):
    monkeypatch.setenv("PULUMI_CONFIG", config)
    (said,) = Run().resource("mandatory-tags", {"tags": {}}, stack=stack, keys=["team"])
    assert said.endswith("of mandatory-tags in stacks/acme.policy.json.")


def test_what_is_undecided_becomes_the_advice_of_the_sdk():
    with pytest.raises(UnknownValueError) as raised:
        Run().resource("mandatory-tags", {"tags": UNKNOWN_STRING_VALUE})
    assert raised.value.message == "tags isn't known before the update. The policy is checked when `pulumi up` knows it"


def test_names_and_properties_of_others_reach_no_terminal_as_commands():
    """The engine prints messages unchanged, and a name or property can contain control sequences."""
    hostile = "::error::x\x1b[2J\n\u202e"
    shown = "\\u003a:error::x\\u001b[2J\\u000a\\u202e"
    run = Run()
    policy = to_pulumi(BY_NAME["resource-types-covered"], run.state)
    policy.validate(sdk.ResourceValidationArgs("random:x", {}, "urn:x", hostile, OPTIONS, None, None, {}), run.report)
    run.resource("mandatory-tags", {"tags": {}}, waivers=[waiver(2020) | {"reason": hostile}])
    messages = list(run.said) + run.configuration()
    assert messages[0].startswith("`::error::x\\u001b[2J\\u000a\\u202e` has the type")
    assert shown[6:] in messages[-1]
    assert [each for each in messages if not each.isprintable()] == []
    inputs = unknown_checking_proxy({"clusterArn": UNKNOWN_STRING_VALUE})
    quota = sdk.PolicyResource("hyperpod:index:ComputeQuota", inputs, "urn:q", hostile, OPTIONS, None, None, [], {})
    with pytest.raises(UnknownValueError) as raised:
        to_pulumi(BY_NAME["quota-fits-capacity"], run.state).validate(sdk.StackValidationArgs([quota]), run.report)
    assert shown[6:] in raised.value.message


def test_a_waiver_covers_its_resource_until_its_day():
    for until, covered in ((TODAY, True), (TODAY - datetime.timedelta(days=1), False)):
        run = Run()
        said = run.resource("mandatory-tags", {"tags": {}}, waivers=[waiver(until)])
        assert (said == []) is covered
        assert (run.configuration() == []) is covered


def test_a_waiver_of_what_could_not_be_decided_is_not_called_unused():
    run = Run()
    with pytest.raises(UnknownValueError):
        run.resource("mandatory-tags", {"tags": UNKNOWN_STRING_VALUE}, waivers=[waiver()])
    assert run.configuration() == []


@pytest.mark.parametrize(
    ("settings", "message", "fix"),
    [
        (
            {"waivers": [waiver(resource="other")]},
            "the waiver of mandatory-tags for other matches no violation",
            "Remove it from stacks/<organization>.policy.json.",
        ),
        (
            {"waivers": [waiver("2020-01-01")]},
            "the waiver of mandatory-tags for it expired on 2020-01-01 (moves in May)",
            "Fix the cause, or set a new date in stacks/<organization>.policy.json and a reason that still applies.",
        ),
        (
            {"waivers": [waiver("2026-02-30")]},
            "the waiver of mandatory-tags for it has no valid end date: 2026-02-30 isn't a date (moves in May)",
            "Fix the cause, or set a new date in stacks/<organization>.policy.json and a reason that still applies.",
        ),
        (
            {"key": []},
            "mandatory-tags has no parameter key (parameters: keys, values)",
            "Remove it from stacks/<organization>.policy.json, or correct its name.",
        ),
    ],
)
def test_what_is_wrong_with_a_configuration_is_said_with_its_fix(settings, message, fix):
    run = Run()
    assert run.resource("mandatory-tags", {"tags": {}}, **settings), "and nothing of it is waived"
    assert run.configuration() == [f"{message}. {fix}"]


def test_a_waiver_of_what_cannot_be_waived_is_said_and_waives_nothing():
    run = Run()
    (policy,) = [policy for policy in POLICIES if policy.name == "quota-fraction-exists"]
    run.state.observe(policy, {"waivers": [waiver()]})
    fix = "Remove its waivers from stacks/<organization>.policy.json, and fix the cause."
    assert run.configuration() == [f"quota-fraction-exists can't be waived. {fix}"]


def test_the_schema_of_what_cannot_be_waived_takes_no_waivers():
    run_state = RunState(TODAY)
    for policy in POLICIES:
        schema = to_pulumi(policy, run_state).config_schema
        assert ("waivers" in schema.properties) is policy.waivable
    assert {policy.name for policy in POLICIES if not policy.waivable} == {
        "quota-fits-capacity",
        "quota-fraction-exists",
        "quota-type-provided",
    }


def test_a_remediation_keeps_what_it_does_not_touch():
    policy = to_pulumi(BY_NAME["mandatory-tags"], RunState(TODAY))
    props = {"cidrBlock": UNKNOWN_STRING_VALUE, "tags": {"Name": "network"}}
    args = arguments(props, {"values": {"team": "ml"}})
    remediated = policy.remediate(args)
    assert remediated is args.props
    assert remediated["tags"] == {"Name": "network", "team": "ml"}
    with pytest.raises(UnknownValueError):
        remediated["cidrBlock"]
    assert policy.remediate(arguments({"tags": {"team": "x"}}, {"values": {"team": "ml"}})) is None


def test_stack_policies_see_inputs_where_no_output_is_known():
    """During a preview, the engine has no outputs of a provider that waits for another resource."""
    run = Run()
    resource_type = "kubernetes:rbac.authorization.k8s.io/v1:RoleBinding"
    inputs = {
        "metadata": {"namespace": "hyperpod-ns-smith"},
        "roleRef": {"name": "scientist"},
        "subjects": [{"name": "hyperpod:team:john"}],
    }
    for outputs, reported in (({}, True), ({"metadata": {"namespace": "hyperpod-ns-john"}}, False)):
        run.said.clear()
        to_pulumi(BY_NAME["nodepool-limits"], run.state).validate(arguments(inputs, kind=resource_type), run.report)
        registered = sdk.PolicyResource(
            resource_type,
            unknown_checking_proxy(outputs),
            arguments(inputs, kind=resource_type).urn,
            "it",
            OPTIONS,
            None,
            None,
            [],
            {},
        )
        policy = to_pulumi(BY_NAME["team-bindings-in-namespace"], run.state)
        policy.validate(sdk.StackValidationArgs([registered]), run.report)
        assert bool(run.said) is reported, "what is known of the outputs counts before the inputs"


def test_a_guard_counts_by_what_the_program_says_now_though_its_output_is_old():
    run = Run()
    resource_type = "hyperpod:index:ChangeGuard"
    policy = to_pulumi(BY_NAME["protected-from-replacement"], run.state)
    inputs = {"subject": "acme-dev", "allowReplace": ["vpc"]}
    to_pulumi(BY_NAME["nodepool-limits"], run.state).validate(arguments(inputs, kind=resource_type), run.report)
    stale = sdk.PolicyResource(
        resource_type,
        {"allowReplace": []},
        arguments(inputs, kind=resource_type).urn,
        "keep",
        OPTIONS,
        None,
        None,
        [],
        {},
    )
    config = {**BY_NAME["protected-from-replacement"].defaults, "allowReplace": []}
    policy.validate(sdk.StackValidationArgs([stale], config), run.report)
    assert "`keep` allows the replacement of vpc of acme-dev" in run.said[0]


ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "policies.md"

WRONG = [
    ("{", "invalid JSON"),
    ("[]", "JSON object"),
    ({"quota-fit-capacity": {}}, "no such policy, did you mean quota-fits-capacity?"),
    ({"mandatory-tags": {"key": ["team"]}}, "parameter key (parameters: keys, values, waivers)"),
    ({"mandatory-tags": "strict"}, "strict isn't a valid enforcement level"),
    ({"mandatory-tags": 3}, "level or an object"),
    ({"quota-fits-capacity": {"waivers": []}}, "parameter waivers (parameters: none)"),
    ({"quota-fits-capacity": "advisory"}, "can't be lowered to advisory"),
    ({"policy-configuration": {"enforcementLevel": "disabled"}}, "can't be lowered to disabled"),
    ({"all": "advisory"}, "would lower policies that can't be waived"),
    ({"regions-allowed": {"allowed": "us-west-2"}}, 'allowed is "us-west-2"; it must be a list'),
    ({"regions-allowed": {"allowed": ["us-wset-2"]}}, "us-wset-2, which isn't an AWS region, did you mean us-west-2?"),
    ({"instance-types-allowed": {"allowed": ["g5.12xlarge"]}}, "did you mean ml.g5.12xlarge?"),
    ({"instance-types-allowed": {"allowed": ["ml.g5.12xlage"]}}, "instance type, did you mean ml.g5.12xlarge?"),
    ({"protected-from-replacement": {"allowReplace": ["clusters"]}}, "did you mean cluster?"),
    ({"security-group-not-open": {"publicPorts": [70000]}}, "publicPorts, entry 1, is 70000; the maximum is 65535"),
    ({"security-group-not-open": {"publicPorts": [-1]}}, "publicPorts, entry 1, is -1; the minimum is 0"),
    ({"security-group-not-open": {"publicPorts": [True]}}, "publicPorts, entry 1, is true; it must be a whole number"),
    ({"mandatory-tags": {"waivers": [{"resource": "x", "reason": "y"}]}}, "has no until"),
    ({"mandatory-tags": {"keys": [""]}}, "keys, entry 1, is empty"),
    ({"mandatory-tags": {"values": {"team": 3}}}, "values.team is 3; it must be text"),
    (
        {"mandatory-tags": {"waivers": [{"resource": "x", "reason": "y", "until": "31.01.2027"}]}},
        "a date such as 2027-01-31",
    ),
]
RIGHT = [
    {},
    {"all": "mandatory"},
    {"mandatory-tags": "disabled", "protected-from-replacement": {"allowReplace": []}},
    {"mandatory-tags": {"enforcementLevel": "remediate", "values": {"team": "ml"}, "waivers": []}},
]


@pytest.mark.parametrize(("data", "words"), WRONG)
def test_what_pulumi_would_pass_over_in_silence_is_said(data, words):
    (problem,) = problems(data if isinstance(data, str) else json.dumps(data))
    assert words in problem
    assert "^" not in problem


@pytest.mark.parametrize("data", RIGHT)
def test_a_file_that_does_what_it_says_has_no_problem(data):
    assert problems(json.dumps(data)) == []


def test_the_reference_page_names_every_policy():
    for policy in POLICIES:
        assert f"## {policy.name}\n" in policies_page()


def test_the_guides_examples_are_right_and_name_what_exists():
    text = GUIDE.read_text(encoding="utf-8")
    examples = re.findall(r"```json\n(.*?)```", text, re.DOTALL)
    assert examples
    for example in examples:
        assert problems(example) == []
    names = {policy.name for policy in POLICIES}
    families = {word for word in re.findall(r"`([a-z]+(?:-[a-z]+)+)`", text) if word.split("-")[0] in {"quota", "eks"}}
    assert families <= names


FITS = BY_NAME["quota-fits-capacity"]

# Each of these comes from another resource's output, which is unknown in the first preview.
HIDDEN = [
    ("quota-fits-capacity", "cluster", "instanceGroups"),
    ("quota-fits-capacity", "cluster", "instanceGroups.0.instanceCount"),
    ("quota-fits-capacity", "smith", "computeQuotaConfig"),
    ("quota-fits-capacity", "smith", "computeQuotaConfig.computeQuotaResources.0.count"),
    ("quota-type-provided", "cluster", "instanceGroups.0.instanceType"),
    ("cluster-continuous-provisioning", "cluster", "nodeProvisioningMode"),
    ("cluster-node-recovery", "cluster", "nodeRecovery"),
    ("instance-types-allowed", "cluster", "instanceGroups"),
    ("instance-types-allowed", "cluster", "instanceGroups.0.instanceType"),
    ("instance-types-allowed", "smith", "computeQuotaConfig"),
    ("karpenter-groups-exist", "cluster", "instanceGroups"),
    ("karpenter-groups-fit", "cluster", "instanceGroups"),
    ("karpenter-groups-fit", "cluster", "instanceGroups.1.instanceCount"),
    ("nodepool-limits", "node_pool", "spec"),
    ("eks-endpoint-not-open", "eks", "vpcConfig.publicAccessCidrs"),
    ("eks-control-plane-logging", "eks", "enabledClusterLogTypes"),
    ("eks-secrets-encrypted", "eks", "encryptionConfig"),
    ("eks-access-entries", "eks", "accessConfig"),
    ("iam-no-wildcard-action", "role_policy", "policy"),
    ("iam-trust-limited", "role", "assumeRolePolicy"),
    ("security-group-not-open", "ingress", "cidrIpv4"),
    ("security-group-not-open", "security_group", "ingress"),
    ("bucket-private", "block", "blockPublicAcls"),
    ("bucket-versioned", "versioning", "versioningConfiguration"),
    ("bucket-policy-limited", "bucket_policy", "policy"),
    ("bucket-tls-only", "bucket_policy", "policy"),
    ("team-bindings-in-namespace", "binding", "metadata"),
    ("team-bindings-in-namespace", "cluster_binding", "roleRef.name"),
    ("team-bindings-in-namespace", "binding", "subjects.0.name"),
    ("team-bindings-in-namespace", "cluster_role", "rules.0"),
    ("team-access-policies-in-namespace", "association", "accessScope"),
    ("team-access-policies-in-namespace", "entry", "kubernetesGroups"),
    ("mandatory-tags", "vpc", "tags"),
]
SETTINGS = {"instance-types-allowed": {"allowed": ["ml.g5.12xlarge", "ml.g5.8xlarge"]}}


@pytest.mark.parametrize(("name", "part", "path"), HIDDEN)
def test_an_unknown_input_is_undecided(name, part, path):
    stack = happy()
    stack[part] = changed(stack[part], path, UNKNOWN)
    said = results_of(BY_NAME[name], stack, **SETTINGS.get(name, {}))
    assert said, "silence would look like a pass"
    assert {type(item) for item in said} == {Undecided}, said


def paths(value, before=""):
    """Return the dotted path of every nested value, deepest last."""
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for step, inner in steps:
        if "." in str(step):
            continue  # `nvidia.com/gpu` isn't a path.
        yield f"{before}{step}"
        yield from paths(inner, f"{before}{step}.")


@pytest.mark.parametrize("value", [UNKNOWN, None], ids=["unknown", "absent"])
@pytest.mark.parametrize("part", sorted(happy()))
def test_nothing_unknown_or_absent_crashes_a_policy(part, value):
    whole = happy()
    for path in paths(dict(whole[part].props)):
        if value is None and path.rpartition(".")[2].isdigit():
            continue  # The engine omits empty list items.
        stack = {**whole, part: changed(whole[part], path, value)}
        for policy in POLICIES:
            results_of(policy, stack, **SETTINGS.get(policy.name, {}))


def test_a_quota_is_matched_with_its_cluster_before_either_is_made():
    stack = happy()
    stack["cluster"] = changed(stack["cluster"], "clusterArn", UNKNOWN)
    stack["smith"] = changed(quota("smith", 2), "clusterArn", UNKNOWN)
    stack["john"] = dataclasses.replace(
        changed(quota("john", 3), "clusterArn", UNKNOWN), property_dependencies={}, dependencies=()
    )
    assert "5 × ml.g5.12xlarge" in messages(FITS, stack)[0], "the only cluster there is"


def test_of_two_clusters_the_quota_counts_on_the_one_that_its_arn_comes_from():
    stack = happy()
    other = dataclasses.replace(
        changed(changed(stack["cluster"], "clusterArn", UNKNOWN), "instanceGroups", [group("g", "ml.g5.12xlarge", 1)]),
        name="other",
        urn=urn("hyperpod:index:Cluster", "other"),
    )
    stack["other"] = other
    stack["smith"] = dataclasses.replace(
        changed(quota("smith", 2), "clusterArn", UNKNOWN), property_dependencies={"clusterArn": (other.urn,)}
    )
    (violation,) = results_of(FITS, stack)
    assert violation.resource.name == "other"
    stack["smith"] = dataclasses.replace(stack["smith"], property_dependencies={})
    said = results_of(FITS, stack)
    assert [type(item) for item in said] == [Undecided], "of two clusters neither is to blame"


def test_a_quota_of_a_cluster_elsewhere_is_not_judged():
    stack = happy()
    stack["smith"] = dataclasses.replace(
        changed(quota("smith", 2), "clusterArn", CLUSTER_ARN.replace("abcdef", "uvwxyz")), property_dependencies={}
    )
    assert results_of(FITS, stack) == []


def test_an_excess_of_what_is_known_is_reported_though_more_is_unknown():
    stack = happy()
    stack["third"] = changed(quota("third", 1), "computeQuotaConfig.computeQuotaResources.0.count", UNKNOWN)
    stack["smith"] = quota("smith", 2)
    assert "5 × ml.g5.12xlarge" in messages(FITS, stack)[0]


def test_elastic_quota_without_a_limit_is_undecided_and_not_passed():
    stack = happy()
    stack["node_pool"] = changed(stack["node_pool"], "spec.limits", ABSENT)
    stack["serving"] = quota("serving", 9, elastic=True, instanceType="ml.g5.8xlarge")
    said = results_of(FITS, stack)
    assert [item.message for item in said] == ["`train`: no limit of inference bounds ml.g5.8xlarge"]


@pytest.mark.parametrize("hidden", [{}, {"spec": UNKNOWN}])
def test_a_node_pool_of_which_nothing_is_known_may_add_anything(hidden):
    stack = happy()
    stack["node_pool"] = dataclasses.replace(stack["node_pool"], props=hidden)
    stack["serving"] = quota("serving", 99, elastic=True, instanceType="ml.g5.8xlarge")
    said = results_of(FITS, stack)
    assert [type(item) for item in said] == [Undecided]


def test_a_group_that_karpenter_owns_guarantees_nothing():
    stack = happy()
    stack["cluster"] = changed(stack["cluster"], "instanceGroups.1.instanceCount", 7)
    stack["serving"] = quota("serving", 1, instanceType="ml.g5.8xlarge")
    assert "1 × ml.g5.8xlarge" in messages(FITS, stack)[0]
    del stack["node_class"]
    assert messages(FITS, stack) == [], "without a NodeClass the seven stand always"
    stack["cluster"] = changed(stack["cluster"], "autoscaledInstanceGroups", ["burst"])
    assert "1 × ml.g5.8xlarge" in messages(FITS, stack)[0]


def test_an_open_rule_is_reported_whatever_is_unknown_beside_it():
    stack = happy()
    rules = [{"protocol": "-1", "cidrBlocks": [UNKNOWN, "0.0.0.0/0"]}, UNKNOWN]
    stack["security_group"] = changed(stack["security_group"], "ingress", rules)
    (message,) = messages(BY_NAME["security-group-not-open"], stack)
    assert "0.0.0.0/0" in message


def test_a_missing_tag_is_reported_though_values_of_others_are_unknown():
    stack = happy()
    stack["vpc"] = changed(stack["vpc"], "tags", {"hpkit:organization": UNKNOWN})
    policy = BY_NAME["mandatory-tags"]
    (message,) = messages(policy, stack)
    assert "hpkit:environment" in message
    values = {**policy.defaults, "values": {"hpkit:environment": "dev"}}
    assert policy.remediate(stack["vpc"], values) == {}, "what is unknown could not be written back"
