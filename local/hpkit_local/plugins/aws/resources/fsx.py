"""Amazon FSx for Lustre file systems."""

from __future__ import annotations

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, until
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType
from hpkit_local.plugins.aws.shapes import arn_of, camel, describe_one, pascal, tag_list, tag_map, tagging
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

_LOG = (Prop("destination"), Prop("level"))
_METADATA = (Prop("iops", "integer"), Prop("mode"))
_METADATA_NAME: Final = "metadataConfiguration"
_SQUASH = (Prop("noSquashNids", "list"), Prop("rootSquash"))
# Members of LustreConfiguration: first those that can change, then those that can't.
_CHANGEABLE: Final = (
    Prop("autoImportPolicy"),
    Prop("automaticBackupRetentionDays", "integer"),
    Prop("dailyAutomaticBackupStartTime"),
    Prop("dataCompressionType"),
    Prop("logConfiguration", "object", members=_LOG),
    Prop(_METADATA_NAME, "object", members=_METADATA),
    Prop("perUnitStorageThroughput", "integer"),
    Prop("rootSquashConfiguration", "object", members=_SQUASH),
    Prop("throughputCapacity", "integer"),
    Prop("weeklyMaintenanceStartTime"),
)
_FIXED: Final = (
    Prop("copyTagsToBackups", "boolean"),
    Prop("deploymentType"),
    Prop("driveCacheType"),
    Prop("efaEnabled", "boolean"),
)
_SYSTEM: Final = (
    Prop("subnetIds", required=True),
    Prop("securityGroupIds", "list", write_only=True),
    Prop("storageType"),
    Prop("storageCapacity", "integer"),
    Prop("fileSystemTypeVersion"),
    Prop("kmsKeyId"),
    Prop("skipFinalBackup", "boolean", write_only=True),
    Prop("finalBackupTags", "map", write_only=True),
)


def _lustre(props: Props, names: tuple[Prop, ...]) -> dict[str, Any]:
    return dict(pascal({prop.name: props[prop.name] for prop in names if prop.name in props}))


def _create(call: Calls, inputs: Props) -> str:
    answer = call(
        "CreateFileSystem",
        FileSystemType="LUSTRE",
        FileSystemTypeVersion=inputs.get("fileSystemTypeVersion"),
        SubnetIds=[inputs["subnetIds"]],
        SecurityGroupIds=inputs.get("securityGroupIds"),
        StorageCapacity=inputs.get("storageCapacity"),
        StorageType=inputs["storageType"],
        KmsKeyId=inputs.get("kmsKeyId"),
        LustreConfiguration=_lustre(inputs, (*_CHANGEABLE, *_FIXED)),
        Tags=tag_list(inputs["tagsAll"]),
    )
    return str(answer["FileSystem"]["FileSystemId"])


def _system(call: Calls, system: str) -> dict[str, Any] | None:
    return describe_one(call, "DescribeFileSystems", "FileSystems", FileSystemIds=[system])


def _read(call: Calls, system: str, _recorded: Props) -> Props | None:
    entry = _system(call, system)
    if entry is None or entry.get("Lifecycle") == "DELETING":
        return None
    lustre = camel(entry.get("LustreConfiguration", {}))
    configured = {prop.name: lustre[prop.name] for prop in (*_CHANGEABLE, *_FIXED) if prop.name in lustre}
    return {
        **configured,
        "arn": entry["ResourceARN"],
        "dnsName": entry["DNSName"],
        "mountName": lustre.get("mountName"),
        "networkInterfaceIds": entry.get("NetworkInterfaceIds", []),
        "ownerId": entry.get("OwnerId"),
        "vpcId": entry.get("VpcId"),
        "subnetIds": entry["SubnetIds"][0],
        "storageType": entry.get("StorageType", "SSD"),
        "storageCapacity": entry.get("StorageCapacity"),
        "kmsKeyId": entry.get("KmsKeyId"),
        "fileSystemTypeVersion": entry.get("FileSystemTypeVersion"),
        "tags": tag_map(entry.get("Tags")),
    }


def _await(call: Calls, system: str, change: PlannedUpdate) -> None:
    until(
        call,
        lambda: _system(call, system),
        status=lambda entry: str(entry["Lifecycle"]),
        ready={"AVAILABLE"},
        failed={"FAILED", "MISCONFIGURED", "MISCONFIGURED_UNAVAILABLE"},
        # Creation waits for three equal reads, and an update for its administrative action.
        delay=(30.0 if change.old else 50.0) if change.names else 0.0,
    )


def _update(call: Calls, system: str, change: PlannedUpdate) -> None:
    # The version first, then the metadata, then all others: more IOPS can be required for more capacity
    # (terraform-provider-aws 6.58.0, fsx/resourceLustreFileSystemUpdate).
    version = change.new.get("fileSystemTypeVersion") if "fileSystemTypeVersion" in change else None
    metadata = tuple(prop for prop in _CHANGEABLE if prop.name in change and prop.name == _METADATA_NAME)
    others = tuple(prop for prop in _CHANGEABLE if prop.name in change and prop.name != _METADATA_NAME)
    capacity = change.new.get("storageCapacity") if "storageCapacity" in change else None
    for request in (
        {"FileSystemTypeVersion": version},
        {"LustreConfiguration": _lustre(change.new, metadata) or None},
        {"LustreConfiguration": _lustre(change.new, others) or None, "StorageCapacity": capacity},
    ):
        if any(value is not None for value in request.values()):
            call("UpdateFileSystem", FileSystemId=system, **request)
            _await(call, system, change)


