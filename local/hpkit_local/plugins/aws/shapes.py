"""The form of most types: one call each to create, read, await and delete; and names and tags as the APIs write them.

Members are words: `vpcId` is the provider's name, and with another first letter the API's; `name=RoleName` has two.
"""

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, until
from hpkit_local.plugins.aws.resource_type import ChangeTags, Create, Delete, PlannedUpdate, Read, Update
from hpkit_provider.engine.values import Props

__all__ = [
    "BY_ARN",
    "arn",
    "arn_of",
    "camel",
    "change_tags",
    "creating",
    "deleting",
    "describe_one",
    "found",
    "in_list",
    "in_map",
    "in_specification",
    "listed",
    "pascal",
    "policy_text",
    "reading",
    "sent",
    "settled",
    "stamp",
    "tag_list",
    "tag_map",
    "tagging",
    "told",
]

Tags = dict[str, str]
Live = dict[str, Any]
# Returns the description of a resource; None if it doesn't exist.
Look = Callable[[Calls, str], Live | None]
# The parameter that takes the ID, or a function from ID and state to all parameters that identify the resource.
Key = str | Callable[[str, Props], Mapping[str, Any]]
# Returns the parameter of a creation that sets tags.
TagForm = Callable[[Tags], dict[str, Any]]
_ARNS = ("arn", "accessEntryArn", "associationArn")


def pascal(value: Any) -> Any:
    """`cidrBlock` → `CidrBlock`, all the way down."""
    return _renamed(value, str.upper)


def camel(value: Any) -> Any:
    """`CidrBlock` → `cidrBlock`, all the way down."""
    return _renamed(value, str.lower)


