"""Who borrows from whom: nobody lends more than is idle, or borrows while its own quota is sufficient."""

import random

import pytest

from hpkit_whatif.admission import model_of
from hpkit_whatif.recommend.model import parse_goal
from hpkit_whatif.recommend.recommend import recommend
from hpkit_whatif.scenario import open_scenario
from hpkit_whatif.simulate import simulate
from hpkit_whatif.simulate.ledger import Ledger
from hpkit_whatif.simulate.quotas import TypeQuota, type_quotas
from hpkit_whatif.simulate.report import Simulation
from tests.documents import plain
from tests.whatif.simulate.test_run import ROOT, outcome, plan_of

WHOLE = (48, 192, 4)
NOMINAL = {"a": 3, "b": 1, "c": 2}


def ledger_of(nominal, lenders=None):
    amounts = {team: tuple(count * one for one in WHOLE) for team, count in nominal.items()}
    quota = TypeQuota(("cpu", "memory", "gpu"), WHOLE, amounts, float(sum(nominal.values())))
    return Ledger(quota, [team for team in nominal if team], lenders or [team for team in nominal if team])


def whole(count):
    return [count * one for one in WHOLE]


def simulated(folder, tasks, stack="handson-dev", until="1h"):
    file = folder / "s.yaml"
    file.write_text(f"until: {until}\ntasks:\n" + "".join(f"- {{{task}}}\n" for task in tasks))
    return simulate(plan_of(stack), open_scenario(file))


@pytest.mark.parametrize("seed", range(20))
def test_nobody_lends_more_than_is_idle_and_all_that_is_borrowed_is_lent(seed):
    chance = random.Random(seed)  # noqa: S311 - not a secret
    ledger = ledger_of({**NOMINAL, "": 1}, lenders=["a", "b"])
    accounts = [ledger.account(team) for team in NOMINAL]
    running = {}
    there = [7 * one for one in WHOLE]
    for step in range(200):
        team = chance.choice("abc")
        amounts = [chance.randint(0, 2 * one) for one in WHOLE]
        used = [sum(account.used[i] for account in accounts) for i in range(3)]
        # Kueue's quotas allow this: the others' idle quota, except that of c, which lends nothing.
        kept = [max(0, accounts[2].nominal[i] - accounts[2].used[i]) * (team != "c") for i in range(3)]
        if all(used[i] + amounts[i] + kept[i] <= there[i] for i in range(3)):
            ledger.begin(float(step), f"t{step}", team, amounts)
            running[f"t{step}"] = (team, amounts)
        elif running:
            name = chance.choice(list(running))
            ledger.end(float(step), name, *running.pop(name))
        for i in range(3):
            borrowed = sum(max(0, each.used[i] - each.nominal[i]) for each in accounts)
            lent = [each.lent[i] for each in accounts]
            for each, out in zip(accounts, lent, strict=True):
                assert 0 <= out <= max(0, each.nominal[i] - each.used[i])
            assert lent[2] == 0
            assert 0 <= borrowed - sum(lent) <= WHOLE[i], "the rest is what no team reserved"
    for name, task in running.items():
        ledger.end(200.0, name, *task)
    assert all(not any(account.used) and not any(account.lent) for account in accounts)


def test_a_loan_is_of_whom_most_is_free_and_goes_over_when_the_lender_comes():
    ledger = ledger_of({"a": 3, "b": 1, "c": 2})
    assert ledger.begin(0.0, "b1", "b", whole(3)) == {"a": 2}
    assert ledger.begin(0.0, "b2", "b", whole(1)) == {"c": 1}
    ledger.begin(10.0, "a1", "a", whole(2))
    assert [ledger.account(team).lent for team in "ac"] == [whole(1), whole(2)]
    ledger.end(20.0, "b2", "b", whole(1))
    assert [ledger.account(team).lent for team in "ac"] == [whole(1), whole(1)], "its own loan goes first"
    ledger.account("c").settle(30.0)
    assert ledger.account("c").away_sum == 10 * 1 + 10 * 2 + 10 * 1


