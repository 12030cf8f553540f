"""Folders of the file system that FSx links with S3.

Deletion of a link keeps the files on the file system and in the bucket (FSx API, DeleteDataRepositoryAssociation).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import pulumi
import pulumi_aws as aws

from hpkit.config.models.storage import Lustre
from hpkit.program.components.common.base import Component

__all__ = ["DataRepositories"]

# In one order, because the plugin compares lists.
_EVENTS: Final = ("NEW", "CHANGED", "DELETED")


class DataRepositories(Component):
    """The data repository associations of the file system."""

    def __init__(
        self,
        name: str,
        spec: Lustre,
        *,
        file_system: aws.fsx.LustreFileSystem,
        after: Sequence[pulumi.Resource],
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Register them; after: what creates the teams' folders, which FSx would otherwise create as root."""
        super().__init__(name, opts=opts)
        for each in spec.data_repositories:
            imports, exports = (
                [one for one in _EVENTS if one in some] for some in (each.auto_import, each.auto_export)
            )
            aws.fsx.DataRepositoryAssociation(
                each.path.strip("/"),
                file_system_id=file_system.id,
                file_system_path=each.path,
                data_repository_path=f"s3://{each.bucket}/{each.prefix or ''}",
                batch_import_meta_data_on_create=each.batch_import,
                s3=aws.fsx.DataRepositoryAssociationS3Args(
                    auto_import_policy=aws.fsx.DataRepositoryAssociationS3AutoImportPolicyArgs(events=imports),
                    auto_export_policy=(
                        aws.fsx.DataRepositoryAssociationS3AutoExportPolicyArgs(events=exports) if exports else None
                    ),
                ),
                opts=self.child(
                    after=after, custom_timeouts=pulumi.CustomTimeouts(create="1h", update="1h", delete="1h")
                ),
            )
        self.register_outputs({})
