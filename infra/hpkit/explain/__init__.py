"""What a plan means for one team or one instance group: facts, and the same in words."""

from hpkit.explain.group import GroupExplanation, explain_group
from hpkit.explain.team import TeamExplanation, TypeExplanation, explain_team
from hpkit.explain.words import group_text, team_text

__all__ = [
    "GroupExplanation",
    "TeamExplanation",
    "TypeExplanation",
    "explain_group",
    "explain_team",
    "group_text",
    "team_text",
]
