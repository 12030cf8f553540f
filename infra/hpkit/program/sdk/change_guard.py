"""Rejects a change that would replace or delete guarded resources, in the preview. It creates nothing."""

# Written by `make generate` from the schema of the plugin; do not edit.

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

__all__ = ["ChangeGuard"]


class ChangeGuard(pulumi.CustomResource):
    """Rejects a change that would replace or delete guarded resources, in the preview. It creates nothing."""

    def __init__(
        self,
        resource_name: str,
        *,
        subject: pulumi.Input[str],
        allow_replace: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        contents: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        fixed: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        identity: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        nested: pulumi.Input[Sequence[pulumi.Input[str]]] | None = None,
        parts: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        remedy: pulumi.Input[str] | None = None,
        version: pulumi.Input[str] | None = None,
        where: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it with the engine; resource_name is its name in the program.

        Args:
            resource_name: Name in the program.
            subject: Name of the guarded resource in messages.
            allow_replace: Names of resources that may be replaced or deleted, with a warning only.
            contents: Description of each guarded resource and of what is deleted with it, for messages.
            fixed: Settings that can't change in place: an existing setting keeps its value.
            identity: Live ID of each guarded resource, by its name in allowReplace.
            nested: Names of resources that depend on each other, in order: each depends on the one before it.
            parts: Live name of each part, such as `teams/nlp`; deleting one requires its name in allowReplace.
            remedy: What to do instead of changing a fixed setting.
            version: Kubernetes minor version. It can only increase, by one at a time.
            where: Where to set allowReplace, for messages.
            opts: Options of the engine.
        """
        super().__init__(
            "hyperpod:index:ChangeGuard",
            resource_name,
            {
                "subject": subject,
                "allowReplace": allow_replace,
                "contents": contents,
                "fixed": fixed,
                "identity": identity,
                "nested": nested,
                "parts": parts,
                "remedy": remedy,
                "version": version,
                "where": where,
            },
            opts,
        )
