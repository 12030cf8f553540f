"""Ways around the policy pack and the validator: each worked at some time, and none works now."""

import pytest

from hpkit_policies.pack import POLICIES
from tests import builders as organizations
from tests.policies.builders import TLS_ONLY, allow, changed, document, happy, messages, resource, trust

BY_NAME = {policy.name: policy for policy in POLICIES}
ROLE = "aws:iam/rolePolicyAttachment:RolePolicyAttachment"
ADMIN = "arn:aws:iam::aws:policy/AdministratorAccess"
CLUSTER_ADMIN = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
ANYWHERE = "iam-no-wildcard-resource"
TRUSTS = "iam-trust-limited"


def eks_trust(**condition):
    return document(trust("eks.amazonaws.com", Condition=condition))


SSO = "arn:aws:iam::123456789012:role/aws-reserved/sso.amazonaws.com"


def trusting(principal, *limits):
    condition = {"Condition": {"ArnLike": {"aws:PrincipalArn": list(limits)}} if limits else {}}
    return document(trust(Principal={"AWS": principal}, **condition))


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


def bound(role, *subjects, cluster=True, version="v1", patch="", **more):
    group, scope = "kubernetes:rbac.authorization.k8s.io", "Cluster" if cluster else ""
    kind = more.pop("kind", "ClusterRole")
    return resource(
        f"{group}/{version}:{scope}RoleBinding{patch}",
        "x",
        roleRef={"kind": kind, "name": role},
        subjects=list(subjects),
        **more,
    )


def role(name, *rules, cluster=True, **metadata):
    scope = "Cluster" if cluster else ""
    return resource(
        f"kubernetes:rbac.authorization.k8s.io/v1:{scope}Role",
        name,
        metadata={"name": name, **metadata},
        rules=list(rules),
    )


def rule(verbs, resources, groups=("",)):
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


def entry(**props):
    return resource(
        "aws:eks/accessEntry:AccessEntry", "ops", principalArn="arn:aws:iam::123456789012:role/ops", **props
    )


def prefix_list(*cidrs):
    kind = "aws:ec2/managedPrefixList:ManagedPrefixList"
    return resource(kind, "offices", id="pl-1", entries=[{"cidr": cidr} for cidr in cidrs])


def ingress(name="x", **source):
    kind = "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule"
    return resource(kind, name, securityGroupId="sg-1", ipProtocol="-1", **source)


def lets_in(cidr):
    return {"protocol": "tcp", "fromPort": 22, "toPort": 22, "cidrBlocks": [cidr]}


def shared(principals, **more):
    return document(TLS_ONLY, allow("s3:PutObject", "arn:aws:s3:::acme-lifecycle/*", **principals, **more))


