"""Exceptions for the pods of team members, where the safe default isn't enough."""

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from hpkit.config.models.base import Model, Quantity, amount

__all__ = ["LONGEST_GRACE", "DefaultRequests", "Publication", "TeamLimits"]

# Kueue frees the quota of a job while its pods still end, so jobs of other teams wait that long for the instances.
LONGEST_GRACE: Final = 600

Publication = Literal["Ingress", "LoadBalancer", "NodePort"]


def _grace(seconds: int) -> int:
    if seconds > LONGEST_GRACE:
        raise PydanticCustomError("grace_period", "too long")
    return seconds


class DefaultRequests(Model):
    """Requests of containers without requests and limits."""

    cpu: Quantity = amount(
        "CPUs; Kueue counts them against the team's quota.", unit="CPUs", default="100m", example="500m"
    )
    memory: Quantity = amount(
        "Memory; Kueue counts it against the team's quota.", unit="bytes", default="256Mi", example="1Gi"
    )


class TeamLimits(Model):
    """Limits on what members run. The defaults are safe."""

    termination_grace_period_seconds: Annotated[int, AfterValidator(_grace)] = Field(
        default=120,
        ge=1,
        json_schema_extra={"maximum": LONGEST_GRACE, "unit": "seconds"},
        description="Longest time, in seconds, that a pod may take to stop, 1–600. Kueue frees the quota of a job at "
        "once, so jobs of other teams wait for its instances that long.",
        examples=[120],
    )
    tolerations: tuple[str, ...] = Field(
        default=(),
        description="Taint keys that pods may tolerate, in addition to accelerators, EFA, and the taints of instance "
        "groups and NodePools in this file.",
        examples=["team/reserved"],
    )
    # Every other type shows a pod something of the node, or mounts with the node's identity.
    volumes: tuple[Literal["csi", "nfs"], ...] = Field(
        default=(),
        description="Volume types that pods may use, in addition to claims, ConfigMaps, Secrets, and emptyDir: `csi` "
        "(inline volumes) or `nfs`.",
        examples=["nfs"],
    )
    publish: tuple[Publication, ...] = Field(
        default=(),
        description="Ways in which members may publish their work outside the cluster: Services of type NodePort or "
        "LoadBalancer, and Ingress.",
    )
    default_requests: DefaultRequests = Field(
        default=DefaultRequests(), description="Requests of containers that set none."
    )
