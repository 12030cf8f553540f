"""STO: file systems."""

from collections.abc import Iterator

from hpkit.catalog import kubernetes_versions, version_order
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.config.models.governance import MOST_ID
from hpkit.config.models.storage import DataRepository, TeamBucket
from hpkit.config.reading.document import Path
from hpkit.plan.existing import team_buckets
from hpkit.plan.lustre import has_team_volumes
from hpkit.plan.names import bucket_name, certificate_bucket_name
from hpkit.text.formatting import listing

__all__ = ["RULES", "not_of_lustre"]

_GOVERNANCE = "SageMaker HyperPod developer guide, task governance: a team's namespace comes with its quota"
_FSX = "Amazon FSx for Lustre user guide, file system deployment"
_CREATE = "Amazon FSx API reference, CreateFileSystem: StorageCapacity; UpdateFileSystem (PERSISTENT_2)"
# Of SSD file systems that persist; capacities grow by the larger step.
_THROUGHPUTS = (125, 250, 500, 1000)
_VOLUMES = "Kubernetes, Persistent Volumes: node affinity"
_SQUASH = 'Lustre manual, "Root Squash": servers trust the user id that a client names'
_IDS_SOURCE = "Linux, fs.overflowuid; Kubernetes API, SecurityContext: runAsUser"
# What clients and namespaces show for an unknown user, of 16 and of 32 bits less one.
_NOBODY = (65534, 65535)
_GROUPS = "Kubernetes, Configure fine-grained SupplementalGroups control: enabled by default since 1.33"
_GROUPS_SINCE = "1.33"
_IAM = "IAM user guide, IAM and AWS STS quotas"
# Characters of all inline policies of a role, without white space.
_INLINE_SIZE = 10_240
_LINKS = "Amazon FSx API reference, CreateDataRepositoryAssociation"
_MOST_LINKS = 8
_S3 = "Amazon S3 user guide, identity-based policies: prefixes of object keys"
_FIRST_FREE, _IDS = 20_000, 1000
_SMALLEST_GIB, _STEP_GIB = 1200, 2400


def _zone_of_lustre(context: Context) -> Iterator[Issue]:
    lustre = context.spec.storage.lustre if context.spec.storage else None
    zones = [zone.availability_zone for zone in context.plan.network.zones]
    if lustre is None or lustre.availability_zone in (*zones, *context.zones_meant):
        return
    if zone_name := context.zone_of_region(lustre.availability_zone):
        yield Issue(
            (*context.path, "storage", "lustre", "availabilityZone"),
            f"the file system is in {lustre.availability_zone}, which isn't in {context.spec.region}",
            f"Use `{zone_name}`.",
        )
    else:
        yield Issue(
            (*context.path, "storage", "lustre", "availabilityZone"),
            f"the file system is in {lustre.availability_zone}, where the network has no subnet (zones: "
            f"{listing(zones) or 'none'})",
            "Use the zone of the groups that mount it.",
        )


def _without_teams(context: Context) -> Iterator[Issue]:
    storage = context.spec.storage
    with_quota = {team.name for team in context.plan.teams}
    for team in storage.team_buckets if storage else ():
        if team not in with_quota:
            yield Issue(
                (*context.path, "storage", "teamBuckets", team),
                f"team `{team}` has buckets, but no quota and so no namespace in this environment",
                f"Add an allocation for team `{team}`, or use the name of a team with quota: "
                f"{listing(sorted(with_quota)) or 'none'}.",
            )
    for team, link, path in _team_folders(context):
        if team and team not in with_quota:
            yield Issue(
                (*path, "path"),
                f"{link.path} is a folder of team `{team}`, which has no quota and so no namespace in this environment",
                f"Use the folder of a team with quota: {listing(sorted(with_quota)) or 'none'}.",
            )
    if storage is None or context.plan.teams:
        return
    if storage.lustre is not None and storage.lustre.teams:
        yield Issue(
            (*context.path, "storage", "lustre", "teams"),
            "`teams` is true, but no team has a namespace in this environment",
            "Add an allocation for a team to governance, or remove `teams`.",
        )
    if storage.local_disk is not None:
        yield Issue(
            (*context.path, "storage", "localDisk"),
            "local disks have a folder for each team, but no team has a namespace in this environment",
            "Add an allocation for a team to governance, or remove `localDisk`.",
        )


