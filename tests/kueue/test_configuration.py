"""Reading and editing Kueue's configuration file."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hpkit.kueue.configuration import (
    configured,
    gang_differences,
    gang_of,
    gates_of,
    with_feature_gates,
    with_gang_scheduling,
)
from hpkit.kueue.model import WaitForPodsReady
from hpkit.plan.derive import derive
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
        ("v1.6.0-eksbuild.1", 9),  # Kueue 0.19.2 won't start with this one gate off and the other eight on.
        ("v1.4.0", 1),
        ("v9.9.9", 1),
    ],
)
def test_the_gates_are_those_of_the_kueue_that_the_addon_ships(version, gates):
    addons = {"addons": {"amazon-sagemaker-hyperpod-taskgovernance": version}}
    plan = derive(typed(organization(environment=addons)), "dev")
    plan_gates = gates_of(plan)
    assert len(plan_gates) == gates
    assert plan_gates["TopologyAwareScheduling"] is plan.topology_aware_scheduling
    assert len(set(plan_gates.values())) == 1


def test_no_gate_is_switched_where_nobody_manages_them():
    data = organization()
    data["environments"]["dev"]["governance"]["topologyAwareScheduling"] = "Unmanaged"
    assert gates_of(derive(typed(data), "dev")) == {}


def test_no_gate_is_given_to_a_kueue_that_knows_no_topology():
    data = organization(environment={"addons": {"amazon-sagemaker-hyperpod-taskgovernance": "v1.0.0-eksbuild.4"}})
    data["environments"]["dev"]["governance"]["topologyAwareScheduling"] = "Disabled"
    assert gates_of(derive(typed(data), "dev")) == {}


TASK_GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"
V1BETA1 = "apiVersion: config.kueue.x-k8s.io/v1beta1\nkind: Configuration\n"
V1BETA2 = "apiVersion: config.kueue.x-k8s.io/v1beta2\nkind: Configuration\n"
OFF = f"{V1BETA2}featureGates:\n  DisableWaitForPodsReady: true\n"
BY_CONSOLE = f"{V1BETA1}waitForPodsReady:\n  enable: true\n  timeout: 5m0s\n  blockAdmission: false\n"
GANG = WaitForPodsReady(300, 600, block_admission=True, timestamp="Creation", backoff_limit_count=3)


def plan_with(gang=None, topology=None, addon="v1.6.0-eksbuild.1"):
    data = organization(environment={"addons": {TASK_GOVERNANCE: addon}})
    governance = data["environments"]["dev"]["governance"]
    governance |= {"gangScheduling": gang} if gang else {}
    governance |= {"topologyAwareScheduling": topology} if topology else {}
    return derive(typed(data), "dev")


@pytest.mark.parametrize("wanted", [GANG, WaitForPodsReady(90, 0), None])
@pytest.mark.parametrize(
    ("text", "kueue"),
    [
        *((V1BETA1, kueue) for kueue in ("0.12.0", "0.19.2")),
        *((BY_CONSOLE, kueue) for kueue in ("0.12.0", "0.19.2", None)),
        *((V1BETA2, kueue) for kueue in ("0.18.0", "0.19.2")),
        (f"{V1BETA2}waitForPodsReady: {{timeout: 7m}}\n", "0.18.0"),
        (OFF, "0.19.2"),
    ],
)
def test_gang_scheduling_is_set_as_wanted_in_each_version_of_the_file(text, kueue, wanted):
    after = with_gang_scheduling(text, wanted, kueue)
    assert with_gang_scheduling(after, wanted, kueue) == after
    config = yaml.safe_load(after)
    section = config.get("waitForPodsReady")
    if wanted is None:
        is_gated = config.get("featureGates", {}).get("DisableWaitForPodsReady", False)
        assert is_gated or section is None or section["enable"] is False
        assert is_gated or kueue != "0.19.2" or "v1beta1" in text, "without the gate, this Kueue turns it on"
        return
    assert config.get("featureGates", {}).get("DisableWaitForPodsReady", False) is False
    assert section.pop("enable", None) is (True if "v1beta1" in text else None)
    limit = {} if wanted.backoff_limit_count is None else {"backoffLimitCount": wanted.backoff_limit_count}
    assert section == {
        "timeout": "5m" if wanted is GANG else "1m30s",
        "recoveryTimeout": "10m" if wanted is GANG else "0s",
        "blockAdmission": wanted.block_admission,
        "requeuingStrategy": {
            "timestamp": wanted.timestamp,
            **limit,
            "backoffBaseSeconds": 60,
            "backoffMaxSeconds": 3600,
        },
    }


@pytest.mark.parametrize("version", ["v1beta1", "v1beta2"])
def test_a_kueue_without_the_gate_is_never_given_it(version):
    text = BY_CONSOLE if version == "v1beta1" else f"{V1BETA2}waitForPodsReady: {{timeout: 7m}}\n"
    assert "DisableWaitForPodsReady" not in with_gang_scheduling(text, None, "0.18.0")


def test_settings_of_the_same_meaning_stay_as_they_are_written():
    plan = plan_with({"enable": True}, topology="Unmanaged")
    assert configured(BY_CONSOLE, plan) == BY_CONSOLE
    assert gang_differences(BY_CONSOLE, plan) == ()


def test_gang_scheduling_that_the_console_turned_on_is_turned_off_and_reported():
    plan = plan_with()
    assert gang_of(configured(BY_CONSOLE, plan), plan) is None
    (line,) = gang_differences(BY_CONSOLE, plan)
    assert line == (
        "gang scheduling is on (timeout 5m, recoveryTimeout 5m, blockAdmission false, timestamp Eviction, "
        "backoffBaseSeconds 60, backoffMaxSeconds 3600), but off in the file"
    )
    assert gang_differences(OFF, plan) == ()


def test_each_setting_that_the_console_changed_is_reported():
    plan = plan_with({"enable": True, "timeout": "10m", "requeuingStrategy": {"backoffLimitCount": 2}})
    assert gang_differences(BY_CONSOLE, plan) == (
        "gang scheduling has timeout 5m, but 10m in the file",
        "gang scheduling has recoveryTimeout 5m, but 10m in the file",
        "gang scheduling has backoffLimitCount unset, but 2 in the file",
    )
    assert gang_differences(OFF, plan) == ("gang scheduling is off, but on in the file",)


def test_an_adopted_clusters_gang_scheduling_is_managed_only_if_the_file_has_it():
    assert configured(BY_CONSOLE, plan_with(topology="Unmanaged")) == BY_CONSOLE
    assert gang_differences(BY_CONSOLE, plan_with(topology="Unmanaged")) == ()
    off = plan_with({"enable": False}, topology="Unmanaged")
    assert yaml.safe_load(configured(BY_CONSOLE, off))["waitForPodsReady"]["enable"] is False


def test_a_configuration_that_is_not_written_yet_is_off():
    assert gang_of("", plan_with()) is None
    assert gang_differences("", plan_with({"enable": True})) == ()
    assert yaml.safe_load(configured("", plan_with({"enable": True})))["waitForPodsReady"]["timeout"] == "5m"
