"""Protected resources can't be deleted: the cluster, groups with instances, another region, a guarded ID."""

import re

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from hpkit_provider.engine.errors import RejectedError
from hpkit_provider.engine.values import UNKNOWN, to_struct
from hpkit_provider.resources.change_guard import ChangeGuardHandler
from hpkit_provider.resources.cluster.protection import lost_subnets, removed_groups, with_instances
from hpkit_provider.schema.settings import changed_settings
from hpkit_provider.server import HyperpodServicer
from tests.provider.harness import TYPE, FailedError, quota

GUARDED = {
    "subject": "acme-dev",
    "identity": {"vpc": "vpc-1", "eks": "acme-dev", "bucket": "acme", "fileSystem": "fs-1"},
    "contents": {
        "fileSystem": "the FSx for Lustre file system (2400 GiB) with all files on it",
        "vpc": "the VPC",
        "eks": "the EKS cluster",
        "cluster": "the HyperPod cluster (gpu 4 × ml.g5.12xlarge; teams nlp)",
        "bucket": "the bucket",
    },
    "nested": ["vpc", "eks", "cluster"],
    "allowReplace": [],
    "where": "environments.dev of stacks/acme.yaml",
}


def guard():
    return ChangeGuardHandler(HyperpodServicer().clients)


def identity(**more):
    return {**GUARDED["identity"], **more}


def of(groups, **more):
    return {"instanceGroups": [{"instanceGroupName": name, **group} for name, group in groups.items()], **more}


# -- the cluster


def test_a_replacement_names_what_goes_and_how_it_is_allowed(world, engine):
    arn = world.governed(engine)
    engine.up("ComputeQuota", "q", quota(arn, "nlp", 2))
    with pytest.raises(FailedError) as refused:
        engine.diff("Cluster", "c", world.cluster(clusterName="other"))
    for text in (
        "REPLACE the HyperPod cluster train",
        "clusterName: train → other",
        f"nodes: gpu 4 × {TYPE}",
        "teams: nlp",
        "set `allowReplace` in the inputs of the Cluster",
    ):
        assert text in str(refused.value)
    engine.configure(**world.settings, where="environments.dev of stacks/acme.yaml")
    with pytest.raises(FailedError, match=r"`allowReplace: \[cluster\]` in environments\.dev of stacks/acme\.yaml"):
        engine.diff("Cluster", "c", world.cluster(clusterName="other"))
    assert list(engine.diff("Cluster", "c", world.cluster(clusterName="other", allowReplace=True)).replaces)


def test_what_comes_from_something_that_is_replaced_replaces_too(world, engine):
    engine.up("Cluster", "c", world.cluster())
    new = {**world.cluster(), "orchestrator": UNKNOWN}
    with pytest.raises(FailedError, match="→ not known yet, because what it comes from is replaced"):
        engine.diff("Cluster", "c", new)
    engine.configure(**world.settings, allowReplace="true")
    assert list(engine.diff("Cluster", "c", new).replaces) == ["orchestrator"], "the provider's word holds as well"


def test_no_answer_of_the_service_is_no_reason_to_let_it_go(world, engine):
    engine.up("Cluster", "c", world.cluster())
    engine.configure(**{**world.settings, "endpoint": "http://127.0.0.1:9"})
    with pytest.raises(FailedError, match=f"nodes: gpu 4 × {TYPE}") as refused:
        engine.diff("Cluster", "c", world.cluster(clusterName="other"))
    assert "teams" not in str(refused.value)
    with pytest.raises(FailedError, match="DELETE the instance group"):
        engine.diff("Cluster", "c", world.cluster(world.group("renamed")))


def test_an_allowance_is_no_difference_and_is_said_when_nothing_needs_it(world, engine):
    engine.up("Cluster", "c", world.cluster())
    allowed = world.cluster(allowReplace=True, allowDeleteInstanceGroups=["gpu", "gone"])
    with engine.warnings() as said:
        assert not engine.diff("Cluster", "c", allowed).detailedDiff
    assert [text.partition(":")[0] for text in said] == [
        "allowReplace is set, but this change doesn't replace the cluster",
        "The deletion of instance group gone is allowed, but it doesn't exist",
        "The deletion of instance group gpu is allowed, but it stays",
    ]


def test_allowances_outlive_a_refresh(world, engine):
    allowed = world.cluster(allowReplace=True, allowDeleteInstanceGroups=["gpu"])
    engine.up("Cluster", "c", allowed)
    assert engine.refresh("Cluster", "c")["inputs"] == allowed


# -- groups


def test_a_rename_is_a_deletion_and_says_so(world, engine):
    engine.up("Cluster", "c", world.cluster(world.group("a", 2), world.group("b", 0)))
    with pytest.raises(FailedError, match=r"instances: a \(2 × ml\.g5\.12xlarge\)(.|\n)*can't rename"):
        engine.diff("Cluster", "c", world.cluster(world.group("renamed", 2)))
    new = world.cluster(world.group("renamed", 2), allowDeleteInstanceGroups=["a"])
    with engine.warnings() as said:
        assert engine.diff("Cluster", "c", new).detailedDiff
    assert said == [f"This change DELETES the instance group, as allowed: a (2 × {TYPE})."]


