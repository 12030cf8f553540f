"""Amazon ECR: repositories, and which of their images go after a while."""

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, ResourceType, properties
from hpkit_local.plugins.aws.shapes import arn_of, creating, deleting, tag_list, tag_map, tagging, told
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

_SCANNING: Final = "imageScanningConfiguration"


def _encryption(inputs: Props) -> dict[str, Any]:
    for each in inputs.get("encryptionConfigurations", []):
        key = {"kmsKey": each["kmsKey"]} if each.get("kmsKey") else {}
        return {"encryptionConfiguration": {"encryptionType": each.get("encryptionType", "AES256"), **key}}
    return {}


def _read(call: Calls, name: str, _recorded: Props) -> Props | None:
    answer = call.find("DescribeRepositories", repositoryNames=[name])
    if answer is None:
        return None
    (repository,) = answer["repositories"]
    encryption = repository.get("encryptionConfiguration")
    return {
        **told(repository, f"arn=repositoryArn registryId repositoryUrl=repositoryUri imageTagMutability {_SCANNING}"),
        "name": name,
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


def _read_policy(call: Calls, name: str, _recorded: Props) -> Props | None:
    answer = call.find("GetLifecyclePolicy", repositoryName=name)
    return answer and {**told(answer, "registryId policy=lifecyclePolicyText"), "repository": name}


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:ecr/repository:Repository",
        props=properties(
            f"name imageTagMutability {_SCANNING}:object encryptionConfigurations:list forceDelete:boolean*",
            imageScanningConfiguration=properties("scanOnPush:boolean!"),
            encryptionConfigurations=properties("encryptionType kmsKey"),
        ),
        create=creating(
            "CreateRepository",
            f"name=repositoryName imageTagMutability {_SCANNING}",
            made="{name}",
            tags=lambda tags: {"tags": tag_list(tags)},
            style=dict,
            also=_encryption,
        ),
        read=_read,
        update=_update,
        delete=_delete,
        outputs=("arn", "registryId", "repositoryUrl"),
        tagging=tagging("Resource", "resourceArn", tags="tags", keys="tagKeys", identify=arn_of),
        longest_name=256,
    ),
    ResourceType(
        "aws:ecr/lifecyclePolicy:LifecyclePolicy",
        props=properties("repository! policy:policy!"),
        create=creating(
            "PutLifecyclePolicy",
            "repository=repositoryName policy=lifecyclePolicyText",
            made="{repository}",
            style=dict,
        ),
        read=_read_policy,
        delete=deleting("DeleteLifecyclePolicy", "repositoryName"),
        outputs=("registryId",),
    ),
)
