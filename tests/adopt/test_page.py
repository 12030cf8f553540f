"""The adoption guide, executed line by line on a platform that Terraform created."""

import json
import re
import shlex

import pytest

from tests.adopt.shapes import Maker, terraform
from tests.program.cloud import ROOT

pytestmark = [pytest.mark.nightly, pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(1800)]

PAGE = (ROOT / "docs" / "guides" / "adopting.md").read_text(encoding="utf-8")
# tests/program/test_engine_governance.py splits a stack.
FOLLOWED = re.sub(r"## Manage only the governance\n.*?(?=## Undo)", "", PAGE, flags=re.DOTALL)


def steps():
    """Yield each command of the page with the output that the page shows."""
    for block in re.findall(r"```console\n(.*?)```", FOLLOWED, re.DOTALL):
        command, shown = "", []
        for line in block.splitlines():
            if line.startswith("$ "):
                if command:
                    yield command, shown
                command, shown = line[2:], []
            else:
                shown.append(line)
        yield command, shown


def state(live):
    """Return the relevant part of a Terraform state, with the addresses of awslabs' root."""
    cluster, arn = live.cluster(), live.cluster()["ClusterArn"]
    eks = cluster["Orchestrator"]["Eks"]["ClusterArn"]
    kube = eks.rpartition("/")[2]
    held = [
        ("module.hyperpod_cluster[0]", "awscc_sagemaker_cluster", "hyperpod_cluster", {"id": arn, "cluster_arn": arn}),
        ("module.eks_cluster[0]", "aws_eks_cluster", "cluster", {"id": kube, "arn": eks, "name": kube}),
        ("module.eks_cluster[0]", "aws_eks_addon", "vpc_cni", {"id": f"{kube}:vpc-cni", "addon_name": "vpc-cni"}),
    ]
    resources = [
        {
            "module": module,
            "mode": "managed",
            "type": kind,
            "name": name,
            "provider": "provider",
            "instances": [{"schema_version": 0, "attributes": attributes}],
        }
        for module, kind, name, attributes in held
    ]
    return {"version": 4, "terraform_version": "1.9.0", "serial": 1, "lineage": "x", "resources": resources}


def test_every_line_of_the_page_runs_and_prints_what_it_shows(shell, repository, live):
    terraform(Maker(live))
    before = live.settled()
    (repository.folder / "terraform.tfstate").write_text(json.dumps(state(live)))
    for command, shown in steps():
        done = shell(*shlex.split(command))
        output = done.stdout + done.stderr
        assert [line for line in shown if line not in output] == [], f"{command}\n{output}"
        if " handover " in command:
            assert "terraform state rm 'module.hyperpod_cluster[0].awscc_sagemaker_cluster.hyperpod_cluster'" in output
            assert "state rm 'module.eks_cluster[0].aws_eks_cluster.cluster'" not in output, "it stays Terraform's"
        if " run " in command:
            assert live.settled() == before
    weights = {quota["ComputeQuotaTarget"]["FairShareWeight"] for quota in live.quotas().values()}
    assert weights == {20}
