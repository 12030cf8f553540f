"""Every policy, with one mutation of a stack without violations."""

import json
from dataclasses import replace

import pytest

from generate.examples import EXAMPLES, example_stacks
from hpkit.catalog import OfferedAddon
from hpkit_policies.configuration import problems
from hpkit_policies.model import Violation
from hpkit_policies.pack import POLICIES
from hpkit_policies.recorded import parse_recording, run_policies
from hpkit_policies.waivers import RunState
from tests.policies.builders import (
    ABSENT,
    LISTED_TAGS,
    TAGS,
    TLS_ONLY,
    TODAY,
    allow,
    changed,
    document,
    happy,
    messages,
    quota,
    resource,
    results_of,
    trust,
)
from tests.program.recorder import STACKS, recorded

BY_NAME = {policy.name: policy for policy in POLICIES}

# policy, part of the stack, path and new value of its input, words of the message, settings of the policy
MUTATIONS = [
    ("quota-fits-capacity", "smith", "computeQuotaConfig.computeQuotaResources.0.count", 2,
     "5 × ml.g5.12xlarge allocated (john 3, smith 2), but only 4 exist", {}),
    ("quota-fits-capacity", "smith", "computeQuotaConfig.computeQuotaResources.0",
     {"instanceType": "ml.g5.12xlarge", "accelerators": 5}, "17 accelerators allocated, but only 16 exist", {}),
    ("quota-fits-capacity", "serving", "computeQuotaConfig.computeQuotaResources.0.count", 17,
     "17 × ml.g5.8xlarge allocated (serving 17), but at most 16 can exist with Karpenter", {}),
    ("quota-fits-capacity", "serving", "elasticInstanceTypes", [],
     "16 × ml.g5.8xlarge allocated (serving 16), but none are permanent", {}),
    ("quota-fits-capacity", "smith", "computeQuotaConfig.computeQuotaResources.0",
     {"instanceType": "ml.g5.8xlarge", "count": 1},
     "1 × ml.g5.8xlarge allocated (smith 1), but none are permanent", {}),
    ("quota-type-provided", "smith", "computeQuotaConfig.computeQuotaResources.0.instanceType", "ml.p5.48xlarge",
     "quota of ml.p5.48xlarge, but no instance group of train provides", {}),
    ("quota-fraction-exists", "smith", "computeQuotaConfig.computeQuotaResources.0",
     {"instanceType": "ml.c5.large", "accelerators": 1}, "ml.c5.large, which has none", {}),
    ("cluster-continuous-provisioning", "cluster", "nodeProvisioningMode", ABSENT, "Mode of train is unset", {}),
    ("cluster-node-recovery", "cluster", "nodeRecovery", "None", "nodeRecovery of train is None", {}),
    ("instance-types-allowed", "cluster", "instanceGroups.0.instanceType", "ml.p5.48xlarge",
     "uses ml.p5.48xlarge in instanceGroups[gpu]", {"allowed": ["ml.g5.12xlarge", "ml.g5.8xlarge"]}),
    ("instance-types-allowed", "smith", "computeQuotaConfig.computeQuotaResources.0.instanceType", "ml.p5.48xlarge",
     "smith uses ml.p5.48xlarge in computeQuotaResources[ml.p5.48xlarge],",
     {"allowed": ["ml.g5.12xlarge", "ml.g5.8xlarge"]}),
    ("regions-allowed", "bucket", "region", "eu-west-1", "lifecycle is in eu-west-1", {"allowed": ["us-east-1"]}),
    ("karpenter-groups-exist", "node_class", "spec.instanceGroups", ["burst", "gone"], "uses the group gone,", {}),
    ("karpenter-groups-fit", "cluster", "instanceGroups.1.instanceCount", 1, "has instanceCount 1", {}),
    ("karpenter-groups-fit", "cluster", "instanceGroups.1.minInstanceCount", 1, "has minInstanceCount 1", {}),
    ("karpenter-groups-fit", "cluster", "instanceGroups.1.onStartDeepHealthChecks", ["InstanceStress"],
     "has deep health checks", {}),
    ("karpenter-groups-fit", "cluster", "instanceGroups.1.trainingPlanArn", "arn:…", "a training plan", {}),
    ("karpenter-groups-fit", "cluster", "instanceGroups.1.instanceType", "ml.c7g.large", "an Arm type", {}),
    ("nodepool-limits", "node_pool", "spec.limits", ABSENT, "inference has no limits", {}),
    ("protected-from-replacement", "cluster", "protect", False, "train isn't protected:", {}),
    ("protected-from-replacement", "eks", "protect", False, "cluster isn't protected:", {}),
    ("protected-from-replacement", "guard", "allowReplace", ["vpc"],
     "keep-base allows the replacement of vpc of acme-dev",
     {"allowReplace": ["cluster", "eks"]}),
    ("eks-endpoint-not-open", "eks", "vpcConfig.publicAccessCidrs", ["0.0.0.0/0"], "open to 0.0.0.0/0", {}),
    ("eks-endpoint-not-open", "eks", "vpcConfig", {}, "open to 0.0.0.0/0", {}),
    ("eks-control-plane-logging", "eks", "enabledClusterLogTypes", ["api", "audit"], "doesn't log authenticator,", {}),
    ("eks-secrets-encrypted", "eks", "encryptionConfig", ABSENT, "doesn't encrypt Kubernetes secrets", {}),
    ("eks-access-entries", "eks", "accessConfig", ABSENT, "authenticationMode of cluster is CONFIG_MAP", {}),
    ("eks-access-entries", "eks", "accessConfig.authenticationMode", "API_AND_CONFIG_MAP", "API_AND_CONFIG_MAP", {}),
    ("eks-addons-pinned", "addon", "addonVersion", ABSENT, "vpc-cni has no version", {}),
    ("helm-charts-pinned", "release", "repositoryOpts", {"repo": "https://charts.example"},
     "from a repository, where the content", {}),
    ("helm-charts-pinned", "release", "chart", "oci://registry.example/keda", "keda uses version 2.17.2", {}),
    ("helm-charts-pinned", "release", "chart", "https://charts.example/keda-2.17.2.tgz", "from a repository", {}),
    ("bindings-grant-no-escalation", "cluster_binding", "roleRef.name", "cluster-admin",
     "reader grants hyperpod:team:john the role cluster-admin in the cluster: this stack", {}),
    ("bindings-grant-no-escalation", "cluster_role", "rules", [{"resources": ["roles"], "verbs": ["bind"]}],
     "in the cluster: bind roles", {"bindings": ["another"]}),
    ("resource-types-covered", "role", "@type", "aws:iam/accessKey:AccessKey",
     "nodes has the type aws:iam/accessKey:AccessKey, which hpkit doesn't create", {"types": ["random"]}),
    ("security-group-sources-named", "ingress", "prefixListId", "pl-1",
     "nodes allows ingress from a prefix list (pl-1) whose ranges this stack doesn't", {"sources": ["pl-2"]}),
    ("iam-no-wildcard-action", "role_policy", "policy", document(allow("s3:*", "arn:aws:s3:::b/*")),
     "nodes allows s3:*", {}),
    ("iam-no-wildcard-action", "role", "inlinePolicies", [{"policy": document(allow("*", "*", Sid="All"))}],
     "nodes, statement All, allows *", {}),
    ("iam-no-wildcard-action", "role_policy", "policy",
     document({"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"}), "allows all actions except iam:*", {}),
    ("iam-no-wildcard-action", "role_policy", "policy", "no document", "can't be read", {}),
    ("iam-no-wildcard-resource", "role_policy", "policy", document(allow(["s3:GetObject", "ec2:DescribeVpcs"], "*")),
     "nodes allows s3:GetObject on *", {}),
    ("iam-no-wildcard-resource", "role_policy", "policy", document(allow("s3:GetObject", "arn:aws:s3:::*")),
     "on arn:aws:s3:::*", {}),
    ("iam-no-wildcard-resource", "role_policy", "policy",
     document({"Effect": "Allow", "Action": "s3:GetObject", "NotResource": "arn:aws:s3:::b/*"}), "all except", {}),
    ("iam-attached-policies-named", "role", "managedPolicyArns", ["arn:aws:iam::aws:policy/AdministratorAccess"],
     "nodes attaches arn:aws:iam::aws:policy/AdministratorAccess", {}),
    ("eks-administrators-named", "association", "policyArn",
     "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy",
     "john grants arn:aws:iam::123456789012:role/john-scientists AmazonEKSClusterAdminPolicy",
     {"administrators": ["arn:aws:iam::123456789012:role/Admin"]}),
    ("iam-trust-limited", "role", "assumeRolePolicy", document(trust("eks.amazonaws.com", Condition={})),
     "trusts eks.amazonaws.com on", {}),
    ("iam-trust-limited", "role", "assumeRolePolicy", document(trust("lambda.amazonaws.com")), "trusts lambda", {}),
    ("iam-trust-limited", "role", "assumeRolePolicy", document(trust(Principal="*")), "trusts everyone", {}),
    ("iam-trust-limited", "role", "assumeRolePolicy", document(trust(Principal={"AWS": "999999999999"})),
     "trusts 999999999999", {}),
    ("iam-trust-limited", "role", "assumeRolePolicy", document(trust(Principal={"Federated": "oidc.example"})),
     "trusts every identity of oidc.example", {}),
    ("iam-trust-limited", "role", "assumeRolePolicy", document(trust(Condition=["x"])), "to keys and values", {}),
    ("iam-trust-limited", "role", "assumeRolePolicy", document(trust(Principal=["x"])), "map types to names", {}),
    ("security-group-not-open", "security_group", "ingress",
     [{"protocol": "-1", "fromPort": 0, "toPort": 0, "cidrBlocks": ["0.0.0.0/0"]}],
     "allows ingress from 0.0.0.0/0 (all traffic)", {}),
    ("security-group-not-open", "ingress", "cidrIpv6", "::/0", "::/0 (tcp 443–443)", {"publicPorts": [80]}),
    ("security-group-not-open", "rule", "cidrBlocks", ["0.0.0.0/0"], "legacy allows ingress from 0.0.0.0/0", {}),
    ("bucket-private", "block", "blockPublicAcls", False, "(blockPublicAcls)", {}),
    ("bucket-encrypted", "encryption", "", ABSENT, "lifecycle has no encryption", {}),
    ("bucket-versioned", "versioning", "versioningConfiguration.status", "Suspended", "has no versioning", {}),
    ("bucket-tls-only", "bucket_policy", "policy", document(TLS_ONLY | {"Resource": ["arn:aws:s3:::acme-lifecycle/*"]}),
     "without TLS", {}),
    ("bucket-policy-limited", "bucket_policy", "policy",
     document(TLS_ONLY, allow("s3:PutObject", "arn:aws:s3:::b/*", Principal={"AWS": "999999999999"})),
     "lifecycle allows 999999999999 s3:PutObject", {"principals": ["888888888888"]}),
    ("bucket-policy-limited", "bucket_policy", "policy", "{}", "can't be read", {}),
    ("bucket-tls-only", "bucket_policy", "", ABSENT, "without TLS", {}),
    ("team-bindings-in-namespace", "binding", "metadata.namespace", "hyperpod-ns-smith",
     "team john the role scientist in namespace hyperpod-ns-smith", {}),
    ("team-bindings-in-namespace", "cluster_role", "rules.0.resources", ["secrets"], "get secrets", {}),
    ("team-bindings-in-namespace", "cluster_role", "rules.0.verbs", ["get", "*"], "* nodes", {}),
    ("team-bindings-in-namespace", "cluster_binding", "roleRef.name", "admin", "that this stack doesn't", {}),
    ("team-access-policies-in-namespace", "association", "accessScope.namespaces", ["hyperpod-ns-smith"],
     "in hyperpod-ns-smith", {}),
    ("team-access-policies-in-namespace", "association", "accessScope", {"type": "cluster"}, "the whole cluster", {}),
    ("mandatory-tags", "vpc", "tags", {"hpkit:organization": "acme"}, "network has no tag hpkit:environment", {}),
    ("mandatory-tags", "john", "tags", ABSENT, "john has no tag hpkit:organization, hpkit:environment", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "part", "path", "value", "words", "settings"), MUTATIONS)
