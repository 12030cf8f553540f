"""Amazon FSx for Lustre file systems."""

from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType, properties
from hpkit_local.plugins.aws.shapes import (
    arn_of,
    camel,
    creating,
    deleting,
    in_list,
    listed,
    pascal,
    reading,
    settled,
    tag_list,
    tagging,
)
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

# Members of LustreConfiguration: first those that can change, then those that can't.
_METADATA: Final = "metadataConfiguration"
_CHANGEABLE: Final = properties(
    "autoImportPolicy automaticBackupRetentionDays:integer dailyAutomaticBackupStartTime dataCompressionType "
    "logConfiguration:object metadataConfiguration:object perUnitStorageThroughput:integer "
    "rootSquashConfiguration:object throughputCapacity:integer weeklyMaintenanceStartTime",
    logConfiguration=properties("destination level"),
    metadataConfiguration=properties("iops:integer mode"),
    rootSquashConfiguration=properties("noSquashNids:list rootSquash"),
)
_FIXED: Final = properties("copyTagsToBackups:boolean deploymentType driveCacheType efaEnabled:boolean")
_SYSTEM: Final = properties(
    "subnetIds! securityGroupIds:list* storageType storageCapacity:integer fileSystemTypeVersion kmsKeyId "
    "skipFinalBackup:boolean* finalBackupTags:map*"
)
# Of a creation and of a description.
_MEMBERS: Final = "storageType storageCapacity fileSystemTypeVersion kmsKeyId"
_LINK: Final = "fileSystemId fileSystemPath dataRepositoryPath importedFileChunkSize s3"


def _lustre(props: Props, names: tuple[Prop, ...]) -> dict[str, Any]:
    return dict(pascal({prop.name: props[prop.name] for prop in names if prop.name in props}))


def _create_parts(inputs: Props) -> dict[str, Any]:
    lustre = _lustre(inputs, (*_CHANGEABLE, *_FIXED))
    return {"FileSystemType": "LUSTRE", "SubnetIds": [inputs["subnetIds"]], "LustreConfiguration": lustre}


_system = listed("DescribeFileSystems", "FileSystems", "FileSystemIds")


def _read_parts(_call: Calls, _id: str, entry: dict[str, Any]) -> Props:
    lustre = camel(entry.get("LustreConfiguration", {}))
    names = ("mountName", *(prop.name for prop in (*_CHANGEABLE, *_FIXED)))
    return {**{name: lustre[name] for name in names if name in lustre}, "subnetIds": entry["SubnetIds"][0]}


def _await(call: Calls, system: str, change: PlannedUpdate) -> None:
    # Creation waits for three equal reads, and an update for its administrative action.
    failed = ("FAILED", "MISCONFIGURED", "MISCONFIGURED_UNAVAILABLE")
    settled(_system, ["AVAILABLE"], failed, delay=30.0 if change.old else 50.0)(call, system, change)


def _update(call: Calls, system: str, change: PlannedUpdate) -> None:
    # The version first, then the metadata, then all others: more IOPS can be required for more capacity
    # (terraform-provider-aws 6.58.0, fsx/resourceLustreFileSystemUpdate).
    version = change.new.get("fileSystemTypeVersion") if "fileSystemTypeVersion" in change else None
    metadata = tuple(prop for prop in _CHANGEABLE if prop.name in change and prop.name == _METADATA)
    others = tuple(prop for prop in _CHANGEABLE if prop.name in change and prop.name != _METADATA)
    capacity = change.new.get("storageCapacity") if "storageCapacity" in change else None
    for request in (
        {"FileSystemTypeVersion": version},
        {"LustreConfiguration": _lustre(change.new, metadata) or None},
        {"LustreConfiguration": _lustre(change.new, others) or None, "StorageCapacity": capacity},
    ):
        if any(value is not None for value in request.values()):
            call("UpdateFileSystem", FileSystemId=system, **request)
            _await(call, system, change)


def _deletion(system: str, state: Props) -> dict[str, Any]:
    tags = state.get("finalBackupTags")
    how = {"SkipFinalBackup": state["skipFinalBackup"], **({"FinalBackupTags": tag_list(tags)} if tags else {})}
    # Scratch file systems have no backups, and FSx won't hear of any.
    persistent = str(state["deploymentType"]).startswith("PERSISTENT")
    return {"FileSystemId": system, "LustreConfiguration": how if persistent else None}


_link = listed("DescribeDataRepositoryAssociations", "Associations", "AssociationIds")


def _update_link(call: Calls, link: str, change: PlannedUpdate) -> None:
    size = change.new.get("importedFileChunkSize") if "importedFileChunkSize" in change else None
    # The real provider sends no deletion of events that the program no longer has.
    s3 = dict(pascal(change.new["s3"])) if "s3" in change else None
    call("UpdateDataRepositoryAssociation", AssociationId=link, ImportedFileChunkSize=size, S3=s3)


def _delete_link(call: Calls, link: str, state: Props) -> None:
    data = bool(state.get("deleteDataInFilesystem"))
    how = {"AssociationId": link, "DeleteDataInFileSystem": data}
    deleting("DeleteDataRepositoryAssociation", lambda *_: how, look=_link)(call, link, state)


RESOURCE_TYPES: Final = (
    ResourceType(
        "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation",
        props=properties(
            "batchImportMetaDataOnCreate:boolean dataRepositoryPath! deleteDataInFilesystem:boolean* fileSystemId! "
            "fileSystemPath! importedFileChunkSize:integer s3:object",
            s3=properties(
                "autoExportPolicy:object autoImportPolicy:object",
                autoExportPolicy=properties("events:list"),
                autoImportPolicy=properties("events:list"),
            ),
        ),
        create=creating(
            "CreateDataRepositoryAssociation",
            _LINK,
            made="Association.AssociationId",
            tags=in_list,
            also=lambda inputs: {"BatchImportMetaDataOnCreate": inputs["batchImportMetaDataOnCreate"] or None},
        ),
        read=reading(
            _link,
            f"{_LINK} arn=ResourceARN associationId",
            lambda _call, _id, entry: {"batchImportMetaDataOnCreate": entry.get("BatchImportMetaDataOnCreate", False)},
        ),
        update=_update_link,
        wait=settled(_link, ["AVAILABLE"], ["FAILED", "MISCONFIGURED"]),
        delete=_delete_link,
        outputs=("arn", "associationId"),
        tagging=tagging("Resource", "ResourceARN", identify=arn_of),
        imported={"deleteDataInFilesystem": False},
        minutes=(10, 10, 10),
    ),
    ResourceType(
        "aws:fsx/lustreFileSystem:LustreFileSystem",
        props=(*_SYSTEM, *_CHANGEABLE, *_FIXED),
        create=creating(
            "CreateFileSystem",
            f"{_MEMBERS} securityGroupIds",
            made="FileSystem.FileSystemId",
            tags=in_list,
            also=_create_parts,
        ),
        read=reading(
            _system, f"{_MEMBERS} arn=ResourceARN dnsName=DNSName networkInterfaceIds ownerId vpcId", _read_parts
        ),
        update=_update,
        wait=_await,
        delete=deleting("DeleteFileSystem", _deletion, look=_system, delay=600.0),
        outputs=("arn", "dnsName", "mountName", "networkInterfaceIds", "ownerId", "vpcId"),
        tagging=tagging("Resource", "ResourceARN", identify=arn_of),
        imported={"skipFinalBackup": True},
        minutes=(30, 30, 30),
    ),
)
