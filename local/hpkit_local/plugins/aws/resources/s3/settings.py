"""Settings of a bucket: each is a separate resource, written as a whole."""

from collections.abc import Callable
from typing import Any, Final

from hpkit_local.plugins.aws.calls import Calls, Retry
from hpkit_local.plugins.aws.resource_type import PlannedUpdate, Prop, ResourceType, Update, properties
from hpkit_local.plugins.aws.shapes import camel, pascal, stamp, tag_list, tag_map
from hpkit_provider.engine.values import Props

__all__ = ["RESOURCE_TYPES"]

Document = dict[str, Any]

# The provider's name of each part of a rule, and S3's where it is more than another first letter.
_NAMES = {
    "id": "ID",
    "abortIncompleteMultipartUpload": "AbortIncompleteMultipartUpload",
    "noncurrentVersionExpiration": "NoncurrentVersionExpiration",
    "noncurrentVersionTransitions": "NoncurrentVersionTransitions",
}

_SIZES: Final = "objectSizeGreaterThan:integer objectSizeLessThan:integer prefix"
_NONCURRENT: Final = "noncurrentDays:integer! newerNoncurrentVersions:integer"
_FILTER: Final = {"and": properties(f"{_SIZES} tags:map"), "tag": properties("key! value!")}
_LIFECYCLE: Final = properties(
    "id! status! prefix filter:object expiration:object transitions:list noncurrentVersionExpiration:object "
    "noncurrentVersionTransitions:list abortIncompleteMultipartUpload:object",
    filter=properties(f"{_SIZES} and:object tag:object", **_FILTER),
    expiration=properties("date days:integer expiredObjectDeleteMarker:boolean"),
    transitions=properties("date days:integer storageClass!"),
    noncurrentVersionExpiration=properties(_NONCURRENT),
    noncurrentVersionTransitions=properties(f"{_NONCURRENT} storageClass!"),
    abortIncompleteMultipartUpload=properties("daysAfterInitiation:integer"),
)


def to_rule(rule: Document) -> Document:
    """Return a rule as S3 takes it: every rule has a filter, if only an empty one."""
    api_rule = {_NAMES.get(name, name[:1].upper() + name[1:]): pascal(value) for name, value in rule.items()}
    chosen = dict(rule.get("filter") or {})
    both = chosen.get("and")
    if both and both.get("tags"):
        api_rule["Filter"]["And"]["Tags"] = tag_list(both["tags"])
    if not chosen and "prefix" not in rule:
        api_rule["Filter"] = {"Prefix": ""}
    return api_rule


def from_rule(rule: Document) -> Document:
    """Return a rule in the provider's format."""
    props = {"id": rule["ID"], **camel({name: value for name, value in rule.items() if name != "ID"})}
    both = rule.get("Filter", {}).get("And")
    if both and both.get("Tags"):
        props["filter"]["and"]["tags"] = tag_map(both["Tags"])
    if "date" in props.get("expiration", {}):
        props["expiration"]["date"] = stamp(props["expiration"]["date"])
    for transition in props.get("transitions", []):
        if "date" in transition:
            transition["date"] = stamp(transition["date"])
    return props


_BLOCKS = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")


def _setting(
    name: str,
    props: tuple[Prop, ...],
    *,
    put: str,
    get: str,
    remove: str,
    request: Callable[[Props], Document],
    props_from: Callable[[Document], Props | None],
    undo: Callable[[Calls, str, Props], None] | None = None,
    wait: Update | None = None,
    errors: tuple[str, ...] = (),
) -> ResourceType:
    """Return the kind of a setting with a call to put it, one to get it and one to delete it.

    errors: those that the official plugin waits out for two minutes when it puts the setting.
    """

    def create(call: Calls, inputs: Props) -> str:
        call(put, Bucket=inputs["bucket"], **request(inputs))
        return str(inputs["bucket"])

    def read(call: Calls, bucket: str, _recorded: Props) -> Props | None:
        answer = call.find(get, Bucket=bucket)
        live = props_from(answer) if answer else None
        return None if live is None else {"bucket": bucket, **live}

    def update(call: Calls, bucket: str, change: PlannedUpdate) -> None:
        call(put, Bucket=bucket, **request(change.new))

    def delete(call: Calls, bucket: str, state: Props) -> None:
        if undo:
            undo(call, bucket, state)
        else:
            call.find(remove, Bucket=bucket)

    return ResourceType(
        f"aws:s3/bucket{name}:Bucket{name}",
        props=(*properties("bucket!"), *props),
        create=create,
        read=read,
        update=update,
        wait=wait,
        delete=delete,
        retries={put: Retry(120.0, ("NoSuchBucket", *errors))},
    )