def test_one_mutation_of_the_happy_stack_is_reported_with_a_fix(name, part, path, value, words, settings):
    stack, policy = happy(), BY_NAME[name]
    assert messages(policy, stack, **settings) == [], "clean before the mutation"
    if path:
        stack[part] = changed(stack[part], path, value)
    else:
        del stack[part]
    found = [each for each in results_of(policy, stack, **settings) if isinstance(each, Violation)]
    assert [each for each in found if words in each.message.replace("`", "")], found
    for each in found:
        assert each.fix.endswith("."), each
        assert not each.message.endswith("."), "the adapter sets the full stop"
    # The fix says where exceptions to the policy are written.
    names = [*(each.name for each in policy.parameters), *(["waivers"] if policy.waivable else [])]
    for each in run_policies(list(stack.values()), {name: settings or policy.level}):
        if each.policy == name:
            assert all(f"`{key}`" in each.fix for key in names), each.fix
            assert ("stacks/<organization>.policy.json" in each.fix) is bool(names), each.fix


def test_every_policy_has_a_mutation():
    assert {policy.name for policy in POLICIES} == {mutation[0] for mutation in MUTATIONS}


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_the_happy_stack_is_decided_and_nothing_is_reported(policy):
    assert results_of(policy, happy()) == []


@pytest.mark.parametrize("policy", POLICIES, ids=lambda policy: policy.name)
def test_a_policy_is_complete_data(policy):
    assert (policy.validate is None) != (policy.validate_stack is None)
    assert policy.description.endswith(".")
    assert policy.remediate is None or policy.validate is not None, "only resources can be remediated"
    for parameter in policy.parameters:
        assert parameter.description.endswith(".")
        json.dumps({**parameter.schema, "default": parameter.default})


