"""An unknown figure is never counted as zero: a rule that needs it reports that it's unknown."""

from tests.builders import findings, group, organization, team

G7 = "ml.g7.2xlarge"  # The catalog has no figures for this type.


def said(data):
    return {(finding.rule, finding.severity): finding.message for finding in findings(data)}


def test_a_fraction_of_a_type_without_figures_is_not_compared_and_says_so():
    data = organization(
        teams=[team("ada")],
        groups=[group("gpu", G7, 4), group("system", "ml.m5.4xlarge", 1)],
        allocations={"ada": [{"instanceType": G7, "accelerators": 400}]},
    )
    assert "the catalog lacks figures for ml.g7.2xlarge" in said(data)["CAP004", "warning"]


def test_whole_instances_of_such_a_type_are_compared_all_the_same():
    data = organization(
        teams=[team("ada")],
        groups=[group("gpu", G7, 4), group("system", "ml.m5.4xlarge", 1)],
        allocations={"ada": [{"instanceType": G7, "count": 5}]},
    )
    assert ("CAP001", "error") in said(data)


def test_a_limit_in_a_unit_that_is_not_known_bounds_nothing_and_says_so():
    data = organization(
        teams=[team("ada")],
        groups=[group("burst", G7, 0), group("system", "ml.m5.4xlarge", 1)],
        allocations={"ada": [{"instanceType": G7, "count": 5, "elastic": True}]},
        environment={
            "autoscaling": {
                "nodeClasses": [{"name": "burst", "instanceGroups": ["burst"]}],
                "nodePools": [{"name": "pool", "nodeClass": "burst", "limits": {"nvidia.com/gpu": 8}}],
            }
        },
    )
    assert "can't be checked: no limit of pool (nvidia.com/gpu 8)" in said(data)["CAP002", "warning"]
    pools = data["environments"]["dev"]["autoscaling"]["nodePools"]
    pools[0]["limits"] = {"nodes": 4}
    assert ("CAP002", "error") in said(data)


def test_a_subnet_that_may_be_too_small_for_nodes_of_unknown_need_says_so():
    groups = [group("gpu", G7, 10), group("system", "ml.m5.4xlarge", 1)]
    data = organization(groups=groups)
    assert ("CLU002", "warning") not in said(data)
    data["environments"]["dev"]["network"]["zones"][0]["nodeCidr"] = "10.1.0.0/24"
    assert "doesn't know how many addresses 10 × ml.g7.2xlarge use" in said(data)["CLU002", "warning"]


def test_pods_of_unknown_number_are_not_taken_for_none():
    data = organization(groups=[group("gpu", G7, 4)])
    assert "doesn't know how many pods ml.g7.2xlarge can run" in said(data)["CLU004", "warning"]
