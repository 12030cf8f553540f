"""A trial without an engine: its organization, its report, its budget, and what ends it."""

import json
import os
import signal
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import boto3
import pytest

from hpkit.cli import trial
from hpkit.clients.processes import Interrupts
from hpkit.errors import ToolError
from hpkit.project import load
from hpkit.trial import run as runs
from hpkit.trial.account import place_of
from hpkit.trial.events import changes_in
from hpkit.trial.organization import NAME, Place, organization_text
from hpkit.trial.report import differences, flat, markdown
from hpkit.trial.site import Site, StepError
from hpkit.trial.steps import STEPS, Step
from hpkit_local.aws.testing import running_endpoint
from tests.cli.invoke import hpkit
from tests.documents import document
from tests.program.cloud import ROOT

PLACE = Place("us-west-2", "us-west-2a", "123456789012", "arn:aws:iam::123456789012:role/admin", "203.0.113.7")


@pytest.mark.parametrize("options", [{}, {"third_team": True}, {"third_team": True, "shifted": True}])
def test_each_version_of_the_organization_has_no_errors(tmp_path, options):
    file = tmp_path / f"{NAME}.yaml"
    file.write_text(organization_text(PLACE, **options))
    loaded = load(file)
    assert [finding for finding in loaded.findings if finding.severity == "error"] == []
    (plan,) = loaded.plans.values()
    assert [team.name for team in plan.teams] == ["alpha", "beta", "gamma"][: 2 + bool(options)]
    assert not plan.spec.protect


def event(second, kind, operation="create", name="vpc", resource_type="aws:ec2/vpc:Vpc"):
    urn = f"urn:pulumi:s::p::{resource_type}::{name}"
    return json.dumps({"timestamp": second, kind: {"metadata": {"op": operation, "urn": urn, "type": resource_type}}})


def test_an_event_log_that_was_cut_off_has_the_changes_so_far(tmp_path):
    log = tmp_path / "log.json"
    lines = [
        event(10, "resourcePreEvent"),
        event(10, "resourcePreEvent", name="guard", resource_type="hyperpod:index:ChangeGuard"),
        event(25, "resOutputsEvent"),
        event(25, "resOutputsEvent", name="guard", resource_type="hyperpod:index:ChangeGuard"),
        event(26, "resOutputsEvent", "same", name="eip"),
        json.dumps({"diagnosticEvent": {"severity": "error", "message": "<{%fg 1%}>no quota<{%reset%}>\n"}}),
        '{"timestamp": 27, "resOut',
    ]
    log.write_text("\n".join(lines))
    changes = changes_in(log)
    assert changes.counts == {"create aws:ec2/vpc:Vpc": 1}
    assert changes.longest == (("aws:ec2/vpc:Vpc vpc", 15.0),)
    assert changes.errors == ("no quota",)
    assert changes_in(tmp_path / "none").counts == {}


def test_facts_differ_exactly_if_they_are_not_equal():
    found = flat({"changes": {"create a": 1, "create b": 2}, "nodes": [0, 1], "left": 0, "word": "x"})
    assert found == {"changes, create a": "1", "changes, create b": "2", "nodes": "[0, 1]", "left": "0", "word": "x"}
    assert differences(found, found) == []
    assert differences(found, {**found, "left": "1"}) == ["left: 0; on the local cloud: 1"]
    assert differences({}, {"word": "x"}) == ["word: none; on the local cloud: x"]


def test_a_difference_names_its_step_what_was_found_and_what_was_expected():
    step = {
        "name": "quota",
        "title": "Quota moves",
        "status": "ok",
        "seconds": 61.0,
        "reason": "a | b\nc",
        "facts": {},
        "differences": ["cpu of beta: 4; on the local cloud: 8"],
        "longest": [{"resource": "aws:eks/cluster:Cluster eks", "seconds": 612.0}],
        "commands": [],
    }
    report = {
        "hpkit": "0.1.0",
        "region": "us-west-2",
        "onLocalCloud": False,
        "hourly": "1.70",
        "seconds": 61.0,
        "outcome": "failed",
        "steps": [step],
        "denied": ["iam:CreateRole"],
        "left": ["aws:ec2/vpc:Vpc vpc-1"],
        "commands": ["hpkit aws trial"],
    }
    text = markdown(report)
    assert "| Quota moves | ok | 1 min 1 s | a \\| b<br>c |" in text
    assert "- Quota moves: cpu of beta: 4; on the local cloud: 8" in text
    assert "- 10 min 12 s: aws:eks/cluster:Cluster eks (step quota)" in text
    assert "- iam:CreateRole" in text
    assert "- aws:ec2/vpc:Vpc vpc-1" in text
    assert "$ hpkit aws trial" in text


