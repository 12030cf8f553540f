"""An existing network in preflight: where groups' own subnets are, and the rules of security groups that EFA needs."""

import pytest

from hpkit.clients.calls import Responses
from hpkit.plan.derive import derive
from hpkit.preflight.calls import CLUSTERS, ZONES, security_groups, subnets
from hpkit.preflight.network import check_network
from tests.builders import group, organization, typed

VPC, OTHER_VPC = "vpc-0a1b2c3d4e5f60718", "vpc-0a1b2c3d4e5f60719"
ZONES_OF = {"us-west-2a": "subnet-0a1b2c3d4e5f60718", "us-west-2b": "subnet-0a1b2c3d4e5f60719"}
SG, OVERRIDE_SG, OVERRIDE = "sg-0a1b2c3d4e5f60718", "sg-0a1b2c3d4e5f60719", "subnet-0a1b2c3d4e5f60720"


def all_traffic(*, group=None):
    return {
        "IpProtocol": "-1",
        **({"UserIdGroupPairs": [{"GroupId": group}]} if group else {"IpRanges": ["0.0.0.0/0"]}),
    }


def security_group(name, *, vpc=VPC, ingress=True, egress=True):
    return {
        "GroupId": name,
        "VpcId": vpc,
        "IpPermissions": [all_traffic(group=name)] if ingress else [],
        "IpPermissionsEgress": [all_traffic(), *([all_traffic(group=name)] if egress else [])],
    }


def rows(*groups, override_vpc=VPC, instance_type="ml.p5.48xlarge", override=None):
    more = {} if override is None else {"overrideVpcConfig": override}
    network = {"existing": {"vpcId": VPC, "subnets": ZONES_OF, "securityGroupIds": [SG]}}
    file = typed(organization(groups=[group("gpu", instance_type, 1, **more)], environment={"network": network}))
    plan = derive(file, "dev")
    places = [(subnet, VPC, zone) for zone, subnet in ZONES_OF.items()] + [(OVERRIDE, override_vpc, "us-west-2a")]
    known = {
        CLUSTERS.key: {"ClusterSummaries": []},
        ZONES.key: {"AvailabilityZones": []},
        security_groups(plan).key: {"SecurityGroups": list(groups)},
        subnets(plan).key: {
            "Subnets": [
                {"SubnetId": each, "VpcId": vpc, "AvailabilityZone": zone, "AvailableIpAddressCount": 4000}
                for each, vpc, zone in places
            ]
        },
    }
    return {row.what: row for row in check_network(file, plan, Responses(known))}


def test_efa_requires_an_outbound_rule_of_the_security_group_to_itself():
    row = rows(security_group(SG, egress=False))["EFA of gpu"]
    assert (row.status, row.found) == ("missing", f"{SG} has no egress rule for itself")
    assert row.command == (
        f"aws ec2 authorize-security-group-egress --region us-west-2 --group-id {SG} "
        f"--ip-permissions 'IpProtocol=-1,UserIdGroupPairs=[{{GroupId={SG}}}]'"
    )
    assert rows(security_group(SG))["EFA of gpu"].status == "ok"
    assert "EFA of gpu" not in rows(security_group(SG, egress=False), instance_type="ml.m5.4xlarge")


def test_of_a_group_with_security_groups_of_its_own_these_count():
    own = {"subnets": [OVERRIDE], "securityGroupIds": [OVERRIDE_SG]}
    row = rows(security_group(SG), security_group(OVERRIDE_SG, ingress=False, egress=False), override=own)["EFA of gpu"]
    assert row.found == f"{OVERRIDE_SG} has no ingress or egress rule for itself"
    assert row.command.count("authorize-security-group-") == 2


@pytest.mark.parametrize("vpc", [VPC, OTHER_VPC])
def test_an_override_is_in_the_vpc_of_the_cluster(vpc):
    own = {"subnets": [OVERRIDE], "securityGroupIds": [OVERRIDE_SG]}
    found = rows(security_group(SG), security_group(OVERRIDE_SG, vpc=vpc), override=own, override_vpc=vpc)
    row = found[f"subnet {OVERRIDE} of overrideVpcConfig"]
    assert (row.status, row.found) == ("ok" if vpc == VPC else "missing", f"in {vpc}")
    assert found[f"security group {OVERRIDE_SG}"].status == row.status
