"""What agents and scripts read: each command's JSON, its schema, and its errors."""

import json
from contextlib import contextmanager
from types import SimpleNamespace

import click
import jsonschema
import pytest

from hpkit.adopt import HandoverPlan, as_data, handover
from hpkit.cli import access, jobs, nodes, status, status_all, topology, why
from hpkit.cli.documents import API_VERSION, KINDS, json_document, schema_of
from hpkit.cluster.access.check import Answer, Resource
from hpkit.cluster.access.model import Access, Entry
from hpkit.cluster.live.model import ClusterNode
from tests.adopt.test_handover import CLUSTER, TF_CLUSTER, imported, terraform
from tests.cli.invoke import hpkit
from tests.cli.test_commands import all_commands
from tests.cli.test_validate import ROOT
from tests.cluster.live.builders import KIND, node, observed, pod, queue, task
from tests.cluster.live.test_status import platform
from tests.documents import document

SCENARIO = "stacks/scenarios/handson.yaml"
STREAMS = "runs Pulumi and streams what it does"
ACTS = "acts, and reports progress"
WITHOUT = {
    "init": "writes files, and lists them",
    "catalog schema": "prints a JSON Schema",
    "catalog fetch-chart": "writes a file",
    "catalog refresh": "writes a JSON file",
    "catalog hash-chart": "prints lines to paste into the organization file",
    "aws deployer-policy": "prints IAM policies in JSON",
    "aws team-policy": "prints an IAM policy in JSON",
    "aws adopt": "writes files, and prints a YAML file",
    "aws adopt run": STREAMS,
    "aws adopt undo": STREAMS,
    "aws recover": STREAMS,
    "aws destroy": "asks, then streams",
    "mcp": "speaks a protocol",
    "cluster grafana apply": ACTS,
    "cluster grafana export": "writes JSON files",
    **{f"node {verb}": "asks, then reports progress" for verb in ("replace", "reboot", "delete", "update")},
    "job new": "prints a manifest in YAML",
    "whatif record": "writes a scenario in YAML",
    "local logs": "streams",
    **{f"local {verb}": STREAMS for verb in ("up", "down", "preview", "refresh", "destroy")},
    **{f"local {verb}": ACTS for verb in ("start", "stop", "reset")},
}
# Commands whose output is validated where their tests have what they need: an AWS endpoint, a Kueue.
ELSEWHERE = ("aws preflight", "whatif rehearse")
ONE_STACK = ("--stack", "handson-dev")
CASES = {
    "validate": ["validate"],
    "plan": ["plan", *ONE_STACK],
    "quota": ["quota"],
    "describe team": ["describe", "team", "john", *ONE_STACK],
    "describe group": ["describe", "group", "gpu", *ONE_STACK],
    "describe stack": ["describe", "stack", "handson-dev"],
    "review": ["review", "--quick", *ONE_STACK, "--base", "HEAD"],
    "catalog rules": ["catalog", "rules"],
    "catalog rules CAP001": ["catalog", "rules", "CAP001"],
    "catalog instances": ["catalog", "instances", "p5", "--sources"],
    "aws images": ["aws", "images", "--stack", "enterprise-prod"],
    "cluster status": ["cluster", "status", *ONE_STACK],
    "cluster status --all": ["cluster", "status", "--all"],
    "cluster topology": ["cluster", "topology", *ONE_STACK],
    "cluster access": ["cluster", "access", *ONE_STACK],
    "cluster access check": ["cluster", "access", "check", "ada", "get", "pods", *ONE_STACK],
    "cluster upgrade": ["cluster", "upgrade", "--offline", "--quick", *ONE_STACK],
    "node list": ["node", "list", *ONE_STACK],
    "job list": ["job", "list", *ONE_STACK],
    "job why": ["job", "why", "late", *ONE_STACK],
    "job lint": ["job", "lint", "docs/examples/job.yaml", *ONE_STACK],
    "whatif simulate": ["whatif", "simulate", SCENARIO, *ONE_STACK],
    "whatif simulate --vary": [
        "whatif",
        "simulate",
        SCENARIO,
        *ONE_STACK,
        "--vary",
        "teams[smith].fairShareWeight=0,999",
    ],
    "whatif simulate --compare": ["whatif", "simulate", SCENARIO, "--compare", "handson-dev", "handson-dev"],
    "whatif recommend": [
        *("whatif", "recommend", SCENARIO, *ONE_STACK, "--goal", "utilization > 1%", "--trials", "1"),
        *("--workers", "1", "--capacity"),
    ],
    "local status": ["local", "status", "--name", "none"],
    "local list": ["local", "list"],
    "local env": ["local", "env", "--unset"],
    "local doctor": ["local", "doctor"],
}


