"""Spaces are added to a live platform, and are removed with their roles and add-ons."""

import pytest

from tests.builders import RANKED

pytestmark = [pytest.mark.platform, pytest.mark.nightly]

ADDONS = ("amazon-sagemaker-spaces", "aws-ebs-csi-driver", "cert-manager")


def write(repository, *, spaces=None, **more):
    data = repository.read("handson")
    data["environments"]["dev"].update(more)
    if spaces is not None:
        data["environments"]["dev"]["spaces"] = spaces
        data["clusterPolicy"] |= RANKED
        john = next(team for team in data["teams"] if team["name"] == "john")
        john |= {"workloads": ["training", "inference", "spaces"], "spacePriorityClass": "training"}
    repository.write("handson", data)


def test_spaces_are_added_and_removed_without_a_trace(up, repository, live):
    before = live.settled()
    write(repository, spaces={"remoteAccess": True})
    up.up()
    assert up.preview() == {}
    addon = live.client("eks").describe_addon(clusterName="handson-dev", addonName=ADDONS[0])["addon"]
    assert addon["status"] == "ACTIVE"
    write(repository, allowDelete={"addons": list(ADDONS)})
    up.up()
    assert live.settled() == before
    write(repository)
    up.up()
    assert up.preview() == {}
