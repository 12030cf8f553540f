"""The model of a plan is, object by object, what the local cloud's controllers make of the same plan for Kueue."""

from pathlib import Path

import pytest
import yaml

from generate.examples import example_files
from hpkit.errors import CatalogError
from hpkit.plan.derive import derive
from hpkit_local.aws.services.sagemaker.pro_rata import fill_pro_rata
from hpkit_local.aws.snapshot import Snapshot
from hpkit_local.controllers.queues import queues
from hpkit_whatif.admission import model_of
from tests.builders import group, organization, team, typed

ROOT = Path(__file__).parents[3]
EXAMPLES = [
    (file.stem, name) for file in example_files() for name in typed(yaml.safe_load(file.read_text())).environments
]


def snapshot_of(plan):
    """Return what the endpoint keeps of the quotas that the program declares."""
    quotas = {}
    for each in plan.teams:
        resources = fill_pro_rata([_row(found) for found in each.quota_resources], "ComputeQuotaResources")
        sharing = {"Strategy": each.spec.sharing.strategy}
        if each.absolute_borrow_limits:
            sharing["AbsoluteBorrowLimits"] = [
                {"InstanceType": kind, "Count": count} for kind, count in sorted(each.absolute_borrow_limits.items())
            ]
        if each.spec.sharing.borrow_limit is not None:
            sharing["BorrowLimit"] = each.spec.sharing.borrow_limit
        elif each.spec.sharing.strategy == "LendAndBorrow" and not each.absolute_borrow_limits:
            sharing["BorrowLimit"] = 50
        quotas[each.name] = {
            "ComputeQuotaId": each.name,
            "ComputeQuotaTarget": {"TeamName": each.name, "FairShareWeight": each.spec.fair_share_weight},
            "ComputeQuotaConfig": {
                "ComputeQuotaResources": resources,
                "ResourceSharingConfig": sharing,
                "PreemptTeamTasks": each.spec.preempt_team_tasks,
            },
        }
    nodes = [
        {"InstanceType": kind, "InstanceStatus": {"Status": "Running"}}
        for kind, capacity in plan.capacity.items()
        for _ in range(capacity.guaranteed)
    ]
    return Snapshot(
        eks={},
        addons={},
        clusters={},
        nodes={"cluster": nodes},
        entries=[],
        quotas=quotas,
        policies={},
        subnets={},
        cut_off=set(),
    )


def _row(found):
    row = {
        "InstanceType": found.instance_type,
        "Count": found.count,
        "Accelerators": found.accelerators,
        "VCpu": None if found.v_cpu is None else float(found.v_cpu),
        "MemoryInGiB": None if found.memory_in_gib is None else float(found.memory_in_gib),
        "AcceleratorPartition": found.partition and {"Type": found.partition.type, "Count": found.partition.count},
    }
    return {name: value for name, value in row.items() if value is not None}


def amount(resource, text):
    """Return a quantity of a manifest in base units."""
    if text is None:
        return None
    if resource != "cpu":
        return int(text)
    return int(text[:-1]) if text.endswith("m") else 1000 * int(text)


def as_told(manifest):
    """Return a ClusterQueue manifest as plain values."""
    spec = manifest.content["spec"]
    return {
        "name": manifest.name,
        "cohort": spec["cohortName"],
        "active": spec.get("stopPolicy", "None") == "None",
        "weight": float(spec.get("fairSharing", {}).get("weight", 1)),
        "within": spec["preemption"].get("withinClusterQueue", "Never"),
        "reclaim": spec["preemption"]["reclaimWithinCohort"],
        "groups": [
            (
                list(each["coveredResources"]),
                [
                    (
                        flavor["name"],
                        {
                            found["name"]: (
                                amount(found["name"], found["nominalQuota"]),
                                amount(found["name"], found.get("borrowingLimit")),
                                amount(found["name"], found.get("lendingLimit")),
                            )
                            for found in flavor["resources"]
                        },
                    )
                    for flavor in each["flavors"]
                ],
            )
            for each in spec["resourceGroups"]
        ],
    }


