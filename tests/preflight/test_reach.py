"""Whether this machine can reach the Kubernetes API, evaluated from responses, and tested over real sockets."""

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from hpkit.clients.calls import FailedCall, Responses
from hpkit.clients.network import find_address, try_endpoint
from hpkit.plan.derive import derive
from hpkit.preflight.calls import CLUSTERS, ENDPOINT, PUBLIC_ADDRESS, ZONES, eks_cluster, security_groups, subnets
from hpkit.preflight.network import check_network
from hpkit.preflight.reach import check_reach
from tests.builders import group, organization, typed
from tests.endpoint import running_endpoint
from tests.running import held_port

ABSENT = FailedCall("eks:DescribeCluster", "ResourceNotFoundException", "No cluster")
DENIED = FailedCall("eks:DescribeCluster", "AccessDeniedException", "not allowed")
OFFLINE = FailedCall("checkip.amazonaws.com", "URLError", "no route to host")
TIMED_OUT = FailedCall("connection to x:443", "TimeoutError", "timed out")
EXISTING = {
    "vpcId": "vpc-01234567",
    "subnets": {"us-west-2a": "subnet-01234567", "us-west-2b": "subnet-12345678"},
    "securityGroupIds": ["sg-01234567"],
}


def row(given, *, network=None, **endpoint):
    changes = {"eks": {"version": "1.33", "endpoint": endpoint}} | ({"network": network} if network else {})
    plan = derive(typed(organization(environment=changes)), "dev")
    answers = {eks_cluster(plan).key: given.get("cluster", ABSENT)}
    if "address" in given:
        answers[PUBLIC_ADDRESS.key] = given["address"]
    if "endpoint" in given:
        answers[ENDPOINT.key] = given["endpoint"]
    (found,) = check_reach(plan, Responses(answers))
    return found


PUBLIC = {"public": True, "publicCidrs": ["52.10.20.0/24"]}


@pytest.mark.parametrize(
    ("address", "status", "found"),
    [
        ("52.10.20.7", "ok", "52.10.20.7"),
        ("52.10.21.7", "missing", "52.10.21.7"),
        (OFFLINE, "unknown", ""),
        ("2001:db8::1", "unknown", ""),
    ],
)
def test_before_there_is_a_cluster_the_own_address_is_held_against_the_ranges(address, status, found):
    result = row({"address": address}, **PUBLIC)
    assert (result.status, result.found, result.needed) == (status, found, "in 52.10.20.0/24")


def test_an_address_outside_says_what_to_write():
    assert "Add 52.10.21.7/32 to `eks.endpoint.publicCidrs`" in row({"address": "52.10.21.7"}, **PUBLIC).fix


def test_ranges_for_documents_are_missing_on_aws():
    for address in ("52.10.21.7", OFFLINE):
        result = row({"address": address}, public=True, publicCidrs=["203.0.113.0/24"])
        assert (result.status, result.found) == ("missing", "203.0.113.0/24 is a documentation range")


def test_on_the_local_cloud_callers_are_where_its_settings_say():
    with running_endpoint(caller_address="203.0.113.10") as endpoint:
        address = find_address(endpoint.url)
    assert row({"address": address}, public=True, publicCidrs=["203.0.113.0/24"]).status == "ok"
    with running_endpoint() as endpoint:
        assert find_address(endpoint.url) == "", "wherever a stack admits them"


def test_nobody_is_inside_a_vpc_that_is_not_there():
    result = row({}, privateFrom=["10.20.0.0/16"])
    assert (result.status, result.found, result.needed) == ("missing", "the VPC doesn't exist yet", "in 10.20.0.0/16")


def test_of_a_private_endpoint_in_a_vpc_that_is_there_nothing_is_known_before_there_is_a_cluster():
    assert row({}, network={"existing": EXISTING}, privateFrom=["10.20.0.0/16"]).status == "unknown"


def test_where_the_cluster_is_a_connection_decides():
    live = {"cluster": {"status": "ACTIVE", "resourcesVpcConfig": {"endpointPublicAccess": False}}}
    assert row({"cluster": live, "endpoint": "10.192.8.4:443"}).status == "ok"
    shut = row({"cluster": live, "endpoint": TIMED_OUT})
    assert shut.status == "missing"
    assert "inside the VPC" in shut.fix
    live["cluster"]["resourcesVpcConfig"] = {"endpointPublicAccess": True, "publicAccessCidrs": ["52.10.20.0/24"]}
    shut = row({"cluster": live, "endpoint": TIMED_OUT, "address": "52.10.21.7"})
    assert shut.fix == "Add your address to `publicCidrs`, which is 52.10.21.7; its ranges are 52.10.20.0/24"


def test_what_could_not_be_asked_is_unknown():
    assert row({"cluster": DENIED}).status == "unknown"
    assert row({"cluster": {"cluster": {"status": "CREATING"}}}).status == "unknown"


class _Address(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"198.51.100.7\n")

    def log_message(self, *_):
        """Log nothing."""


def test_the_own_address_is_what_a_service_sees():
    with HTTPServer(("127.0.0.1", 0), _Address) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        assert find_address(f"http://127.0.0.1:{server.server_port}/") == "198.51.100.7"


def test_where_nobody_answers_the_reason_is_said():
    with held_port() as port:
        found = find_address(f"http://127.0.0.1:{port}")
        assert isinstance(found, FailedCall)
        assert "refused" in found.message
        tried = try_endpoint(f"https://127.0.0.1:{port}")
        assert isinstance(tried, FailedCall)
        assert tried.code == "ConnectionRefusedError"


def test_an_endpoint_that_answers_is_named():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert try_endpoint(f"https://127.0.0.1:{port}") == f"127.0.0.1:{port}"


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
    row = found[f"subnet {OVERRIDE} of `overrideVpcConfig`"]
    assert (row.status, row.found) == ("ok" if vpc == VPC else "missing", f"in {vpc}")
    assert found[f"security group {OVERRIDE_SG}"].status == row.status
