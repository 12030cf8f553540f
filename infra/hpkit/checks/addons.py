"""ADD: EKS add-ons, their versions, what they require, and their configuration values."""

import re
from collections.abc import Iterator, Sequence

from hpkit.catalog import INFERENCE_OPERATOR, SPACES, TASK_GOVERNANCE, addons, is_older
from hpkit.checks.rule import Context, Issue, Rule
from hpkit.plan.dependencies import alternatives_brought
from hpkit.plan.existing import POD_ACCOUNTS, ROLE_BY_USER, makes_pod_role
from hpkit.text.formatting import listing
from hpkit.text.spelling import near

__all__ = ["RULES"]

_CHART = "SageMaker HyperPod CLI, Helm chart: conditions of its parts"
_CLUSTERS = "SageMaker HyperPod developer guide, setting up clusters for model deployment"
_CONTRACT = "hpkit configuration reference"
_EKS_ADDONS = "Amazon EKS user guide, AWS and community add-ons"
# EKS add-ons of which hpkit knows only the name.
_OTHERS = (
    "adot", "amazon-guardduty", "aws-guardduty-agent", "aws-network-flow-monitoring-agent", "aws-privateca-connector",
    "aws-secrets-store-csi-driver-provider", "eks-node-monitoring-agent", "fluent-bit", "kube-state-metrics",
    "prometheus-node-exporter", "snapshot-controller",
)  # fmt: skip
_EKS = "Amazon EKS user guide, IAM roles for add-ons"
_GUIDE = "SageMaker HyperPod developer guide, EKS add-ons"
# For a text that is longer than any version, the beginning is enough.
_LONGEST_SHOWN = 40
_VERSION = re.compile(r"v\d{1,9}\.\d{1,9}\.\d{1,9}-eksbuild\.\d{1,9}")
# Part of an add-on's name is what has more letters.
_SHORT = 3
_SPACES = "SageMaker developer guide, Install SageMaker AI Spaces Add-on"
_UPDATING = "Amazon EKS user guide, update an Amazon EKS add-on"


def _old_versions(context: Context) -> Iterator[Issue]:
    oldest = {addon.name: addon.minimum for addon in addons()}
    for name, addon in context.spec.addons.items():
        minimum = oldest.get(name)
        if addon.version is None or minimum is None or not is_older(addon.version, minimum):
            continue
        # The add-on itself began at v1.0.0 (AWS Machine Learning Blog, topology-aware scheduling: 1.2.2 or later).
        for_topology = name == TASK_GOVERNANCE
        if for_topology and not context.plan.topology_aware_scheduling:
            continue
        requirement = "supports topology-aware scheduling" if for_topology else "HyperPod supports"
        requirement = "supports queues for spaces" if name == SPACES else requirement
        without = " Or disable it: `governance.topologyAwareScheduling: Disabled`." if for_topology else ""
        yield Issue(
            (*context.path, "addons", name),
            f"add-on `{name}` is at version {addon.version}; {minimum} is the oldest that {requirement}",
            f"Remove the version, or choose {minimum} or later: {_listed_by(name)}{without}",
        )


def _spelled(context: Context) -> Iterator[Issue]:
    versioned_by_eks = {*(addon.name for addon in addons()), *_OTHERS}
    for name, addon in context.spec.addons.items():
        # EKS doesn't document the version format of other publishers' add-ons.
        if addon.version is None or name not in versioned_by_eks or _VERSION.fullmatch(addon.version):
            continue
        yield Issue(
            (*context.path, "addons", name),
            f"{_cut(addon.version)} isn't a valid version of add-on `{name}`; EKS versions look like "
            "v1.2.3-eksbuild.4, with a build number",
            f"Remove the version, or choose one that EKS offers: {_listed_by(name)}",
        )


def _cut(version: str) -> str:
    return version if len(version) <= _LONGEST_SHOWN else f"{version[:_LONGEST_SHOWN]}…"


def _listed_by(name: str) -> str:
    return f"`aws eks describe-addon-versions --addon-name {name}` lists them."


