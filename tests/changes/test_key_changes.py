"""Every key of every example, edited once: losses are rejected, and the catalog explains other changes.

Each run tests an eighth of one example's keys; the nightly run tests all keys of all examples.
"""

import gc
import os
import zlib

import pytest

from generate.examples import example_files
from hpkit.catalog import losses
from hpkit.changes import GUARDED_TYPES
from hpkit.project import project_root
from tests.changes.advice import runs
from tests.changes.key_changes import outcomes, refusals

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
# All edits are several hundred recordings, which take more than a minute.
NIGHTLY = os.environ.get("HPKIT_NIGHTLY") == "1"
FILES = example_files() if NIGHTLY else [project_root() / "stacks" / "handson.yaml"]

NAME_OF_GROUP = "cluster.instanceGroups[].name"


class EverySixteenth:
    """A fixed sixteenth of all keys, including the one that deletes a group with nodes."""

    def __contains__(self, key: str) -> bool:
        return key == NAME_OF_GROUP or zlib.crc32(key.encode()) % 16 == 0


@pytest.fixture(scope="module")
def edits():
    # Leftovers of hundreds of recordings are checked once at the end, not after each.
    gc.disable()
    try:
        return [each for file in FILES for each in outcomes(file, None if NIGHTLY else EverySixteenth())]
    finally:
        gc.enable()


@pytest.mark.nightly
def test_every_key_is_edited_and_every_kind_of_outcome_occurs(edits):
    assert len(edits) > 400
    assert {each.kind for each in edits} == {"invalid", "nothing", "in place", "lost", "refused"}


def test_what_a_guard_protects_is_lost_by_no_edit_that_is_not_refused(edits):
    unguarded = [
        (outcome.stack, outcome.edit.key, step.type)
        for outcome in edits
        if outcome.change and not outcome.change.rejected
        for step in outcome.change.lost
        if step.type in GUARDED_TYPES
    ]
    assert unguarded == []


def test_the_advice_of_every_refusal_is_valid_and_sufficient(edits):
    refused = [outcome for outcome in edits if outcome.kind == "refused"]
    assert refused
    for outcome in refused:
        advice = [(decision.subject, decision.message) for decision in outcome.change.decisions if decision.rejected]
        for sides in runs(outcome.base, outcome.data, outcome.environment, advice):
            assert refusals(*sides, outcome.environment, outcome.stack) == [], (
                outcome.stack,
                outcome.edit,
                outcome.value,
                advice,
            )


@pytest.mark.nightly
def test_every_explained_type_does_go(edits):
    gone = {step.type for each in edits if each.kind == "lost" and each.change for step in each.change.lost}
    assert gone >= losses().keys()


def test_every_type_that_goes_unrefused_is_explained(edits):
    assert edits
    lost = (step for each in edits if each.kind == "lost" and each.change for step in each.change.lost)
    assert {step.type for step in lost} <= losses().keys()


def test_no_edit_deletes_a_group_with_nodes_unasked(edits):
    renamed = [each for each in edits if each.edit.key == NAME_OF_GROUP and not each.rules]
    assert renamed
    for each in renamed:
        assert each.change.rejected, each.edit
