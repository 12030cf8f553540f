"""A Pulumi program with the parts of a platform that only the plugin `aws` creates, for tests of that plugin."""

import os

import pulumi
import pulumi_aws as aws

from hpkit.program.components.access.entries import Access
from hpkit.program.components.access.roles import Identity
from hpkit.program.components.addons.observability import Observability
from hpkit.program.components.cluster.eks import Eks
from hpkit.program.components.cluster.network import Network
from hpkit.program.components.common.base import DeployContext
from hpkit.program.components.common.credentials import Credentials
from hpkit.program.components.storage.aws_storage import Storage
from hpkit.program.iam.live import AwsAccount
from hpkit.project import load_stack

__all__ = ["build", "run"]


def run():
    """Register the stack's parts."""
    (plan,) = load_stack(pulumi.get_stack()).plans.values()
    build(plan)


def build(plan, **_):
    """Register network, storage, EKS cluster, access and observability of a plan; return no outputs."""
    tags = aws.ProviderDefaultTagsArgs(tags=dict(plan.tags))
    opts = pulumi.ResourceOptions(providers=[aws.Provider("aws", region=plan.spec.region, default_tags=tags)])
    account = AwsAccount(partition="aws", region=plan.spec.region, id=plan.spec.account)
    context = DeployContext(
        account,
        caller=account.arn("iam", "role/Admin"),
        credentials=Credentials(),
        # The NAT gateway is in the first one.
        zones=[f"{plan.spec.region}{zone}" for zone in os.environ.get("ZONES", "ab")],
        has_log_group=False,
        root="..",
    )
    network = Network("network", plan, context, guard=[], opts=opts)
    storage = Storage("storage", plan, context, network=network, opts=opts)
    identity = Identity("identity", plan, context, network=network, storage=storage, opts=opts)
    eks = Eks("eks", plan, context, network=network, identity=identity, guard=[], opts=opts)
    Access("access", plan, context, eks=eks, after=network.connectivity, opts=opts)
    Observability("observability", plan, plan.spec.observability, context, opts=opts)
    return {}