def _delete(call: Calls, system: str, state: Props) -> None:
    tags = state.get("finalBackupTags")
    how = {"SkipFinalBackup": state["skipFinalBackup"], **({"FinalBackupTags": tag_list(tags)} if tags else {})}
    # Scratch file systems have no backups, and FSx won't hear of any.
    persistent = str(state["deploymentType"]).startswith("PERSISTENT")
    if call.find("DeleteFileSystem", FileSystemId=system, LustreConfiguration=how if persistent else None) is not None:
        until(
            call,
            lambda: _system(call, system),
            status=lambda entry: str(entry.get("Lifecycle")),
            until_gone=True,
            delay=600.0,
        )


def _create_link(call: Calls, inputs: Props) -> str:
    answer = call(
        "CreateDataRepositoryAssociation",
        FileSystemId=inputs["fileSystemId"],
        FileSystemPath=inputs["fileSystemPath"],
        DataRepositoryPath=inputs["dataRepositoryPath"],
        BatchImportMetaDataOnCreate=inputs["batchImportMetaDataOnCreate"] or None,
        ImportedFileChunkSize=inputs.get("importedFileChunkSize"),
        S3=dict(pascal(inputs["s3"])) if inputs.get("s3") else None,
        Tags=tag_list(inputs["tagsAll"]),
    )
    return str(answer["Association"]["AssociationId"])


def _link(call: Calls, link: str) -> dict[str, Any] | None:
    return describe_one(call, "DescribeDataRepositoryAssociations", "Associations", AssociationIds=[link])


def _read_link(call: Calls, link: str, _recorded: Props) -> Props | None:
    entry = _link(call, link)
    if entry is None:
        return None
    return {
        "arn": entry["ResourceARN"],
        "associationId": link,
        "batchImportMetaDataOnCreate": entry.get("BatchImportMetaDataOnCreate", False),
        "dataRepositoryPath": entry["DataRepositoryPath"],
        "fileSystemId": entry["FileSystemId"],
        "fileSystemPath": entry["FileSystemPath"],
        "importedFileChunkSize": entry.get("ImportedFileChunkSize"),
        "s3": camel(entry.get("S3", {})),
        "tags": tag_map(entry.get("Tags")),
    }


def _await_link(call: Calls, link: str, _change: PlannedUpdate) -> None:
    until(
        call,
        lambda: _link(call, link),
        status=lambda entry: str(entry["Lifecycle"]),
        ready={"AVAILABLE"},
        failed={"FAILED", "MISCONFIGURED"},
    )


def _update_link(call: Calls, link: str, change: PlannedUpdate) -> None:
    size = change.new.get("importedFileChunkSize") if "importedFileChunkSize" in change else None
    # The real provider sends no deletion of events that the program no longer has.
    s3 = dict(pascal(change.new["s3"])) if "s3" in change else None
    call("UpdateDataRepositoryAssociation", AssociationId=link, ImportedFileChunkSize=size, S3=s3)


def _delete_link(call: Calls, link: str, state: Props) -> None:
    data = bool(state.get("deleteDataInFilesystem"))
    call.find("DeleteDataRepositoryAssociation", AssociationId=link, DeleteDataInFileSystem=data)
    until(call, lambda: _link(call, link), status=lambda entry: str(entry["Lifecycle"]), until_gone=True)


_EVENTS: Final = (Prop("events", "list"),)

RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
        props=(
            Prop("batchImportMetaDataOnCreate", "boolean"),
            Prop("dataRepositoryPath", required=True),
            Prop("deleteDataInFilesystem", "boolean", write_only=True),
            Prop("fileSystemId", required=True),
            Prop("fileSystemPath", required=True),
            Prop("importedFileChunkSize", "integer"),
            Prop(
                "s3",
                "object",
                members=(
                    Prop("autoExportPolicy", "object", members=_EVENTS),
                    Prop("autoImportPolicy", "object", members=_EVENTS),
                ),
            ),
        ),
        create=_create_link,
        read=_read_link,
        update=_update_link,
        wait=_await_link,
        delete=_delete_link,
        outputs=("arn", "associationId"),
        tagging=tagging("Resource", "ResourceARN", identify=arn_of),
        imported={"deleteDataInFilesystem": False},
        minutes=(10, 10, 10),
    ),
    ResourceType(
        "aws:fsx/lustreFileSystem:LustreFileSystem",
        props=(*_SYSTEM, *_CHANGEABLE, *_FIXED),
        create=_create,
        read=_read,
        update=_update,
        wait=_await,
        delete=_delete,
        outputs=("arn", "dnsName", "mountName", "networkInterfaceIds", "ownerId", "vpcId"),
        tagging=tagging("Resource", "ResourceARN", identify=arn_of),
        imported={"skipFinalBackup": True},
        minutes=(30, 30, 30),
    ),
)
