"""Requests that HyperPod rejects and that no other test makes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from hpkit_local.aws.services.sagemaker.batch import MOST_DELETED
from hpkit_local.aws.services.sagemaker.tags import MOST

Refused = Callable[..., str]


def test_a_request_deletes_so_many_nodes_and_no_more(cloud: Any, refused: Refused) -> None:
    arn = cloud.make_cluster()
    names = [f"i-{number:017x}" for number in range(MOST_DELETED + 1)]
    text = refused("ValidationException", cloud.sm.batch_delete_cluster_nodes, ClusterName=arn, NodeIds=names)
    assert f"up to {MOST_DELETED} nodes, not {MOST_DELETED + 1}" in text


def test_nodes_are_not_replaced_while_their_cluster_changes(slow_cloud: Any, refused: Refused) -> None:
    slow_cloud.make_cluster()
    node = slow_cloud.nodes()[0]["InstanceId"]
    slow_cloud.sm.delete_cluster(ClusterName="train")
    wanted = {"ClusterName": "train", "NodeIds": [node]}
    text = refused("ValidationException", slow_cloud.sm.batch_reboot_cluster_nodes, **wanted)
    assert "nodes can be changed when it is InService" in text


def test_hyperpod_needs_an_eks_cluster_that_is_done(slow_cloud: Any, refused: Refused) -> None:
    config = {"subnetIds": slow_cloud.subnets}
    made = slow_cloud.eks.create_cluster(name="new", roleArn=slow_cloud.eks_role, resourcesVpcConfig=config)
    wanted = slow_cloud.request(Orchestrator={"Eks": {"ClusterArn": made["cluster"]["arn"]}})
    assert "is CREATING; it must be ACTIVE" in refused("ValidationException", slow_cloud.sm.create_cluster, **wanted)


def test_a_resource_of_hyperpod_has_so_many_tags(cloud: Any, refused: Refused) -> None:
    arn = cloud.make_cluster()
    tags = [{"Key": f"k{number}", "Value": "v"} for number in range(MOST)]
    cloud.sm.add_tags(ResourceArn=arn, Tags=tags)
    more = [{"Key": "more", "Value": "v"}]
    text = refused("ResourceLimitExceeded", cloud.sm.add_tags, ResourceArn=arn, Tags=more)
    assert text == f"A resource can have up to {MOST} tags"


def test_an_update_names_a_group_once_and_none_that_goes(slow_cloud: Any, refused: Refused) -> None:
    slow_cloud.make_cluster(InstanceGroups=[slow_cloud.group(), slow_cloud.group("more")])
    update = slow_cloud.sm.update_cluster
    twice = [slow_cloud.group("new"), slow_cloud.group("new")]
    text = refused("ValidationException", update, ClusterName="train", InstanceGroups=twice)
    assert "'new' is given twice" in text
    update(ClusterName="train", InstanceGroupsToDelete=["more"])
    slow_cloud.advance(120)
    text = refused("ValidationException", update, ClusterName="train", InstanceGroups=[slow_cloud.group("more")])
    assert text == "Instance group 'more' is being deleted"


def test_a_quota_that_was_cut_refuses_instances_that_are_added(cloud: Any, refused: Refused) -> None:
    cloud.make_cluster()
    instance_type, count = (cloud.group()[member] for member in ("InstanceType", "InstanceCount"))
    cloud.endpoint.set_faults({"instance-quota": f"{count - 1}@{instance_type}"})
    update = partial(cloud.sm.update_cluster, ClusterName="train")
    update(InstanceGroups=[cloud.group()])
    text = refused("ResourceLimitExceeded", update, InstanceGroups=[cloud.group(InstanceCount=count + 2)])
    assert text.startswith(
        f"The account-level service limit '{instance_type} for cluster usage' is {count - 1} Instances, with current "
        f"utilization of {count} Instances and a request delta of 2 Instances."
    )
    update(InstanceGroups=[cloud.group(InstanceCount=count - 1)])
