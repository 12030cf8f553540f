"""Managed Karpenter: which groups it owns and how far it may go."""

from typing import Annotated, Final, Literal

from pydantic import Field

from hpkit.config.models.base import IMAGE_PATTERN, Api, Model, Name, Quantity, amount
from hpkit.config.models.cluster import Taint

__all__ = ["Autoscaling", "Budget", "Disruption", "Keda", "NodeClass", "NodePool", "Requirement", "WarmPool"]


# Formats in the NodePool's CRD; a test compares them.
_SCHEDULE: Final = (
    r"^(?:@(?:annually|yearly|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*/,?-]+(?:\s[0-9A-Za-z*/,?-]+){4})$"
)
_WINDOW: Final = r"^(?:[0-9]+[hm]|[0-9]+h[0-9]+m)(?:0s)?$"
_DURATION: Final = r"^(?:(?:[0-9]+(?:s|m|h))+|Never)$"
_MOST_BUDGETS: Final = 50
_MOST_LABELS: Final = 100
_MOST_REQUIREMENTS: Final = 100
_QUEUE: Final = r"^arn:aws[a-z-]*:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,80}(?:\.fifo)?$"


class NodeClass(Model):
    """A HyperpodNodeClass: the instance groups that Karpenter fills."""

    name: Name = Field(description="Name of the HyperpodNodeClass.", examples=["burst"])
    instance_groups: tuple[str, ...] = Field(
        description="Names of 1–10 groups that start at count 0.", examples=["burst-a"]
    )


class Requirement(Model):
    """A NodePool requirement."""

    key: str = Field(
        description="Label key of the instance type, zone or architecture.",
        examples=["node.kubernetes.io/instance-type"],
        json_schema_extra={"values": "requirementKeys"},
    )
    operator: str = Field(description="In or Exists.", examples=["In"], json_schema_extra={"values": "operators"})
    values: tuple[str, ...] = Field(
        default=(),
        description="Values for In.",
        examples=["ml.g5.8xlarge"],
        json_schema_extra={"values": "instanceTypeNames"},
    )


class Budget(Model):
    """How many nodes Karpenter may disrupt at once."""

    nodes: str = Field(
        pattern=r"^(?:[0-9]+|(?:100|[0-9]{1,2})%)$",
        description='Number or percentage of nodes, such as "10%".',
        examples=["10%"],
    )
    schedule: str | None = amount(
        "Start of the window in UTC: a cron expression with five fields, such as `0 9 * * mon-fri`, "
        "or a word such as `@daily`. Requires duration.",
        unit="UTC",
        default=None,
        example="0 9 * * mon-fri",
        pattern=_SCHEDULE,
    )
    duration: str | None = Field(
        default=None,
        pattern=_WINDOW,
        description="Length of the window in hours and minutes, such as `8h30m`.",
        examples=["8h30m"],
    )
    reasons: tuple[Literal["Underutilized", "Empty", "Drifted"], ...] = Field(
        default=(), description="Reasons that the budget applies to. Default: all.", max_length=50
    )


class Disruption(Model):
    """When Karpenter removes nodes."""

    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized"] = Field(
        default="WhenEmptyOrUnderutilized", description="Which nodes Karpenter removes."
    )
    consolidate_after: str = Field(
        default="5m",
        pattern=_DURATION,
        description="Idle time before removal, such as `5m`, or Never.",
        examples=["5m"],
    )
    budgets: tuple[Budget, ...] = Field(
        default=(), description="Limits of simultaneous disruption. Default: Karpenter's 10%.", max_length=_MOST_BUDGETS
    )