def test_parameters_open_what_they_name():
    stack = happy()
    stack["role"] = changed(stack["role"], "assumeRolePolicy", document(trust(Principal={"AWS": "999999999999"})))
    assert messages(BY_NAME["iam-trust-limited"], stack, principals=["999999999999"]) == []
    stack["role_policy"] = changed(stack["role_policy"], "policy", document(allow("ec2:Describe*", "*")))
    assert messages(BY_NAME["iam-no-wildcard-action"], stack, actions=["ec2:Describe*"]) == []
    assert messages(BY_NAME["iam-no-wildcard-resource"], stack, actions=["ec2:Describe*"]) == []
    stack["ingress"] = changed(stack["ingress"], "cidrIpv4", "0.0.0.0/0")
    assert messages(BY_NAME["security-group-not-open"], stack, publicPorts=[443]) == []
    stack["addon"] = changed(stack["addon"], "addonVersion", ABSENT)
    pinned = BY_NAME["eks-addons-pinned"]
    assert messages(pinned, stack, unpinned=["vpc-cni"]) == []


def test_addons_without_a_version_are_one_violation_with_what_to_write(monkeypatch):
    pinned = BY_NAME["eks-addons-pinned"]
    stack = happy()
    stack["eks"] = replace(stack["eks"], props={**stack["eks"].props, "version": "1.35"})
    stack["addon"] = changed(stack["addon"], "addonVersion", ABSENT)
    # After `up`, outputs contain the version that EKS chose.
    stack["other"] = resource("aws:eks/addon:Addon", "coredns", addonName="coredns", addonVersion="v1.13.2-eksbuild.1")
    stack["other"] = replace(stack["other"], inputs={"addonName": "coredns"})

    def found(**settings):
        run_state = RunState(TODAY)
        run_state.observe(pinned, settings)
        return list(run_state.not_waived(pinned, results_of(pinned, stack, **settings), None))

    (together,) = found()
    assert together.message.startswith("coredns, vpc-cni have no version in `addons`")
    assert together.fix.startswith(
        "In the environment, set `addons: {coredns: VERSION, vpc-cni: VERSION}`; `hpkit aws preflight` shows each"
    )
    assert len(together.fix.split()) < 30, "one reading is enough"
    waiver = {"resource": "coredns", "reason": "next week", "until": "2026-12-31"}
    (rest,) = found(waivers=[waiver])
    assert rest.message.startswith("vpc-cni has no version in `addons`")
    monkeypatch.setattr("hpkit_policies.rules.eks.offered_addon", lambda *_: OfferedAddon(("v2", "v1"), "v1"))
    (known,) = found()
    assert "`addons: {coredns: v1, vpc-cni: v1}`" in known.fix


