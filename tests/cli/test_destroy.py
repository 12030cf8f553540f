"""What the end of a stack takes away is read from its state; the rest is tried with the real engine."""

import json
import re

import pytest

from hpkit.errors import InputError
from hpkit.program.teardown import teardown_of
from hpkit_local.toolchain import TOOLS
from hpkit_local.toolchain.cache import tool_folder
from tests.cli.invoke import hpkit
from tests.cli.test_validate import ROOT


def resource(kind, name, *, outputs=None, **more):
    urn = f"urn:pulumi:acme-dev::hpkit::{kind}::{name}"
    return {"urn": urn, "type": kind, "custom": True, "id": f"{name}-id", "outputs": outputs or {}, **more}


GROUPS = [
    {"instanceGroupName": "gpu", "instanceType": "ml.g5.12xlarge", "instanceCount": 4},
    {"instanceGroupName": "mixed", "instanceRequirements": {"instanceTypes": ["ml.a", "ml.b"]}, "instanceCount": 1},
    {"instanceGroupName": "burst", "instanceType": "ml.g5.8xlarge", "instanceCount": 0},
]
OUTPUTS = {"clusterName": "train", "instanceGroups": GROUPS, "autoscaledInstanceGroups": ["burst"]}
CLUSTER = resource("hyperpod:index:Cluster", "cluster", outputs=OUTPUTS)
STATE = [
    resource("pulumi:providers:aws", "aws"),
    CLUSTER,
    resource("hyperpod:index:ComputeQuota", "nlp", outputs={"computeQuotaTarget": {"teamName": "nlp"}}),
    resource("aws:s3/bucket:Bucket", "lifecycle", outputs={"bucket": "acme"}, protect=True),
    resource("aws:ec2/vpc:Vpc", "vpc", outputs={"id": "vpc-1"}, protect=True),
    resource("aws:ec2/vpc:Vpc", "vpc", outputs={"id": "vpc-0"}, protect=True, delete=True),
    {"urn": "urn:pulumi:acme-dev::hpkit::hpkit:index:Network::network", "type": "hpkit:index:Network"},
]


def ending(*resources):
    return teardown_of("acme-dev", json.dumps({"deployment": {"resources": list(resources)}}))


def test_what_goes_is_named_with_nodes_and_teams_and_what_is_protected_is_known():
    found = ending(*STATE)
    assert found.resources == 4
    assert found.goes == (
        "the HyperPod cluster train",
        "  gpu: 4 × ml.g5.12xlarge",
        "  mixed: 1 × ml.a or ml.b",
        "  burst: Karpenter's count × ml.g5.8xlarge",
        "the quotas of 1 team: nlp",
        "the VPC: vpc-1",
        "the bucket: acme",
    )
    assert [urn.rpartition("::")[2] for urn in found.protected] == ["lifecycle", "vpc"]
    assert found.refusal == ""


def test_a_cluster_that_is_protected_stays():
    assert "set `protect: false` in its environment" in ending({**CLUSTER, "protect": True}).refusal


@pytest.mark.parametrize("state", ['{"deployment": null}', '{"deployment": {"resources": null}}'])
def test_an_empty_stack_has_nothing_to_lose(state):
    assert teardown_of("acme-dev", state).resources == 0


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"deployment": {"resources": [{"custom": true}]}}'])
def test_text_that_is_no_state_says_so(text):
    with pytest.raises(InputError, match="is not what `pulumi stack export` writes"):
        teardown_of("acme-dev", text)


def test_without_pulumi_it_says_how_to_get_it(tmp_path):
    result = hpkit("destroy", "--stack", "acme-dev", cwd=ROOT, PATH=str(tmp_path), HPKIT_CACHE=str(tmp_path))
    assert result.returncode == 1
    assert re.fullmatch(r"error: pulumi [\d.]+ is not here\. Get it with: hpkit doctor --fix\n", result.stderr)


def test_a_pulumi_that_only_the_cache_has_is_found(tmp_path, monkeypatch):
    monkeypatch.setenv("HPKIT_CACHE", str(tmp_path))
    for tool in TOOLS:
        if tool.name in {"pulumi", "pulumi-language-python"}:
            folder = tool_folder(tool) / tool.folder
            folder.mkdir(parents=True)
            for name in tool.executables:
                (folder / name).write_text("#!/bin/sh\necho $* >&2; exit 1\n")
                (folder / name).chmod(0o755)
    result = hpkit("destroy", "-s", "acme-dev", cwd=ROOT, PATH="/usr/bin:/bin")
    said = "stack export --stack acme-dev --non-interactive"
    assert (result.returncode, result.stderr) == (1, f"error: pulumi stack export: {said}\n")
