"""Validation comes first, under the real engine: what is wrong is said with its place, and nothing is registered."""

import json

import pytest

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(300)]


@pytest.fixture
def broken(repository):
    """An organization that reserves more than there is; the fixture's end puts the good one back."""
    data = repository.read("handson")
    data["environments"]["dev"]["governance"]["allocations"]["smith"][0]["count"] = 2
    repository.write("handson", data)
    yield
    repository.write("handson", repository.read("handson"))


def test_an_error_ends_the_preview_before_anything_is_registered(handson, broken):
    del broken
    refused = handson.run("preview", "--json", check=False)
    assert refused.returncode != 0
    said = json.loads(refused.stdout)
    kinds = {step["urn"].rpartition("::")[0].rpartition("::")[2] for step in said.get("steps", [])}
    assert kinds <= {"pulumi:pulumi:Stack"}
    # Not `--json`, which leaves diagnostics of a failed program out of its steps.
    spoken = handson.run("preview", check=False)
    text = spoken.stdout + spoken.stderr
    assert "stacks/handson.yaml:" in text
    assert "CAP001" in text
    assert "nothing was registered" in text


def test_an_error_makes_nothing_in_up(handson, broken, live):
    del broken
    before = live.everything()
    assert handson.up(check=False).returncode != 0
    assert live.everything() == before
