"""Reported risks and losses, and the resulting verdict: one change per test."""

import re

import pytest

from hpkit.changes.review.as_text import as_text
from hpkit.changes.review.model import Preview, PreviewStep
from hpkit.changes.review.tables import summary_rows, unknown_lines
from tests.builders import group, organization, team, text_of
from tests.changes.review.builders import review_of

ROW = {"instanceType": "ml.g5.12xlarge", "count": 2}
EXISTING = {
    "vpcId": "vpc-0123456789abcdef0",
    "subnets": {"us-west-2a": "subnet-0123456789abcdef0"},
    "securityGroupIds": ["sg-0123456789abcdef0"],
}


def reviewed(base, head, **more):
    (stack,) = review_of(text_of(base), text_of(head), **more).stacks
    return stack


def risks(base, head):
    return {each.code: each for each in reviewed(base, head).risks}


def of(environment=None, **more):
    return organization(environment=environment, **more)


def shares(*, ada=2, bob=2, lend="LendAndBorrow", limit=100, weight=50, idle="Disabled"):
    return organization(
        teams=[
            team("ada", sharing={"strategy": "LendAndBorrow", "borrowLimit": limit}, fairShareWeight=weight),
            team("bob", sharing={"strategy": lend}),
        ],
        allocations={"ada": [{**ROW, "count": ada}], "bob": [{**ROW, "count": bob}]},
        top={"clusterPolicy": {"idleResourceSharing": idle}},
    )


def test_borrowing_that_ends_by_the_borrowers_own_limit_is_no_dependency():
    assert "borrowing" not in risks(shares(limit=100), shares(limit=50))


def test_a_quota_that_shrinks_with_its_own_limit_while_another_lends_less_is_still_no_dependency():
    # ada's limit falls to 1 with her quota, and bob still lends 1: none of her quota depended on his loans.
    assert "borrowing" not in risks(shares(ada=2, bob=2), shares(ada=1, bob=1))


def test_the_shared_pool_is_nobodys_loss():
    pool = {"governance": {"allocations": {"ada": [ROW]}, "sharedPool": {}}}
    more = {"governance": {"allocations": {"ada": [{**ROW, "count": 3}]}, "sharedPool": {}}}
    stack = reviewed(of(pool, teams=[team("ada")]), of(more, teams=[team("ada")]))
    assert "shared" not in {loss.team for loss in stack.losses}


def test_a_found_vpc_in_place_of_a_made_one_replaces_what_is_in_it():
    codes = risks(of(), of({"network": {"existing": EXISTING}}))
    assert "vpc-0123456789abcdef0" in codes["delete-vpc"].message
    assert "it can't move to another VPC" in codes["replace-eks"].message
    assert codes["replace-cluster"].verdict == "blocked"


def test_other_security_groups_replace_the_cluster_and_nothing_else():
    other = {**EXISTING, "securityGroupIds": ["sg-0fedcba9876543210"]}
    found = risks(of({"network": {"existing": EXISTING}}), of({"network": {"existing": other}}))
    assert "sg-0123456789abcdef0 → sg-0fedcba9876543210" in found["replace-cluster"].message
    assert not {"replace-vpc", "replace-eks"} & set(found)


def test_a_found_eks_cluster_in_place_of_a_made_one_replaces_the_hyperpod_cluster():
    codes = risks(of(), of({"eks": {"version": "1.35", "existing": {"name": "shared"}}}))
    assert "hpkit's own → shared" in codes["delete-eks"].message
    assert {codes["delete-key"].verdict, codes["replace-cluster"].verdict} == {"blocked"}
    assert "replace-vpc" not in codes


def test_a_group_may_change_its_type_when_the_whole_cluster_is_new():
    base = of(groups=[group("gpu", "ml.g5.12xlarge", 4)])
    head = of(groups=[group("gpu", "ml.g5.48xlarge", 4)])
    assert "immutable" in risks(base, head)
    head["environments"]["dev"]["cluster"]["name"] = "other"
    assert "immutable" not in risks(base, head)


