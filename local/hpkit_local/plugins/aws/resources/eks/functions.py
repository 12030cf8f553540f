"""The function that returns a cluster."""

from __future__ import annotations

from typing import Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.function import Function
from hpkit_local.plugins.aws.resources.eks.clusters import stamp
from hpkit_provider.engine.values import Props

__all__ = ["FUNCTIONS"]


def _cluster(call: Calls, args: Props) -> Props:
    cluster = call("DescribeCluster", name=args["name"])["cluster"]
    logging = cluster.get("logging", {}).get("clusterLogging", [])
    plain = ("arn", "endpoint", "name", "platformVersion", "roleArn", "status", "version", "deletionProtection")
    lists = {
        "accessConfigs": "accessConfig",
        "certificateAuthorities": "certificateAuthority",
        "kubernetesNetworkConfigs": "kubernetesNetworkConfig",
        "upgradePolicies": "upgradePolicy",
    }
    return {
        "id": cluster["name"],
        "clusterId": "",
        **{name: cluster.get(name) for name in plain},
        **{name: [cluster[member]] for name, member in lists.items() if member in cluster},
        "createdAt": stamp(cluster["createdAt"]),
        "enabledClusterLogTypes": [kind for row in logging if row["enabled"] for kind in row["types"]],
        "identities": [{"oidcs": [cluster["identity"]["oidc"]]}],
        "vpcConfig": cluster["resourcesVpcConfig"],
        "tags": cluster.get("tags", {}),
    }


FUNCTIONS: Final = (Function("aws:eks/getCluster:getCluster", "eks", ("name", "tags"), "DescribeCluster", _cluster),)
