"""Formats counts with singular or plural nouns."""

__all__ = ["plural"]


def plural(number: int, noun: str) -> str:
    """Return `1 team`, `2 teams`, `1,000 policies`; noun: the singular."""
    if number != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("cy") else f"{noun}s"
    return f"{number:,} {noun}"