def test_what_the_program_registers_of_the_organizations_file_opens_what_it_names():
    stack = happy()
    future = changed(quota("smith", 1, instanceType="ml.p5.48xlarge"), "futureInstanceTypes", ["ml.p5.48xlarge"])
    assert messages(BY_NAME["quota-type-provided"], {**stack, "smith": future}) == []
    protected = BY_NAME["protected-from-replacement"]
    stack["vpc"] = changed(stack["vpc"], "protect", False)
    assert messages(protected, stack) == [], "the guard keeps it"
    stack["guard"] = changed(stack["guard"], "allowReplace", ["vpc", "teams/nlp"])
    assert messages(protected, stack) == [], "the file says so"
    (refused,) = messages(protected, stack, allowReplace=[])
    assert "`keep-base` allows the replacement of vpc of acme-dev" in refused
    stack["guard"] = changed(stack["guard"], "identity", {})
    (unprotected,) = messages(protected, stack)
    assert "`network` isn't protected:" in unprotected


def test_a_remediation_sets_what_is_missing_and_nothing_else():
    stack = happy()
    recovery, tags = BY_NAME["cluster-node-recovery"], BY_NAME["mandatory-tags"]
    values = {**tags.defaults, "values": TAGS}
    assert recovery.remediate(stack["cluster"], {}) == {}
    assert recovery.remediate(changed(stack["cluster"], "nodeRecovery", "None"), {}) == {"nodeRecovery": "Automatic"}
    assert tags.remediate(stack["vpc"], values) == {}
    bare = changed(stack["vpc"], "tags", {"Name": "network"})
    assert tags.remediate(bare, values) == {"tags": {"Name": "network", **TAGS}}
    assert tags.remediate(changed(stack["john"], "tags", []), values) == {"tags": LISTED_TAGS}


