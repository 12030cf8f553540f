"""Public traces, as small files in their format: the result of each row, and what is rejected or counted."""

import io
import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpkit.errors import InputError
from hpkit_whatif.scenario.read import write_csv
from hpkit_whatif.scenario.traces import TRACES, Shape, Tally, Teams, TraceTask, convert_tasks
from tests.cli.invoke import hpkit
from tests.documents import document
from tests.whatif.recommend.builders import ROOT

TRACE = ("--trace", "alibaba-2023", "no", "--output", "x.csv")
SHAPE = Shape("ml.g5.12xlarge", 4)
PODS = """\
name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
pod-1,12000,16384,1,1000,,LS,Running,100,400,100
pod-2,6000,12288,1,460,,LS,Running,200,900,250
pod-3,88000,327680,8,1000,G2,Burstable,Succeeded,300,1000,300
pod-4,8000,30517,0,0,,BE,Running,310,400,310
pod-5,11908,47104,1,1000,,BE,Pending,320,330,
pod-6,11908,47104,2,1000,A10|G2,BE,Failed,90,120,100
"""


def read(trace, folder, text, teams=("a", "b")):
    file = folder / "trace"
    file.write_text(text)
    tally, dealt = Tally(), Teams(teams, {})
    tasks = list(convert_tasks(TRACES[trace](file, tally), SHAPE, dealt, tally))
    return [(each.name, each.team, each.pods, each.accelerators, each.submit, each.run) for each in tasks], tally


def reasons(tally):
    return {reason.split(":")[0]: count for reason, count in tally.counts.items()}


def test_the_pods_of_2023_are_tasks_from_the_first_on(tmp_path):
    tasks, tally = read("alibaba-2023", tmp_path, PODS)
    assert tasks == [
        ("pod-6", "a", 1, 2, 0, 20),
        ("pod-1", "a", 1, 1, 10, 300),
        ("pod-2", "a", 1, 1, 110, 650),
        ("pod-3", "b", 2, 4, 210, 700),
    ]
    assert reasons(tally) == {
        "tasks share a GPU, which quota doesn't support; they get a whole GPU": 1,
        "tasks have more GPUs in a pod than ml.g5.12xlarge; they are split into more pods": 1,
        "tasks request no GPU": 1,
        "pods were never scheduled, so their run time is unknown": 1,
    }
    assert tally.first["tasks request no GPU: left out"].endswith(":5")


