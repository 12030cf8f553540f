"""Buckets: private, encrypted, versioned, reached by TLS only; each bucket is checked with its companion resources."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from hpkit.text.formatting import listing
from hpkit_policies.documents import DocumentError, Statement, statements
from hpkit_policies.model import (
    UNKNOWN,
    Parameter,
    Policy,
    Resource,
    Results,
    Settings,
    Undecided,
    Violation,
    of_type,
    unknown_as_undecided,
)

__all__ = ["CHECKED", "POLICIES"]

# Each companion has today's token and the one that programs for version 6 of the provider use.
_BUCKETS: Final = ("aws:s3/bucket:Bucket", "aws:s3/bucketV2:BucketV2")
_BLOCKS: Final = ("aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock",)
_ENCRYPTIONS: Final = (
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration",
    "aws:s3/bucketServerSideEncryptionConfigurationV2:BucketServerSideEncryptionConfigurationV2",
)
_VERSIONINGS: Final = ("aws:s3/bucketVersioning:BucketVersioning", "aws:s3/bucketVersioningV2:BucketVersioningV2")
_POLICIES: Final = ("aws:s3/bucketPolicy:BucketPolicy",)
# Types of storage that these policies check.
CHECKED: Final = (*_BUCKETS, *_BLOCKS, *_ENCRYPTIONS, *_VERSIONINGS, *_POLICIES)
_SWITCHES: Final = ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")

# A service acts for whomever its request names; these keys bind it to one account (IAM user guide, "The confused deputy
# problem", cross-service prevention).
_SOURCES: Final = frozenset({"aws:sourceaccount", "aws:sourcearn", "aws:sourceorgid"})
_PRINCIPALS: Final = Parameter("principals", "Principals that bucket policies may allow, as written in the document.")


def _companions(bucket: Resource, resources: Sequence[Resource], types: Sequence[str]) -> list[Resource]:
    """Return the companions of a bucket: by the source of their bucket, or else by its name."""
    bucket_names = {name for key in ("id", "bucket") if isinstance(name := bucket.get_or_unknown(key), str)}
    return [
        other
        for other in of_type(resources, *types)
        if bucket.urn in other.property_dependencies.get("bucket", ()) or other.get_or_unknown("bucket") in bucket_names
    ]


def _of_each_bucket(
    check: Callable[[Resource, Sequence[Resource]], Results],
) -> Callable[[Sequence[Resource], Settings], Results]:
    """Return a check of one bucket with all resources, for use as a stack policy."""

    def validate(resources: Sequence[Resource], _settings: Settings) -> Results:
        for bucket in of_type(resources, *_BUCKETS):
            yield from unknown_as_undecided(check(bucket, resources), bucket)

    return validate


def _private(bucket: Resource, resources: Sequence[Resource]) -> Results:
    blocks = _companions(bucket, resources, _BLOCKS)
    missing = [switch for switch in _SWITCHES if not any(block.get(switch) is True for block in blocks)]
    if missing:
        yield Violation(
            f"`{bucket.name}` doesn't block public access ({listing(missing)})",
            "Add a BucketPublicAccessBlock with all four settings on.",
            bucket,
        )


def _encrypted(bucket: Resource, resources: Sequence[Resource]) -> Results:
    # If the program sets nothing, the bucket's own property is unknown at preview, because S3 sets it.
    stated = isinstance(bucket.get_or_unknown("serverSideEncryptionConfiguration"), Mapping)
    if not stated and not _companions(bucket, resources, _ENCRYPTIONS):
        yield Violation(
            f"`{bucket.name}` has no encryption configuration",
            "Add a BucketServerSideEncryptionConfiguration with aws:kms or AES256.",
            bucket,
        )


def _versioned(bucket: Resource, resources: Sequence[Resource]) -> Results:
    companions = _companions(bucket, resources, _VERSIONINGS)
    states = [companion.get("versioningConfiguration.status") for companion in companions]
    if "Enabled" not in states and bucket.get_or_unknown("versioning.enabled") is not True:
        yield Violation(
            f"`{bucket.name}` has no versioning ({listing([str(state) for state in states]) or 'not configured'})",
            "Add a BucketVersioning with status Enabled.",
            bucket,
        )


def _tls_only(bucket: Resource, resources: Sequence[Resource]) -> Results:
    documents: list[Any] = [
        companion.get_or_unknown("policy") for companion in _companions(bucket, resources, _POLICIES)
    ]
    try:
        known_statements = [
            statement for document in documents if document is not UNKNOWN for statement in statements(document)
        ]
    except DocumentError as error:
        yield Violation(f"the policy of `{bucket.name}` can't be read: {error}", "Use a JSON policy document.", bucket)
        return
    if any(_rejects_plain_http(statement) for statement in known_statements):
        return
    if UNKNOWN in documents:
        yield Undecided(f"`{bucket.name}`: its bucket policy isn't known before the update", bucket)
        return
    yield Violation(
        f"`{bucket.name}` accepts requests without TLS",
        'Add a BucketPolicy that denies s3:* on the bucket and its objects where aws:SecureTransport is "false".',
        bucket,
    )


def _allows_no_others(resource: Resource, settings: Settings) -> Results:
    document = resource.get("policy")
    if document is None:
        return
    try:
        allowed = [statement for statement in statements(document) if statement.allows]
    except DocumentError as error:
        yield Violation(f"the policy of `{resource.name}` can't be read: {error}", "Use a JSON policy document.")
        return
    for statement in allowed:
        others = {name for names in statement.principals.values() for name in names} - set(settings[_PRINCIPALS.name])
        if _SOURCES & statement.binding_conditions().keys():
            others -= set(statement.principals.get("Service", ()))
        if statement.not_principals:
            others.add(f"everyone except {listing(list(statement.not_principals))}")
        if others:
            yield Violation(
                f"the policy of `{resource.name}` allows {listing(sorted(others))} {listing(list(statement.actions))}",
                "Grant roles of this account access in their own policies, or list the principal in "
                f"`{_PRINCIPALS.name}`.",
            )


def _rejects_plain_http(statement: Statement) -> bool:
    tests = {key.lower(): values for key, values in statement.conditions.get("Bool", {}).items()}
    rejected = {value.lower() for value in tests.get("aws:securetransport", ())}
    everyone = "*" in {name for names in statement.principals.values() for name in names}
    objects = any(each == "*" or each.endswith("/*") for each in statement.resources)
    whole = any(each == "*" or not each.endswith("/*") for each in statement.resources)
    return (
        statement.effect == "Deny"
        and rejected == {"false"}
        and len(statement.condition_keys()) == 1
        and everyone
        and bool({"*", "s3:*"} & set(statement.actions))
        and objects
        and whole
    )


POLICIES = (
    Policy(
        name="bucket-private",
        description="Buckets block public access in all four ways.",
        validate_stack=_of_each_bucket(_private),
    ),
    Policy(
        name="bucket-encrypted",
        description="Buckets have an encryption configuration.",
        validate_stack=_of_each_bucket(_encrypted),
    ),
    Policy(name="bucket-versioned", description="Buckets have versioning.", validate_stack=_of_each_bucket(_versioned)),
    Policy(
        name="bucket-policy-limited",
        description="Bucket policies allow only AWS services that act for one account.",
        types=(*_BUCKETS, *_POLICIES),
        validate=_allows_no_others,
        parameters=(_PRINCIPALS,),
    ),
    Policy(
        name="bucket-tls-only",
        description="Buckets reject requests without TLS.",
        validate_stack=_of_each_bucket(_tls_only),
    ),
)
