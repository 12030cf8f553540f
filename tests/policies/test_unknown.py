"""Values that are unknown before the update are neither reported as violations nor silently accepted."""

import dataclasses

import pytest

from hpkit_policies.model import UNKNOWN, Undecided
from hpkit_policies.pack import POLICIES
from tests.policies.builders import ABSENT, CLUSTER_ARN, changed, group, happy, messages, quota, results_of, urn

BY_NAME = {policy.name: policy for policy in POLICIES}
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
SETTINGS = {
    "instance-types-allowed": {"allowed": ["ml.g5.12xlarge", "ml.g5.8xlarge"]},
}


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
    assert [item.message for item in said] == ["train: no limit of inference bounds ml.g5.8xlarge"]


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
