"""Suggestions for values and keys that the contract rejects.

A value is only suggested if the contract accepts it in place of the wrong one.
"""

import ipaddress
import json
import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Any, Final

from hpkit.catalog import aws_regions, find_instance_type, region_in_words, vpc_endpoints
from hpkit.text.formatting import plural
from hpkit.text.spelling import near

__all__ = [
    "DASHES",
    "ON_WHEN_EMPTY",
    "YAML_1_1_BOOLS",
    "candidates",
    "explained",
    "is_size",
    "key_candidates",
    "nearest",
    "other_dash",
    "rule_id",
    "seconds_of",
    "units",
    "written",
]

# Words that YAML 1.1 tools read as true and false.
YAML_1_1_BOOLS: Final = re.compile(r"(?:yes|no|on|off)\Z", re.IGNORECASE)
# Dashes that word processors and web pages write in place of a hyphen.
DASHES: Final = re.compile("[\u2010-\u2015\u2212]")
_MINOR_VERSION = re.compile(r"v?(1\.[0-9]{2})[.-]")
_NUMBER = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z%]*)\Z")
_HOURS_ALONE = re.compile(r"(\d+h)(\d{1,2})\Z")
_SIZE = re.compile(r"([kmgtp])i?b?\Z", re.IGNORECASE)
_PART_OF_TIME = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*([a-z]+)\s*")
_ARN = re.compile(r"arn:aws[a-z-]*:.+[:/]([^:/]+)\Z")
# Texts that would mean something else if joined: a decimal number, a fraction, a web address, an ARN.
_NOT_JOINED = re.compile(r"[0-9][.,/][0-9]|:")
_SESSION = re.compile(r"arn:(aws[a-z-]*):sts::(\d{12}):assumed-role/([^/]+)/.*\Z")
_PERSON = re.compile(r"arn:(aws[a-z-]*):iam::(\d{12}):(?:user/.+|root)\Z")
_NO_ROLE = re.compile(r"arn:(aws[a-z-]*):iam::(\d{12}):(group|instance-profile|policy)/.+\Z")
_ACCOUNT_OF_ARN = re.compile(r"(arn:aws[a-z-]*:[a-z0-9-]+:[a-z0-9-]*:)(\d*)(:.+)\Z")
_LETTERS_LIKE_DIGITS = str.maketrans("OoIl", "0011")
_WILDCARD = re.compile(r"(arn:aws[a-z-]*:iam::\d{12}:role/)[^*?]*[*?].*\Z")
_ONE_COLON = re.compile(r"arn:(aws[a-z-]*):iam:(?=\d{12}:)")
_KEYS_NAME = re.compile(r"(?:arn:aws[a-z-]*:kms:[a-z0-9-]+:\d{12}:)?alias/.+\Z")
_KEYS_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\Z")
_PLACEHOLDER = re.compile(r"<[A-Za-z][\w -]*>")
_COMMENT = re.compile(r"([^\s#]+)(#.*)\Z")
_VARIABLE = re.compile(r"\$\{|\{\{|\A\$[A-Za-z_]")
_TIME_OF_DAY = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)\Z")
_CRON_OF_AWS = re.compile(r"cron\((?P<fields>[^()]+)\)\Z")
_ZONE_ID = re.compile(r"[a-z]{2,5}\d-az\d\Z")
_REGION = re.compile(r"[a-z]{2}(?:-[a-z]+)+-\d\Z")
_RULE_ID = re.compile(r"([A-Za-z]{3})[- ]?0*(\d{1,3})\Z")
_WORDS: Final = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
# Frequencies as people write them, and as cron's short forms.
_OFTEN: Final = {
    **dict.fromkeys(("hourly", "every hour"), "@hourly"),
    **dict.fromkeys(("daily", "every day", "each day", "nightly", "every night"), "@daily"),
    **dict.fromkeys(("weekly", "every week"), "@weekly"),
    **dict.fromkeys(("monthly", "every month"), "@monthly"),
    **dict.fromkeys(("yearly", "annually", "every year"), "@yearly"),
}
# Keys of sections that an empty map turns on.
ON_WHEN_EMPTY: Final = ("events", "governance", "grafanaAlerts", "inference", "keda", "sharedPool", "spaces")
# Keys whose text has a format or a name that a rule checks: a quoted number or yes is never valid there.
_OF_A_FORM: Final = (
    "availabilityZone", "instanceGroups", "instanceType", "nodeCidr", "nodeClass", "operator", "vpcCidr",
)  # fmt: skip
# Lists of such texts whose form identifies them.
_LISTS_OF_A_FORM: Final = ("endpoints", "instanceTypes", "privateFrom", "publicCidrs")
# As many addresses as the largest range that anybody has.
_WORLD: Final = 2**24
# Short phrases that mean yes or no.
_YES: Final = ("Enabled", "Enable", "Automatic")
_NO: Final = ("Disabled", "Disable", "Never", "None")
_NEGATION: Final = re.compile(r"(no|don'?t|never|without|dis)", re.IGNORECASE)
# Seconds per unit of time, by all names that people use.
_SECONDS: Final[Mapping[str, Fraction]] = {
    name: Fraction(seconds)
    for names, seconds in (
        (("ms", "millisecond"), "0.001"),
        (("s", "sec", "second"), "1"),
        (("m", "min", "minute"), "60"),
        (("h", "hr", "hour"), "3600"),
        (("d", "day"), "86400"),
        (("w", "week"), "604800"),
    )
    for singular in names
    for name in (singular, f"{singular}s" if len(singular) > 1 else singular)
}
_UNIT_OF_KEY: Final = (("Seconds", 1), ("Minutes", 60), ("Hours", 3600), ("Days", 86400))
_GIB_OF_SIZE: Final = {"g": 1, "t": 1024, "p": 1024**2}
_NICKNAMES: Final = ("@annually", "@yearly", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_PERCENT: Final = 100
_ACCOUNT_DIGITS: Final = 12
# Keys whose whole number is a percentage, or counts to 100 as one does.
_PERCENTAGES: Final = ("borrowLimit", "fairShareWeight", "instanceMemoryAllocationPercentage", "idleGpuPercent")
_COUNTS: Final = ("count", "accelerators", "replicas")
# A word with more letters than this can mean the end of a longer key.
_SHORT: Final = 3


def nearest(key: str, candidates: Iterable[str]) -> str | None:
    """Return the known key that a key probably means: with a similar spelling, or one that ends with it (`count`)."""
    # Least and most are spelt alike, and are opposites.
    opposite = {"max": "min", "min": "max"}.get(key[:3].lower())
    names = [name for name in candidates if opposite is None or not name.lower().startswith(opposite)]
    ends = [name for name in names if len(key) > _SHORT and name.lower().endswith(key.lower())]
    return near(key, names) or min(ends, key=len, default=None)


def rule_id(text: str) -> str | None:
    """Return the rule ID that a text contains in another form (`cap-5`), or None."""
    found = _RULE_ID.match(text[:3] + text[3:].translate(_LETTERS_LIKE_DIGITS))
    return f"{found[1].upper()}{int(found[2]):03d}" if found else None


def explained(value: Any, key: str = "") -> tuple[str, str, str] | None:
    """Return the problem of a value, the fix, and the kind of value that belongs there.

    For values that can't simply be replaced, and only where that kind belongs; "" for any kind. key is the value's key.
    """
    if key == "account" and re.fullmatch(r"[\d\s-]+", str(value)):
        digits = sum(character.isdigit() for character in str(value))
        fix = "Use all 12 digits, in quotes: `aws sts get-caller-identity --query Account` prints them."
        return None if digits == _ACCOUNT_DIGITS else (f"which has {digits} digits; an account ID has 12", fix, "")
    if not isinstance(value, str):
        return None
    if found := _explained_parts(value) or _explained_arn(value):
        return found
    if dash := other_dash(value):
        meant = DASHES.sub("-", value)
        return f"which contains {dash} instead of a hyphen", f"Use `{meant}`.", meant
    if _ZONE_ID.match(value):
        return (
            "which is a zone ID; use the zone's name, which differs between accounts",
            f"Use the name that `aws ec2 describe-availability-zones --zone-ids {value}` prints.",
            "us-west-2a",
        )
    if _REGION.match(value):
        return (
            "which is a region, not a zone",
            f"Add the letter of the zone: {value}a, or another zone of the region.",
            f"{value}a",
        )
    if _KEYS_NAME.match(value) or _KEYS_ID.match(value):
        what = "an alias, which can point to another key later" if "alias/" in value else "a key ID without its ARN"
        return (
            f"which is {what}",
            f"Use the key's ARN, which `aws kms describe-key --key-id {value} --query KeyMetadata.Arn` prints.",
            "arn:aws:kms:us-west-2:123456789012:key/0a1b2c3d-0a1b-0a1b-0a1b-0a1b2c3d4e5f",
        )
    if value.startswith("arn:") and not _ONE_COLON.match(value):
        form = "arn:aws:iam::123456789012:role/NAME"
        return "which isn't the ARN of a role", f"Use the form `{form}`; `aws iam list-roles` prints ARNs.", form
    return None


def _explained_parts(value: str) -> tuple[str, str, str] | None:
    """Return the same for a text with a placeholder, a comment without a space before it, or a variable."""
    if found := _PLACEHOLDER.search(value):
        return f"which still contains the placeholder `{found[0]}`", "Replace it with its value.", ""
    if comment := _COMMENT.match(value):
        fix = f"Add a space: `{comment[1]} {comment[2]}`."
        return f"because `{comment[2]}` is only a comment after a space", fix, comment[1]
    if _VARIABLE.search(value):
        return "which is a variable; variables aren't expanded here", "Replace it with its value.", ""
    return None


def _explained_arn(value: str) -> tuple[str, str, str] | None:
    """Return the same for the ARN of a principal that isn't a role, without a whole account ID, or with a wildcard."""
    if found := _PERSON.match(value) or _NO_ROLE.match(value):
        partition, account, *kind = found.groups()
        role = f"arn:{partition}:iam::{account}:role/NAME"
        whose = f"the ARN of {_a(kind[0])}" if kind else "an account's or a user's"
        return (
            f"which is {whose}; only roles can get access",
            f"Use a role: {role}, with NAME as `aws iam list-roles` prints it.",
            role,
        )
    if session := _SESSION.match(value):
        # The ARN of a session lacks the path of its role, such as that of IAM Identity Center's roles.
        fix = f"Use the ARN that `aws iam get-role --role-name {session[3]} --query Role.Arn` prints."
        role = f"arn:{session[1]}:iam::{session[2]}:role/{session[3]}"
        return "which is the ARN of a session; only roles can get access", fix, role
    if (arn := _ACCOUNT_OF_ARN.match(value)) and len(arn[2]) != _ACCOUNT_DIGITS:
        problem = f"has {plural(len(arn[2]), 'digit')}; an account ID has {_ACCOUNT_DIGITS}" if arn[2] else "is missing"
        role = value.rpartition("/")[2]
        printed = f"`aws iam get-role --role-name {role} --query Role.Arn` prints the ARN."
        fix = f"Use all {_ACCOUNT_DIGITS} digits{f': {printed}' if ':role/' in arn[3] else ' of the account.'}"
        name = re.sub(":(?:user/.+|root)\\Z", ":role/NAME", arn[3])
        return f"whose account ID {problem}", fix, f"{arn[1]}123456789012{name}"
    if wildcard := _WILDCARD.match(value):
        fix = "List the ARN of each role; `aws iam list-roles --query 'Roles[].Arn'` prints them."
        return "which has a wildcard; each role needs its own entry", fix, f"{wildcard[1]}NAME"
    return None


def other_dash(text: str) -> str:
    """Return a text's first dash that isn't a hyphen, with its name, as `–` (en dash); "" without one."""
    found = DASHES.search(text)
    return f"`{found[0]}` ({unicodedata.name(found[0]).lower()})" if found else ""


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind.replace('-', ' ')}"


