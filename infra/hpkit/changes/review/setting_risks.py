"""Settings that are reduced or changed: in resources, so that none is missed, the policy file, and a stack's file.

Values of a stack's file aren't shown, because Pulumi writes secrets there.
"""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from hpkit.changes import Edit, Reduction, edits_of_plans, is_plain, place_text, value_text
from hpkit.changes.plan_diff import Change, PlanDiff
from hpkit.changes.review.model import Loss, Risk
from hpkit.plan.names import short_type
from hpkit.text.formatting import listing, plural

__all__ = ["PolicySettings", "StackSettings", "policy_risks", "setting_risks", "stack_file_risks"]

# Settings that a specific risk or loss covers: type and place → codes of risks, or kinds of losses. Where the pattern
# has a `subject`, the risk must be about that subject; otherwise any risk with the code covers the setting.
_SAID: Final = tuple(
    (re.compile(pattern), codes)
    for pattern, codes in {
        r"hyperpod\.Cluster .* (restrictedI|i)nstanceGroups\[(?P<subject>[^\]]*)\].*": (
            "group-settings", "nodes-removed", "immutable", "karpenter-group-removed", "karpenter-group-added",
        ),
        r"hyperpod\.Cluster .* autoscaledInstanceGroups": ("karpenter-group-removed",),
        r"hyperpod\.ComputeQuota (?P<subject>\S*) computeQuotaConfig\.computeQuotaResources.*": (
            "quota", "elastic quota", "accelerators", "vCPU", "memory GiB", "shared-pool",
        ),
        r"hyperpod\.Cluster \S* nodeRecovery": ("node-recovery",),
        # The admission limit follows from quota and borrow limit.
        r"kubernetes\.ResourceQuota (?P<subject>\S*) spec\.hard.*": (
            "quota", "elastic quota", "accelerators", "vCPU", "memory GiB", "borrow limit", "borrowable accelerators",
            "borrowable vCPU", "borrowable memory GiB", "sharing",
        ),
        r"environment\.cluster\.nodeRecovery": ("node-recovery",),
        r"kubernetes\.Role (?P<subject>\S*) rules.*": ("workloads",),
        r"kubernetes\.ValidatingAdmissionPolicy hpkit-member-work .*": ("priority classes", "run time"),
        r"kubernetes\.ValidatingAdmissionPolicy hpkit-team-\S* spec\.validations\S* .*\bserviceAccountName\b.*": (
            "service accounts",
        ),
        r"kubernetes\.ValidatingAdmissionPolicy hpkit-team-workloads spec\.validations\S* .*\bvariables\.rank\b.*": (
            "priority classes", "priority-class-removed",
        ),
        # The policies and the role don't cover a namespace without members.
        r"kubernetes\.ValidatingAdmissionPolicy \S* spec\.matchConstraints\.namespaceSelector.*": ("access", "queue"),
        r"kubernetes\.ClusterRoleBinding hpkit-data-scientist .*": ("access", "queue"),
        r"teams\.(?P<subject>[^.]*)\.workloads": ("workloads", "queue"),
        r"teams\.(?P<subject>[^.]*)\.priorityClasses": ("priority classes",),
        r"teams\.(?P<subject>[^.]*)\.maxRunTime.*": ("run time",),
        r"teams\.[^.]*\.priorityClasses": ("priority-class-removed",),
        r"teams\.(?P<subject>[^.]*)\.serviceAccounts": ("service accounts",),
        r"environment\.storage\.teamBuckets\.(?P<subject>[^.[]*).*": ("buckets", "queue"),
        r"iam\.RolePolicy buckets-(?P<subject>\S*) .*": ("buckets",),
        r"teams\.(?P<subject>[^.]*)\.registry": ("repository-removed",),
        r"ecr\.LifecyclePolicy .*": ("images kept", "untagged images"),
        r"environment\.registry\.(keepImages|untaggedDays)": ("images kept", "untagged images"),
        r"kubernetes\.ValidatingAdmissionPolicy hpkit-files-\S* .*": ("user-ids", "access", "queue"),
        r"(fsx\.LustreFileSystem \S* rootSquashConfiguration|environment\.storage\.lustre\.rootSquash).*": (
            "root-squash",
        ),
        r"environment\.storage\.lustre\.teams": ("shared files",),
        r"environment\.storage\.localDisk": ("local files",),
        # Kueue's configuration belongs to the add-on's version, and contains topology without Karpenter.
        r"kubernetes\.(ConfigMapPatch|DeploymentPatch) kueue\S* .*": (
            "topology", "addon-version", "karpenter-off", "gang-scheduling", "policy",
        ),
        r"topologyAwareScheduling": ("topology",),
        r"kubernetes\.Release hyperpod-dependencies values.*": (
            "dependency-removed", "configuration", "replace-eks", "delete-eks",
        ),
        r"environment\.cluster\.dependencies\.values.*": ("dependency-removed", "configuration"),
        r"eks\.Addon (?P<subject>\S*) configurationValues.*": ("configuration",),
        r"environment\.addons\.(?P<subject>[^.]*)\.configurationValues.*": ("configuration",),
        r"environment\.eks\.supportType": ("version",),
        r"environment\.spaces\..*": ("spaces",),
        r"eks\.Cluster \S* upgradePolicy\.supportType": ("version",),
        r"hyperpod\.ComputeQuota (?P<subject>\S*) .*\.fairShareWeight": ("weight",),
        r"hyperpod\.ComputeQuota (?P<subject>\S*) (.*\.strategy|activationState)": ("sharing",),
        r"hyperpod\.ComputeQuota (?P<subject>\S*) .*[bB]orrowLimit.*": ("borrow limit", "sharing"),
        r"hyperpod\.ComputeQuota (?P<subject>\S*) .*\.preemptTeamTasks": ("preemption",),
        r".*[. ]priorityClasses\[[^\]]*\]": ("priority-class-removed",),
        r".*[. ]priorityClasses\[[^\]]*\]\.weight": ("priority-order",),
        r"hyperpod\.ClusterSchedulerConfig .*\.(?P<subject>fairShare|idleResourceSharing)": ("policy",),
        r"hyperpod\.ClusterSchedulerConfig .*\.(taskPrioritization)": ("policy",),
        r"clusterPolicy.*": ("governance-removed",),
        r"clusterPolicy\.(?P<subject>fairShare|idleResourceSharing|taskPrioritization)": ("policy",),
        r"kubernetes\.NodePool node-pool-(?P<subject>\S*) spec\.limits.*": ("limit-raised", "limit-lowered"),
        r"kubernetes\.NodePool node-pool-(?P<subject>\S*) .*": ("node-pool-settings",),
        r"kubernetes\.\S* \S*warm\S* .*": ("node-pool-settings",),
        r"kubernetes\.HyperpodNodeClass .*": ("karpenter-group-removed",),
        r"eks\.Cluster \S* version": ("version",),
        r"kubernetes\.NamespacePatch \S* .*pod-security\.kubernetes\.io/[a-z]*-version": ("version",),
        r"eks\.Cluster \S* vpcConfig\.(publicAccessCidrs|endpoint.*)": ("endpoint",),
        r"(eks\.Cluster \S* deletionProtection|s3\.Bucket \S* forceDestroy)": ("unprotected",),
        r"eks\.Addon \S* addonVersion": ("addon-migration",),
        r"eks\.Addon (?P<subject>\S*) addonVersion": ("addon-version",),
        r"environment\.addons\.(?P<subject>[^.]*)(\.version|\.podIdentity)?": ("addon-version", "addon-removed"),
        r"environment\.cluster\.(restrictedI|i)nstanceGroups\[(?P<subject>[^\]]*)\].*": (
            "group-settings", "nodes-removed", "karpenter-group-removed", "karpenter-group-added",
        ),
        r"environment\.autoscaling\.nodePools\[(?P<subject>[^\]]*)\].*": (
            "limit-raised", "limit-lowered", "node-pool-settings",
        ),
        r"environment\.autoscaling\.nodeClasses.*": ("karpenter-group-removed",),
        r"environment\.eks\.endpoint.*": ("endpoint",),
        r"environment\.eks\.(administrators|viewers)": ("access-removed",),
        r"environment\.eks\.version": ("version",),
        r"environment\.protect": ("unprotected",),
        r"(environment\.|hyperpod\.\S* \S* )?tags.*": ("tags",),
        r"environment\.network\.(closed|natGateways|endpoints)": ("egress-changed",),
        r"environment\.observability\.alerts.*": ("alerts",),
        r"(cloudwatch\.EventRule \S* eventPattern|sns\.Topic alerts policy)\S*": ("alerts",),
        r"(iam\.Role \S* |environment\.)permissionsBoundary": ("boundary",),
        r"environment\.cluster\.dependencies\.imageRegistry": ("configuration",),
        r"environment\.registry(\.pullFrom)?": ("image-access-reduced",),
        r"amp\.RuleGroupNamespace \S* data\..*": ("team-renamed",),
        r"iam\.RolePolicy nodes policy\..*": ("image-access-reduced", "repository-removed"),
        r"hyperpod\.Cluster \S* autoScaling\..*": ("karpenter-off",),
        r"hyperpod\.Cluster \S* tieredStorageConfig\..*": ("tiered-storage",),
        r"environment\.cluster\.tieredStorage.*": ("tiered-storage",),
        r"environment\.autoscaling(\.clusterRole|\.keda.*)?": ("karpenter-off",),
        r"environment\.storage\.lustre.*": ("replace-fileSystem", "delete-fileSystem"),
        r"kubernetes\.ValidatingAdmissionPolicy hpkit-member-work spec\.validations.*": ("priority-class-removed",),
        r"\S*\.\S* .*[ .]tags[.\[].*": ("tags",),
    }.items()
)  # fmt: skip


