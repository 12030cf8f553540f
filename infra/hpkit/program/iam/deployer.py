"""The least privileges for `pulumi up`, `refresh` and `destroy` of a stack, as IAM policies.

They cover neither the backend of Pulumi's state nor the Kubernetes API, where the cluster's creator is administrator.

Two stages. Before the first `up`, no ARN is known. The policies then allow creating resources with this environment's
tags. They allow changing resources with the tags, if no one can add such tags to an existing resource. With the stack's
state, they also name what IAM can identify only by its ARN.
"""

import json
import re
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import takewhile
from typing import Any, Final

from hpkit.catalog import program_calls, type_calls
from hpkit.errors import CatalogError
from hpkit.plan.existing import (
    cluster_role,
    created_groups,
    execution_roles,
    made_roles,
    makes_certificate_bucket,
    makes_karpenter_role,
    makes_keda_role,
    makes_node_role,
    makes_pod_role,
    pod_roles,
    service_account_roles,
)
from hpkit.plan.lustre import has_team_volumes
from hpkit.plan.model import Plan
from hpkit.plan.names import (
    EVENT_RULES,
    GROUP_PREFIX,
    bucket_name,
    certificate_bucket_name,
    event_rule_name,
    inference_role_name,
    log_group,
    role_name,
    spaces_role_name,
    topic_name,
)
from hpkit.plan.principals import console_policies_of
from hpkit.plan.registry import repositories_of, repository_prefix
from hpkit.program.iam.documents import Values, fill, iam_document
from hpkit.program.iam.live import AwsAccount, LiveResource, managed_policy
from hpkit.program.iam.rules import Rule, actions_of_call, rules
from hpkit.text.formatting import compact_json

__all__ = [
    "NO_ACCOUNT",
    "SIZE_LIMIT",
    "NamedDocument",
    "actions_of",
    "calling_types",
    "console_policies",
    "deployer_policies",
    "governance_policies",
    "outsider_policies",
    "policies_text",
    "viewer_policies",
]

# Valid, so that IAM accepts the policy, but no one's, so that it allows nothing.
NO_ACCOUNT: Final = "000000000000"
# IAM user guide, quotas: characters of a managed policy, white space not counted.
SIZE_LIMIT: Final = 6144
# Packages whose resources are created by AWS API calls, and their types that make none.
_CALLING: Final = ("aws:", "hyperpod:")
_ADDON: Final = "aws:eks/addon:Addon"
# What lets pods use roles: separate associations, and those of add-ons.
_POD_IDENTITY: Final = frozenset({_ADDON, "aws:eks/podIdentityAssociation:PodIdentityAssociation"})
# What changes when teams get other quotas, weights, priorities or members.
_GOVERNING: Final = frozenset(
    {"aws:eks/accessEntry:AccessEntry", "hyperpod:index:ClusterSchedulerConfig", "hyperpod:index:ComputeQuota"}
)
_CALLS_NOTHING: Final = frozenset({"hyperpod:index:ChangeGuard"})
_LINK: Final = "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation"
_SERVICE_ROLES: Final = {
    "aws:eks/cluster:Cluster": "eks.amazonaws.com",
    _LINK: "s3.data-source.lustre.fsx.amazonaws.com",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "fsx.amazonaws.com",
    "aws:grafana/workspace:Workspace": "grafana.amazonaws.com",
    "hyperpod:index:Cluster": "hyperpod.sagemaker.amazonaws.com",
}
# Roles by purpose, and to which services they are passed.
_PASSED: Final = {
    "control-plane": ("aws:eks/cluster:Cluster", ("eks.amazonaws.com",)),
    "grafana": ("aws:grafana/workspace:Workspace", ("grafana.amazonaws.com",)),
    "karpenter": ("hyperpod:index:Cluster", ("hyperpod.sagemaker.amazonaws.com", "sagemaker.amazonaws.com")),
    "nodes": ("hyperpod:index:Cluster", ("sagemaker.amazonaws.com",)),
}
# Conditions on tags; they don't apply if hpkit manages no tags.
_BY_TAGS: Final = ("NEW", "OWN", "UNTAGGED", "EC2_CREATES", "SAGEMAKER_CREATES")
_CUSTOM_IMAGE: Final = "DescribeImages DescribeSnapshots ModifyImageAttribute ModifySnapshotAttribute"
# Actions that set or remove tags, by service.
_TAGGING: Final = re.compile(r":(?:(?:Tag|Untag)\w+|(?:Add|Create|Delete)Tags|(?:Put|Delete)\w+Tagging)$")
_UNTAGGING: Final = re.compile(r":(?:Untag\w+|DeleteTags)$")
# What changes nothing. `kms:Decrypt` and the like are no reading of a resource's settings.
_READING: Final = re.compile(r":(?:Describe|Get|List|Head)\w+$")
# What reading the file system of another stack calls.
_FILE_SYSTEM: Final = "DescribeFileSystems ListTagsForResource"
_STORAGE_KEY: Final = "CreateGrant Decrypt DescribeKey GenerateDataKey"
_SAGEMAKER_CREATES: Final = ("CreateCluster", "CreateClusterSchedulerConfig", "CreateComputeQuota")