def key_candidates(key: str) -> Iterator[str]:
    """Yield valid forms of a user-defined key."""
    lowered, of_a_label = key.lower(), re.sub(r"[^A-Za-z0-9._/-]+", "-", key).strip("-")
    if "/" in key:
        # A label's key keeps its prefix.
        yield of_a_label
    yield re.sub(r"[^a-z0-9-]+", "-", lowered).strip("-")
    yield re.sub(r"[^a-z0-9]+", "", lowered)
    yield re.sub(r"[^a-z0-9]+", "", lowered)[:20]
    yield of_a_label
    yield key.upper()


def _in_another_shape(value: Any) -> Iterator[Any]:
    """Yield the only entry of a list or map, and the map of a number or percentage of nodes."""
    if isinstance(value, (tuple, dict)):
        yield from list(value.values() if isinstance(value, dict) else value) if len(value) == 1 else ()
        return
    number, percent, rest = str(value).partition("%")
    if number.isdecimal() and not rest:
        yield {"type": "CAPACITY_PERCENTAGE" if percent else "INSTANCE_COUNT", "value": int(number)}


def candidates(
    value: Any, raw: str | None, key: str, *, bounds: Iterable[int] = (), members: Iterable[Any] = ()
) -> Iterator[Any]:
    """Yield probable meanings of a value, the most likely first.

    - raw: a plain scalar as it was typed.
    - key: the value's key.
    - bounds: upper limits that it exceeds.
    - members: all values that are allowed there.
    """
    allowed = list(members)
    if allowed:
        yield from _members(value, allowed)
    if isinstance(value, (tuple, dict)) or key == "maximumBatchSize":
        yield from _in_another_shape(value)
    elif key in _LISTS_OF_A_FORM or (key in _OF_A_FORM and not isinstance(value, str)):
        # In quotes a number would be text, and still no range, zone or name of something.
        yield from _of_a_form(value, key)
        return
    elif isinstance(value, bool):
        yield from ({},) if value and key in ON_WHEN_EMPTY else ()
        yield str(value).lower()
    elif isinstance(value, (int, float)):
        yield from _from_number(value, raw or str(value), key)
    elif isinstance(value, str):
        yield from _from_text(value.strip(), key)
    # How many there are of something is what its writer counted, not the most that the API takes.
    yield from () if key.lower().endswith(_COUNTS) else bounds
    if isinstance(value, (str, int, float)) and not isinstance(value, bool):
        # Text with commas is several values; the contract would accept it as one.
        if isinstance(value, str) and "," in value:
            yield tuple(part.strip() for part in value.split(","))
        yield from ((value,), (str(value),))


