"""Each rule's failing and passing cases; and an unknown figure is never counted as zero."""

import copy
import json
import os
import re
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from generate.cases import case_file, cases
from hpkit.catalog import find_instance_type
from hpkit.checks import RULES
from hpkit.plan.derive import derive
from tests.builders import findings, findings_in, group, organization, team, text_of, typed
from tests.cli.test_validate import ROOT

FOLDER = ROOT / "tests" / "stacks" / "rules"
CASES = [case for file in sorted(FOLDER.glob("*.yaml")) for case in cases(file.stem)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_a_case_has_the_findings_that_it_lists_and_no_other(case):
    findings = case.findings()
    shown = [
        {
            "rule": finding.rule,
            "severity": finding.severity,
            "path": finding.path,
            "message": finding.message,
            "fix": finding.fix,
        }
        for finding in findings
    ]
    assert shown == [expected.model_dump(exclude={"at"}) for expected in case.expected]
    for finding, expected in zip(findings, case.expected, strict=True):
        texts = case.files | case.stack_files | case.beside | {case.file: case.text}
        lines = texts.get(finding.file, case.text).splitlines()
        assert lines[finding.line - 1][finding.column - 1 :].startswith(expected.at)


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_every_rule_has_a_case_that_fails_for_it_and_one_that_passes(rule):
    assert (ROOT / case_file(rule)).is_file()
    own = [case for case in CASES if case.rule == rule]
    assert any(case.passes for case in own)
    for case in own:
        assert case.passes or rule in {expected.rule for expected in case.expected}, f"{case.name} is of another rule"


def test_a_finding_is_as_severe_as_its_rule_or_a_warning_where_something_is_not_known():
    severities = {rule.id: rule.severity for rule in RULES}
    for case in CASES:
        for expected in case.expected:
            assert expected.severity in (severities[expected.rule], "warning"), (case.rule, case.name, expected)


G7 = "ml.g7.2xlarge"  # The catalog has no values for this type.


def said(data):
    return {(finding.rule, finding.severity): finding.message for finding in findings(data)}


def test_a_fraction_of_a_type_without_figures_is_not_compared_and_says_so():
    data = organization(
        teams=[team("ada")],
        groups=[group("gpu", G7, 4), group("system", "ml.m5.4xlarge", 1)],
        allocations={"ada": [{"instanceType": G7, "accelerators": 400}]},
    )
    assert "the catalog lacks values for ml.g7.2xlarge" in said(data)["CAP004", "warning"]


def test_whole_instances_of_such_a_type_are_compared_all_the_same():
    data = organization(
        teams=[team("ada")],
        groups=[group("gpu", G7, 4), group("system", "ml.m5.4xlarge", 1)],
        allocations={"ada": [{"instanceType": G7, "count": 5}]},
    )
    assert ("CAP001", "error") in said(data)


def test_a_limit_in_a_unit_that_is_not_known_bounds_nothing_and_says_so():
    data = organization(
        teams=[team("ada")],
        groups=[group("burst", G7, 0), group("system", "ml.m5.4xlarge", 1)],
        allocations={"ada": [{"instanceType": G7, "count": 5, "elastic": True}]},
        environment={
            "autoscaling": {
                "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
                "nodePools": [{"name": "pool", "nodeClass": "burst", "limits": {"nvidia.com/gpu": 8}}],
            }
        },
    )
    assert "doesn't list for this type (nvidia.com/gpu 8)" in said(data)["CAP002", "warning"]
    pools = data["environments"]["dev"]["autoscaling"]["nodePools"]
    pools[0]["limits"] = {"nodes": 4}
    assert ("CAP002", "error") in said(data)


def test_a_subnet_that_may_be_too_small_for_nodes_of_unknown_need_says_so():
    groups = [group("gpu", G7, 10), group("system", "ml.m5.4xlarge", 1)]
    data = organization(groups=groups)
    assert ("CLU002", "warning") not in said(data)
    data["environments"]["dev"]["network"]["zones"][0]["nodeCidr"] = "10.1.0.0/24"
    assert "doesn't know how many addresses 10 × ml.g7.2xlarge use" in said(data)["CLU002", "warning"]


def test_pods_of_unknown_number_are_not_taken_for_none():
    data = organization(groups=[group("gpu", G7, 4)])
    assert "doesn't know how many pods ml.g7.2xlarge can run" in said(data)["CLU004", "warning"]


TYPES = ("ml.g5.12xlarge", "ml.p4d.24xlarge", "ml.c5.2xlarge", "ml.g5.8xlarge")
MIG = {"mig-1g.5gb": 7, "mig-2g.10gb": 3, "mig-3g.20gb": 2, "mig-7g.40gb": 1}
NAMES = ("ada", "bob", "cyd", "dee", "eve")


def examples(number):
    """Return the number of examples: all of them in the nightly run, a third otherwise."""
    return number if os.environ.get("HPKIT_NIGHTLY") == "1" else number // 3


@st.composite
def quota_resources(draw):
    instance_type = draw(st.sampled_from(TYPES))
    measure = draw(st.sampled_from(["count", "share", "accelerators", "vCpu", "memoryInGiB", "partition"]))
    quota_resource: dict = {"instanceType": instance_type}
    if measure == "count":
        quota_resource["count"] = draw(st.integers(0, 6))
    elif measure == "share":
        quota_resource["share"] = f"{draw(st.integers(0, 60))}%"
    elif measure == "accelerators" and instance_type != "ml.c5.2xlarge":
        quota_resource["accelerators"] = draw(st.integers(1, 12))
    elif measure == "partition":
        quota_resource["instanceType"] = "ml.p4d.24xlarge"
        quota_resource["acceleratorPartition"] = {
            "type": draw(st.sampled_from(sorted(MIG))),
            "count": draw(st.integers(1, 20)),
        }
    elif measure == "vCpu":
        quota_resource["vCpu"] = draw(st.integers(1, 100)) / 2
    else:
        quota_resource["memoryInGiB"] = draw(st.integers(1, 400)) / 4
    return quota_resource


@st.composite
def organizations(draw):
    teams = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=5, unique=True))
    groups = [
        group(f"g{index}", name, draw(st.integers(0, 9)))
        for index, name in enumerate(draw(st.lists(st.sampled_from(TYPES), min_size=1, max_size=6)))
    ]
    allocations = {name: draw(st.lists(quota_resources(), max_size=4)) for name in teams}
    return organization(teams=[team(name) for name in teams], groups=groups, allocations=allocations)


