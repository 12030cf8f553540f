"""The bucket of lifecycle scripts, with hpkit's own script; optionally an FSx for Lustre file system.

When a node starts, HyperPod runs the script at `SourceS3Uri`, without a digest or an object version (SageMaker API
reference, ClusterLifeCycleConfig). So that script is hpkit's, in a bucket that only deployers can write. A script at
another location is fetched by a loader that checks its digest.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Mapping
from pathlib import Path

import pulumi
import pulumi_aws as aws

from hpkit.config.models.storage import Lustre
from hpkit.plan.existing import makes_bucket, makes_script, verified_scripts
from hpkit.plan.model import Plan
from hpkit.plan.names import bucket_name
from hpkit.plan.principals import is_viewer, writers_of
from hpkit.plan.protected import deletion_protected, kept
from hpkit.plan.user_ids import SQUASHED
from hpkit.program.components.cluster.network import Network
from hpkit.program.components.common.base import Component, DeployContext, document

__all__ = ["ON_CREATE", "Storage", "harden", "loader"]

_OLD_VERSIONS_DAYS = 90


def harden(
    component: Component,
    name: str,
    bucket: aws.s3.Bucket,
    *,
    policy: pulumi.Output[str],
    key_arn: str | None = None,
    keep_policy: bool = False,
) -> list[pulumi.Resource]:
    """Return what must be in effect before a bucket is written to; name: the prefix of all its resources.

    key_arn: None for S3's key; keep_policy: the caller can't decide on the policy, and doesn't change it.
    """
    private = aws.s3.BucketPublicAccessBlock(
        name,
        bucket=bucket.id,
        block_public_acls=True,
        block_public_policy=True,
        ignore_public_acls=True,
        restrict_public_buckets=True,
        opts=component.child(),
    )
    owned = aws.s3.BucketOwnershipControls(
        name, bucket=bucket.id, rule={"object_ownership": "BucketOwnerEnforced"}, opts=component.child()
    )
    encrypted = aws.s3.BucketServerSideEncryptionConfiguration(
        name,
        bucket=bucket.id,
        rules=[
            aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
                apply_server_side_encryption_by_default=_by_default(key_arn), bucket_key_enabled=key_arn is not None
            )
        ],
        opts=component.child(),
    )
    versioned = aws.s3.BucketVersioning(
        name, bucket=bucket.id, versioning_configuration={"status": "Enabled"}, opts=component.child()
    )
    aws.s3.BucketLifecycleConfiguration(
        name,
        bucket=bucket.id,
        rules=[
            {
                "id": "old-versions",
                "status": "Enabled",
                "filter": {"prefix": ""},
                "noncurrent_version_expiration": {"noncurrent_days": _OLD_VERSIONS_DAYS},
            }
        ],
        opts=component.child(after=[versioned]),
    )
    guarded = aws.s3.BucketPolicy(
        name,
        bucket=bucket.id,
        policy=policy,
        opts=pulumi.ResourceOptions.merge(
            component.child(after=[private]), pulumi.ResourceOptions(ignore_changes=["policy"] if keep_policy else None)
        ),
    )
    return [private, owned, encrypted, versioned, guarded]


def _by_default(
    key_arn: str | None,
) -> aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs:
    return aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
        sse_algorithm="aws:kms" if key_arn else "AES256", kms_master_key_id=key_arn
    )


ON_CREATE = "on_create.sh"
_FOLDER = Path(__file__).parent / "lifecycle"


class Storage(Component):
    """Lifecycle scripts and file systems.

    bucket_arn is None if no group has a script; lifecycle_uri: folder of hpkit's own script, named after its contents,
    None if no group runs it. loader_uris: folder of the loader of each script that nodes verify, by its URI and
    SHA-256. ready: what must exist before a node does. lustre: the file system, if one exists. kept: IDs of what must
    not be lost, by name in `allowReplace`.
    """

    bucket_arn: pulumi.Output[str] | None = None
    lifecycle_uri: pulumi.Output[str] | None = None
    loader_uris: Mapping[tuple[str, str], pulumi.Output[str]]
    ready: tuple[pulumi.Resource, ...] = ()
    kept: Mapping[str, pulumi.Output[str]]

    def __init__(
        self, name: str, plan: Plan, context: DeployContext, *, network: Network, opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__(name, opts=opts)
        self._plan = plan
        # Declared here, because Pulumi imports the types that a class declares.
        self.lustre: aws.fsx.LustreFileSystem | None = None
        self.kept, self.loader_uris = {}, {}
        spec = plan.spec.storage
        if spec is not None and spec.existing is not None:
            self._use(spec.existing.bucket, context)
        elif makes_bucket(plan):
            self._make(context)
        if spec is not None and spec.lustre is not None:
            self.lustre = self._lustre(spec.lustre, network)
            self.kept = {**self.kept, "fileSystem": self.lustre.id}
        self.register_outputs({"bucketArn": self.bucket_arn, "lifecycleUri": self.lifecycle_uri})

    def _use(self, bucket: str, context: DeployContext) -> None:
        self.bucket_arn = pulumi.Output.from_input(f"arn:{context.account.partition}:s3:::{bucket}")
        name = pulumi.Output.from_input(bucket)
        own = (self._script(name, []),) if makes_script(self._plan) else ()
        self.ready = (*own, *self._loaders(name, []))

    def _make(self, context: DeployContext) -> None:
        bucket = aws.s3.Bucket(
            "lifecycle",
            bucket=bucket_name(self._plan, context.account.id),
            # Old versions of scripts are no reason to keep an unprotected bucket.
            force_destroy=not deletion_protected(self._plan, "bucket"),
            opts=self.child(protect=kept(self._plan, "bucket")),
        )
        self.bucket_arn, self.kept = bucket.arn, {"bucket": bucket.id}
        deployers = list(writers_of(self._plan, context.caller))
        closed = harden(
            self,
            "lifecycle",
            bucket,
            key_arn=self.key_arn,
            policy=document(
                "bucket",
                bucket=bucket.arn,
                whose="Deployers",
                writers=deployers,
                keepers=deployers,
                sealed_bucket=bucket.arn if self._plan.spec.deployers else None,
            ),
            # A caller with read-only permissions isn't a writer, and doesn't know who was.
            keep_policy=is_viewer(self._plan, context.caller),
        )
        self.ready = (self._script(bucket.id, closed), *self._loaders(bucket.id, closed), *closed)

    @property
    def key_arn(self) -> str | None:
        """The key of the bucket and the file system; None where S3 and FSx use their own keys."""
        return self._plan.spec.storage.kms_key_arn if self._plan.spec.storage else None

    def _script(self, bucket: pulumi.Output[str], closed: list[pulumi.Resource]) -> aws.s3.BucketObjectv2:
        self.lifecycle_uri, made = self._upload("on-create", bucket, (_FOLDER / ON_CREATE).read_text("utf-8"), closed)
        return made

    def _loaders(self, bucket: pulumi.Output[str], closed: list[pulumi.Resource]) -> list[pulumi.Resource]:
        uris: dict[tuple[str, str], pulumi.Output[str]] = {}
        scripts: list[pulumi.Resource] = []
        for uri, digest in verified_scripts(self._plan):
            uris[uri, digest], script = self._upload(_loader_name(uri, digest), bucket, loader(uri, digest), closed)
            scripts.append(script)
        self.loader_uris = uris
        return scripts

    def _upload(
        self, name: str, bucket: pulumi.Output[str], content: str, closed: list[pulumi.Resource]
    ) -> tuple[pulumi.Output[str], aws.s3.BucketObjectv2]:
        """Return the folder of a script, named after its content, and the object in it."""
        folder = f"lifecycle/{_digest(content)}"
        script = aws.s3.BucketObjectv2(
            name,
            bucket=bucket,
            key=f"{folder}/{ON_CREATE}",
            content=content,
            content_type="text/x-shellscript",
            opts=self.child(after=closed),
        )
        return pulumi.Output.concat("s3://", bucket, "/", folder), script

    def _lustre(self, spec: Lustre, network: Network) -> aws.fsx.LustreFileSystem:
        return aws.fsx.LustreFileSystem(
            "lustre",
            subnet_ids=network.node_subnet_ids[spec.availability_zone],
            security_group_ids=list(network.security_group_ids),
            deployment_type="PERSISTENT_2",
            storage_type="SSD",
            file_system_type_version="2.15",
            data_compression_type="LZ4",
            storage_capacity=spec.storage_capacity_gib,
            per_unit_storage_throughput=spec.per_unit_storage_throughput,
            kms_key_id=self.key_arn,
            root_squash_configuration=_squash(spec),
            tags={"Name": self._plan.stack},
            # The plugin's default of 30 minutes can be too short for a file system with a large capacity.
            opts=self.child(
                after=network.connectivity,
                protect=kept(self._plan, "fileSystem"),
                # Whether AWS returns a root squash that is off isn't documented.
                ignore_changes=["rootSquashConfiguration"] if spec.root_squash is None else None,
                custom_timeouts=pulumi.CustomTimeouts(create="1h", update="1h", delete="1h"),
            ),
        )


def _squash(spec: Lustre) -> aws.fsx.LustreFileSystemRootSquashConfigurationArgs:
    """Return the root squash; `0:0` turns it off (FSx API reference, LustreRootSquashConfiguration)."""
    if spec.root_squash is None:
        return aws.fsx.LustreFileSystemRootSquashConfigurationArgs(root_squash="0:0")
    return aws.fsx.LustreFileSystemRootSquashConfigurationArgs(
        root_squash=f"{SQUASHED}:{SQUASHED}", no_squash_nids=list(spec.root_squash.no_squash_nids)
    )


def loader(uri: str, digest: str) -> str:
    """Return the script that fetches the folder of the one at a URI, and runs it only if the SHA-256 is the digest."""
    text = (_FOLDER / "load.sh").read_text("utf-8")
    return text.replace("@URI@", shlex.quote(uri)).replace("@SHA256@", digest)


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def _loader_name(uri: str, digest: str) -> str:
    return f"on-create-{_digest(f'{uri} {digest}')}"
