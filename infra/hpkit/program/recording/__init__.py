"""Records what the program registers for a plan, by running it without an engine."""

from hpkit.program.recording.record import PROJECT, Answers, RecordedResource, Recording, record
from hpkit.program.recording.tree import UNKNOWN_ACCOUNT, TreeItem, tree_of

__all__ = ["PROJECT", "UNKNOWN_ACCOUNT", "Answers", "RecordedResource", "Recording", "TreeItem", "record", "tree_of"]