def brute_force(data):
    """Sum reserved quota and capacity from the file's data, without hpkit's arithmetic."""
    groups = data["environments"]["dev"]["cluster"]["instanceGroups"]
    have: dict[str, int] = {}
    for each in groups:
        have[each["instanceType"]] = have.get(each["instanceType"], 0) + each["instanceCount"]
    want: dict[tuple[str, str], Fraction] = {}
    for team_rows in data["environments"]["dev"]["governance"]["allocations"].values():
        for quota_resource in team_rows:
            name = quota_resource["instanceType"]
            instance = find_instance_type(name)
            totals = {"gpu": instance.accelerators, "cpu": instance.vcpu, "memory": instance.memory_gib}
            if "count" in quota_resource:
                part = {key: Fraction(quota_resource["count"] * one) for key, one in totals.items()}
                part["instances"] = Fraction(quota_resource["count"])
            elif "share" in quota_resource:
                continue  # The property about shares covers these.
            elif "accelerators" in quota_resource:
                ratio = Fraction(quota_resource["accelerators"], totals["gpu"])
                part = {key: one * ratio for key, one in totals.items()}
            elif "acceleratorPartition" in quota_resource:
                asked = quota_resource["acceleratorPartition"]
                ratio = Fraction(asked["count"], MIG[asked["type"]] * totals["gpu"])
                part = {key: one * ratio for key, one in totals.items()}
            else:
                key, other = ("cpu", "memory") if "vCpu" in quota_resource else ("memory", "cpu")
                asked = Fraction(quota_resource["vCpu"] if "vCpu" in quota_resource else quota_resource["memoryInGiB"])
                part = {key: asked, other: asked / totals[key] * totals[other]}
            for key, value in part.items():
                want[name, key] = want.get((name, key), Fraction(0)) + value
    limits = {}
    for name, count in have.items():
        instance = find_instance_type(name)
        limits[name, "instances"] = count
        limits[name, "gpu"] = count * instance.accelerators
        limits[name, "cpu"] = count * instance.vcpu
        limits[name, "memory"] = count * instance.memory_gib
    return want, limits