def _suspend(call: Calls, bucket: str, state: Props) -> None:
    """Versioning cannot be taken away, only suspended."""
    if state.get("versioningConfiguration", {}).get("status") == "Enabled":
        call.find("PutBucketVersioning", Bucket=bucket, VersioningConfiguration={"Status": "Suspended"})


def _versioning(answer: Document) -> Props | None:
    return {"versioningConfiguration": {"status": answer["Status"]}} if "Status" in answer else None


_SSE = "applyServerSideEncryptionByDefault"


def _encryption(answer: Document) -> Props:
    rules = answer["ServerSideEncryptionConfiguration"]["Rules"]
    return {
        "rules": [
            {
                "bucketKeyEnabled": rule.get("BucketKeyEnabled", False),
                _SSE: {
                    "sseAlgorithm": rule["ApplyServerSideEncryptionByDefault"]["SSEAlgorithm"],
                    "kmsMasterKeyId": rule["ApplyServerSideEncryptionByDefault"].get("KMSMasterKeyID", ""),
                },
            }
            for rule in rules
        ]
    }


def _encrypted(props: Props) -> Document:
    rules = []
    for rule in props["rules"]:
        chosen = rule[_SSE]
        by_default = {"SSEAlgorithm": chosen["sseAlgorithm"]}
        if chosen.get("kmsMasterKeyId"):
            by_default["KMSMasterKeyID"] = chosen["kmsMasterKeyId"]
        keyed = rule.get("bucketKeyEnabled", False)
        rules.append({"ApplyServerSideEncryptionByDefault": by_default, "BucketKeyEnabled": keyed})
    return {"ServerSideEncryptionConfiguration": {"Rules": rules}}


def _settle_rules(call: Calls, _bucket: str, _change: PlannedUpdate) -> None:
    # After ten seconds, ten equal reads, five seconds apart (terraform-provider-aws 6.58.0,
    # s3/waitLifecycleConfigEquals).
    call.settle(55.0)


RESOURCE_TYPES: Final = (
    _setting(
        "Versioning",
        properties("versioningConfiguration:object!", versioningConfiguration=properties("status!")),
        put="PutBucketVersioning",
        get="GetBucketVersioning",
        remove="PutBucketVersioning",
        request=lambda props: {"VersioningConfiguration": {"Status": props["versioningConfiguration"]["status"]}},
        props_from=_versioning,
        undo=_suspend,
    ),
    _setting(
        "ServerSideEncryptionConfiguration",
        properties(
            "rules:list!",
            rules=properties(
                f"bucketKeyEnabled:boolean {_SSE}:object!", **{_SSE: properties("sseAlgorithm! kmsMasterKeyId")}
            ),
        ),
        put="PutBucketEncryption",
        get="GetBucketEncryption",
        remove="DeleteBucketEncryption",
        request=_encrypted,
        props_from=_encryption,
    ),
    _setting(
        "PublicAccessBlock",
        properties(" ".join(f"{name}:boolean" for name in _BLOCKS)),
        put="PutPublicAccessBlock",
        get="GetPublicAccessBlock",
        remove="DeletePublicAccessBlock",
        request=lambda props: {"PublicAccessBlockConfiguration": pascal({name: props[name] for name in _BLOCKS})},
        props_from=lambda answer: dict(camel(answer["PublicAccessBlockConfiguration"])),
    ),
    _setting(
        "OwnershipControls",
        properties("rule:object!", rule=properties("objectOwnership!")),
        put="PutBucketOwnershipControls",
        get="GetBucketOwnershipControls",
        remove="DeleteBucketOwnershipControls",
        request=lambda props: {"OwnershipControls": {"Rules": [pascal(props["rule"])]}},
        props_from=lambda answer: {"rule": camel(answer["OwnershipControls"]["Rules"][0])},
    ),
    _setting(
        "Policy",
        properties("policy:policy!"),
        put="PutBucketPolicy",
        get="GetBucketPolicy",
        remove="DeleteBucketPolicy",
        request=lambda props: {"Policy": props["policy"]},
        props_from=lambda answer: {"policy": answer["Policy"]},
        errors=("MalformedPolicy",),
    ),
    _setting(
        "LifecycleConfiguration",
        properties("rules:list", rules=_LIFECYCLE),
        put="PutBucketLifecycleConfiguration",
        get="GetBucketLifecycleConfiguration",
        remove="DeleteBucketLifecycle",
        request=lambda props: {"LifecycleConfiguration": {"Rules": [to_rule(rule) for rule in props.get("rules", [])]}},
        props_from=lambda answer: {"rules": [from_rule(rule) for rule in answer["Rules"]]},
        wait=_settle_rules,
    ),
)