def test_who_uses_several_resources_within_its_quota_borrows_nothing(tmp_path):
    parts = "accelerators: 4, vCpu: 4, memoryInGiB: 16", "vCpu: 40, memoryInGiB: 16"
    tasks = [
        f"name: {team}{number}, team: {team}, {part}, pods: {pods}"
        for team, pods in (("john", 3), ("smith", 1))
        for number, part in enumerate(parts)
    ]
    report = simulated(tmp_path, tasks)
    assert report.cluster.utilization == 1, "all GPUs, and of the vCPUs a part"
    assert [(team.used, team.borrowed, team.lent) for team in report.teams] == [(3, 0, 0), (1, 0, 0)]
    assert all(not each.borrowed for task in report.tasks for each in task.admissions)


def test_what_two_tasks_borrow_of_one_team_is_no_more_than_it_has(tmp_path):
    tasks = [f"name: m{n}, team: models, count: 5, submit: {n}m, run: 8h" for n in (1, 2, 3)]
    report = simulated(tmp_path, tasks, "startup-dev", "13m")
    assert [each.borrowed for task in report.tasks for each in task.admissions] == [{}, {"data": 5}, {"product": 5}]
    assert [round(team.lent, 6) for team in report.teams] == [round(5 * 11 / 60, 6), 0, round(5 * 10 / 60, 6)]


def test_a_guarantee_that_others_use_is_not_idle():
    report, _ = outcome("startup")
    assert report.cluster.utilization == pytest.approx(1, abs=0.01)
    assert report.cluster.idle_quota == pytest.approx(0, abs=0.01)


def test_what_was_lost_served_nobody(tmp_path):
    report, _ = outcome("handson")
    smith = report.team("smith")
    assert (smith.used, smith.lost) == (pytest.approx(8 / 3), pytest.approx(2 / 3))
    assert smith.service == pytest.approx(2 / (8 / 3 + 1)), "of what ran and of what waited"
    assert report.team("john").service == 1


def test_more_quota_than_there_is_makes_no_instances(tmp_path):
    from hpkit.project import load

    text = (ROOT / "stacks" / "handson.yaml").read_text()
    (tmp_path / "o.yaml").write_text(text.replace("smith: [{instanceType: ml.g5.12xlarge, count: 1}]",
                                                  "smith: [{instanceType: ml.g5.12xlarge, count: 9}]"))  # fmt: skip
    (tmp_path / "s.yaml").write_text("until: 1h\ntasks: [{name: a, team: smith, count: 9}]\n")
    plan = load(tmp_path / "o.yaml").plans["dev"]
    report = simulate(plan, open_scenario(tmp_path / "s.yaml"))
    assert (report.cluster.capacity, report.cluster.utilization) == (4, 1)
    (warning,) = report.warnings
    assert warning.startswith("teams have quota for 12 instances of ml.g5.12xlarge, but only 4 exist")
    assert plain(Simulation.model_validate(report))["warnings"] == [warning]
    loaded, goals = load(tmp_path / "o.yaml", "dev"), [parse_goal("max wait of smith < 1m", ["john", "smith"])]
    found = recommend(loaded, open_scenario(tmp_path / "s.yaml"), goals, trials=1, seeds=1, workers=1)
    assert warning in found.warnings


def test_elastic_quota_counts_on_the_nodes_that_it_will_get():
    plan = plan_of("autoscale-dev")
    elastic = {each.instance_type for team in plan.teams for each in team.quota_resources if each.elastic}
    found = type_quotas(plan, model_of(plan))
    assert elastic
    assert all(found[kind].instances > plan.capacity[kind].permanent for kind in elastic)
    assert not simulate(plan, open_scenario(ROOT / "stacks" / "scenarios" / "autoscale.yaml")).warnings