def as_simulated(queue):
    return {
        "name": queue.name,
        "cohort": queue.cohort,
        "active": queue.active,
        "weight": queue.fair_weight,
        "within": queue.preemption.within_cluster_queue,
        "reclaim": queue.preemption.reclaim_within_cohort,
        "groups": [
            (
                list(each.covered_resources),
                [
                    (
                        flavor.name,
                        {
                            name: (quota.nominal, quota.borrowing_limit, quota.lending_limit)
                            for name, quota in flavor.resources.items()
                        },
                    )
                    for flavor in each.flavors
                ],
            )
            for each in queue.resource_groups
        ],
    }


def compare(plan):
    policy = plan.policy
    fair = policy is None or policy.fair_share == "Enabled"
    idle = policy is not None and policy.idle_resource_sharing == "Enabled"
    made = queues(snapshot_of(plan), fair=fair, idle=idle)
    told = [as_told(each) for each in made.items if each.kind.kind == "ClusterQueue"]
    model = model_of(plan)
    assert [as_simulated(each) for each in model.queues] == told
    assert told, "a plan without teams proves nothing"
    assert (model.fair_sharing is not None) == fair


@pytest.mark.parametrize(("stem", "environment"), EXAMPLES)
def test_the_queues_of_every_example_are_those_of_the_local_cloud(stem, environment):
    compare(derive(typed(yaml.safe_load((ROOT / "stacks" / f"{stem}.yaml").read_text())), environment))


TEAMS = [
    team("a", sharing={"strategy": "LendAndBorrow", "borrowLimit": 33}),
    team("b", sharing={"strategy": "Lend"}, preemptTeamTasks="Never"),
    team("c", sharing={"strategy": "DontLend"}, fairShareWeight=0),
    team(
        "d",
        sharing={
            "strategy": "LendAndBorrow",
            "absoluteBorrowLimits": [{"instanceType": "ml.p4d.24xlarge", "count": 1}],
        },
    ),
    team("e"),
]
GROUPS = [group("gpu", "ml.g5.12xlarge", 8), group("large", "ml.p4d.24xlarge", 4), group("cpu", "ml.c5.2xlarge", 3)]
ALLOCATIONS = {
    "a": [{"instanceType": "ml.g5.12xlarge", "count": 3}],
    "b": [{"instanceType": "ml.g5.12xlarge", "accelerators": 3}, {"instanceType": "ml.c5.2xlarge", "vCpu": 3.5}],
    "c": [{"instanceType": "ml.p4d.24xlarge", "acceleratorPartition": {"type": "mig-1g.5gb", "count": 5}}],
    "d": [{"instanceType": "ml.c5.2xlarge", "memoryInGiB": 7.3}, {"instanceType": "ml.g5.12xlarge", "count": 1}],
    "e": [{"instanceType": "ml.p4d.24xlarge", "accelerators": 3, "vCpu": 11.25}],
}


@pytest.mark.parametrize("fair", ["Enabled", "Disabled"])
@pytest.mark.parametrize("idle", ["Enabled", "Disabled"])
def test_so_are_those_of_every_way_to_reserve_lend_and_borrow(fair, idle):
    policy = {"fairShare": fair, "idleResourceSharing": idle}
    data = organization(teams=TEAMS, groups=GROUPS, allocations=ALLOCATIONS, top={"clusterPolicy": policy})
    compare(derive(typed(data), "dev"))


def test_an_instance_type_without_figures_is_said():
    data = organization(
        teams=[team("a")],
        groups=[group("new", "ml.g7.12xlarge", 1)],
        allocations={"a": [{"instanceType": "ml.g7.12xlarge", "count": 1}]},
    )
    with pytest.raises(CatalogError, match=r"ml\.g7\.12xlarge are not known"):
        model_of(derive(typed(data), "dev"))
