"""A trial without an engine: its organization, its report, its budget, and what ends it."""

import json
import os
import signal
import sys
import threading
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import boto3
import pytest
from click.testing import CliRunner
from kubernetes.client import ApiException
from urllib3.exceptions import MaxRetryError

from hpkit.cli import trial
from hpkit.clients.processes import Interrupts
from hpkit.errors import ToolError
from hpkit.project import load
from hpkit.trial import run as runs
from hpkit.trial import steps
from hpkit.trial.account import _principal, admit, place_of
from hpkit.trial.events import changes_in
from hpkit.trial.organization import NAME, Place, organization_text
from hpkit.trial.report import differences, flat, markdown
from hpkit.trial.site import Site, StepError, region_left
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
        event(30, "resourcePreEvent", name="nat"),
        event(630, "resOpFailedEvent", name="nat"),
        json.dumps({"diagnosticEvent": {"severity": "error", "message": "<{%fg 1%}>no quota<{%reset%}>\n"}}),
        '{"timestamp": 27, "resOut',
    ]
    log.write_text("\n".join(lines))
    changes = changes_in(log)
    assert changes.counts == {"create aws:ec2/vpc:Vpc": 1}
    assert changes.longest == (("aws:ec2/vpc:Vpc nat", 600.0), ("aws:ec2/vpc:Vpc vpc", 15.0))
    assert changes.errors == ("no quota",)
    assert changes_in(tmp_path / "none").counts == {}


def test_an_import_of_what_aws_created_first_counts_as_the_predicted_creation(tmp_path):
    log = tmp_path / "log.json"
    log.write_text("\n".join(event(10, "resOutputsEvent", operation) for operation in ("import", "create")))
    assert changes_in(log).counts == {"create aws:ec2/vpc:Vpc": 2}


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
        "ended": "the deletion's time limit is over",
        "commands": ["hpkit aws trial"],
    }
    text = markdown(report)
    assert "| Quota moves | ok | 1 min 1 s | a \\| b<br>c |" in text
    assert "- Quota moves: cpu of beta: 4; on the local cloud: 8" in text
    assert "- 10 min 12 s: aws:eks/cluster:Cluster eks (step quota)" in text
    assert "- iam:CreateRole" in text
    assert "- aws:ec2/vpc:Vpc vpc-1\n\nThe deletion ended because the deletion's time limit is over.\n" in text
    assert "$ hpkit aws trial" in text


@pytest.fixture
def site(tmp_path, monkeypatch):
    """Return a site whose folder is locked, with a state of one resource that each deletion removes."""
    folder = tmp_path / "trial"
    interrupts = Interrupts(lambda _: None)
    site = Site(folder, session=None, environment=dict(os.environ), interrupts=interrupts, version="0.1.0")
    with site.locked():
        (folder / "logs").mkdir()
        monkeypatch.setattr(runs, "admit", lambda _: None)
        monkeypatch.setattr(runs, "sweep", lambda _: None)
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


@pytest.mark.parametrize(
    "message",
    [
        "The SSO session associated with this profile has expired or is otherwise invalid. To refresh this SSO session",
        "refresh cached SSO token failed, unable to refresh SSO token",
        "Error loading SSO Token: Token for me does not exist",
        "failed to refresh cached credentials, the SSO session has expired or is invalid",
        "ExpiredToken: The security token included in the request is expired",
    ],
)
def test_an_ended_login_is_one_that_can_be_renewed(site, message):
    site.note(message)
    assert site.causes == {"expired"}


def test_variables_that_move_the_state_do_not_reach_pulumi(tmp_path):
    others = {"PULUMI_DIY_BACKEND_GZIP": "1", "PULUMI_SELF_MANAGED_STATE_LEGACY_LAYOUT": "1", "PULUMI_HOME": "/p"}
    site = Site(tmp_path, session=None, environment=others, interrupts=Interrupts(print), version="0.1.0")
    assert {name for name in site.environment if name in others} == {"PULUMI_HOME"}


def test_an_api_that_does_not_answer_for_a_while_is_asked_again_and_its_refusal_is_not(site, monkeypatch):
    monkeypatch.setattr("hpkit.trial.site._POLL_SECONDS", 0)
    answers = iter([MaxRetryError(None, "/"), ApiException(status=503), False, True])

    def asked():
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return answer

    site.wait(asked, "an answer")
    answers = iter([ApiException(status=403)])
    with pytest.raises(ApiException):
        site.wait(asked, "an answer")


def test_a_step_that_fails_in_an_unexpected_way_has_a_reason(site, monkeypatch):
    monkeypatch.setattr(runs, "STEPS", (Step("a", "First", 60, lambda *_: next(iter(()))),))
    (report,) = runs.run_steps(site, PLACE, keep=False, say=lambda _: None)
    assert (report["status"], report["reason"]) == ("failed", "StopIteration: ")


