"""Rules of a bucket's lifecycle, in the provider's format and in S3's."""

from __future__ import annotations

from typing import Any, Final

from hpkit_local.plugins.aws.resource_type import Prop
from hpkit_local.plugins.aws.shapes import camel, pascal, tag_list, tag_map

__all__ = ["LIFECYCLE", "from_rules", "to_rules"]

Document = dict[str, Any]

# The provider's name of each part of a rule, and S3's where it is more than another first letter.
_NAMES = {
    "id": "ID",
    "abortIncompleteMultipartUpload": "AbortIncompleteMultipartUpload",
    "noncurrentVersionExpiration": "NoncurrentVersionExpiration",
    "noncurrentVersionTransitions": "NoncurrentVersionTransitions",
}

_SIZES = (Prop("objectSizeGreaterThan", "integer"), Prop("objectSizeLessThan", "integer"), Prop("prefix"))
_NEWER = Prop("newerNoncurrentVersions", "integer")
_DAYS = (Prop("date"), Prop("days", "integer"))
LIFECYCLE: Final = Prop(
    "rules",
    "list",
    members=(
        Prop("id", required=True),
        Prop("status", required=True),
        Prop("prefix"),
        Prop(
            "filter",
            "object",
            members=(
                *_SIZES,
                Prop("and", "object", members=(*_SIZES, Prop("tags", "map"))),
                Prop("tag", "object", members=(Prop("key", required=True), Prop("value", required=True))),
            ),
        ),
        Prop("expiration", "object", members=(*_DAYS, Prop("expiredObjectDeleteMarker", "boolean"))),
        Prop("transitions", "list", members=(*_DAYS, Prop("storageClass", required=True))),
        Prop(
            "noncurrentVersionExpiration", "object", members=(Prop("noncurrentDays", "integer", required=True), _NEWER)
        ),
        Prop(
            "noncurrentVersionTransitions",
            "list",
            members=(Prop("noncurrentDays", "integer", required=True), Prop("storageClass", required=True), _NEWER),
        ),
        Prop("abortIncompleteMultipartUpload", "object", members=(Prop("daysAfterInitiation", "integer"),)),
    ),
)


def to_rules(rules: list[Document]) -> list[Document]:
    """Return rules as S3 takes them: every rule has a filter, if only an empty one."""
    return [_to_rule(rule) for rule in rules]


def _to_rule(rule: Document) -> Document:
    api_rule = {_NAMES.get(name, name[:1].upper() + name[1:]): pascal(value) for name, value in rule.items()}
    chosen = dict(rule.get("filter") or {})
    both = chosen.get("and")
    if both and both.get("tags"):
        api_rule["Filter"]["And"]["Tags"] = tag_list(both["tags"])
    if not chosen and "prefix" not in rule:
        api_rule["Filter"] = {"Prefix": ""}
    return api_rule


def from_rules(rules: list[Document]) -> list[Document]:
    """Return rules in the provider's format."""
    return [_from_rule(rule) for rule in rules]


def _from_rule(rule: Document) -> Document:
    props = {"id": rule["ID"], **camel({name: value for name, value in rule.items() if name != "ID"})}
    both = rule.get("Filter", {}).get("And")
    if both and both.get("Tags"):
        props["filter"]["and"]["tags"] = tag_map(both["Tags"])
    if "date" in props.get("expiration", {}):
        props["expiration"]["date"] = props["expiration"]["date"].strftime("%Y-%m-%dT%H:%M:%SZ")
    for transition in props.get("transitions", []):
        if "date" in transition:
            transition["date"] = transition["date"].strftime("%Y-%m-%dT%H:%M:%SZ")
    return props
