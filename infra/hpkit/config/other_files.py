"""Recognizes files that were written for another purpose."""

import re
from collections.abc import Mapping
from typing import Any, Final

from hpkit.config.organization import KEYS_OF_FILES
from hpkit.text.spelling import alike

__all__ = ["other_file"]

# Keys at the top of files that other tools read, and what such a file is.
_TOOLS: Final[tuple[tuple[frozenset[str], str], ...]] = (
    (frozenset({"apiVersion", "kind"}), "a Kubernetes manifest"),
    (frozenset({"apiVersion", "name", "version"}), "a Helm chart's Chart.yaml"),
    (frozenset({"AWSTemplateFormatVersion"}), "a CloudFormation template"),
    (frozenset({"Resources"}), "a CloudFormation template"),
    (frozenset({"name", "runtime"}), "a Pulumi project (Pulumi.yaml)"),
    (frozenset({"encryptionsalt"}), "a stack file of Pulumi (Pulumi.<stack>.yaml)"),
    (frozenset({"config"}), "a stack file of Pulumi (Pulumi.<stack>.yaml)"),
    (frozenset({"on", "jobs"}), "a GitHub workflow"),
    (frozenset({"services"}), "a Compose file"),
    (frozenset({"terraform_version"}), "a Terraform state"),
    (frozenset({"ClusterName", "InstanceGroups"}), "a SageMaker API request (CreateCluster)"),
    (frozenset({"tasks"}), "a scenario of `hpkit whatif simulate`"),
    (frozenset({"repos"}), "pre-commit settings"),
    (frozenset({"openapi"}), "an OpenAPI description"),
    (frozenset({"name", "version", "dependencies"}), "an npm package (package.json)"),
)

# Top-level keys of the policy pack's settings: policy → level, or parameters.
_POLICY = re.compile(r"all\Z|[a-z]+(?:-[a-z0-9]+)+\Z")
_LEVELS: Final = ("advisory", "mandatory", "remediate", "disabled")

# Keys of the files that an organization file names.
_PARTS: Final = frozenset(key for keys in KEYS_OF_FILES.values() for key in keys)
# A file with one of these keys, or a similar key, is meant for hpkit.
_OWN: Final = ("clusterPolicy", "environments", "organization", "teams")
_MOST_SHOWN: Final = 3


def other_file(data: Mapping[str, Any]) -> str | None:
    """Return what a file is that isn't meant for hpkit, as the end of "this is".

    None if it might be meant for hpkit.
    """
    if data.keys() & {"organization", "environments"}:
        return None
    if data and all(_POLICY.match(key) and (isinstance(each, dict) or each in _LEVELS) for key, each in data.items()):
        return "the policy pack's settings (stacks/<organization>.policy.json), not an organization file"
    if data and all(key in _PARTS or key.startswith("x-") for key in data):
        return "a file for `include` or `defaults`, not an organization file"
    tool = next((what for keys, what in _TOOLS if keys <= data.keys()), None)
    kind = data.get("kind")
    if tool is not None:
        return (
            f"{tool} ({kind}), not an organization file"
            if isinstance(kind, str)
            else f"{tool}, not an organization file"
        )
    if not data or any(alike(key, own) for key in data for own in _OWN):
        return None
    shown = ", ".join(list(data)[:_MOST_SHOWN]) + (", …" if len(data) > _MOST_SHOWN else "")
    return f"not an organization file: it has {shown}, but neither organization nor environments"
