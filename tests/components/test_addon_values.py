"""Values of add-ons: what the file says lies over what the kit sets, map by map."""

from hypothesis import given
from hypothesis import strategies as st

from hpkit.components.addon_values import hyperpod_values, merged
from hpkit.config.addons import MetricsProvider

LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)
KEYS = st.sampled_from(["a", "b", "c"])
MAPS = st.dictionaries(KEYS, st.recursive(LEAVES, lambda inner: st.dictionaries(KEYS, inner, max_size=3)), max_size=3)


@given(MAPS, MAPS)
def test_what_the_file_says_holds_and_the_rest_stays(base, over):
    result = merged(base, over)
    assert merged(result, over) == result
    assert set(result) == set(base) | set(over)
    for key in set(base) - set(over):
        assert result[key] == base[key]
    for key, value in over.items():
        if not isinstance(value, dict):
            assert result[key] == value


@given(MAPS)
def test_nothing_laid_over_changes_nothing(base):
    assert merged(base, {}) == base
    assert merged({}, base) == base


def test_what_teams_wait_for_is_measured_unless_the_file_says_otherwise():
    place = {"endpoint": "https://x", "workspace_arn": "arn", "grafana_name": None, "grafana_arn": None}
    values = hyperpod_values(MetricsProvider(), **place)
    assert values == {
        "ampWorkspace": {"prometheusEndpoint": "https://x", "arn": "arn"},
        "metricsProvider": {"taskGovernanceMetrics": {"level": "BASIC"}, "scalingMetrics": {"level": "BASIC"}},
    }
    chosen = MetricsProvider.model_validate(
        {"taskGovernanceMetrics": {"level": "ADVANCED", "scrapeInterval": 60}, "scalingMetrics": {"level": "DISABLED"}}
    )
    assert hyperpod_values(chosen, **place)["metricsProvider"] == {
        "taskGovernanceMetrics": {"level": "ADVANCED", "scrapeInterval": 60},
        "scalingMetrics": {"level": "DISABLED"},
    }
