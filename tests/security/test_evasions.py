"""Ways around the policy pack and the validator: each passed once, and none passes now."""

import pytest

from policies.__main__ import POLICIES
from tests import builders as organizations
from tests.policies.builders import allow, changed, document, happy, messages, resource, trust

BY_NAME = {policy.name: policy for policy in POLICIES}
ROLE = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
ADMIN = "arn:aws:iam::aws:policy/AdministratorAccess"
CLUSTER_ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
ANYWHERE = "iam-no-wildcard-resource"
TRUSTS = "iam-trust-limited"


def eks_trust(**condition):
    return document(trust("eks.amazonaws.com", Condition=condition))


def federated(**condition):
    issuer = "arn:aws:iam::123456789012:oidc-provider/token.actions.githubusercontent.com"
    return document(
        {
            "Effect": "Allow",
            "Principal": {"Federated": issuer},
            "Action": "sts:AssumeRoleWithWebIdentity",
            "Condition": condition,
        }
    )


SUB = "token.actions.githubusercontent.com:sub"
# What somebody writes → policy, part of the stack that is changed, input, value.
CHANGED = {
    "one character of an action as ?": ("iam-no-wildcard-action", "role_policy", "policy",
        document(allow("iam:Pass?ole", "arn:aws:iam::123456789012:role/x"))),
    "all actions as ???": ("iam-no-wildcard-action", "role_policy", "policy",
        document(allow("???:CreateRole", "arn:aws:iam::123456789012:role/x"))),
    "any resource as **": (ANYWHERE, "role_policy", "policy", document(allow("s3:GetObject", "**"))),
    "any resource as ?*": (ANYWHERE, "role_policy", "policy", document(allow("s3:GetObject", "?*"))),
    "any resource as a*": (ANYWHERE, "role_policy", "policy", document(allow("s3:GetObject", "a*"))),
    "any resource as arn:aws:s3*": (ANYWHERE, "role_policy", "policy", document(allow("s3:GetObject", "arn:aws:s3*"))),
    "any bucket's objects as */*": (ANYWHERE, "role_policy", "policy",
        document(allow("s3:GetObject", "arn:aws:s3:::*/*"))),
    "any bucket as ?*": (ANYWHERE, "role_policy", "policy", document(allow("s3:PutObject", "arn:aws:s3:::?*"))),
    "any role as role/*": (ANYWHERE, "role_policy", "policy",
        document(allow("iam:PassRole", "arn:aws:iam::123456789012:role/*"))),
    "any role as role/?*": (ANYWHERE, "role_policy", "policy",
        document(allow("sts:AssumeRole", "arn:aws:iam::*:role/?*"))),
    "any role of a service by a wildcard": (ANYWHERE, "role_policy", "policy",
        document(allow("iam:PassRole", "arn:aws:*::123456789012:role/*"))),
    "any secret": (ANYWHERE, "role_policy", "policy",
        document(allow("secretsmanager:GetSecretValue", "arn:aws:secretsmanager:us-east-1:123456789012:secret:*"))),
    "any key": (ANYWHERE, "role_policy", "policy",
        document(allow("kms:Decrypt", "arn:aws:kms:us-east-1:123456789012:key/*"))),
    "any key, under a condition that always holds": (ANYWHERE, "role_policy", "policy",
        document(allow("kms:Decrypt", "arn:aws:kms:us-east-1:123456789012:key/*",
                       Condition={"StringNotEquals": {"aws:PrincipalTag/x": "y"}}))),
    "a trust for any account as *": (TRUSTS, "role", "assumeRolePolicy",
        eks_trust(StringLike={"aws:SourceAccount": "*"})),
    "a trust for any account as ????????????": (TRUSTS, "role", "assumeRolePolicy",
        eks_trust(StringLike={"aws:SourceAccount": "?" * 12})),
    "a trust for any account beside one": (TRUSTS, "role", "assumeRolePolicy",
        eks_trust(StringLike={"aws:SourceAccount": ["123456789012", "*"]})),
    "a trust if the account is there": (TRUSTS, "role", "assumeRolePolicy",
        eks_trust(StringEqualsIfExists={"aws:SourceAccount": "123456789012"})),
    "a trust for every account but one": (TRUSTS, "role", "assumeRolePolicy",
        eks_trust(StringNotEquals={"aws:SourceAccount": "000000000000"})),
    "a trust wherever some account is": (TRUSTS, "role", "assumeRolePolicy",
        eks_trust(Null={"aws:SourceAccount": "false"})),
    "a trust for all of no accounts": (TRUSTS, "role", "assumeRolePolicy",
        eks_trust(**{"ForAllValues:StringEquals": {"aws:SourceAccount": "123456789012"}})),
    "a trust for clusters of any account": (TRUSTS, "role", "assumeRolePolicy",
        eks_trust(ArnLike={"aws:SourceArn": "arn:aws:eks:*:*:cluster/*"})),
    "a trust for any source": (TRUSTS, "role", "assumeRolePolicy", eks_trust(ArnLike={"aws:SourceArn": "*"})),
    "a trust for any token": (TRUSTS, "role", "assumeRolePolicy", federated(StringLike={SUB: "*"})),
    "a trust for any repository": (TRUSTS, "role", "assumeRolePolicy", federated(StringLike={SUB: "repo:*"})),
    "a trust for a branch of any repository": (TRUSTS, "role", "assumeRolePolicy",
        federated(StringLike={SUB: "repo:*:ref:refs/heads/main"})),
    "a trust for repositories that begin so": (TRUSTS, "role", "assumeRolePolicy",
        federated(StringLike={SUB: "repo:acme*"})),
    "a trust for every token but one": (TRUSTS, "role", "assumeRolePolicy",
        federated(StringNotLike={SUB: "repo:evil/*"})),
    "a trust for any service account": (TRUSTS, "role", "assumeRolePolicy",
        federated(StringLike={"oidc.eks.us-east-1.amazonaws.com/id/x:sub": "system:serviceaccount:*:*"})),
    "managed policies in the role": ("iam-attached-policies-named", "role", "managedPolicyArns", [ADMIN]),
    "a group open by halves": ("security-group-not-open", "rule", "cidrBlocks", ["0.0.0.0/1", "128.0.0.0/1"]),
    "a group open by quarters": ("security-group-not-open", "rule", "cidrBlocks",
        ["0.0.0.0/2", "64.0.0.0/2", "128.0.0.0/2", "192.0.0.0/2"]),
    "a group open by a half": ("security-group-not-open", "ingress", "cidrIpv4", "0.0.0.0/1"),
    "a group open as /00": ("security-group-not-open", "ingress", "cidrIpv4", "0.0.0.0/00"),
    "a group open to IPv6 by a half": ("security-group-not-open", "ingress", "cidrIpv6", "8000::/1"),
    "a group open to IPv6 in full letters": ("security-group-not-open", "ingress", "cidrIpv6", "0:0:0:0:0:0:0:0/0"),
    "an API open by halves": ("eks-endpoint-not-open", "eks", "vpcConfig.publicAccessCidrs",
        ["0.0.0.0/1", "128.0.0.0/1"]),
    "an API open by 256 parts": ("eks-endpoint-not-open", "eks", "vpcConfig.publicAccessCidrs",
        [f"52.{part}.0.0/16" for part in range(256)]),
}  # fmt: skip
# The same, by a resource that is added.
ADDED = {
    "AdministratorAccess for a role": ("iam-attached-policies-named",
        resource(ROLE, "x", role="nodes", policyArn=ADMIN)),
    "IAMFullAccess for a user": ("iam-attached-policies-named",
        resource("aws:iam/userPolicyAttachment:UserPolicyAttachment", "x", user="x",
                 policyArn="arn:aws:iam::aws:policy/IAMFullAccess")),
    "a policy of another account of the same name": ("iam-attached-policies-named",
        resource(ROLE, "x", policyArn="arn:aws:iam::999999999999:policy/AmazonEKSClusterPolicy")),
    "the cluster's administration for a user": ("eks-administrators-named",
        resource("aws:eks/accessPolicyAssociation:AccessPolicyAssociation", "x", accessScope={"type": "cluster"},
                 principalArn="arn:aws:iam::123456789012:user/mallory", policyArn=CLUSTER_ADMIN)),
    "the cluster's administration for an account": ("eks-administrators-named",
        resource("aws:eks/accessPolicyAssociation:AccessPolicyAssociation", "x", accessScope={"type": "cluster"},
                 principalArn="arn:aws:iam::123456789012:root", policyArn=CLUSTER_ADMIN)),
}  # fmt: skip
# The same in an organization file: ranges of publicCidrs.
FILES = {
    "halves": ["0.0.0.0/1", "128.0.0.0/1"],
    "a half": ["128.0.0.0/1"],
    "parts of a /8": ["52.0.0.0/9", "52.128.0.0/9"],
}


