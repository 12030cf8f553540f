"""At night every example lives through everything; the gate deploys the largest (test_deployer_policy.py)."""

import pytest

from tests.program.cloud import ROOT
from tests.program.life import live_through

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1800)]

NAMES = sorted(file.stem.partition(".")[2] for file in (ROOT / "stacks").glob("Pulumi.*.yaml"))


@pytest.mark.parametrize("stack", NAMES)
def test_a_stack_goes_up_stays_as_it_is_and_leaves_nothing(stack, instance, repository):
    assert live_through(stack, instance, repository)