def test_a_closed_terminal_ends_nothing(monkeypatch):
    def closed(*_, **__):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("click.echo", closed)
    trial._say("deleting")


def test_a_report_has_no_account_and_no_names_of_users():
    text = "User: arn:aws:sts::123456789012:assumed-role/admin/ada@example.com can't call iam:CreateRole"
    assert trial._anonymous(text) == "User: arn:aws:sts::111122223333:assumed-role/admin/name can't call iam:CreateRole"


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
    ("pending", "locked", "commands"),
    [
        ((), False, ["destroy"]),
        (("creating",), False, ["hpkit aws recover", "destroy"]),
        ((), True, ["hpkit aws recover", "destroy"]),
    ],
)
def test_a_teardown_recovers_what_was_killed_and_deletes_the_rest(site, monkeypatch, pending, locked, commands):
    ran = []
    state_of(site, VPC, pending=pending)
    if locked:
        lock = site.folder / "state" / ".pulumi" / "locks" / "organization" / NAME / f"{NAME}-run" / "1.json"
        lock.parent.mkdir(parents=True)
        lock.touch()
    monkeypatch.setattr(site, "command", lambda *words, **_: ran.append(" ".join(words[:3])))

    def destroy(verb):
        ran.append(verb)
        state_of(site)

    monkeypatch.setattr(site, "pulumi", destroy)
    assert runs.tear_down(site, say=lambda _: None) == []
    assert ran == commands


@pytest.mark.parametrize(("cause", "attempts"), [(None, 5), ("expired", 7)])
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


def test_a_teardown_ends_at_its_time_limit_although_credentials_are_renewed(site, monkeypatch):
    state_of(site, VPC)
    tried = []

    def destroy(_verb):
        tried.append(1)
        assert len(tried) < 1000, "the teardown has no end"
        site.causes.add("expired")
        site.wait(lambda: len(tried) % 3, "a deletion")
        raise StepError("expired")

    monkeypatch.setattr(site, "pulumi", destroy)
    monkeypatch.setattr(site, "command", lambda *_: None)
    monkeypatch.setattr("hpkit.trial.site._POLL_SECONDS", 0.001)
    monkeypatch.setattr(runs, "_PAUSE_SECONDS", 0.001)
    monkeypatch.setattr(runs, "TEARDOWN_SECONDS", 0.1)
    assert runs.tear_down(site, say=lambda _: None) == ["aws:ec2/vpc:Vpc vpc-1"]
    assert site.stop_reason() == "the deletion's time limit is over"


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
    assert json.loads(file.read_text())


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
    ("arn", "message"),
    [
        ("arn:aws:sts::123456789012:federated-user/ada", "federated-user/ada, which can't create or assume roles"),
        ("arn:aws:iam::123456789012:root", "of the account's root user"),
    ],
)
def test_callers_that_can_not_assume_roles_are_refused_before_anything_is_created(arn, message):
    with pytest.raises(ToolError, match=message):
        _principal(boto3.Session(region_name="us-west-2"), arn)


def test_a_run_that_only_deletes_names_the_region_of_the_earlier_trial_and_what_is_left(account, tmp_path, monkeypatch):
    aws = {"type": "pulumi:providers:aws", "custom": True, "inputs": {"region": "us-west-2"}}
    folder = tmp_path / "t"
    state_of(SimpleNamespace(folder=folder), aws, VPC)
    regions = []

    def tear_down(site, say):
        regions.append(site.session.region_name)
        return site.resources()

    monkeypatch.setattr(runs, "tear_down", tear_down)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(trial.command, ["--yes", "--region", "eu-west-1", "--directory", str(folder)])
    report = json.loads((folder / "report.json").read_text())
    assert (done.exit_code, regions, report["region"]) == (1, ["us-west-2"], "us-west-2")
    assert (report["left"], report["ended"]) == (
        ["aws:ec2/vpc:Vpc vpc-1"],
        "it failed; logs/teardown.log has the errors",
    )
    state_of(SimpleNamespace(folder=folder), aws)
    assert region_left(folder) is None, "a trial that left nothing doesn't choose the next one's region"


def test_log_groups_that_services_made_are_deleted_and_others_are_kept(account):
    logs = account.client("logs")
    kept = "/aws/sagemaker/Clusters/other/x"
    for name in (f"/aws/sagemaker/Clusters/{NAME}/abc", f"/aws/eks/{NAME}-run/cluster", kept):
        logs.create_log_group(logGroupName=name)
    steps._delete_logs(SimpleNamespace(session=boto3.Session(region_name="us-west-2")))
    assert [each["logGroupName"] for each in logs.describe_log_groups()["logGroups"]] == [kept]


def test_a_command_without_a_document_failed_for_the_reason_that_it_shows():
    assert steps._document('warning: slow\n{\n  "checks": []\n}\nwarning: late\n') == {"checks": []}
    with pytest.raises(StepError, match="no AWS credentials"):
        steps._document("error: no AWS credentials\n")


