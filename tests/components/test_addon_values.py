"""Values of add-ons: what the kit sets."""

from hpkit.components.addon_values import hyperpod_values
from hpkit.config.addons import MetricsProvider


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
