"""What the program rejects before it registers anything, without an engine."""

import os
from pathlib import Path

import pulumi
import pytest

import hpkit.program.run
from hpkit.errors import ToolError
from hpkit.program.charts.package import Package
from tests.builders import split
from tests.program.cloud import Repository

AWS = "https://eks.us-west-2.amazonaws.com"
LOCAL = "http://127.0.0.1:4566"


class Built(Exception):  # noqa: N818 - what ends a run where it would register resources
    pass


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs the program until it would build components; it returns the log."""
    messages = []

    def build(plan, **_):
        raise Built(plan.stack)

    monkeypatch.setattr(hpkit.program.run, "build", build)
    for level in ("info", "warn", "error"):
        monkeypatch.setattr(pulumi.log, level, messages.append)
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)

    def start(stack, endpoint=None):
        monkeypatch.setattr(pulumi, "get_stack", lambda: stack)
        if endpoint:
            monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with pytest.raises((Built, pulumi.RunError)) as caught:
            hpkit.program.run.run()
        return ("builds " if caught.type is Built else "refused: ") + str(caught.value), "\n".join(messages)

    return start


@pytest.fixture
def charts(monkeypatch):
    """Return a function that replaces or removes a chart by its name."""

    def give(*, other="", absent=""):
        def ensure(pin, *_, **__):
            if pin.name == absent:
                raise ToolError("Run `hpkit catalog fetch-chart --to FOLDER`.")
            return Package(Path(pin.file), "0" * 64, is_pinned=pin.name != other)

        monkeypatch.setattr(hpkit.program.run, "ensure_package", ensure)

    return give


def test_an_error_ends_a_run_with_its_place_before_anything_is_registered(run, tmp_path, monkeypatch):
    repository = Repository(tmp_path)
    data = repository.read("handson")
    data["environments"]["dev"]["governance"]["allocations"]["smith"][0]["count"] = 2
    repository.write("handson", data)
    monkeypatch.chdir(tmp_path)
    outcome, output = run("handson-dev", LOCAL)
    assert outcome.startswith("refused: 1 errors in ")
    assert outcome.endswith("nothing was registered")
    assert "stacks/handson.yaml:" in output
    assert "CAP001" in output


def test_a_run_is_refused_for_what_another_file_says_of_its_cluster(run, tmp_path, monkeypatch):
    repository = Repository(tmp_path)
    monkeypatch.chdir(tmp_path)
    whole = repository.read("handson")
    two = split({**whole, "environments": {"dev": {"account": "123456789012", **whole["environments"]["dev"]}}})
    for name, environment in (("handson", "dev"), ("other", "governance")):
        own = {"environments": {environment: two["environments"][environment]}, "organization": name}
        repository.write(name, {**two, **own})
    assert run("handson-dev", LOCAL)[0].startswith("builds ")
    # Both stacks govern it.
    repository.write("handson", whole)
    outcome, said = run("other-governance", LOCAL)
    assert outcome.startswith("refused: 1 errors in ")
    assert "CLU050" in said


@pytest.mark.parametrize("endpoint", [None, AWS])
def test_ranges_for_documents_end_a_run_on_aws_before_it_begins(run, charts, endpoint):
    charts()
    outcome, _ = run("handson-dev", endpoint)
    assert outcome.startswith("refused: publicCidrs of handson-dev has ")
    assert "203.0.113.0/24, a documentation range (RFC 5737)" in outcome


def test_the_local_cloud_takes_them(run, charts):
    charts()
    assert run("handson-dev", LOCAL)[0] == "builds handson-dev"


@pytest.mark.parametrize("pin", ["keda", "hyperpod-helm-chart"])
def test_a_mirror_with_another_chart_ends_a_run_on_aws_before_it_begins(run, charts, pin):
    charts(other=pin)
    outcome, _ = run("autoscale-dev", AWS)
    assert f"{pin}-" in outcome
    assert f"its content hash is {'0' * 64}, and the pin is " in outcome
    assert "Nothing was registered" in outcome
    outcome, said = run("autoscale-dev", LOCAL)
    assert outcome == "builds autoscale-dev"
    assert "on AWS, this run would fail" in said


def test_on_aws_a_run_without_the_dependencies_chart_ends_before_anything_is_registered(run, charts):
    charts(absent="hyperpod-helm-chart")
    outcome, _ = run("autoscale-dev", AWS)
    assert "hpkit catalog fetch-chart --to FOLDER" in outcome
    assert "Nothing was registered" in outcome
    outcome, said = run("autoscale-dev", LOCAL)
    assert outcome == "builds autoscale-dev"
    assert "chart" not in said, "the release is reported once, when it is created"
