"""Network and EKS of one environment."""

from typing import Annotated, Literal

from pydantic import Field

from hpkit.config.models.base import Api, Model, Version, amount

__all__ = ["Eks", "Endpoint", "ExistingEks", "ExistingNetwork", "Network", "Zone"]

# Names and IDs of availability zones and Local Zones.
_ZONE = r"^(?:[a-z]{2}(?:-[a-z]+)+-[0-9]+(?:-[a-z]{3}-[0-9]+)?[a-z]|[a-z]{3,}[0-9]+(?:-[a-z]{3}[0-9]+)?-az[1-8])$"


class Zone(Model):
    """One availability zone with its private node subnet."""

    availability_zone: str = Field(
        pattern=_ZONE,
        description="Zone name, such as `us-west-2a`, zone ID `usw2-az1`, or Local Zone `us-west-2-lax-1a`.",
        examples=["us-west-2a"],
    )
    node_cidr: str = Field(
        description="IPv4 range of the zone's nodes, /16 to /28. Outside vpcCidr, it becomes a secondary range of "
        "the VPC.",
        examples=["10.192.64.0/18"],
    )


class ExistingNetwork(Model):
    """An existing VPC; hpkit creates no network."""

    vpc_id: str = Field(
        pattern=r"^vpc-[0-9a-f]{8,17}$",
        description="The VPC, such as `vpc-0a1b2c3d4e5f60718`.",
        examples=["vpc-0a1b2c3d4e5f60718"],
    )
    subnets: dict[str, Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")]] = Field(
        description="Zone name → private subnet for nodes.",
        min_length=1,
        examples=[{"us-west-2a": "subnet-0a1b2c3d4e5f60718"}],
    )
    control_plane_subnets: tuple[Annotated[str, Field(pattern=r"^subnet-[0-9a-f]{8,17}$")], ...] = Field(
        default=(),
        description="Subnets of the EKS control plane, in two or more zones. Default: the first two zones' subnets.",
        examples=["subnet-0a1b2c3d4e5f60718"],
    )
    security_group_ids: tuple[Annotated[str, Field(pattern=r"^sg-[0-9a-f]{8,17}$")], ...] = Field(
        description="1–5 security groups. With EFA, one must allow all traffic to and from itself.",
        min_length=1,
        max_length=5,
        examples=["sg-0a1b2c3d4e5f60718"],
    )


class Network(Model):
    """VPC, zones, and access to the internet."""

    vpc_cidr: str | None = Field(
        default=None, description="IPv4 range of the VPC for control plane and NAT.", examples=["10.192.0.0/16"]
    )
    zones: tuple[Zone, ...] = Field(default=(), description="Zones, each with a private subnet for nodes.")
    nat_gateways: Literal["Single", "PerZone", "None"] = Field(
        default="Single", description="Single: cheapest. PerZone: survives the loss of a zone. None: requires `closed`."
    )
    endpoints: tuple[str, ...] = Field(
        default=("s3",),
        description="VPC endpoints by service, such as `s3`, `ecr.api`, `sagemaker.api`.",
        examples=["s3"],
        json_schema_extra={"values": "vpcEndpointServices"},
    )
    closed: bool = Field(default=False, description="No internet access. Creates all required endpoints.")
    existing: ExistingNetwork | None = Field(default=None, description="Use an existing VPC; hpkit creates no network.")


class Endpoint(Model):
    """Which networks can reach the Kubernetes API."""

    public: bool = Field(default=False, description="Reachable from publicCidrs outside the VPC.")
    # EKS's limit, which can't be raised.
    public_cidrs: tuple[str, ...] = Field(
        default=(),
        max_length=40,
        description="Your public IPv4 ranges that may reach it, at most 40.",
        examples=["198.51.100.7/32"],
    )
    private_from: tuple[str, ...] = Field(
        default=(),
        description="IPv4 ranges of the VPC or connected networks (peering, transit gateway, VPN) that may reach "
        "it on port 443. hpkit doesn't create the connection. Not with `existing`.",
        examples=["10.20.0.0/16"],
    )


class ExistingEks(Model):
    """An existing EKS cluster."""

    name: str = Field(min_length=1, max_length=100, description="Name.", examples=["platform"])


class Eks(Model):
    """The EKS cluster that orchestrates HyperPod."""

    version: Version = Field(
        description='Kubernetes minor version in quotes, such as "1.35".',
        examples=["1.35"],
        json_schema_extra={"values": "kubernetesVersions"},
    )
    support_type: Literal["STANDARD", "EXTENDED"] = Field(
        default="STANDARD",
        description="After standard support, EKS upgrades the control plane (STANDARD), or keeps the version for "
        "another year at a higher price (EXTENDED). Can't change after standard support ends.",
    )
    endpoint: Endpoint = Field(
        default=Endpoint(),
        description="Which networks can reach the Kubernetes API. Default: private. A new VPC requires publicCidrs "
        "or privateFrom.",
    )
    administrators: tuple[Annotated[str, Api("RoleArn")], ...] = Field(
        default=(),
        description="IAM roles of cluster administrators, such as `arn:aws:iam::123456789012:role/admin`.",
        examples=["arn:aws:iam::123456789012:role/Admin"],
    )
    viewers: tuple[Annotated[str, Api("RoleArn")], ...] = Field(
        default=(),
        description="IAM roles that read the whole cluster except Secrets of teams, such as roles of previews "
        "and of people who watch tasks in the console.",
        examples=["arn:aws:iam::123456789012:role/preview"],
    )
    log_retention_days: Literal[1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192] = (
        amount("Days to keep control-plane logs.", unit="days", default=90)
    )
    existing: ExistingEks | None = Field(default=None, description="Use an existing EKS cluster.")
