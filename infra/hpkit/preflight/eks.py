"""Kubernetes version, add-on versions, and the EKS cluster: an existing one must fit, a new one's name be free."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from packaging.version import Version

from hpkit.catalog import kubernetes_versions
from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.dependencies import takes_over
from hpkit.plan.model import AddonPlan, Plan
from hpkit.preflight.calls import (
    KUBERNETES,
    KUBERNETES_VERSIONS,
    access_entry,
    addon_versions,
    eks_addon,
    eks_cluster,
    entry_principals,
    needed_addons,
    principals,
    role,
)
from hpkit.preflight.model import CheckResult, call_failed, changed, missing, ok, unknown
from hpkit.preflight.usage import UNMARKED, ownership
from hpkit.text.formatting import listing, plural

__all__ = ["check_eks"]

_AREA: Final = "eks"
_GOVERNANCE: Final = "amazon-sagemaker-hyperpod-taskgovernance"
_MODES: Final = ("API", "API_AND_CONFIG_MAP")


def check_eks(plan: Plan, responses: Responses) -> Iterator[CheckResult]:
    """Check the versions and add-ons that EKS must offer, then the cluster itself."""
    yield _version_offered(plan, responses)
    yield from (_addon_offered(plan, responses, addon) for addon in plan.addons)
    if plan.spec.eks.existing is None:
        yield _name_free(plan, responses)
    else:
        yield from _existing_cluster(plan, responses)
    yield from _dead_entries(plan, responses)


def _version_offered(plan: Plan, responses: Responses) -> CheckResult:
    version = plan.spec.eks.version
    subject = f"Kubernetes {version}"
    response = responses.of(KUBERNETES_VERSIONS)
    if isinstance(response, FailedCall):
        addons = responses.of(addon_versions(plan))
        if not isinstance(addons, FailedCall) and addons["addons"]:
            return ok(_AREA, subject, found="EKS lists add-ons for it", needed="offered by EKS")
        return call_failed(_AREA, subject, response, needed="offered by EKS")
    offered = {each["clusterVersion"]: each.get("versionStatus", "") for each in response["clusterVersions"]}
    status = offered.get(version, "UNSUPPORTED")
    if status == "UNSUPPORTED":
        both = [each for each in kubernetes_versions() if offered.get(each, "UNSUPPORTED") != "UNSUPPORTED"]
        fix = f"Set `eks.version` to a version that EKS and HyperPod offer: {listing(both)}"
        return missing(_AREA, subject, found="not offered", needed="offered by EKS", fix=fix)
    eks = plan.spec.eks
    if status == "EXTENDED_SUPPORT" and eks.existing is None and eks.support_type == "STANDARD":
        newer = [each for each in kubernetes_versions() if offered.get(each) == "STANDARD_SUPPORT"]
        fix = (
            f"Set `eks.version` to a newer version ({listing(newer)}), or set `eks.supportType: EXTENDED`, which costs "
            "more per hour"
        )
        return missing(_AREA, subject, found="extended support", needed="standard support", fix=fix)
    if status == "EXTENDED_SUPPORT":
        return ok(_AREA, subject, found="extended support", needed="offered by EKS")
    return ok(_AREA, subject, found="offered", needed="offered by EKS")


def _addon_offered(plan: Plan, responses: Responses, addon: AddonPlan) -> CheckResult:
    subject = f"add-on {addon.name}"
    needed = addon.version or "any version"
    response = responses.of(addon_versions(plan))
    if isinstance(response, FailedCall):
        return call_failed(_AREA, subject, response, needed=needed)
    offers = {each["addonName"]: each["addonVersions"] for each in response["addons"]}
    listed = offers.get(addon.name, [])
    versions = [each["addonVersion"] for each in listed]
    kubernetes = plan.spec.eks.version
    if not versions:
        fix = "Remove the add-on, or choose another `eks.version`"
        return missing(_AREA, subject, found=f"none for Kubernetes {kubernetes}", needed=needed, fix=fix)
    if addon.version is None:
        return ok(_AREA, subject, found=_default_of(listed, kubernetes) or versions[0], needed=needed)
    if addon.version not in versions:
        fix = f"Pin another version in `addons`: {listing(versions, 4)}"
        found = f"{len(versions)} other versions for {kubernetes}"
        return missing(_AREA, subject, found=found, needed=needed, fix=fix)
    return ok(_AREA, subject, found="offered", needed=needed)


def _default_of(listed: list[dict[str, Any]], kubernetes: str) -> str | None:
    for version in listed:
        for fit in version.get("compatibilities", ()):
            if fit.get("clusterVersion") == kubernetes and fit.get("defaultVersion"):
                return str(version["addonVersion"])
    return None


def _name_free(plan: Plan, responses: Responses) -> CheckResult:
    name = plan.eks_name
    subject = f"name {name} for the EKS cluster"
    response = responses.of(eks_cluster(plan))
    if isinstance(response, FailedCall):
        if response.is_absence:
            return ok(_AREA, subject, found="free", needed="free")
        return call_failed(_AREA, subject, response, needed="free")
    owner = ownership(plan, responses, response["cluster"].get("tags", {}))
    if owner == "own":
        return ok(_AREA, subject, found="this stack's own", needed="free")
    if owner == "unmarked":
        fix = "If the stack's state contains it, no action is needed; otherwise set `eks.existing`"
        return unknown(_AREA, subject, why=UNMARKED, fix=fix, found="exists", needed="free")
    fix = f"Use it (`eks.existing: {{name: {name}}}`), or rename the organization or environment"
    return missing(_AREA, subject, found="taken", needed="free", fix=fix)


def _existing_cluster(plan: Plan, responses: Responses) -> Iterator[CheckResult]:
    subject = f"EKS cluster {plan.eks_name}"
    response = responses.of(eks_cluster(plan))
    if isinstance(response, FailedCall):
        if response.is_absence:
            fix = f"Set `eks.existing.name` to a cluster of this account and {plan.spec.region}, or remove `existing`"
            yield missing(_AREA, subject, found="missing", needed="ACTIVE", fix=fix)
        else:
            yield call_failed(_AREA, subject, response, needed="ACTIVE")
        return
    cluster = response["cluster"]
    yield _check_allowed(
        subject, cluster["status"], ("ACTIVE",), fix="Wait until it is, or fix it (`health` of DescribeCluster)"
    )
    mode = cluster.get("accessConfig", {}).get("authenticationMode", "CONFIG_MAP")
    command = (
        f"aws eks update-cluster-config --name {plan.eks_name}"
        f" --access-config authenticationMode=API_AND_CONFIG_MAP --region {plan.spec.region}"
    )
    fix = "Change it; EKS can't change it back to CONFIG_MAP"
    yield _check_allowed(f"{subject}, authentication mode", mode, _MODES, fix=fix, command=command)
    yield _version_fits(plan, subject, cluster["version"])
    if not plan.spec.cluster.existing:
        yield _same_vpc(plan, subject, cluster.get("resourcesVpcConfig", {}).get("vpcId", "none"))
    for addon in plan.addons:
        yield from _installed_addon(plan, responses, addon)
    for name, needed in needed_addons(plan):
        yield _required_addon(plan, responses, name, needed)
    for principal in principals(plan):
        yield from _access_entry(plan, responses, principal)
    if plan.policy is not None:
        yield _kueue(plan, responses)
    if not plan.has_static_nodes:
        yield _own_nodes(plan, cluster, responses)


def _own_nodes(plan: Plan, cluster: Mapping[str, Any], responses: Responses) -> CheckResult:
    """Check that CoreDNS and the add-ons can run, if all of the stack's instance groups are empty or Karpenter's."""
    subject, needed = f"nodes of {plan.eks_name} for CoreDNS and the add-ons", "at least one, or EKS Auto Mode"
    if cluster.get("computeConfig", {}).get("enabled"):
        return ok(_AREA, subject, found="EKS Auto Mode", needed=needed)
    inside = responses.of(KUBERNETES)
    if isinstance(inside, FailedCall):
        why = f"{inside.action}: {inside.code}: {inside.message}"
        fix = "Check with kubectl: `kubectl get nodes` must list nodes that aren't HyperPod's"
        return unknown(_AREA, subject, why=why, fix=fix, found="not known", needed=needed)
    if inside["nodes"]:
        return ok(_AREA, subject, found=plural(len(inside["nodes"]), "node"), needed=needed)
    fix = "Add a node group to the EKS cluster, or an instance group with an `instanceCount` of at least 1"
    return missing(_AREA, subject, found="none", needed=needed, fix=fix)


def _check_allowed(subject: str, state: str, allowed: tuple[str, ...], *, fix: str, command: str = "") -> CheckResult:
    needed = " or ".join(allowed)
    if state in allowed:
        return ok(_AREA, subject, found=state, needed=needed)
    return missing(_AREA, subject, found=state, needed=needed, fix=fix, command=command)


def _version_fits(plan: Plan, subject: str, version: str) -> CheckResult:
    subject, planned = f"{subject}, version", plan.spec.eks.version
    least = kubernetes_versions()[0]
    needed = f"{planned}, at least {least}"
    if Version(version) < Version(least):
        fix = f"Update it one minor version at a time to {least} or newer"
        return missing(_AREA, subject, found=version, needed=needed, fix=fix)
    if version != planned:
        fix = f'Set `eks.version: "{version}"`; hpkit doesn\'t update an existing cluster'
        return missing(_AREA, subject, found=version, needed=needed, fix=fix)
    return ok(_AREA, subject, found=version, needed=needed)


def _same_vpc(plan: Plan, subject: str, vpc: str) -> CheckResult:
    subject, planned = f"{subject}, VPC", plan.network.vpc_id
    if planned is None:
        fix = f"Set `network.existing` to its network (`vpcId: {vpc}`); HyperPod must be in the VPC of its EKS cluster"
        return missing(_AREA, subject, found=vpc, needed="the stack's own new VPC", fix=fix)
    if vpc != planned:
        fix = f"Set `network.existing.vpcId: {vpc}`, with subnets of that VPC"
        return missing(_AREA, subject, found=vpc, needed=planned, fix=fix)
    return ok(_AREA, subject, found=vpc, needed=planned)


def _required_addon(plan: Plan, responses: Responses, name: str, needed: str) -> CheckResult:
    """Check an add-on that another one requires, and that an existing cluster must have."""
    subject = f"{needed} on {plan.eks_name}, which {name} requires"
    response = responses.of(eks_addon(plan, needed))
    if not isinstance(response, FailedCall):
        return ok(_AREA, subject, found=response["addon"].get("addonVersion", "installed"), needed="installed")
    if not response.is_absence:
        return call_failed(_AREA, subject, response, needed="installed")
    why = "it isn't installed as an EKS add-on; this check can't see other installations"
    return unknown(
        _AREA, subject, why=why, fix=f"Add {needed}: {{}} to `addons`, unless it's installed", needed="installed"
    )


def _installed_addon(plan: Plan, responses: Responses, addon: AddonPlan) -> Iterator[CheckResult]:
    """Check an add-on that is installed already: EKS won't install it again."""
    subject = f"add-on {addon.name} to be installed on {plan.eks_name}"
    response = responses.of(eks_addon(plan, addon.name))
    if isinstance(response, FailedCall):
        effect = takes_over(plan.spec, addon.name)
        if not response.is_absence:
            yield call_failed(_AREA, subject, response, needed="absent")
        elif effect is not None:
            fix = f"If somebody changed settings of {addon.name}, set them in addons.{addon.name}.configurationValues"
            yield changed(_AREA, subject, found=f"absent; {effect}", needed="absent", fix=fix)
        return
    found = response["addon"]
    version = f"exists, {found['addonVersion']}"
    owner = ownership(plan, responses, found.get("tags", {}))
    if owner == "own":
        yield ok(_AREA, subject, found="this stack's own", needed="absent")
        return
    if owner == "unmarked":
        fix = (
            "If the stack's state contains it, no action is needed; otherwise run `hpkit aws adopt run --stack "
            f"{plan.stack}`"
        )
        yield unknown(_AREA, subject, why=UNMARKED, fix=fix, found=version, needed="absent")
        return
    fix = "Transfer it: --preserve removes only EKS's record, its pods keep running, and hpkit installs over them"
    command = (
        f"aws eks delete-addon --cluster-name {plan.eks_name} --addon-name {addon.name} --preserve"
        f" --region {plan.spec.region}"
    )
    yield missing(_AREA, subject, found=version, needed="absent", fix=fix, command=command)