@pytest.fixture
def site(tmp_path):
    """Return a site whose folder is locked, with a state of one resource that each deletion removes."""
    folder = tmp_path / "trial"
    interrupts = Interrupts(lambda _: None)
    site = Site(folder, session=None, environment=dict(os.environ), interrupts=interrupts, version="0.1.0")
    with site.locked():
        (folder / "logs").mkdir()
        yield site


def state_of(site, *resources, pending=()):
    file = site.folder / "state" / ".pulumi" / "stacks" / NAME / f"{NAME}-run.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    latest = {"resources": list(resources), "pending_operations": list(pending)}
    file.write_text(json.dumps({"checkpoint": {"latest": latest}}))


VPC = {"urn": "urn:pulumi:s::p::aws:ec2/vpc:Vpc::vpc", "type": "aws:ec2/vpc:Vpc", "custom": True, "id": "vpc-1"}


def test_one_folder_has_one_trial_at_a_time(site):
    other = Site(site.folder, session=None, environment={}, interrupts=site.interrupts, version="0.1.0")
    with pytest.raises(ToolError, match="a trial is running in"), other.locked():
        pass


def test_a_command_is_logged_and_its_missing_permissions_are_kept(site):
    text = "User: arn:aws:sts::1:assumed-role/a/b is not authorized to perform: iam:CreateRole on resource: x"
    with pytest.raises(StepError, match="failed with exit code 3"):
        site.command("bash", "-c", f"echo '{text}'; echo 'ExpiredTokenException: no'; exit 3")
    assert list(site.denied) == ["iam:CreateRole"]
    assert site.causes == {"expired"}
    assert text in site.log.read_text()


def test_a_command_beyond_its_time_is_interrupted_and_ends_in_its_own_way(site):
    site.step_until = 0
    script = "trap 'echo written; exit 0' INT; for _ in $(seq 100); do sleep 0.1; done"
    with pytest.raises(StepError, match="the step's time limit is over"):
        site.command("bash", "-c", script)
    assert "written" in site.log.read_text()


def test_an_interruption_ends_the_step_and_the_rest_is_skipped(site, monkeypatch):
    def interrupted(site, _place):
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        site.wait(lambda: False, "nothing")

    steps = (Step("a", "First", 60, interrupted), Step("b", "Second", 60, interrupted))
    monkeypatch.setattr(runs, "STEPS", steps)
    with site.interrupts.counted():
        first, second = runs.run_steps(site, PLACE, keep=False, say=lambda _: None)
    assert (first["status"], first["reason"]) == ("failed", "the trial was interrupted while waiting for nothing")
    assert (second["status"], second["reason"]) == ("skipped", "after a failed")


@pytest.mark.parametrize(
    ("pending", "commands"), [((), ["destroy"]), (("creating",), ["hpkit aws recover", "destroy"])]
)
def test_a_teardown_recovers_what_was_killed_and_deletes_the_rest(site, monkeypatch, pending, commands):
    ran = []
    state_of(site, VPC, pending=pending)
    monkeypatch.setattr(site, "command", lambda *words, **_: ran.append(" ".join(words[:3])))

    def destroy(verb):
        ran.append(verb)
        state_of(site)

    monkeypatch.setattr(site, "pulumi", destroy)
    assert runs.tear_down(site, say=lambda _: None) == []
    assert ran == commands


