"""An upgrade of hpkit replaces and deletes nothing that the changelog doesn't name."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.program.recorder import recorded
from tests.program.released import FOLDER, Released, losses, packed, unnamed_losses

ROOT = Path(__file__).parents[2]
VPC = "aws:ec2/vpc:Vpc"


def test_the_states_of_all_releases_go_on_with_this_program():
    assert unnamed_losses(FOLDER, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")) == {}


@pytest.mark.parametrize(
    ("changelog", "reported"),
    [
        ("## Unreleased\n\n### Actions required\n\n- `delete VPC gone`: …\n\n## 0.9.0\n", False),
        ("## 1.0.0\n\n### Actions required\n\n- `delete VPC gone`: …\n\n### Added\n\n## 0.9.0\n", False),
        ("## 1.0.0\n\n### Actions required\n\nNone.\n\n### Added\n\n`delete VPC gone`\n\n## 0.9.0\n", True),
        ("## 1.0.0\n\n### Actions required\n\n- `delete VPC gone-a`: …\n\n## 0.9.0\n", True),
        ("## 1.0.0\n\n## 0.9.0\n\n### Actions required\n\n- `delete VPC gone`: …\n", True),
    ],
    ids=["not released yet", "released", "another section", "another resource", "of the release itself"],
)
def test_a_loss_is_accepted_only_if_a_later_version_names_it(changelog, reported, tmp_path):
    now = recorded("handson-dev")
    (urn,) = (urn for urn, resource in now.resources.items() if resource.type == VPC)
    gone = replace(now.resources[urn], urn="gone", name="gone")
    (tmp_path / "0.9.0").mkdir()
    released = Released(now.plan, {**now.resources, "gone": gone})
    (tmp_path / "0.9.0" / "handson-dev.json.xz").write_bytes(packed(released))
    lost = unnamed_losses(tmp_path, f"# Changelog\n\n{changelog}".replace("VPC", VPC))
    assert lost == ({"0.9.0/handson-dev.json.xz": [f"delete {VPC} gone"]} if reported else {})


@pytest.mark.parametrize(
    ("change", "loss"),
    [
        ({"urn": "renamed", "name": "renamed"}, f"delete {VPC} renamed"),
        ({"inputs": {"cidrBlock": "10.0.0.0/16"}}, f"replace {VPC} vpc"),
    ],
)
def test_a_resource_that_is_renamed_or_changes_for_good_is_a_loss(change, loss):
    now = recorded("handson-dev")
    (urn,) = (urn for urn, resource in now.resources.items() if resource.type == VPC)
    changed = replace(now.resources[urn], **change)
    before = {changed.urn if other == urn else other: now.resources[other] for other in now.resources}
    before[changed.urn] = changed
    assert loss in losses(Released(now.plan, before), now)
