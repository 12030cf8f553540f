"""Protected resources stay: a change that would replace one is rejected."""

import pytest

pytestmark = pytest.mark.platform

NODES = "gpu 4 × ml.g5.12xlarge"
PROTECTED = "marked for protection"
FOUND = {"vpcId": "", "subnets": {}, "securityGroupIds": []}


def another_name(dev):
    dev["cluster"]["name"] = "other"


def another_vpc(dev):
    dev["network"] = {"existing": FOUND}


@pytest.fixture(scope="module")
def found(live):
    """Create a VPC, and delete it after the test."""
    ec2 = live.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.50.0.0/16")["Vpc"]["VpcId"]
    group = ec2.create_security_group(GroupName="theirs", Description="theirs", VpcId=vpc)["GroupId"]
    for number, letter in enumerate("ab"):
        made = ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.50.{number}.0/24", AvailabilityZone=f"us-west-2{letter}")
        FOUND["subnets"][f"us-west-2{letter}"] = made["Subnet"]["SubnetId"]
    FOUND.update(vpcId=vpc, securityGroupIds=[group])
    yield
    for subnet in FOUND["subnets"].values():
        ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_security_group(GroupId=group)
    ec2.delete_vpc(VpcId=vpc)


CASES = {
    "HyperPod cluster renamed": (
        another_name,
        [
            "REPLACE the HyperPod cluster handson",
            "clusterName: handson → other",
            f"nodes: {NODES}",
            "teams: john, smith",
            "`allowReplace: [cluster]`",
        ],
        [],
    ),
    "range of the VPC": (
        lambda dev: dev["network"].update(vpcCidr="10.193.0.0/16"),
        ["is replaced", "the VPC of handson-dev", NODES, "`allowReplace: [vpc, eks, cluster]` in environments.dev of"],
        [PROTECTED],
    ),
    "VPC that leaves the program": (another_vpc, ["is no longer in the program", NODES], None),
}


# Other refusals: recordings in tests/changes, the plugin in tests/provider, previews in test_engine_changes.py.
@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES)
def test_what_would_be_lost_is_refused_and_nothing_changes(up, edit, live, found, case):
    change, at_preview, at_up = CASES[case]
    before = live.everything()
    edit(lambda _, dev: change(dev))
    refused = up.run("preview", check=False)
    output = refused.stdout + refused.stderr
    print(output)
    assert refused.returncode != 0
    assert [text for text in at_preview if text not in output] == []
    assert "Traceback" not in output
    refused = up.up(check=False)
    output = refused.stdout + refused.stderr
    print(output)
    assert refused.returncode != 0
    assert [text for text in (at_up or at_preview if at_up is not None else []) if text not in output] == []
    if at_up is None:
        # Without the preview, something is created before the service or the plugin rejects the change; nothing is
        # deleted.
        lost = {kind: sorted(set(ids) - set(live.everything().get(kind, []))) for kind, ids in before.items()}
        assert {kind: ids for kind, ids in lost.items() if ids} == {}
    else:
        assert live.everything() == before
        edit.undo()


@pytest.mark.nightly
def test_pulumis_own_destroy_deletes_nothing(up, live):
    before = live.everything()
    refused = up.run("destroy", "--yes", "--skip-preview", check=False)
    assert refused.returncode != 0
    assert "protected" in refused.stdout + refused.stderr
    assert live.everything() == before
