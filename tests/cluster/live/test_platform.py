"""`hpkit cluster status` and `hpkit job why`, with a real API server and a real Kueue."""

import contextlib
import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
import urllib3

from hpkit.program.iam.commands import COMMANDS
from hpkit_whatif.scenario import open_scenario
from tests.cli.invoke import hpkit
from tests.documents import document
from tests.examples import copy_project
from tests.program.cloud import KUEUE, ROOT
from tests.running import eventually

pytestmark = [pytest.mark.platform, pytest.mark.timeout(900)]

SMITHS = "/apis/batch/v1/namespaces/hyperpod-ns-smith/jobs"
JOHNS = "/apis/batch/v1/namespaces/hyperpod-ns-john/jobs"


@pytest.fixture(scope="module")
def ask(live):
    """Run a command against the platform and return its output, as data if it's JSON."""
    variables = {
        "AWS_ENDPOINT_URL": live.url,
        "AWS_ACCESS_KEY_ID": "local",
        "AWS_SECRET_ACCESS_KEY": "local",
        "AWS_EC2_METADATA_DISABLED": "true",
    }

    def run(*words, stack="handson-dev", cwd=ROOT, **more):
        return hpkit(*words, "--stack", stack, cwd=cwd, **{**variables, **more})

    return run


def data(answer):
    assert answer.returncode == 0, answer.stderr
    return document(answer.stdout)


@contextlib.contextmanager
def faults(live, found):
    """Have the endpoint answer with faults."""
    url = f"{live.url}/_hpkit/faults"
    urllib3.request("POST", url, json=found)
    yield
    urllib3.request("POST", url, json=dict.fromkeys(found))


def job(team, name, pods):
    labels = {"kueue.x-k8s.io/queue-name": f"hyperpod-ns-{team}-localqueue"}
    resources = {"requests": {"cpu": "1"}, "limits": {"nvidia.com/gpu": "4"}}
    container = {"name": "main", "image": "train", "resources": resources}
    metadata = {"labels": labels, "annotations": {"hpkit.local/run": "24h"}}
    template = {"metadata": metadata, "spec": {"restartPolicy": "Never", "containers": [container]}}
    spec = {"parallelism": pods, "completions": pods, "suspend": True, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "labels": labels}, "spec": spec}


@pytest.fixture(scope="module")
def tasks(live, ask):
    """Smith borrows until john reclaims his quota; smith also requests more than can ever be available."""

    def state(name):
        teams = data(ask("cluster", "status", "--format", "json"))["teams"]
        return next((each["state"] for team in teams for each in team["running"] if each["name"] == name), None)

    live.api.create(SMITHS, job("smith", "first", 1))
    eventually(lambda: state("first") == "running", "smith's own runs")
    # Kueue preempts what was admitted last, and its times have whole seconds.
    admitted = int(time.time())
    eventually(lambda: int(time.time()) > admitted, "the next second begins")
    live.api.create(SMITHS, job("smith", "borrowed", 1))
    eventually(lambda: state("borrowed") == "running", "smith borrows")
    live.api.create(SMITHS, job("smith", "huge", 6))
    # Kueue updates a queue's status shortly after it admits.
    borrowing: dict = {}

    def is_counted():
        borrowing.update(data(ask("cluster", "status", "--format", "json")))
        return [team["shares"][0]["used"] for team in borrowing["teams"]] == [0, 8]

    eventually(is_counted, "the queues' use is counted")
    live.api.create(JOHNS, job("john", "own", 3))
    eventually(lambda: state("own") == "running", "john takes his back")
    yield borrowing
    for folder, names in ((SMITHS, ("first", "borrowed", "huge")), (JOHNS, ("own",))):
        for name in names:
            live.api.delete(f"{folder}/{name}")

    def left():
        teams = data(ask("cluster", "status", "--format", "json"))["teams"]
        return [each["name"] for team in teams for each in (*team["running"], *team["waiting"])]

    eventually(lambda: not left(), "the jobs go")


