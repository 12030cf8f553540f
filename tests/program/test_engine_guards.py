"""What must not be lost stays: a change that would replace it is refused, and a scientist keeps to the team."""

import pytest
from kubernetes import client
from kubernetes.client.rest import ApiException

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(600)]

RANGE = "network: vpcCidr 10.192.0.0/16 becomes vpcCidr 10.193.0.0/16"


def another_name(dev):
    dev["cluster"]["name"] = "other"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (
            lambda dev: dev["network"].update(vpcCidr="10.193.0.0/16"),
            ["REPLACE the VPC", RANGE, "allow it: `allowReplace: [vpc, eks, cluster]`"],
        ),
        (
            another_name,
            ["REPLACE the HyperPod cluster", "cluster.name: handson becomes other", "allowReplace: [cluster]"],
        ),
        (
            lambda dev: dev["network"]["zones"][0].update(nodeCidr="10.5.0.0/16"),
            ["gpu in us-west-2a: nodeCidr 10.1.0.0/16", "give these groups new names"],
        ),
        (lambda dev: dev["eks"].update(version="1.35"), ["write 1.34 first"]),
    ],
    ids=["VPC", "HyperPod cluster", "subnet of groups", "Kubernetes"],
)
def test_what_would_be_lost_is_refused_and_nothing_changes(up, edit, live, change, says):
    before = live.everything()
    edit(lambda _, dev: change(dev))
    for refused in (up.run("preview", check=False), up.up(check=False)):
        assert refused.returncode != 0
        assert [text for text in says if text not in refused.stdout + refused.stderr] == []
    assert live.everything() == before
    edit.undo()


def test_a_replacement_that_is_allowed_is_previewed_with_a_warning(up, edit):
    edit(lambda _, dev: another_name(dev) or dev.update(allowReplace=["cluster"]))
    said = up.run("preview")
    assert "This change REPLACES the HyperPod cluster other, as allowed" in said.stdout + said.stderr
    assert up.preview()["Cluster:cluster"] == "replace"
    edit.undo()


@pytest.fixture
def john(up, instance):
    """Return a Kubernetes client that acts as a scientist of john."""
    from kubernetes import config

    made = config.new_client_from_config(str(instance.kubeconfig))
    made.set_default_header("Impersonate-User", "arn:aws:sts::123456789012:assumed-role/john-scientists/somebody")
    made.set_default_header("Impersonate-Group", "hyperpod:team:john")
    return made


def job(team):
    container = client.V1Container(name="train", image="train")
    template = client.V1PodTemplateSpec(spec=client.V1PodSpec(containers=[container], restart_policy="Never"))
    labels = {"kueue.x-k8s.io/queue-name": f"hyperpod-ns-{team}-localqueue"}
    metadata = client.V1ObjectMeta(name="train", labels=labels)
    return client.V1Job(metadata=metadata, spec=client.V1JobSpec(suspend=True, template=template))


def refused(call):
    with pytest.raises(ApiException) as caught:
        call()
    return caught.value.status == 403


def test_a_scientist_works_in_the_teams_namespace_and_nowhere_else(john):
    jobs, core, custom = client.BatchV1Api(john), client.CoreV1Api(john), client.CustomObjectsApi(john)
    jobs.create_namespaced_job("hyperpod-ns-john", job("john"))
    jobs.delete_namespaced_job("train", "hyperpod-ns-john", propagation_policy="Background")
    assert refused(lambda: jobs.create_namespaced_job("hyperpod-ns-smith", job("smith")))
    assert core.list_namespaced_secret("hyperpod-ns-john").items is not None
    assert refused(lambda: core.list_namespaced_secret("hyperpod-ns-smith"))
    assert refused(lambda: core.list_namespaced_secret("kueue-system"))
    queue = ("kueue.x-k8s.io", "v1beta2", "clusterqueues", "hyperpod-ns-john-clusterqueue")
    assert custom.get_cluster_custom_object(*queue)["spec"]
    patch = {"spec": {"stopPolicy": "Hold"}}
    assert refused(lambda: custom.patch_cluster_custom_object(*queue, patch))
