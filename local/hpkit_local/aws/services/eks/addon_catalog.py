"""Which add-ons and versions EKS offers, and whether a request fits one.

The EKS add-ons that are available here: versions, requirements, and configuration schemas. The versions are those in
the documentation, the newest first. A version that isn't listed is accepted if it has the form `vX.Y.Z-eksbuild.N` and
the add-on is `open`.

Sources: EKS user guide, "Amazon EKS add-ons"; SageMaker developer guide, "Setup for SageMaker HyperPod task governance"
and "SageMaker HyperPod observability".
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import jsonschema

from hpkit.catalog import offered_addon
from hpkit_local.aws.api import operation, page
from hpkit_local.aws.backend import Context, Record
from hpkit_local.aws.errors import ServiceError
from hpkit_local.aws.services.eks.versions import offered, reaches

__all__ = ["ADDONS", "AddonInfo", "check_configuration", "find_addon"]

_FORM = re.compile(r"v\d+\.\d+\.\d+-eksbuild\.\d+")


def _object(**properties: Any) -> dict[str, Any]:
    """Return the schema of an object with these properties and no others."""
    return {"type": "object", "additionalProperties": False, "properties": properties}


_ANY: dict[str, Any] = {"type": "object"}
# Categories that are on by default can be raised to ADVANCED, except for inference. Categories that are off have no
# level in between (SageMaker developer guide, "SageMaker HyperPod cluster metrics"). The parameters are those of
# observability-template.yaml in aws/sagemaker-hyperpod-cluster-setup, and of awsome-distributed-training's module. The
# template uses clusterMetrics where the module uses customMetrics. It has logging inside metricsProvider, and the
# module has it next to it.
_ON, _OFF, _BASIC = ("BASIC", "ADVANCED"), ("DISABLED", "ADVANCED"), ("BASIC",)
_METRIC_LEVELS = {
    "trainingMetrics": _ON,
    "inferenceMetrics": _BASIC,
    "taskGovernanceMetrics": _OFF,
    "scalingMetrics": _OFF,
    "clusterMetrics": _ON,
    "customMetrics": _ON,
    "nodeMetrics": _ON,
    "acceleratedComputeMetrics": _ON,
    "networkMetrics": _OFF,
    "rayMetrics": _OFF,
}
_LOGGING = _object(enabled={"type": "boolean"})


@dataclass(frozen=True)
class AddonInfo:
    """One add-on.

    `without_nodes` is its final status in a cluster without a running node. `accounts` are its service accounts with
    the policies that EKS recommends. `calls_at_start`: its pods need credentials to become ready, and can't get them
    from IMDS on HyperPod's nodes. Other add-ons start, and fail at their first AWS call. `role_in_values`: the same,
    and the role is set in the configuration values, as `executionRoleArn`.
    """

    name: str
    versions: tuple[str, ...]
    namespace: str = "kube-system"
    without_nodes: str = "DEGRADED"
    since: str = "1.28"
    schema: dict[str, Any] = field(default_factory=lambda: _ANY)
    kind: str = "networking"
    accounts: tuple[tuple[str, str], ...] = ()
    needs: tuple[str, ...] = ()
    calls_at_start: bool = False
    role_in_values: bool = False

    @property
    def default(self) -> str:
        """The version that is installed if none is requested."""
        return self.versions[0]


_TEXT = {"type": "string"}
_OBSERVABILITY = _object(
    ampWorkspace=_object(prometheusEndpoint=_TEXT, arn=_TEXT),
    amgWorkspace=_object(workspaceName=_TEXT, arn=_TEXT),
    metricsProvider=_object(
        **{
            name: _object(level={**_TEXT, "enum": list(levels)}, scrapeInterval={"type": "integer", "minimum": 1})
            for name, levels in _METRIC_LEVELS.items()
        },
        logging=_LOGGING,
    ),
    logging=_LOGGING,
)

# The parts of the chart that the guide names; their values aren't documented.
_SPACES = _object(**{"jupyter-k8s": _ANY, "jupyter-k8s-aws-hyperpod": _ANY})

ADDONS = {
    info.name: info
    for info in (
        AddonInfo(
            "vpc-cni",
            ("v1.20.4-eksbuild.1", "v1.19.2-eksbuild.1", "v1.18.3-eksbuild.1"),
            without_nodes="ACTIVE",
        ),
        AddonInfo("kube-proxy", ("v1.33.0-eksbuild.2", "v1.32.0-eksbuild.2"), without_nodes="ACTIVE"),
        AddonInfo("eks-pod-identity-agent", ("v1.3.5-eksbuild.2", "v1.3.4-eksbuild.1"), without_nodes="ACTIVE"),
        AddonInfo("coredns", ("v1.12.1-eksbuild.2", "v1.11.4-eksbuild.2")),
        AddonInfo("metrics-server", ("v0.8.0-eksbuild.1", "v0.7.2-eksbuild.1"), kind="observability"),
        AddonInfo("cert-manager", ("v1.18.2-eksbuild.2",), namespace="cert-manager", kind="security"),
        AddonInfo("external-dns", ("v0.18.0-eksbuild.1",), namespace="external-dns"),
        AddonInfo("aws-fsx-csi-driver", ("v1.6.0-eksbuild.1",), kind="storage"),
        # Its controller exits if a dry run of EC2 fails: "Failed health check (verify network connection and IAM
        # credentials)". The add-on then stays DEGRADED, as in nebari pull request 3213.
        AddonInfo(
            "aws-ebs-csi-driver",
            ("v1.47.0-eksbuild.1",),
            kind="storage",
            accounts=(("ebs-csi-controller-sa", "service-role/AmazonEBSCSIDriverPolicy"),),
            calls_at_start=True,
        ),
        AddonInfo(
            "aws-efs-csi-driver",
            ("v2.1.9-eksbuild.1",),
            kind="storage",
            accounts=(("efs-csi-controller-sa", "service-role/AmazonEFSCSIDriverPolicy"),),
        ),
        AddonInfo("aws-mountpoint-s3-csi-driver", ("v2.0.0-eksbuild.1", "v1.14.1-eksbuild.1"), kind="storage"),
        AddonInfo(
            "amazon-cloudwatch-observability",
            ("v4.3.0-eksbuild.1", "v2.4.0-eksbuild.1"),
            namespace="amazon-cloudwatch",
            kind="observability",
        ),
        AddonInfo(
            "amazon-sagemaker-hyperpod-taskgovernance",
            (
                "v1.6.0-eksbuild.1",
                "v1.6.1-eksbuild.1",
                "v1.5.0-eksbuild.1",
                "v1.4.0-eksbuild.1",
                "v1.3.2-eksbuild.1",
                "v1.3.1-eksbuild.1",
                "v1.3.0-eksbuild.1",
                "v1.2.2-eksbuild.1",
                "v1.0.0-eksbuild.4",
            ),
            namespace="kueue-system",
            without_nodes="CREATE_FAILED",
            since="1.30",
            schema=_object(),
            kind="ml",
        ),
        AddonInfo(
            "amazon-sagemaker-hyperpod-observability",
            ("v1.0.4-eksbuild.1", "v1.0.2-eksbuild.1"),
            namespace="hyperpod-observability",
            schema=_OBSERVABILITY,
            kind="observability",
            accounts=(("hyperpod-observability-operator-otel-collector", "AmazonPrometheusRemoteWriteAccess"),),
            # SageMaker developer guide, "Troubleshooting add-on installation failures": a health issue.
            calls_at_start=True,
            needs=("eks-pod-identity-agent",),
        ),
        AddonInfo(
            "amazon-sagemaker-hyperpod-training-operator",
            ("v1.2.1-eksbuild.1", "v1.2.0-eksbuild.1"),
            namespace="aws-hyperpod",
            kind="ml",
            accounts=(
                (
                    "hp-training-operator-controller-manager",
                    "AmazonSageMakerHyperPodTrainingOperatorAccess",
                ),
            ),
            needs=("cert-manager", "eks-pod-identity-agent"),
        ),
        AddonInfo(
            "amazon-sagemaker-hyperpod-inference",
            ("v2.2.2-eksbuild.1",),
            namespace="hyperpod-inference-system",
            kind="ml",
            accounts=(("hyperpod-inference-controller-manager", "AmazonSageMakerHyperPodInferenceAccess"),),
            needs=("cert-manager", "metrics-server", "aws-mountpoint-s3-csi-driver", "aws-fsx-csi-driver"),
            # SageMaker developer guide, "Inference operator fails to start" and "IAM trust relationship issue".
            role_in_values=True,
        ),
        AddonInfo(
            "amazon-sagemaker-spaces",
            ("v0.2.1-eksbuild.1", "v0.2.0-eksbuild.2", "v0.1.6-eksbuild.1", "v0.1.2-eksbuild.1"),
            namespace="jupyter-k8s-system",
            since="1.30",
            kind="ml",
            schema=_SPACES,
            # SageMaker developer guide, "Set up permissions": the controller's role is always required.
            accounts=(("jupyter-k8s-controller-manager", "AmazonSageMakerSpacesControllerPolicy"),),
            calls_at_start=True,
            needs=("aws-ebs-csi-driver", "cert-manager", "eks-pod-identity-agent"),
        ),
    )
}


def known_version(info: AddonInfo, version: str) -> bool:
    """Task governance has the versions listed; of the others the documentation names only some."""
    if version in info.versions:
        return True
    return info.name != "amazon-sagemaker-hyperpod-taskgovernance" and bool(_FORM.fullmatch(version))


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
    return page("addons", [entry for entry in entries if entry["addonVersions"]], params, code=INVALID)


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
