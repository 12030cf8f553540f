"""Names of AWS resources: the same on every run, and within each service's limit."""

import hashlib

from hpkit.config.models.organization import Environment
from hpkit.plan.model import Plan

__all__ = [
    "EVENT_RULES",
    "GROUP_PREFIX",
    "bounded",
    "bucket_name",
    "certificate_bucket_name",
    "event_rule_name",
    "inference_role_name",
    "log_group",
    "member_role_name",
    "names_of_teams",
    "partition_of",
    "role_name",
    "short_type",
    "spaces_role_name",
    "topic_name",
]

# Kubernetes groups of data scientists, one per team.
GROUP_PREFIX = "hyperpod:team:"
# The subjects of a cluster's EventBridge rules: its status, node health, and other events.
EVENT_RULES = ("cluster-status", "node-health", "cluster-event")
_ROLE_LIMIT = 64
_BUCKET_LIMIT = 63
_TOPIC_LIMIT = 256
_EVENT_RULE_LIMIT = 64
_HASH_LENGTH = 6


def bounded(name: str, limit: int) -> str:
    """Return the name. If it exceeds the limit, it's cut and gets six digits of its hash."""
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:_HASH_LENGTH]
    return f"{name[: limit - _HASH_LENGTH - 1].rstrip('-')}-{digest}"


def names_of_teams(stack: str, spec: Environment) -> str:
    """Return what the names of members' roles and of repositories begin with: the stack's name.

    For an existing cluster, `policyName` comes first: resources that another stack created keep their names.
    """
    named = spec.governance.policy_name if spec.cluster.existing and spec.governance else None
    return named or stack


def role_name(plan: Plan, purpose: str) -> str:
    """Return the name of a role or policy; IAM is global, so the region is part of it (64 characters at most)."""
    return bounded(f"{names_of_teams(plan.stack, plan.spec)}-{plan.spec.region}-{purpose}", _ROLE_LIMIT)


def member_role_name(stack: str, spec: Environment, team: str) -> str:
    """Return the name of the role that the program creates for a team's members (at most 64 characters)."""
    return bounded(f"{names_of_teams(stack, spec)}-{spec.region}-team-{team}", _ROLE_LIMIT)


def bucket_name(plan: Plan, account: str) -> str:
    """Return the name of the lifecycle bucket.

    The managed policy AmazonSageMakerClusterInstanceRolePolicy lets nodes read buckets whose names begin with
    `sagemaker-`. Names are global, so they contain account and region (at most 63 characters).
    """
    tail = f"-{account}-{plan.spec.region}"
    return bounded(f"sagemaker-{plan.stack}", _BUCKET_LIMIT - len(tail)) + tail


def certificate_bucket_name(plan: Plan, account: str) -> str:
    """Return the name of the bucket of the inference operator's certificates (63 characters at most)."""
    tail = f"-{account}-{plan.spec.region}"
    return bounded(f"hyperpod-tls-{plan.stack}", _BUCKET_LIMIT - len(tail)) + tail


def inference_role_name(plan: Plan) -> str:
    """Return the name of the inference operator's role (64 characters at most).

    The add-on takes no role whose name begins otherwise, nor does its managed policy (aws/sagemaker-hyperpod-cli,
    inference-operator/templates/_validateRequiredValues.tpl).
    """
    return bounded(f"SageMakerHyperPodInference-{plan.stack}-{plan.spec.region}", _ROLE_LIMIT)


def spaces_role_name(plan: Plan) -> str:
    """Return the name of the role of spaces that are connected by Systems Manager (64 characters at most).

    The controller can pass no role whose name begins otherwise (AmazonSageMakerSpacesControllerPolicy).
    """
    return bounded(f"sagemaker-space-{plan.stack}-{plan.spec.region}", _ROLE_LIMIT)


def topic_name(plan: Plan) -> str:
    """Return the name of the SNS topic of alerts, which is of one region (256 characters at most)."""
    return bounded(f"{plan.stack}-alerts", _TOPIC_LIMIT)


def event_rule_name(plan: Plan, purpose: str) -> str:
    """Return the name of an EventBridge rule, which is of one region (64 characters at most)."""
    return bounded(f"{plan.stack}-{purpose}", _EVENT_RULE_LIMIT)


def grafana_topic_arn(plan: Plan, account: str) -> str | None:
    """Return the SNS topic of Grafana's alert rules, None without one; account: 12 digits.

    This is the topic of `grafanaAlerts`, or of `alerts`, which the program creates if emails are given.
    """
    spec = plan.spec.observability
    if spec is None or spec.grafana_alerts is None:
        return None
    named = spec.grafana_alerts.sns_topic_arn or (spec.alerts.sns_topic_arn if spec.alerts else None)
    region = plan.spec.region
    return named or f"arn:{partition_of(region)}:sns:{region}:{account}:{topic_name(plan)}"


def log_group(plan: Plan) -> str:
    """Return the name of the log group to which EKS writes control-plane logs; it can't be chosen."""
    return f"/aws/eks/{plan.stack}/cluster"


def partition_of(region: str) -> str:
    """Return a region's partition, derived from the region's name.

    Source: AWS General Reference, Amazon Resource Names.
    """
    prefixes = {"cn-": "aws-cn", "us-gov-": "aws-us-gov", "eusc-": "aws-eusc"}
    return next((name for prefix, name in prefixes.items() if region.startswith(prefix)), "aws")


def short_type(token: str) -> str:
    """Return a short form of a type's token: `ec2.Subnet` for `aws:ec2/subnet:Subnet`."""
    package, _, rest = token.partition(":")
    module, _, name = rest.rpartition(":")
    return f"{module.partition('/')[0] if package == 'aws' else package}.{name}"