@dataclass(frozen=True, slots=True)
class NamedDocument:
    """One managed policy: its name, and the document that IAM takes."""

    name: str
    document: dict[str, Any]

    def as_dict(self) -> dict[str, Any]:
        """Return it as it is printed."""
        return {"name": self.name, "document": self.document}


def deployer_policies(
    plan: Plan,
    account: AwsAccount,
    types: frozenset[str],
    *,
    live: Sequence[LiveResource] = (),
    until: str | None = None,
) -> tuple[NamedDocument, ...]:
    """Return all policies to attach for deploying the stack; as few as IAM's size limit allows.

    - types: the types that the program registers and that make AWS calls.
    - live: the resources of its state, none before the first `up`.
    - until: if hpkit doesn't manage the environment's tags, the time (ISO 8601, UTC) up to which it can change
      resources of any name. Without it, it can change only those in `live`.
    """
    return _named(plan, "deployer", _statements(plan, account, types, live, until))


def viewer_policies(plan: Plan, account: AwsAccount, types: frozenset[str]) -> tuple[NamedDocument, ...]:
    """Return the policies for previewing the stack: the read-only part of the deployer's permissions.

    ReadOnlyAccess would also read every bucket, queue and table in the account.
    """
    return _named(plan, "viewer", _reading(_statements(plan, account, types)))


def governance_policies(
    plan: Plan, account: AwsAccount, types: frozenset[str], *, live: Sequence[LiveResource] = ()
) -> tuple[NamedDocument, ...]:
    """Return the policies for changing the cluster policy, quotas and members, and reading the rest of the stack.

    AWS rejects everything else that an `up` would change: the engine calls AWS only for changes.
    """
    writing, of_eks = [], set()
    for statement in _statements(plan, account, types & _GOVERNING, live):
        allowed = statement["Effect"] == "Allow"
        kept = [action for action in statement["Action"] if not (allowed and _READING.search(action))]
        of_eks |= {action for action in kept if action.startswith("eks:")}
        others = [action for action in kept if not action.startswith("eks:")]
        if others:
            writing.append({**statement, "Sid": f"{statement['Sid']}Govern", "Action": others})
    reading = _reading(_statements(plan, account, types))
    return _named(plan, "governance", [*reading, *writing, *_entries_of_members(plan, account, of_eks)])