def _buckets_are_separate(context: Context) -> Iterator[Issue]:
    places = _team_places(context)
    own = {name: what for name, what in _own_buckets(context) if name}
    for team, bucket, path in places:
        if bucket.bucket in own and isinstance(bucket, TeamBucket):
            yield Issue(
                (*path, "bucket"),
                f"team `{team}` would have access to bucket `{bucket.bucket}`, {own[bucket.bucket]}",
                "Use a bucket that contains only data of the team.",
            )
    for position, (team, bucket, path) in enumerate(places):
        for other, theirs, _ in places[:position]:
            mine, their = bucket.prefix or "", theirs.prefix or ""
            same = (team, bucket.bucket, mine) == (other, theirs.bucket, their)
            if same and type(bucket) is type(theirs) is TeamBucket:
                yield Issue(
                    path, f"`{bucket.bucket}/{mine}*` is listed twice for team `{team}`", "Remove one of the two."
                )
            apart = team == other or bucket.bucket != theirs.bucket
            # Links that overlap with each other are another rule's.
            apart |= isinstance(bucket, DataRepository) and isinstance(theirs, DataRepository)
            if apart or not (mine.startswith(their) or their.startswith(mine)):
                continue
            if _writes(bucket) or _writes(theirs):
                yield Issue(
                    path,
                    f"teams `{team}` and `{other}` share `{bucket.bucket}/{max(mine, their, key=len)}*`, and not "
                    "both of them only read it",
                    "Give each team a prefix of its own, or let both only read it (`readOnly`, and no `autoExport`).",
                )
                break


def _links_are_separate(context: Context) -> Iterator[Issue]:
    lustre = context.spec.storage.lustre if context.spec.storage else None
    links = lustre.data_repositories if lustre else ()
    path: Path = (*context.path, "storage", "lustre", "dataRepositories")
    if len(links) > _MOST_LINKS:
        yield Issue(path, f"{len(links)} folders are linked; the limit is {_MOST_LINKS}", "Link a common parent.")
    own = {name: what for name, what in _own_buckets(context) if name}
    for index, link in enumerate(links):
        where = (*path, index)
        if link.auto_export and link.bucket in own:
            yield Issue(
                (*where, "bucket"),
                f"files of {link.path} would be exported to bucket `{link.bucket}`, {own[link.bucket]}",
                "Use a bucket that contains only data.",
            )
        for other in links[:index]:
            places = [(f"{each.path}/", f"s3://{each.bucket}/{each.prefix or ''}") for each in (link, other)]
            for key, mine, theirs in zip(("path", "bucket"), *places, strict=True):
                if mine.startswith(theirs) or theirs.startswith(mine):
                    yield Issue(
                        (*where, key),
                        f"{link.path} and {other.path} overlap: {mine} and {theirs}",
                        "Link each folder and each prefix only once.",
                    )


def _writes(place: TeamBucket | DataRepository) -> bool:
    return not place.read_only if isinstance(place, TeamBucket) else bool(place.auto_export)


def _team_places(context: Context) -> list[tuple[str, TeamBucket | DataRepository, Path]]:
    """Return the teams' buckets, and the links whose folder teams reach, each with its team."""
    stated = context.spec.storage.team_buckets if context.spec.storage else {}
    path = (*context.path, "storage", "teamBuckets")
    return [
        *((team, each, (*path, team, index)) for team, buckets in stated.items() for index, each in enumerate(buckets)),
        *((team or "all teams", link, where) for team, link, where in _team_folders(context)),
    ]


def _team_folders(context: Context) -> Iterator[tuple[str, DataRepository, Path]]:
    """Yield the links whose folder teams reach, each with its team; "" if it has the folders of all teams."""
    lustre = context.spec.storage.lustre if context.spec.storage else None
    for index, link in enumerate(lustre.data_repositories if lustre and lustre.teams else ()):
        _, folder, team, *_ = [*link.path.split("/"), "", ""]
        if folder == "teams":
            yield team, link, (*context.path, "storage", "lustre", "dataRepositories", index)