def test_the_stack_that_is_changed_breaks_nothing_by_itself():
    for policy in POLICIES:
        assert messages(policy, happy()) == []


@pytest.mark.parametrize("way", CHANGED)
def test_the_pack_is_passed_by(way):
    name, part, path, value = CHANGED[way]
    stack = happy()
    stack[part] = changed(stack[part], path, value)
    assert messages(BY_NAME[name], stack), way


@pytest.mark.parametrize("way", ADDED)
def test_the_pack_is_passed_by_with_one_resource_more(way):
    name, more = ADDED[way]
    assert messages(BY_NAME[name], {**happy(), "more": more}), way


def test_the_cluster_is_administered_by_a_role_that_is_not_listed():
    policy = BY_NAME["eks-administrators-named"]
    kind = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
    who = "arn:aws:iam::123456789012:role/somebody"
    more = resource(kind, "x", accessScope={"type": "cluster"}, principalArn=who, policyArn=CLUSTER_ADMIN)
    assert messages(policy, {**happy(), "more": more}, administrators=["arn:aws:iam::123456789012:role/Admin"])
    assert messages(policy, {**happy(), "more": more}, administrators=[who]) == []


@pytest.mark.parametrize("way", FILES)
def test_the_validator_is_passed_by_with_an_api_open_in_parts(way):
    data = organizations.organization()
    data["environments"]["dev"]["eks"]["endpoint"]["publicCidrs"] = FILES[way]
    assert "EKS001" in organizations.rules(data)