def _entries_of_members(plan: Plan, account: AwsAccount, actions: Set[str]) -> list[dict[str, Any]]:
    """Return statements for the access entries of teams' members, except administrators and viewers.

    In UpdateAccessEntry, `eks:kubernetesGroups` has the groups of the entry or of the request: the Service
    Authorization Reference doesn't say which. Both exist, because the program's requests and members' entries have
    groups. HyperPod associates its access policies with its service-linked role, which nobody can assume.
    """
    cluster, entries = (account.arn("eks", f"{kind}/{plan.eks_name}") for kind in ("cluster", "access-entry"))
    groups, principal = "eks:kubernetesGroups", "eks:principalArn"
    others = [*plan.spec.eks.administrators, *plan.spec.eks.viewers]
    members: list[dict[str, Any]] = [
        {"StringEquals": {"eks:accessEntryType": "STANDARD"}},
        {"Null": {groups: "false"}, "ForAllValues:StringLike": {groups: [f"{GROUP_PREFIX}*"]}},
        {"ArnNotEquals": {principal: others}} if others else {},
    ]
    service = {
        "eks:policyArn": [f"arn:{account.partition}:eks::aws:cluster-access-policy/AmazonSagemakerHyperpod*"],
        principal: [account.role_arn("aws-service-role/*")],
    }
    statements: tuple[tuple[str, tuple[str, ...], str, list[dict[str, Any]]], ...] = (
        ("GovernNewMembers", ("CreateAccessEntry",), cluster, members),
        ("GovernMembers", ("DeleteAccessEntry", "UpdateAccessEntry"), f"{entries}/*", members),
        ("GovernMemberTags", ("TagResource", "UntagResource"), f"{entries}/*", []),
        (
            "GovernByHyperPod",
            ("AssociateAccessPolicy", "DisassociateAccessPolicy"),
            f"{entries}/*",
            [{"ArnLike": service}],
        ),
        *(
            (
                "GovernConsole",
                ("AssociateAccessPolicy", "DisassociateAccessPolicy"),
                f"{entries}/*",
                [{"ArnEquals": {"eks:policyArn": console}}, {"ArnNotEquals": {principal: others}} if others else {}],
            )
            for console in [
                [f"arn:{account.partition}:eks::aws:cluster-access-policy/{name}" for name in console_policies_of(plan)]
            ]
            if console
        ),
    )
    return [
        _statement(sid, needed, [resource], conditions)
        for sid, names, resource, conditions in statements
        if (needed := [f"eks:{name}" for name in names if f"eks:{name}" in actions])
    ]


