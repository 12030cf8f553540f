"""What RBAC cannot refuse a team, refused by admission policies: requests that are allowed by their verb alone.

Two kinds of policies: of what is in the teams' namespaces, whoever asks, for pods of a Job come from a controller; and
of what the teams' members ask for. Kueue leaves it to others that nobody poses as part of an admitted job (0.19.2,
pkg/controller/jobframework/reconciler.go), and the add-on's own policy asks for no more than a queue label.

Does not: repeat Pod Security; the label of the namespace does that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from hpkit.plan.model import POD_SECURITY_LEVEL, TeamPlan
from hpkit.plan.names import GROUP_PREFIX

__all__ = ["AdmissionPolicy", "Refusal", "ResourceRule", "pod_security_labels", "policies_of"]

_QUEUE = "kueue.x-k8s.io/queue-name"
_RANK = "kueue.x-k8s.io/priority-class"
_KUEUE = "kueue.x-k8s.io/"
_OWNERS = ".?metadata.?ownerReferences.orValue([])"
_CREATE, _BOTH = ("CREATE",), ("CREATE", "UPDATE")
_MEMBER = f"request.userInfo.groups.exists(each, each.startsWith('{GROUP_PREFIX}'))"


@dataclass(frozen=True, slots=True)
class ResourceRule:
    """Which resources of which API groups; versions are all."""

    groups: tuple[str, ...]
    resources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing that is refused: unless `expression` (CEL) holds, with this message; `reason` is for the page."""

    field: str
    expression: str
    message: str
    reason: str


@dataclass(frozen=True, slots=True)
class AdmissionPolicy:
    """A ValidatingAdmissionPolicy of the teams' namespaces; members: of the requests of the teams' people alone."""

    name: str
    rules: tuple[ResourceRule, ...]
    operations: tuple[str, ...]
    refusals: tuple[Refusal, ...]
    members: bool = False

    @property
    def conditions(self) -> dict[str, str]:
        """Return the conditions of a request that the policy is for, by name."""
        return {"of-a-member": _MEMBER} if self.members else {}


def pod_security_labels(version: str) -> dict[str, str]:
    """Return the labels of a team's namespace: `baseline` is enforced, `restricted` is warned of and audited.

    Baseline is the strictest level that training passes: EFA, GPUs and huge pages are resources of a container and need
    no privilege (EKS user guide, "Run machine learning training on Amazon EKS with Elastic Fabric Adapter"), and shared
    memory is an emptyDir. The version is the cluster's own, so that no upgrade changes what is let in unseen.
    """
    levels = {"enforce": POD_SECURITY_LEVEL, "warn": "restricted", "audit": "restricted"}
    prefix = "pod-security.kubernetes.io"
    return {f"{prefix}/{mode}": level for mode, level in levels.items()} | {
        f"{prefix}/{mode}-version": f"v{version}" for mode in levels
    }


def policies_of(teams: Sequence[TeamPlan]) -> list[AdmissionPolicy]:
    """Return the policies of the namespaces of teams."""
    return [*_of_namespaces(teams), *_of_members(teams)]


def _of_namespaces(teams: Sequence[TeamPlan]) -> list[AdmissionPolicy]:
    accounts = {team.namespace: ["default", *team.service_accounts] for team in teams if team.service_accounts}
    pods, jobs = ResourceRule(("",), ("pods",)), ResourceRule(("batch",), ("jobs",))
    workloads = ResourceRule(("kueue.x-k8s.io",), ("workloads",))
    return [
        AdmissionPolicy("hpkit-team-pods", (pods,), _CREATE, _of_pods("object.spec", accounts)),
        AdmissionPolicy("hpkit-team-jobs", (jobs,), _CREATE, _of_pods("object.spec.template.spec", accounts)),
        # Kueue makes one of whatever kind: what carries a priority of the system gets no quota before it has pods.
        AdmissionPolicy(
            "hpkit-team-workloads", (workloads,), _CREATE, _of_pods("each.template.spec", accounts, every="podSets")
        ),
        AdmissionPolicy(
            "hpkit-team-services",
            (ResourceRule(("",), ("services",)),),
            _BOTH,
            (
                Refusal(
                    "spec.externalIPs",
                    "object.spec.?externalIPs.orValue([]).size() == 0",
                    "spec.externalIPs takes the traffic of addresses that are not the team's. Use a Service without",
                    "every node would send traffic to that address to the team's pods (CVE-2020-8554)",
                ),
            ),
        ),
    ]