def _of_a_form(value: Any, key: str) -> Iterator[Any]:
    """Yield the list that a single text means, and its only entry; nothing if a rule would reject an entry."""
    parts = [part for part in re.split(r"[,;\s]+", value) if part] if isinstance(value, str) else []
    entries = [_entry_meant(part, key) for part in parts]
    if entries and all(entries):
        yield tuple(entries)
        yield from entries if len(entries) == 1 else ()


def _entry_meant(text: str, key: str) -> str:
    if key == "endpoints":
        return next((name for name in (text, text.lower()) if name in vpc_endpoints()), "")
    if key == "instanceTypes":
        return text if find_instance_type(text) else ""
    try:
        network = ipaddress.IPv4Network(text, strict=False)
    except ValueError:
        return ""
    is_open = key == "publicCidrs" and (not network.is_global or network.num_addresses >= _WORLD)
    return "" if is_open else str(network)


def units(value: Any) -> tuple[str, ...]:
    """Return the durations that a number can mean; none for other values, and for 0."""
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (is_number or (isinstance(value, str) and value.isdecimal())) or not str(value).strip("0"):
        return ()
    return tuple(f"{value}{unit}" for unit in "smh")


def _members(value: Any, allowed: list[Any]) -> Iterator[Any]:
    names = {str(member): member for member in allowed}
    if _NEGATION.match(str(value)):
        # Otherwise, NoLend would mean Lend.
        names = {name: member for name, member in names.items() if _NEGATION.match(name)} or names
    suggestion = _WORDS.get(str(value).lower())
    likely = near(str(value), names)
    if isinstance(value, (int, float)) and all(isinstance(member, int) for member in allowed):
        yield min(allowed, key=lambda member: abs(member - value))
    elif suggestion is not None:
        yield from (member for member in (_YES if suggestion else _NO) if member in names)
    elif likely:
        yield names[likely]
    else:
        begun = [name for name in names if len(str(value)) > _SHORT and name.lower().startswith(str(value).lower())]
        yield from (names[name] for name in begun if len(begun) == 1)


