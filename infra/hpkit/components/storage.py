"""The bucket of lifecycle scripts, with the kit's own script in it; optionally an FSx for Lustre file system."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import pulumi
import pulumi_aws as aws

from hpkit.components.base import Component, DeployContext, document
from hpkit.components.network import Network
from hpkit.config.storage import Lustre
from hpkit.iam.documents import bucket_policy
from hpkit.plan.existing import makes_bucket, makes_script
from hpkit.plan.model import Plan
from hpkit.plan.names import bucket_name
from hpkit.plan.principals import is_viewer, writers_of
from hpkit.plan.protected import kept

__all__ = ["ON_CREATE", "Storage"]

ON_CREATE = "on_create.sh"
_SCRIPT = Path(__file__).parent / "lifecycle" / ON_CREATE
_OLD_VERSIONS_DAYS = 90


class Storage(Component):
    """Lifecycle scripts and file systems.

    bucket_arn is None where no group has a script; lifecycle_uri: folder of the kit's own script, named after its
    content, None where nobody runs it. ready: what must be there before a node is. lustre: the file system, if there is
    one. kept: ids of what must not be lost, by name in `allowReplace`.
    """

    bucket_arn: pulumi.Output[str] | None = None
    lifecycle_uri: pulumi.Output[str] | None = None
    ready: tuple[pulumi.Resource, ...] = ()
    lustre: aws.fsx.LustreFileSystem | None = None
    kept: Mapping[str, pulumi.Output[str]]

    def __init__(
        self, name: str, plan: Plan, context: DeployContext, *, network: Network, opts: pulumi.ResourceOptions
    ) -> None:
        super().__init__(name, opts=opts)
        self._plan = plan
        self.kept = {}
        wanted = plan.spec.storage
        if wanted is not None and wanted.existing is not None:
            self._use(wanted.existing.bucket, context)
        elif makes_bucket(plan):
            self._make(context)
        if wanted is not None and wanted.lustre is not None:
            self.lustre = self._lustre(wanted.lustre, network)
            self.kept = {**self.kept, "fileSystem": self.lustre.id}
        self.register_outputs({"bucketArn": self.bucket_arn, "lifecycleUri": self.lifecycle_uri})

    def _use(self, bucket: str, context: DeployContext) -> None:
        self.bucket_arn = pulumi.Output.from_input(f"arn:{context.account.partition}:s3:::{bucket}")
        if makes_script(self._plan):
            self.ready = (self._script(pulumi.Output.from_input(bucket), []),)

    def _make(self, context: DeployContext) -> None:
        bucket = aws.s3.Bucket(
            "lifecycle",
            bucket=bucket_name(self._plan, context.account.id),
            # Versions of scripts are no reason to keep a bucket that nobody protects.
            force_destroy=not self._plan.spec.protect,
            opts=self.child(protect=kept(self._plan, "bucket")),
        )
        self.bucket_arn, self.kept = bucket.arn, {"bucket": bucket.id}
        closed = self._harden_bucket(bucket, context.caller)
        self.ready = (self._script(bucket.id, closed), *closed)

    @property
    def key_arn(self) -> str | None:
        """The key of the bucket and the file system; None where S3 and FSx have keys of their own."""
        return self._plan.spec.storage.kms_key_arn if self._plan.spec.storage else None

    def _harden_bucket(self, bucket: aws.s3.Bucket, caller: str) -> list[pulumi.Resource]:
        """Private, encrypted, versioned, owner-enforced, TLS only, written by deployers alone."""
        private = aws.s3.BucketPublicAccessBlock(
            "lifecycle",
            bucket=bucket.id,
            block_public_acls=True,
            block_public_policy=True,
            ignore_public_acls=True,
            restrict_public_buckets=True,
            opts=self.child(),
        )
        owned = aws.s3.BucketOwnershipControls(
            "lifecycle", bucket=bucket.id, rule={"object_ownership": "BucketOwnerEnforced"}, opts=self.child()
        )
        encrypted = aws.s3.BucketServerSideEncryptionConfiguration(
            "lifecycle",
            bucket=bucket.id,
            rules=[
                aws.s3.BucketServerSideEncryptionConfigurationRuleArgs(
                    apply_server_side_encryption_by_default=_by_default(self.key_arn),
                    bucket_key_enabled=self.key_arn is not None,
                )
            ],
            opts=self.child(),
        )
        versioned = aws.s3.BucketVersioning(
            "lifecycle", bucket=bucket.id, versioning_configuration={"status": "Enabled"}, opts=self.child()
        )
        aws.s3.BucketLifecycleConfiguration(
            "lifecycle",
            bucket=bucket.id,
            rules=[
                {
                    "id": "old-versions",
                    "status": "Enabled",
                    "filter": {"prefix": ""},
                    "noncurrent_version_expiration": {"noncurrent_days": _OLD_VERSIONS_DAYS},
                }
            ],
            opts=self.child(after=[versioned]),
        )
        guarded = aws.s3.BucketPolicy(
            "lifecycle",
            bucket=bucket.id,
            policy=document(
                bucket_policy,
                bucket_arn=bucket.arn,
                writers=list(writers_of(self._plan, caller)),
                sealed=bool(self._plan.spec.deployers),
            ),
            opts=pulumi.ResourceOptions.merge(
                self.child(after=[private]),
                # Who only looks is no writer, and does not know who was.
                pulumi.ResourceOptions(ignore_changes=["policy"] if is_viewer(self._plan, caller) else None),
            ),
        )
        return [private, owned, encrypted, versioned, guarded]

    def _script(self, bucket: pulumi.Output[str], closed: list[pulumi.Resource]) -> aws.s3.BucketObjectv2:
        content = _SCRIPT.read_text(encoding="utf-8")
        folder = f"lifecycle/{hashlib.sha256(content.encode()).hexdigest()[:16]}"
        self.lifecycle_uri = pulumi.Output.concat("s3://", bucket, "/", folder)
        return aws.s3.BucketObjectv2(
            "on-create",
            bucket=bucket,
            key=f"{folder}/{ON_CREATE}",
            content=content,
            content_type="text/x-shellscript",
            opts=self.child(after=closed),
        )

    def _lustre(self, wanted: Lustre, network: Network) -> aws.fsx.LustreFileSystem:
        return aws.fsx.LustreFileSystem(
            "lustre",
            subnet_ids=network.node_subnet_ids[wanted.availability_zone],
            security_group_ids=list(network.security_group_ids),
            deployment_type="PERSISTENT_2",
            storage_type="SSD",
            file_system_type_version="2.15",
            data_compression_type="LZ4",
            storage_capacity=wanted.storage_capacity_gib,
            per_unit_storage_throughput=wanted.per_unit_storage_throughput,
            kms_key_id=self.key_arn,
            tags={"Name": self._plan.stack},
            opts=self.child(after=network.connectivity, protect=kept(self._plan, "fileSystem")),
        )


def _by_default(
    key_arn: str | None,
) -> aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs:
    return aws.s3.BucketServerSideEncryptionConfigurationRuleApplyServerSideEncryptionByDefaultArgs(
        sse_algorithm="aws:kms" if key_arn else "AES256", kms_master_key_id=key_arn
    )