def test_status_says_who_borrows_from_whom(tasks):
    john, smith = tasks["teams"]
    assert (smith["shares"][0]["used"], smith["shares"][0]["borrowed"]) == (8, 4)
    assert smith["shares"][0]["lenders"] == ["john"]
    assert (john["shares"][0]["lentAtLeast"], john["shares"][0]["lentAtMost"]) == (4, 4)
    assert smith["waiting"][0]["reason"].startswith("it can never run: it requests 24 nvidia.com/gpu of ml.g5.12xlarge")


def test_a_platform_that_is_as_its_file_says_has_no_difference_and_no_problem(tasks):
    assert (tasks["differences"], tasks["problems"], tasks["unknown"]) == ([], [], [])
    groups = {each["name"]: (each["target"], each["running"]) for each in tasks["instanceGroups"]}
    assert groups == {"gpu": (4, 4), "system": (1, 1)}
    nodes = {(each["group"], each["status"], each["ready"], each["cordoned"]) for each in tasks["nodes"]}
    assert nodes == {("gpu", "Running", True, False), ("system", "Running", True, False)}
    assert sum(each["used"] for each in tasks["nodes"] if each["group"] == "gpu") == 8
    assert {each["status"] for each in tasks["addons"]} == {"ACTIVE"}
    assert tasks["events"]


def test_what_the_file_says_otherwise_is_a_difference(ask, tasks, tmp_path):
    del tasks
    copy_project(tmp_path)
    file = tmp_path / "stacks" / "handson.yaml"
    text = file.read_text(encoding="utf-8")
    assert text.count("fairShareWeight: 0") == 1
    file.write_text(text.replace("fairShareWeight: 0", "fairShareWeight: 7"), encoding="utf-8")
    found = data(ask("cluster", "status", "--format", "json", cwd=tmp_path))["differences"]
    assert found == ["team john has fair-share weight 0, but 7 in the file"]


def test_the_page_fits_a_terminal_of_80_columns_and_shows_each_team(ask, tasks):
    del tasks
    shown = ask("cluster", "status").stdout
    assert max(map(len, shown.splitlines())) <= 80
    assert "cluster handson in us-west-2 is InService" in shown
    assert "smith: 1 running, 2 waiting\n  first (Job, priority 0, " in shown
    assert "huge (Job, priority 0" in shown