def _access_entry(plan: Plan, responses: Responses, principal: str) -> Iterator[CheckResult]:
    """Check for an existing access entry: EKS has one per principal, and rejects a second.

    Source: Amazon EKS API reference, CreateAccessEntry (ResourceInUseException); terraform-aws-eks issue 3293. hpkit
    doesn't import it: destroying the stack would then delete the owner's access to a cluster that stays.
    """
    subject = f"access entry of {principal} in {plan.eks_name}"
    response = responses.of(access_entry(plan, principal))
    if isinstance(response, FailedCall):
        if not response.is_absence:
            yield call_failed(_AREA, subject, response, needed="absent")
        return
    owner = ownership(plan, responses, response["accessEntry"].get("tags", {}))
    if owner == "own":
        yield ok(_AREA, subject, found="this stack's own", needed="absent")
    elif owner == "unmarked":
        fix = (
            "If the stack's state contains it, no action is needed; otherwise run `hpkit aws adopt run --stack "
            f"{plan.stack}`"
        )
        yield unknown(_AREA, subject, why=UNMARKED, fix=fix, found="exists", needed="absent")
    else:
        fix = (
            "Remove the role from `eks.administrators` or `eks.viewers`: its existing entry works, and hpkit doesn't "
            "manage it. Members of a team need an entry that hpkit creates: use another role, or delete this entry"
        )
        yield missing(_AREA, subject, found="exists", needed="absent", fix=fix)


