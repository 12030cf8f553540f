"""EKS: access to the API, logging, encryption of Secrets, and add-ons."""

import re
from collections.abc import Sequence
from typing import Final

from hpkit.catalog import offered_addon
from hpkit.plan.endpoint import world_ranges
from hpkit.text.formatting import listing
from hpkit_policies.model import Parameter, Policy, Resource, Results, Settings, Violation, of_type

__all__ = ["POLICIES"]

_CLUSTER: Final = "aws:eks/cluster:Cluster"
_ADDON: Final = "aws:eks/addon:Addon"
# Policies see a chart's resources only if Pulumi renders it; Helm itself installs those of a Release.
_CHARTS: Final = ("kubernetes:helm.sh/v3:Release", "kubernetes:helm.sh/v4:Chart")
# EKS user guide, "Send control plane logs to CloudWatch Logs".
_LOGS: Final = ("api", "audit", "authenticator", "controllerManager", "scheduler")

_DIGEST: Final = re.compile(r"@sha256:[0-9a-f]{64}$")

_MODES = Parameter(
    "authenticationModes",
    "Accepted authentication modes.",
    {"type": "array", "items": {"enum": ["API", "API_AND_CONFIG_MAP"]}},
    ["API"],
)
_UNPINNED = Parameter("unpinned", "Add-ons that may use EKS's default version.")


def _endpoint(cluster: Resource, _settings: Settings) -> Results:
    if cluster.get("vpcConfig.endpointPublicAccess", True) is False:
        return
    # EKS opens the endpoint to the internet if no range is given.
    ranges = cluster.get("vpcConfig.publicAccessCidrs") or ["0.0.0.0/0"]
    open_ranges = world_ranges(ranges)
    if open_ranges:
        yield Violation(
            f"the public endpoint of `{cluster.name}` is open to {listing(open_ranges)}",
            "Set publicAccessCidrs to your own ranges, or set endpointPublicAccess to false.",
            property_path="vpcConfig.publicAccessCidrs",
        )


def _logging(cluster: Resource, _settings: Settings) -> Results:
    logged = cluster.get("enabledClusterLogTypes", [])
    missing = [kind for kind in _LOGS if kind not in logged]
    if missing:
        yield Violation(f"`{cluster.name}` doesn't log {listing(missing)}", "List all five in enabledClusterLogTypes.")


def _secrets(cluster: Resource, _settings: Settings) -> Results:
    # The key's ARN isn't known before the key is created; a reference to a key is enough.
    resources = cluster.get("encryptionConfig.resources", [])
    if "secrets" not in resources or not cluster.get_or_unknown("encryptionConfig.provider.keyArn"):
        yield Violation(
            f"`{cluster.name}` doesn't encrypt Kubernetes secrets with your own key",
            'Add encryptionConfig with resources ["secrets"] and a KMS key.',
        )


def _authentication(cluster: Resource, settings: Settings) -> Results:
    mode = cluster.get("accessConfig.authenticationMode", "CONFIG_MAP")
    if mode not in settings[_MODES.name]:
        yield Violation(
            f"`authenticationMode` of `{cluster.name}` is {mode}",
            f"Set it to {' or '.join(settings[_MODES.name])}, so that all access is visible in access entries. Or "
            f"list the mode in `{_MODES.name}`.",
        )


def _pinned(resources: Sequence[Resource], settings: Settings) -> Results:
    clusters = of_type(resources, _CLUSTER)
    cluster = clusters[0] if len(clusters) == 1 else None
    for addon in of_type(resources, _ADDON):
        name = addon.get("addonName")
        if not addon.is_stated("addonVersion") and name not in settings[_UNPINNED.name]:
            yield Violation(f"{name} has no version", f"List it in `{_UNPINNED.name}`.", addon, cause=cluster)


def _pinned_together(unpinned: Sequence[Violation]) -> Violation:
    """Return one violation for all add-ons without a version, with the versions to set if they are known."""
    names = sorted(each.resource.get("addonName") for each in unpinned if each.resource is not None)
    cluster = unpinned[0].cause
    stated = None if cluster is None else cluster.get_or_unknown("version")
    kubernetes = stated if isinstance(stated, str) else ""
    offered = {name: offered_addon(name, kubernetes) for name in names}
    defaults = {name: each.default for name, each in offered.items() if each is not None and each.default is not None}
    pinned = ", ".join(f"{name}: {defaults.get(name, 'VERSION')}" for name in names)
    hint = "" if len(defaults) == len(names) else "; `hpkit aws preflight` shows each VERSION"
    has = "has" if len(names) == 1 else "have"
    return Violation(
        f"{listing(names)} {has} no version in `addons`, so two runs of one program can install different versions",
        f"In the environment, set `addons: {{{pinned}}}`{hint}.",
        unpinned[0].resource,
    )


def _chart_pinned(release: Resource, _settings: Settings) -> Results:
    chart, repository = str(release.get("chart")), release.get_or_unknown("repositoryOpts.repo")
    # A chart in a folder is fixed; a chart from a repository can change.
    fetched = repository is not None or chart.startswith(("oci://", "http://", "https://"))
    if fetched and not _DIGEST.search(chart):
        version = release.get_or_unknown("version")
        taken = "the newest version" if version is None else f"version {version}"
        yield Violation(
            f"`{release.name}` uses {taken} of the chart {chart} from a repository, where the content of a version can "
            "change",
            "Run `helm pull`, keep the .tgz in the repository, verify its sha256 before each run, and set the file "
            "as the chart.",
        )


POLICIES = (
    Policy(
        name="eks-endpoint-not-open",
        description="The public endpoint of an EKS cluster isn't open to the whole internet.",
        types=(_CLUSTER,),
        validate=_endpoint,
    ),
    Policy(
        name="eks-control-plane-logging",
        description="EKS clusters log all five control plane components.",
        types=(_CLUSTER,),
        validate=_logging,
    ),
    Policy(
        name="eks-secrets-encrypted",
        description="EKS clusters encrypt Kubernetes secrets with a KMS key.",
        types=(_CLUSTER,),
        validate=_secrets,
    ),
    Policy(
        name="eks-access-entries",
        description="EKS clusters use access entries (authentication mode API).",
        types=(_CLUSTER,),
        validate=_authentication,
        parameters=(_MODES,),
    ),
    Policy(
        name="eks-addons-pinned",
        description="EKS add-ons have a pinned version.",
        # Advice by default: AWS documents no version for most of them, so hpkit itself cannot pin those.
        level="advisory",
        validate_stack=_pinned,
        join=_pinned_together,
        parameters=(_UNPINNED,),
    ),
    Policy(
        name="helm-charts-pinned",
        description="Helm charts are files of the project, or pinned by digest.",
        types=_CHARTS,
        validate=_chart_pinned,
    ),
)