# The file's keys are those of the environment unless stated otherwise.
_OF_FILE: Final = "environment."
_POLICY: Final = "ValidatingAdmissionPolicy "
# Inputs that only tell programs that something changed.
_HASH: Final = re.compile(r"annotations\.hpkit/")


def setting_risks(
    reductions: Sequence[Reduction], risks: Sequence[Risk], losses: Sequence[Loss], diff: PlanDiff
) -> Iterator[Risk]:
    """Yield changes that no risk and no loss covers; the same change of many resources is reported once.

    Generated values, such as a policy's text, are named by their resource and by the file's changed keys.
    """
    reported = {(each.code, each.subject) for each in risks} | {(each.what, each.team) for each in losses}
    reported |= {(code, "") for code, _ in reported}
    owners_by_change: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    unreadable: dict[str, None] = {}
    for reduction in reductions:
        owner = f"{short_type(reduction.type)} {reduction.name}"
        # Several keys of the file can change the same admission policy: every key that its expressions read.
        expression = f" {reduction.before}" if _POLICY in owner and isinstance(reduction.before, str) else ""
        if _is_said(f"{owner} {reduction.place}{expression}", reported):
            continue
        if (
            reduction.made_up
            or not is_plain(reduction.place, reduction.before, reduction.after)
            or _HASH.search(reduction.place)
        ):
            unreadable[owner] = None
        else:
            place = reduction.place
            before, after = value_text(reduction.before, place), value_text(reduction.after, place)
            owners_by_change[place, before, after].append(owner)
    for (place, before, after), owners in owners_by_change.items():
        several = f" ({plural(len(owners), 'resource')})" if len(owners) > 1 else ""
        change = f"{_short(before)} is removed" if after == "unset" else f"{_short(before)} → {_short(after)}"
        yield Risk("settings", "attention", owners[0], f"{listing(owners)}: {place} {change}{several}")
    if unreadable:
        yield _of_resources(list(unreadable), diff, reported)


