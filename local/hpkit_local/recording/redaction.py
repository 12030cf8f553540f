"""Removes accounts, names and secrets from the parameters and answers of calls, by the API models.

Text is kept only if it's a word of the API models, or a part of AWS's names. Every other word becomes a placeholder of
the same length and form, the same one for each of its occurrences. A placeholder in a name is therefore also in the
ARNs and policies that contain the name, so that recorded calls can be sent again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from functools import cache
from ipaddress import ip_network
from math import isfinite
from typing import Any, Final
from urllib.parse import quote, unquote

from botocore.model import Shape, StructureShape

from hpkit_local.aws.protocol import service_model
from hpkit_local.aws.service import services

__all__ = ["PLACEHOLDER", "UNIT", "Plain", "Redactor"]

ACCOUNT: Final = "111122223333"
_ACCOUNT_DIGITS: Final = 12
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_ADDRESS = r"\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2})?|(?<![\w:])(?=[^:]*:[^:]*:)[0-9a-fA-F:]{2,39}(?![\w:])(?:/\d{1,3})?"
_REGION = r"[a-z]{2}(?:-gov|-iso[a-z]?)?-(?:central|(?:north|south)(?:east|west)?|east|west)-\d[a-f]?(?![^\W_])"
_ZONE_ID = r"[a-z]{2,5}\d-(?:[a-z]{3}\d-)?az\d(?![^\W_])"
# What is replaced, or kept, as one: characters encoded for URLs, UUIDs, addresses, regions and zones, words.
_ENCODED = r"%(?:2[\dA-Fa-f]|3[A-Fa-f]|40|5[B-Fb-f]|60|7[B-Eb-e])"
UNIT: Final = re.compile(
    rf"(?P<encoded>{_ENCODED})|(?P<uuid>{_UUID})|(?P<address>{_ADDRESS})|(?P<zone>(?<![^\W_])(?:{_REGION}|{_ZONE_ID}))|(?P<word>[^\W_]+)"
)
_ARN = re.compile(r"arn:[\w-]+:[\w-]*:[\w-]*:(?P<account>\d*|aws):(?P<resource>[^\s\"',]+)")
PLACEHOLDER: Final = re.compile(
    r"[nN]\d+|e\d{7,}(?:-0000-4000-8000-0{12})?|8\d{5,}|\d{12}|198\.1[89]\.\d+\.\d+(?:/\d+)?|2001:db8::[0-9a-f]+(?:/\d+)?"
)

_SECRET = re.compile(
    r"(?i)passw|secret|token|credential|certificate|private.?key|key.?material|public.?key|user.?data|kubeconfig"
    r"|passphrase|signature|thumbprint|marker$|samlassertion|plaintext|ciphertext"
)
# IDs, ARNs and names of secret objects are only names.
_NAMES_SECRET = re.compile(r"(?i)(?:id|ids|arn|arns|name|key.?pair|algorithms?)$")
_CHOSEN = re.compile(
    r"(?i)(?:name|names|description|email|user|users|alias|team|owner|title|bucket|prefix|sid|path|sessionname|label)$"
    r"|^key$"
)
# Names that AWS chose.
_OF_AWS = re.compile(
    r"(?i)^(?:addonnames?|servicename|quotaname|regionnames?|zonenames?|metricname|instancetypename|networkbordergroup"
    r"|availabilityzone(?:name)?s?|ownername|filtername)$"
)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z][a-z]+|[a-z]+|\d{1,2}")
_LEAST_PART = 2
_COMMON = re.compile(r"\d{1,5}|\d[a-f]|v\d{1,2}|\d{8}T\d{6}Z")
_HEX = re.compile(r"[0-9a-f]{8,}")
_UPPER = re.compile(r"[A-Z0-9]+")
# Words that services check or add, also in names that users choose.
_FIXED = frozenset(
    re.findall(
        r"\w+",
        "arn|aws|amazon|amazonaws|com|internal|default|root|hpkit|kubernetes|k8s|io|eks|iam|ec2|s3|sagemaker|hyperpod|fsx|"
        "kms|ecr|logs|events|sns|sts|cluster|role|policy|key|instance|profile|alias|pod|pods|node|nodes|vpc|subnet|oidc|"
        "http|https|organization|environment|stack|managed|by|Name|vendedlogs|containerinsights|compute|quota|scheduler|"
        "config|addon|access|entry|podidentityassociation|log|group|security|association|internet|natgateway|route|table|"
        "true|false|local|secrets|system|kueue|i|ip|ami|sg|sgr|rtb|rtbassoc|igw|nat|eipalloc|eipassoc|eni|acl|aclassoc|vpce|dopt|vol|snap|lt|cidr|assoc|"
        # Names of add-ons.
        "cni|coredns|kube|proxy|identity|agent|ebs|csi|driver|cloudwatch|observability|cert|manager|metrics|server|eksbuild|"
        "taskgovernance|training|operator|inference|spaces|governance|task",
    )
)
# Words of AWS's names and error codes that the API models lack.
_OTHERS = frozenset(
    re.findall(
        r"\w+",
        "karpenter|elb|owned|shared|StringEquals|StringLike|ArnEquals|ArnLike|Bool|Null|Statement|Action|Effect|Allow|Deny|"
        "Resource|Condition|Principal|Sid|Version|NotAction|NotResource|Service|Federated|ForAnyValue|ForAllValues|sub|aud|"
        "Dependency|Violation|Malformed|Mismatch|Insufficient|Exceeded|Unsupported|Throttled|Throttling|Denied|Expired|Unauthorized|"
        "Authorization|Slow|Precondition|Duplicate|Undefined|Unavailable",
    )
)
_LONGEST_OPAQUE: Final = 64


class Plain:
    """Turns values of an API model's shapes into plain JSON: modeled members, ISO times, sizes of binary contents."""

    def text(self, shape: Shape | None, member: str, value: str) -> str:  # noqa: ARG002 - see Redactor
        """Return the text of a member: a dotted path in its structure."""
        return value

    def number(self, value: float) -> float:
        """Return a number."""
        return value

    def value(self, shape: Shape | None, value: Any, member: str = "") -> Any:
        """Return a value as plain JSON."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, datetime):
            return value.isoformat()
        if isinstance(value, bytes | bytearray) or getattr(shape, "type_name", "") == "blob":
            return {"bytes": len(value) if isinstance(value, bytes | bytearray | str) else 0}
        if isinstance(value, int | float):
            return self.number(value)
        if isinstance(value, str):
            return self.text(shape, member, value)
        if isinstance(value, list | tuple):
            return [self.value(getattr(shape, "member", None), item, member) for item in value]
        if not isinstance(value, Mapping):
            return None
        if isinstance(shape, StructureShape) and not getattr(shape, "is_document_type", False):
            meanings = _pair_member(shape)
            return {
                name: self.value(shape.members[name], item, f"{member}.{meanings.get(name, name)}")
                for name, item in value.items()
                if name in shape.members
            }
        return {
            self.text(getattr(shape, "key", None), f"{member}.mapKey", str(name)): self.value(
                getattr(shape, "value", None), item, f"{member}.{name}.name"
            )
            for name, item in value.items()
        }


class Redactor(Plain):
    """Replaces what identifies an account or its users; `names` are words that users chose, as far as known."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._placeholders: dict[str, str] = {}
        self._accounts: dict[str, str] = {}
        self._addresses: dict[str, str] = {}
        for name in names:
            self.words(name, chosen=True)

    def text(self, shape: Shape | None, member: str, value: str) -> str:
        """Return the text of a member: a dotted path in its structure, whose secrets are replaced as a whole."""
        if value in (getattr(shape, "enum", None) or ()):
            return value
        names = member.split(".")
        if any(_SECRET.search(name) and not _NAMES_SECRET.search(name) for name in names) or _is_sensitive(shape):
            return self._opaque(value)
        name = names[-1]
        return self.words(value, chosen=bool(_CHOSEN.search(name)) and not _OF_AWS.search(name))

    def words(self, value: str, *, chosen: bool = False, known: frozenset[str] = frozenset()) -> str:
        """Return a text with placeholders; if users chose it, only fixed words are kept. known: more words to keep."""
        document = _document(value)
        if document is not None:
            return document(lambda text: self.words(text, chosen=chosen), self.number)
        kept, end = [], 0
        for found in _ARN.finditer(value):
            kept.append(self._units(value[end : found.start("resource")], known=known))
            resource, of_aws = found["resource"], found["account"] == "aws"
            first = len(resource) - len(re.sub(r"^[\w-]+(?=[/:])", "", resource))
            kept.append(self._units(resource[:first]) + self._units(resource[first:], chosen=not of_aws))
            end = found.end()
        return "".join(kept) + self._units(value[end:], chosen=chosen, known=known)

    def message(self, value: str, service: str) -> str:
        """Return an error message, with the words that the service's documentation uses."""
        return self.words(value, known=_documented(service))

    def _units(self, value: str, *, chosen: bool = False, known: frozenset[str] = frozenset()) -> str:
        def unit(found: re.Match[str]) -> str:
            text, group = found[0], found.lastgroup
            if group == "word":
                return self._word(text, chosen=chosen, known=known)
            if group == "address":
                address = self._address(text)
                return address if address is not None else _WORDS.sub(lambda word: self._word(word[0]), text)
            if group == "uuid":
                return self._new(text, lambda number: f"e{number:07d}-0000-4000-8000-{0:012d}")
            return text

        return UNIT.sub(unit, value)

    def _word(self, word: str, *, chosen: bool = False, known: frozenset[str] = frozenset()) -> str:
        if word.isdigit() and len(word) == _ACCOUNT_DIGITS:
            return self._account(word)
        if word in _FIXED or _COMMON.fullmatch(word):
            return word
        if word not in self._placeholders and not chosen and _is_word(word, known):
            return word
        return self._new(word, lambda number: _placeholder(word, number))

    def _new(self, text: str, make: Callable[[int], str]) -> str:
        if text not in self._placeholders:
            self._placeholders[text] = make(len(self._placeholders) + 1)
        return self._placeholders[text]

    def _opaque(self, value: str) -> str:
        """Return a placeholder for a whole text, at least as long, because some have a least length."""
        width = min(len(value), _LONGEST_OPAQUE) - 1
        return self._new(f"opaque:{value}", lambda number: f"N{number:0{max(width, 1)}d}") if value else value

    def _account(self, account: str) -> str:
        others = len(self._accounts)
        return self._accounts.setdefault(account, f"2222{others:08d}" if others else ACCOUNT)

    def _address(self, text: str) -> str | None:
        """Return an address, unless it's public; None if it isn't an address."""
        try:
            network = ip_network(text, strict=False)
        except ValueError:
            return None
        if not network.is_global or network.network_address.is_unspecified or network.is_private:
            return text
        slash = text[text.index("/") :] if "/" in text else ""
        number = len(self._addresses) + 1
        if network.version == 6:
            fresh = f"2001:db8::{number:x}"
        elif network.num_addresses == 1:
            fresh = f"198.18.{number // 256}.{number % 256}"
        else:
            fresh = f"198.19.{number % 256}.0"
        base, _, _ = str(ip_network(f"{fresh}{slash}", strict=False)).partition("/")
        return self._addresses.setdefault(text, f"{base}{slash}")

    def number(self, value: float) -> float:
        """Return a number; that of an account is replaced."""
        digits = str(abs(int(value))) if isfinite(value) else ""
        return int(self._account(digits)) if len(digits) == _ACCOUNT_DIGITS else value