OPS, JOHN = {"kind": "Group", "name": "ops"}, {"kind": "Group", "name": "hyperpod:team:john"}
ESCALATION, TYPES, SOURCES = "bindings-grant-no-escalation", "resource-types-covered", "security-group-sources-named"
BUCKETS = "bucket-policy-limited"
SUB = "token.actions.githubusercontent.com:sub"
# Attempt → policy, changed part of the stack, input, value.
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
    "a trust for every branch of a repository": (TRUSTS, "role", "assumeRolePolicy",
        federated(StringLike={SUB: "repo:acme/platform:*"})),
    "a trust for an environment that any branch can name": (TRUSTS, "role", "assumeRolePolicy",
        federated(StringEquals={SUB: "repo:acme/platform:environment:acme-dev"})),
    "a trust for pull requests": (TRUSTS, "role", "assumeRolePolicy",
        federated(StringEquals={SUB: "repo:acme/platform:pull_request"})),
    "a trust for tags of GitLab": (TRUSTS, "role", "assumeRolePolicy",
        federated(StringEquals={"gitlab.com:sub": "project_path:acme/platform:ref_type:tag:ref:v1"})),
    "a trust for a role of another account": (TRUSTS, "role", "assumeRolePolicy",
        trusting("arn:aws:iam::999999999999:role/ops")),
    "a trust for the whole account": (TRUSTS, "role", "assumeRolePolicy",
        trusting("arn:aws:iam::123456789012:root")),
    "a trust for roles of any name": (TRUSTS, "role", "assumeRolePolicy",
        trusting("arn:aws:iam::123456789012:root", "arn:aws:iam::123456789012:role/*")),
    "a trust for roles of another account's root": (TRUSTS, "role", "assumeRolePolicy",
        trusting("arn:aws:iam::999999999999:root", "arn:aws:iam::123456789012:role/ops")),
    "a trust for permission sets of any name": (TRUSTS, "role", "assumeRolePolicy",
        trusting("arn:aws:iam::123456789012:root", f"{SSO}/AWSReservedSSO_*")),
    "a trust for assertions to any application": (TRUSTS, "role", "assumeRolePolicy",
        document(trust(Principal={"Federated": "arn:aws:iam::123456789012:saml-provider/okta"}))),
    "a trust for all but one account": (TRUSTS, "role", "assumeRolePolicy",
        document({"Effect": "Allow", "NotPrincipal": {"AWS": "123456789012"}, "Action": "sts:AssumeRole"})),
    "a statement that hides behind another of the same name": ("iam-no-wildcard-action", "role_policy", "policy",
        '{"Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}], "Statement": []}'),
    "a group open by many rules": (SOURCES, "security_group", "ingress",
        [lets_in(f"52.{n}.0.0/16") for n in range(256)]),
    "a group open to another account's group": (SOURCES, "ingress", "referencedSecurityGroupId",
        "999999999999/sg-0123456789abcdef0"),
    "a group open to another account's group, in the group itself": (SOURCES, "security_group", "ingress",
        [{"protocol": "-1", "securityGroups": ["999999999999/sg-0123456789abcdef0"]}]),
    "a group open to a prefix list of others": (SOURCES, "ingress", "prefixListId", "pl-3b927c52"),
    "a group open to a prefix list of others, in the older rule": (SOURCES, "rule", "prefixListIds", ["pl-3b927c52"]),
    "a group open to a prefix list of others, in the group itself": (SOURCES, "security_group", "ingress",
        [{"protocol": "-1", "prefixListIds": ["pl-3b927c52"]}]),
    "a team's role that binds others": (ESCALATION, "team_role", "rules", [rule(["bind"], ["roles"])]),
    "a team's role that escalates": (ESCALATION, "team_role", "rules", [rule(["escalate"], ["roles"])]),
    "a team's role that writes bindings": (ESCALATION, "team_role", "rules", [rule(["create"], ["rolebindings"])]),
    "a team's role of all verbs": (ESCALATION, "team_role", "rules", [rule(["*"], ["jobs"])]),
    "a team's role of all resources": (ESCALATION, "team_role", "rules", [rule(["get"], ["*"])]),
    "a team's role that makes tokens": (ESCALATION, "team_role", "rules",
        [rule(["create"], ["serviceaccounts/token"])]),
    "a cluster role that takes in others by their labels": (ESCALATION, "cluster_role", "aggregationRule",
        {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}),
    "a cluster role that is added to admin": (ESCALATION, "cluster_role", "metadata",
        {"name": "reader", "labels": {"rbac.authorization.k8s.io/aggregate-to-admin": "true"}}),
    "a cluster role that reaches nodes by their proxy": (ESCALATION, "cluster_role", "rules",
        [rule(["get"], ["nodes/proxy"])]),
    "a cluster role that reads all Secrets": (ESCALATION, "cluster_role", "rules", [rule(["list"], ["secrets"])]),
    "a cluster role that impersonates": (ESCALATION, "cluster_role", "rules", [rule(["impersonate"], ["users"])]),
    "a cluster role that changes admission": (ESCALATION, "cluster_role", "rules",
        [rule(["patch"], ["validatingadmissionpolicybindings"], ["admissionregistration.k8s.io"])]),
    "a cluster role that signs certificates": (ESCALATION, "cluster_role", "rules",
        [rule(["approve"], ["signers"], ["certificates.k8s.io"])]),
    "a bucket that another account writes to": (BUCKETS, "bucket_policy", "policy",
        shared({"Principal": {"AWS": "arn:aws:iam::999999999999:root"}})),
    "a bucket that all but one write to": (BUCKETS, "bucket_policy", "policy",
        shared({"NotPrincipal": {"AWS": "123456789012"}})),
    "a bucket that anybody writes to if the account is there": (BUCKETS, "bucket_policy", "policy",
        shared({"Principal": "*"}, Condition={"StringEqualsIfExists": {"aws:SourceAccount": "123456789012"}})),
    "a bucket that a service writes to for anybody": (BUCKETS, "bucket_policy", "policy",
        shared({"Principal": {"Service": "delivery.logs.amazonaws.com"}})),
    "a bucket that another account writes to, in the bucket itself": (BUCKETS, "bucket", "policy",
        shared({"Principal": {"AWS": "999999999999"}})),
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
# The same, with an added resource.
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
    "the cluster's editing for a user": ("eks-administrators-named",
        resource("aws:eks/accessPolicyAssociation:AccessPolicyAssociation", "x", accessScope={"type": "cluster"},
                 principalArn="arn:aws:iam::123456789012:user/mallory",
                 policyArn="arn:aws:eks::aws:cluster-access-policy/AmazonEKSEditPolicy")),
    "AdministratorAccess by an exclusive list": (TYPES,
        resource("aws:iam/rolePolicyAttachmentsExclusive:RolePolicyAttachmentsExclusive", "x", roleName="nodes",
                 policyArns=[ADMIN])),
    "an access key": (TYPES, resource("aws:iam/accessKey:AccessKey", "x", user="mallory")),
    "a type of IAM that is new": (TYPES, resource("aws:iam/outbound:Outbound", "x")),
    "a stack of CloudFormation": (TYPES, resource("aws:cloudformation/stack:Stack", "x", templateBody="{}")),
    "a set of stacks": (TYPES, resource("aws:cloudformation/stackSet:StackSet", "x")),
    "a resource by Cloud Control": (TYPES,
        resource("aws:cloudcontrol/resource:Resource", "x", typeName="AWS::IAM::Role")),
    "an application of the Serverless Application Repository": (TYPES,
        resource("aws:serverlessrepository/cloudFormationStack:CloudFormationStack", "x")),
    "a function behind a custom resource": (TYPES, resource("aws:lambda/function:Function", "x")),
    "a call of a function": (TYPES, resource("aws:lambda/invocation:Invocation", "x", functionName="x")),
    "a build": (TYPES, resource("aws:codebuild/project:Project", "x")),
    "commands on nodes": (TYPES, resource("aws:ssm/association:Association", "x", name="AWS-RunShellScript")),
    "a permission set": (TYPES, resource("aws:ssoadmin/managedPolicyAttachment:ManagedPolicyAttachment", "x")),
    "an instance with a role and a script": (TYPES,
        resource("aws:ec2/instance:Instance", "x", iamInstanceProfile="admin", userData="#!/bin/sh")),
    "a schedule that calls IAM": (TYPES,
        resource("aws:scheduler/schedule:Schedule", "x", target={"arn": "arn:aws:scheduler:::aws-sdk:iam:createUser"})),
    "a task with a role": (TYPES, resource("aws:ecs/taskDefinition:TaskDefinition", "x", taskRoleArn="admin")),
    "a notebook with a role": (TYPES,
        resource("aws:sagemaker/notebookInstance:NotebookInstance", "x", roleArn="admin")),
    "images for another account": (TYPES,
        resource("aws:ecr/repositoryPolicy:RepositoryPolicy", "x", policy=document(allow("ecr:*", "*")))),
    "a webhook that changes what others create": (TYPES,
        resource("kubernetes:admissionregistration.k8s.io/v1:MutatingWebhookConfiguration", "x")),
    "a patch of a webhook": (TYPES,
        resource("kubernetes:admissionregistration.k8s.io/v1:ValidatingWebhookConfigurationPatch", "x")),
    "an API served by others": (TYPES, resource("kubernetes:apiregistration.k8s.io/v1:APIService", "x")),
    "a grant of a key": (TYPES, resource("aws:kms/grant:Grant", "x", operations=["Decrypt"])),
    "a shell command": (TYPES, resource("command:local:Command", "x", create="aws iam create-user")),
    "the provider of shell commands": (TYPES, resource("pulumi:providers:command", "x")),
    "a dynamic resource": (TYPES, resource("pulumi-python:dynamic:Resource", "x", __provider="gASV")),
    "a role by another provider": (TYPES, resource("aws-native:iam:Role", "x", managedPolicyArns=[ADMIN])),
    "another issuer for the cluster": (TYPES, resource("aws:eks/identityProviderConfig:IdentityProviderConfig", "x")),
    "bindings in a list": (TYPES, resource("kubernetes:rbac.authorization.k8s.io/v1:ClusterRoleBindingList", "x",
        items=[{"roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}, "subjects": [OPS]}])),
    "cluster-admin for a group of an access entry": (ESCALATION,
        (entry(kubernetesGroups=["ops"]), bound("cluster-admin", OPS))),
    "cluster-admin for a user": (ESCALATION, bound("cluster-admin", {"kind": "User", "name": "mallory"})),
    "cluster-admin for a service account": (ESCALATION,
        bound("cluster-admin", {"kind": "ServiceAccount", "name": "default", "namespace": "kube-system"})),
    "cluster-admin by the beta API": (ESCALATION, bound("cluster-admin", OPS, version="v1beta1")),
    "cluster-admin by a patch": (ESCALATION, bound("cluster-admin", OPS, patch="Patch")),
    "cluster-admin in a namespace": (ESCALATION,
        bound("cluster-admin", JOHN, cluster=False, metadata={"namespace": "hyperpod-ns-john"})),
    "a role that the stack doesn't have": (ESCALATION, bound("somebodys", OPS)),
    "a role with another of the same name behind it": (ESCALATION,
        (role("two-faced", rule(["get"], ["nodes"])),
         resource("kubernetes:rbac.authorization.k8s.io/v1:ClusterRolePatch", "x", metadata={"name": "two-faced"},
                  rules=[rule(["*"], ["*"])]),
         bound("two-faced", OPS))),
    "a role for everybody": (ESCALATION,
        (role("look", rule(["get"], ["jobs"])), bound("look", {"kind": "Group", "name": "system:authenticated"}))),
    "administrators in the ConfigMap aws-auth": (ESCALATION,
        resource("kubernetes:core/v1:ConfigMapPatch", "x", metadata={"name": "aws-auth", "namespace": "kube-system"})),
    "a team by another group of its entry": ("team-bindings-in-namespace",
        (entry(kubernetesGroups=["hyperpod:team:john", "ops"]),
         bound("scientist", OPS, cluster=False, kind="Role", metadata={"namespace": "hyperpod-ns-smith"}))),
    "a team by the user name of its entry": ("team-bindings-in-namespace",
        (entry(kubernetesGroups=["hyperpod:team:john"], userName="ann"),
         bound("scientist", {"kind": "User", "name": "ann"}, cluster=False,
               metadata={"namespace": "hyperpod-ns-smith"}))),
    "a team by its service account": ("team-bindings-in-namespace",
        bound("scientist", {"kind": "ServiceAccount", "name": "default", "namespace": "hyperpod-ns-john"},
              cluster=False, metadata={"namespace": "hyperpod-ns-smith"})),
    "a team by all its service accounts": ("team-bindings-in-namespace",
        bound("scientist", {"kind": "Group", "name": "system:serviceaccounts:hyperpod-ns-john"}, cluster=False,
              metadata={"namespace": "hyperpod-ns-smith"})),
    "a team by the beta API": ("team-bindings-in-namespace",
        bound("scientist", JOHN, cluster=False, version="v1beta1", metadata={"namespace": "hyperpod-ns-smith"})),
    "a group open by a prefix list": (SOURCES, (prefix_list("0.0.0.0/0"), ingress(prefixListId="pl-1"))),
    "a group open by halves in a prefix list": (SOURCES,
        (prefix_list("0.0.0.0/1", "128.0.0.0/1"), ingress(prefixListId="pl-1"))),
    "a group open to IPv6 by a prefix list": (SOURCES, (prefix_list("::/0"), ingress(prefixListId="pl-1"))),
    "a group open by entries beside the prefix list": (SOURCES,
        (prefix_list(), ingress(prefixListId="pl-1"),
         resource("aws:ec2/managedPrefixListEntry:ManagedPrefixListEntry", "x", prefixListId="pl-1",
                  cidr="0.0.0.0/0"))),
    "a group open by many rules of its own": (SOURCES,
        tuple(ingress(f"x{n}", cidrIpv4=f"52.{n}.0.0/16") for n in range(256))),
    "a group open to IPv6 by many rules of its own": (SOURCES,
        tuple(ingress(f"x{n}", cidrIpv6=f"2600:{n:x}00::/24") for n in range(256))),
}  # fmt: skip
# The same in an organization file: ranges of publicCidrs.
FILES = {
    "halves": ["0.0.0.0/1", "128.0.0.0/1"],
    "a half": ["128.0.0.0/1"],
    "parts of a /8": ["52.0.0.0/9", "52.128.0.0/9"],
}


def with_more(more):
    """Return a stack without violations, with one or more added resources."""
    added = more if isinstance(more, tuple) else (more,)
    return {**happy(), **{f"more {place}": each for place, each in enumerate(added)}}


@pytest.mark.parametrize("way", CHANGED)
def test_the_pack_reports_each_evasion(way):
    name, part, path, value = CHANGED[way]
    stack = happy()
    stack[part] = changed(stack[part], path, value)
    assert messages(BY_NAME[name], stack), way


@pytest.mark.parametrize("way", ADDED)
def test_the_pack_reports_each_evasion_by_an_added_resource(way):
    name, more = ADDED[way]
    assert messages(BY_NAME[name], with_more(more)), way


def test_the_pack_reports_an_administrator_that_is_not_listed():
    policy = BY_NAME["eks-administrators-named"]
    kind = "aws:eks/accessPolicyAssociation:AccessPolicyAssociation"
    who = "arn:aws:iam::123456789012:role/somebody"
    more = resource(kind, "x", accessScope={"type": "cluster"}, principalArn=who, policyArn=CLUSTER_ADMIN)
    assert messages(policy, {**happy(), "more": more}, administrators=["arn:aws:iam::123456789012:role/Admin"])
    assert messages(policy, {**happy(), "more": more}, administrators=[who]) == []


@pytest.mark.parametrize("way", FILES)
def test_the_validator_reports_a_public_api_split_into_ranges(way):
    data = organizations.organization()
    data["environments"]["dev"]["eks"]["endpoint"]["publicCidrs"] = FILES[way]
    assert "EKS001" in organizations.rules(data)


HARMLESS = {
    "a user of the account": (TRUSTS, "role", "assumeRolePolicy", trusting("arn:aws:iam::123456789012:user/ada")),
    "a permission set": (TRUSTS, "role", "assumeRolePolicy",
        trusting("arn:aws:iam::123456789012:root", f"{SSO}/*/AWSReservedSSO_DataScientist_*")),
    "a pattern of names": (ANYWHERE, "role_policy", "policy",
        document(allow("iam:PassRole", "arn:aws:iam::123456789012:role/acme-dev-*"))),
    "keys by the service that asks": (ANYWHERE, "role_policy", "policy",
        document(allow("kms:CreateGrant", "arn:aws:kms:us-east-1:123456789012:key/*",
                       Condition={"StringLike": {"kms:ViaService": "sagemaker.*.amazonaws.com"}}))),
    "clusters of one account": (TRUSTS, "role", "assumeRolePolicy",
        eks_trust(ArnLike={"aws:SourceArn": "arn:aws:eks:*:123456789012:cluster/*"})),
    "one branch of a repository": (TRUSTS, "role", "assumeRolePolicy",
        federated(StringEquals={SUB: "repo:acme/platform:environment:acme-dev:ref:refs/heads/main"})),
    "one branch of GitLab": (TRUSTS, "role", "assumeRolePolicy",
        federated(StringEquals={"gitlab.com:sub": "project_path:acme/platform:ref_type:branch:ref:main"})),
    "a team's role that reads and writes Secrets of its own": (ESCALATION, "team_role", "rules",
        [rule(["get", "create"], ["secrets", "pods", "pods/exec"])]),
    "the role that reads": (ESCALATION, "cluster_binding", "roleRef", {"kind": "ClusterRole", "name": "view"}),
    "the team's entry": (ESCALATION, "entry", "kubernetesGroups", ["hyperpod:team:john"]),
    "a group of the same account": (SOURCES, "ingress", "referencedSecurityGroupId", "sg-0123456789abcdef0"),
    "one namespace": (TRUSTS, "role", "assumeRolePolicy",
        federated(StringLike={"oidc.eks.us-east-1.amazonaws.com/id/x:sub": "system:serviceaccount:kube-system:*"})),
    "a bucket that a service writes to for this account": (BUCKETS, "bucket_policy", "policy",
        shared({"Principal": {"Service": "delivery.logs.amazonaws.com"}},
               Condition={"StringEquals": {"aws:SourceAccount": "123456789012"}})),
    "a private /8": ("security-group-not-open", "ingress", "cidrIpv4", "10.0.0.0/8"),
    "an office and a VPN": ("eks-endpoint-not-open", "eks", "vpcConfig.publicAccessCidrs",
        ["52.10.20.0/24", "3.0.0.0/16"]),
}  # fmt: skip


@pytest.mark.parametrize("way", HARMLESS)
def test_the_pack_accepts_narrow_rights(way):
    name, part, path, value = HARMLESS[way]
    stack = happy()
    stack[part] = changed(stack[part], path, value)
    assert messages(BY_NAME[name], stack) == []
