"""Refuses a change that would replace or delete what it names, at preview already; it makes nothing."""

# Written by `make generate` from the schema of the plugin; do not edit.

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pulumi

__all__ = ["ChangeGuard"]


class ChangeGuard(pulumi.CustomResource):
    """Refuses a change that would replace or delete what it names, at preview already; it makes nothing."""

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
            subject: What is guarded, as messages call it.
            allow_replace: Names of what may be replaced or deleted; then only a warning is shown.
            contents: What each of them is and what goes with it, as messages say it.
            fixed: Settings that cannot change in place: one that is there before and after keeps its value.
            identity: Live id of each thing that is kept, by the name that allowReplace takes for it.
            nested: Names of things that stand on one another, the lowest first.
            parts: What each part is called live that leaves only by name, as `teams/nlp`; new ones may come.
            remedy: What to do instead of changing a fixed setting.
            version: Kubernetes minor version: one up at a time, never down.
            where: Where allowReplace is written, as messages call it.
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
