"""What must not be lost stays: a change that would replace it is refused."""

import pytest

pytestmark = [
    pytest.mark.engine,
    pytest.mark.cluster,
    pytest.mark.platform,
    pytest.mark.timeout(1800),
]

NODES = "gpu 4 × ml.g5.12xlarge"
PROTECTED = "marked for protection"
FOUND = {"vpcId": "", "subnets": {}, "securityGroupIds": []}


def another_region(dev):
    dev["region"] = "eu-west-1"
    for zone, letter in zip(dev["network"]["zones"], "ab", strict=True):
        zone["availabilityZone"] = f"eu-west-1{letter}"
    for group in dev["cluster"]["instanceGroups"]:
        del group["availabilityZone"]


def another_name(dev):
    dev["cluster"]["name"] = "other"


def renamed_group(dev):
    dev["cluster"]["instanceGroups"][0]["name"] = "accelerated"


def another_vpc(dev):
    dev["network"] = {"existing": FOUND}


@pytest.fixture(scope="module")
def found(live):
    """A VPC that is there already, and gone afterwards."""
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
    "region": (another_region, ["us-west-2 → eu-west-1 would REPLACE everything", NODES, "(john, smith)"], []),
    "group renamed": (
        renamed_group,
        [
            "DELETE the instance group with all instances: gpu (4 × ml.g5.12xlarge)",
            "can't rename",
            "`allowDelete: {instanceGroups: [gpu]}`",
        ],
        [],
    ),
    "group removed": (
        lambda dev: dev["cluster"]["instanceGroups"].pop(),
        ["DELETE the instance group with all instances: system (1 × ml.m5.4xlarge)"],
        [],
    ),
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
    "subnet of groups": (
        lambda dev: dev["network"]["zones"][0].update(nodeCidr="10.5.0.0/16"),
        ["gpu in us-west-2a: nodeCidr 10.192.64.0/18", "give these groups new names"],
        [],
    ),
    "Kubernetes": (
        lambda dev: dev["eks"].update(version="1.34", supportType="EXTENDED"),
        ["version 1.35 can't be downgraded to 1.34"],
        [],
    ),
}


# A guard took note of what is refused before another refused it: the next `up` notes what there is anew.
NOTED = {"group renamed"}


# Told of two recordings by tests/changes, and by the plugin itself by tests/provider; here of the engine.
@pytest.mark.nightly
@pytest.mark.parametrize("case", CASES)
def test_what_would_be_lost_is_refused_and_nothing_changes(up, edit, live, found, case):
    change, at_preview, at_up = CASES[case]
    before = live.everything()
    edit(lambda _, dev: change(dev))
    refused = up.run("preview", check=False)
    said = refused.stdout + refused.stderr
    print(said)
    assert refused.returncode != 0
    assert [text for text in at_preview if text not in said] == []
    refused = up.up(check=False)
    said = refused.stdout + refused.stderr
    print(said)
    assert refused.returncode != 0
    assert [text for text in (at_up or at_preview if at_up is not None else []) if text not in said] == []
    if at_up is None:
        # Without the preview something is made before the service or the plugin says no; nothing goes.
        lost = {kind: sorted(set(ids) - set(live.everything().get(kind, []))) for kind, ids in before.items()}
        assert {kind: ids for kind, ids in lost.items() if ids} == {}
    else:
        assert live.everything() == before
        if case not in NOTED:
            edit.undo()


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("change", "allowed", "warns", "operation"),
    [
        (
            another_name,
            {"allowReplace": ["cluster"]},
            "REPLACES or DELETES the HyperPod cluster handson",
            ("Cluster:cluster", "replace"),
        ),
        (
            lambda dev: dev["network"].update(vpcCidr="10.193.0.0/16"),
            {"allowReplace": ["vpc", "eks", "cluster"]},
            "REPLACES or DELETES the VPC of handson-dev",
            ("Vpc:vpc", "replace"),
        ),
    ],
    ids=["HyperPod cluster", "VPC"],
)
def test_what_is_allowed_by_name_is_previewed_with_a_warning(up, edit, change, allowed, warns, operation):
    edit(lambda _, dev: change(dev) or dev.update(allowed))
    changes, said = up.preview_with_warnings()
    assert warns in said
    assert changes[operation[0]] == operation[1]
    edit.undo()


@pytest.mark.nightly
def test_an_allowance_that_nothing_needs_is_said_beside_one_that_is(up, edit):
    allowed = {"allowReplace": ["cluster", "vpc"], "allowDelete": {"instanceGroups": ["gpu", "system", "gone"]}}
    edit(lambda _, dev: renamed_group(dev) or dev.update(allowed))
    changes, said = up.preview_with_warnings()
    assert "This change DELETES the instance group, as allowed: gpu (4 × ml.g5.12xlarge)" in said
    assert changes["Cluster:cluster"] == "update"
    for name in ("cluster", "vpc"):
        assert (
            f"allowReplace lists {name}, but nothing replaces it in this change. Remove it from environments.dev"
            in said
        )
    assert "deletion of instance group system is allowed, but it stays" in said
    assert "deletion of instance group gone is allowed, but it doesn't exist" in said
    edit.undo()


@pytest.mark.nightly
def test_pulumis_own_destroy_deletes_nothing(up, live):
    before = live.everything()
    refused = up.run("destroy", "--yes", "--skip-preview", check=False)
    assert refused.returncode != 0
    assert "protected" in refused.stdout + refused.stderr
    assert live.everything() == before
