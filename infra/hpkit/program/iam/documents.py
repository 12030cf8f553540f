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
    "bucket_policy",
    "console_document",
    "fill",
    "grafana_policy",
    "inference_policy",
    "instance_role_policy",
    "karpenter_role_policy",
    "keda_policy",
    "key_policy",
    "load_balancer_policy",
    "lustre_policy",
    "member_trust",
    "metrics_policy",
    "models_policy",
    "outsider_document",
    "pod_trust",
    "policy_of_members",
    "read",
    "router_policy",
    "sagemaker_trust",
    "scientist_policy",
    "secrets_key_policy",
    "service_trust",
    "space_policy",
    "space_trust",
    "team_buckets_policy",
    "topic_policy",
    "trust_of_members",
    "volumes_policy",
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


def service_trust(account: AwsAccount, service: str, *, from_account: bool = True) -> Document:
    """Let a service assume the role; `from_account`: for resources of this account only."""
    name = "service-trust-from-account" if from_account else "service-trust"
    return _document(name, account, service=service)


def sagemaker_trust(account: AwsAccount) -> Document:
    """Let SageMaker assume the role, except for jobs that identify themselves to IAM.

    HyperPod isn't on the service's list of features that send a source, so a condition can't require one.
    """
    return _document("sagemaker-trust", account)


def pod_trust(account: AwsAccount, cluster_arn: str) -> Document:
    """Let EKS Pod Identity assume the role, for pods of this cluster only."""
    return _document("pod-trust", account, cluster=cluster_arn)


def web_identity_trust(
    *,
    provider_arn: str,
    issuer: str,
    namespace: str,
    service_account: str,
    endpoint_account: AwsAccount | None = None,
) -> Document:
    """Let pods of one service account assume the role through the OIDC provider.

    issuer: address of the provider, with or without `https://`. endpoint_account: the account where SageMaker assumes
    the role as well, None without.
    """
    pods = _document(
        "web-identity-trust",
        provider=provider_arn,
        issuer=issuer.removeprefix("https://"),
        namespace=namespace,
        service_account=service_account,
    )
    others = [] if endpoint_account is None else sagemaker_trust(endpoint_account)["Statement"]
    return {**pods, "Statement": [*pods["Statement"], *others]}


