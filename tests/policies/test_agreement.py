"""Every file that `hpkit validate` accepts without a warning passes the pack without settings."""

import datetime
import json
import os
import re

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from generate.cases import cases
from hpkit.checks import RULES
from hpkit.config import parse, read_text
from hpkit.plan.derive import derive, derive_all
from hpkit.project import Loaded
from hpkit_policies.recorded import parse_recording, run_policies
from tests.builders import TODAY, findings, findings_in, group, organization, plain, text_of, typed
from tests.changes.review.test_changes import organizations
from tests.program.recorder import recording_of

ROLE = "arn:aws:iam::123456789012:role/"
NIGHTLY = os.environ.get("HPKIT_NIGHTLY") == "1"
WORDS = ("bucket", "cluster", "eks", "fileSystem", "grafana", "key", "prometheus", "vpc")
_POLICY = re.compile(r"doesn't waive the policy ([\w-]+)")
ELASTIC = "ml.g5.8xlarge"


def statements():
    """Generate settings of an environment outside its platform; a policy checks each of them."""
    return st.fixed_dictionaries(
        {},
        optional={
            "protect": st.booleans(),
            "allowReplace": st.lists(st.sampled_from(WORDS), unique=True),
            "allowDelete": st.sampled_from([{"teams": ["gone"]}, {"addons": ["keda"]}, {"instanceGroups": ["gone"]}]),
            "deployers": st.just([f"{ROLE}deployer"]),
            "manageTags": st.just(False),
            "observability": st.just({"cloudwatch": True}),
        },
    )


@st.composite
def platforms(draw):
    """Generate an organization with and without Karpenter, and with and without its own network."""
    data = draw(organizations())
    environment = data["environments"]["dev"]
    # Recording an entire platform takes several times as long.
    if draw(st.integers(0, 3)) == 0:
        base = organization()["environments"]["dev"]
        administrators = environment["eks"]["administrators"]
        environment |= {"network": base["network"], "eks": base["eks"] | {"administrators": administrators}}
        environment["cluster"].pop("dependencies")
    if "autoscaling" in environment:
        rows = next(iter(environment["governance"]["allocations"].values()), [])
        rows.append({"instanceType": ELASTIC, "count": draw(st.integers(1, 20)), "elastic": True})
        environment["governance"]["topologyAwareScheduling"] = "Disabled"
    elif draw(st.booleans()):
        environment["cluster"]["nodeRecovery"] = "None"
    # Without these, nearly every example has a warning.
    data["clusterPolicy"]["idleResourceSharing"] = "Enabled"
    for each in data["teams"]:
        each["members"] = each["members"] or [f"{ROLE}{each['name']}"]
        each["sharing"] = {"strategy": "Lend"}
    environment |= draw(statements())
    return data


@settings(
    max_examples=120 if NIGHTLY else 12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(platforms())
def test_what_the_validator_accepts_without_a_warning_passes_the_pack(data):
    assume(findings(data) == [])
    resources = parse_recording(recording_of(derive(typed(data), "dev")).resources.values())
    violations = [each for each in run_policies(resources, {}, TODAY) if each.level != "advisory"]
    assert violations == []


# Rules that the pack checks as well, and type names, which quota refers to. By day, two of them are enough, because
# each records several programs; the nightly run uses all rules.
BOTH_JUDGE = {"ACC001", "ACC014", "CLU003", "CLU010", "EKS001", "KAR002", "KAR007", "KAR010"}
WAIVABLE = [rule for rule in RULES if rule.waivable and (NIGHTLY or rule.id in ("EKS001", "KAR010"))]


def waived(case):
    """Return a case's organization with a waiver for each of its findings."""
    data = plain(read_text(case.text.encode()).data)
    until = case.today + datetime.timedelta(days=100)
    for finding in case.findings():
        step, _, rest = finding.path.partition(".")
        names = [rest.partition(".")[0]] if step == "environments" else list(data["environments"])
        for name in names:
            waivers = data["environments"][name].setdefault("waivers", [])
            waivers.append({"rule": finding.rule, "path": finding.path, "reason": "for the test", "until": until})
    return data


def judged(data, today, settings=None):
    plans = derive_all(typed(data)).values()
    resources = [parse_recording(recording_of(plan).resources.values()) for plan in plans]
    return [
        each for some in resources for each in run_policies(some, settings or {}, today) if each.level != "advisory"
    ]


@pytest.mark.parametrize("rule", WAIVABLE, ids=lambda rule: rule.id)
def test_what_waivers_leave_without_a_warning_passes_the_pack(rule):
    reached = 0
    for case in cases(rule.id):
        data = waived(case)
        left = [each for each in findings_in(text_of(data), today=case.today) if each.rule != "WAI002"]
        if case.passes or [each for each in left if each.rule != "WAI005"]:
            continue
        reached += 1
        violated = {each.policy for each in judged(data, case.today)}
        assert violated == {_POLICY.search(each.message)[1] for each in left}, case.name
    assert reached or rule.id not in BOTH_JUDGE


def test_a_policy_file_that_waives_the_same_leaves_no_warning_and_passes(tmp_path, monkeypatch):
    (case, *_) = cases("EKS001")
    data = waived(case)
    (tmp_path / "stacks").mkdir()
    (tmp_path / "Pulumi.yaml").touch()
    monkeypatch.chdir(tmp_path)
    file, document = tmp_path / "stacks" / "acme.policy.json", read_text(text_of(data))
    until = str(case.today + datetime.timedelta(days=100))
    waivers = [{"resource": "cluster", "reason": "for the test", "until": until}]
    for text in (None, "no JSON", '{"all": "mandatory"}', '"text"'):
        if text is not None:
            file.write_text(text)
        findings = Loaded("stacks/acme.yaml", document, parse(document)).findings_on(case.today)
        assert [config.rule for config in findings] == ["WAI005"], text
    for config in ({"waivers": waivers}, "advisory", {"enforcementLevel": "disabled"}):
        policies = {"eks-endpoint-not-open": config}
        file.write_text(json.dumps(policies))
        findings = Loaded("stacks/acme.yaml", document, parse(document)).findings_on(case.today)
        assert list(findings) == [], config
        assert judged(data, case.today, policies) == [], config


def test_a_role_of_a_team_passes_however_it_can_be_assumed():
    (case,) = [case for case in cases("ACC014") if case.passes]
    assert case.findings() == []
    assert judged(plain(read_text(case.text.encode()).data), case.today) == []


def test_the_smallest_new_organization_passes_though_it_states_nothing_of_protection():
    data = organization(groups=[group("gpu", "ml.g5.12xlarge", 4), group("system", "ml.m5.4xlarge", 1)])
    assert findings(data) == []
    recording = recording_of(derive(typed(data), "dev"))
    assert not recording.one("hyperpod:index:Cluster").protect
    resources = parse_recording(recording.resources.values())
    assert [each for each in run_policies(resources, {}, TODAY) if each.level != "advisory"] == []
