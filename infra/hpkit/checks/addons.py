"""ADD: EKS add-ons, their versions, what they need, what they are told."""

import re
from collections.abc import Iterator, Sequence

from hpkit.catalog import INFERENCE_OPERATOR, TASK_GOVERNANCE, addons, is_older
from hpkit.checks.rule import Context, Issue, Rule, listing
from hpkit.config.base import BUCKET_PATTERN
from hpkit.plan.dependencies import alternatives_brought
from hpkit.plan.existing import POD_ACCOUNTS, ROLE_BY_USER, makes_pod_role
from hpkit.text.spelling import near

__all__ = ["RULES"]

_CHART = "SageMaker HyperPod CLI, Helm chart: conditions of its parts"
_CLUSTERS = "SageMaker HyperPod developer guide, setting up clusters for model deployment"
_CONTRACT = "Config contract"
_EKS_ADDONS = "Amazon EKS user guide, AWS and community add-ons"
# Add-ons of EKS of which the kit knows nothing but the name.
_OTHERS = (
    "adot", "amazon-guardduty", "aws-guardduty-agent", "aws-network-flow-monitoring-agent", "aws-privateca-connector",
    "aws-secrets-store-csi-driver-provider", "eks-node-monitoring-agent", "fluent-bit", "kube-state-metrics",
    "prometheus-node-exporter", "snapshot-controller",
)  # fmt: skip
_EKS = "Amazon EKS user guide, IAM roles for add-ons"
_GUIDE = "SageMaker HyperPod developer guide, EKS add-ons"
_GOVERNANCE = "SageMaker HyperPod developer guide, task governance set-up"
# Of what is longer than any version, the beginning tells which it is.
_LONGEST_SHOWN = 40
# Add-ons whose configuration schema has no property at all.
_WITHOUT_VALUES = (TASK_GOVERNANCE,)
_VERSION = re.compile(r"v\d{1,9}\.\d{1,9}\.\d{1,9}-eksbuild\.\d{1,9}")
# What the chart of the operator takes (_validateRequiredValues.tpl in aws/sagemaker-hyperpod-cli).
_INFERENCE_ROLE = re.compile(
    r"arn:aws[a-z-]*:iam::\d{12}:role/(?:[\w+=,.@-]+/)*SageMakerHyperPodInference[\w+=,.@-]*", re.ASCII
)
# Part of an add-on's name is what has more letters.
_SHORT = 3
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
        needed_for = "has topology-aware scheduling" if for_topology else "HyperPod works with"
        without = " Or do without it: `governance.topologyAwareScheduling: Disabled`." if for_topology else ""
        yield Issue(
            (*context.path, "addons", name),
            f"{name} {addon.version} is older than {minimum}, the oldest that {needed_for}",
            f"Leave the version out, or take one from {minimum} on: {_listed_by(name)}{without}",
        )


def _spelled(context: Context) -> Iterator[Issue]:
    known = {*(addon.name for addon in addons()), *_OTHERS}
    for name, addon in context.spec.addons.items():
        # Of add-ons that others publish, EKS says nothing about how their versions are written.
        if addon.version is None or name not in known or _VERSION.fullmatch(addon.version):
            continue
        yield Issue(
            (*context.path, "addons", name),
            f"{_cut(addon.version)} is no version of {name}: EKS writes them as v1.2.3-eksbuild.4, with the number of "
            "its build",
            f"Leave the version out, or take one that EKS has: {_listed_by(name)}",
        )


def _cut(version: str) -> str:
    return version if len(version) <= _LONGEST_SHOWN else f"{version[:_LONGEST_SHOWN]}…"


def _listed_by(name: str) -> str:
    return f"`aws eks describe-addon-versions --addon-name {name}` lists them."


def _requirements(context: Context) -> Iterator[Issue]:
    # A cluster that is there may have them of its own; preflight looks.
    if context.spec.eks.existing is not None:
        return
    there = {addon.name for addon in context.plan.addons}
    there |= {each.addon for each in alternatives_brought(context.plan.dependencies)}
    there |= set(context.spec.inference.installed) if context.spec.inference else set()
    requires = {addon.name: addon.requires for addon in addons()}
    for name in context.spec.addons:
        absent = [each for each in requires.get(name, ()) if each not in there]
        if absent:
            missing = ", ".join(f"{each}: {{}}" for each in absent)
            yield Issue(
                (*context.path, "addons", name),
                f"{name} needs {listing(absent)}, which this environment does not have",
                f"Add to addons: {missing}.",
            )


def _not_there_yet(context: Context) -> Iterator[Issue]:
    inference = context.spec.inference
    if inference is None or context.spec.eks.existing is not None:
        return
    brought = {each.addon for each in alternatives_brought(context.plan.dependencies)}
    others: list[str] = [name for name in inference.installed if name not in brought]
    if others:
        yield Issue(
            (*context.path, "inference", "installed"),
            f"the kit makes the EKS cluster of {context.environment}, and nobody can have installed {listing(others)} "
            "there before the first `pulumi up`, which EKS then ends: the inference operator needs them",
            "Remove installed, and the kit installs them; or waive this where they are there by now.",
        )


def _values(context: Context) -> Iterator[Issue]:
    for name, addon in context.spec.addons.items():
        if name in _WITHOUT_VALUES and addon.configuration_values:
            yield Issue(
                (*context.path, "addons", name, "configurationValues"),
                f"{name} takes no configuration, and is given {listing(sorted(addon.configuration_values))}",
                "Remove configurationValues; clusterPolicy and governance say what it does.",
            )


