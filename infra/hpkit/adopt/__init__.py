"""A live platform that another tool made comes under hpkit: who owns what, and who lets go of it."""

from hpkit.adopt.cloudformation import read_cloudformation, read_stacks
from hpkit.adopt.owned import Owned, Step, Taken
from hpkit.adopt.owners import Handover, Held, as_data, handover, lines, steps
from hpkit.adopt.terraform import read_terraform

__all__ = [
    "Handover",
    "Held",
    "Owned",
    "Step",
    "Taken",
    "as_data",
    "handover",
    "lines",
    "read_cloudformation",
    "read_stacks",
    "read_terraform",
    "steps",
]
