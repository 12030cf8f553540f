"""Which add-ons and versions EKS offers, and whether a request fits one."""

from __future__ import annotations

import json

import jsonschema

from hpkit.catalog import offered_addon
from hpkit_local.aws.api import operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.eks.addon_versions import ADDONS, AddonInfo, known_version
from hpkit_local.aws.services.eks.versions import offered, reaches

__all__ = ["check_configuration", "find_addon"]

INVALID = "InvalidParameterException"


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_CreateAddon.html
def find_addon(name: str) -> AddonInfo:
    """Return the add-on by name, or reject it."""
    if name not in ADDONS:
        raise ServiceError(INVALID, f"Addon {name} specified is not supported")
    return ADDONS[name]


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonConfiguration.html
def check_configuration(info: AddonInfo, version: str, cluster: Record, params: Record) -> None:
    """Reject a version or configuration that the add-on does not have."""
    asked = offered_addon(info.name, cluster["version"])
    if not known_version(info, version) and (asked is None or version not in asked.versions):
        raise ServiceError(INVALID, f"Addon version specified is not supported: {info.name} {version}")
    if not reaches(cluster["version"], info.since):
        raise ServiceError(
            INVALID,
            f"Addon {info.name} {version} is not supported in Kubernetes version {cluster['version']}",
        )
    text = params.get("configurationValues")
    if not text:
        return
    try:
        jsonschema.validate(json.loads(text), info.schema)
    except ValueError as error:
        raise ServiceError(INVALID, f"ConfigurationValue provided in request is not JSON: {error}") from None
    except jsonschema.ValidationError as error:
        where = "$" + "".join(f".{step}" for step in error.absolute_path)
        raise ServiceError(
            INVALID,
            f"ConfigurationValue provided in request is not supported: Json schema validation failed with "
            f"error: [{where}: {error.message}]",
        ) from None


@operation("eks", "DescribeAddonVersions")
def describe_addon_versions(ctx: Context, params: Record) -> Record:
    """Which add-ons there are, and which of their versions go with which Kubernetes."""
    addon_name = params.get("addonName")
    if addon_name is not None:
        find_addon(addon_name)
    kinds = params.get("types")
    entries = [
        _versions(ctx, info, params.get("kubernetesVersion"))
        for info in ADDONS.values()
        if addon_name in (None, info.name) and (not kinds or info.kind in kinds)
    ]
    if not {"aws"} & set(params.get("owners", ["aws"])) or not {"eks"} & set(params.get("publishers", ["eks"])):
        entries = []
    addons, token = page(
        [entry for entry in entries if entry["addonVersions"]],
        size=params.get("maxResults"),
        token=params.get("nextToken"),
        code=INVALID,
    )
    return {"addons": addons, **({"nextToken": token} if token else {})}


def _versions(ctx: Context, info: AddonInfo, kubernetes: str | None) -> Record:
    fits: dict[str, list[Record]] = {}
    for cluster in offered(ctx):
        if kubernetes not in (None, cluster) or not reaches(cluster, info.since):
            continue
        # The account's recorded versions take precedence over this endpoint's assumptions.
        asked = offered_addon(info.name, cluster)
        versions, default = (asked.versions, asked.default) if asked else (info.versions, info.default)
        for version in versions:
            fit = {"clusterVersion": cluster, "platformVersions": ["*"], "defaultVersion": version == default}
            fits.setdefault(version, []).append(fit)
    return {
        "addonName": info.name,
        "type": info.kind,
        "addonVersions": [
            {
                "addonVersion": version,
                "architecture": ["amd64", "arm64"],
                "computeTypes": ["ec2", "hyperpod"],
                "compatibilities": compatibilities,
                "requiresConfiguration": False,
                "requiresIamPermissions": bool(info.accounts),
            }
            for version, compatibilities in fits.items()
        ],
        "publisher": "eks",
        "owner": "aws",
        "defaultNamespace": info.namespace,
    }


# Source: https://docs.aws.amazon.com/eks/latest/APIReference/API_DescribeAddonConfiguration.html
@operation("eks", "DescribeAddonConfiguration")
def describe_addon_configuration(ctx: Context, params: Record) -> Record:  # noqa: ARG001 - one signature for all
    """Return the JSON schema of the configuration values."""
    info = find_addon(params["addonName"])
    if not known_version(info, params["addonVersion"]):
        raise ServiceError(INVALID, f"Addon version specified is not supported: {params['addonVersion']}")
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", **info.schema}
    answer: Record = {
        "addonName": info.name,
        "addonVersion": params["addonVersion"],
        "configurationSchema": json.dumps(schema),
    }
    if info.accounts:
        answer["podIdentityConfiguration"] = [
            {"serviceAccount": account, "recommendedManagedPolicies": [f"arn:aws:iam::aws:policy/{policy}"]}
            for account, policy in info.accounts
        ]
    return answer
