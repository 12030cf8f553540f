"""Validation comes first, under the real engine: what is wrong is said with its place, and nothing is registered."""

import json

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.platform, pytest.mark.timeout(900)]


@pytest.fixture
def broken(repository):
    """An organization that reserves more than there is; the fixture's end puts the good one back."""
    data = repository.read("handson")
    data["environments"]["dev"]["governance"]["allocations"]["smith"][0]["count"] = 2
    repository.write("handson", data)
    yield
    repository.write("handson", repository.read("handson"))


def test_an_error_ends_the_preview_before_anything_is_registered(up, broken):
    del broken
    refused = up.run("preview", "--json", check=False)
    assert refused.returncode != 0
    said = json.loads(refused.stdout)
    kinds = {step["urn"].rpartition("::")[0].rpartition("::")[2] for step in said.get("steps", [])}
    assert kinds <= {"pulumi:pulumi:Stack"}


def test_an_error_is_said_with_its_place_and_up_makes_nothing(up, broken, live):
    del broken
    before = live.everything()
    refused = up.up(check=False)
    assert refused.returncode != 0
    # Not `--json`, which leaves diagnostics of a failed program out of its steps.
    text = refused.stdout + refused.stderr
    assert "stacks/handson.yaml:" in text
    assert "CAP001" in text
    assert "nothing was registered" in text
    assert live.everything() == before


def test_on_aws_a_run_without_the_dependencies_chart_ends_before_anything_is_registered(up, monkeypatch):
    monkeypatch.setitem(up.environment, "AWS_ENDPOINT_URL", "https://aws.example")
    refused = up.run("preview", "--json", check=False)
    assert refused.returncode != 0
    kinds = {
        step["urn"].rpartition("::")[0].rpartition("::")[2] for step in json.loads(refused.stdout).get("steps", [])
    }
    assert kinds <= {"pulumi:pulumi:Stack"}
    text = up.run("preview", check=False).stdout
    assert "hpkit chart-fetch --to FOLDER" in text
    assert "Nothing was registered" in text


def test_on_the_local_cloud_it_goes_on_and_says_what_aws_would_do(up):
    _, warnings = up.preview_with_warnings()
    assert "The local cloud goes on without the chart; on AWS this run would end here" in warnings