def _dead_entries(plan: Plan, responses: Responses) -> Iterator[CheckResult]:
    """Check for access entries that are older than their role: they grant nothing.

    An entry belongs to the role's unique ID, which a role that was deleted and created again doesn't keep.
    Source: Amazon EKS user guide, "Grant IAM users access to Kubernetes with EKS access entries", considerations.
    """
    for principal in entry_principals(plan, responses):
        entry = responses.of(access_entry(plan, principal))
        found = responses.of(role(principal.rpartition("/")[2]))
        if isinstance(entry, FailedCall) or isinstance(found, FailedCall):
            continue
        created, role_created = entry["accessEntry"].get("createdAt"), found["Role"]["CreateDate"]
        if created is not None and created < role_created:
            command = (
                f"aws eks delete-access-entry --cluster-name {plan.eks_name} --principal-arn {principal}"
                f" --region {plan.spec.region}"
            )
            yield missing(
                _AREA,
                f"access entry of {principal} in {plan.eks_name} to work",
                found=f"older than the role, which was created again on {role_created:%Y-%m-%d}",
                needed="newer than the role",
                fix="Delete the entry, then run `pulumi up --refresh`",
                command=command,
            )


def _kueue(plan: Plan, responses: Responses) -> CheckResult:
    """Check for a Kueue that the task governance add-on would collide with."""
    subject, needed = "Kueue on the EKS cluster", "only the add-on's"
    addon, inside = responses.of(eks_addon(plan, _GOVERNANCE)), responses.of(KUBERNETES)
    if not isinstance(addon, FailedCall):
        return ok(_AREA, subject, found=f"that of the add-on {_GOVERNANCE}", needed=needed)
    if not addon.is_absence:
        return call_failed(_AREA, subject, addon, needed=needed)
    if isinstance(inside, FailedCall):
        why = f"{inside.action}: {inside.code}: {inside.message}"
        fix = "Check with kubectl: `kubectl get crd | grep kueue` must be empty, or the add-on can't be installed"
        return unknown(_AREA, subject, why=why, fix=fix, found="no add-on", needed=needed)
    traces = _kueue_traces(inside)
    if not traces:
        return ok(_AREA, subject, found="none", needed=needed)
    fix = "Save this Kueue's queues, then remove it with its CRDs; the add-on installs its own"
    return missing(_AREA, subject, found=listing(traces), needed=needed, fix=fix)


def _kueue_traces(inside: Mapping[str, Any]) -> list[str]:
    groups = [f"the API {name}" for name in inside["apiGroups"]]
    return groups + [f"deployment kueue-system/{name}" for name in inside["deployments"]]