def member_trust(account: AwsAccount, ways: Mapping[str, Mapping[str, str | Sequence[str]]]) -> Document:
    """Let people assume a team's role; ways: `permission-sets`, `principals`, `saml`, `oidc` → the values of each."""
    documents = [_document(f"member-trust-{way}", account, **values) for way, values in ways.items()]
    return {"Version": "2012-10-17", "Statement": [each for document in documents for each in document["Statement"]]}


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
    return _document(
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


def karpenter_role_policy(account: AwsAccount) -> Document:
    """Return the permissions of managed Karpenter."""
    return _document("karpenter-role", account)


def metrics_policy(account: AwsAccount, workspace_arn: str) -> Document:
    """Return the permissions of the observability add-on's collector."""
    return _document("metrics", account, workspace=workspace_arn)


def grafana_policy(
    account: AwsAccount, *, eks: str, workspace_arn: str | None, topic_arn: str | None = None
) -> Document:
    """Return Managed Grafana's permissions on CloudWatch, and on a Managed Prometheus workspace, if given.

    eks: name of the EKS cluster, whose container logs it reads; topic_arn: the topic of its alert rules.
    """
    return _document(
        "grafana",
        account,
        eks=eks,
        workspace=workspace_arn or (),
        listed="*" if workspace_arn is not None else (),
        topic=topic_arn or (),
    )


def volumes_policy(cluster_arn: str, eks_arn: str) -> Document:
    """Return the permissions that the EBS CSI driver needs to attach volumes to nodes of a HyperPod cluster."""
    return _document("volumes", nodes=cluster_arn, cluster=eks_arn)


def keda_policy(workspace_arn: str | None, *, cloudwatch: bool = True, queues: Sequence[str] = ()) -> Document:
    """Return KEDA's permissions to scale by CloudWatch metrics, a workspace's metrics (None: none), and SQS queues."""
    return _document("keda", workspace=workspace_arn or (), metrics="*" if cloudwatch else (), queues=queues)


def outsider_document(account: AwsAccount, *, roles: Sequence[str]) -> Document:
    """Return what to deny to roles that can use SageMaker and don't belong to the platform; roles: the platform's."""
    return _document("deny-outsiders", account, roles=roles)


def console_document(account: AwsAccount, *, eks: str) -> Document:
    """Return the AWS permissions of people who view a cluster in the console."""
    return _document("console", account, eks=eks)


def scientist_policy(
    account: AwsAccount, *, eks: str, tags: Mapping[str, str], repositories: Sequence[str] = ()
) -> Document:
    """Return the AWS permissions of a data scientist's role.

    tags: of the HyperPod cluster, empty if it has none; repositories: names of those that the team pushes to.
    """
    document = _document(
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


def inference_policy(account: AwsAccount, bucket: str) -> Document:
    """Return the inference operator's permissions on its certificate bucket."""
    return _document("inference", account, certificates=bucket)


def models_policy(account: AwsAccount, buckets: Sequence[str]) -> Document:
    """Return the S3 CSI driver's permissions to read models in these buckets."""
    arns = [f"arn:{account.partition}:s3:::{bucket}" for bucket in buckets]
    return _document("models", model_buckets=arns, model_objects=[f"{arn}/*" for arn in arns])


def team_buckets_policy(account: AwsAccount, buckets: Sequence[TeamBucket]) -> Document:
    """Return the permissions of a team's pods on its buckets; a list of a bucket shows only the team's prefix."""
    arns = [f"arn:{account.partition}:s3:::{each.bucket}" for each in buckets]
    objects = [f"{arn}/{each.prefix or ''}*" for arn, each in zip(arns, buckets, strict=True)]
    keys = [(each.kms_key_arn, each.read_only) for each in buckets if each.kms_key_arn]
    document = _document(
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
            part = _document("team-prefix", account, part=[arn], prefixes=[each.prefix, f"{each.prefix}*"])
            document["Statement"] += part["Statement"]
    return document


def load_balancer_policy(account: AwsAccount) -> Document:
    """Return the permissions of the AWS Load Balancer Controller."""
    return _document("load-balancers", account)


def space_trust(account: AwsAccount) -> Document:
    """Let Systems Manager assume the role, for managed nodes of this account and region only."""
    return _document("space-trust", account)


def space_policy(account: AwsAccount) -> Document:
    """Return the permissions of the Systems Manager agent in a space's pod."""
    return _document("space", account)


def router_policy(key_arn: str) -> Document:
    """Return the web UI router's permissions on the key of its tokens."""
    return _document("router", key=key_arn)


def topic_policy(account: AwsAccount, *, topic_arn: str, workspace_arn: str | None, events: bool) -> Document:
    """Let Managed Prometheus publish to the topic for only one workspace, and EventBridge if `events` is set.

    workspace_arn: None without Managed Prometheus.
    """
    metrics = {} if workspace_arn is None else _document("topic", account, topic=topic_arn, workspace=workspace_arn)
    cluster = _document("topic-events", topic=topic_arn)
    statements = [*metrics.get("Statement", ()), *(cluster["Statement"] if events else ())]
    return {**cluster, "Statement": statements}


def lustre_policy(file_system_arn: str) -> Document:
    """Return the FSx CSI driver's permissions to mount an existing file system."""
    return _document("lustre", file_system=file_system_arn)


def key_policy(account: AwsAccount, log_group: str) -> Document:
    """Return the policy of the platform's key."""
    return _document("key", account, log_group=log_group)


def secrets_key_policy(key_arn: str) -> Document:
    """Return the control plane role's permissions on the key of the Kubernetes Secrets."""
    return _document("secrets-key", key=key_arn)


def bucket_policy(
    bucket_arn: str, *, owner: str = "Deployers", writers: Sequence[str], keepers: Sequence[str], sealed: bool
) -> Document:
    """Reject every request to the bucket without TLS, and every change except by its writers and keepers.

    writers: of objects; owner: their name; keepers: of the bucket's settings; both are ARN patterns. sealed: only
    keepers can change the policy itself.
    """
    return _document(
        "bucket",
        bucket=bucket_arn,
        whose=owner,
        writers=writers,
        keepers=keepers,
        sealed_bucket=bucket_arn if sealed else (),
    )


def _document(name: str, account: AwsAccount | None = None, **values: str | Sequence[str]) -> Document:
    known = {**(account.values() if account else {}), **values}
    statements = [fill(statement, known) for statement in read("documents")[name]]
    # Trust policies have no resources at all; IAM would reject a statement that has none left.
    return {"Version": "2012-10-17", "Statement": [each for each in statements if each.get("Resource") != []]}


# The address that a browser posts to on each partition's sign-in page.
_SIGN_IN = {"aws-cn": "https://signin.amazonaws.cn/saml", "aws-us-gov": "https://signin.amazonaws-us-gov.com/saml"}


def policy_of_members(plan: Plan, team: TeamPlan, account: AwsAccount) -> Document:
    """Return the policy that the roles of a team's members need, and no more."""
    own = ("hpkit:organization", "hpkit:environment")
    # The cluster of another stack or tool has other tags, or none.
    is_tagged = plan.spec.manage_tags and not plan.spec.cluster.existing
    return scientist_policy(
        account,
        eks=plan.eks_name,
        tags={key: plan.tags[key] for key in own} if is_tagged else {},
        repositories=[repository.name for repository in repositories_of(plan, team)],
    )


def trust_of_members(role: MemberRole, account: AwsAccount) -> Document:
    """Return the trust policy of a team's role: a statement for each key of `memberRole`."""
    folder = f"arn:{account.partition}:iam::{account.id}:role/aws-reserved/sso.amazonaws.com"
    # Identity Center adds its region to the name, except in us-east-1.
    sets = [f"{folder}{way}/AWSReservedSSO_{name}_*" for name in role.permission_sets for way in ("", "/*")]
    parts: dict[str, dict[str, str | list[str]]] = {
        "permission-sets": {"sets": sets} if sets else {},
        "principals": {"principals": list(role.principals)} if role.principals else {},
    }
    if role.saml_provider is not None:
        audience = _SIGN_IN.get(account.partition, "https://signin.aws.amazon.com/saml")
        parts["saml"] = {"provider": role.saml_provider, "audience": audience}
    if (oidc := role.oidc) is not None:
        parts["oidc"] = {"provider": oidc.provider, "audience": oidc.audience, "subjects": list(oidc.subjects)}
    return member_trust(account, {way: values for way, values in parts.items() if values})
