"""What `hpkit whatif rehearse` rejects before it starts anything, and its messages."""

from pathlib import Path

import pytest

from hpkit.cli.common.inputs import choose_stack
from hpkit_whatif.admission import Event
from hpkit_whatif.cli.rehearse import Rehearsal, _Notes, _Pace
from hpkit_whatif.scenario import open_scenario
from tests.cli.invoke import hpkit

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("task", "message"),
    [
        ("{name: a, team: dta, priority: normal, count: 1}", "did you mean data?"),
        ("{name: a, team: data, priority: normal, count: 50}", "task a can never run"),
        ("{name: a, team: data, priority: 33, count: 1}", "priority 33, but the stack has no such class."),
    ],
)
def test_a_task_that_cannot_be_rehearsed_is_said_before_anything_starts(tmp_path, task, message):
    scenario = tmp_path / "scenario.yaml"
    scenario.write_text(f"tasks:\n  - {task}\n")
    done = hpkit("whatif", "rehearse", scenario, "--stack", "startup-dev", "--dir", tmp_path, cwd=ROOT)
    assert done.returncode == 1
    assert message in done.stderr
    assert not (tmp_path / ".local").exists()


def test_so_is_a_scenario_of_too_many_tasks():
    done = hpkit("whatif", "rehearse", "stacks/scenarios/month.yaml", "--stack", "enterprise-prod", cwd=ROOT)
    assert done.returncode == 1
    assert "month.yaml: more than 1000 tasks" in done.stderr


def test_an_instance_that_does_not_run_is_not_started_for_it(tmp_path):
    (tmp_path / "Pulumi.yaml").touch()
    arguments = ("stacks/scenarios/handson.yaml", "--stack", "handson-dev", "--name", "mine", "--dir", tmp_path)
    done = hpkit("whatif", "rehearse", *arguments, cwd=ROOT)
    assert done.returncode == 1
    assert "mine isn't running. Start it with `hpkit local start --name mine`," in done.stderr
    assert not (tmp_path / ".local").exists()


def test_what_is_admitted_at_once_has_waited_for_nothing_however_fine_its_time(tmp_path):
    file = tmp_path / "one.yaml"
    file.write_text("until: 10s\ntasks: [{name: a, team: john, count: 1, submit: 3.567s}]\n")
    rehearsal = Rehearsal.from_source(choose_stack("handson-dev"), open_scenario(file))
    notes = _Notes(rehearsal, _Pace(None, 1, lambda _line: None))
    for kind in ("Submitted", "Admitted"):
        notes.take(Event(rehearsal.workloads[0].created, kind, "a"))
    (task,) = rehearsal.recorder.report("one.yaml", 10.0).tasks
    assert (task.submit, task.admitted, task.wait) == (3.5, 3.5, 0.0)
