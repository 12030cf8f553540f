"""The account quotas that each example needs."""

import json
from pathlib import Path

import pytest

from generate.examples import example_files
from hpkit.clients.calls import Responses
from hpkit.preflight.calls import (
    ADDRESSES,
    ALL_SUBNETS,
    CLUSTERS,
    EKS_CLUSTERS,
    GATEWAYS,
    INTERFACES,
    NAT_GATEWAYS,
    VPCS,
    applied_quotas,
    default_quotas,
)
from hpkit.preflight.quotas import check_quotas
from hpkit.project import load
from tests.program.recorder import recording_of

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