@pytest.mark.parametrize(("cause", "attempts"), [(None, 3), ("expired", 5)])
def test_a_teardown_that_fails_is_tried_again_and_longer_while_credentials_can_be_renewed(
    site, monkeypatch, cause, attempts
):
    state_of(site, VPC)
    tried = []

    def destroy(_verb):
        tried.append(1)
        if cause and len(tried) < 3:
            site.causes.add(cause)
        raise StepError("no")

    def recover(*_):
        raise StepError("not recovered")

    monkeypatch.setattr(site, "command", recover)
    monkeypatch.setattr(site, "pulumi", destroy)
    monkeypatch.setattr(runs, "_PAUSE_SECONDS", 0)
    assert runs.tear_down(site, say=lambda _: None) == ["aws:ec2/vpc:Vpc vpc-1"]
    assert len(tried) == attempts


def test_a_second_interruption_ends_the_teardown_and_lists_what_is_left(site, monkeypatch):
    state_of(site, VPC)

    def destroy(_verb):
        site.interrupts.count += 1
        raise StepError("interrupted")

    monkeypatch.setattr(site, "pulumi", destroy)
    assert runs.tear_down(site, say=lambda _: None) == ["aws:ec2/vpc:Vpc vpc-1"]


def test_the_state_before_a_write_that_was_cut_off_is_read(site):
    state_of(site, VPC)
    file = next((site.folder / "state").rglob("*-run.json"))
    file.rename(file.with_suffix(".json.bak"))
    file.write_text('{"checkpoint": {"lat')
    assert site.resources() == ["aws:ec2/vpc:Vpc vpc-1"]


def test_each_step_has_its_own_name_and_a_limit():
    assert len({step.name for step in STEPS}) == len({step.title for step in STEPS}) == len(STEPS)
    assert all(60 <= step.seconds <= 2 * 3600 for step in STEPS)


@pytest.fixture
def account(monkeypatch):
    """Return an endpoint that the environment leads to."""
    with running_endpoint() as endpoint:
        for name, value in {
            "AWS_ENDPOINT_URL": endpoint.url,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_REGION": "us-west-2",
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }.items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(trial, "pulumi_environment", lambda: dict(os.environ))
        yield endpoint


@pytest.mark.parametrize(
    ("arn", "principal"),
    [
        ("arn:aws:sts::123456789012:assumed-role/admin/me", "arn:aws:iam::123456789012:role/path/admin"),
        ("arn:aws:iam::123456789012:user/ada", "arn:aws:iam::123456789012:user/ada"),
    ],
)
def test_the_caller_is_a_role_with_its_path_or_a_user(account, arn, principal):
    trust = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": "*"}]}
    account.client("iam").create_role(RoleName="admin", Path="/path/", AssumeRolePolicyDocument=json.dumps(trust))
    session = boto3.Session(region_name="us-west-2")
    client = session.client
    caller = SimpleNamespace(get_caller_identity=lambda: {"Arn": arn, "Account": "123456789012"})
    session.client = lambda service: caller if service == "sts" else client(service)
    place = place_of(session)
    assert (place.principal, place.zone, place.account) == (principal, "us-west-2a", "123456789012")


@pytest.mark.parametrize(
    ("options", "denied", "message"),
    [
        (["--budget", "1"], "Nothing", "Use at least --budget 4"),
        ([], "GetProducts", "have no known price in us-west-2: 1 × NAT gateway. Allow pricing:GetProducts"),
    ],
)
def test_nothing_is_created_without_a_sufficient_budget_and_known_prices(account, tmp_path, options, denied, message):
    account.set_faults({"denied": f"1@{denied}"})
    done = hpkit("aws", "trial", "--yes", "--directory", tmp_path / "t", *options, cwd=tmp_path)
    assert done.returncode == 1
    assert message in " ".join(done.stderr.split())
    assert account.client("ec2").describe_vpcs(Filters=[{"Name": "is-default", "Values": ["false"]}])["Vpcs"] == []


def test_the_report_in_the_documentation_has_every_step():
    report = document((ROOT / "docs" / "examples" / "trial.json").read_text())
    assert [step["title"] for step in report["steps"]] == [step.title for step in STEPS]
    page = (ROOT / "docs" / "guides" / "trial.md").read_text()
    shown = page.partition("```text\n")[2].partition("```")[0]
    assert markdown(report).startswith(shown)
