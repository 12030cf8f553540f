"""Network and EKS of one environment."""

from typing import Annotated, Literal

from pydantic import Field

from hpkit.config.base import Api, Model, Version

__all__ = ["Eks", "Endpoint", "ExistingEks", "ExistingNetwork", "Network", "Zone"]

_ZONE = r"^[a-z]{2}(?:-[a-z]+)+-[0-9]+[a-z]$"


class Zone(Model):
    """One availability zone with its private node subnet."""

    availability_zone: str = Field(pattern=_ZONE, description="Zone name, such as `us-west-2a`.")
    node_cidr: str = Field(
        description="IPv4 range of the zone's nodes, /16 to /28; a secondary range of the VPC unless inside vpcCidr."
    )


class ExistingNetwork(Model):
    """A VPC that is already there; the kit creates no network then."""

    vpc_id: str = Field(pattern=r"^vpc-[0-9a-f]{8,17}$", description="The VPC, such as `vpc-0a1b2c3d4e5f60718`.")
    subnets: dict[str, Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")]] = Field(
        description="Zone name → private subnet for nodes.", min_length=1
    )
    control_plane_subnets: tuple[Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")], ...] = Field(
        default=(),
        description="Subnets of the EKS control plane, in two zones or more; absent: those of the first two zones.",
    )
    security_group_ids: tuple[Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")], ...] = Field(
        description="One to five groups; with EFA one of them must allow all traffic to and from itself.",
        min_length=1,
        max_length=5,
    )


class Network(Model):
    """VPC, zones, way out."""

    vpc_cidr: str | None = Field(default=None, description="IPv4 range of the VPC for control plane and NAT.")
    zones: tuple[Zone, ...] = Field(default=(), description="One private node subnet a zone.")
    nat_gateways: Literal["Single", "PerZone", "None"] = Field(
        default="Single", description="Single: cheap. PerZone: survives a zone. None: needs `closed`."
    )
    endpoints: tuple[str, ...] = Field(
        default=("s3",), description="VPC endpoints by service, such as `s3`, `ecr.api`, `sagemaker.api`."
    )
    closed: bool = Field(default=False, description="No internet: every endpoint that such a cluster needs.")
    existing: ExistingNetwork | None = Field(default=None, description="Use a VPC that is there.")


class Endpoint(Model):
    """How the Kubernetes API is reached."""

    public: bool = Field(default=False, description="Reachable from outside the VPC, from publicCidrs only.")
    public_cidrs: tuple[str, ...] = Field(
        default=(), description="IPv4 ranges of the internet that may reach it: your own, as the internet sees them."
    )
    private_from: tuple[str, ...] = Field(
        default=(),
        description="IPv4 ranges of the VPC itself, or of networks connected with it (peering, transit gateway, VPN), "
        "that may reach it on port 443. The connection is not made by the kit. Not with `existing`.",
    )


class ExistingEks(Model):
    """An EKS cluster that is already there."""

    name: str = Field(min_length=1, max_length=100, description="Its name.")


class Eks(Model):
    """The EKS cluster that orchestrates HyperPod."""

    version: Version = Field(description='Kubernetes minor version in quotes, such as "1.35".')
    support_type: Literal["STANDARD", "EXTENDED"] = Field(
        default="STANDARD",
        description="What EKS does when the version leaves standard support: upgrade the control plane (STANDARD), or "
        "keep the version for a year more, at a higher price per hour (EXTENDED). Cannot change while the version is "
        "out of standard support.",
    )
    endpoint: Endpoint = Field(
        default=Endpoint(), description="Private by default; with a new VPC, who may reach it has to be said."
    )
    administrators: tuple[Annotated[str, Api("RoleArn")], ...] = Field(
        default=(), description="IAM roles with cluster administration, such as `arn:aws:iam::123456789012:role/admin`."
    )
    viewers: tuple[Annotated[str, Api("RoleArn")], ...] = Field(
        default=(),
        description="IAM roles that read all of the cluster, Secrets too (AmazonEKSAdminViewPolicy), and change "
        "nothing: what previews and drift checks run as.",
    )
    log_retention_days: Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192] = (
        Field(default=90, description="How long control-plane logs are kept.")
    )
    existing: ExistingEks | None = Field(default=None, description="Use an EKS cluster that is there.")
