"""Exceptions for the pods of team members, where the safe default isn't enough."""

from typing import Literal

from pydantic import Field

from hpkit.config.base import Model, Quantity

__all__ = ["DefaultRequests", "Publication", "TeamLimits"]

Publication = Literal["Ingress", "LoadBalancer", "NodePort"]


class DefaultRequests(Model):
    """Requests of containers without requests and limits."""

    cpu: Quantity = Field(default="100m", description="CPUs; Kueue counts them against the team's quota.")
    memory: Quantity = Field(default="256Mi", description="Memory; Kueue counts it against the team's quota.")


class TeamLimits(Model):
    """Limits on what members run. The defaults are safe."""

    termination_grace_period_seconds: int = Field(
        default=600,
        ge=0,
        # One day: a longer grace period keeps instances rather than saving a checkpoint.
        le=86_400,
        description="Longest time, in seconds, that a pod may take to stop, 0–86400. Kueue frees the quota of a job "
        "while its pods still stop.",
    )
    tolerations: tuple[str, ...] = Field(
        default=(),
        description="Taint keys that pods may tolerate, in addition to accelerators, EFA, and the taints of instance "
        "groups and NodePools in this file.",
    )
    # Every other type shows a pod something of the node, or mounts with the node's identity.
    volumes: tuple[Literal["csi", "nfs"], ...] = Field(
        default=(),
        description="Volume types that pods may use, in addition to claims, ConfigMaps, Secrets, and emptyDir: `csi` "
        "(inline volumes) or `nfs`.",
    )
    publish: tuple[Publication, ...] = Field(
        default=(),
        description="Ways in which members may publish their work outside the cluster: Services of type NodePort or "
        "LoadBalancer, and Ingress.",
    )
    default_requests: DefaultRequests = Field(
        default=DefaultRequests(), description="Requests of containers that set none."
    )
