"""Kueue's configuration file with one gate set."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hpkit.plan.derive import derive
from hpkit.program.components.kueue import gates_of, with_feature_gates
from tests.builders import organization, typed

SHIPPED = """\
apiVersion: config.kueue.x-k8s.io/v1beta2
kind: Configuration
fairSharing:
  preemptionStrategies: [LessThanOrEqualToFinalShare, LessThanInitialShare]
featureGates:
  # kept
  DisableWaitForPodsReady: true
  TopologyAwareScheduling: true
health:
  healthProbeBindAddress: :8081
"""
NAMES = st.sampled_from(["TopologyAwareScheduling", "A", "Bee", "DisableWaitForPodsReady"])


@pytest.mark.parametrize("text", [SHIPPED, "kind: Configuration\n", "featureGates: {}\nkind: Configuration\n", ""])
@pytest.mark.parametrize("enabled", [True, False])
def test_the_gate_is_set_and_the_rest_is_as_it_was(text, enabled):
    before, after = (
        yaml.safe_load(text) or {},
        yaml.safe_load(with_feature_gates(text, {"TopologyAwareScheduling": enabled})),
    )
    gates = {**(before.pop("featureGates", {}) or {}), "TopologyAwareScheduling": enabled}
    assert after == {**before, "featureGates": gates}


@given(st.dictionaries(NAMES, st.booleans()), NAMES, st.booleans(), st.booleans())
def test_setting_it_twice_is_setting_it_once(gates, name, enabled, last):
    text = yaml.safe_dump({"kind": "Configuration", "featureGates": gates, "z": {"A": 1}})
    if not gates:
        text = text.replace("featureGates: {}", "featureGates:")
    once = with_feature_gates(text, {name: enabled})
    assert with_feature_gates(once, {name: enabled}) == once
    assert yaml.safe_load(once) == {"kind": "Configuration", "featureGates": {**gates, name: enabled}, "z": {"A": 1}}


def test_gates_in_one_line_are_set_as_well():
    assert with_feature_gates("featureGates: {A: true}\n", {"B": True}) == "featureGates: {A: true, B: true}\n"


@pytest.mark.parametrize("text", ["[]", "featureGates: [", "words"])
def test_what_is_no_configuration_is_refused(text):
    with pytest.raises(ValueError, match="Kueue's configuration is"):
        with_feature_gates(text, {"B": True})


def test_comments_stay():
    assert "# kept" in with_feature_gates(SHIPPED, {"TopologyAwareScheduling": False})


@pytest.mark.parametrize(
    ("version", "gates"),
    [
        ("v1.6.0-eksbuild.1", 9),  # Kueue 0.19.2 refuses to start with the one gate off and the eight on
        ("v1.4.0", 1),
        ("v9.9.9", 1),
    ],
)
def test_the_gates_are_those_of_the_kueue_that_the_addon_ships(version, gates):
    addons = {"addons": {"amazon-sagemaker-hyperpod-taskgovernance": version}}
    plan = derive(typed(organization(environment=addons)), "dev")
    found = gates_of(plan)
    assert len(found) == gates
    assert found["TopologyAwareScheduling"] is plan.topology_aware_scheduling
    assert len(set(found.values())) == 1


def test_no_gate_is_switched_where_nobody_manages_them():
    data = organization()
    data["environments"]["dev"]["governance"]["topologyAwareScheduling"] = "Unmanaged"
    assert gates_of(derive(typed(data), "dev")) == {}


def test_no_gate_is_given_to_a_kueue_that_knows_no_topology():
    data = organization(environment={"addons": {"amazon-sagemaker-hyperpod-taskgovernance": "v1.0.0-eksbuild.4"}})
    data["environments"]["dev"]["governance"]["topologyAwareScheduling"] = "Disabled"
    assert gates_of(derive(typed(data), "dev")) == {}
