"""Durations such as `90s`, `1h30m` or `3d`, as Go, Kubernetes, files and options write them."""

import re
from typing import Final

__all__ = ["seconds_in"]

_UNITS: Final = {
    "ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800,
}  # fmt: skip
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ns|us|µs|ms|[smhdw])")


def seconds_in(text: str) -> float:
    """Return the seconds of a duration; `0` needs no unit. Raises ValueError if the text isn't a duration."""
    if text != "0" and not re.fullmatch(rf"(?:{_PART.pattern})+", text):
        raise ValueError(f"{text!r} isn't a duration")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
