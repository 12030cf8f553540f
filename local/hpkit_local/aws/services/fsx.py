"""Amazon FSx: moto, and changes to a file system for Lustre."""

from typing import Any, Final

from moto.fsx.models import FileSystem, FSxBackend

from hpkit_local.aws.api import existing, operation, page, rule
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.protocol import service_model
from hpkit_local.aws.service import Service, declare
from hpkit_local.aws.services.ec2.rules import require_security_group, require_subnet

__all__: list[str] = []

declare(
    Service(
        "fsx",
        rejects_with="BadRequest",
        source="https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html",
        moto="fsx",
    )
)


_create_file_system = FSxBackend.create_file_system
_describe_file_system = FileSystem.to_dict


def _with_version(backend: Any, **request: Any) -> Any:
    system: Any = _create_file_system(backend, **request)
    system.version = request.get("file_system_type_version") or "2.10"  # what FSx for Lustre takes by itself
    return system


def _whole_file_system(system: Any) -> dict[str, Any]:
    described = _describe_file_system(system)
    state = {"Lifecycle": "AVAILABLE", "OwnerId": system.backend.account_id, "FileSystemTypeVersion": system.version}
    # Eight characters that FSx chooses (Amazon FSx API reference, LustreFileSystemConfiguration).
    lustre = {**described.get("LustreConfiguration", {}), "MountName": system.file_system_id[-8:]}
    return {**described, **state, "LustreConfiguration": lustre}


_METHODS: tuple[tuple[type, str, Any], ...] = (
    (FSxBackend, "create_file_system", _with_version),
    (FileSystem, "to_dict", _whole_file_system),
)
for _owner, _name, _method in _METHODS:
    setattr(_owner, _name, _method)


# Source: https://docs.aws.amazon.com/fsx/latest/LustreGuide/managing-storage-capacity.html
@operation("fsx", "UpdateFileSystem")
def update_file_system(ctx: Context, params: Record) -> Record:
    """Change capacity or configuration, immediately; capacity only grows (FSx for Lustre user guide)."""
    system = _file_system(ctx, params["FileSystemId"])
    capacity = params.get("StorageCapacity", system.storage_capacity)
    if capacity < system.storage_capacity:
        message = f"StorageCapacity {capacity} is below the present {system.storage_capacity} GiB"
        raise ServiceError("BadRequest", message)
    system.storage_capacity = capacity
    system.version = params.get("FileSystemTypeVersion", system.version)
    if "LustreConfiguration" in params:
        system.lustre_configuration = {**(system.lustre_configuration or {}), **params["LustreConfiguration"]}
    ctx.backend.touched("fsx")
    known = service_model("fsx").shape_for("FileSystem").members
    return {"FileSystem": {name: value for name, value in system.to_dict().items() if name in known}}


_MOST_LINKS: Final = 8
_LUSTRE_THROUGHPUT: Final = frozenset((125, 250, 500, 1000))


# Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateFileSystem.html
@rule("fsx", "CreateFileSystem")
def _lustre(ctx: Context, params: Record) -> None:
    if params["FileSystemType"] != "LUSTRE":
        return
    subnets = [require_subnet(ctx, each, code="InvalidNetworkSettings") for each in params["SubnetIds"]]
    for group in params.get("SecurityGroupIds", ()):
        require_security_group(ctx, group, vpc_id=subnets[0].vpc_id, code="InvalidNetworkSettings")
    capacity, options = params.get("StorageCapacity", 1200), params.get("LustreConfiguration", {})
    if capacity != 1200 and (capacity < 2400 or capacity % 2400):
        raise ServiceError("BadRequest", f"StorageCapacity {capacity} is neither 1200 nor a multiple of 2400")
    throughput = options.get("PerUnitStorageThroughput")
    if options.get("DeploymentType") == "PERSISTENT_2" and throughput not in _LUSTRE_THROUGHPUT:
        allowed = ", ".join(map(str, sorted(_LUSTRE_THROUGHPUT)))
        raise ServiceError("BadRequest", f"PerUnitStorageThroughput {throughput} is not one of {allowed}")


def _file_systems(ctx: Context) -> dict[str, Any]:
    systems: dict[str, Any] = ctx.backend.moto.backend("fsx", ctx.region).file_systems
    return systems


def _file_system(ctx: Context, identifier: str) -> Any:
    message = f"File system '{identifier}' does not exist."
    return existing(_file_systems(ctx), identifier, message, code="FileSystemNotFound")


def _live(ctx: Context) -> dict[str, Record]:
    """Return the associations whose file system exists; FSx deletes the others with it."""
    table = ctx.table("associations")
    for key in [key for key, entry in table.items() if entry["FileSystemId"] not in _file_systems(ctx)]:
        del table[key]
    return table


def _find(ctx: Context, identifier: str) -> Record:
    message = f"Association '{identifier}' does not exist."
    return existing(_live(ctx), identifier, message, code="DataRepositoryAssociationNotFound")


def _shown(ctx: Context, entry: Record) -> Record:
    tags = ctx.backend.moto.backend("fsx", ctx.region).list_tags_for_resource(entry["ResourceARN"])
    return {**entry, "Tags": tags}


