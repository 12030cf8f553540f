"""The chart of an environment, and its values."""

import pytest

from hpkit.catalog import dependencies_chart
from hpkit.plan.derive import derive
from tests import builders

REGISTRY = "123456789012.dkr.ecr.us-west-2.amazonaws.com/mirror"


def chart(groups=None, **dependencies):
    data = builders.organization(groups=groups)
    if dependencies:
        data["environments"]["dev"]["cluster"]["dependencies"] = dependencies
    return derive(builders.typed(data), "dev").dependencies


def test_a_file_that_says_nothing_gets_the_chart_that_the_kit_pins_with_its_region():
    dependencies = chart()
    assert dependencies.chart == f".hpkit/charts/{dependencies_chart().file}"
    assert dependencies.version == dependencies_chart().version
    assert dependencies.values == {"health-monitoring-agent": {"region": "us-west-2"}}


def test_nothing_is_installed_where_a_person_says_that_it_is_there():
    assert chart(installed=True) is None


def test_a_users_values_for_the_agent_keep_the_region_unless_they_say_another():
    assert chart(values={"health-monitoring-agent": {"debug": False}}).values == {
        "health-monitoring-agent": {"region": "us-west-2", "debug": False}
    }
    named = chart(values={"health-monitoring-agent": {"region": "us-east-1"}})
    assert named.values == {"health-monitoring-agent": {"region": "us-east-1"}}


def test_a_chart_of_ones_own_is_taken_with_its_version():
    found = chart(chart="oci://registry.example/chart", version="1.2.3", values={"a": 1})
    assert (found.chart, found.version) == ("oci://registry.example/chart", "1.2.3")
    assert found.values == {"health-monitoring-agent": {"region": "us-west-2"}, "a": 1}


def test_with_a_mirror_every_image_that_is_elsewhere_comes_from_it():
    values = chart(imageRegistry=REGISTRY).values
    assert values["nvidia-device-plugin"] == {"image": {"repository": f"{REGISTRY}/nvidia/k8s-device-plugin"}}
    assert values["mpi-operator"] == {"mpiOperator": {"image": {"repository": f"{REGISTRY}/mpioperator/mpi-operator"}}}
    assert values["training-operators"] == {"image": {"repository": f"{REGISTRY}/kubeflow/training-operator"}}
    assert "hmaimage" not in values["health-monitoring-agent"], "the region has a registry of its own"
    assert "aws-efa-k8s-device-plugin" not in values


@pytest.mark.parametrize(
    ("instance_type", "off"), [("ml.g5.12xlarge", {"devicePlugin": {"enabled": False}}), ("ml.trn1.32xlarge", None)]
)
def test_with_a_mirror_a_part_without_a_value_for_its_image_is_off_where_no_node_needs_it(instance_type, off):
    groups = [builders.group("gpu", instance_type, 1)]
    assert chart(groups, imageRegistry=REGISTRY).values.get("neuron-device-plugin") == off
    assert "neuron-device-plugin" not in chart(groups).values


def test_a_users_value_wins_over_the_mirror():
    mine = {"nvidia-device-plugin": {"image": {"repository": "mine/plugin"}}}
    assert chart(imageRegistry=REGISTRY, values=mine).values["nvidia-device-plugin"] == mine["nvidia-device-plugin"]


@pytest.mark.parametrize("instance_type", ["x", "ml", "p5"])
def test_a_word_that_is_no_instance_type_is_no_family_of_a_part(instance_type):
    groups = [builders.group("gpu", instance_type, 1)]
    assert chart(groups, imageRegistry=REGISTRY).values["neuron-device-plugin"] == {"devicePlugin": {"enabled": False}}
