"""Explains a plan for one team or instance group, as data and as text."""

from hpkit.explain.group import GroupExplanation, explain_group
from hpkit.explain.places import PlacedValue, places_of_group, places_of_team, values_of
from hpkit.explain.team import TeamExplanation, TypeExplanation, explain_team
from hpkit.explain.words import group_text, team_text

__all__ = [
    "GroupExplanation",
    "PlacedValue",
    "TeamExplanation",
    "TypeExplanation",
    "explain_group",
    "explain_team",
    "group_text",
    "places_of_group",
    "places_of_team",
    "team_text",
    "values_of",
]