def _from_number(value: float, raw: str, key: str) -> Iterator[Any]:
    if key == "share" and value == 1:
        # All of it, or a hundredth.
        return
    yield raw
    if 0 < value < 1:
        yield f"{value * _PERCENT:g}%"
        if key in _PERCENTAGES and float(value * _PERCENT).is_integer():
            yield int(value * _PERCENT)
    yield f"{raw}%"
    if float(value).is_integer():
        yield int(value)
    if not value:
        # With a lifetime of zero, Karpenter would replace each node immediately.
        yield "Never" if key == "expireAfter" else "0s"
    if value in (0, 1):
        yield bool(value)


def _from_text(text: str, key: str) -> Iterator[Any]:
    digits = text.translate(_LETTERS_LIKE_DIGITS)
    if digits.isdecimal() and not text.isdecimal() and text[0].isdecimal():
        # 1O is ten, never one.
        yield from (int(digits), digits)
        return
    yield from _from_word(text, key)
    seconds, number = seconds_of(text), _NUMBER.match(text)
    if seconds is not None:
        yield from _from_seconds(seconds, key)
    if number:
        yield from _from_amount(number[1], number[2], key, is_time=seconds is not None)
    yield from (rule,) if (rule := rule_id(text)) else ()
    yield _ONE_COLON.sub(r"arn:\1:iam::", text)
    yield text.strip("'")
    yield text
    yield from _versions(text)
    yield text.lower()
    yield text.capitalize()
    yield from _places(text, key)
    yield from _addressed(text)
    if seconds is None and not _NOT_JOINED.search(text):
        yield from key_candidates(text)
    if number and seconds is None:
        yield number[1]


