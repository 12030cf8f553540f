"""Repositories of the teams' images in Amazon ECR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi
import pulumi_aws as aws

from hpkit.plan.model import Plan
from hpkit.plan.registry import lifecycle_policy, repositories_of
from hpkit.program.components.common.base import Component

__all__ = ["Registry"]


class Registry(Component):
    """A repository for each name in the `registry` of the environment's teams.

    uris: team → the team's name of a repository → the URI to push to and pull from.
    """

    uris: Mapping[str, Mapping[str, pulumi.Output[str]]]

    def __init__(
        self,
        name: str,
        plan: Plan,
        *,
        key_arn: pulumi.Input[str] | None,
        after: Sequence[pulumi.Resource] = (),
        opts: pulumi.ResourceOptions,
    ) -> None:
        """Create them; key_arn: None for the key that AWS manages for ECR; after: what waits for another key."""
        super().__init__(name, opts=opts)
        uris: dict[str, dict[str, pulumi.Output[str]]] = {}
        for repository in repositories_of(plan):
            created = aws.ecr.Repository(
                repository.key,
                name=repository.name,
                # Pulling a tag twice returns the same image.
                image_tag_mutability="IMMUTABLE",
                image_scanning_configuration=aws.ecr.RepositoryImageScanningConfigurationArgs(scan_on_push=True),
                encryption_configurations=[
                    aws.ecr.RepositoryEncryptionConfigurationArgs(encryption_type="KMS", kms_key=key_arn)
                ],
                # ECR itself then won't delete one that has images.
                force_delete=False,
                # A repository keeps its original key: another one would replace it with its images.
                opts=self.child(after=after, ignore_changes=["encryptionConfigurations"]),
            )
            aws.ecr.LifecyclePolicy(
                repository.key, repository=created.name, policy=lifecycle_policy(plan), opts=self.child()
            )
            uris.setdefault(repository.team, {})[repository.called] = created.repository_url
        self.uris = uris
        self.register_outputs({"repositories": uris})
