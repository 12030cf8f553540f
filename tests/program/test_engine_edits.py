"""A live platform is edited: only what an edit is about changes, and teams keep to themselves."""

import copy

import pytest
from kubernetes import client
from kubernetes.client.rest import ApiException

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def up(handson, repository):
    repository.write("handson", repository.read("handson"))
    handson.up()
    yield handson
    repository.write("handson", repository.read("handson"))
    handson.destroy()


@pytest.fixture
def edit(up, repository):
    """Return a function that changes the file; the fixture's end puts file and platform back."""
    data = repository.read("handson")

    def change(function):
        edited = copy.deepcopy(data)
        function(edited, edited["environments"]["dev"])
        repository.write("handson", edited)

    yield change
    repository.write("handson", data)
    up.up()


def test_quota_moves_between_teams_at_full_capacity(up, edit, live):
    def shift(_, dev):
        dev["governance"]["allocations"]["john"][0]["count"] = 1
        dev["governance"]["allocations"]["smith"][0]["count"] = 3

    edit(shift)
    assert up.preview() == {"ComputeQuota:john": "update", "ComputeQuota:smith": "update"}
    up.up()
    counts = {
        team: quota["ComputeQuotaConfig"]["ComputeQuotaResources"][0]["Count"] for team, quota in live.quotas().items()
    }
    assert counts == {"john": 1, "smith": 3}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda dev: dev["eks"].update(version="1.35"), "write 1.34 first"),
    ],
    ids=["kubernetes"],
)
def test_what_would_be_lost_is_refused_at_preview(up, edit, live, change, says):
    before = live.everything()
    edit(lambda _, dev: change(dev))
    refused = up.run("preview", check=False)
    assert refused.returncode != 0
    assert says in refused.stdout + refused.stderr
    assert up.up(check=False).returncode != 0
    assert live.everything() == before


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
