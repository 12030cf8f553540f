"""For the API, a group with the cluster's own network is one without its own network."""

import pytest

from tests.provider.harness import FailedError


def own(world, turned=False):
    """Return the cluster's network, as a group's."""
    subnets, groups = (world.cluster()["vpcConfig"][name] for name in ("subnets", "securityGroupIds"))
    return {"subnets": list(reversed(subnets)) if turned else list(subnets), "securityGroupIds": list(groups)}


def sent(world):
    return world.endpoint.stats()["calls"].get("sagemaker.UpdateCluster", 0)


def there(world):
    groups = world.sm.describe_cluster(ClusterName="train")["InstanceGroups"]
    return {group["InstanceGroupName"]: "OverrideVpcConfig" in group for group in groups}


def test_naming_the_clusters_network_is_no_change_of_a_group_that_has_none(world, engine):
    plain, named = world.group("gpu", 1), world.group("gpu", 1, overrideVpcConfig=own(world, turned=True))
    engine.up("Cluster", "c", world.cluster(plain))
    assert list(engine.diff("Cluster", "c", world.cluster(named)).detailedDiff) == []
    labels = {"labels": {"pool": "gpu"}}
    engine.up("Cluster", "c", world.cluster({**named, "kubernetesConfig": labels}))
    assert sent(world) == 1
    assert there(world) == {"gpu": False}, "what the API would refuse is not sent"
    engine.refresh("Cluster", "c")
    assert list(engine.diff("Cluster", "c", world.cluster({**named, "kubernetesConfig": labels})).detailedDiff) == []


def test_leaving_it_out_is_no_change_of_a_group_that_has_it(world, engine):
    plain, named = world.group("gpu", 1), world.group("gpu", 1, overrideVpcConfig=own(world))
    engine.up("Cluster", "c", world.cluster(named))
    assert there(world) == {"gpu": True}
    assert list(engine.diff("Cluster", "c", world.cluster(plain)).detailedDiff) == []
    engine.up("Cluster", "c", world.cluster({**plain, "kubernetesConfig": {"labels": {"pool": "gpu"}}}))
    assert there(world) == {"gpu": True}


def test_another_network_is_refused_as_ever(world, engine):
    engine.up("Cluster", "c", world.cluster(world.group("gpu", 1)))
    for changed in ({"subnets": own(world)["subnets"][:1]}, {"securityGroupIds": ["sg-other"]}):
        group = world.group("gpu", 1, overrideVpcConfig={**own(world), **changed})
        with pytest.raises(FailedError, match=r"instanceGroups\[gpu\]\.overrideVpcConfig"):
            engine.diff("Cluster", "c", world.cluster(group))