def test_a_group_without_instances_may_leave(world, engine):
    engine.up("Cluster", "c", world.cluster(world.group("a", 1), world.group("b", 0)))
    assert engine.diff("Cluster", "c", world.cluster(world.group("a", 1))).detailedDiff


def test_a_group_that_an_earlier_run_was_to_delete_is_counted_live():
    (left,) = removed_groups({}, of({"a": {"instanceCount": 1}}), {"managedInstanceGroups": ["a", "b"]})
    assert (left.name, left.count) == ("b", None)
    live = {"InstanceGroups": [{"InstanceGroupName": "b", "InstanceType": TYPE, "CurrentCount": 3, "TargetCount": 2}]}
    assert [each.text for each in with_instances([left], live)] == [f"b (3 × {TYPE})"]
    assert with_instances([left], {}) == [], "it is gone"
    assert with_instances([left], None) == [left], "nobody knows"


def test_a_group_keeps_its_subnets_while_the_new_ones_are_not_known():
    state = of({"a": {"overrideVpcConfig": {"subnets": ["subnet-1"]}}})
    assert lost_subnets(of({"a": {"overrideVpcConfig": {"subnets": [UNKNOWN]}}}), state)
    assert not lost_subnets(of({"a": {"overrideVpcConfig": {"subnets": ["subnet-1", UNKNOWN]}}}), state)
    assert not lost_subnets(of({"new": {"overrideVpcConfig": {"subnets": [UNKNOWN]}}}), state)


# -- the region


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        ({"region": "us-west-2"}, {"region": "us-west-2", "contents": "nodes"}, []),
        ({"region": "us-west-2"}, {"region": "us-west-2", "allowReplace": "true"}, ["allowReplace"]),
        ({}, {"region": "us-west-2"}, ["region"]),
    ],
)
def test_other_settings_replace_nothing(old, new, names):
    assert changed_settings(old, new) == names


@pytest.mark.parametrize(
    ("setting", "before", "after", "says"),
    [
        (
            "accountId",
            "123456789012",
            "210987654321",
            "would leave everything in 123456789012 without a stack, while it keeps costing money: gpu 4",
        ),
        ("region", "us-west-2", "eu-west-1", "would REPLACE everything in us-west-2: gpu 4"),
    ],
)
def test_another_account_or_region_is_refused_whatever_is_allowed(engine, setting, before, after, says):
    old = {setting: before, "contents": "gpu 4", "allowReplace": "true"}
    request = provider_pb2.DiffRequest(
        urn="urn:pulumi:dev::hpkit::pulumi:providers:hyperpod::hyperpod",
        old_inputs=to_struct(old),
        news=to_struct(old | {setting: after}),
    )
    with pytest.raises(grpc.RpcError) as refused:
        engine.stub.DiffConfig(request)
    advice = (f"set {setting} to {before} again", "describe another environment", "`hpkit aws destroy`")
    for text in (f"{setting}: {before} → {after} {says}", *advice):
        assert text in refused.value.details()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ({}, {"accountId": "123456789012"}),
        ({"accountId": "123456789012"}, {}),
        ({"accountId": "123456789012"}, {"accountId": UNKNOWN}),
    ],
)
def test_an_account_that_is_named_or_no_longer_named_moves_nothing(old, new):
    assert changed_settings(old, new) == ["accountId"]


# -- guards


@pytest.mark.parametrize(
    ("changed", "says", "allow"),
    [
        ({"vpc": UNKNOWN}, ["vpc: vpc-1 is replaced", "the HyperPod cluster (gpu 4"], "[vpc, eks, cluster]"),
        ({"eks": "other"}, ["eks: acme-dev becomes other", "the EKS cluster"], "[eks, cluster]"),
        ({"fileSystem": UNKNOWN}, ["fileSystem: fs-1 is replaced", "with all files on it"], "[fileSystem]"),
        ({"bucket": None}, ["bucket: acme is no longer in the program", "the bucket"], "[bucket]"),
    ],
)
def test_an_id_that_is_not_what_it_was_is_refused_with_all_that_goes(changed, says, allow):
    there = {name: id_ for name, id_ in identity(**changed).items() if id_ is not None}
    with pytest.raises(RejectedError) as refused:
        guard().diff(GUARDED, {**GUARDED, "identity": there, "contents": {}, "nested": []}, {})
    for text in (*says, f"`allowReplace: {allow}` in environments.dev of stacks/acme.yaml"):
        assert text in str(refused.value)


