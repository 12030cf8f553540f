"""Refuses a change that would replace what it names, at preview already; it makes nothing itself."""

# Written by `hpkit generate` from the schema of the plugin; do not edit.

from __future__ import annotations

from collections.abc import Mapping

import pulumi

__all__ = ["ChangeGuard"]


class ChangeGuard(pulumi.CustomResource):
    """Refuses a change that would replace what it names, at preview already; it makes nothing itself."""

    def __init__(
        self,
        resource_name: str,
        *,
        remedy: pulumi.Input[str],
        subject: pulumi.Input[str],
        allow_replace: pulumi.Input[bool] | None = None,
        identity: pulumi.Input[Mapping[str, pulumi.Input[str]]] | None = None,
        version: pulumi.Input[str] | None = None,
        opts: pulumi.ResourceOptions | None = None,
    ) -> None:
        """Register it with the engine; resource_name is its name in the program.

        Args:
            resource_name: Name in the program.
            remedy: How a user allows the replacement.
            subject: What is guarded, as messages call it.
            allow_replace: Whether the subject may be replaced; then only a warning is shown.
            identity: What cannot change in place: setting → its value.
            version: Kubernetes minor version: one up at a time, never down.
            opts: Options of the engine.
        """
        super().__init__(
            "hyperpod:index:ChangeGuard",
            resource_name,
            {
                "remedy": remedy,
                "subject": subject,
                "allowReplace": allow_replace,
                "identity": identity,
                "version": version,
            },
            opts,
        )
