"""Counts as a person writes them."""

__all__ = ["plural"]


def plural(number: int, word: str) -> str:
    """Return `1 team`, `2 teams`, `1,000 policies`; word: the singular."""
    if number != 1:
        word = f"{word[:-1]}ies" if word.endswith("cy") else f"{word}s"
    return f"{number:,} {word}"