def test_what_a_killed_step_left_in_the_cluster_is_deleted(site, monkeypatch):
    there, deleted = {"/api/v1/namespaces/hpkit-trial"}, []
    there |= {f"/apis/batch/v1/namespaces/hyperpod-ns-alpha/jobs/{name}" for name in ("hpkit-trial", "check")}
    api = SimpleNamespace(
        pages=lambda folder: [{"metadata": {"name": path.rpartition("/")[2]}} for path in there if folder in path],
        find=lambda path: path if path in there else None,
        delete=lambda path, _: deleted.append(path),
    )
    monkeypatch.setattr(site, "kubernetes", lambda: nullcontext(api))
    monkeypatch.setattr(site, "plan", lambda: SimpleNamespace(teams=[SimpleNamespace(namespace="hyperpod-ns-alpha")]))
    steps.sweep(site)
    assert set(deleted) == there


def test_an_address_that_has_changed_is_admitted(account, monkeypatch):
    calls = []
    answers = {
        "describe_cluster": {"cluster": {"resourcesVpcConfig": {"publicAccessCidrs": ["203.0.113.7/32"]}}},
        "update_cluster_config": {"update": {"id": "u"}},
        "describe_update": {"update": {"status": "Successful"}},
    }
    eks = SimpleNamespace()
    for name, answer in answers.items():
        setattr(eks, name, lambda call=name, answer=answer, **words: calls.append((call, words)) or answer)
    site = SimpleNamespace(session=SimpleNamespace(client=lambda _: eks), wait=lambda holds, _: holds())
    for address in ("203.0.113.7", "198.51.100.1"):
        monkeypatch.setattr("hpkit.trial.account.find_address", lambda _, address=address: address)
        admit(site)
    (words,) = [words for name, words in calls if name == "update_cluster_config"]
    assert words["resourcesVpcConfig"] == {"publicAccessCidrs": ["203.0.113.7/32", "198.51.100.1/32"]}


def test_the_zone_is_the_first_that_offers_each_instance_type(account, monkeypatch):
    types = {"us-west-2a": ["m5.xlarge"], "us-west-2c": ["m5.xlarge", "m5.2xlarge", "c5.xlarge"]}
    monkeypatch.setattr(
        "hpkit.trial.account._offered", lambda _: defaultdict(set, {k: set(v) for k, v in types.items()})
    )
    monkeypatch.setattr("hpkit.trial.account._principal", lambda *_: "")
    assert place_of(boto3.Session(region_name="us-west-2")).zone == "us-west-2c"


@pytest.mark.parametrize(
    ("options", "denied", "message"),
    [
        (["--budget", "1"], "Nothing", "Use at least --budget 6"),
        ([], "GetProducts", "have no known price in us-west-2: 1 × NAT gateway. Allow pricing:GetProducts"),
    ],
)
def test_nothing_is_created_without_a_sufficient_budget_and_known_prices(account, tmp_path, options, denied, message):
    account.set_faults({"denied": f"1@{denied}"})
    done = hpkit("aws", "trial", "--yes", "--directory", tmp_path / "t", *options, cwd=tmp_path)
    assert done.returncode == 1
    assert message in " ".join(done.stderr.split())
    assert account.client("ec2").describe_vpcs(Filters=[{"Name": "is-default", "Values": ["false"]}])["Vpcs"] == []


def test_a_session_that_can_not_be_renewed_is_named_before_the_question(account, tmp_path, monkeypatch):
    monkeypatch.setenv("AWS_SESSION_TOKEN", "session")
    done = hpkit("aws", "trial", "--directory", tmp_path / "t", cwd=tmp_path)
    assert "warning: AWS_SESSION_TOKEN can't be renewed, so it must last three hours" in " ".join(done.stderr.split())


def test_another_trial_in_the_region_is_never_touched(account, tmp_path):
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    ec2.create_tags(Resources=[vpc], Tags=[{"Key": "hpkit:organization", "Value": NAME}])
    done = hpkit("aws", "trial", "--yes", "--directory", tmp_path / "t", cwd=tmp_path)
    assert done.returncode == 1
    assert f"another trial is running in us-west-2, or left resources: {vpc}" in " ".join(done.stderr.split())
    assert vpc in {each["VpcId"] for each in ec2.describe_vpcs()["Vpcs"]}


def test_the_report_in_the_documentation_has_every_step():
    report = document((ROOT / "docs" / "examples" / "trial.json").read_text())
    assert [step["title"] for step in report["steps"]] == [step.title for step in STEPS]
    page = (ROOT / "docs" / "guides" / "trial.md").read_text()
    shown = page.partition("```text\n")[2].partition("```")[0]
    assert markdown(report).startswith(shown)