@pytest.fixture
def running(monkeypatch):
    """Put a running platform in the place of AWS and Kubernetes."""
    instance = ClusterNode("i-1", "gpu", KIND, "Running")
    seen = observed(
        nodes=[node("hyperpod-i-1", "a", "b", "c")],
        pods=[pod("john", "train", "hyperpod-i-1")],
        queues=[queue("john", 4, used=4), queue("smith", 4)],
        tasks=[task("john", "train", 4, runs=True), task("smith", "late", 8)],
        platform=platform(nodes=(instance,)),
    )
    for module in (jobs, nodes, status, topology, why):
        monkeypatch.setattr(module, "observe", lambda *_, **__: seen)
    monkeypatch.setattr(status_all, "aws_session", lambda *_: None)
    monkeypatch.setattr("hpkit.cluster.live.read.read", lambda *_, **__: seen)
    entry = Entry("arn:aws:iam::123456789012:role/ada", "ada", ("team",))
    monkeypatch.setattr(access, "aws_session", lambda *_: None)
    monkeypatch.setattr("hpkit.cluster.access.read.read_access", lambda *_, **__: Access((entry,), ()))
    monkeypatch.setattr("hpkit.cluster.access.read.read_entries", lambda *_: (entry,))
    monkeypatch.setattr("hpkit.cluster.live.read.find", lambda *_: SimpleNamespace(eks={"name": "eks"}))

    @contextmanager
    def api(*_, **__):
        yield None

    monkeypatch.setattr(access, "kubernetes_api", api)
    monkeypatch.setattr("hpkit.cluster.access.check.resources_of", lambda _: ())
    pods = Resource("", "pods", "", namespaced=True, verbs=("get",))
    monkeypatch.setattr("hpkit.cluster.access.check.find_resource", lambda *_: pods)
    monkeypatch.setattr("hpkit.cluster.access.check.check", lambda *_: Answer(True, ("a binding",), ("Custom",)))


def test_every_command_prints_json_or_has_a_reason_not_to():
    with_json, without = set(), set()
    for typed, command in all_commands():
        name = typed.removeprefix("hpkit ")
        if isinstance(command, click.Group) and not command.invoke_without_command:
            continue
        forms = [option.type.choices for option in command.params if option.name == "form"]
        (with_json if forms and "json" in forms[0] else without).add(name)
    assert without == set(WITHOUT)
    assert with_json == {name for kind in KINDS.values() for name in kind.commands if name}
    assert with_json - {"aws adopt handover"} == {
        name.partition(" --")[0].removesuffix(" CAP001") for name in CASES
    } | {*ELSEWHERE}


@pytest.mark.parametrize("name", CASES)
def test_the_json_of_a_command_is_as_its_schema_says(name, running):
    answer = hpkit(*CASES[name], "--format", "json", cwd=ROOT)
    assert answer.returncode in (0, 1), answer.stderr
    said = document(answer.stdout)
    assert said["apiVersion"] == API_VERSION
    assert name.partition(" --")[0].removesuffix(" CAP001") in KINDS[said["kind"]].commands


def test_the_json_of_a_handover_is_as_its_schema_says():
    other = terraform("aws_budgets_budget.b", "aws_budgets_budget", "b")
    found = handover([TF_CLUSTER, other], [CLUSTER, imported("aws:eks/addon:Addon", "eks:coredns")])
    said = document(json_document(HandoverPlan, **as_data(found)))
    assert [each["address"] for each in said["letGo"]] == [TF_CLUSTER.address]


@pytest.mark.parametrize("kind", KINDS)
def test_schemas_are_valid_and_are_printed(kind):
    schema = schema_of(kind)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert json.loads(hpkit("catalog", "schema", "--kind", kind, cwd=ROOT).stdout) == schema


@pytest.mark.parametrize(
    ("words", "reason", "code"),
    [
        (["quota", "--stack", "none-dev"], "Usage", 2),
        (["quota", "--bogus"], "Usage", 2),
        (["quota", "bad.yaml"], "Input", 1),
        (["catalog", "rules", "CAP999"], "Input", 1),
    ],
)
def test_an_error_is_json_too_in_the_last_line_of_standard_error(words, reason, code, tmp_path):
    (tmp_path / "stacks").mkdir()
    (tmp_path / "Pulumi.yaml").write_text("name: hpkit\n")
    (tmp_path / "bad.yaml").write_text("organization: 1\n")
    for option in (["--format", "json"], ["--format=json"]):
        answer = hpkit(*words, *option, cwd=tmp_path)
        error = document(answer.stderr.splitlines()[-1])
        assert (answer.stdout, answer.returncode) == ("", code)
        assert (error["kind"], error["reason"], error["exitCode"]) == ("Error", reason, code)
        assert bool(error["findings"]) is ("bad.yaml" in words)