def _renamed(value: Any, change: Any) -> Any:
    if isinstance(value, dict):
        return {change(key[:1]) + key[1:]: _renamed(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_renamed(item, change) for item in value]
    return value


def sent(props: Props, members: str, style: Callable[[Any], Any] = pascal) -> dict[str, Any]:
    """Return the parameters of a request for those members that are set; style: `dict` keeps the provider's names."""
    request = {}
    for name, _, member in (word.partition("=") for word in members.split()):
        if props.get(name) is not None:
            ((key, value),) = style({name: props[name]}).items()
            request[member or key] = value
    return request


def told(entry: Live, members: str) -> Props:
    """Return those members that an API's description has, in the provider's words, and its tags."""
    props: Props = {}
    for name, _, member in (word.partition("=") for word in members.split()):
        for key in (member,) if member else (name, name[:1].upper() + name[1:]):
            if key in entry:
                props[name] = camel(entry[key])
    for tags in (entry[key] for key in ("tags", "Tags") if key in entry):
        props["tags"] = tags if isinstance(tags, dict) else tag_map(tags)
    return props


def found(operation: str, member: str, key: Key) -> Look:
    """Return the reader of a resource by an operation that describes one."""

    def look(call: Calls, resource_id: str) -> Live | None:
        answer = call.find(operation, **_identify(key, resource_id, {}))
        return answer and answer[member]

    return look


def listed(operation: str, member: str, key: str) -> Look:
    """Return the reader of a resource by an operation that describes several."""
    return lambda call, resource_id: describe_one(call, operation, member, **{key: [resource_id]})


def _identify(key: Key, resource_id: str, state: Props) -> Mapping[str, Any]:
    return {key: resource_id} if isinstance(key, str) else key(resource_id, state)


def creating(
    operation: str,
    members: str,
    *,
    made: str,
    tags: TagForm | None = None,
    style: Callable[[Any], Any] = pascal,
    also: Callable[[Props], Mapping[str, Any]] = lambda _: {},
) -> Create:
    """Return the creation by one operation.

    made: the path of the ID in the response, or how it's composed of inputs, such as `{clusterName}:{addonName}`; also:
    parameters that need more than another name.
    """

    def create(call: Calls, inputs: Props) -> str:
        tagged = tags(inputs["tagsAll"]) if tags else {}
        answer = call(operation, **sent(inputs, members, style), **also(inputs), **tagged)
        if "{" in made:
            return made.format_map(inputs)
        for part in made.split("."):
            answer = answer[int(part) if part.isdecimal() else part]
        return str(answer)

    return create


def reading(look: Look, members: str, also: Callable[[Calls, str, Live], Props] = lambda *_: {}) -> Read:
    """Return the reading of a description; also: what needs more than another name."""

    def read(call: Calls, resource_id: str, _recorded: Props) -> Props | None:
        entry = look(call, resource_id)
        if entry is None or _status(entry) == "DELETING":
            return None
        return {**told(entry, members), **also(call, resource_id, entry)}

    return read


def settled(look: Look, ready: Collection[str], failed: Collection[str] = (), *, delay: float = 0.0) -> Update:
    """Return the wait until a resource has one of the statuses `ready`; delay: as for `until`, after a change."""

    def wait(call: Calls, resource_id: str, change: PlannedUpdate) -> None:
        seconds = delay if change.names else 0.0
        until(call, lambda: look(call, resource_id), status=_status, ready=ready, failed=failed, delay=seconds)

    return wait


def deleting(
    operation: str, key: Key, *, look: Look | None = None, failed: Collection[str] = (), delay: float = 0.0
) -> Delete:
    """Return the deletion by one operation, and with `look` the wait for its end."""

    def delete(call: Calls, resource_id: str, state: Props) -> None:
        answer = call.find(operation, **_identify(key, resource_id, state))
        if look is not None and answer is not None:
            gone = look
            until(call, lambda: gone(call, resource_id), status=_status, failed=failed, until_gone=True, delay=delay)

    return delete


def _status(entry: Live) -> str:
    status = next((entry[name] for name in ("State", "status", "Lifecycle") if name in entry), "")
    return str(status["statusCode"] if isinstance(status, dict) else status)


def stamp(moment: Any) -> str:
    """Return a time in the provider's format."""
    return str(moment.strftime("%Y-%m-%dT%H:%M:%SZ"))


def tag_list(tags: Tags) -> list[dict[str, str]] | None:
    """Return tags as most APIs take them; None, which is not sent, for none."""
    return [{"Key": key, "Value": value} for key, value in tags.items()] or None


def tag_map(tags: Iterable[dict[str, str]] | None) -> Tags:
    """Return tags in the provider's form."""
    return {tag["Key"]: tag["Value"] for tag in tags or []}


def in_list(tags: Tags) -> dict[str, Any]:
    """Return tags at a creation, as a list."""
    return {"Tags": tag_list(tags)}


def in_map(tags: Tags) -> dict[str, Any]:
    """Return tags at a creation, as a map."""
    return {"tags": tags or None}


def in_specification(resource_type: str) -> TagForm:
    """Return the form of tags at a creation in EC2."""
    return lambda tags: {
        "TagSpecifications": [{"ResourceType": resource_type, "Tags": tag_list(tags)}] if tags else None
    }


def policy_text(document: Any) -> str:
    """Return a policy as text, whether botocore decoded it or not."""
    return document if isinstance(document, str) else json.dumps(document)


def arn(
    resource_type: str, also: Callable[[Calls, str, Live], Props] = lambda *_: {}
) -> Callable[[Calls, str, Live], Props]:
    """Return what is read further of a resource in EC2: its ARN, which descriptions lack."""

    def read(call: Calls, resource_id: str, entry: Live) -> Props:
        name = f"arn:aws:ec2:{call.region}:{call.account}:{resource_type}/{resource_id}"
        return {"arn": name, **also(call, resource_id, entry)}

    return read


def arn_of(_resource_id: str, live: Props) -> str:
    """Return the ARN of a resource."""
    return str(next(live[name] for name in _ARNS if live.get(name)))


def tagging(
    noun: str,
    resource: str,
    *,
    tags: str = "Tags",
    keys: str = "TagKeys",
    form: Callable[[dict[str, str]], Any] = tag_list,
    identify: Callable[[str, Props], str] = lambda resource_id, _live: resource_id,
) -> ChangeTags:
    """Return the tagging by `Tag<noun>` and `Untag<noun>`.

    resource, tags, keys: the names of their parameters; form: how tags are written; identify: the value of `resource`.
    """

    def change(call: Calls, resource_id: str, live: Props, changed: dict[str, str], dropped: list[str]) -> None:
        target = {resource: identify(resource_id, live)}
        if changed:
            call(f"Tag{noun}", **target, **{tags: form(changed)})
        if dropped:
            call(f"Untag{noun}", **target, **{keys: dropped})

    return change


# EKS, Managed Prometheus, Managed Grafana.
BY_ARN: Final = tagging("Resource", "resourceArn", tags="tags", keys="tagKeys", form=dict, identify=arn_of)


def change_tags(call: Calls, resource_id: str, _live: Props, changed: dict[str, str], dropped: list[str]) -> None:
    """Set and remove tags, which EC2 does for all its resources by two operations."""
    if changed:
        call("CreateTags", Resources=[resource_id], Tags=tag_list(changed))
    if dropped:
        call("DeleteTags", Resources=[resource_id], Tags=[{"Key": key} for key in dropped])


def describe_one(call: Calls, operation: str, member: str, **which: Any) -> Live | None:
    """Return the only entry in a Describe response; None if it's deleted, or being deleted."""
    answer = call.find(operation, **which)
    entries: list[Live] = [] if answer is None else answer[member]
    alive = [entry for entry in entries if str(entry.get("State", "")).lower() not in ("deleted", "deleting")]
    return alive[0] if alive else None
