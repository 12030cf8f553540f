"""What a person may have meant by a value or a key that the contract does not take.

Does not: judge. Every value it offers is only proposed once the contract has taken it in place of the wrong one.
"""

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from hpkit.spelling import near

__all__ = ["candidates", "explained", "key_candidates", "nearest", "other_tool", "written"]

_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z%]*)\Z")
_DAY = re.compile(r"(\d{1,2})([./-])(\d{1,2})\2(\d{4})\Z")
_YEAR_FIRST = re.compile(r"(\d{4})[./](\d{1,2})[./](\d{1,2})\Z")
_SESSION = re.compile(r"arn:(aws[a-z-]*):sts::(\d{12}):assumed-role/([^/]+)/.*\Z")
_PERSON = re.compile(r"arn:(aws[a-z-]*):iam::(\d{12}):(?:user/.+|root)\Z")
_ZONE_ID = re.compile(r"[a-z]{2,5}\d-az\d\Z")
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d\Z")
_RULE_ID = re.compile(r"([A-Za-z]{3})[- ]?0*(\d{1,3})\Z")
# What people call a key by another name of the field.
_OTHER_NAMES: Final = {"gpu": "accelerators", "gpus": "accelerators", "sku": "instanceType", "az": "availabilityZone"}
_WORDS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_HOURS_A_DAY: Final = 24
_LAST_MONTH: Final = 12
# The end of a longer key is meant by a word of more letters than that.
_SHORT: Final = 3
# Keys at the top of files that other tools read, and what such a file is.
_TOOLS: Final[tuple[tuple[frozenset[str], str], ...]] = (
    (frozenset({"apiVersion", "kind"}), "a Kubernetes manifest"),
    (frozenset({"apiVersion", "name", "version"}), "a Helm chart's Chart.yaml"),
    (frozenset({"AWSTemplateFormatVersion"}), "a CloudFormation template"),
    (frozenset({"Resources"}), "a CloudFormation template"),
    (frozenset({"name", "runtime"}), "a Pulumi project (Pulumi.yaml)"),
    (frozenset({"encryptionsalt"}), "the settings of a Pulumi stack (Pulumi.<stack>.yaml)"),
    (frozenset({"config"}), "the settings of a Pulumi stack (Pulumi.<stack>.yaml)"),
    (frozenset({"on", "jobs"}), "a GitHub workflow"),
    (frozenset({"services"}), "a Compose file"),
    (frozenset({"terraform_version"}), "a Terraform state"),
)


def other_tool(data: Mapping[str, Any]) -> str | None:
    """Say what a file is that another tool reads; None for one that may be meant for this kit."""
    if data.keys() & {"organization", "environments"}:
        return None
    found = next((what for keys, what in _TOOLS if keys <= data.keys()), None)
    kind = data.get("kind")
    return f"{found} ({kind})" if found and isinstance(kind, str) else found


def nearest(key: str, known: Iterable[str]) -> str | None:
    """Return the known key that one is likely to mean: spelt alike, or the one that ends with it (`count`)."""
    names = list(known)
    if (other := _OTHER_NAMES.get(key.lower(), "")) in names:
        return other
    ends = [name for name in names if len(key) > _SHORT and name.lower().endswith(key.lower())]
    return near(key, names) or min(ends, key=len, default=None)


def explained(value: Any) -> tuple[str, str] | None:
    """Return what is wrong with a value, and what to do, where another value cannot simply take its place."""
    if not isinstance(value, str):
        return None
    if person := _PERSON.match(value):
        partition, account = person.groups()
        return (
            "which is a person's or an account's, and access is given to roles",
            f"Name a role: arn:{partition}:iam::{account}:role/NAME, with NAME as `aws iam list-roles` has it.",
        )
    if _ZONE_ID.match(value):
        return (
            "which is the ID of a zone, and differs from its name from account to account",
            f"Write the zone's name: `aws ec2 describe-availability-zones --zone-ids {value}` says it.",
        )
    return None