def _from_word(text: str, key: str) -> Iterator[Any]:
    """Yield what a word means for its key: yes or no, a frequency, an account."""
    word = _WORDS.get(text.lower())
    yield from (word,) if word is not None else ()
    if key in ON_WHEN_EMPTY and (word is True or text.lower() in ("enable", "enabled")):
        yield {}
    if key == "schedule":
        yield from _schedules(text)
    if text.startswith("@") and (nickname := near(text, _NICKNAMES)):
        yield nickname
    if key == "prefix":
        yield f"{text.strip('/')}/"
    if key == "path":
        yield f"/{text.strip('/')}"
    if key == "account" and (account := re.search(r"(?<!\d)\d{12}(?!\d)", text)):
        yield account[0]


def _places(text: str, key: str) -> Iterator[str]:
    if key == "region":
        yield from _regions(text)
    elif key == "availabilityZone":
        yield from (f"{region}{text[-1].lower()}" for region in _regions(text[:-1]))


def _versions(text: str) -> Iterator[str]:
    yield text.removeprefix("v")
    if minor := _MINOR_VERSION.match(text):
        yield minor[1]


def _schedules(text: str) -> Iterator[str]:
    """Yield the schedule that a text means, in cron's five fields or a short form."""
    yield _OFTEN.get(text.lower(), "")
    if time := _TIME_OF_DAY.match(text):
        yield f"{int(time[2])} {int(time[1])} * * *"
    if form := _CRON_OF_AWS.match(text):
        fields = form["fields"].split()[:5]
        # AWS counts the days of the week from 1, cron from 0: only their names are the same.
        if not any(each.isdigit() for each in "".join(fields[4:])):
            yield " ".join(fields).replace("?", "*")


def _regions(text: str) -> Iterator[str]:
    """Yield the regions that a text can name, in words or with other separators."""
    if (shown := region_in_words(text)) is not None:
        yield shown
    joined = {re.sub(r"[^a-z0-9]", "", region): region for region in aws_regions()}
    letters = re.sub(r"[^a-z0-9]", "", text.lower())
    likely_region = joined.get(letters) or joined.get(letters[:-1])
    likely = likely_region or near(text, aws_regions())
    # Regions differ by a word or a number, so a similar spelling can be another region.
    if likely and (likely_region or likely[-1] == letters[-1:]):
        yield likely