class WarmPool(Model):
    """Placeholder pods that keep nodes of a NodePool ready. Any other pod replaces them immediately."""

    replicas: int = amount("Number of placeholder pods.", unit="pods", example=2, ge=1, le=1000)
    requests: dict[str, Quantity] = Field(
        min_length=1,
        description="Requests of each placeholder: cpu, memory, nvidia.com/gpu. Use about the same as your pods.",
        examples=[{"nvidia.com/gpu": 1}],
        json_schema_extra={"unit": "of each pod", "keys": "podResources"},
    )
    image: str = Field(
        default="public.ecr.aws/eks-distro/kubernetes/pause:3.10",
        pattern=IMAGE_PATTERN,
        description="Image that only waits. In a closed network, use a registry that nodes can reach.",
        examples=["public.ecr.aws/eks-distro/kubernetes/pause:3.10"],
    )


class NodePool(Model):
    """A Karpenter NodePool (`karpenter.sh/v1`)."""

    name: Name = Field(description="Name of the NodePool.", examples=["inference"])
    node_class: str = Field(description="Name of a node class of this environment.", examples=["burst"])
    requirements: tuple[Requirement, ...] = Field(
        default=(),
        description="Instance types and zones that the pool may use. Default: all of its groups.",
        max_length=_MOST_REQUIREMENTS,
    )
    limits: dict[str, Quantity] = Field(
        default={},
        description="Maximum total of the pool's nodes: cpu, memory, nvidia.com/gpu, nodes.",
        examples=[{"nvidia.com/gpu": 16}],
        json_schema_extra={"unit": "of the whole pool", "keys": "limitResources"},
    )
    disruption: Disruption = Field(default=Disruption(), description="When nodes are removed.")
    expire_after: str = Field(
        default="Never", pattern=_DURATION, description="Node lifetime, such as `720h`, or Never.", examples=["720h"]
    )
    weight: int | None = amount(
        "Pools with a higher weight are tried first.", unit="none, a rank", default=None, example=10, ge=1, le=100
    )
    labels: dict[
        Annotated[str, Api("ClusterKubernetesLabelKey")], Annotated[str, Api("ClusterKubernetesLabelValue")]
    ] = Field(default={}, description="Labels of the nodes.", max_length=_MOST_LABELS, examples=[{"pool": "inference"}])
    taints: tuple[Taint, ...] = Field(default=(), description="Taints of the nodes.")
    warm_pool: WarmPool | None = Field(
        default=None,
        description="Placeholder pods that keep nodes ready. Any other pod replaces them immediately. Default: off.",
    )


class Keda(Model):
    """KEDA, which scales Deployments. Karpenter adds nodes for their pending pods."""

    cloudwatch: bool = Field(default=True, description="Allow reading all CloudWatch metrics of the account.")
    prometheus: bool = Field(
        default=True, description="Allow querying this environment's Managed Prometheus, if it exists."
    )
    sqs: tuple[Annotated[str, Field(pattern=_QUEUE)], ...] = Field(
        default=(),
        description="ARNs of SQS queues whose length it may read.",
        max_length=50,
        examples=["arn:aws:sqs:us-west-2:123456789012:requests"],
    )
    role: Annotated[str, Api("RoleArn")] | None = Field(
        default=None,
        description="Existing IAM role of KEDA's operator, for scalers that need other permissions. Default: "
        "hpkit creates one with the permissions above.",
        examples=["arn:aws:iam::123456789012:role/keda"],
    )


class Autoscaling(Model):
    """Managed Karpenter and KEDA of one environment; each works without the other."""

    node_classes: tuple[NodeClass, ...] = Field(
        default=(), description="Groups whose nodes Karpenter adds. Default: Karpenter is off, for KEDA alone."
    )
    node_pools: tuple[NodePool, ...] = Field(default=(), description="Node types and limits of Karpenter.")
    keda: Keda | None = Field(
        default=None,
        description="KEDA, which scales Deployments. Karpenter adds nodes for their pending pods. Default: off.",
    )
    cluster_role: Annotated[str, Api("RoleArn")] | None = Field(
        default=None,
        description="Existing IAM role of Karpenter. Default: hpkit creates one.",
        examples=["arn:aws:iam::123456789012:role/karpenter"],
    )