_WORDS: Final = re.compile(r"[^\W_]+")


def _pair_member(shape: StructureShape) -> dict[str, str]:
    """Return the meaning of members whose names have none: of tags and filters."""
    members = {name.lower(): name for name in shape.members}
    if members.keys() == {"key", "value"}:
        return {members["key"]: "tagKey", members["value"]: "valueName"}
    if members.keys() == {"name", "values"}:
        return {members["name"]: "filterName", members["values"]: "values"}
    return {}


def _is_sensitive(shape: Shape | None) -> bool:
    return shape is not None and bool(shape.metadata.get("sensitive"))


def _document(value: str) -> Callable[[Callable[[str], str], Callable[[float], float]], str] | None:
    """Return how to write a JSON document, which can be encoded for URLs, with other texts; None if it isn't one."""
    encoded = value.startswith(("%7B", "%5B"))
    readable = unquote(value) if encoded else value
    if not readable.lstrip().startswith(("{", "[")):
        return None
    with suppress(ValueError, RecursionError):
        document = json.loads(readable)

        def write(text: Callable[[str], str], number: Callable[[float], float]) -> str:
            written = json.dumps(_rewritten(document, text, number))
            return quote(written, safe="") if encoded else written

        return write
    return None


def _rewritten(value: Any, text: Callable[[str], str], number: Callable[[float], float]) -> Any:
    if isinstance(value, str):
        return text(value)
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int | float):
        return number(value)
    if isinstance(value, list):
        return [_rewritten(item, text, number) for item in value]
    return {text(key): _rewritten(item, text, number) for key, item in value.items()}


