"""Finds quotas, weights and borrow limits that meet goals for a scenario, by simulating many."""

from hpkit_whatif.recommend.model import Goal, Recommendation, parse_goal
from hpkit_whatif.recommend.recommend import recommend

__all__ = ["Goal", "Recommendation", "parse_goal", "recommend"]
