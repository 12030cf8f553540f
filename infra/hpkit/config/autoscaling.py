"""Managed Karpenter: which groups it owns and how far it may go."""

from typing import Annotated, Final, Literal

from pydantic import Field

from hpkit.config.base import Api, Model, Name, Quantity
from hpkit.config.cluster import Taint

__all__ = ["Autoscaling", "Budget", "Disruption", "Keda", "NodeClass", "NodePool", "Requirement", "WarmPool"]


# Forms of the NodePool's CRD; a test holds them to it.
_SCHEDULE: Final = (
    r"^(?:@(?:annually|yearly|monthly|weekly|daily|midnight|hourly)|[0-9A-Za-z*/,?-]+(?:\s[0-9A-Za-z*/,?-]+){4})$"
)
_WINDOW: Final = r"^(?:[0-9]+[hm]|[0-9]+h[0-9]+m)(?:0s)?$"
_DURATION: Final = r"^(?:(?:[0-9]+(?:s|m|h))+|Never)$"
_MOST_BUDGETS: Final = 50
_QUEUE: Final = r"^arn:aws[a-z-]*:sqs:[a-z0-9-]+:[0-9]{12}:[A-Za-z0-9_-]{1,80}(?:\.fifo)?$"


class NodeClass(Model):
    """A HyperpodNodeClass: the instance groups that Karpenter fills."""

    name: Name = Field(description="Name of the HyperpodNodeClass.")
    instance_groups: tuple[str, ...] = Field(description="Names of 1–10 groups that start at count 0.")


class Requirement(Model):
    """A NodePool requirement."""

    key: str = Field(description="Label key: instance type, zone or architecture.")
    operator: str = Field(description="In or Exists.")
    values: tuple[str, ...] = Field(default=(), description="Values for In.")


class Budget(Model):
    """How many nodes Karpenter may disrupt at once."""

    nodes: str = Field(pattern=r"^(?:[0-9]+|(?:100|[0-9]{1,2})%)$", description='A number or percentage, "10%".')
    schedule: str | None = Field(
        default=None,
        pattern=_SCHEDULE,
        description="When the window begins, in UTC: a cron expression of five fields, such as `0 9 * * mon-fri`, or "
        "`@daily` and its like. With duration.",
    )
    duration: str | None = Field(
        default=None, pattern=_WINDOW, description="Length of the window in hours and minutes, such as `8h30m`."
    )
    reasons: tuple[Literal["Underutilized", "Empty", "Drifted"], ...] = Field(
        default=(), description="Underutilized, Empty, Drifted; absent: all of them.", max_length=50
    )


class Disruption(Model):
    """When Karpenter removes nodes."""

    consolidation_policy: Literal["WhenEmpty", "WhenEmptyOrUnderutilized"] = Field(
        default="WhenEmptyOrUnderutilized", description="WhenEmpty or WhenEmptyOrUnderutilized."
    )
    consolidate_after: str = Field(
        default="5m", pattern=_DURATION, description="Idle time before removal, such as `5m`, or Never."
    )
    budgets: tuple[Budget, ...] = Field(
        default=(), description="Absent: Karpenter's default of 10%.", max_length=_MOST_BUDGETS
    )


class WarmPool(Model):
    """Placeholder pods that keep nodes of a NodePool ready; any other pod takes their room at once."""

    replicas: int = Field(ge=1, le=1000, description="How many placeholder pods.")
    requests: dict[str, Quantity] = Field(
        min_length=1,
        description="What each holds free: cpu, memory, nvidia.com/gpu; about what a pod of yours asks for.",
    )
    image: str = Field(
        default="public.ecr.aws/eks-distro/kubernetes/pause:3.10",
        min_length=1,
        description="An image that sleeps; a closed network needs one in a registry that its nodes reach.",
    )


class NodePool(Model):
    """A Karpenter NodePool (`karpenter.sh/v1`)."""

    name: Name = Field(description="Name of the NodePool.")
    node_class: str = Field(description="Name of a node class of this environment.")
    requirements: tuple[Requirement, ...] = Field(
        default=(), description="Narrow the groups' types and zones; absent: all of them."
    )
    limits: dict[str, Quantity] = Field(
        default={}, description="Most that the pool may add up to: cpu, memory, nvidia.com/gpu, nodes."
    )
    disruption: Disruption = Field(default=Disruption(), description="When nodes are removed.")
    expire_after: str = Field(
        default="Never", pattern=_DURATION, description="Node lifetime, such as `720h`, or Never."
    )
    weight: int | None = Field(default=None, ge=1, le=100, description="Higher is tried first.")
    labels: dict[
        Annotated[str, Api("ClusterKubernetesLabelKey")], Annotated[str, Api("ClusterKubernetesLabelValue")]
    ] = Field(default={}, description="Labels of its nodes.")
    taints: tuple[Taint, ...] = Field(default=(), description="Taints of its nodes.")
    warm_pool: WarmPool | None = Field(default=None, description="Nodes kept ready by placeholder pods; absent = off.")


class Keda(Model):
    """KEDA, which scales pods; its pending pods make Karpenter add nodes."""

    cloudwatch: bool = Field(default=True, description="Whether it may read CloudWatch metrics, all of the account's.")
    prometheus: bool = Field(
        default=True, description="Whether it may query this environment's Managed Prometheus, where there is one."
    )
    sqs: tuple[Annotated[str, Field(pattern=_QUEUE)], ...] = Field(
        default=(), description="ARNs of the SQS queues whose length it may read; no others.", max_length=50
    )
    role: Annotated[str, Api("RoleArn")] | None = Field(
        default=None,
        description="IAM role of its operator, if there is one already: for scalers that ask more of AWS than the keys "
        "above can say. Absent: the kit's, which may what these keys say.",
    )


class Autoscaling(Model):
    """Managed Karpenter of one environment."""

    node_classes: tuple[NodeClass, ...] = Field(description="Which groups Karpenter owns.", min_length=1)
    node_pools: tuple[NodePool, ...] = Field(default=(), description="How far it may go.")
    keda: Keda | None = Field(default=None, description="Absent = off.")
    cluster_role: Annotated[str, Api("RoleArn")] | None = Field(
        default=None,
        description="IAM role by which Karpenter adds and deletes nodes, if there is one already. Absent: the kit's.",
    )
