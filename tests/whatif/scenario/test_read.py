"""Scenario files: how they are read, and the message for each error."""

import itertools
import json
import tracemalloc
from pathlib import Path

import jsonschema
import pytest
import yaml

from hpkit.catalog import EFA
from hpkit.errors import InputError
from hpkit.project import load_stack
from hpkit_whatif.scenario import Tasks, open_scenario
from hpkit_whatif.scenario.model import duration
from hpkit_whatif.scenario.schema import schema_text
from hpkit_whatif.scenario.workloads import scenario_model

ROOT = Path(__file__).parents[3]
HEADER = "name,team,priority,instanceType,count,submit,run"


def written(folder, text, name="s.yaml"):
    file = folder / name
    file.write_text(text, encoding="utf-8")
    return file


def tasks_of(file, stack="handson-dev"):
    plan = next(iter(load_stack(stack).plans.values()))
    return list(Tasks(plan, scenario_model(plan)).workloads(open_scenario(file).tasks()))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90s", 90), ("2h", 7200), ("1h30m", 5400), ("1.5h", 5400), ("3d", 259200), (0, 0)]
)
def test_a_duration_is_a_number_with_its_unit(text, seconds):
    assert duration(text) == seconds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks: [{name: a, team: john, count: 1, submit: -5m}]", ":1:49: submit: `-5m` is negative"),
        ("tasks: [{name: a, team: john, count: 1, run: 90}]", ":1:46: run: `90` isn't a duration"),
        ("tasks: [{name: a, team: john, cuont: 1}]", "1:31: unknown key `cuont` in tasks[a]. Did you mean `count`?"),
        ("tasks: [{team: john, count: 1}]", "1:9: `name` is missing in tasks[1st]"),
        ('tasks: [{name: "a\\rb", team: john, count: 1}]', "; it must be a single line of visible characters"),
        ("tasks: [{name: a, team: john, count: 0}]", "1:38: tasks[a].count is `0`"),
        ("tasks: [{name: a, team: john, vCpu: 1.0e+308}]", "vCpu is `1.0e+308`; the maximum is 1000000"),
        ("tasks: [{name: a, team: john, vCpu: .inf}]", "vCpu is `.inf`; it must be a finite number"),
        ("tasks: [{name: a, team: john, vCpu: -1}]", "vCpu is `-1`; the minimum is 0"),
        ("tasks: [{name: a, team: john, priority: 1.5}]", "priority is `1.5`; it must be text or a whole number"),
        ("tasks: [{name: a, team: john, count: 200000}]", "count is `200000`; the maximum is 100000"),
        (f"tasks: [{{name: a, team: john, run: {'9' * 300}d}}]", "…` is longer than the maximum of 100 years"),
        (
            "tasks: [{name: a, team: john, placement: {mode: near}}]",
            "must be one of required, preferred, unconstrained",
        ),
        ("", ":1:1: the file is empty"),
        ("- a", ":1:1: the file doesn't contain a map"),
        ("description: nothing", ":1:1: the scenario has no task"),
        ("files: [gone.csv]", "gone.csv: no such file next to the scenario"),
        ("tasks: [", "valid YAML"),
        ("organization: a", "an organization file; pass a scenario"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_with_its_place(tmp_path, text, message):
    with pytest.raises(InputError) as error:
        open_scenario(written(tmp_path, text))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("task", "said"),
    [
        ("team: jon, count: 1", "team jon, which handson-dev lacks; did you mean john?"),
        (
            "team: john, count: 1, instanceType: ml.p5.48xlarge",
            "john has no quota for it; it has quota for ml.g5.12xlarge",
        ),
        ("team: john, count: 1, priority: 101", "weights are 0 to 100"),
        ("team: john", "requests nothing"),
        ("team: john, count: 1, accelerators: 1", "count and parts of an instance"),
        ("team: john, count: 2, pods: 2", "with count, each instance has one pod"),
        ("team: john, accelerators: 5", "requests 5 of nvidia.com/gpu, and ml.g5.12xlarge has 4"),
    ],
)
def test_a_task_that_its_stack_does_not_know_is_refused(tmp_path, task, said):
    refused_task(tmp_path, task, said)


def test_a_class_that_its_policy_does_not_have_is_refused(tmp_path):
    said = "class urgen, which doesn't exist; did you mean urgent?"
    refused_task(tmp_path, "team: data, count: 1, priority: urgen", said, stack="startup-dev")


