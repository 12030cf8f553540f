"""Who can reach the Kubernetes API of an EKS cluster, according to the EKS documentation."""

from __future__ import annotations

from typing import Any

import pytest

from hpkit_local.aws.services.eks.reachability import admitted_address, why_unreachable

INTERNET, ELSEWHERE = "203.0.113.10", "198.51.100.7"
INSIDE, CONNECTED = "10.0.1.20", "10.20.0.5"
PRIVATE = {"endpointPublicAccess": False, "endpointPrivateAccess": True}


def why(cloud: Any, address: str, **settings: Any) -> str:
    """Change the endpoint of `kube`, and return why an address can't reach it."""
    cloud.eks.update_cluster_config(name="kube", resourcesVpcConfig=settings)
    cloud.eks.list_clusters()
    backend = cloud.endpoint._endpoint.backend
    with backend.locked():
        backend.settle()
        return why_unreachable(backend.context("us-west-2"), backend.table("us-west-2", "eks")["kube"], address)


def admit(cloud: Any, group: str, cidr: str, *, port: int = 443) -> None:
    permission = {"IpProtocol": "tcp", "FromPort": port, "ToPort": port, "IpRanges": [{"CidrIp": cidr}]}
    cloud.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[permission])


def admitted(cloud: Any) -> str:
    """Return an address that `kube` admits."""
    backend = cloud.endpoint._endpoint.backend
    with backend.locked():
        return admitted_address(backend.context("us-west-2"), backend.table("us-west-2", "eks")["kube"])


def test_callers_of_a_private_endpoint_are_where_a_security_group_admits_them(cloud: Any) -> None:
    group = cloud.eks.describe_cluster(name="kube")["cluster"]["resourcesVpcConfig"]["clusterSecurityGroupId"]
    assert "admits port 443" in why(cloud, INSIDE, **PRIVATE)
    assert "admits port 443" in why(cloud, admitted(cloud)), "nobody is admitted"
    admit(cloud, group, "10.20.0.0/16")
    assert admitted(cloud) == "10.20.0.10"
    assert not why(cloud, admitted(cloud))


def test_the_public_endpoint_answers_to_its_ranges(cloud: Any) -> None:
    both = {"endpointPublicAccess": True, "endpointPrivateAccess": True}
    assert not why(cloud, INTERNET, **both, publicAccessCidrs=["203.0.113.0/24"])
    told = why(cloud, ELSEWHERE, **both, publicAccessCidrs=["203.0.113.0/24"])
    assert told == "198.51.100.7 is not in publicAccessCidrs (203.0.113.0/24)"


def test_nobody_on_the_internet_reaches_a_private_endpoint(cloud: Any) -> None:
    assert why(cloud, INTERNET, **PRIVATE) == "203.0.113.10 is on the internet, and the endpoint is private"


@pytest.mark.parametrize("place", [INSIDE, CONNECTED])
def test_a_private_endpoint_needs_a_group_that_admits_the_port(cloud: Any, place: str) -> None:
    group = cloud.eks.describe_cluster(name="kube")["cluster"]["resourcesVpcConfig"]["clusterSecurityGroupId"]
    assert (
        why(cloud, place, **PRIVATE) == f"no security group of the control plane ({group}) admits port 443 from {place}"
    )
    admit(cloud, group, f"{place}/32", port=22)
    admit(cloud, group, "10.99.0.0/16")
    assert "admits port 443" in why(cloud, place, **PRIVATE), "another port, another range"
    admit(cloud, group, f"{place}/32")
    assert not why(cloud, place, **PRIVATE)


def test_an_endpoint_that_is_not_private_is_not_reached_from_the_vpc_by_its_private_addresses(cloud: Any) -> None:
    assert "has no private endpoint" in why(cloud, INSIDE, endpointPublicAccess=True, endpointPrivateAccess=False)