def _reading(statements: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the read-only part of some statements."""
    reading = []
    for statement in statements:
        actions = [action for action in statement["Action"] if _READING.search(action)]
        if actions and statement["Effect"] == "Allow":
            reading.append({**statement, "Action": actions})
    return reading


def _named(plan: Plan, purpose: str, statements: Sequence[dict[str, Any]]) -> tuple[NamedDocument, ...]:
    """Return statements as managed policies, as few as IAM's size limit allows."""
    return tuple(
        NamedDocument(f"{plan.stack}-{plan.spec.region}-{purpose}-{number}", _document(packed))
        for number, packed in enumerate(_pack(statements), 1)
    )


def outsider_policies(plan: Plan, account: AwsAccount) -> tuple[NamedDocument, ...]:
    """Return what to deny to every other role in the account that can use SageMaker, such as Studio's.

    It doesn't affect notebooks, jobs and endpoints with other roles than the stack's.
    """
    document = iam_document("deny-outsiders", account, roles=_made_role_arns(plan, account))
    return (NamedDocument(f"{plan.stack}-{plan.spec.region}-deny-outsiders", document),)


def console_policies(plan: Plan, account: AwsAccount) -> tuple[NamedDocument, ...]:
    """Return the policy of people who view the cluster in the console; access entries give them the rest."""
    return (
        NamedDocument(f"{plan.stack}-{plan.spec.region}-console", iam_document("console", account, eks=plan.eks_name)),
    )


def policies_text(policies: Iterable[NamedDocument]) -> str:
    """Return policies as JSON: a list of `name` and `document`."""
    return compact_json([policy.as_dict() for policy in policies]) + "\n"


def calling_types(types: Iterable[str]) -> frozenset[str]:
    """Return the types that a program registers that make AWS calls.

    Raises CatalogError for an AWS type without recorded calls, because the policies would lack them.
    """
    calling = {each for each in types if each.startswith(_CALLING) and each not in _CALLS_NOTHING}
    unknown = sorted(calling - type_calls().keys())
    if unknown:
        raise CatalogError(
            f"the calls of {', '.join(unknown)} are unknown; add them to hpkit/catalog/data/resource_types.json"
        )
    return frozenset(calling)


def actions_of(plan: Plan, types: frozenset[str]) -> frozenset[str]:
    """Return every IAM action that the stack's types, and services on their behalf, need."""
    calls_by_type = [type_calls()[name] for name in types]
    asked = {*program_calls(), *(call for each in calls_by_type for call in each.operations())}
    actions = {action for call in asked for action in actions_of_call(call)}
    actions |= {action for each in calls_by_type for action in each.service}
    if _images(plan):
        actions |= {f"ec2:{action}" for action in _CUSTOM_IMAGE.split()}
    if plan.spec.permissions_boundary:
        actions.add("iam:PutRolePermissionsBoundary")
    if plan.spec.cluster.existing and has_team_volumes(plan):
        actions |= {f"fsx:{action}" for action in _FILE_SYSTEM.split()}
    if plan.spec.storage is not None and plan.spec.storage.kms_key_arn:
        actions |= {f"kms:{action}" for action in _STORAGE_KEY.split()}
    return frozenset(actions if plan.spec.manage_tags else (each for each in actions if not _TAGGING.search(each)))


def _statements(
    plan: Plan, account: AwsAccount, types: frozenset[str], live: Sequence[LiveResource] = (), until: str | None = None
) -> list[dict[str, Any]]:
    actions, values = actions_of(plan, types), _values(plan, account)
    conditions = _conditions(plan, account, actions, live)
    statements = []
    for rule in rules():
        kept, resources = sorted(rule.actions & actions), fill(list(rule.resources), values)
        if kept and resources:
            statements += _narrowed(plan, rule, kept, resources, conditions, live, until)
    return [*statements, *_passed(plan, account, types), *_service_roles(account, types), *_kept_boundary(plan)]


def _narrowed(
    plan: Plan,
    rule: Rule,
    actions: list[str],
    resources: list[str],
    conditions: Mapping[str, dict[str, Any]],
    live: Sequence[LiveResource],
    until: str | None,
) -> list[dict[str, Any]]:
    """Return the statements of one rule; none if it's for named resources and none of them is known."""
    others = [conditions[name] for name in rule.conditions if name not in ("OWN", "EXACT")]
    matching = [each for each in live if any(fnmatchcase(each.arn, pattern) for pattern in resources)]
    arns = [each.arn for each in matching]
    if "EXACT" in rule.conditions and (arns or "OWN" not in rule.conditions):
        return _tagging_apart(plan, rule.sid, actions, arns, others) if arns else []
    if "OWN" in rule.conditions and plan.spec.manage_tags:
        statements = _tagging_apart(plan, rule.sid, actions, resources, [conditions["OWN"], *others])
        # Resources that `hpkit aws adopt` imported don't have hpkit's tags yet: the next `up` adds them to exactly
        # these.
        untagged = [each.arn for each in matching if not plan.owns(each.tags)]
        adding = [each for each in actions if _TAGGING.search(each) and not _UNTAGGING.search(each)]
        if untagged and adding:
            statements.append(_statement(f"{rule.sid}Adopt", adding, untagged, [conditions["NEW"]]))
        return statements
    if "OWN" in rule.conditions:
        reading = [action for action in actions if _READING.search(action)]
        writing = [action for action in actions if action not in reading]
        statements = [_statement(f"{rule.sid}Read", reading, resources, others)] if reading else []
        if arns and writing:
            statements.append(_statement(rule.sid, writing, arns, others))
        if until is not None and writing:
            window = {"DateLessThan": {"aws:CurrentTime": until}}
            statements.append(_statement(f"{rule.sid}Until", writing, resources, [*others, window]))
        return statements
    return [_statement(rule.sid, actions, resources, others)]


def _tagging_apart(
    plan: Plan, sid: str, actions: list[str], resources: list[str], conditions: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return a statement, and others for its tag actions, which can't change the tags that identify the owner."""
    if not plan.spec.manage_tags:
        return [_statement(sid, actions, resources, conditions)]
    kept = {f"aws:RequestTag/{key}": value for key, value in plan.owner_tags.items()}
    groups: tuple[tuple[str, list[str], list[dict[str, Any]]], ...] = (
        (sid, [each for each in actions if not _TAGGING.search(each)], []),
        (
            f"{sid}Tag",
            [each for each in actions if _TAGGING.search(each) and not _UNTAGGING.search(each)],
            [{"StringEqualsIfExists": kept}],
        ),
        (
            f"{sid}Untag",
            [each for each in actions if _UNTAGGING.search(each)],
            [{"ForAllValues:StringNotEquals": {"aws:TagKeys": list(plan.owner_tags)}}],
        ),
    )
    return [_statement(name, chosen, resources, [*conditions, *further]) for name, chosen, further in groups if chosen]


def _values(plan: Plan, account: AwsAccount) -> Values:
    """Return the values in the rules' resources; one without a value omits its resource."""
    storage = plan.spec.storage
    bucket = storage.existing.bucket if storage and storage.existing else bucket_name(plan, account.id)
    certificates = (
        (f"arn:{account.partition}:s3:::{certificate_bucket_name(plan, account.id)}",)
        if makes_certificate_bucket(plan)
        else ()
    )
    plans = sorted({arn for group in plan.own_groups if (arn := group.spec.training_plan_arn)})
    return {
        **account.values(),
        "bucket": bucket,
        "certificates": certificates,
        "certificate_objects": tuple(f"{each}/*" for each in certificates),
        "eks": plan.eks_name,
        "log_group": log_group(plan),
        "topic": topic_name(plan),
        "event_rules": tuple(account.arn("events", f"rule/{event_rule_name(plan, each)}") for each in EVENT_RULES),
        "roles": _made_role_arns(plan, account),
        "pod_roles": pod_roles(plan),
        "repositories": (account.arn("ecr", f"repository/{repository_prefix(plan)}*"),)
        if repositories_of(plan)
        else (),
        "images": tuple(f"arn:{account.partition}:ec2:{account.region}::image/{image}" for image in _images(plan)),
        "storage_key": (storage.kms_key_arn,) if storage is not None and storage.kms_key_arn else (),
        "training_plans": tuple(plans),
        "reserved_capacity": (account.arn("sagemaker", "reserved-capacity/*"),) if plans else (),
    }


def _images(plan: Plan) -> list[str]:
    """Return the AMIs of the account's own that groups run."""
    return sorted({image for group in created_groups(plan) if (image := group.spec.image_id) not in (None, "default")})


def _vpcs(plan: Plan, live: Sequence[LiveResource]) -> list[str]:
    """Return the id of the stack's VPC: any before it exists."""
    existing = plan.spec.network.existing
    made = [each.arn.rpartition("/")[2] for each in live if ":vpc/" in each.arn]
    return [existing.vpc_id] if existing else made or ["*"]


def _conditions(
    plan: Plan, account: AwsAccount, actions: Iterable[str], live: Sequence[LiveResource]
) -> dict[str, dict[str, Any]]:
    services = {"Bool": {"kms:GrantIsForAWSResource": "true"}}
    boundary = plan.spec.permissions_boundary
    managed = {"ArnEquals": {"iam:PolicyARN": _managed(plan, account)}}
    # A service's own tags exist even if hpkit doesn't manage the environment's tags.
    others: dict[str, dict[str, Any]] = {
        "FOR_SERVICES": services,
        "MANAGED_POLICIES": managed,
        "BOUNDARY": {"StringEquals": {"iam:PermissionsBoundary": boundary}} if boundary else {},
        "BY_ECR": {"StringEquals": {"kms:ViaService": f"ecr.{account.region}.amazonaws.com"}},
        "GUARDDUTY": {"StringEquals": {"aws:ResourceTag/GuardDutyManaged": "true"}},
        "GUARDDUTY_SERVICE": {"StringLike": {"ec2:VpceServiceName": "*.guardduty-data*"}},
        "VPC": {"ArnLike": {"ec2:Vpc": [account.arn("ec2", f"vpc/{vpc}") for vpc in _vpcs(plan, live)]}},
        # No file names a custom image's snapshots. A tag on them marks them as the organization's.
        "ORGANIZATION": {"StringEquals": {"aws:ResourceTag/hpkit:organization": plan.organization}},
        "NOT_PUBLIC": {"Null": {"ec2:Add/group": "true"}},
        # As Route 53 writes them.
        "VPCS": {
            "ForAnyValue:StringLike": {
                "route53:VPCs": [f"VPCId={vpc},VPCRegion={plan.spec.region}" for vpc in _vpcs(plan, live)]
            }
        },
    }
    tags = plan.owner_tags
    own = {f"aws:ResourceTag/{key}": value for key, value in tags.items()}
    tagged = [rule.actions for rule in rules() if rule.conditions == ("NEW",) and rule.service == "ec2"]
    creates = sorted(name.removeprefix("ec2:") for name in frozenset().union(*tagged).intersection(actions))
    if not plan.spec.manage_tags:
        # Nothing identifies this environment's resources, because their tags aren't hpkit's.
        return {**{name: {} for name in _BY_TAGS}, **others}
    return {
        "NEW": {"StringEquals": {f"aws:RequestTag/{key}": value for key, value in tags.items()}},
        "OWN": {"StringEquals": own},
        "UNTAGGED": {
            "Null": dict.fromkeys(own, "true"),
            "ForAllValues:StringEquals": {"aws:TagKeys": sorted({*plan.tags, "Name"})},
        },
        "EC2_CREATES": {"StringEquals": {"ec2:CreateAction": creates}},
        "SAGEMAKER_CREATES": {"StringEquals": {"sagemaker:TaggingAction": list(_SAGEMAKER_CREATES)}},
        **others,
    }


def _managed(plan: Plan, account: AwsAccount) -> list[str]:
    """Return the policies of the stack's roles. No others may be attached, or deployers could grant themselves all."""
    return sorted(managed_policy(account, name) for role in made_roles(plan) for name in role.managed)


def _passed(plan: Plan, account: AwsAccount, types: frozenset[str]) -> list[dict[str, Any]]:
    """Return statements about roles that are handed to services: the program's own, and those the file names."""
    prefix = account.role_arn(f"{_role_prefix(plan)}*")
    own = {purpose: [account.role_arn(role_name(plan, purpose))] for purpose in _PASSED}
    karpenter = cluster_role(plan)
    used = {
        "karpenter": ([] if not makes_karpenter_role(plan) else own["karpenter"]) + ([karpenter] if karpenter else []),
        "nodes": (own["nodes"] if makes_node_role(plan) else []) + list(execution_roles(plan)),
    }
    passed = {
        purpose: (used.get(purpose, own[purpose]), services)
        for purpose, (token, services) in _PASSED.items()
        if token in types
    }
    routed = plan.spec.spaces is not None and plan.spec.spaces.web_ui is not None
    made = routed or makes_keda_role(plan) or any(makes_pod_role(plan, addon) for addon in plan.addons)
    pods = [prefix] if made else []
    if types & _POD_IDENTITY:
        passed["pods"] = ([*pods, *pod_roles(plan)], ("pods.eks.amazonaws.com",))
    statements = [
        _statement(
            "Pass" + "".join(word.capitalize() for word in purpose.split("-")),
            ["iam:PassRole"],
            arns,
            [{"StringEquals": {"iam:PassedToService": list(services)}}],
        )
        for purpose, (arns, services) in passed.items()
        if arns
    ]
    # EKS does not document to which service it passes these.
    accounts = list(service_account_roles(plan)) if _ADDON in types else []
    return statements + ([_statement("PassServiceAccounts", ["iam:PassRole"], accounts, [])] if accounts else [])


def _service_roles(account: AwsAccount, types: frozenset[str]) -> list[dict[str, Any]]:
    services = sorted(service for token, service in _SERVICE_ROLES.items() if token in types)
    if not services:
        return []
    resources = [account.role_arn(f"aws-service-role/{service}/*") for service in services]
    condition = {"StringEquals": {"iam:AWSServiceName": services}}
    statements = [_statement("ServiceLinkedRoles", ["iam:CreateServiceLinkedRole"], resources, [condition])]
    if _LINK in types:
        # FSx for Lustre user guide, "Permissions for linking to an S3 bucket".
        role = account.role_arn(f"aws-service-role/{_SERVICE_ROLES[_LINK]}/*")
        statements.append(_statement("FileSystemLinkRole", ["iam:AttachRolePolicy", "iam:PutRolePolicy"], [role], []))
    return statements


def _kept_boundary(plan: Plan) -> list[dict[str, Any]]:
    """Return what prevents changes to the boundary, regardless of the deployer's other permissions.

    Source: IAM user guide, permissions boundaries, "Delegating responsibility to others using permissions boundaries".
    """
    boundary = plan.spec.permissions_boundary
    if boundary is None:
        return []
    removal = _statement("KeepBoundary", ["iam:DeleteRolePermissionsBoundary"], ["arn:*:iam::*:role/*"], [])
    changes = ["CreatePolicyVersion", "DeletePolicy", "DeletePolicyVersion", "SetDefaultPolicyVersion"]
    changed = _statement("KeepBoundaryPolicy", [f"iam:{each}" for each in changes], [boundary], [])
    return [{**each, "Effect": "Deny"} for each in (removal, changed)]


def _made_role_arns(plan: Plan, account: AwsAccount) -> tuple[str, ...]:
    """Return ARN patterns of the roles that the program creates."""
    connected = plan.spec.spaces is not None and plan.spec.spaces.remote_access
    named_roles = [
        *([inference_role_name(plan)] if plan.spec.inference is not None else []),
        *([spaces_role_name(plan)] if connected else []),
    ]
    ours = (f"{_role_prefix(plan)}*",) if made_roles(plan) else ()
    return tuple(account.role_arn(name) for name in (*ours, *named_roles))


def _role_prefix(plan: Plan) -> str:
    """Return the prefix of all of the stack's role names, including those that are cut to IAM's limit."""
    # For an existing cluster, the stack creates only members' roles. Others with such names belong to another stack.
    purposes = ("team-a", "team-b", "team-" + "x" * 64) if plan.spec.cluster.existing else ("a", "b", "x" * 64)
    names = (role_name(plan, purpose) for purpose in purposes)
    return "".join(
        letters[0] for letters in takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False))
    )


def _statement(sid: str, actions: list[str], resources: list[str], conditions: list[dict[str, Any]]) -> dict[str, Any]:
    statement: dict[str, Any] = {"Sid": sid, "Effect": "Allow", "Action": actions, "Resource": resources}
    merged: dict[str, Any] = {}
    for condition in conditions:
        for operator, keys in condition.items():
            merged[operator] = {**merged.get(operator, {}), **keys}
    return {**statement, "Condition": merged} if merged else statement


def _pack(statements: Iterable[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    packed: list[list[dict[str, Any]]] = [[]]
    for statement in statements:
        if packed[-1] and len(json.dumps(_document([*packed[-1], statement]), separators=(",", ":"))) > SIZE_LIMIT:
            packed.append([])
        packed[-1].append(statement)
    return packed


def _document(statements: list[dict[str, Any]]) -> dict[str, Any]:
    return {"Version": "2012-10-17", "Statement": statements}
