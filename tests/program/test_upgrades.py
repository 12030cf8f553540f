"""An upgrade of hpkit replaces and deletes nothing that the changelog doesn't name."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.program.recorder import recorded
from tests.program.released import FOLDER, Released, losses, packed, unpacked

ROOT = Path(__file__).parents[2]
FILES = sorted(FOLDER.glob("*/*.json.xz"))
VPC = "aws:ec2/vpc:Vpc"


def actions_required():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return "".join(section.partition("\n###")[0] for section in text.split("### Actions required")[1:])


def test_the_states_of_all_releases_go_on_with_this_program():
    named = actions_required()
    for file in FILES:
        now = recorded(file.name.partition(".")[0])
        lost = [loss for loss in losses(unpacked(file.read_bytes(), now.plan), now) if loss not in named]
        assert lost == [], file


def test_what_a_release_keeps_is_the_whole_recording():
    now = recorded("handson-dev")
    kept = unpacked(packed(now), now.plan)
    assert losses(kept, now) == []
    assert kept.resources == dict(now.resources)


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