def autoscaled(limit, count):
    autoscaling = {
        "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
        "nodePools": [{"name": "pool", "nodeClass": "burst", "limits": {"nodes": str(limit)}}],
    }
    return organization(
        teams=[team("ada")],
        groups=[group("gpu", "ml.g5.12xlarge", 4), group("burst", "ml.g5.8xlarge", 0)],
        allocations={"ada": [{"instanceType": "ml.g5.8xlarge", "count": count, "elastic": True}]},
        environment={"autoscaling": autoscaling},
    )


@pytest.mark.parametrize(("limit", "watched"), [(6, False), (5, False), (4, True)])
def test_a_lower_limit_is_watched_only_where_elastic_quota_no_longer_fits(limit, watched):
    # The allocations are in governance, which organization() fills; autoscaling is a separate section.
    assert ("limit-below-elastic" in risks(autoscaled(8, 5), autoscaled(limit, 5))) is watched


def with_types(*types, limits):
    autoscaling = {
        "nodeClasses": [{"name": "burst", "instanceGroups": list(types)}],
        "nodePools": [{"name": "pool", "nodeClass": "burst", "limits": limits}],
    }
    groups = [group(name, kind, 0) for name, kind in (("small", "ml.g5.8xlarge"), ("large", "ml.g5.12xlarge"))]
    known = [each for each in groups if each["name"] in types]
    return organization(groups=[group("gpu", "ml.g5.12xlarge", 4), *known], environment={"autoscaling": autoscaling})


@pytest.mark.parametrize(
    ("limits", "adds", "bound", "money"),
    [
        ({"nodes": "2"}, "2 × ml.g5.12xlarge", "is about $10,351 instead of about $4,468", 5884),
        ({}, "any number of ml.g5.12xlarge", "is still unbounded", None),
    ],
)
def test_a_type_that_a_node_pool_gains_is_named_with_its_price_and_the_new_bound(limits, adds, bound, money):
    sides = (with_types("small", limits=limits), with_types("small", "large", limits=limits))
    (risk,) = (each for each in reviewed(*sides).risks if " may add " in each.message)
    assert f"NodePool pool may add {adds} (about $5,176 a month each) too" in risk.message
    assert bound in risk.message
    assert (risk.monthly_cost and round(risk.monthly_cost.change)) == money
    assert not [each for each in reviewed(*reversed(sides)).risks if " may add " in each.message]


def test_a_type_that_comes_with_other_limits_has_its_price_there():
    sides = (with_types("small", limits={"nodes": "2"}), with_types("small", "large", limits={}))
    (found,) = (each for each in reviewed(*sides).risks if " may add " in each.message)
    assert "any number of ml.g5.8xlarge instead of 2" in found.message
    assert "any number of ml.g5.12xlarge (about $5,176 a month each)" in found.message


def test_a_cheaper_type_raises_nothing():
    sides = (with_types("large", limits={"nodes": "2"}), with_types("small", "large", limits={"nodes": "2"}))
    (found,) = (each for each in reviewed(*sides).risks if " may add " in each.message)
    assert "its maximum cost a month is still about $10,351" in found.message
    assert found.monthly_cost is None


def test_a_restricted_group_that_loses_nodes_is_watched():
    def with_nova(count):
        data = of()
        nova = group("nova", "ml.g5.12xlarge", count, executionRole="arn:aws:iam::123456789012:role/nova")
        nova["environmentConfig"] = {"fSxLustreConfig": {"sizeInGiB": 1200, "perUnitStorageThroughput": 125}}
        data["environments"]["dev"]["cluster"]["restrictedInstanceGroups"] = [nova]
        return data

    assert "restricted nova 3 → 1" in risks(with_nova(3), with_nova(1))["nodes-removed"].message
    assert "nodes-removed" not in risks(with_nova(1), with_nova(3))


def test_a_new_warning_asks_for_attention_and_an_old_one_does_not():
    # Nobody reserves or lends two of the four nodes: CAP005.
    whole, half = shares(ada=2, bob=2), shares(ada=2, bob=0)
    half["environments"]["dev"]["governance"]["allocations"].pop("bob")
    stack = reviewed(half, half)
    assert [each.rule for each in stack.findings.remaining] == ["CAP005"]
    assert stack.verdict == "ok"
    assert "1 new warning" in reviewed(whole, half).reasons


