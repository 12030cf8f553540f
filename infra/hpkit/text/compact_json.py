"""JSON for generated files that people read: short values are on one line."""

import json
from typing import Any, Final

__all__ = ["compact_json"]

_WIDTH: Final = 120


def compact_json(value: Any, *, indent: int = 0, used: int = 0) -> str:
    """Return a value as JSON. A map or list is on one line, or has one line per entry if it's too long.

    indent: spaces before the line; used: characters of the line that are in use, such as by a key.
    """
    line = json.dumps(value, ensure_ascii=False)
    if indent + used + len(line) <= _WIDTH or not value or not isinstance(value, (dict, list)):
        return line
    inside = " " * (indent + 1)
    if isinstance(value, dict):
        keys = {key: f"{json.dumps(key, ensure_ascii=False)}: " for key in value}
        parts = [
            f"{inside}{keys[key]}{compact_json(part, indent=indent + 1, used=len(keys[key]) + 1)}"
            for key, part in value.items()
        ]
    else:
        parts = [f"{inside}{compact_json(part, indent=indent + 1, used=1)}" for part in value]
    begin, end = "{}" if isinstance(value, dict) else "[]"
    return begin + "\n" + ",\n".join(parts) + f"\n{' ' * indent}{end}"
