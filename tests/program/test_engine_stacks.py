"""The nightly run takes every example through its life; CI deploys the largest (test_deployer_policy.py)."""

import pytest

from generate.examples import example_stacks
from tests.program.life import live_through

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1800)]


@pytest.mark.parametrize("stack", example_stacks())
def test_a_stack_goes_up_stays_as_it_is_and_leaves_nothing(stack, instance, repository):
    assert live_through(stack, instance, repository)
