"""Changes of handson-dev that are refused by AWS or the program, and what is done about it."""

import json

import pytest
import urllib3
import yaml

from tests.program.test_engine_life import rename_the_cluster, seen

pytestmark = [pytest.mark.platform, pytest.mark.nightly]

# These are told the caller's identity and the teams that leave, which changes nothing else.
PROVIDERS = {"aws:aws", "hyperpod:hyperpod", "kubernetes:kubernetes"}


def test_a_lower_service_quota_keeps_the_nodes_and_refuses_more(edit, up, live):
    def sizes(gpu, john):
        def resize(_, dev):
            dev["cluster"]["instanceGroups"][0]["instanceCount"] = gpu
            dev["governance"]["allocations"]["john"][0]["count"] = john

        return resize

    def cut(quota):
        urllib3.request("POST", f"{live.url}/_hpkit/faults", json={"instance-quota": quota})

    cut("3@ml.g5.12xlarge")
    try:
        assert up.preview("--refresh").keys() <= PROVIDERS
        edit(sizes(5, 3))
        refused = up.up(check=False)
        assert refused.returncode != 0
        for words in ("ResourceLimitExceeded", "ml.g5.12xlarge for cluster usage", "request a higher SageMaker quota"):
            assert words in refused.stdout + refused.stderr
        assert seen(live)["groups"]["gpu"][0] == 4
        edit(sizes(3, 2))
        up.up()
        assert seen(live)["groups"]["gpu"][0] == 3
    finally:
        cut(None)


VIEWER = "handson-viewer"


@pytest.fixture
def viewer(up, repository, live):
    """Create a role in the account, and return its ARN and the environment in which the stack uses that role."""
    iam = live.client("iam")
    trust = {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Action": "sts:AssumeRole"}
    document = json.dumps({"Version": "2012-10-17", "Statement": [trust]})
    arn = iam.create_role(RoleName=VIEWER, AssumeRolePolicyDocument=document)["Role"]["Arn"]
    file = repository.folder / "stacks" / "Pulumi.handson-dev.yaml"
    before = file.read_text(encoding="utf-8")

    def work_as_it():
        settings = yaml.safe_load(before)
        settings["config"]["aws:assumeRoles"] = [{"roleArn": arn}]
        file.write_text(yaml.safe_dump(settings), encoding="utf-8")

    def work_as_before():
        file.write_text(before, encoding="utf-8")

    yield arn, work_as_it, work_as_before
    work_as_before()
    iam.delete_role(RoleName=VIEWER)


def test_a_viewer_previews_drift_and_changes_nothing(edit, viewer, up, live):
    arn, work_as_it, work_as_before = viewer
    work_as_it()
    unknown = up.run("preview", check=False)
    assert unknown.returncode != 0, "a role without an access entry cannot read Kueue's settings"
    work_as_before()

    edit(lambda _, dev: dev["eks"].update(viewers=[arn]))
    up.up()
    before = live.settled()
    work_as_it()
    assert up.preview("--refresh").keys() <= PROVIDERS
    refused = up.up(check=False)
    assert refused.returncode != 0
    assert f"{VIEWER}/" in refused.stdout + refused.stderr
    assert "is listed in eks.viewers of handson-dev" in refused.stdout + refused.stderr
    assert live.settled() == before
    # What it can't try on the API server is shown as the program reports it.
    edit(
        lambda _, dev: (dev["eks"].update(viewers=[arn]), dev["governance"].update(topologyAwareScheduling="Disabled"))
    )
    assert up.preview()["ConfigMapPatch:kueue-config"] == "update"


@pytest.mark.platform(taken_away=2)
def test_a_protected_cluster_is_replaced_where_the_file_allows_it(up, repository, live):
    data = repository.read("handson")
    dev = data["environments"]["dev"]
    dev["protect"] = True
    repository.write("handson", data)
    up.up()
    rename_the_cluster(data, dev)
    dev["allowReplace"] = ["cluster"]
    repository.write("handson", data)
    up.up()
    assert live.cluster()["ClusterName"] == "other"
