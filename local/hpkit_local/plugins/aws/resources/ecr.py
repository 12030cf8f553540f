"""Amazon ECR: repositories, and which of their images go after a while."""

from __future__ import annotations

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.shapes import arn_of, tag_list, tag_map, tagging
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

_SCANNING: Final = "imageScanningConfiguration"


def _encryption(inputs: Props) -> dict[str, Any] | None:
    for each in inputs.get("encryptionConfigurations", []):
        key = {"kmsKey": each["kmsKey"]} if each.get("kmsKey") else {}
        return {"encryptionType": each.get("encryptionType", "AES256"), **key}
    return None


def _create(call: Calls, inputs: Props) -> str:
    answer = call(
        "CreateRepository",
        repositoryName=inputs["name"],
        imageTagMutability=inputs["imageTagMutability"],
        imageScanningConfiguration=inputs.get(_SCANNING),
        encryptionConfiguration=_encryption(inputs),
        tags=tag_list(inputs["tagsAll"]),
    )
    return str(answer["repository"]["repositoryName"])


def _read(call: Calls, name: str, _recorded: Props) -> Props | None:
    answer = call.find("DescribeRepositories", repositoryNames=[name])
    if answer is None:
        return None
    (repository,) = answer["repositories"]
    encryption = repository.get("encryptionConfiguration")
    return {
        "name": name,
        "arn": repository["repositoryArn"],
        "registryId": repository["registryId"],
        "repositoryUrl": repository["repositoryUri"],
        "imageTagMutability": repository["imageTagMutability"],
        _SCANNING: repository.get(_SCANNING),
        "encryptionConfigurations": [encryption] if encryption else None,
        "tags": tag_map(call("ListTagsForResource", resourceArn=repository["repositoryArn"])["tags"]),
    }


def _update(call: Calls, name: str, change: PlannedUpdate) -> None:
    if "imageTagMutability" in change:
        call("PutImageTagMutability", repositoryName=name, imageTagMutability=change.new["imageTagMutability"])
    if _SCANNING in change:
        wanted = change.new.get(_SCANNING) or {"scanOnPush": False}
        call("PutImageScanningConfiguration", repositoryName=name, imageScanningConfiguration=wanted)


def _delete(call: Calls, name: str, state: Props) -> None:
    call.find("DeleteRepository", repositoryName=name, force=state["forceDelete"])


def _put_policy(call: Calls, inputs: Props) -> str:
    call("PutLifecyclePolicy", repositoryName=inputs["repository"], lifecyclePolicyText=inputs["policy"])
    return str(inputs["repository"])


def _read_policy(call: Calls, name: str, _recorded: Props) -> Props | None:
    answer = call.find("GetLifecyclePolicy", repositoryName=name)
    if answer is None:
        return None
    return {"repository": name, "registryId": answer["registryId"], "policy": answer["lifecyclePolicyText"]}


def _delete_policy(call: Calls, name: str, _state: Props) -> None:
    call.find("DeleteLifecyclePolicy", repositoryName=name)


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:ecr/repository:Repository",
        props=(
            Prop("name"),
            Prop("imageTagMutability"),
            Prop(_SCANNING, "object", members=(Prop("scanOnPush", "boolean", required=True),)),
            Prop(
                "encryptionConfigurations",
                "list",
                members=(Prop("encryptionType"), Prop("kmsKey")),
            ),
            Prop("forceDelete", "boolean", write_only=True),
        ),
        create=_create,
        read=_read,
        update=_update,
        delete=_delete,
        outputs=("arn", "registryId", "repositoryUrl"),
        tagging=tagging("Resource", "resourceArn", tags="tags", keys="tagKeys", identify=arn_of),
        longest_name=256,
    ),
    ResourceType(
        "aws:ecr/lifecyclePolicy:LifecyclePolicy",
        props=(Prop("repository", required=True), Prop("policy", "policy", required=True)),
        create=_put_policy,
        read=_read_policy,
        delete=_delete_policy,
        outputs=("registryId",),
    ),
)
