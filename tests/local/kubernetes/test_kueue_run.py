"""Settings that restart Kueue."""

import yaml

from hpkit_local.kubernetes.kueue_run import merged


def test_settings_that_name_what_is_on_by_default_are_no_reason_to_restart_and_others_are():
    base = {"webhook": {"port": 1}, "featureGates": {"TopologyAwareScheduling": True, "VisibilityOnDemand": False}}
    for gates in ({}, {"TopologyAwareScheduling": True}, {"VisibilityOnDemand": True}):
        assert merged(base, yaml.safe_dump({"featureGates": gates})) == base, gates
    off = merged(base, yaml.safe_dump({"featureGates": {"TopologyAwareScheduling": False}}))
    assert off["featureGates"] == {"TopologyAwareScheduling": False, "VisibilityOnDemand": False}