def _of_pods(spec: str, accounts: dict[str, list[str]], *, every: str = "") -> tuple[Refusal, ...]:
    """Return what no pod may have; spec: where its specification is, of each item of the list `every` if there is one.

    accounts: the service accounts of each namespace that has others than its default one. A raw template may use the
    old name of serviceAccountName, which the API server fills in on a pod alone.
    """
    literal = "{" + ", ".join(f"'{name}': {each}" for name, each in sorted(accounts.items())) + "}"
    allowed = f"{literal}[?request.namespace].orValue(['default'])" if accounts else "['default']"
    named = [f"{spec}.?{field}.orValue('default')" for field in ("serviceAccountName", "serviceAccount")]
    used = " && ".join(f"({each} == '' || {each} in {allowed})" for each in named)
    found = (
        Refusal(
            "spec.priorityClassName",
            f"!{spec}.?priorityClassName.orValue('').startsWith('system-')",
            "spec.priorityClassName must be none of the system's: rank work by the label kueue.x-k8s.io/priority-class",
            "it would evict the pods of every other team, and Kueue takes it for the rank of the whole job",
        ),
        Refusal(
            "spec.nodeName",
            f"{spec}.?nodeName.orValue('') == ''",
            "spec.nodeName goes round the scheduler. Use nodeSelector or affinity",
            "a pod would run on instances that its queue has not given it, past their taints",
        ),
        Refusal(
            "spec.tolerations",
            f"{spec}.?tolerations.orValue([]).all(toleration, toleration.?key.orValue('') != '')",
            "spec.tolerations must each name a key: one without tolerates every taint, of sick nodes too",
            "a pod would run on nodes that are sick, being checked or reserved for others",
        ),
        Refusal(
            "spec.serviceAccountName",
            used,
            "spec.serviceAccountName must be `default`, or one of the team's serviceAccounts in the organization file",
            "a pod has the rights of its service account, in the cluster and, by Pod Identity, at AWS",
        ),
    )
    if not every:
        return found
    return tuple(
        Refusal(each.field, f"object.spec.{every}.all(each, {each.expression})", each.message, each.reason)
        for each in found
    )


def _of_members(teams: Sequence[TeamPlan]) -> list[AdmissionPolicy]:
    ranks = {team.namespace: list(team.priority_labels) for team in teams if team.priority_classes}
    frameworks = ("apps", "batch", "jobset.x-k8s.io", "kubeflow.org", "leaderworkerset.x-k8s.io", "ray.io")
    work = (
        ResourceRule(("",), ("pods",)),
        ResourceRule((*frameworks, "sagemaker.amazonaws.com", "workload.codeflare.dev"), ("*",)),
    )
    secrets = ResourceRule(("",), ("secrets",))
    return [
        AdmissionPolicy("hpkit-member-work", work, _BOTH, _of_work(ranks), members=True),
        AdmissionPolicy("hpkit-member-pods", work[:1], ("UPDATE",), _of_admitted_pods(), members=True),
        AdmissionPolicy(
            "hpkit-member-secrets",
            (secrets,),
            _CREATE,
            (
                Refusal(
                    "type",
                    "object.?type.orValue('') != 'kubernetes.io/service-account-token'",
                    "a Secret of type kubernetes.io/service-account-token holds the rights of a service account",
                    "the token of any service account of the namespace would be written into it, to be read",
                ),
            ),
            members=True,
        ),
    ]


def _of_work(ranks: dict[str, list[str]]) -> tuple[Refusal, ...]:
    """Return what no work of a member may have; ranks: the classes of each namespace that has not all of them.

    A Deployment's pods, which Kueue counts one by one, have the rank of its own label, or else of its template's.
    """
    bounds = "{" + ", ".join(f"'{name}': {['', *each]}" for name, each in sorted(ranks.items())) + "}"
    labels = [f"object.{place}.?labels[?'{_RANK}'].orValue('')" for place in ("metadata", "?spec.?template.?metadata")]
    ranked = " && ".join(f"{label} in {bounds}[request.namespace]" for label in labels)
    suspended = [f".?spec.{path}.orValue(false)" for path in ("?suspend", "?runPolicy.?suspend")]
    kept = " && ".join(f"!(oldObject{each} && !object{each})" for each in suspended)
    return (
        Refusal(
            "metadata.ownerReferences",
            f"object{_OWNERS} == (request.operation == 'CREATE' ? [] : oldObject{_OWNERS})",
            "metadata.ownerReferences are written by controllers alone",
            "what poses as part of an admitted job is not counted by Kueue",
        ),
        Refusal(
            "metadata.labels",
            f"object.metadata.?labels[?'{_QUEUE}'].orValue('') == request.namespace + '-localqueue'",
            f"the label {_QUEUE} must name the team's queue, `<namespace>-localqueue`",
            "what has no queue is counted by nobody, be it from the beginning or later",
        ),
        Refusal(
            _RANK,
            f"!(request.namespace in {bounds}) || ({ranked})" if ranks else "true",
            f"the label {_RANK} must name one of the team's priorityClasses in the organization file",
            "the team's work would go before that of others by a rank that is not the team's",
        ),
        Refusal(
            "spec.suspend",
            f"request.operation == 'CREATE' || ({kept})",
            "spec.suspend is lifted by Kueue alone, when the queue has room",
            "the job would run until Kueue sees it and stops it, again and again",
        ),
    )


def _of_admitted_pods() -> tuple[Refusal, ...]:
    def same(field: str) -> str:
        new, old = (f"{each}.metadata.?{field}.orValue({{}})" for each in ("object", "oldObject"))
        return " && ".join(
            f"{one}.all(key, !key.startsWith('{_KUEUE}') || (key in {other} && {other}[key] == {one}[key]))"
            for one, other in ((new, old), (old, new))
        )

    finalizers = ".metadata.?finalizers.orValue([])"
    return (
        Refusal(
            "spec.schedulingGates",
            "object.spec.?schedulingGates.orValue([]) == oldObject.spec.?schedulingGates.orValue([])",
            "spec.schedulingGates are taken away by Kueue alone, when the queue has room",
            "the pod would start although its queue has not given it anything",
        ),
        Refusal(
            "metadata",
            f"{same('labels')} && {same('annotations')} && "
            f"oldObject{finalizers}.all(each, !each.startsWith('{_KUEUE}') || each in object{finalizers})",
            f"labels, annotations and finalizers of {_KUEUE} are Kueue's alone once the pod is there",
            "Kueue forgets a pod without its label, and what it takes",
        ),
    )