def _requirements(context: Context) -> Iterator[Issue]:
    # An existing cluster might already have them; preflight checks that.
    if context.spec.eks.existing is not None:
        return
    installed = {addon.name for addon in context.plan.addons}
    installed |= {each.addon for each in alternatives_brought(context.plan.dependencies)}
    installed |= set(context.spec.inference.installed) if context.spec.inference else set()
    requires = {addon.name: addon.requires for addon in addons()}
    for name in context.spec.addons:
        absent = [each for each in requires.get(name, ()) if each not in installed]
        if absent:
            missing = ", ".join(f"{each}: {{}}" for each in absent)
            yield Issue(
                (*context.path, "addons", name),
                f"add-on `{name}` requires {listing(absent)}, which this environment doesn't have",
                f"Add to addons: {missing}.",
            )
    yield from _not_there_yet(context)


def _not_there_yet(context: Context) -> Iterator[Issue]:
    inference = context.spec.inference
    if inference is None:
        return
    brought = {each.addon for each in alternatives_brought(context.plan.dependencies)}
    others: list[str] = [name for name in inference.installed if name not in brought]
    if others:
        yield Issue(
            (*context.path, "inference", "installed"),
            f"hpkit creates the EKS cluster of `{context.environment}`, so {listing(others)} can't be installed "
            "before the first `pulumi up`; the inference operator requires them, and EKS would fail the update",
            "Remove `installed`, and hpkit installs them. If they're installed by now, waive this rule.",
            "warning",
        )


def _one_way(context: Context) -> Iterator[Issue]:
    for name, addon in context.spec.addons.items():
        ways = [
            key
            for key, stated in (
                ("role", addon.role is not None),
                ("serviceAccountRoleArn", addon.service_account_role_arn is not None),
                ("podIdentity: false", not addon.pod_identity),
            )
            if stated
        ]
        if len(ways) > 1:
            yield Issue(
                (*context.path, "addons", name),
                f"add-on `{name}` has {listing(ways)}; its pods can get their role in only one way",
                "Keep one: `role` for EKS Pod Identity, `serviceAccountRoleArn` for the OIDC provider (IRSA), or "
                "podIdentity: false for neither.",
            )


def _known_account(context: Context) -> Iterator[Issue]:
    for name, addon in context.spec.addons.items():
        if addon.role is not None and name not in POD_ACCOUNTS:
            yield Issue(
                (*context.path, "addons", name, "role"),
                f"hpkit doesn't know the service account of add-on `{name}`, so it can't assign the role {addon.role}",
                "Remove `role`, and associate it outside hpkit. Supported add-ons: "
                f"{listing(sorted(POD_ACCOUNTS), 20)}.",
            )


def _has_rights(context: Context) -> Iterator[Issue]:
    for addon in context.plan.addons:
        has_own_rights = addon.role or addon.service_account_role_arn or not addon.pod_identity
        # Add-ons that `inference` installs: it mounts nothing itself.
        by_operator = context.spec.inference is not None and addon.name not in context.spec.addons
        if addon.name not in ROLE_BY_USER or by_operator or has_own_rights or makes_pod_role(context.plan, addon):
            continue
        yield Issue(
            (*context.path, "addons", addon.name),
            f"add-on `{addon.name}` has no AWS permissions: its pods have no role, and the role of HyperPod's nodes "
            "doesn't cover it",
            f"Set `role` to a role for EKS Pod Identity with permissions on {ROLE_BY_USER[addon.name]}. If you grant "
            "them another way, add `podIdentity: false`.",
        )


def _known(context: Context) -> Iterator[Issue]:
    offered = [addon.name for addon in addons()]
    for name in context.spec.addons:
        likely = None if name in offered or name in _OTHERS else _nearest(name, (*offered, *_OTHERS))
        if likely is not None:
            yield Issue((*context.path, "addons", name), f"EKS offers no add-on `{name}`", f"Did you mean `{likely}`?")
        elif name not in offered and name not in _OTHERS:
            yield Issue(
                (*context.path, "addons", name),
                f"hpkit doesn't know the add-on `{name}`",
                "Compare the name with the output of `aws eks describe-addon-versions`.",
                "warning",
            )


