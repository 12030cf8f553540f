"""Whatever `hpkit validate` accepts without a warning passes the pack without settings, as the program registers it."""

import os

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from hpkit.plan.derive import derive
from hpkit.recording import record
from policies.recorded import findings_of, resources_of
from tests.builders import TODAY, findings, group, organization, typed
from tests.review.test_properties import organizations

ROLE = "arn:aws:iam::123456789012:role/"
NIGHTLY = os.environ.get("HPKIT_NIGHTLY") == "1"
WORDS = ("bucket", "cluster", "eks", "fileSystem", "grafana", "key", "prometheus", "vpc")
ELASTIC = "ml.g5.8xlarge"


def statements():
    """Return what an environment may state beside its platform, each of which some policy is about."""
    return st.fixed_dictionaries(
        {},
        optional={
            "protect": st.booleans(),
            "allowReplace": st.lists(st.sampled_from(WORDS), unique=True),
            "allowDelete": st.sampled_from([{"teams": ["gone"]}, {"addons": ["keda"]}, {"instanceGroups": ["gone"]}]),
            "deployers": st.just([f"{ROLE}deployer"]),
            "observability": st.just({"cloudwatch": True}),
        },
    )


@st.composite
def platforms(draw, *, made=None):
    """Return an organization with and without Karpenter; made: whether its network and EKS cluster are its own."""
    data = draw(organizations())
    environment = data["environments"]["dev"]
    # A recording of all of a platform takes several times as long.
    if draw(st.integers(0, 3)) == 0 if made is None else made:
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
    # Without these, nearly every draw has a warning.
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
    resources = resources_of(record(derive(typed(data), "dev")).resources.values())
    violations = [each for each in findings_of(resources, {}, TODAY) if each.level != "advisory"]
    assert violations == []


def test_the_smallest_new_organization_passes_though_it_states_nothing_of_protection():
    data = organization(groups=[group("gpu", "ml.g5.12xlarge", 4), group("system", "ml.m5.4xlarge", 1)])
    assert findings(data) == []
    recording = record(derive(typed(data), "dev"))
    assert not recording.one("hyperpod:index:Cluster").protect
    resources = resources_of(recording.resources.values())
    assert [each for each in findings_of(resources, {}, TODAY) if each.level != "advisory"] == []