@pytest.mark.parametrize(
    ("trace", "text", "message"),
    [
        ("alibaba-2023", "", "trace:1: column name is missing"),
        ("alibaba-2023", "job_name\n1\n", "trace:1: column name is missing; there are job_name"),
        ("alibaba-2023", PODS.replace("Running,200,900,250", "Running,200,900,150"), "3: scheduled_time 150 comes"),
        ("alibaba-2023", PODS.replace(",100,400,100", ",100,90,100"), "trace:2: deletion_time 90 comes before"),
        ("alibaba-2023", PODS.replace(",100,400,100", ",100,,100"), "trace:2: deletion_time is empty"),
        ("alibaba-2023", PODS.replace("1,460", "one,460"), "trace:3: num_gpu is `one` and must be a number"),
        ("alibaba-2023", PODS.replace("1,460", "nan,460"), "trace:3: num_gpu is `nan` and must be a number"),
        ("alibaba-2023", PODS.replace("pod-2,", 'pod-2,"'), "trace:3: "),
        ("alibaba-2023", PODS.replace(",,LS,Running,100,400,100", ",LS"), "trace:2: 6 values for 11 columns"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(tmp_path, trace, text, message):
    with pytest.raises(InputError) as raised:
        read(trace, tmp_path, text)
    assert message in str(raised.value)


def test_a_byte_of_a_trace_that_is_not_utf_8_is_said_with_its_line(tmp_path):
    file = tmp_path / "trace"
    file.write_bytes(PODS.splitlines()[0].encode() + b"\ncaf\xe9")
    with pytest.raises(InputError, match=r"trace:2: byte 0xe9 is not UTF-8"):
        list(TRACES["alibaba-2023"](file, Tally()))


def test_what_a_trace_becomes_is_read_again_by_a_simulation(tmp_path):
    """Names that are empty, long or repeated, a task larger than its team's quota, and one that never ended."""
    names = ["", "", "x" * 300, "x" * 300, "a", "a"]
    rows = [f"{name},12000,16384,1,1000,,LS,Running,{at},{at + 9},{at}" for at, name in enumerate(names)]
    rows += ["huge,1,1,64,1000,,LS,Running,5,9,5", "endless,1,1,1,1000,,LS,Running,5,1e308,5"]
    (tmp_path / "pods.csv").write_text("\n".join([PODS.splitlines()[0], *rows]))
    arguments = ("whatif", "record", "--trace", "alibaba-2023", tmp_path / "pods.csv", "--stack", "handson-dev")
    result = hpkit(*arguments, "--output", tmp_path / "tasks.csv", "--format", "json", cwd=ROOT)
    assert document(result.stdout)["items"][0]["target"] == str(tmp_path / "tasks.csv")
    assert "tasks can never run for john: left out (1; first:" in result.stderr
    assert "tasks ran for more than 100 years: left out" in result.stderr
    simulated = hpkit(
        "whatif", "simulate", tmp_path / "tasks.csv", "--stack", "handson-dev", "--format", "json", cwd=ROOT
    )
    found = [task["name"] for task in json.loads(simulated.stdout)["tasks"]]
    assert found == ["task", "task#2", "x" * 190, "x" * 190 + "#2", "a", "a#2"]


def test_a_trace_of_which_nothing_is_left_leaves_no_file(tmp_path):
    (tmp_path / "jobs").write_text(PODS.splitlines()[0])
    result = hpkit(
        "whatif",
        "record",
        "--trace",
        "alibaba-2023",
        tmp_path / "jobs",
        "--stack",
        "handson-dev",
        "--output",
        tmp_path / "t.csv",
        cwd=ROOT,
    )
    assert (result.returncode, "nothing to record" in result.stderr) == (2, True)
    assert not (tmp_path / "t.csv").exists()


@given(
    submits=st.lists(st.integers(0, 50), max_size=60),
    at_once=st.integers(1, 20),
)
def test_sorted_in_files_is_sorted_in_memory(submits, at_once):
    tasks = [TraceTask(f":{n}", f"t{n:03}", "g", float(s), 5.0, 1, 1.0) for n, s in enumerate(submits)]
    ways = [list(convert_tasks(tasks, SHAPE, Teams(("a",), {}), Tally(), at_once=count)) for count in (at_once, 1000)]
    assert [(t.name, t.submit) for t in ways[0]] == [(t.name, t.submit) for t in ways[1]]
    assert [t.submit for t in ways[0]] == sorted(s - min(submits) for s in submits)


@pytest.mark.nightly
def test_a_long_trace_is_not_held_in_memory(tmp_path):
    import tracemalloc

    chance = random.Random(1)  # noqa: S311 - not a secret
    file = tmp_path / "jobs.csv"
    with file.open("w") as out:
        out.write(PODS.splitlines()[0] + "\n")
        for number in range(30_000):
            begin, run = chance.randrange(10**7), chance.randrange(1, 10**5)
            out.write(f"pod-{number},1,1,1,1000,,LS,Running,{begin},{begin + run},{begin}\n")
    tally = Tally()
    tracemalloc.start()
    tasks = TRACES["alibaba-2023"](file, tally)
    count = write_csv(convert_tasks(tasks, SHAPE, Teams(("a",), {}), tally, at_once=1000), Sink())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert count == 30_000
    assert most < 2_000_000, "a thirtieth of it at a time, and one line of each part"


class Sink(io.TextIOBase):
    def write(self, text):
        return len(text)


def test_a_recorded_trace_is_simulated(tmp_path):
    (tmp_path / "pods.csv").write_text(PODS)
    arguments = ("whatif", "record", "--trace", "alibaba-2023", tmp_path / "pods.csv", "--stack", "handson-dev")
    groups = ("--team", "Burstable=john", "--team", "Bustable=smith")
    result = hpkit(*arguments, *groups, "--output", tmp_path / "tasks.csv", cwd=ROOT)
    assert result.stdout == f"wrote 4 tasks to {tmp_path}/tasks.csv\n"
    assert "john has 2 groups of the trace: LS, Burstable" in result.stderr
    assert "--team Bustable=…: no remaining task is in group Bustable; did you mean Burstable?" in result.stderr
    simulated = hpkit(
        "whatif", "simulate", tmp_path / "tasks.csv", "--stack", "handson-dev", "--format", "json", cwd=ROOT
    )
    assert [task["name"] for task in json.loads(simulated.stdout)["tasks"]] == ["pod-6", "pod-1", "pod-2", "pod-3"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--trace", "alibaba-2023", "--output", "x.csv"), 2, "--trace requires the trace's FILE"),
        (("--trace", "alibaba-2023", "no", "--output", "x.txt"), 2, "ends in .yaml or .csv"),
        (("--trace", "alibaba-2023", "no", "--output", "x.yaml"), 2, "written as CSV"),
        ((*TRACE, "--stack", "handson-dev"), 1, "no: no such file"),
        ((*TRACE, "--stack", "handson-dev", "--team", "a=jon"), 2, "did you mean john"),
        ((*TRACE, "--stack", "bestpractice-prod"), 2, "no team of bestpractice-prod"),
        ((*TRACE, "--stack", "handson-dev", "--instance-type", "ml.p5.48xlarge"), 2, "did you mean ml.g5.12xlarge"),
        (("--team", "a=b", "--output", "x.csv"), 2, "require --trace"),
        (("a.yaml", "b.yaml", "--output", "x.csv"), 2, "name one scenario; for a public trace, add --trace"),
        (("--output", "README.md"), 2, "ends in .yaml or .csv"),
        (("stacks/scenarios/month.yaml", "--output", "stacks/handson.yaml"), 2, "already exists"),
        (("stacks/scenarios/month.yaml", "--output", "no/such/x.csv"), 1, "can't be written"),
    ],
)  # fmt: skip
def test_misuse_is_said_in_a_sentence_and_leaves_no_file(arguments, code, said):
    result = hpkit("whatif", "record", *arguments, cwd=ROOT)
    assert (result.returncode, said in result.stderr) == (code, True), result.stderr
    assert not [*ROOT.glob("x.*"), *ROOT.glob(".x.*")]


def test_a_scenario_becomes_a_csv_of_the_same_tasks(tmp_path):
    result = hpkit("whatif", "record", "stacks/scenarios/handson.yaml", "--output", tmp_path / "t.csv", cwd=ROOT)
    assert "a CSV has no `until`" in result.stderr
    sides = []
    for scenario in ("stacks/scenarios/handson.yaml", tmp_path / "t.csv"):
        said = hpkit("whatif", "simulate", scenario, "--stack", "handson-dev", "--format", "json", cwd=ROOT)
        sides.append([(task["name"], task["admitted"]) for task in json.loads(said.stdout)["tasks"]])
    assert sides[0] == sides[1]