def test_what_is_allowed_is_a_warning_and_what_nothing_needs_as_well():
    new = {**GUARDED, "identity": identity(vpc=UNKNOWN), "allowReplace": ["vpc", "key"]}
    assert guard().diff(GUARDED, new, {}).changes
    replaced, needless = guard().diff_warnings(GUARDED, new, {})
    assert replaced == "This change REPLACES the VPC, as allowed (vpc: vpc-1 is replaced)."
    assert needless.startswith("allowReplace lists key, but nothing replaces it in this change")


def test_what_leaves_the_program_needs_a_run_that_lifts_its_protection():
    left = {name: id_ for name, id_ in identity().items() if name != "vpc"}
    new = {**GUARDED, "identity": left, "allowReplace": ["vpc"]}
    first = "first run `pulumi up` with `allowReplace: [vpc]` in environments.dev of stacks/acme.yaml and without this"
    for allowed in ([], ["vpc", "eks", "cluster"]):
        with pytest.raises(RejectedError, match=re.escape(first)):
            guard().diff(GUARDED, {**new, "allowReplace": allowed}, {})
    assert guard().diff({**GUARDED, "allowReplace": ["vpc"]}, new, {}).changes


def test_what_its_service_protects_needs_a_run_that_lifts_its_protection():
    old = {**GUARDED, "protected": ["eks"]}
    new = {**GUARDED, "identity": identity(vpc=UNKNOWN), "allowReplace": ["vpc", "eks", "cluster"]}
    with pytest.raises(RejectedError, match=r"first run `pulumi up` with `allowReplace: \[eks\]`"):
        guard().diff(old, new, {})
    assert guard().diff({**old, "protected": []}, new, {}).changes


PARTS = {
    "subject": "acme-dev",
    "parts": {"teams/nlp": "acme-dev-nlp", "teams/vision": "acme-dev-vision", "nodePools/burst": "burst"},
    "contents": {"teams/nlp": "the quota of nlp", "nodePools/burst": "the NodePool burst with its nodes"},
    "allowReplace": [],
    "where": "environments.dev of stacks/acme.yaml",
}


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        ({}, "`allowDelete: {nodePools: [burst], teams: [nlp, vision]}` in environments.dev of stacks/acme.yaml"),
        ({**PARTS["parts"], "teams/nlp": "other"}, "teams/nlp: acme-dev-nlp becomes other"),
        ({**PARTS["parts"], "teams/nlp": "other"}, "`allowDelete: {teams: [nlp]}`"),
    ],
)
def test_a_part_leaves_only_by_name(parts, says):
    with pytest.raises(RejectedError) as refused:
        guard().diff(PARTS, {**PARTS, "parts": parts}, {})
    assert says in str(refused.value)


def test_a_part_that_is_named_leaves_at_once_and_an_allowance_that_nothing_needs_is_said():
    left = {name: called for name, called in PARTS["parts"].items() if name != "teams/nlp"}
    new = {**PARTS, "parts": left, "allowReplace": ["teams/nlp", "nodePools/gone"]}
    assert not guard().diff(PARTS, new, {}).changes
    deleted, needless = guard().diff_warnings(PARTS, new, {})
    assert deleted.startswith("This change DELETES the quota of nlp, as allowed (teams/nlp: ")
    assert needless.startswith("allowDelete.nodePools lists gone, but nothing deletes it in this change")


def test_nothing_is_refused_without_ids():
    assert guard().diff(GUARDED, {**GUARDED, "identity": UNKNOWN}, {}).changes
    assert guard().diff_warnings(GUARDED, {**GUARDED, "identity": UNKNOWN, "allowReplace": ["vpc"]}, {}) == []
    version = {"subject": "EKS", "version": "1.35"}
    assert guard().diff({**version, "identity": {"network": "vpcCidr 10.0.0.0/16"}, "allowReplace": False}, version, {})
    assert not guard().diff(GUARDED, {**GUARDED, "contents": {}, "allowReplace": ["eks"], "where": "x"}, {}).changes


def test_a_fixed_setting_keeps_its_value_while_it_is_there():
    old = {"subject": "acme-dev", "fixed": {"gpu": "us-west-2a", "cpu": "us-west-2a", "network": "10.1.0.0/16"}}
    advice = r"gpu: us-west-2a becomes us-west-2b(.|\n)*rename gpu, (.|\n)*`allowDelete: {instanceGroups: \[gpu\]}`"
    with pytest.raises(RejectedError, match=advice):
        guard().diff(old, {**old, "fixed": {"gpu": "us-west-2b"}}, {})
    with pytest.raises(RejectedError, match=r"10\.1\.0\.0/16 becomes vpc-1(.|\n)*`hpkit aws destroy --stack acme-dev`"):
        guard().diff(old, {**old, "fixed": {"gpu": "us-west-2b", "network": "vpc-1"}}, {})
    assert not guard().diff(old, {**old, "fixed": {"gpu": "us-west-2a", "new": "us-west-2b"}}, {}).changes
