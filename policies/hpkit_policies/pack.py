"""The policy pack: every policy by name of its family, handed to the engine."""

from typing import Final

import pulumi_policy as sdk

from hpkit_policies.adapter import to_pulumi
from hpkit_policies.model import Policy
from hpkit_policies.rules import (
    access,
    bindings,
    capacity,
    cluster,
    eks,
    iam,
    karpenter,
    network,
    protection,
    storage,
    tags,
    types,
)
from hpkit_policies.waivers import RunState, configuration_policy

__all__ = ["POLICIES", "run"]

POLICIES: Final[tuple[Policy, ...]] = (
    *capacity.POLICIES,
    *cluster.POLICIES,
    *karpenter.POLICIES,
    *protection.POLICIES,
    *eks.POLICIES,
    *iam.POLICIES,
    *types.POLICIES,
    *network.POLICIES,
    *storage.POLICIES,
    *access.POLICIES,
    *bindings.POLICIES,
    *tags.POLICIES,
)


def run() -> None:
    """Serve the pack; the policy that checks the configuration is last, after all others have run."""
    run_state = RunState()
    sdk.PolicyPack(
        name="hpkit", policies=[to_pulumi(policy, run_state) for policy in (*POLICIES, configuration_policy(run_state))]
    )