def _policies_fit(context: Context) -> Iterator[Issue]:
    for team, buckets in team_buckets(context.plan).items():
        # At most as long as in the template `team-bucket`, with what doesn't depend on the buckets.
        size = 800
        for each in buckets:
            name, prefix, key = len(each.bucket), len(each.prefix or ""), len(each.kms_key_arn or "")
            size += 2 * (name + prefix + 30) + name + 30 + (2 * prefix + 190 if prefix else 0) + 2 * (key + 3)
        if size > _INLINE_SIZE:
            yield Issue(
                (*context.path, "storage", "teamBuckets", team),
                f"the policy of team `{team}`'s role would have about {size:,} characters for {len(buckets)} "
                f"buckets; IAM's limit is {_INLINE_SIZE:,}",
                "Put the data of several of these buckets into one, or use shorter prefixes.",
            )


def _own_buckets(context: Context) -> Iterator[tuple[str | None, str]]:
    """Yield the platform's own buckets, and what they contain."""
    spec, scripts = context.spec, "which contains scripts that nodes run as root"
    if spec.account:
        yield bucket_name(context.plan, spec.account), scripts
        yield certificate_bucket_name(context.plan, spec.account), "which contains certificates"
    yield spec.storage.existing.bucket if spec.storage and spec.storage.existing else None, scripts
    yield spec.inference.tls_certificate_bucket if spec.inference else None, "which contains certificates"
    for group in context.plan.groups:
        uri = group.spec.lifecycle_script
        yield uri.partition("://")[2].partition("/")[0] if uri else None, scripts


def _types_with_disks(context: Context) -> Iterator[Issue]:
    disk = context.spec.storage.local_disk if context.spec.storage else None
    types = sorted({name for group in context.plan.all_groups for name in group.spec.types})
    for position, name in enumerate(disk.instance_types if disk else ()):
        if name not in types:
            yield Issue(
                (*context.path, "storage", "localDisk", "instanceTypes", position),
                f"no instance group has {name}, so pods with the claim `local-claim` can't run there",
                f"Use types of instance groups: {listing(types) or 'none'}.",
            )


