"""Counts as a person writes them."""

__all__ = ["plural"]


def plural(number: int, word: str) -> str:
    """Return `1 team`, `2 teams`, `1,000 teams`; word: the singular."""
    return f"{number:,} {word}" + ("" if number == 1 else "s")
