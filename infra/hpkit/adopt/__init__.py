"""The adoption of a live platform: its file, its import, its state, and the handover from the tool that created it."""

from hpkit.adopt.cloudformation import read_cloudformation, read_stacks
from hpkit.adopt.handover import Handover, HandoverPlan, Match, as_data, handover, lines, steps
from hpkit.adopt.handover_model import AdoptedResource, ManagedResource, Step
from hpkit.adopt.terraform import read_terraform

__all__ = [
    "AdoptedResource",
    "Handover",
    "HandoverPlan",
    "ManagedResource",
    "Match",
    "Step",
    "as_data",
    "handover",
    "lines",
    "read_cloudformation",
    "read_stacks",
    "read_terraform",
    "steps",
]