def refused_task(folder, task, message, stack="handson-dev"):
    file = written(folder, f"tasks:\n  - {{name: a, {task}}}\n")
    with pytest.raises(InputError) as error:
        tasks_of(file, stack)
    assert str(error.value).startswith(f"{file}:2:5: ")
    assert message in str(error.value)


def test_a_task_that_can_never_run_says_why(tmp_path):
    (found,) = tasks_of(written(tmp_path, "tasks: [{name: a, team: smith, count: 3}]"))
    assert found.never == (
        "requests 12 nvidia.com/gpu of ml.g5.12xlarge, but smith can have at most 8: 4 of its own and 4 borrowed"
    )


@pytest.mark.parametrize(
    ("task", "resource", "amount"),
    [
        ("vCpu: 0.125, pods: 8", "cpu", 125),
        ("vCpu: 0.0001", "cpu", 1),
        ("memoryInGiB: 1.0e-13", "memory", 1),
        ("accelerators: 1, vCpu: 0.0015", "cpu", 2),
    ],
)
def test_a_pod_asks_for_what_it_says_rounded_up_to_what_kueue_counts(tmp_path, task, resource, amount):
    (task_,) = tasks_of(written(tmp_path, f"tasks: [{{name: a, team: john, {task}}}]"))
    (pods,) = task_.workload.pod_sets
    assert pods.per_pod[resource] == amount
    assert task_.instances > 0


def test_a_pod_may_ask_for_gpus_alone_and_not_for_nothing(tmp_path):
    (task_,) = tasks_of(written(tmp_path, "tasks: [{name: a, team: john, accelerators: 4, vCpu: 0, memoryInGiB: 0}]"))
    (pods,) = task_.workload.pod_sets
    assert pods.per_pod == {"nvidia.com/gpu": 4, EFA: 1}
    assert task_.instances == 1
    for task, said in (("vCpu: 0", "requests nothing; set"), ("count: 1, vCpu: 0", "count and parts of an instance")):
        with pytest.raises(InputError, match=said):
            list(tasks_of(written(tmp_path, f"tasks: [{{name: a, team: john, {task}}}]")))


def test_a_task_takes_of_its_instance_what_the_service_would_reserve_for_it(tmp_path):
    part, whole = tasks_of(
        written(
            tmp_path,
            "tasks: [{name: a, team: john, accelerators: 1, pods: 3}, {name: b, team: john, count: 2, submit: 1s}]",
        )
    )
    (pods,) = part.workload.pod_sets
    assert (pods.count, pods.per_pod["nvidia.com/gpu"], pods.per_pod["cpu"]) == (3, 1, 12_000)
    assert (part.instances, whole.instances, whole.workload.created) == (0.75, 2, 1.0)


def generators(seed=1, **more):
    one = {"name": "g", "team": "john", "perHour": 10, "last": "7d", "seed": seed, **more}
    one["sizes"] = [{"accelerators": 1, "weight": 3}, {"count": 1}]
    one["run"] = {"kind": "exponential", "mean": "1h"}
    return yaml.safe_dump({"generators": [one]})


def test_a_generator_draws_the_same_for_the_same_seed_and_as_many_as_its_rate(tmp_path):
    draws = [[each.spec for each in open_scenario(written(tmp_path, generators(seed))).tasks()] for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]
    assert 1500 < len(draws[0]) < 1860, "10 an hour for a week"
    assert 0.7 < sum(spec.count is None for spec in draws[0]) / len(draws[0]) < 0.8, "three quarters are small"
    assert 3200 < sum(spec.run for spec in draws[0]) / len(draws[0]) < 4000, "an hour on average"