def test_a_member_sees_the_tasks_of_the_own_team_and_not_those_of_others(live, ask, tasks):
    del tasks
    iam, trust = live.client("iam"), {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    role = iam.create_role(RoleName="smith-scientists", AssumeRolePolicyDocument=document)["Role"]["Arn"]
    keys = live.client("sts").assume_role(RoleArn=role, RoleSessionName="ann")["Credentials"]
    member = {
        "AWS_ACCESS_KEY_ID": keys["AccessKeyId"],
        "AWS_SECRET_ACCESS_KEY": keys["SecretAccessKey"],
        "AWS_SESSION_TOKEN": keys["SessionToken"],
    }
    found = data(ask("cluster", "status", "--format", "json", **member))
    john, smith = found["teams"]
    assert [(each["name"], each["state"], each["pods"]) for each in smith["running"]] == [("first", "running", 1)]
    assert [each["name"] for each in smith["waiting"]] == ["borrowed", "huge"]
    assert (john["seen"], john["running"], john["waiting"], john["shares"][0]["quota"]) == (False, [], [], 12)
    assert (found["problems"], found["differences"]) == ([], [])
    # The policy of `hpkit aws team-policy` lets members describe the two clusters, and list nothing below.
    with faults(live, {"denied": "1.0@List*"}):
        shown = ask("cluster", "status", **member)
        assert "smith: 1 running, 2 waiting\n  first (Job, priority 0, " in shown.stdout
        assert "warning" not in shown.stderr
        assert shown.stdout.count("?") > 1
        assert "warning: not read: sagemaker:ListClusterNodes: AccessDenied" in ask("cluster", "status").stderr
    iam.delete_role(RoleName="smith-scientists")


def test_why_names_the_preemptor_the_holders_and_what_would_help(ask, tasks):
    del tasks
    answer = data(ask("job", "why", "borrowed", "--format", "json"))
    assert answer["reason"].startswith(
        "it was preempted, because the team that lent the quota reclaimed it; now at least 4 "
    )
    assert answer["preemptedBy"] == "own of john"
    assert answer["holders"] == [
        "john holds 12 nvidia.com/gpu of ml.g5.12xlarge",
        "smith holds 4 nvidia.com/gpu of ml.g5.12xlarge",
    ]
    assert sorted(answer["wouldRunIf"]) == ["task first ends", "task own ends"]
    words = ask("job", "why", "huge").stdout
    assert "It can never run" in words
    assert "it is submitted with at most 2 instead of 6 pods, and other tasks end" in words


def test_what_was_asked_for_is_recorded_as_a_scenario(ask, tasks, tmp_path):
    del tasks
    result = ask("whatif", "record", "--since", "2h", "--output", tmp_path / "hours.yaml")
    assert result.returncode == 0, result.stderr
    scenario_tasks = {task.name: task for task in open_scenario(tmp_path / "hours.yaml").scenario.tasks}
    assert scenario_tasks.keys() >= {"smith/first", "smith/borrowed", "john/own"}
    own = scenario_tasks["john/own"]
    assert (own.team, own.priority, own.pods, own.accelerators, own.instance_type, own.run) == (
        "john", 0, 3, 4, "ml.g5.12xlarge", None,
    )  # fmt: skip
    # Tasks that `simulate` would reject are left out and reported.
    assert "smith/huge" not in scenario_tasks
    assert "more than their team can ever have" in result.stderr
    assert scenario_tasks["smith/first"].submit <= scenario_tasks["smith/borrowed"].submit <= own.submit
    assert "their run time is unknown" in result.stderr


def test_what_why_promises_comes_true(live, ask, tasks):
    """The simulator predicts that the task runs when another ends; the real Kueue confirms it."""
    del tasks
    live.api.delete(f"{SMITHS}/first")
    eventually(lambda: data(ask("job", "why", "borrowed", "--format", "json"))["state"] == "running", "it runs then")
    live.api.create(SMITHS, job("smith", "first", 1))


def test_topology_shows_nodes_without_layers_too(live, ask, tasks):
    del tasks
    rows = [line.split() for line in ask("cluster", "status", "--topology").stdout.splitlines()]
    nodes = live.api.items("/api/v1/nodes")
    assert {row[0] for row in rows[1:]} == {each["metadata"]["name"] for each in nodes}
    assert sum("john/own" in row for row in rows) == 3


@pytest.mark.nightly
def test_a_live_check_with_a_thousand_pending_jobs_takes_less_than_two_seconds(live, ask, tasks, tmp_path):
    del tasks
    copy_project(tmp_path)
    folder = f"{KUEUE}/namespaces/hyperpod-ns-john/workloads"
    template = job("john", "x", 1)["spec"]["template"]
    spec = {
        "queueName": "hyperpod-ns-john-localqueue",
        "podSets": [{"name": "main", "count": 1, "template": {"spec": template["spec"]}}],
    }
    head = {"apiVersion": KUEUE.removeprefix("/apis/"), "kind": "Workload"}
    names = [f"many-{number}" for number in range(1000)]
    with ThreadPoolExecutor(4) as pool:
        [*pool.map(lambda name: live.api.create(folder, {**head, "metadata": {"name": name}, "spec": spec}), names)]
        new = ("--team", "john", "--instance-type", "ml.g5.12xlarge", "--output", "job.yaml")
        assert ask("job", "new", *new, cwd=tmp_path).returncode == 0
        seconds = []
        for _ in range(3):
            begun = time.monotonic()
            said = ask("job", "check", "job.yaml", "--live", cwd=tmp_path)
            seconds.append(time.monotonic() - begun)
            assert "waits" in said.stdout, said
        [*pool.map(lambda name: live.api.delete(f"{folder}/{name}"), names)]
    assert min(seconds) < 2, seconds


@pytest.fixture
def limited(live):
    """Yield the environment of a user who only has one command's permissions; they end with the `with` block."""
    iam, eks, rbac = live.client("iam"), live.client("eks"), "/apis/rbac.authorization.k8s.io/v1"
    iam.create_user(UserName="reader")
    key = iam.create_access_key(UserName="reader")["AccessKey"]
    arn = iam.get_user(UserName="reader")["User"]["Arn"]
    eks.create_access_entry(clusterName="handson-dev", principalArn=arn, kubernetesGroups=["readers"])
    kind = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reader"}}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reader"}
    group = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": "readers"}
    binding = {**kind, "kind": "ClusterRoleBinding", "roleRef": reference, "subjects": [group]}
    live.api.create(f"{rbac}/clusterrolebindings", binding)

    @contextlib.contextmanager
    def to(rights):
        statement = {"Effect": "Allow", "Action": list(rights.iam), "Resource": "*"}
        policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
        iam.put_user_policy(UserName="reader", PolicyName="read", PolicyDocument=policy)
        rules = []
        for verb, resource in rights.kubernetes:
            whole, slash, part = resource.partition("/")
            plural, _, of = whole.partition(".")
            rules.append({"apiGroups": [of], "resources": [plural + slash + part], "verbs": [verb]})
        live.api.create(f"{rbac}/clusterroles", {**kind, "kind": "ClusterRole", "rules": rules})
        try:
            yield {"AWS_ACCESS_KEY_ID": key["AccessKeyId"], "AWS_SECRET_ACCESS_KEY": key["SecretAccessKey"]}
        finally:
            live.api.delete(f"{rbac}/clusterroles/reader")

    yield to
    live.api.delete(f"{rbac}/clusterrolebindings/reader")
    eks.delete_access_entry(clusterName="handson-dev", principalArn=arn)
    iam.delete_access_key(UserName="reader", AccessKeyId=key["AccessKeyId"])
    iam.delete_user_policy(UserName="reader", PolicyName="read")
    iam.delete_user(UserName="reader")