def test_a_fault_with_other_numbers_is_the_same_fault_and_a_second_one_is_new():
    one, more = shares(ada=5, bob=2), shares(ada=6, bob=2)
    stack = reviewed(one, more)
    assert [each.rule for each in stack.findings.remaining] == ["CAP001"]
    assert stack.findings.new == ()
    assert stack.findings.fixed == ()


def test_of_two_faults_at_one_place_the_one_that_is_fixed_is_told_by_its_words():
    # Both environments have CAP006 for the team's only borrowLimit; in dev, bob then has enough to lend.
    both = shares(ada=3, bob=1)
    both["environments"]["prod"] = shares(ada=3, bob=1)["environments"]["dev"]
    half = shares(ada=2, bob=2)
    half["environments"]["prod"] = both["environments"]["prod"]
    (file,) = review_of(text_of(both), text_of(half)).files
    assert ["in dev" in each.message for each in file.findings.fixed] == [True]
    assert ["in prod" in each.message for each in file.findings.remaining] == [True]


def test_a_preview_that_fails_blocks_and_one_that_replaces_asks_for_attention():
    steps = (PreviewStep("replace", "aws:ec2/vpc:Vpc", "net", "urn:x", ("cidrBlock",)),)
    failed = reviewed(of(), of(), previews={"acme-dev": Preview((), 3, ("no room for it",))})
    assert (failed.verdict, failed.reasons) == ("blocked", ("the preview fails: no room for it",))
    replacing = reviewed(of(), of(), previews={"acme-dev": Preview(steps, 3, ())})
    assert (replacing.verdict, replacing.reasons) == ("attention", ("the preview replaces 1 resource",))
    assert reviewed(of(), of(), previews={"acme-dev": Preview((), 3, ())}).verdict == "ok"


def test_a_pool_without_a_limit_is_named_beside_the_cost():
    free = autoscaled(8, 5)
    free["environments"]["dev"]["autoscaling"]["nodePools"][0]["limits"] = {}
    assert "no limit: NodePool pool" in list(unknown_lines(reviewed(free, free)))


def governed(version):
    return of({"addons": {"amazon-sagemaker-hyperpod-taskgovernance": version}})


def test_task_governance_that_needs_a_migration_of_its_cohorts_is_watched():
    found = risks(governed("v1.3.2-eksbuild.1"), governed("v1.6.0-eksbuild.1"))["addon-migration"]
    assert found.verdict == "attention"
    assert "v1.3.2-eksbuild.1 → v1.6.0-eksbuild.1" in found.message
    for one, two in (("v1.5.0-eksbuild.1", "v1.6.0-eksbuild.1"), ("v1.3.1-eksbuild.1", "v1.4.0-eksbuild.1")):
        assert "addon-migration" not in risks(governed(one), governed(two))


def test_settings_by_hand_that_an_add_on_overwrites_are_named():
    found = risks(governed("v1.5.0-eksbuild.1"), governed("v1.6.0-eksbuild.1"))["addon-version"]
    assert "resets Kueue's configuration" in found.message
    old, new = (
        {"eks": {"version": "1.35", "existing": {"name": "kube"}}, "addons": each} for each in ({}, {"coredns": {}})
    )
    assert "CoreDNS's Corefile" in risks(of(old), of(new))["addon-version"].message
    assert "addon-version" not in risks(of({"addons": {}}), of({"addons": {"coredns": {}}}))


def test_a_zone_joins_an_existing_network_without_replacing_anything():
    two = {**EXISTING, "subnets": {"us-west-2a": "subnet-0123456789abcdef0", "us-west-2b": "subnet-0123456789abcdef1"}}
    three = {**two, "subnets": {**two["subnets"], "us-west-2c": "subnet-0123456789abcdef2"}}
    assert risks(of({"network": {"existing": two}}), of({"network": {"existing": three}})) == {}


def test_a_group_cannot_follow_when_the_subnet_of_its_zone_is_another():
    two = {**EXISTING, "subnets": {"us-west-2a": "subnet-0123456789abcdef0", "us-west-2b": "subnet-0123456789abcdef1"}}
    named = {**two, "controlPlaneSubnets": list(two["subnets"].values())}
    moved = {**named, "subnets": {**two["subnets"], "us-west-2a": "subnet-0123456789abcdef9"}}
    found = risks(of({"network": {"existing": named}}), of({"network": {"existing": moved}}))
    assert set(found) == {"immutable", "settings"}
    assert "settings of iam.RolePolicy nodes change" in found["settings"].message, "where its nodes may have interfaces"


