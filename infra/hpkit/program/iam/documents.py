"""IAM documents of the platform's roles, key and lifecycle bucket; their contents are in data/documents.yaml."""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import yaml

from hpkit.config.models.member_role import MemberRole
from hpkit.config.models.storage import TeamBucket
from hpkit.plan.model import Plan, TeamPlan
from hpkit.plan.registry import repositories_of
from hpkit.program.iam.live import AwsAccount

__all__ = [
    "Document",
    "Values",
    "fill",
    "iam_document",
    "instance_role_policy",
    "policy_of_members",
    "read",
    "scientist_policy",
    "team_buckets_policy",
    "topic_policy",
    "trust_of_members",
    "web_identity_trust",
]

# The value of a placeholder: one text, or any number of them if the placeholder is a whole list entry.
Values = Mapping[str, str | Sequence[str]]

# `${aws:PrincipalAccount}` is IAM's own.
_PLACEHOLDER = re.compile(r"(?<!\$)\{(\w+)\}")


@cache
def read(name: str) -> Any:
    """Return the contents of a file in this package's data."""
    text = (files("hpkit.program.iam") / "data" / f"{name}.yaml").read_text(encoding="utf-8")
    # Written in C, the safe loader reads a thousand lines in a tenth of the time.
    return yaml.load(text, Loader=yaml.CSafeLoader)


def fill(template: Any, values: Values) -> Any:
    """Return the template with its placeholders filled in; raises KeyError if a placeholder has no value."""
    if isinstance(template, str):
        return _PLACEHOLDER.sub(lambda found: _text(values, found[1]), template)
    if isinstance(template, list):
        return [filled for each in template for filled in _entries(each, values)]
    if isinstance(template, dict):
        return {fill(key, values): fill(item, values) for key, item in template.items()}
    return template


def _entries(template: Any, values: Values) -> Iterable[Any]:
    whole = _PLACEHOLDER.fullmatch(template) if isinstance(template, str) else None
    if whole is None:
        return [fill(template, values)]
    value = values[whole[1]]
    return [value] if isinstance(value, str) else value


def _text(values: Values, name: str) -> str:
    value = values[name]
    if not isinstance(value, str):
        raise KeyError(f"{name} has no single value: {value}")
    return value


Document = dict[str, Any]


def iam_document(name: str, account: AwsAccount | None = None, /, **values: str | Sequence[str] | None) -> Document:
    """Return a document of data/documents.yaml with its placeholders filled in; None is no value."""
    known = {**(account.values() if account else {}), **{key: value or () for key, value in values.items()}}
    statements = [fill(statement, known) for statement in read("documents")[name]]
    # Trust policies have no resources at all; IAM would reject a statement that has none left.
    return {"Version": "2012-10-17", "Statement": [each for each in statements if each.get("Resource") != []]}


def web_identity_trust(
    *, provider_arn: str, issuer: str, namespace: str, service_account: str, endpoint_account: AwsAccount | None = None
) -> Document:
    """Let pods of one service account assume the role through the OIDC provider.

    issuer: address of the provider, with or without `https://`. endpoint_account: the account where SageMaker assumes
    the role as well, None without.
    """
    pods = iam_document(
        "web-identity-trust",
        provider=provider_arn,
        issuer=issuer.removeprefix("https://"),
        namespace=namespace,
        service_account=service_account,
    )
    others = [] if endpoint_account is None else iam_document("sagemaker-trust", endpoint_account)["Statement"]
    return {**pods, "Statement": [*pods["Statement"], *others]}


def instance_role_policy(
    account: AwsAccount,
    *,
    eks_arn: str,
    bucket_arn: str | None,
    key_arn: str | None = None,
    vpc_id: str,
    subnet_ids: Sequence[str],
    security_group_ids: Sequence[str],
    volume_keys: Sequence[str] = (),
    watches_alarms: bool = False,
    pulled: Sequence[str] | None = None,
) -> Document:
    """Return an instance group's execution role's EKS permissions, in addition to its AWS managed policy.

    - bucket_arn: the bucket of lifecycle scripts, None without any.
    - key_arn: the key that encrypts them, None for S3's own.
    - volume_keys: ARNs or IDs of the KMS keys of nodes' volumes.
    - watches_alarms: alarms roll back updates of the group.
    - pulled: names of the repositories of this account that nodes pull from, None for all.
    """
    any_images = f"arn:{account.partition}:ecr:*:*:repository/*"
    return iam_document(
        "instance-role",
        account,
        cluster=eks_arn,
        vpc=account.arn("ec2", f"vpc/{vpc_id}"),
        subnets=[account.arn("ec2", f"subnet/{subnet}") for subnet in subnet_ids],
        security_groups=[account.arn("ec2", f"security-group/{group}") for group in security_group_ids],
        bucket=bucket_arn or (),
        scripts=f"{bucket_arn}/*" if bucket_arn else (),
        key=key_arn if bucket_arn and key_arn else (),
        volume_keys=[key if key.startswith("arn:") else account.arn("kms", f"key/{key}") for key in volume_keys],
        alarms="*" if watches_alarms else (),
        any_images=any_images if pulled is None else (),
        others_images=() if pulled is None else any_images,
        own_images=[account.arn("ecr", f"repository/{name}") for name in pulled or ()],
    )