# The arguments of each command.
WORDS = {
    "cluster status": (),
    "job why": ("huge",),
    "job check": ("job.yaml", "--live"),
    "cluster usage": ("--since", "1h"),
    "whatif record": ("--since", "2h", "--force", "--output", "hours.yaml"),
}


def test_each_command_that_looks_runs_with_just_the_rights_that_it_lists(ask, tasks, limited, tmp_path):
    """A user whose IAM policy has only the listed actions, and a Kubernetes role with only the listed permissions."""
    del tasks
    copy_project(tmp_path)
    new = ("--team", "john", "--instance-type", "ml.g5.12xlarge", "--output", "job.yaml")
    assert ask("job", "new", *new, cwd=tmp_path).returncode == 0

    def refused(*words, **variables):
        # Every message except the notes of `record` is a missing permission.
        answer = ask(*words, cwd=tmp_path, **variables)
        return [line for line in answer.stderr.splitlines() if not line.startswith("note: ")] or answer.returncode

    assert WORDS.keys() | {"cluster check"} == COMMANDS.keys()
    for name, more in WORDS.items():
        words = (*name.split(), *more)
        with limited(COMMANDS[name]) as variables:
            eventually(lambda words=words, variables=variables: not refused(*words, **variables), f"{name} may")


@pytest.mark.nightly
def test_a_check_of_the_cluster_runs_with_just_the_rights_that_it_lists(ask, tasks, limited, tmp_path):
    del tasks  # They hold GPUs of each node of the group gpu, so its check fails.
    copy_project(tmp_path)
    with limited(COMMANDS["cluster check"]) as variables:
        eventually(
            lambda: not ask("cluster", "status", "--topology", cwd=tmp_path, **variables).returncode, "the role holds"
        )
        said = ask("cluster", "check", "--timeout", "60", cwd=tmp_path, **variables).stdout
    for name in ("group system", "team john", "team smith"):
        assert re.search(rf"^{name} +ok ", said, re.MULTILINE), said


def test_what_is_not_there_or_not_said_is_one_sentence(ask, tmp_path):
    gone = ask("cluster", "status", stack="enterprise-prod")
    assert gone.returncode == 1
    assert "see no cluster" in gone.stderr
    assert "`pulumi up` creates it" in gone.stderr
    assert "Kueue has no task nothing" in ask("job", "why", "nothing").stderr
    several = hpkit("cluster", "status", cwd=copy_project(tmp_path))
    assert several.returncode == 2
    assert "name the stack with --stack or HPKIT_STACK; the project has" in several.stderr