def test_a_new_viewer_asks_for_attention():
    role = "arn:aws:iam::123456789012:role/preview"
    head = of()
    head["environments"]["dev"]["eks"]["viewers"] = [role]
    found = risks(of(), head)["viewers"]
    assert found.verdict == "attention"
    assert found.message.endswith(f"except Secrets of teams: {role}")
    assert "viewers" not in risks(head, head)


def test_connected_networks_that_come_in_are_said():
    def with_ranges(*ranges):
        endpoint = {"public": True, "publicCidrs": ["52.10.20.0/24"], "privateFrom": list(ranges)}
        return of({"eks": {"version": "1.35", "endpoint": endpoint}})

    found = risks(with_ranges("10.20.0.0/16"), with_ranges("10.20.0.0/16", "10.30.0.0/16"))["endpoint"]
    assert found.message == "the Kubernetes API opens to connected networks 10.30.0.0/16"
    closed = risks(with_ranges("10.20.0.0/16"), with_ranges())["endpoint"]
    assert closed.message.startswith("the Kubernetes API closes to 10.20.0.0/16: clients in these ranges")


def in_account(account):
    """Return an organization without account data, except for the account number if one is passed."""
    data = of()
    del data["environments"]["dev"]["account"]
    return data if account is None else of({"account": account})


@pytest.mark.parametrize(("before", "after"), [(None, "210987654321"), ("210987654321", None)])
def test_an_account_that_is_named_or_named_no_more_moves_nothing(before, after):
    stack = reviewed(in_account(before), in_account(after))
    assert {step.action for step in stack.change.steps} <= {"update"}
    assert stack.risks == ()


def tiered(**storage):
    data = of()
    data["environments"]["dev"]["cluster"].update({"tieredStorage": storage} if storage else {})
    return data


@pytest.mark.parametrize(
    ("after", "message"),
    [
        (tiered(), "tieredStorage is switched off"),
        (tiered(mode="Disable"), "tieredStorage is switched off"),
        (tiered(mode="Enable", instanceMemoryAllocationPercentage=20), "40% → 20%"),
        (tiered(mode="Enable"), "40% → the default"),
    ],
)
def test_less_memory_for_checkpoints_is_watched(after, message):
    before = tiered(mode="Enable", instanceMemoryAllocationPercentage=40)
    found = risks(before, after)
    assert message in found["tiered-storage"].message
    assert "settings" not in found


def test_more_memory_for_checkpoints_is_no_risk():
    sides = (tiered(mode="Enable", instanceMemoryAllocationPercentage=each) for each in (20, 40))
    assert risks(*sides) == {}


def test_an_add_on_that_goes_back_a_version_is_watched():
    sides = (of({"addons": {"vpc-cni": version}}) for version in ("v1.20.10-eksbuild.1", "v1.20.9-eksbuild.2"))
    found = risks(*sides)
    assert "the add-on vpc-cni goes back v1.20.10-eksbuild.1 → v1.20.9-eksbuild.2" in found["addon-version"].message
    assert "settings" not in found


def test_a_cluster_that_is_there_is_called_by_its_name():
    network = {"existing": EXISTING}
    sides = (
        of({"network": network}),
        of({"network": network, "eks": {"version": "1.35", "existing": {"name": "old"}}}),
    )
    stack = reviewed(*sides)
    places = [f"{cause.before} {cause.after}" for step in stack.change.steps for cause in step.causes]
    assert any(place.endswith(" old") for place in places)
    assert not any(place.endswith(" found") for place in places)


@pytest.mark.parametrize(
    ("sides", "message"),
    [((None, "one"), "can do no more than it allows"), (("one", None), "no longer have a permissions boundary")],
)
def test_another_boundary_of_roles_is_watched(sides, message):
    policies = [
        {} if each is None else {"permissionsBoundary": f"arn:aws:iam::123456789012:policy/{each}"} for each in sides
    ]
    found = risks(of(policies[0]), of(policies[1]))
    assert message in found["boundary"].message
    assert set(found) == {"boundary"}