def _addressed(text: str) -> Iterator[str]:
    """Yield what an address contains: a bucket, the host and path of a registry, the last part of an ARN."""
    scheme, separator, rest = text.partition("://")
    if separator:
        if scheme == "s3":
            yield rest.partition("/")[0]
        yield rest.rstrip("/")
    if arn := _ARN.match(text):
        yield arn[1]


def seconds_of(text: str) -> Fraction | None:
    """Return the duration in a text, with units in any spelling, or None."""
    rest = re.sub(r"\Apt?(?=[0-9])", "", text.lower())
    rest = _HOURS_ALONE.sub(r"\1\2m", rest)
    total = Fraction(0)
    while rest:
        part = _PART_OF_TIME.match(rest)
        if part is None or part[2] not in _SECONDS:
            return None
        total += Fraction(part[1]) * _SECONDS[part[2]]
        rest = rest[part.end() :]
    return total if text else None


def _from_seconds(total: Fraction, key: str) -> Iterator[Any]:
    own = next((each for unit, each in _UNIT_OF_KEY if key.endswith(unit)), None)
    if own is not None:
        yield math.ceil(total / own)
        return
    if key.endswith("Interval"):
        yield math.ceil(total)
    seconds = math.ceil(total)
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    parts = [f"{count}{unit}" for count, unit in ((hours, "h"), (minutes, "m"), (seconds % 60, "s")) if count]
    if parts:
        yield "".join(parts)
    if seconds % 60:
        # Where seconds aren't allowed: the next larger unit.
        yield f"{math.ceil(total / 60)}m"


def _from_amount(digits: str, unit: str, key: str, *, is_time: bool) -> Iterator[Any]:
    whole = (int(float(digits)),) if float(digits).is_integer() else ()
    if unit.lower() in ("%", "percent", "pct"):
        yield f"{digits}%"
        yield f"{float(digits):.3f}".rstrip("0").rstrip(".") + "%"
        yield from (f"{_PERCENT}%",) if float(digits) > _PERCENT else ()
        yield from whole
    elif unit == "m" and key == "vCpu":
        # Thousandths, as Kubernetes counts CPUs.
        cpus = Fraction(digits) / 1000
        yield int(cpus) if cpus.denominator == 1 else float(cpus)
    elif size := _SIZE.match(unit):
        yield f"{digits}{unit[:-1] if unit.lower().endswith('b') else unit}"
        # As Kubernetes writes them: of a thousand k, of 1024 Ki, and all others with a capital.
        of_1024 = "i" in unit.lower()
        yield f"{digits}{size[1].lower() if size[1] in 'kK' and not of_1024 else size[1].upper()}{'i' * of_1024}"
        yield from _gib(Fraction(digits), size[1].lower()) if is_size(key) else ()
        if key == "instanceStorageConfigs":
            yield from (
                ({"ebsVolumeConfig": {"volumeSizeInGB": size_in_gib}},)
                for size_in_gib in _gib(Fraction(digits), size[1].lower())
            )
    elif unit.lower().startswith("milli"):
        yield f"{digits}m"
    elif not unit or not (is_time or key == "borrowLimit"):
        # A borrow limit is a percentage: 2x may mean 200.
        yield from whole
        if not unit:
            yield from (float(digits), f"{digits}%")


def is_size(key: str) -> bool:
    """Return whether a key is in GiB; the SageMaker API calls some of them GB."""
    return key.endswith(("GiB", "InGB"))


def _gib(number: Fraction, size: str) -> Iterator[int]:
    # FSx counts 1.2 TiB as 1200 GiB.
    for each in (_GIB_OF_SIZE.get(size), 1000 if size == "t" else None):
        if each is not None and (number * each).denominator == 1:
            yield int(number * each)


def written(value: Any, plain: Any) -> str:
    """Format a value as YAML on one line; plain reads an unquoted scalar, and determines whether it needs quotes."""
    if isinstance(value, tuple):
        return f"[{', '.join(written(each, plain) for each in value)}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{written(key, plain)}: {written(each, plain)}' for key, each in value.items())}}}"
    if isinstance(value, str):
        bare = re.match(r"[A-Za-z0-9][A-Za-z0-9 ._/%+-]*\Z", value) and plain(value) == value
        return value if bare and not YAML_1_1_BOOLS.match(value) else json.dumps(value, ensure_ascii=False)
    return json.dumps(value)