def key_candidates(key: str) -> Iterator[str]:
    """Yield what a key of the user's own choice may be written as."""
    lowered = key.lower()
    yield re.sub(r"[^a-z0-9-]+", "-", lowered).strip("-")
    yield re.sub(r"[^a-z0-9]+", "", lowered)
    yield re.sub(r"[^a-z0-9]+", "", lowered)[:20]
    yield re.sub(r"[^A-Za-z0-9._/-]+", "-", key).strip("-")


def candidates(value: Any, raw: str | None, bounds: Iterable[int], members: Iterable[Any]) -> Iterator[Any]:
    """Yield what may be meant by a value, the likeliest first.

    raw is a plain scalar as it was typed, bounds are the limits that it passes, members all that are allowed there.
    """
    allowed = list(members)
    if allowed:
        yield from _members(value, allowed)
    if isinstance(value, tuple):
        yield from value if len(value) == 1 else ()
    elif isinstance(value, bool):
        yield str(value).lower()
    elif isinstance(value, (int, float)):
        yield from _from_number(value, raw or str(value))
    elif isinstance(value, str):
        yield from _from_text(value.strip())
    yield from bounds
    if isinstance(value, (str, int, float)):
        yield from ((value,), (str(value),))
        if isinstance(value, str) and "," in value:
            yield tuple(part.strip() for part in value.split(","))


def _members(value: Any, allowed: list[Any]) -> Iterator[Any]:
    names = {str(member): member for member in allowed}
    likely = near(str(value), names)
    if isinstance(value, (int, float)) and all(isinstance(member, int) for member in allowed):
        yield min(allowed, key=lambda member: abs(member - value))
    elif likely:
        yield names[likely]


def _from_number(value: float, raw: str) -> Iterator[Any]:
    yield raw
    yield f"{raw}%"
    yield f"{raw}m"
    if float(value).is_integer():
        yield int(value)


def _from_text(text: str) -> Iterator[Any]:
    if text.lower() in _WORDS:
        yield _WORDS[text.lower()]
    if number := _NUMBER.match(text):
        yield from _from_amount(*number.groups())
    yield from _from_date(text)
    if rule := _RULE_ID.match(text):
        yield f"{rule[1].upper()}{int(rule[2]):03d}"
    if session := _SESSION.match(text):
        yield f"arn:{session[1]}:iam::{session[2]}:role/{session[3]}"
    yield text
    yield text.removeprefix("v")
    yield text.lower()
    yield text.capitalize()
    if _REGION.match(text.lower()):
        yield f"{text.lower()}a"
    if _REGION.match(text.lower()[:-1]):
        yield text.lower()[:-1]
    yield from key_candidates(text)


def _from_amount(digits: str, unit: str) -> Iterator[Any]:
    if unit.lower().startswith("d"):
        yield f"{int(float(digits) * _HOURS_A_DAY)}h"
    if unit:
        yield f"{digits}{unit[:-1] if unit.lower().endswith('b') else unit}"
        yield f"{digits}{'%' if unit.lower() in ('%', 'percent', 'pct') else unit[:1].lower()}"
    if float(digits).is_integer():
        yield int(float(digits))
    yield float(digits)
    yield f"{digits}%"


def _from_date(text: str) -> Iterator[str]:
    if year_first := _YEAR_FIRST.match(text):
        yield from _day(*map(int, year_first.groups()))
    if day := _DAY.match(text):
        first, mark, second, year = int(day[1]), day[2], int(day[3]), int(day[4])
        # With a slash, some write the month first; only where it cannot be one is it certain.
        if mark == "." or first > _LAST_MONTH:
            yield from _day(year, second, first)
        elif second > _LAST_MONTH:
            yield from _day(year, first, second)


def _day(year: int, month: int, day: int) -> Iterator[str]:
    try:
        yield datetime.date(year, month, day).isoformat()
    except ValueError:
        return


def written(value: Any, plain: Any) -> str:
    """Write a value as YAML has it on one line; plain reads a scalar without quotes, and says when it needs them."""
    if isinstance(value, tuple):
        return f"[{', '.join(written(each, plain) for each in value)}]"
    if isinstance(value, str):
        bare = re.match(r"[A-Za-z0-9][A-Za-z0-9 ._/%+-]*\Z", value) and plain(value) == value
        return value if bare else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)