def test_a_pattern_says_when_tasks_come_and_leaves_their_number(tmp_path):
    pattern = {"hours": [0] * 9 + [1] * 8 + [0] * 7, "days": [1] * 5 + [0] * 2}
    tasks = list(open_scenario(written(tmp_path, generators(pattern=pattern))).tasks())
    assert {int(each.spec.submit // 3600) % 24 for each in tasks} <= set(range(9, 17))
    assert {int(each.spec.submit // 86400) for each in tasks} <= set(range(5))
    assert 1500 < len(tasks) < 1860


def test_a_pattern_of_zeros_is_refused(tmp_path):
    with pytest.raises(InputError, match="no task would be submitted"):
        open_scenario(written(tmp_path, generators(pattern={"hours": [0] * 24})))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([HEADER.replace("count", "cuont")], ":1: unknown column `cuont`; did you mean count?"),
        (["name,team,count,run"], ":1: column submit is missing"),
        ([], ":1: the file is empty"),
        ([HEADER, "a,john,,,1,0s"], ":2: 6 values for 7 columns"),
        ([HEADER, "a,john,,,1,0s,1h", "b,john,,,1,,1h"], ":3: submit is empty: every row needs a value"),
        ([HEADER, "a,john,,,1,0s,"], ":2: run is empty: every row needs a value; write `forever`"),
        ([HEADER, "a,john,,,1,0s,-1h"], ":2: run: `-1h` is negative"),
        ([HEADER, "a\x1bb,john,,,1,0s,1h"], ":2: name is `a\\u001bb`; it must be a single line of visible characters"),
        ([HEADER, "a,john,,,0,0s,1h"], ":2: count is `0`; the minimum is 1"),
        ([HEADER, "a,john,,,one,0s,1h"], ":2: count is `one` and must be a whole number"),
        ([HEADER, "a,john,,,1,2h,1h", "", "b,john,,,1,1h,1h"], ":4: submit 3600s comes before that of line 2, 7200s"),
        ([HEADER, 'a,john,,,1,0s,"1h'], ":2: unexpected end of data"),
    ],
)
def test_what_is_wrong_with_a_row_is_said_with_its_line(tmp_path, rows, message):
    file = written(tmp_path, "\n".join(rows), "trace.csv")
    with pytest.raises(InputError) as error:
        list(open_scenario(file).tasks())
    assert str(error.value).startswith(f"{file}{message}")


def test_a_csv_is_read_row_by_row(tmp_path):
    file = tmp_path / "large.csv"
    with file.open("w") as out:
        out.write(HEADER + "\n")
        for number in range(20_000):
            out.write(f"task-{number},john,,ml.g5.12xlarge,1,{number}s,1h\n")
    tracemalloc.start()
    assert sum(1 for _ in open_scenario(file).tasks()) == 20_000
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # Eight bytes per name are kept, in a table that is copied as it grows.
    assert most < 650_000, f"{most} bytes for a file of {file.stat().st_size}"


@pytest.mark.parametrize("priority", ["²", "--5", "1_0", "9" * 5000])
def test_a_priority_in_a_csv_that_is_no_number_is_a_class(tmp_path, priority):
    file = written(tmp_path, f"{HEADER}\na,john,{priority},,1,0s,1h\n", "s.csv")
    with pytest.raises(InputError, match="which doesn't exist"):
        tasks_of(file)


@pytest.mark.parametrize("row", [2, 5_000])
def test_a_byte_that_is_not_utf_8_is_said_with_its_line(tmp_path, row):
    lines = [HEADER, *(f"task-{number},john,,,1,{number}s,1h" for number in range(2, row)), "caf\xe9,john,,,1,9999s,1h"]
    file = tmp_path / "s.csv"
    file.write_bytes("\n".join(lines).encode("latin-1"))
    with pytest.raises(InputError, match=rf"s\.csv:{row}: byte 0xe9 is not UTF-8; save the file as UTF-8"):
        list(open_scenario(file).tasks())


@pytest.mark.parametrize("before", ["", f"{HEADER}\n"])
def test_a_line_without_end_is_refused_at_its_millionth_character(tmp_path, before):
    file = written(tmp_path, before + "a" * 20_000_000, "endless.csv")
    tracemalloc.start()
    with pytest.raises(InputError, match=rf"endless\.csv:{1 + bool(before)}: the line is longer than 1,000,000 char"):
        list(open_scenario(file).tasks())
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 10_000_000, "the file is not read whole"


def test_yaml_that_is_too_large_leads_to_csv(tmp_path):
    file = written(tmp_path, "tasks: []\n" + "# \n" * 2_000_000)
    with pytest.raises(InputError, match=r"s\.yaml: larger than the 4 MiB limit for YAML; write the tasks as CSV"):
        open_scenario(file)


def test_a_folder_is_no_scenario(tmp_path):
    with pytest.raises(InputError, match="a directory; use a scenario in it"):
        open_scenario(tmp_path)


def test_tasks_of_all_parts_come_in_the_order_of_their_time(tmp_path):
    written(tmp_path, f"{HEADER}\nc,john,,,1,30m,1h\n", "more.csv")
    text = generators() + "tasks: [{name: b, team: john, count: 1, submit: 90m}]\nfiles: [more.csv]\n"
    times = [each.spec.submit for each in open_scenario(written(tmp_path, text)).tasks()]
    assert all(one <= other for one, other in itertools.pairwise(times))


@pytest.mark.parametrize("file", sorted((ROOT / "stacks" / "scenarios").glob("*.yaml")), ids=lambda file: file.stem)
def test_the_schema_for_editors_takes_the_examples(file):
    schema = json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(file.read_text()), schema)