@settings(max_examples=examples(150), deadline=None)
@given(organizations())
def test_what_passes_fits_by_an_independent_sum(data):
    broken = {finding.rule for finding in findings(data)} & {"CAP001", "CAP003"}
    want, limits = brute_force(data)
    over = [key for key, amount in want.items() if amount > limits.get(key, 0)]
    if not broken:
        assert not over
    has_shares = "share" in json.dumps(data)
    if over and not has_shares:
        assert broken, over


@settings(max_examples=examples(150), deadline=None)
@given(organizations())
def test_quotas_made_from_shares_never_exceed_capacity(data):
    allocations = data["environments"]["dev"]["governance"]["allocations"]
    shared: dict[str, Fraction] = {}
    for name, team_rows in allocations.items():
        allocations[name] = [quota_resource for quota_resource in team_rows if "share" in quota_resource]
        for quota_resource in allocations[name]:
            asked = Fraction(quota_resource["share"].removesuffix("%")) / 100
            shared[quota_resource["instanceType"]] = shared.get(quota_resource["instanceType"], Fraction(0)) + asked
    plan = derive(typed(data), "dev")
    reserved: dict[str, int] = {}
    for team_plan in plan.teams:
        for quota_resource in team_plan.quota_resources:
            reserved[quota_resource.instance_type] = (
                reserved.get(quota_resource.instance_type, 0) + quota_resource.count
            )
    for name, count in reserved.items():
        known = plan.capacity.get(name)
        assert count <= (known.permanent if known else 0) * shared[name]


RAISED = re.compile(r"raise `instanceCount` of groups? (?P<groups>\S.*) (?:to (?P<to>\d+)|by (?P<by>\d+) in total)\.")


@settings(max_examples=examples(150), deadline=None)
@given(organizations())
def test_the_instance_count_that_cap001_names_is_enough_and_the_least(data):
    groups = {each["name"]: each for each in data["environments"]["dev"]["cluster"]["instanceGroups"]}

    def over():
        return {each.message.split(" (")[0]: each for each in findings(data) if each.rule == "CAP001"}

    for finding in over().values():
        raised = RAISED.search(finding.fix)
        if raised is None:
            continue
        of_type = groups[raised["groups"].split(", ")[0].strip("`")]
        name, before = of_type["instanceType"], of_type["instanceCount"]
        of_type["instanceCount"] = int(raised["to"]) if raised["to"] else before + int(raised["by"])
        assert not [each for each in over().values() if name in each.message]
        of_type["instanceCount"] -= 1
        assert of_type["instanceCount"] == before or [each for each in over().values() if name in each.message]
        of_type["instanceCount"] += 1


