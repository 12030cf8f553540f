"""The effect of a change on deployed resources, without an engine: from two recordings to steps and decisions.

It doesn't load Pulumi or call AWS, and doesn't know the live resources. A recording is what the program registers
(hpkit.program.recording); the real preview compares with the state, which can differ.
"""

from hpkit.changes.compare import Recorded, RecordedResource
from hpkit.changes.decision import CLUSTER, GUARDED_TYPES, GuardDecision, renamed_parts
from hpkit.changes.guarded_resources import GUARDED_NAMES
from hpkit.changes.instance_groups import renamed_group
from hpkit.changes.reductions import Edit, Reduction, edits_of_plans
from hpkit.changes.stack import StackChange, UnusedAllowance, change
from hpkit.changes.steps import Action, Cause, Step, describe, is_plain, place_text, steps_of, value_text

__all__ = [
    "CLUSTER",
    "GUARDED_NAMES",
    "GUARDED_TYPES",
    "Action",
    "Cause",
    "Edit",
    "GuardDecision",
    "Recorded",
    "RecordedResource",
    "Reduction",
    "StackChange",
    "Step",
    "UnusedAllowance",
    "change",
    "describe",
    "edits_of_plans",
    "is_plain",
    "place_text",
    "renamed_group",
    "renamed_parts",
    "steps_of",
    "value_text",
]
