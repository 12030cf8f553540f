"""The base of all components: a resource with typed outputs, and children with names from the plan."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import PurePosixPath
from typing import Any

import pulumi

from hpkit.program.components.common.credentials import Credentials
from hpkit.program.iam.documents import Document, iam_document
from hpkit.program.iam.live import AwsAccount

__all__ = ["Component", "DeployContext", "KubernetesObject", "document"]

_SDK_VERSION = version("pulumi_kubernetes")


class Component(pulumi.ComponentResource):
    """A part of the platform; its type is `hpkit:index:<class>`."""

    def __init__(self, name: str, *, opts: pulumi.ResourceOptions) -> None:
        super().__init__(f"hpkit:index:{type(self).__name__}", name, None, opts)

    def child(
        self,
        *,
        after: Sequence[pulumi.Resource] = (),
        protect: bool | None = None,
        provider: pulumi.ProviderResource | None = None,
        import_id: str | None = None,
        ignore_changes: list[str] | None = None,
        replace_on_changes: list[str] | None = None,
        replace_with: Sequence[pulumi.Resource] = (),
        delete_before_replace: bool | None = None,
        custom_timeouts: pulumi.CustomTimeouts | None = None,
    ) -> pulumi.ResourceOptions:
        """Return options of a resource that waits for others, or is replaced with them, and then deleted first."""
        return pulumi.ResourceOptions(
            parent=self,
            depends_on=list(after),
            protect=protect,
            provider=provider,
            import_=import_id,
            ignore_changes=ignore_changes,
            replace_on_changes=replace_on_changes,
            replace_with=list(replace_with) or None,
            delete_before_replace=True if replace_with else delete_before_replace,
            custom_timeouts=custom_timeouts,
        )


class KubernetesObject(pulumi.CustomResource):
    """A Kubernetes object, with the fields of its manifest; for a kind such as NamespacePatch, a part of an object.

    The SDK's class for a kind imports its whole API group and those that this one uses.
    """

    metadata: pulumi.Output[Any]
    data: pulumi.Output[Any]

    def __init__(self, name: str, kind: str, *, opts: pulumi.ResourceOptions, **fields: Any) -> None:
        """Register it, or with an ID in opts read an existing object, whose fields are given as None.

        kind: group, version and kind, such as `core/v1:Namespace`.
        """
        api_version, _, name_of_kind = kind.partition(":")
        if opts.id is None:
            fields.update(apiVersion=api_version.removeprefix("core/"), kind=name_of_kind.removesuffix("Patch"))
        versioned = pulumi.ResourceOptions.merge(opts, pulumi.ResourceOptions(version=_SDK_VERSION))
        super().__init__(f"kubernetes:{kind}", name, fields, versioned)


class DeployContext:
    """The target of the platform, as the AWS provider knows it.

    - account: partition, region and account.
    - caller: ARN of the identity that runs this, usually a role's session.
    - credentials: the profile and role of the identity.
    - has_log_group: whether a new EKS cluster's log group already exists.
    - root: the project's folder, relative to the program's.
    """

    def __init__(
        self,
        account: AwsAccount,
        *,
        caller: str,
        credentials: Credentials,
        zones: Sequence[str],
        has_log_group: bool,
        root: str,
    ) -> None:
        self.account = account
        self.caller = caller
        self.credentials = credentials
        self.zones = tuple(zones)
        self.has_log_group = has_log_group
        self._root = root

    def in_project(self, path: str) -> str:
        """Return a path of the project as the plugins take it."""
        return str(PurePosixPath(self._root, path))

    @property
    def control_plane_zones(self) -> tuple[str, ...]:
        """Return the first two zones of the region, regardless of the nodes' zones, so that they never change."""
        return self.zones[:2]


def document(build: str | Callable[..., Document], *account: AwsAccount, **inputs: Any) -> pulumi.Output[str]:
    """Return an IAM document as text once its inputs are known; build: its name, or a pure function that creates it."""
    made = partial(iam_document, build) if isinstance(build, str) else build
    # Without inputs, `known` is an empty list.
    return pulumi.Output.all(**inputs).apply(lambda known: json.dumps(made(*account, **dict(known)), sort_keys=True))
