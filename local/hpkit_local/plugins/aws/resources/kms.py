"""AWS KMS: keys."""

from typing import Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import creating, tagging, told
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]


# Of a creation and of a description.
_MEMBERS: Final = "description keyUsage customerMasterKeySpec=KeySpec multiRegion"


def _kms_tags(tags: dict[str, str]) -> list[dict[str, str]]:
    return [{"TagKey": name, "TagValue": value} for name, value in tags.items()]


def _read_key(call: Calls, key: str, _recorded: Props) -> Props | None:
    answer = call.find("DescribeKey", KeyId=key)
    data = answer and answer["KeyMetadata"]
    if not data or data["KeyState"] == "PendingDeletion":
        return None
    rotation = call.find("GetKeyRotationStatus", KeyId=key) or {}
    return {
        "description": "",
        "customerMasterKeySpec": "SYMMETRIC_DEFAULT",
        "multiRegion": False,
        **told(data, f"{_MEMBERS} arn keyId isEnabled=Enabled"),
        "policy": call("GetKeyPolicy", KeyId=key, PolicyName="default")["Policy"],
        "enableKeyRotation": rotation.get("KeyRotationEnabled", False),
        "tags": {tag["TagKey"]: tag["TagValue"] for tag in call("ListResourceTags", KeyId=key)["Tags"]},
    }


# Five equal reads, a second apart, after each change of rotation, policy or tags, and two seconds apart after a change
# of the description (terraform-provider-aws 6.58.0, kms/waitKeyPolicyPropagated, waitTagsPropagated and so on).
_PROPAGATION: Final = 4.0


def _settle(call: Calls, _key: str, change: PlannedUpdate) -> None:
    if not change.old:
        call.settle(_PROPAGATION * (bool(change.new.get("policy")) + bool(change.new["tagsAll"])))


def _update_key(call: Calls, key: str, change: PlannedUpdate) -> None:
    new = change.new
    # A new key is enabled; the real provider enables only a key that was disabled.
    if "isEnabled" in change and new["isEnabled"] and not change.old.get("isEnabled", True):
        call("EnableKey", KeyId=key)
    if "enableKeyRotation" in change:
        call("EnableKeyRotation" if new["enableKeyRotation"] else "DisableKeyRotation", KeyId=key)
        call.settle(_PROPAGATION)
    if "description" in change:
        call("UpdateKeyDescription", KeyId=key, Description=new.get("description", ""))
        call.settle(2 * _PROPAGATION)
    if "policy" in change and new.get("policy"):
        call("PutKeyPolicy", KeyId=key, PolicyName="default", Policy=new["policy"])
        call.settle(_PROPAGATION)
    if "isEnabled" in change and not new["isEnabled"]:
        call("DisableKey", KeyId=key)


def _delete_key(call: Calls, key: str, state: Props) -> None:
    if _read_key(call, key, state) is not None:
        call("ScheduleKeyDeletion", KeyId=key, PendingWindowInDays=state.get("deletionWindowInDays"))


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:kms/key:Key",
        props=properties(
            "policy:policy description enableKeyRotation:boolean isEnabled:boolean deletionWindowInDays:integer* "
            "keyUsage customerMasterKeySpec multiRegion:boolean"
        ),
        other_calls="DisableKey DisableKeyRotation",
        create=creating(
            "CreateKey",
            f"policy {_MEMBERS}",
            made="KeyMetadata.KeyId",
            tags=lambda tags: {"Tags": _kms_tags(tags) or None},
        ),
        read=_read_key,
        update=_update_key,
        wait=_settle,
        later=("enableKeyRotation", "isEnabled"),
        delete=_delete_key,
        outputs=("arn", "keyId"),
        tagging=tagging("Resource", "KeyId", form=_kms_tags),
        retries={
            "CreateKey": Retry(180.0, ("MalformedPolicyDocument",)),
            "PutKeyPolicy": Retry(180.0, ("NotFoundException", "MalformedPolicyDocument")),
            "EnableKeyRotation": Retry(600.0, ("NotFoundException", "DisabledException")),
        },
    ),
)
