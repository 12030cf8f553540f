"""The description of an instance group: its type, what sets its count, and which teams have quota for it."""

import pytest

from hpkit.errors import SelectionError
from hpkit.explain import explain_group, group_text
from hpkit.plan.derive import derive
from tests.builders import group, organization, split, team, typed

BURST = {
    "autoscaling": {
        "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
        "nodePools": [{"name": "pool", "nodeClass": "burst", "limits": {"nvidia.com/gpu": 4}}],
    }
}


def said(data, name):
    return "\n".join(line for _, lines in group_text(explain_group(derive(typed(data), "dev"), name)) for line in lines)


def test_a_static_group_stands_as_the_file_says():
    data = organization(teams=[team("a")], allocations={"a": [{"instanceType": "ml.g5.12xlarge", "count": 3}]})
    text = said(data, "gpu")
    assert "4 instances always run" in text
    assert "Each ml.g5.12xlarge has 4 accelerators, 48 vCPU, 192 GiB" in text
    assert "Quota: a 3; 1 unreserved" in text


def test_a_group_of_an_existing_cluster_names_only_zones_that_are_known():
    data = split(organization())
    data["environments"]["governance"]["cluster"]["instanceGroups"] = [
        {"name": "gpu", "instanceType": "ml.g5.12xlarge", "instanceCount": 4}
    ]
    plans = [derive(typed(data), name) for name in ("dev", "governance")]
    ends = [group_text(explain_group(plan, "gpu"))[0][0].partition("ml.g5.12xlarge")[2] for plan in plans]
    assert ends == [" in us-west-2a", ""]


def test_a_group_of_karpenter_names_its_node_pool():
    groups = [group("base", "ml.g5.8xlarge", 2), group("burst", "ml.g5.8xlarge", 0)]
    data = organization(groups=groups, environment=BURST)
    assert "NodePool pool of NodeClass burst adds nodes" in said(data, "burst")
    assert explain_group(derive(typed(data), "dev"), "base").node_class is None


def test_a_restricted_group_has_no_quota():
    data = organization()
    role = "arn:aws:iam::123456789012:role/nova"
    restricted = {"name": "nova", "instanceType": "ml.p5.48xlarge", "instanceCount": 1, "executionRole": role}
    data["environments"]["dev"]["cluster"]["restrictedInstanceGroups"] = [restricted]
    explained = explain_group(derive(typed(data), "dev"), "nova")
    assert explained.quotas == ()
    assert "No team's quota counts it" in said(data, "nova")


def test_a_group_that_is_not_there_names_the_nearest_or_all():
    plan = derive(typed(organization()), "dev")
    with pytest.raises(SelectionError, match="did you mean gpu"):
        explain_group(plan, "gpus")
    with pytest.raises(SelectionError, match="it has gpu"):
        explain_group(plan, "zzz")


@pytest.mark.parametrize(
    ("region", "said_of_it"),
    [
        ("us-east-1", "It costs $7.09 per hour on demand (2026-09-16:"),
        ("us-west-2", "It costs about $7.09 per hour on demand, the price in us-east-1"),
        ("eu-west-1", "per node. Its price isn't known:"),
    ],
)
def test_a_price_of_another_region_is_shown_as_about(region, said_of_it):
    data = organization()
    data["environments"]["dev"]["region"] = region
    assert said_of_it in said(data, "gpu")