def scientist_policy(
    account: AwsAccount, *, eks: str, tags: Mapping[str, str], repositories: Sequence[str] = ()
) -> Document:
    """Return the AWS permissions of a data scientist's role.

    tags: of the HyperPod cluster, empty if it has none; repositories: names of those that the team pushes to.
    """
    document = iam_document(
        "scientist",
        account,
        eks=account.arn("eks", f"cluster/{eks}"),
        login="*" if repositories else (),
        repositories=[account.arn("ecr", f"repository/{name}") for name in repositories],
    )
    if tags:
        of_stack = {f"aws:ResourceTag/{key}": value for key, value in sorted(tags.items())}
        document["Statement"][0]["Condition"] = {"StringEquals": of_stack}
    return document


def team_buckets_policy(account: AwsAccount, buckets: Sequence[TeamBucket]) -> Document:
    """Return the permissions of a team's pods on its buckets; a list of a bucket shows only the team's prefix."""
    arns = [f"arn:{account.partition}:s3:::{each.bucket}" for each in buckets]
    objects = [f"{arn}/{each.prefix or ''}*" for arn, each in zip(arns, buckets, strict=True)]
    keys = [(each.kms_key_arn, each.read_only) for each in buckets if each.kms_key_arn]
    document = iam_document(
        "team-bucket",
        account,
        read=objects,
        written=[place for place, each in zip(objects, buckets, strict=True) if not each.read_only],
        whole=[arn for arn, each in zip(arns, buckets, strict=True) if not each.prefix],
        deciphered=list(dict.fromkeys(key for key, _ in keys)),
        enciphered=list(dict.fromkeys(key for key, read_only in keys if not read_only)),
    )
    for arn, each in zip(arns, buckets, strict=True):
        if each.prefix:
            part = iam_document("team-prefix", account, part=[arn], prefixes=[each.prefix, f"{each.prefix}*"])
            document["Statement"] += part["Statement"]
    return document


def topic_policy(account: AwsAccount, *, topic_arn: str, workspace_arn: str | None, events: bool) -> Document:
    """Let Managed Prometheus publish to the topic for only one workspace, and EventBridge if `events` is set.

    workspace_arn: None without Managed Prometheus.
    """
    metrics = {} if workspace_arn is None else iam_document("topic", account, topic=topic_arn, workspace=workspace_arn)
    cluster = iam_document("topic-events", topic=topic_arn)
    statements = [*metrics.get("Statement", ()), *(cluster["Statement"] if events else ())]
    return {**cluster, "Statement": statements}


# The address that a browser posts to on each partition's sign-in page.
_SIGN_IN = {"aws-cn": "https://signin.amazonaws.cn/saml", "aws-us-gov": "https://signin.amazonaws-us-gov.com/saml"}


def policy_of_members(plan: Plan, team: TeamPlan, account: AwsAccount) -> Document:
    """Return the policy that the roles of a team's members need, and no more."""
    # The cluster of another stack or tool has other tags, or none.
    is_tagged = plan.spec.manage_tags and not plan.spec.cluster.existing
    return scientist_policy(
        account,
        eks=plan.eks_name,
        tags=plan.owner_tags if is_tagged else {},
        repositories=[repository.name for repository in repositories_of(plan, team)],
    )


def trust_of_members(role: MemberRole, account: AwsAccount) -> Document:
    """Return the trust policy of a team's role: a statement for each key of `memberRole`."""
    folder = f"arn:{account.partition}:iam::{account.id}:role/aws-reserved/sso.amazonaws.com"
    # Identity Center adds its region to the name, except in us-east-1.
    sets = [f"{folder}{way}/AWSReservedSSO_{name}_*" for name in role.permission_sets for way in ("", "/*")]
    ways: dict[str, dict[str, str | list[str]]] = {
        "permission-sets": {"sets": sets} if sets else {},
        "principals": {"principals": list(role.principals)} if role.principals else {},
    }
    if role.saml_provider is not None:
        audience = _SIGN_IN.get(account.partition, "https://signin.aws.amazon.com/saml")
        ways["saml"] = {"provider": role.saml_provider, "audience": audience}
    if (oidc := role.oidc) is not None:
        ways["oidc"] = {"provider": oidc.provider, "audience": oidc.audience, "subjects": list(oidc.subjects)}
    documents = [iam_document(f"member-trust-{way}", account, **values) for way, values in ways.items() if values]
    return {"Version": "2012-10-17", "Statement": [each for document in documents for each in document["Statement"]]}