def _one_way(context: Context) -> Iterator[Issue]:
    for name, addon in context.spec.addons.items():
        given = [
            key
            for key, stated in (
                ("role", addon.role is not None),
                ("serviceAccountRoleArn", addon.service_account_role_arn is not None),
                ("podIdentity: false", not addon.pod_identity),
            )
            if stated
        ]
        if len(given) > 1:
            yield Issue(
                (*context.path, "addons", name),
                f"{name} has {listing(given)} together, and its pods take their role in one way",
                "Keep one: role for EKS Pod Identity, serviceAccountRoleArn for the OIDC provider (IRSA), "
                "podIdentity: false for neither.",
            )


def _known_account(context: Context) -> Iterator[Issue]:
    for name, addon in context.spec.addons.items():
        if addon.role is not None and name not in POD_ACCOUNTS:
            yield Issue(
                (*context.path, "addons", name, "role"),
                f"the kit does not know which pods of {name} take the role {addon.role}",
                f"Remove role, and associate it outside the kit; known are {listing(sorted(POD_ACCOUNTS), 20)}.",
            )


def _has_rights(context: Context) -> Iterator[Issue]:
    for addon in context.plan.addons:
        given = addon.role or addon.service_account_role_arn or not addon.pod_identity
        # What comes with the inference operator is there to be found: it mounts nothing by itself.
        by_operator = context.spec.inference is not None and addon.name not in context.spec.addons
        if addon.name not in ROLE_BY_USER or by_operator or given or makes_pod_role(context.plan, addon):
            continue
        yield Issue(
            (*context.path, "addons", addon.name),
            f"{addon.name} may do nothing on AWS: its pods have no role, and HyperPod's nodes lend them none",
            f"Name a role for EKS Pod Identity in `role`, with rights on {ROLE_BY_USER[addon.name]}; or write "
            "`podIdentity: false` if you see to it otherwise.",
        )


def _known(context: Context) -> Iterator[Issue]:
    known = [addon.name for addon in addons()]
    for name in context.spec.addons:
        likely = None if name in known or name in _OTHERS else _meant(name, (*known, *_OTHERS))
        if likely is not None:
            yield Issue(
                (*context.path, "addons", name),
                f"EKS has no add-on `{name}` that is known here",
                f"Did you mean `{likely}`?",
            )
        elif name not in known and name not in _OTHERS:
            yield Issue(
                (*context.path, "addons", name),
                f"the kit does not know the add-on `{name}`",
                "Compare the name with what `aws eks describe-addon-versions` lists.",
                "warning",
            )


def _meant(name: str, known: Sequence[str]) -> str | None:
    """Return the add-on that a name is nearly that of, or a part of, where it is part of one alone."""
    parts = [each for each in known if len(name) > _SHORT and name.lower() in each]
    return parts[0] if len(parts) == 1 else near(name, known)


def _once(context: Context) -> Iterator[Issue]:
    named = {addon.name for addon in context.plan.addons}
    for each in alternatives_brought(context.plan.dependencies):
        if each.addon not in named:
            continue
        yield Issue(
            (*context.path, "cluster", "dependencies", "values", *each.switch.split(".")),
            f"the chart brings {each.addon} ({each.switch}), and the environment has the EKS add-on of that name as "
            "well: two of its controllers would work on the same objects",
            f"Remove {each.switch} from the values, and keep the add-on, which EKS updates.",
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
            f"{INFERENCE_OPERATOR} cannot be installed without {listing(absent)}",
            "Name the bucket in `inference.tlsCertificateBucket`, which makes its roles too; or say both in "
            "configurationValues.",
        )
        return
    role, bucket = values["executionRoleArn"], values["tlsCertificateS3Bucket"]
    path = (*context.path, "addons", INFERENCE_OPERATOR, "configurationValues")
    if not _INFERENCE_ROLE.fullmatch(str(role)):
        yield Issue(
            (*path, "executionRoleArn"),
            f"{role} is no ARN of a role whose name begins with SageMakerHyperPodInference, and the operator's chart "
            "takes no other",
            "Write arn:aws:iam::ACCOUNT:role/SageMakerHyperPodInference-NAME, with the account's 12 digits.",
        )
    if not re.fullmatch(BUCKET_PATTERN, str(bucket)):
        yield Issue(
            (*path, "tlsCertificateS3Bucket"),
            f"{bucket} is no name of a bucket",
            "Write the name alone, such as `acme-certificates`, without `s3://` or `arn:`.",
        )


RULES = (
    Rule("ADD016", "error", "An add-on is one that EKS has.", _EKS_ADDONS, _known),
    Rule("ADD001", "error", "An add-on is not older than HyperPod works with.", _GUIDE, _old_versions),
    Rule("ADD009", "error", "An add-on's version is written as EKS writes it.", _UPDATING, _spelled),
    Rule("ADD002", "error", "The add-ons that an add-on needs are there.", _GUIDE, _requirements),
    Rule("ADD017", "warning", "What others install is on a cluster that is there.", _GUIDE, _not_there_yet),
    Rule("ADD003", "error", "Only an add-on that can be configured is.", _GOVERNANCE, _values),
    Rule("ADD004", "error", "An add-on's pods take their role in one way.", _EKS, _one_way),
    Rule("ADD005", "error", "A role is for an add-on whose service account is known.", _CONTRACT, _known_account),
    Rule("ADD006", "warning", "An add-on that calls AWS has a role.", _EKS, _has_rights),
    Rule("ADD007", "error", "The chart brings nothing that an add-on brings.", _CHART, _once),
    Rule("ADD008", "error", "The inference operator has a role and a bucket.", _CLUSTERS, _inference_told),
)  # fmt: skip
