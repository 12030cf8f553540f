"""Whose a trace's tasks become."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

__all__ = ["Teams"]


class Teams:
    """Assigns a trace's groups to a stack's teams: as given, and the others in turn."""

    def __init__(self, teams: Sequence[str], given: Mapping[str, str]) -> None:
        self._teams = teams
        self._given = given
        self.team_by_group: dict[str, str] = {}
        """Group → team, of the groups that came so far."""
        self._dealt = 0

    def team(self, group: str) -> str:
        """Return the team of a group; the next one in turn for a group that is new."""
        if group not in self.team_by_group:
            if group in self._given:
                self.team_by_group[group] = self._given[group]
            else:
                self.team_by_group[group] = self._teams[self._dealt % len(self._teams)]
                self._dealt += 1
        return self.team_by_group[group]

    def unmet(self) -> list[str]:
        """Return the groups with a given team that don't occur in the trace."""
        return [group for group in self._given if group not in self.team_by_group]
