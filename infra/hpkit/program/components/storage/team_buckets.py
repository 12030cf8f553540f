"""A role for each team's pods, for the team's own buckets, by EKS Pod Identity."""

import json

import pulumi

from hpkit.plan.existing import PodAccount, team_buckets
from hpkit.plan.model import NAMESPACE_PREFIX, Plan
from hpkit.program.components.access.pod_identity import PodRoles
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.common.base import Component, DeployContext
from hpkit.program.iam.documents import team_buckets_policy

__all__ = ["TeamBuckets"]


class TeamBuckets(Component):
    """The association of the service account `default` of each team's namespace with a role.

    ready: what waits until they are in effect, because a pod that starts before runs without the role.
    """

    def __init__(
        self, name: str, plan: Plan, context: DeployContext, *, eks: Eks, opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__(name, opts=opts)
        pods = PodRoles(self, plan, context, eks)
        for team, buckets in team_buckets(plan).items():
            policy = json.dumps(team_buckets_policy(context.account, buckets), sort_keys=True)
            pods.associate(
                f"buckets-{team}",
                PodAccount(f"{NAMESPACE_PREFIX}{team}", "default"),
                description=f"Pods of team {team}, for its buckets",
                existing_role=None,
                policy=pulumi.Output.from_input(policy),
            )
        self.ready = pods.in_force("team-buckets-pod-identity")
        self.register_outputs({})
