"""The values and lists in docs/guides/aws.md match hpkit."""

import json
import re
from pathlib import Path

import pytest

from generate.examples import example_files
from hpkit.clients.calls import Responses
from hpkit.plan.derive import derive
from hpkit.preflight.calls import (
    ADDRESSES,
    ALL_SUBNETS,
    CALLER,
    CLUSTERS,
    EKS_CLUSTERS,
    GATEWAYS,
    INTERFACES,
    NAT_GATEWAYS,
    VPCS,
    alerts_topic,
    applied_quotas,
    default_quotas,
    eks_cluster,
    first_calls,
    further_calls,
    topic,
)
from hpkit.preflight.quotas import check_quotas
from hpkit.project import load
from tests.builders import group, organization, typed
from tests.program.recorder import recording_of

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "guides" / "aws.md").read_text(encoding="utf-8")
OBSERVED = {
    "observability": {
        "prometheus": True,
        "grafana": True,
        "alerts": {"snsTopicArn": "arn:aws:sns:us-west-2:123456789012:ops"},
    }
}
WITH_ENDPOINTS = {
    "network": {
        "vpcCidr": "10.192.0.0/16",
        "zones": [{"availabilityZone": "us-west-2a", "nodeCidr": "10.1.0.0/16"}],
        "endpoints": ["s3", "sts"],
    }
}
EXISTING = {
    "network": {
        "existing": {
            "vpcId": "vpc-01234567",
            "subnets": {"us-west-2a": "subnet-01234567"},
            "securityGroupIds": ["sg-01234567"],
        }
    },
    "eks": {
        "version": "1.35",
        "existing": {"name": "kube"},
        "administrators": ["arn:aws:iam::123456789012:role/admin"],
    },
    "storage": {"existing": {"bucket": "sagemaker-scripts"}},
    "inference": {"tlsCertificateBucket": "acme-tls"},
    "cluster": {
        "name": "acme",
        "instanceGroups": [group("gpu", "ml.g5.12xlarge", 4, executionRole="arn:aws:iam::123456789012:role/nodes")],
    },
}
WEB = {
    "domain": "spaces.acme.com",
    "certificateArn": "arn:aws:acm:us-west-2:123456789012:certificate/1",
    "kmsKeyArn": "arn:aws:kms:us-west-2:123456789012:key/1",
}
ENVIRONMENTS = ({}, EXISTING, OBSERVED, WITH_ENDPOINTS, {"spaces": {"webUi": WEB}})


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def all_calls(environment):
    """Return every call that a plan can cause if its own cluster already exists."""
    plan = derive(typed(organization(environment=environment)), "dev")
    summary = {"ClusterArn": "arn", "ClusterName": plan.spec.cluster.name}
    issuer = "https://oidc.eks.us-west-2.amazonaws.com/id/ABC"
    eks = {"arn": "arn:aws:eks:us-west-2:123456789012:cluster/kube", "identity": {"oidc": {"issuer": issuer}}}
    responses = Responses(
        {
            CALLER.key: {"Account": "123456789012"},
            CLUSTERS.key: {"ClusterSummaries": [summary]},
            eks_cluster(plan).key: {"cluster": eks},
            topic(alerts_topic(plan) or "").key: {"Attributes": {"KmsMasterKeyId": "key"}},
        }
    )
    return [*first_calls(recording_of(plan)), *further_calls(plan, responses)]


def test_the_policy_allows_every_call_that_preflight_makes_and_no_other():
    policy = next(json.loads(block) for block in blocks("json") if "HpkitPreflight" in block)
    (statement,) = policy["Statement"]
    wanted = {call.action for environment in ENVIRONMENTS for call in all_calls(environment)}
    assert statement["Action"] == sorted(wanted)


def test_every_call_only_reads():
    for environment in ENVIRONMENTS:
        for call in all_calls(environment):
            assert call.operation.startswith(("Describe", "Get", "List", "Simulate")), call.key


EXPECTED = json.loads((Path(__file__).parent / "example_needs.json").read_text(encoding="utf-8"))
EMPTY_ACCOUNT = {
    **{
        call(service).key: {"Quotas": []}
        for call in (applied_quotas, default_quotas)
        for service in ("ec2", "eks", "sagemaker", "vpc")
    },
    VPCS.key: {"Vpcs": []},
    EKS_CLUSTERS.key: {"clusters": []},
    NAT_GATEWAYS.key: {"NatGateways": []},
    ALL_SUBNETS.key: {"Subnets": []},
    GATEWAYS.key: {"InternetGateways": []},
    ADDRESSES.key: {"Addresses": []},
    INTERFACES.key: {"NetworkInterfaces": []},
    CLUSTERS.key: {"ClusterSummaries": []},
}
PLANS = {plan.stack: plan for file in example_files() for plan in load(file).plans.values()}


def test_every_example_has_its_figures():
    assert PLANS.keys() == EXPECTED.keys()


@pytest.mark.parametrize("stack", EXPECTED)
def test_an_example_needs_what_it_always_needed(stack):
    rows = check_quotas(recording_of(PLANS[stack]), Responses(EMPTY_ACCOUNT))
    assert {row.what: row.needed for row in rows} == EXPECTED[stack]
