"""`hpkit local` and `hpkit local doctor` as processes: output, exit codes, and misuse."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

from hpkit.cli.common.output import own_shell, to_use
from hpkit.errors import ToolError
from hpkit_local.cli import local_stack
from hpkit_local.supervisor import control
from hpkit_local.supervisor.local_cloud import LocalCloud, exclusive
from hpkit_local.toolchain import TOOLS
from tests.builders import organization, text_of
from tests.cli.invoke import hpkit
from tests.cli.test_validate import HPKIT, ROOT
from tests.cli.test_validate import hpkit as process
from tests.documents import document
from tests.running import eventually

SECONDS = 240
PARTS = [*("aws", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"), *("kueue", "kwok")]


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    folder = tmp_path_factory.mktemp("repository")
    (folder / "Pulumi.yaml").write_text("name: hpkit\n")
    return folder


@pytest.fixture(scope="module")
def around(instance):
    """Return the folder around the running cloud `shared`, as a repository."""
    root = instance.folder.parents[1]
    (root / "Pulumi.yaml").write_text("name: hpkit\n")
    return root


def marked(test):
    return pytest.mark.cluster(pytest.mark.timeout(900)(test))


# tests/test_walk.py starts one from nothing.
@marked
def test_start_says_what_is_healthy_and_how_to_use_it(around):
    start = hpkit("local", "start", "--name", "shared", cwd=around)
    assert start.returncode == 0, start.stderr
    assert sorted(start.stderr.splitlines()) == [f"{part}: healthy" for part in PARTS]
    assert start.stdout.endswith(f'to use it: eval "$({HPKIT} local env --name shared)"\n')


@marked
def test_status_names_every_part_with_process_and_port_and_what_it_takes(around):
    status: dict = {}

    def have_worked():
        answer = hpkit("local", "status", "--name", "shared", "--format", "json", cwd=around)
        assert answer.returncode == 0
        status.update(json.loads(answer.stdout))
        return all(part["cpuSeconds"] > 0 for part in [*status["parts"], status["supervisor"]])

    # The kernel counts in hundredths of a second, and a part that just started may have used less.
    eventually(have_worked, "every part has used processor time")
    assert (status["name"], status["running"], status["stacks"]) == ("shared", True, [])
    assert [(part["part"], part["state"]) for part in status["parts"]] == [(name, "healthy") for name in PARTS]
    ports = LocalCloud.named("shared", root=around).ports()
    assert status["parts"][0]["port"] == ports["aws"]
    everything = [*status["parts"], status["supervisor"]]
    for part in everything:
        os.kill(part["pid"], 0)
        assert part["memoryBytes"] > 1 << 20
        assert part["cpuSeconds"] > 0
    assert status["total"]["memoryBytes"] == sum(part["memoryBytes"] for part in everything)
    assert status["total"]["cpuSeconds"] == pytest.approx(sum(part["cpuSeconds"] for part in everything), abs=0.1)
    first, head, *table = hpkit("local", "status", "--name", "shared", cwd=around).stdout.splitlines()
    assert first == "shared: no stack"
    assert head.split() == ["part", "state", "pid", "port", "restarts", "memory", "cpu"]
    assert [line.split()[0] for line in table] == [*PARTS, "supervisor", "total"]
    assert all(line.split()[1] == "healthy" for line in table[: len(PARTS)])
    assert max(map(len, (head, *table))) <= 80


def test_programs_of_the_local_cloud_cache_bytecode(project, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    hpkit("local", "list", cwd=project)
    assert "PYTHONDONTWRITEBYTECODE" not in os.environ


def test_list_of_nothing_says_how_to_start(project):
    answer = hpkit("local", "list", cwd=project)
    assert (answer.returncode, answer.stdout) == (0, f"no local clouds. To start one: {HPKIT} local up --stack STACK\n")


BEFORE = {"AWS_REGION": "eu-north-1", "AWS_SECRET_ACCESS_KEY": 'it\'s a "$secret"', "SHELL": "/bin/bash"}
SHOW = (
    "import json, os; print(json.dumps({name: os.environ.get(name) for name in"
    " ('AWS_REGION', 'AWS_SECRET_ACCESS_KEY', 'AWS_DEFAULT_REGION', 'KUBECONFIG', 'PATH')}))"
)
# Each shell sets the variables twice, shows them, and restores them.
SCRIPTS = {
    "bash": ["set -eu", 'eval "$({env})"', 'eval "$({env} --unset)"'],
    "zsh": ['eval "$({env} --shell zsh)"', 'eval "$({env} --shell zsh --unset)"'],
    "fish": ["{env} --shell fish | source", "{env} --shell fish --unset | source"],
}


@marked
@pytest.mark.parametrize("shell", SCRIPTS)
def test_a_shell_takes_the_variables_over_and_gives_them_back(around, shell):
    executable = shutil.which(shell)
    if executable is None:
        pytest.skip(f"there is no {shell} here")
    *head, use, back = [line.format(env=f"{HPKIT} local env --name shared") for line in SCRIPTS[shell]]
    show = f'{sys.executable} -c "{SHOW}"'
    typed = [executable, "-c", "\n".join([*head, use, use, show, "command -v hpkit", back, show])]
    environment = {**os.environ, **BEFORE}
    answer = subprocess.run(typed, cwd=around, env=environment, capture_output=True, text=True, timeout=SECONDS)
    assert (answer.returncode, answer.stderr) == (0, "")
    inside, command, after = answer.stdout.splitlines()
    inside, after = json.loads(inside), json.loads(after)
    instance = LocalCloud.named("shared", root=around)
    assert inside["KUBECONFIG"] == str(instance.kubeconfig)
    local = {"AWS_REGION": "us-west-2", "AWS_DEFAULT_REGION": "us-west-2", "AWS_SECRET_ACCESS_KEY": "local"}
    assert inside.items() >= local.items()
    assert command == str(HPKIT)
    untouched = {name: {**os.environ, **BEFORE}.get(name) for name in after}
    assert after == untouched
    assert BEFORE["AWS_SECRET_ACCESS_KEY"] not in hpkit("local", "env", "--name", "shared", cwd=around, **BEFORE).stdout


@pytest.mark.parametrize(
    ("shell", "known", "use"),
    [
        ("/bin/bash", "bash", 'eval "$(e)"'),
        ("/bin/ksh", "bash", 'eval "$(e)"'),
        ("", "bash", 'eval "$(e)"'),
        ("/usr/bin/zsh", "zsh", 'eval "$(e)"'),
        ("/usr/local/bin/fish", "fish", "e | source"),
    ],
)
def test_the_shell_is_that_of_the_user(monkeypatch, shell, known, use):
    monkeypatch.setenv("SHELL", shell)
    assert (own_shell(), to_use(own_shell(), "e")) == (known, use)


@marked
def test_env_as_json_is_what_a_program_would_set(around):
    variables = json.loads(hpkit("local", "env", "--name", "shared", "--format", "json", cwd=around).stdout)[
        "variables"
    ]
    ports = LocalCloud.named("shared", root=around).ports()
    assert variables["AWS_ENDPOINT_URL"] == f"http://127.0.0.1:{ports['aws']}"
    assert variables["PATH"].split(os.pathsep)[0] == str(HPKIT.parent)
    unset = json.loads(hpkit("local", "env", "--unset", "--format", "json", cwd=around).stdout)["variables"]
    assert unset == dict.fromkeys(variables)


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--from", "home"), "--from home: use an IPv4 address, such as 10.20.0.5"),
        (("--account", "1234"), "--account 1234: an AWS account ID has 12 digits"),
    ],
)
def test_who_and_where_callers_are_is_checked_before_anything_starts(repository, option, said):
    refused = hpkit("local", "start", "--name", "placed", *option, cwd=repository)
    assert (refused.returncode, refused.stderr) == (1, f"error: {said}\n")
    assert not LocalCloud.named("placed", root=repository).folder.exists()


def test_status_without_a_name_lists_several(project):
    for name in ("one", "two"):
        (project / ".local" / name).mkdir(parents=True)
    answer = hpkit("local", "status", cwd=project)
    assert (answer.returncode, answer.stderr) == (0, "")
    assert [line.split()[:2] for line in answer.stdout.splitlines()[1:]] == [["one", "stopped"], ["two", "stopped"]]


@pytest.mark.parametrize("command", ["env", "stop", "reset"])
def test_without_a_name_several_are_listed_with_the_command_for_each(project, command):
    for name in ("one", "two"):
        (project / ".local" / name).mkdir(parents=True)
    answer = hpkit("local", command, cwd=project)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert answer.stderr.splitlines() == [
        "error: 2 local clouds exist, but none is running; choose one:",
        f"  {HPKIT} local {command} --name one    # no stack",
        f"  {HPKIT} local {command} --name two    # no stack",
    ]


def stack_in(project, name, *resources, stack, pending=()):
    (project / "stacks" / f"Pulumi.{stack}.yaml").write_text("config: {}\n")
    folder = LocalCloud.named(name, root=project).state_folder / ".pulumi" / "stacks" / "hpkit"
    folder.mkdir(parents=True)
    latest = {"resources": resources, "pending_operations": pending}
    (folder / f"{stack}.json").write_text(json.dumps({"checkpoint": {"latest": latest}}))


VPC = {"type": "aws:ec2/vpc:Vpc", "custom": True}


def test_an_instance_keeps_the_account_of_the_stack_that_is_up_on_it(project):
    (project / "stacks" / "acme.yaml").write_bytes(text_of(organization(environment={"account": "210987654321"})))
    stack_in(project, "acme-dev", VPC, stack="acme-dev")
    instance = LocalCloud.named("acme-dev", root=project)
    instance.write_caller("123456789012")
    message = (
        "acme-dev is up on local cloud acme-dev in account 123456789012, but its file now has account 210987654321. "
        "Delete it first: hpkit local down --stack acme-dev --name acme-dev"
    )
    with pytest.raises(ToolError, match=re.escape(message)):
        control.take_caller(instance, "acme-dev", "210987654321", say=print)
    (instance.state_folder / ".pulumi" / "stacks" / "hpkit" / "acme-dev.json").unlink()
    control.take_caller(instance, "acme-dev", "210987654321", say=print)
    assert instance.account() == "210987654321"


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("1.31", 2 * ["acme-dev: Kubernetes 1.33, the nearest to 1.31 that kube-apiserver emulates"]),
        ("1.34", ["acme-dev: Kubernetes 1.34"]),
        ("1.35", []),
        ("1.40", 2 * ["acme-dev: Kubernetes 1.36, the nearest to 1.40 that kube-apiserver emulates"]),
    ],
)
def test_an_instance_emulates_the_kubernetes_version_of_the_file_or_the_nearest(project, version, said):
    instance, lines = LocalCloud.named("acme-dev", root=project), []
    for _ in range(2):
        control.take_kubernetes(instance, version, say=lines.append)
    assert lines == said
    assert instance.kubernetes() in (lines[0] if lines else "1.35")


def test_without_a_stack_the_only_one_is_taken_and_of_several_one_has_to_be_named(project):
    (project / "stacks" / "acme.yaml").write_bytes(text_of(organization()))
    answer = hpkit("local", "down", cwd=project)
    assert (answer.returncode, answer.stderr) == (0, "stack acme-dev: the project's only stack\n")
    (project / "stacks" / "b.yaml").write_bytes(text_of(organization(top={"organization": "b"})))
    answer = hpkit("local", "down", cwd=project)
    assert answer.stderr == "error: name the stack with --stack; the project has acme-dev, b-dev\n"
    answer = hpkit("local", "down", cwd=project, HPKIT_STACK="b-dev")
    assert (answer.returncode, answer.stderr) == (0, "stack b-dev: from HPKIT_STACK\n")


def test_a_stack_whose_last_run_was_killed_is_repaired_first(project):
    stack_in(project, "acme-dev", VPC, stack="acme-dev", pending=[{"type": "creating"}, {"type": "updating"}])
    answer = hpkit("local", "up", cwd=project)
    assert answer.returncode == 1
    assert answer.stderr.startswith("stack acme-dev: the only one that is up, on local cloud acme-dev\n")
    assert "was killed while it created 1 resource, which another run could create twice" in answer.stderr
    assert answer.stderr.endswith(f"&& {HPKIT} aws recover --stack acme-dev\n")


def test_a_second_stack_on_an_instance_is_refused_before_anything_is_made(project):
    stack_in(project, "shared", VPC, stack="one-dev")
    (project / "stacks" / "two.yaml").write_bytes(text_of(organization(top={"organization": "two"})))
    answer = hpkit("local", "up", "--stack", "two-dev", "--name", "shared", cwd=project)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr == (
        "error: stack one-dev is up on local cloud shared, which can hold one stack. Delete it: "
        f"{HPKIT} local down --stack one-dev --name shared. Or use a separate local cloud for two-dev: "
        f"{HPKIT} local up --stack two-dev\n"
    )
    assert {file.name for file in (project / ".local").iterdir()} == {"shared"}
    # It creates no EKS cluster; an instance has at most one.
    existing = organization(environment={"eks": {"version": "1.35", "existing": {"name": "one-dev"}}})
    (project / "stacks" / "two.yaml").write_bytes(text_of(existing | {"organization": "two"}))
    local_stack._reject_second("two-dev", LocalCloud.named("shared", root=project), project)


@pytest.mark.parametrize("verb", ["up", "preview", "refresh", "destroy", "down"])
def test_a_stack_that_the_repository_does_not_have_starts_nothing(project, verb):
    answer = hpkit("local", verb, "--stack", "handson", cwd=project)
    said = "error: `handson` isn't a valid stack name; use <organization>-<environment>\n"
    assert (answer.returncode, answer.stderr) == (2, said)
    answer = hpkit("local", verb, "--stack", "acme-dev", cwd=project)
    assert (answer.returncode, answer.stderr.count("\n")) == (2, 1)
    assert answer.stderr.startswith("error: the stack acme-dev requires stacks/acme.yaml, which doesn't exist")
    assert not (project / ".local").exists()


def test_an_environment_that_pulumi_would_not_find_is_named_before_anything_starts(project):
    (project / "stacks" / "acme.yaml").write_bytes(text_of(organization()))
    runtime = "runtime: {name: python, options: {virtualenv: .venv}}\n"
    (project / "Pulumi.yaml").write_text(
        f"name: acme\n{runtime}plugins: {{providers: [{{name: hyperpod, path: .venv/bin}}]}}\n"
    )
    answer = hpkit("local", "up", cwd=project)
    assert answer.returncode == 1
    error = answer.stderr.splitlines()[-1]
    assert "runtime.options.virtualenv is .venv, and .venv/bin/python doesn't exist" in error
    assert f"set runtime.options.virtualenv to {sys.prefix}, and plugins.providers.path to {sys.prefix}/bin" in error
    assert not (project / ".local").exists()


@pytest.mark.parametrize("verb", ["destroy", "down"])
def test_what_is_not_up_needs_no_end_and_what_is_elsewhere_is_said(project, verb):
    stack_in(project, "shared", VPC, stack="one-dev")
    (project / "stacks" / "two.yaml").write_bytes(text_of(organization(top={"organization": "two"})))
    answer = hpkit("local", verb, "--stack", "two-dev", cwd=project)
    message = "two-dev isn't up on local cloud two-dev, so nothing was deleted\n"
    assert (answer.returncode, answer.stdout) == (0, message)
    answer = hpkit("local", verb, "--stack", "two-dev", "--format", "json", cwd=project)
    (item,) = document(answer.stdout)["items"]
    assert (item["target"], item["done"], message in answer.stderr) == ("two-dev", False, True)
    answer = hpkit("local", verb, "--stack", "one-dev", cwd=project)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.splitlines() == [
        "error: one-dev isn't on local cloud one-dev. To delete it where it is:",
        f"  {HPKIT} local {verb} --stack one-dev --name shared",
    ]


def test_an_up_that_has_made_nothing_yet_is_not_taken_for_none(project):
    verb = "down"
    (project / "stacks" / "one.yaml").write_bytes(text_of(organization(top={"organization": "one"})))
    with exclusive(LocalCloud.named("one-dev", root=project), "hpkit local up"):
        # This process holds the lock.
        answer = process("local", verb, "--stack", "one-dev", "--no-wait", cwd=project)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.startswith(f"error: `hpkit local up` (process {os.getpid()}, ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("env",), f"no local cloud is running. To start one: {HPKIT} local up --stack STACK"),
        (("env", "--name", "never"), f"never was never started. To start it: {HPKIT} local up --stack STACK --name"),
        (("status", "--name", "Never_!"), "local cloud name 'Never_!': use up to 40 lower-case letters, digits and"),
        (("start", "--name", "../up"), "local cloud name '../up'"),
        (("reset", "--yes", "--name", "."), "local cloud name '.'"),
    ],
)
def test_misuse_is_said_in_one_line_with_the_remedy(repository, arguments, message):
    answer = hpkit("local", *arguments, cwd=repository)
    assert (answer.returncode, answer.stdout) == (1, "")
    assert answer.stderr.startswith(f"error: {message}")
    assert answer.stderr.count("\n") == 1


@pytest.mark.parametrize("command", ["start", "stop", "status", "reset", "env"])
def test_outside_a_repository_every_command_says_how_to_name_one(tmp_path, command):
    answer = hpkit("local", command, cwd=tmp_path)
    assert answer.returncode == 1
    assert answer.stderr.startswith(f"error: no Pulumi.yaml in {tmp_path} or above")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("start", "--latency-factor", "-1"),
        ("start", "--latency-factor", "fast"),
        ("status", "--format", "xml"),
        ("status", "--dir", "/no/such/folder"),
        ("pause",),
    ],
)
def test_wrong_options_exit_2_and_start_nothing(repository, arguments):
    answer = hpkit("local", *arguments, cwd=repository)
    assert answer.returncode == 2
    assert "Usage: hpkit local" in answer.stderr
    assert not (repository / ".local" / "default").exists()


def test_reset_deletes_only_after_a_yes_and_only_that_instance(repository):
    folders = [LocalCloud.named(name, root=repository).folder for name in ("doomed", "dear")]
    for folder in folders:
        folder.mkdir(parents=True)
        (folder / "aws.json").write_text("{}")
    asked = hpkit("local", "reset", "--name", "doomed", cwd=repository)
    assert asked.returncode == 1
    said = "No terminal is available for the confirmation; to skip it, add --yes\n"
    assert asked.stderr == f"error: Delete {folders[0]} and everything in it? {said}"
    assert all(folder.exists() for folder in folders)
    assert hpkit("local", "reset", "--yes", "--name", "doomed", cwd=repository).returncode == 0
    assert [folder.exists() for folder in folders] == [False, True]


def test_a_damaged_record_is_said_with_the_way_out_which_works(repository):
    instance = LocalCloud.named("damaged", root=repository)
    instance.folder.mkdir(parents=True)
    (instance.folder / "run.json").write_text('{"supervisor": ')
    answer = hpkit("local", "status", "--name", "damaged", cwd=repository)
    assert answer.returncode == 1
    assert answer.stderr.endswith("Delete it: hpkit local reset --name damaged\n")
    assert hpkit("local", "reset", "--yes", "--name", "damaged", cwd=repository).returncode == 0
    assert not instance.folder.exists()


def test_doctor_says_what_is_missing_and_how_to_get_it(tmp_path):
    empty = {"HPKIT_CACHE": str(tmp_path), "PATH": str(tmp_path)}
    answer = hpkit("local", "doctor", "--format", "json", cwd=ROOT, **empty)
    assert answer.returncode == 1
    rows = {row["tool"]: row for row in json.loads(answer.stdout)["items"]}
    assert list(rows) == ["python", "go", *(tool.name for tool in TOOLS)]
    for tool in ("go", *(tool.name for tool in TOOLS)):
        assert (rows[tool]["from"], rows[tool]["get"]) == ("missing", "hpkit local doctor --fix")
    text = hpkit("local", "doctor", cwd=ROOT, **empty).stdout
    needed = [tool.name for tool in TOOLS if not tool.on_demand]
    assert f"{len(needed)} of {len(TOOLS) + 2} missing" in text
    assert max(len(line) for line in text.splitlines()) <= 80


# Nothing can be downloaded from there.
NOWHERE = {"HTTPS_PROXY": "http://127.0.0.1:9", "GOPROXY": "off", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""}


def test_doctor_gets_what_is_named_and_nothing_else(tmp_path):
    unreachable = {"HPKIT_CACHE": str(tmp_path / "cache"), "PATH": str(tmp_path), **NOWHERE}
    answer = hpkit("local", "doctor", "--fix", "keda-crds", cwd=ROOT, **unreachable)
    assert answer.returncode == 1
    assert "1 of 1 tools" in answer.stderr
    answer = hpkit("local", "doctor", "keda", cwd=ROOT, **unreachable)
    assert answer.returncode == 2
    assert "no tool keda. Known" in answer.stderr


def test_doctor_says_which_tool_on_path_is_taken_and_which_is_passed_over(tmp_path):
    for name, version in (("etcd", "3.5.21"), ("kube-apiserver", "1.20.0")):
        script = tmp_path / name
        script.write_text(f"#!/bin/sh\necho {version}\n")
        script.chmod(0o755)
    environment = {"HPKIT_CACHE": str(tmp_path / "cache"), "PATH": str(tmp_path)}
    rows = {
        row["tool"]: row
        for row in json.loads(hpkit("local", "doctor", "--format", "json", cwd=ROOT, **environment).stdout)["items"]
    }
    etcd = rows["etcd"]
    assert (etcd["from"], etcd["version"], etcd["path"]) == ("PATH", "3.5.21", str(tmp_path / "etcd"))
    passed_over = f"{tmp_path}/kube-apiserver is 1.20.0, wanted 1.36 or newer, below 1.37"
    assert "Kubernetes 1.33 to 1.36" in rows["kube-apiserver"]["purpose"]
    assert (rows["kube-apiserver"]["from"], rows["kube-apiserver"]["note"]) == ("missing", passed_over)
    assert "skipped" in hpkit("local", "doctor", cwd=ROOT, **environment).stdout