def _nearest(name: str, names: Sequence[str]) -> str | None:
    """Return the add-on with a similar name, or the only add-on whose name contains it."""
    parts = [each for each in names if len(name) > _SHORT and name.lower() in each]
    return parts[0] if len(parts) == 1 else near(name, names)


def _once(context: Context) -> Iterator[Issue]:
    named = {addon.name for addon in context.plan.addons}
    for alternative in alternatives_brought(context.plan.dependencies):
        if alternative.addon not in named:
            continue
        yield Issue(
            (*context.path, "cluster", "dependencies", "values", *alternative.switch.split(".")),
            f"the chart installs {alternative.addon} ({alternative.switch}), and the environment has the EKS add-on of "
            "the same name; two controllers would manage the same objects",
            f"Remove {alternative.switch} from the values, and keep the add-on, which EKS updates.",
        )


def _inference_told(context: Context) -> Iterator[Issue]:
    addon = context.spec.addons.get(INFERENCE_OPERATOR)
    if addon is None or context.spec.inference is not None:
        return
    values = addon.configuration_values
    absent = [key for key in ("executionRoleArn", "tlsCertificateS3Bucket") if not values.get(key)]
    if absent:
        yield Issue(
            (*context.path, "addons", INFERENCE_OPERATOR),
            f"{INFERENCE_OPERATOR} requires {listing(absent)}",
            "Set `inference.tlsCertificateBucket`, which also creates the roles. Or set both in configurationValues.",
        )


def _has_creators(context: Context) -> Iterator[Issue]:
    if context.spec.spaces is None or any("spaces" in team.spec.workloads for team in context.plan.teams):
        return
    yield Issue(
        (*context.path, "spaces"),
        f"no team with quota in `{context.environment}` has `spaces` in its workloads, so no member can create a space",
        "Add it to a team, such as `workloads: [training, spaces]`, or remove `spaces`.",
    )


def _reachable_web_ui(context: Context) -> Iterator[Issue]:
    # An existing cluster may already have both.
    web = context.spec.spaces.web_ui if context.spec.spaces is not None else None
    if web is None or context.spec.eks.existing is not None:
        return
    missing = [] if context.spec.inference is not None else ["the AWS Load Balancer Controller"]
    missing += [] if "external-dns" in context.spec.addons else ["external-dns"]
    if missing:
        yield Issue(
            (*context.path, "spaces", "webUi"),
            f"the web UI requires {listing(missing)}; without it, spaces have no address",
            "Add `external-dns` to `addons`, with a role for the hosted zone. `inference` installs the controller. If "
            "you install them another way, waive this rule.",
        )


RULES = (
    Rule(
        "ADD001",
        "error",
        "Add-on versions have the format that EKS uses, and are recent enough.",
        f"{_GUIDE}; {_UPDATING}",
        _old_versions,
        _spelled,
    ),
    Rule("ADD002", "error", "The add-ons that an add-on requires are installed.", _GUIDE, _requirements),
    Rule(
        "ADD004",
        "error",
        "An add-on's pods get their role in one way, which the add-on supports.",
        f"{_EKS}; {_CONTRACT}",
        _one_way,
        _known_account,
    ),
    Rule("ADD006", "warning", "Add-ons that call AWS have a role.", _EKS, _has_rights),
    Rule("ADD007", "error", "The chart installs nothing that an add-on installs.", _CHART, _once),
    Rule("ADD008", "error", "The inference operator has a role and a bucket.", _CLUSTERS, _inference_told),
    Rule("ADD016", "error", "EKS offers the add-on.", _EKS_ADDONS, _known),
    Rule("ADD018", "warning", "With `spaces`, some team can create spaces.", _CONTRACT, _has_creators),
    Rule("ADD019", "warning", "The web UI of spaces has a load balancer and DNS.", _SPACES, _reachable_web_ui),
)
