"""Which quotas, weights and borrow limits meet goals for a scenario, found by simulating many."""

from hpkit.recommend.goals import Goal, parse_goal
from hpkit.recommend.model import Recommendation
from hpkit.recommend.recommend import recommend

__all__ = ["Goal", "Recommendation", "parse_goal", "recommend"]