def _of_resources(owners: list[str], diff: PlanDiff, said: set[tuple[str, str]]) -> Risk:
    edits = edits_of_plans(diff.before, diff.after) if diff.before and diff.after else ()
    texts = [_text(each) for each in edits if not _is_said(each.place, said)]
    keys = f", by {listing(texts)}" if texts else ""
    return Risk("settings", "attention", owners[0], f"settings of {listing(owners)} change{keys}")


def _text(edit: Edit) -> str:
    key, before, after = edit.place.removeprefix(_OF_FILE), value_text(edit.before), value_text(edit.after)
    return f"{key} {before} → {after}" if is_plain(key, edit.before, edit.after) else place_text(key)


def _is_said(text: str, reported: set[tuple[str, str]]) -> bool:
    for pattern, codes in _SAID:
        match = pattern.fullmatch(text)
        if match is not None:
            subject = match.groupdict().get("subject") or ""
            if any((code, subject) in reported for code in codes):
                return True
    return False


def _short(text: str, most: int = 200) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


# Policy → level, or its level and parameters.
PolicySettings = Mapping[str, Any]
_LEVEL: Final = "enforcementLevel"


def policy_risks(settings: Change[PolicySettings]) -> Iterator[Risk]:
    """Yield each policy whose settings differ; None is a side without a policy file."""
    before, after = settings.before or {}, settings.after or {}
    for policy in sorted(before.keys() | after.keys()):
        texts = list(_differences("", *(_spelled_out(side.get(policy)) for side in (before, after))))
        if texts:
            effect = "`hpkit validate --policies` uses it"
            yield Risk("policy-settings", "attention", policy, f"the policy {policy}: {listing(texts, 20)}; {effect}")


def _spelled_out(given: Any) -> Any:
    """Return settings as parameters; a level alone is one of them."""
    return {_LEVEL: given} if isinstance(given, str) else given


def _differences(place: str, was: Any, now: Any) -> Iterator[str]:
    """Yield every value that differs, at its place; a side that is not there has no values."""
    sides = [{} if side is None else side for side in (was, now)]
    if all(isinstance(side, Mapping) for side in sides) and any(sides):
        for key in {**sides[0], **sides[1]}:
            yield from _differences(f"{place}.{key}" if place else key, *(side.get(key) for side in sides))
    elif was != now:
        yield f"{place} {value_text(was)} → {value_text(now)}".strip()


# Key of the stack file → value, including the keys of its `config`.
StackSettings = Mapping[str, Any]
_SECRETS: Final = ("secretsprovider", "encryptedkey", "encryptionsalt")
_KEEP: Final = (
    "secrets in the state can only be read with the old value: "
    "use `pulumi stack change-secrets-provider` to change both"
)
_OTHERS: Final = "Pulumi's plugins run with different settings, such as different credentials"


def stack_file_risks(stack: str, settings: Change[StackSettings]) -> Iterator[Risk]:
    """Yield reductions and changes in a stack's file; None is a side without a file."""
    before, after = settings.before or {}, settings.after or {}
    changed = [key for key, value in before.items() if after.get(key) != value]
    if not changed:
        return
    texts = [f"{key} {'changes' if key in after else 'is removed'}" for key in changed]
    secret = any(key in _SECRETS for key in changed)
    means = [_KEEP] if secret else []
    means += [_OTHERS] if any(key not in _SECRETS for key in changed) else []
    said = f"stacks/Pulumi.{stack}.yaml: {listing(texts, 20)}: {'; '.join(means)}"
    yield Risk("stack-file", "attention", stack, said)