def not_of_lustre(size_path: Path, size: int, throughput_path: Path, throughput: int) -> Iterator[Issue]:
    """Yield invalid sizes in GiB, and throughputs in MB/s per TiB, of a persistent SSD file system."""
    if size != _SMALLEST_GIB and size % _STEP_GIB:
        below = max(size // _STEP_GIB * _STEP_GIB, _SMALLEST_GIB)
        above = (size // _STEP_GIB + 1) * _STEP_GIB
        yield Issue(
            size_path,
            f"{size} GiB isn't a valid file system size: it must be {_SMALLEST_GIB} or a multiple of {_STEP_GIB}",
            f"Use {below} or {above}.",
        )
    if throughput not in _THROUGHPUTS:
        throughputs = listing([str(each) for each in _THROUGHPUTS])
        yield Issue(
            throughput_path, f"{throughput} MB/s per TiB isn't a valid throughput", f"Use one of {throughputs}."
        )


def _sizes(context: Context) -> Iterator[Issue]:
    lustre = context.spec.storage.lustre if context.spec.storage else None
    if lustre is not None:
        path: Path = (*context.path, "storage", "lustre")
        places = (*path, "storageCapacityGiB"), (*path, "perUnitStorageThroughput")
        yield from not_of_lustre(places[0], lustre.storage_capacity_gib, places[1], lustre.per_unit_storage_throughput)


def _beside_groups(context: Context) -> Iterator[Issue]:
    lustre = context.spec.storage.lustre if context.spec.storage else None
    if lustre is None:
        return
    zones = {zone for group in context.plan.all_groups for zone in group.zones}
    # STO001 reports a missing subnet.
    there = {zone.availability_zone for zone in context.plan.network.zones}
    if zones and lustre.availability_zone in there - zones:
        yield Issue(
            (*context.path, "storage", "lustre", "availabilityZone"),
            f"the file system is in {lustre.availability_zone}, but all groups are in {listing(sorted(zones))}; "
            "traffic between zones is slower and is billed",
            f"Use `{min(zones)}`." if len(zones) == 1 else "Use the zone of the groups that mount it.",
        )


def _team_ids(context: Context) -> list[tuple[range, str, Path]]:
    """Return the IDs of each team with a claim in this environment, its name, and where they are set."""
    if not has_team_volumes(context.plan):
        return []
    places = {team.name: (number, team.user_ids) for number, team in enumerate(context.organization.teams)}
    ids = []
    for team in context.plan.teams:
        if team.name in places:
            number, user_ids = places[team.name]
            ids.append((team.user_ids, team.name, ("teams", number, *(("userIds",) if user_ids else ()))))
    return sorted(ids, key=lambda entry: (entry[0].start, entry[1]))


def _own_ids(context: Context) -> Iterator[Issue]:
    teams = _team_ids(context)
    # The earlier range that ends last: only that one can overlap the next.
    widest: tuple[range, str] | None = None
    for own, name, path in teams:
        # Two teams, or a team and the shared pool, with one name are CFG004 and GOV012.
        if widest is not None and own.start < widest[0].stop and name != widest[1]:
            earlier, its_name = widest
            yield Issue(
                path,
                f"userIds of team `{name}` are {own.start}–{own.stop - 1}, and of `{its_name}` "
                f"{earlier.start}–{earlier.stop - 1}; both include {own.start}–{min(own.stop, earlier.stop) - 1}",
                f"Set `userIds: {{first: {_free(teams)}}}` for {name}.",
            )
        if widest is None or own.stop > widest[0].stop:
            widest = (own, name)


def _free(teams: list[tuple[range, str, Path]]) -> int:
    """Return the first of a thousand ids from 20000 on that no team has."""
    first = _FIRST_FREE
    for own, _, _ in teams:
        if own.start < first + _IDS and first < own.stop:
            first = -(-own.stop // _IDS) * _IDS
    return first


def _ids_of_the_system(context: Context) -> Iterator[Issue]:
    for own, name, path in _team_ids(context):
        if any(nobody in own for nobody in _NOBODY):
            yield Issue(
                path,
                f"userIds of team `{name}` are {own.start}–{own.stop - 1}; this includes {_NOBODY[0]} or "
                f"{_NOBODY[1]}, the user `nobody`, to which root and unknown users are mapped",
                f"Set `userIds: {{first: {_free([*_team_ids(context)])}}}` for {name}.",
            )
        elif own.stop - 1 > MOST_ID:
            yield Issue(
                path,
                f"userIds of team `{name}` end at {own.stop - 1}; the largest user ID in Kubernetes is {MOST_ID}",
                f"Set `userIds: {{first: {_free([*_team_ids(context)])}}}` for {name}.",
            )


def _groups_of_images(context: Context) -> Iterator[Issue]:
    version = context.spec.eks.version
    if has_team_volumes(context.plan) and version_order(version) < version_order(_GROUPS_SINCE):
        yield Issue(
            (*context.path, "eks", "version"),
            f"Kubernetes is {version}, but `storage.lustre.teams` requires {_GROUPS_SINCE}: before, an image can add "
            "groups of other teams to its user",
            f'Use `"{kubernetes_versions()[-1]}"`, or remove `teams` from `storage.lustre`.',
        )


RULES = (
    Rule("STO001", "error", "The file system is in a zone with a subnet.", _FSX, _zone_of_lustre, waivable=False),
    Rule("STO002", "error", "Only teams of the environment have claims and buckets.", _GOVERNANCE, _without_teams),
    Rule("STO003", "error", "The file system has a valid size and throughput.", _CREATE, _sizes),
    Rule("STO004", "warning", "The file system is in the zone of an instance group.", _FSX, _beside_groups),
    Rule(
        "STO005",
        "error",
        "User IDs of teams don't overlap, and don't include system users.",
        f"{_SQUASH}; {_IDS_SOURCE}",
        _own_ids,
        _ids_of_the_system,
    ),
    Rule("STO006", "error", "Teams write only to their own data in buckets.", _S3, _buckets_are_separate),
    Rule("STO007", "error", "Linked folders and prefixes don't overlap.", _LINKS, _links_are_separate, waivable=False),
    Rule("STO008", "error", "Local disks belong to instance types of the environment.", _VOLUMES, _types_with_disks),
    Rule("STO009", "error", "Teams' folders require Kubernetes 1.33.", _GROUPS, _groups_of_images, waivable=False),
    Rule("STO010", "error", "The policies of teams' roles fit IAM's limit.", _IAM, _policies_fit, waivable=False),
)