@pytest.mark.parametrize("lowered", [("ada", "count", 3), ("bob", "accelerators", 0), ("raised", "", 6)])
def test_each_fix_of_counts_and_accelerators_together_holds(lowered):
    name, key, to = lowered
    data = organization(
        teams=[team("ada"), team("bob")],
        groups=[group("gpu", "ml.p5.48xlarge", 4)],
        allocations={
            "ada": [{"instanceType": "ml.p5.48xlarge", "count": 5}],
            "bob": [{"instanceType": "ml.p5.48xlarge", "accelerators": 8}],
        },
    )
    (finding,) = [each for each in findings(data) if each.rule == "CAP001"]
    assert finding.message == "6 × ml.p5.48xlarge allocated (ada 5 instances, bob 8 accelerators), but only 4 exist"
    assert finding.fix == (
        "Lower allocations by 2 instances (16 accelerators), or raise `instanceCount` of group `gpu` to 6."
    )
    dev = data["environments"]["dev"]
    if name == "raised":
        dev["cluster"]["instanceGroups"][0]["instanceCount"] = to
    else:
        rows = dev["governance"]["allocations"]
        rows[name][0][key], rows["ada"][0]["count"] = to, 3 if name == "ada" else 4
    assert not {each.rule for each in findings(data)} & {"CAP001"}


@settings(max_examples=examples(60), deadline=None)
@given(organizations(), st.randoms(use_true_random=False))
def test_the_order_of_teams_groups_and_rows_changes_nothing_but_order(data, random):
    other = copy.deepcopy(data)
    dev = other["environments"]["dev"]
    random.shuffle(other["teams"])
    random.shuffle(dev["cluster"]["instanceGroups"])
    items = list(dev["governance"]["allocations"].items())
    random.shuffle(items)
    dev["governance"]["allocations"] = dict(items)

    def said(organization):
        return sorted((finding.rule, finding.path, finding.message) for finding in findings(organization))

    assert said(other) == said(data)
    one, two = derive(typed(data), "dev"), derive(typed(other), "dev")
    assert one.teams == two.teams
    assert one.capacity == two.capacity
    assert [each.spec for each in one.groups] == [each.spec for each in two.groups]


@settings(max_examples=examples(60), deadline=None)
@given(organizations(), st.randoms(use_true_random=False))
def test_the_order_of_a_teams_rows_changes_no_sum(data, random):
    other = copy.deepcopy(data)
    for team_rows in other["environments"]["dev"]["governance"]["allocations"].values():
        random.shuffle(team_rows)

    def said(organization):
        return sorted((finding.rule, finding.message) for finding in findings(organization))

    assert said(other) == said(data)


scalars = st.none() | st.booleans() | st.integers(-5, 10**12) | st.floats() | st.text(max_size=12)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
)


@settings(max_examples=examples(300), deadline=None)
@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_validate_never_raises_on_arbitrary_text(text):
    assert findings_in(text.encode())


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=100))
def test_validate_never_raises_on_arbitrary_bytes(content):
    assert findings_in(content)


def places(value, path=()):
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


FULL = organization(
    teams=[team("ada", sharing={"strategy": "LendAndBorrow", "borrowLimit": 50}), team("bob")],
    allocations={
        "ada": [{"instanceType": "ml.g5.12xlarge", "count": 2}],
        "bob": [{"instanceType": "ml.g5.12xlarge", "share": "40%"}],
    },
    environment={
        "autoscaling": {
            "nodeClasses": [{"name": "burst", "instanceGroups": ["gpu"]}],
            "nodePools": [{"name": "pool", "nodeClass": "burst", "limits": {"nvidia.com/gpu": 8}}],
        },
        "waivers": [{"rule": "CAP005", "path": "environments", "reason": "test", "until": "2027-06-01"}],
    },
)


@settings(max_examples=examples(400), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from([path for path in places(FULL) if path]), values)
def test_validate_never_raises_whatever_stands_in_place_of_a_value(path, value):
    data = copy.deepcopy(FULL)
    parent = data
    for step in path[:-1]:
        parent = parent[step]
    parent[path[-1]] = value
    findings_in(text_of(data))


@pytest.mark.parametrize("path", [path for path in places(FULL) if path], ids=str)
def test_validate_never_raises_when_a_value_is_gone(path):
    data = copy.deepcopy(FULL)
    parent = data
    for step in path[:-1]:
        parent = parent[step]
    del parent[path[-1]]
    findings(data)
