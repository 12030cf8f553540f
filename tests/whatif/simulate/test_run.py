"""Results of scenarios: the examples as their files and the page describe them, and sums that must always hold."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from hpkit.errors import InputError
from hpkit.project import load_stack
from hpkit_whatif.scenario import open_scenario
from hpkit_whatif.simulate import simulate
from tests.builders import group, ranked_handson
from tests.cli.invoke import hpkit

ROOT = Path(__file__).parents[3]
SCENARIOS = ROOT / "stacks" / "scenarios"
STACKS = {
    "autoscale": "dev",
    "bestpractice": "prod",
    "enterprise": "prod",
    "handson": "dev",
    "startup": "dev",
    "topology": "prod",
}


def plan_of(stack):
    return next(iter(load_stack(stack).plans.values()))


def outcome(name):
    report = simulate(plan_of(f"{name}-{STACKS[name]}"), open_scenario(SCENARIOS / f"{name}.yaml"))
    return report, {task.name: task for task in report.tasks}


def evictions(task):
    return [(each.by, each.reason) for each in task.evictions]


def test_bestpractice_lends_three_instances_to_team_b():
    _, tasks = outcome("bestpractice")
    assert tasks["b-more"].wait == 0
    assert sum(tasks["b-more"].admissions[0].borrowed.values()) == 3


def test_bestpractice_without_its_pool_lends_to_team_b_from_team_a(tmp_path):
    organization = yaml.safe_load((ROOT / "stacks" / "bestpractice.yaml").read_text())
    del organization["environments"]["prod"]["governance"]["sharedPool"]
    file = tmp_path / "bestpractice.yaml"
    file.write_text(yaml.safe_dump(organization))
    from hpkit.project import load

    report = simulate(load(file).plans["prod"], open_scenario(SCENARIOS / "bestpractice.yaml"))
    (more,) = (task for task in report.tasks if task.name == "b-more")
    assert [each.borrowed for each in more.admissions] == [{"team-a": 3}]


def test_bestpractice_lets_team_b_wait_at_the_default_limit(tmp_path):
    organization = yaml.safe_load((ROOT / "stacks" / "bestpractice.yaml").read_text())
    organization["teams"][1]["sharing"].pop("borrowLimit")
    file = tmp_path / "bestpractice.yaml"
    file.write_text(yaml.safe_dump(organization))
    from hpkit.project import load

    report = simulate(load(file).plans["prod"], open_scenario(SCENARIOS / "bestpractice.yaml"))
    assert {task.name for task in report.tasks if task.admitted is None} == {"b-more"}


def test_tasks_of_a_paused_team_wait_because_it_is_paused(tmp_path):
    text = (ROOT / "stacks" / "handson.yaml").read_text()
    file = tmp_path / "handson.yaml"
    file.write_text(text.replace("- name: smith\n", "- name: smith\n    activationState: Disabled\n"))
    from hpkit.project import load

    report = simulate(load(file).plans["dev"], open_scenario(SCENARIOS / "handson.yaml"))
    waits = {task.team: task.why for task in report.tasks if task.admitted is None}
    assert waits == {"smith": "waits: its team is paused (activationState: Disabled)"}


def test_handson_gives_john_his_own_back():
    report, tasks = outcome("handson")
    assert [(each.time, each.borrowed) for each in tasks["smith-job"].admissions] == [
        (600, {"john": 1}),
        (3600, {"john": 1}),
    ]
    assert evictions(tasks["smith-job"]) == [("john-next", "InCohortReclamation")]
    assert (tasks["smith-job"].lost, tasks["smith-job"].wait) == (20 * 60, 30 * 60)
    assert tasks["john-next"].wait == 0
    assert (report.team("john").evicts, report.team("smith").evicted) == (1, 1)


def test_enterprise_takes_borrowed_work_of_the_lowest_priority_first():
    report, tasks = outcome("enterprise")
    assert report.cluster.capacity == 10
    assert evictions(tasks["language-tuning"]) == [("vision-experiment", "InCohortReclamation")]
    assert not tasks["language-training"].evictions
    assert not tasks["language-more"].evictions
    assert tasks["serving-endpoint"].wait == 0, "what serving does not lend is always there for it"


def test_startup_uses_all_15_and_gives_each_its_own_back():
    report, tasks = outcome("startup")
    assert max(report.series["models"].used) == 15
    assert evictions(tasks["models-3"]) == [("data-1", "InCohortReclamation")]
    assert evictions(tasks["models-2"]) == [("product-1", "InCohortReclamation")]
    assert not tasks["models-1"].evictions


def test_topology_places_pods_under_one_network_node():
    _, tasks = outcome("topology")
    nodes = {name: {node.rsplit("-", 1)[0] for node in task.admissions[-1].nodes} for name, task in tasks.items()}
    assert nodes["pretraining"] == {"node-002", "node-003"}, "under nn-12"
    assert nodes["evaluation"] == nodes["ablation"] == {"node-000"}, "what is left under nn-111"
    assert nodes["pair"] == {"node-001"}


def test_autoscale_counts_on_karpenter_and_ends_borrowing_at_the_limit():
    _, tasks = outcome("autoscale")
    assert tasks["research-2"].admitted == 20 * 60
    assert tasks["research-3"].wait > 0
    assert tasks["endpoint-2"].wait == 0


@pytest.fixture(scope="module")
def month():
    return simulate(plan_of("enterprise-prod"), open_scenario(SCENARIOS / "month.yaml"))


def test_sums_of_tasks_are_those_of_teams(month):
    for team in month.teams:
        mine = [task for task in month.tasks if task.team == team.name]
        assert team.submitted == len(mine)
        assert team.admitted == sum(task.admitted is not None for task in mine)
        assert team.finished == sum(task.finished is not None for task in mine)
        assert team.evicted == sum(len(task.evictions) for task in mine)
        assert team.lost == pytest.approx(sum(task.lost * task.instances for task in mine) / 3600)
        assert team.wait_most == max((task.wait for task in mine), default=0)
        hours = month.end / 3600
        assert team.used - team.borrowed + team.lent + team.idle == pytest.approx(team.quota * hours)
    assert sum(team.evicts for team in month.teams) == month.cluster.preemptions
    assert sum(team.lent for team in month.teams) == pytest.approx(sum(team.borrowed for team in month.teams))
    waited = sum(task.wait * task.instances for task in month.tasks) / 3600
    assert month.cluster.waited == pytest.approx(waited)


def test_the_timeline_sums_up_to_what_was_used(month):
    for team in month.teams:
        series = month.series[team.name]
        lengths = [min(month.step, month.end - index * month.step) for index in range(len(series.used))]
        total = sum(used * length for used, length in zip(series.used, lengths, strict=True)) / 3600
        assert total == pytest.approx(team.used)


def test_a_finished_task_ran_as_long_as_it_was_to():
    _, tasks = outcome("startup")
    assert tasks["data-1"].finished - tasks["data-1"].admitted == 3600


def test_a_task_that_can_never_run_is_refused_or_counted(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("tasks:\n  - {name: big, team: smith, count: 3}\n  - {name: small, team: smith, count: 1}\n")
    with pytest.raises(InputError, match=r"s\.yaml:2:5: task big can never run: it requests 12 nvidia"):
        simulate(plan_of("handson-dev"), open_scenario(file))
    report = simulate(plan_of("handson-dev"), open_scenario(file), lenient=True)
    assert (report.team("smith").never, report.team("smith").admitted) == (1, 1)


def test_who_is_refused_learns_how_to_go_on(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("tasks:\n  - {name: big, team: smith, count: 3}\n  - {name: small, team: smith, count: 1}\n")
    with pytest.raises(InputError, match="Request less, or skip such tasks with --skip-impossible"):
        simulate(plan_of("handson-dev"), open_scenario(file))


def test_a_task_that_can_never_run_is_left_out_and_named_where_that_is_asked_for(tmp_path):
    file = tmp_path / "s.yaml"
    rows = ["{name: big, team: smith, count: 3}", "{name: small, team: smith, count: 1, run: 1h}"]
    file.write_text("until: 1h\ntasks:\n" + "".join(f"  - {row}\n" for row in rows))
    said = hpkit("whatif", "simulate", file, "--stack", "handson-dev", "--skip-impossible", cwd=ROOT)
    assert "task big of smith is left out: it requests 12 nvidia" in " ".join(said.stdout.split())
    report = simulate(plan_of("handson-dev"), open_scenario(file), skip_impossible=True)
    assert (report.team("smith").submitted, report.team("smith").never, report.impossible) == (1, 0, 1)
    assert [each.name for each in report.skipped] == ["big"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("until: 0\ntasks: [{name: a, team: john, count: 1}]\n", "until is 0, so nothing would happen"),
        ("until: 1h\ntasks: [{name: a, team: john, count: 1, submit: 2h}]\n", "the one task comes after"),
        ("until: 1h\ntasks: [{name: a, team: jon, count: 1, submit: 2h}]\n", "did you mean john?"),
    ],
)
def test_a_scenario_in_which_nothing_comes_is_refused(tmp_path, text, said):
    (tmp_path / "s.yaml").write_text(text)
    with pytest.raises(InputError, match=re.escape(said)):
        simulate(plan_of("handson-dev"), open_scenario(tmp_path / "s.yaml"))


def test_tasks_that_come_too_late_are_counted(tmp_path):
    rows = "{name: a, team: john, count: 1}, {name: b, team: john, count: 1, submit: 1h}"
    (tmp_path / "s.yaml").write_text(f"until: 1h\ntasks: [{rows}]\n")
    report = simulate(plan_of("handson-dev"), open_scenario(tmp_path / "s.yaml"))
    assert report.late == 1
    assert "1 task comes after the end of the scenario" in report.warnings[0]


TOPOLOGY = "topology: [{instanceType: KIND, nodes: 2, layers: [a, b, c]}]\n"


@pytest.mark.parametrize(
    ("kind", "task", "message"),
    [
        (
            "ml.p5.48xlarge",
            "count: 4, placement: {mode: required, layer: 3}",
            r"4 pods on ml\.p5\.48xlarge under one network node of layer 3, and .* have room for 2",
        ),
        ("ml.p5.48xlarge", "count: 4", r"4 pods on ml\.p5\.48xlarge, and .* have room for 2"),
        ("ml.p5.48xlarge", "pods: 99, vCpu: 1, memoryInGiB: 1", r"99 pods on ml\.p5.*, and .* have room for 98"),
        (
            "ml.g5.12xlarge",
            "count: 1, placement: {mode: required, layer: 3}",
            r"placement, and the scenario's `topology` has no ml\.p5",
        ),
    ],
)
def test_a_task_that_has_no_place_on_empty_nodes_can_never_run(tmp_path, kind, task, message):
    file = tmp_path / "s.yaml"
    file.write_text(TOPOLOGY.replace("KIND", kind) + f"tasks: [{{name: a, team: pretraining, {task}, run: 1h}}]\n")
    plan = plan_of("topology-prod")
    with pytest.raises(InputError, match=rf"s\.yaml:2:9: task a can never run: it .*{message}"):
        simulate(plan, open_scenario(file))
    report = simulate(plan, open_scenario(file), lenient=True)
    assert report.team("pretraining").never_tasks == ("a",)


def test_a_task_without_a_placement_is_placed_anywhere_if_its_queue_has_other_types(tmp_path):
    file = tmp_path / "s.yaml"
    task = "{{name: {0}, team: john, priority: training, instanceType: {0}, count: 2, run: 1h}}"
    kinds = ("ml.p5.48xlarge", "ml.g5.12xlarge")
    file.write_text(TOPOLOGY.replace("KIND", kinds[0]) + f"tasks: [{', '.join(map(task.format, kinds))}]\n")
    allocations = {"john": [{"instanceType": each, "count": 2} for each in kinds], "smith": []}
    report = simulate(ranked_handson(group("p5", kinds[0], 2), allocations=allocations), open_scenario(file))
    assert [each.admitted for each in report.tasks] == [0, 0]


def test_a_stack_with_topology_and_a_scenario_without_it_is_a_warning(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("tasks: [{name: a, team: pretraining, count: 1, run: 1h}]\n")
    (warning,) = simulate(plan_of("topology-prod"), open_scenario(file)).warnings
    assert warning.startswith("nodes aren't simulated")
    assert not outcome("topology")[0].warnings


def test_whoever_waits_at_the_end_has_a_reason(tmp_path):
    file = tmp_path / "s.yaml"
    tasks = "".join(f"- {{name: t{n}, team: smith, count: 2, submit: {n}m}}\n" for n in (1, 2, 3))
    file.write_text(f"until: 1h\ntasks:\n{tasks}")
    report = simulate(plan_of("handson-dev"), open_scenario(file))
    assert [task.waits_for for task in report.tasks] == [None, "WaitingForQuota", "Queued"]
    assert (report.team("smith").waiting, report.team("smith").never) == (2, 0)
    said = hpkit("whatif", "simulate", file, "--stack", "handson-dev", cwd=ROOT).stdout
    assert "\nt2 waits: too little quota is free\nt3 waits: other tasks in its queue come first\n" in said


def test_whoever_waits_when_nothing_more_happens_never_runs(tmp_path):
    file = tmp_path / "s.yaml"
    tasks = "".join(f"- {{name: {name}, team: smith, count: 2}}\n" for name in "ab")
    file.write_text(f"tasks:\n{tasks}")
    report = simulate(plan_of("handson-dev"), open_scenario(file))
    assert [task.never for task in report.tasks] == [None, "is still waiting at the end: too little quota is free"]
    assert report.team("smith").never_tasks == ("b",)


def test_of_very_many_tasks_the_first_are_listed_and_all_are_counted(month):
    kept = simulate(plan_of("enterprise-prod"), open_scenario(SCENARIOS / "month.yaml"), keep=300)
    assert kept.tasks == month.tasks[:300]
    assert kept.omitted == len(month.tasks) - 300
    assert kept.teams == month.teams


PAGE = (ROOT / "docs" / "guides" / "whatif.md").read_text(encoding="utf-8")
RUNS = re.findall(r"```console\n\$ hpkit ([^\n]+)\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize(("arguments", "shown"), RUNS, ids=[arguments for arguments, _ in RUNS])
def test_a_command_of_the_page_prints_what_the_page_shows(arguments, shown):
    assert hpkit(*shlex.split(arguments), cwd=ROOT).stdout == shown


def test_the_scenario_that_the_page_shows_can_be_read(tmp_path):
    text = "".join(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL))
    file = tmp_path / "s.yaml"
    file.write_text(text)
    tasks = list(open_scenario(file).tasks())
    assert len(tasks) > len(yaml.safe_load(text)["tasks"])


def test_names_are_printed_as_they_are(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("tasks: [{name: '[/]:ghost:', team: smith, count: 1, run: 1m}]\n")
    assert "[/]:ghost:" in hpkit("whatif", "simulate", file, "--stack", "handson-dev", cwd=ROOT).stdout