def test_there_are_enough_of_them_to_say_something():
    assert len(CHANGED) + len(ADDED) + len(FILES) >= 40


HARMLESS = {
    "a pattern of names": (ANYWHERE, "role_policy", "policy",
        document(allow("iam:PassRole", "arn:aws:iam::123456789012:role/acme-dev-*"))),
    "keys by the service that asks": (ANYWHERE, "role_policy", "policy",
        document(allow("kms:CreateGrant", "arn:aws:kms:us-east-1:123456789012:key/*",
                       Condition={"StringLike": {"kms:ViaService": "sagemaker.*.amazonaws.com"}}))),
    "clusters of one account": (TRUSTS, "role", "assumeRolePolicy",
        eks_trust(ArnLike={"aws:SourceArn": "arn:aws:eks:*:123456789012:cluster/*"})),
    "one repository": (TRUSTS, "role", "assumeRolePolicy",
        federated(StringLike={SUB: "repo:acme/platform:environment:*"})),
    "one namespace": (TRUSTS, "role", "assumeRolePolicy",
        federated(StringLike={"oidc.eks.us-east-1.amazonaws.com/id/x:sub": "system:serviceaccount:kube-system:*"})),
    "a private /8": ("security-group-not-open", "ingress", "cidrIpv4", "10.0.0.0/8"),
    "an office and a VPN": ("eks-endpoint-not-open", "eks", "vpcConfig.publicAccessCidrs",
        ["52.10.20.0/24", "3.0.0.0/16"]),
}  # fmt: skip


@pytest.mark.parametrize("way", HARMLESS)
def test_what_is_narrow_enough_is_let_through(way):
    name, part, path, value = HARMLESS[way]
    stack = happy()
    stack[part] = changed(stack[part], path, value)
    assert messages(BY_NAME[name], stack) == []