def _overlap(one: str, other: str) -> bool:
    one, other = f"{one.rstrip('/')}/", f"{other.rstrip('/')}/"
    return one.startswith(other) or other.startswith(one)


# Source: FSx for Lustre user guide, "Region and account support for linked S3 buckets".
def _check_region(ctx: Context, params: Record, bucket: str) -> None:
    region = ctx.backend.moto.backend("s3", "aws").buckets[bucket].region_name
    if "AutoImportPolicy" in params.get("S3", {}) and region != ctx.region:
        raise ServiceError(
            "BadRequest", f"Automatic import requires a bucket in {ctx.region}; {bucket} is in {region}."
        )


# Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_CreateDataRepositoryAssociation.html
@operation("fsx", "CreateDataRepositoryAssociation")
def create_data_repository_association(ctx: Context, params: Record) -> Record:
    """Link a folder; each one, and each prefix of a bucket, has one link at most."""
    system = _file_system(ctx, params["FileSystemId"])
    deployment = (system.lustre_configuration or {}).get("DeploymentType", "SCRATCH_1")
    if deployment == "SCRATCH_1":
        raise ServiceError("UnsupportedOperation", "SCRATCH_1 file systems have no data repository associations.")
    path, repository = params.get("FileSystemPath"), params["DataRepositoryPath"]
    if not path or not path.startswith("/"):
        raise ServiceError("BadRequest", "FileSystemPath must begin with a slash.")
    bucket = repository.removeprefix("s3://").partition("/")[0]
    # Of other accounts' buckets FSx knows no more: the harsher answer.
    if not repository.startswith("s3://") or bucket not in ctx.backend.moto.backend("s3", "aws").buckets:
        raise ServiceError("BadRequest", f"Amazon FSx is unable to validate access to the S3 bucket '{bucket}'.")
    _check_region(ctx, params, bucket)
    others = [each for each in _live(ctx).values() if each["FileSystemId"] == params["FileSystemId"]]
    if len(others) >= _MOST_LINKS:
        raise ServiceError("ServiceLimitExceeded", f"A file system has at most {_MOST_LINKS} associations.")
    for each in others:
        if _overlap(path, each["FileSystemPath"]) or _overlap(repository, each["DataRepositoryPath"]):
            raise ServiceError("BadRequest", f"The paths overlap with the paths of {each['AssociationId']}.")
    identifier = "dra-" + ctx.token(17, "0123456789abcdef")
    entry: Record = {
        "AssociationId": identifier,
        "ResourceARN": ctx.arn("fsx", f"association/{params['FileSystemId']}/{identifier}"),
        "FileSystemId": params["FileSystemId"],
        "Lifecycle": "AVAILABLE",
        "FileSystemPath": path,
        "DataRepositoryPath": repository,
        "BatchImportMetaDataOnCreate": params.get("BatchImportMetaDataOnCreate", False),
        "ImportedFileChunkSize": params.get("ImportedFileChunkSize", 1024),
        "S3": params.get("S3", {}),
        "CreationTime": ctx.now,
    }
    ctx.table("associations")[identifier] = entry
    ctx.backend.moto.backend("fsx", ctx.region).tagger.tag_resource(entry["ResourceARN"], params.get("Tags", []))
    ctx.backend.touched("fsx")
    return {"Association": _shown(ctx, entry)}


# Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_DescribeDataRepositoryAssociations.html
@operation("fsx", "DescribeDataRepositoryAssociations")
def describe_data_repository_associations(ctx: Context, params: Record) -> Record:
    """Describe some or all; the only filter here is the file system."""
    found = [_find(ctx, each) for each in params.get("AssociationIds", ())] or list(_live(ctx).values())
    for each in params.get("Filters", ()):
        if each["Name"] == "file-system-id":
            found = [entry for entry in found if entry["FileSystemId"] in each["Values"]]
    return page("Associations", [_shown(ctx, entry) for entry in found], params, code="BadRequest")


# Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_UpdateDataRepositoryAssociation.html
@operation("fsx", "UpdateDataRepositoryAssociation")
def update_data_repository_association(ctx: Context, params: Record) -> Record:
    """Change events; a policy that the request lacks stays."""
    entry = _find(ctx, params["AssociationId"])
    _check_region(ctx, params, entry["DataRepositoryPath"].removeprefix("s3://").partition("/")[0])
    entry["S3"] = {**entry["S3"], **params.get("S3", {})}
    entry["ImportedFileChunkSize"] = params.get("ImportedFileChunkSize", entry["ImportedFileChunkSize"])
    return {"Association": _shown(ctx, entry)}


# Source: https://docs.aws.amazon.com/fsx/latest/APIReference/API_DeleteDataRepositoryAssociation.html
@operation("fsx", "DeleteDataRepositoryAssociation")
def delete_data_repository_association(ctx: Context, params: Record) -> Record:
    """Delete a link; the data stays."""
    entry = _find(ctx, params["AssociationId"])
    del ctx.table("associations")[entry["AssociationId"]]
    return {
        "AssociationId": entry["AssociationId"],
        "Lifecycle": "DELETING",
        "DeleteDataInFileSystem": params.get("DeleteDataInFileSystem", False),
    }