def ganged(**gang):
    data = organization()
    data["environments"]["dev"]["governance"] |= {"gangScheduling": gang} if gang else {}
    return data


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ({"enable": True}, {}, "workloads keep their quota even if some of their pods never start"),
        (
            {"enable": True},
            {"enable": True, "timeout": "10m", "requeuingStrategy": {"backoffLimitCount": 3}},
            "Kueue restarts: timeout 5m → 10m, backoffLimitCount unset → 3",
        ),
    ],
)
def test_a_change_of_gang_scheduling_is_watched(before, after, said):
    assert said in risks(ganged(**before), ganged(**after))["gang-scheduling"].message


def test_gang_scheduling_that_is_off_before_and_after_is_no_change():
    assert "gang-scheduling" not in risks(ganged(), ganged(enable=False, timeout="10m"))


def test_spaces_that_open_to_the_internet_or_close_again_are_said():
    web = {
        "domain": "spaces.acme.com",
        "certificateArn": "arn:aws:acm:us-west-2:123456789012:certificate/1",
        "kmsKeyArn": "arn:aws:kms:us-west-2:123456789012:key/1",
    }
    inside, outside = (of({"spaces": {"webUi": {**web, "scheme": each}}}) for each in ("internal", "internet-facing"))
    address = "reach their spaces by a browser at *.spaces.acme.com, from"
    opened = [each.message for each in reviewed(inside, outside).risks if each.code == "spaces"]
    assert opened == [
        f"members can {address} the internet",
        f"members can no longer {address} the VPC and connected networks",
    ]
    assert risks(outside, of({"spaces": {}}))["spaces"].message == f"members can no longer {address} the internet"
    assert "spaces" not in risks(inside, inside)


def test_what_a_team_shares_less_is_in_one_line():
    text = as_text(review_of(text_of(shares()), text_of(shares(lend="DontLend"))), width=1000)
    said = [line for line in text.splitlines() if "DontLend" in line]
    assert len(said) == 1
    assert "sharing of bob LendAndBorrow → DontLend" in said[0]
    assert "borrow limit" not in text


def test_settings_of_the_table_and_what_follows_from_the_version_are_not_repeated_by_resource():
    newer = shares(weight=70)
    newer["environments"]["dev"]["eks"]["version"] = "1.34"
    older = shares(weight=50)
    older["environments"]["dev"]["eks"]["version"] = "1.33"
    lines = [line.strip() for line in as_text(review_of(text_of(older), text_of(newer)), width=1000).splitlines()]
    assert "update hyperpod.ComputeQuota ada" in lines
    assert "update kubernetes.NamespacePatch ada, bob" in lines


def test_of_a_stack_that_cannot_be_read_nothing_is_said_about_teams():
    (row,) = summary_rows(review_of(text_of(of()), text_of(of({"region": 7}))))
    assert row[2:4] == ("not known", "not known")


def test_a_warning_that_stays_is_named_without_its_text():
    half = shares(ada=2)
    half["environments"]["dev"]["governance"]["allocations"].pop("bob")
    text = as_text(review_of(text_of(half), text_of({**half, "tags": {"cost-center": "7"}})), width=1000)
    assert re.search(r"warning CAP005 environments\.dev\.governance$", text, re.MULTILINE)


def test_of_a_groups_storage_only_what_differs_is_shown():
    def stored(size):
        volumes = [{"ebsVolumeConfig": {"volumeSizeInGB": size}}]
        root = [{"ebsVolumeConfig": {"rootVolume": True, "volumeKmsKeyId": "0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f"}}]
        return organization(groups=[group("gpu", "ml.g5.12xlarge", 1, instanceStorageConfigs=volumes + root)])

    assert risks(stored(500), stored(600))["group-settings"].message.startswith(
        "instanceStorageConfigs of instance group gpu {ebsVolumeConfig: {rootVolume: false, volumeSizeInGB: 500}} → "
        "{ebsVolumeConfig: {rootVolume: false, volumeSizeInGB: 600}}: only new nodes have it"
    )