NAMES = example_stacks()
FILES = [file for name in EXAMPLES if (file := STACKS / f"{name}.policy.json").is_file()]


def settings_of(stack):
    file = STACKS / f"{stack.rpartition('-')[0]}.policy.json"
    return json.loads(file.read_text()) if file.is_file() else {}


def pack_findings(stack, settings=None):
    resources = parse_recording(recorded(stack).resources.values())
    return run_policies(resources, settings_of(stack) | (settings or {}), TODAY)


@pytest.mark.parametrize("stack", NAMES)
def test_an_example_stack_breaks_no_mandatory_policy_and_all_is_known(stack):
    found = pack_findings(stack)
    assert [each for each in found if each.level != "advisory"] == []
    assert not [each for each in found if each.message.startswith("not checked")]


def test_levels_and_parameters_are_those_of_the_organization():
    name = "handson-dev"
    assert {each.level for each in pack_findings(name, {"eks-addons-pinned": "mandatory"})} == {"mandatory"}
    assert pack_findings(name, {"eks-addons-pinned": "disabled"}) == []
    elsewhere = pack_findings(name, {"regions-allowed": {"allowed": ["eu-west-1"]}})
    said = [each for each in elsewhere if each.level != "advisory"]
    assert {each.policy for each in said} == {"regions-allowed"}
    assert all("us-west-2" in each.message for each in said)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_an_organizations_file_stands_beside_it_and_is_right(file):
    assert (STACKS / f"{file.name.removesuffix('.policy.json')}.yaml").is_file()
    assert problems(file.read_text()) == []


@pytest.mark.parametrize("stack", ["autoscale-dev", "enterprise-prod"])
def test_what_an_organizations_file_says_is_said_once(stack):
    found = run_policies(parse_recording(recorded(stack).resources.values()), {}, TODAY)
    assert {each.policy for each in found if each.level != "advisory"} == set()
