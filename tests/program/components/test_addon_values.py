"""The values that hpkit sets for add-ons."""

import jsonschema
import pytest

from hpkit.config.models.observability import MetricsProvider
from hpkit.program.components.addons.values import hyperpod_values
from hpkit_local.aws.services.eks.addon_versions import ADDONS
from tests.builders import organization, rules

PLACE = {"endpoint": "https://x", "workspace_arn": "arn", "grafana_name": None, "grafana_arn": None}
SCHEMA = ADDONS["amazon-sagemaker-hyperpod-observability"].schema
CATEGORIES = {
    name: each for name, each in SCHEMA["properties"]["metricsProvider"]["properties"].items() if name != "logging"
}


def test_what_teams_wait_for_is_measured_unless_the_file_says_otherwise():
    values = hyperpod_values(MetricsProvider(), **PLACE)
    assert values == {
        "ampWorkspace": {"prometheusEndpoint": "https://x", "arn": "arn"},
        "metricsProvider": {"taskGovernanceMetrics": {"level": "ADVANCED"}},
    }
    chosen = MetricsProvider.model_validate(
        {"taskGovernanceMetrics": {"level": "DISABLED"}, "scalingMetrics": {"level": "ADVANCED", "scrapeInterval": 60}}
    )
    assert hyperpod_values(chosen, **PLACE)["metricsProvider"] == {
        "taskGovernanceMetrics": {"level": "DISABLED"},
        "scalingMetrics": {"level": "ADVANCED", "scrapeInterval": 60},
    }


def test_what_the_kit_sets_by_itself_fits_the_add_on():
    jsonschema.validate(hyperpod_values(MetricsProvider(), **PLACE), SCHEMA)


@pytest.mark.parametrize("level", ["BASIC", "ADVANCED", "DISABLED"])
@pytest.mark.parametrize("category", sorted(CATEGORIES))
def test_the_file_takes_the_levels_that_the_add_on_takes(category, level):
    taken = level in CATEGORIES[category]["properties"]["level"]["enum"]
    said = {"prometheus": True, "metricsProvider": {category: {"level": level}}}
    found = rules(organization(environment={"observability": said}))
    assert ("CFG002" in found) == (not taken)
    assert "CFG001" not in found
