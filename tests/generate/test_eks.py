"""The catalog of EKS, read from the local endpoint: responses are written to the catalog's file and shown."""

import datetime
import json
import shutil

import pytest
from botocore.config import Config
from click.testing import CliRunner

from generate.eks import FILE, command
from hpkit.errors import ToolError
from tests.cli.test_validate import ROOT
from tests.endpoint import ManualClock

GOVERNANCE = "amazon-sagemaker-hyperpod-taskgovernance"


@pytest.fixture(autouse=True)
def _day_of_the_catalog(account):
    day = datetime.datetime(2026, 11, 22, tzinfo=datetime.UTC)
    account.reset(clock=ManualClock(day.timestamp()))


@pytest.fixture
def file(tmp_path, monkeypatch):
    """Return a copy of the catalog's file."""
    (tmp_path / "Pulumi.yaml").write_text("name: hpkit\n")
    path = tmp_path / FILE
    path.parent.mkdir(parents=True)
    shutil.copy(ROOT / FILE, path)
    monkeypatch.chdir(tmp_path)
    return path


def run(*arguments):
    result = CliRunner().invoke(command, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def changed(file, change):
    data = json.loads(file.read_text())
    change(data)
    file.write_text(json.dumps(data))


def test_what_eks_lists_is_shown_and_written_once(account, file):
    changed(file, lambda data: data.update(addonVersions={}))
    first = run()
    assert first.exit_code == 0
    assert f"+ {GOVERNANCE} on 1.35: 9 versions, default v1.6.0-eksbuild.1" in first.stdout.splitlines()
    data = json.loads(file.read_text())
    row = data["addonVersions"][GOVERNANCE]["1.35"]
    assert (row["default"], row["versions"][0]) == ("v1.6.0-eksbuild.1", "v1.6.0-eksbuild.1")
    assert "us-west-2" in data["sources"]["account"]["title"]
    written = file.read_text()
    again = run()
    assert (again.exit_code, again.stdout) == (0, f"{FILE} matches EKS in us-west-2\n")
    assert file.read_text() == written, "the same answer gives the same text, its date too"


def test_check_writes_nothing_and_fails_when_something_changed(account, file):
    run()

    def other(data):
        data["kubernetesVersions"]["1.35"]["endOfStandardSupport"] = "2027-03-01"
        del data["kubernetesVersions"]["1.36"]
        data["addonVersions"]["vpc-cni"]["1.35"]["versions"] = ["v1.20.4-eksbuild.1", "v1.0.0-eksbuild.1"]

    changed(file, other)
    before = file.read_text()
    result = run("--check")
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "~ Kubernetes 1.35: end of standard support 2027-03-01 → 2027-03-27",
        (
            "+ Kubernetes 1.36: released 2026-06-02, end of standard support 2027-08-02, "
            "end of extended support 2028-08-02"
        ),
        "~ vpc-cni on 1.35: +v1.19.2-eksbuild.1, +v1.18.3-eksbuild.1, -v1.0.0-eksbuild.1",
    ]
    assert "run `python -m generate.eks`" in result.stderr
    assert file.read_text() == before
    assert run().exit_code == 0
    assert run("--check").exit_code == 0
    row = json.loads(file.read_text())["kubernetesVersions"]
    assert (row["1.35"]["source"], row["1.34"]["source"]) == ("account", "calendar"), "what was right keeps its source"


def test_a_call_that_fails_is_said_with_its_action_and_nothing_is_written(account, file, monkeypatch):
    monkeypatch.setattr("hpkit.clients.aws._CONFIG", Config(retries={"total_max_attempts": 1}))
    account.set_faults(internal="1@*DescribeAddonVersions")
    before = file.read_text()
    result = CliRunner().invoke(command, [])
    account.set_faults(internal=None)
    assert isinstance(result.exception, ToolError)
    assert str(result.exception).startswith("eks:DescribeAddonVersions: InternalFailure")
    assert file.read_text() == before
