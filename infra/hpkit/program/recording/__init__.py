"""Records what the program registers for a plan, by running it without an engine."""

from hpkit.program.recording.record import PROJECT, Answers, RecordedResource, Recording, record
from hpkit.program.recording.tree import UNKNOWN_ACCOUNT, Node, tree_of

__all__ = ["PROJECT", "UNKNOWN_ACCOUNT", "Answers", "Node", "RecordedResource", "Recording", "record", "tree_of"]