def _placeholder(word: str, number: int) -> str:
    width = max(len(word) - 1, 1)
    if word.isdigit():
        return f"8{number:0{max(width, 5)}d}"
    if _HEX.fullmatch(word):
        return f"e{number:0{width}d}"
    return f"{'N' if _UPPER.fullmatch(word) else 'n'}{number:0{width}d}"


def _is_word(word: str, known: frozenset[str]) -> bool:
    """Return whether a word is one of the API models or of AWS's names, or is composed of such words and known ones."""
    words, parts = _vocabulary()
    if word in words:
        return True
    own = _PARTS.findall(word)
    whole = "".join(own) == word and not word.isdigit()
    return whole and all(part.isdigit() or part.lower() in parts or part.lower() in known for part in own)


@cache
def _vocabulary() -> tuple[frozenset[str], frozenset[str]]:
    """Return the words of the API models and of AWS's names, and the parts of these words."""
    words, errors = {*_FIXED, *_OTHERS}, set[str]()
    for service in services():
        model = service_model(service)
        words.update(model.operation_names)
        for name in model.shape_names:
            shape = model.shape_for(name)
            words.update(word for value in getattr(shape, "enum", ()) for word in _WORDS.findall(value))
            if isinstance(shape, StructureShape):
                words.update(shape.members)
                if shape.metadata.get("exception"):
                    errors.update(_WORDS.findall(shape.error_code))
    parts = {part.lower() for word in words for part in _PARTS.findall(word) if len(part) > _LEAST_PART}
    return frozenset(words | errors), frozenset(parts)


@cache
def _documented(service: str) -> frozenset[str]:
    """Return the words in the documentation of a service's operations."""
    model = service_model(service)
    texts = (model.operation_model(name).documentation for name in model.operation_names)
    return frozenset(word.lower() for text in texts for word in re.findall(r"[A-Za-z]+", text))
