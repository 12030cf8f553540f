"""Kueue's configuration file with one gate set."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hpkit.plan.kueue import with_feature_gate

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
        yaml.safe_load(with_feature_gate(text, "TopologyAwareScheduling", enabled=enabled)),
    )
    gates = {**(before.pop("featureGates", {}) or {}), "TopologyAwareScheduling": enabled}
    assert after == {**before, "featureGates": gates}


@given(st.dictionaries(NAMES, st.booleans()), NAMES, st.booleans(), st.booleans())
def test_setting_it_twice_is_setting_it_once(gates, name, enabled, last):
    text = yaml.safe_dump({"kind": "Configuration", "featureGates": gates, "z": {"A": 1}})
    if not gates:
        text = text.replace("featureGates: {}", "featureGates:")
    once = with_feature_gate(text, name, enabled=enabled)
    assert with_feature_gate(once, name, enabled=enabled) == once
    assert yaml.safe_load(once) == {"kind": "Configuration", "featureGates": {**gates, name: enabled}, "z": {"A": 1}}


def test_gates_in_one_line_are_refused():
    with pytest.raises(ValueError, match="one line"):
        with_feature_gate("featureGates: {A: true}\n", "B", enabled=True)


def test_comments_stay():
    assert "# kept" in with_feature_gate(SHIPPED, "TopologyAwareScheduling", enabled=False)
