"""What the API server rejects: each object and its pods are created on trial, as a member of the team.

Nothing is stored (Kubernetes, API concepts, dry run). An administrator becomes a member by impersonation. For a caller
who can't, only claims and nodes are looked up.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from kubernetes.client import ApiException

from hpkit.cluster.jobs.kinds import PRIORITY, QUEUE, RUN_TIME, Path, PodTemplate, is_paused, parts, templates, units
from hpkit.cluster.jobs.limits import Breach
from hpkit.cluster.live.kubernetes import CONFLICT, FORBIDDEN, NOT_FOUND, Kubernetes, Query, message_of
from hpkit.cluster.live.model import Observed, team_of
from hpkit.kueue.configuration import JOB_RESOURCES
from hpkit.plan.model import TeamPlan
from hpkit.plan.names import GROUP_PREFIX
from hpkit.plan.pods import mapping

__all__ = ["Server"]

_TRIAL: Final = (("dryRun", "All"),)
# Controllers create such a pod again later; nothing does so for a pod of a user.
_FULL: Final = "exceeded quota"
_SELF: Final = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}


class Server:
    """The API server of a plan's platform, as the caller and as members of its teams."""

    def __init__(self, api: Kubernetes) -> None:
        self._api = api
        self._resources: dict[str, dict[str, str] | None] = {}
        self._members: dict[str, Kubernetes | None] = {}

    def has_claim(self, namespace: str, name: str) -> bool | None:
        """Return whether a claim exists; None if the caller can't see it."""
        return self._exists(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims/{name}")

    def has_node(self, selector: str) -> bool | None:
        """Return whether a label selector matches a node; None if the caller can't list nodes."""
        return self._exists("/api/v1/nodes", (("labelSelector", selector), ("limit", "1")))

    def has_class(self, name: str) -> bool | None:
        """Return whether a StorageClass exists; None if the caller can't see it, as members can't."""
        return self._exists(f"/apis/storage.k8s.io/v1/storageclasses/{name}")

    def has_file(self, namespace: str, kind: str, name: str) -> bool | None:
        """Return whether a ConfigMap or a Secret exists; None if the caller can't see it."""
        return self._exists(f"/api/v1/namespaces/{namespace}/{kind.lower()}s/{name}")

    def deployment(self, team: TeamPlan, name: str) -> dict[str, Any] | None:
        """Return a Deployment as a member of its team sees it, empty if it doesn't exist; None if nobody can ask."""
        try:
            path = f"/apis/apps/v1/namespaces/{team.namespace}/deployments/{name}"
            return (self._as_member(team) or self._api).find(path) or {}
        except ApiException:
            return None

    def version_of(self, version: str, kind: str) -> str | None:
        """Return the API version in which the cluster has a kind: this one, or else its group's preferred one."""
        if self._plural(version, kind) is not None:
            return version
        preferred = (self._api.version_of(version.partition("/")[0]) or "").removeprefix("/apis/")
        return preferred if preferred and self._plural(preferred, kind) is not None else None

    def has_scheduler(self, namespace: str, name: str) -> bool | None:
        """Return whether a scheduler has placed a pod or has a ready Deployment; None if the caller can't see it."""
        query = (("fieldSelector", f"spec.schedulerName={name},spec.nodeName!="), ("limit", "1"))
        anywhere = self._exists("/api/v1/pods", query)
        if anywhere is None:
            return self._exists(f"/api/v1/namespaces/{namespace}/pods", query) or None
        try:
            deployments = [] if anywhere else self._api.get("/apis/apps/v1/deployments")["items"]
        except ApiException:
            return None
        return anywhere or any(
            name in each["metadata"]["name"] and each.get("status", {}).get("readyReplicas") for each in deployments
        )

    def has_default_class(self, namespace: str) -> bool | None:
        """Return whether a claim without a StorageClass gets one; None if the caller can't create claims."""
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        claim = {"metadata": {"generateName": "trial-"}, "spec": spec}
        try:
            made = self._api.create(f"/api/v1/namespaces/{namespace}/persistentvolumeclaims", claim, _TRIAL)
        except ApiException:
            return None
        return bool(made["spec"].get("storageClassName"))

    def breaches(self, document: Mapping[Any, Any], teams: Mapping[str, TeamPlan]) -> Iterator[Breach]:
        """Yield what the API server rejects in a document; teams: by namespace."""
        for path, each in parts(document):
            team = teams.get(str(mapping(each.get("metadata")).get("namespace")))
            api = None if team is None else self._as_member(team)
            if team is not None and api is not None:
                yield from self._object(api, each, path, team)

    def why_no_task(self, name: str, observed: Observed, team: str | None) -> str:
        """Return why Kueue has no task for a job that exists; "" if none does, or if that isn't known."""
        where = [""] if observed.namespaces is None else [f"/namespaces/{each}" for each in observed.namespaces]
        for kind, (version, plural) in JOB_RESOURCES.items():
            for each in where:
                try:
                    found = self._api.get(
                        f"/apis/{version}{each}/{plural}", (("fieldSelector", f"metadata.name={name}"),)
                    )
                except ApiException:
                    continue
                for document in found["items"]:
                    namespace = document["metadata"]["namespace"]
                    cause = self._no_task({**document, "apiVersion": version, "kind": kind}, observed)
                    if cause and team in (None, team_of(namespace)):
                        return f"Kueue has no task for {kind} {name} in {namespace}: {cause}"
        return ""

    def _no_task(self, document: Mapping[str, Any], observed: Observed) -> str:
        labels = document["metadata"].get("labels") or {}
        if QUEUE not in labels:
            return f"it has no label {QUEUE}"
        if PRIORITY in labels and labels[PRIORITY] not in observed.priority_classes:
            return f"the WorkloadPriorityClass {labels[PRIORITY]} of its label {PRIORITY} doesn't exist"
        if any(map(is_paused, units(document))):
            return "its rollout is paused (spec.paused), so Kubernetes creates no pods"
        for pods in (pods for unit in units(document) for pods in templates(unit)):
            name = mapping(pods.template.get("spec")).get("priorityClassName")
            exists = not name or self._exists(f"/apis/scheduling.k8s.io/v1/priorityclasses/{name}")
            if not exists:
                verb = "must exist" if exists is None else "doesn't exist"
                return f"the PriorityClass {name}, which its pods have as priorityClassName, {verb}"
        return ""

    def unasked(self) -> list[str]:
        """Return the teams as whose members nothing could be tried."""
        return [name for name, api in self._members.items() if api is None]

    def _object(self, api: Kubernetes, document: Mapping[Any, Any], path: Path, team: TeamPlan) -> Iterator[Breach]:
        version, kind = str(document.get("apiVersion")), str(document.get("kind"))
        plural = self._plural(version, kind)
        if plural is None:
            served = self.version_of(version, kind)
            fix = "Install its operator" if served is None else f"Use `apiVersion: {served}`"
            yield _breach((*path, "apiVersion"), f"the cluster has no kind {kind} of {version}", fix)
            return
        folder = f"{'/api' if '/' not in version else '/apis'}/{version}/namespaces/{team.namespace}/{plural}"
        said, _ = _tried(api, folder, document)
        if _FULL in said and kind == "Pod":
            yield _breach(
                (*path, "kind"),
                f"the API server rejects it now: {said}",
                "Use a Job, which waits for quota, or create the pod when less runs",
            )
        elif said and _FULL not in said:
            yield _breach((*path, "kind"), f"the API server rejects it: {said}", "Correct the manifest")
        known = {said}
        for unit in units(document) if kind != "Pod" else ():
            for pods in templates(unit):
                said, pod = _tried(api, f"/api/v1/namespaces/{team.namespace}/pods", _pod(document, pods, team))
                place, spec = (*path, *unit.path, *pods.path), mapping(pods.template.get("spec"))
                overhead = pod.get("spec", {}).get("overhead")
                if overhead and overhead != spec.get("overhead"):
                    yield Breach(
                        (*place, "spec", "runtimeClassName"),
                        f"its RuntimeClass adds {_words(overhead)} to each pod, which only Kueue counts",
                        f"Set `overhead: {{{_words(overhead)}}}` in the pod's spec",
                        "server",
                        "warning",
                    )
                if said and said not in known and _FULL not in said:
                    known.add(said)
                    yield _breach(place, f"the API server rejects its pods: {said}", "Correct the pod template")

    def _as_member(self, team: TeamPlan) -> Kubernetes | None:
        """Return a client with the permissions of a team's member; None if the caller can't have them."""
        if team.name not in self._members:
            group = f"{GROUP_PREFIX}{team.name}"
            member = self._api.impersonating(f"member-of-{team.name}", group)
            found: Kubernetes | None = member
            try:
                own = self._api.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", _SELF)
                if group in own["status"]["userInfo"].get("groups", ()):
                    found = self._api
                else:
                    member.create("/apis/authentication.k8s.io/v1/selfsubjectreviews", _SELF)
            except ApiException as error:
                if error.status != FORBIDDEN:
                    raise
                found = None
            self._members[team.name] = found
        return self._members[team.name]

    def _plural(self, version: str, kind: str) -> str | None:
        if version not in self._resources:
            found = self._api.find(f"/api/{version}" if "/" not in version else f"/apis/{version}")
            self._resources[version] = found and {
                each["kind"]: each["name"] for each in found["resources"] if "/" not in each["name"]
            }
        return (self._resources[version] or {}).get(kind)

    def _exists(self, path: str, query: Query = ()) -> bool | None:
        try:
            found = self._api.get(path, query)
        except ApiException as error:
            return False if error.status == NOT_FOUND else None
        return bool(found.get("items", True))


def _pod(document: Mapping[Any, Any], pods: PodTemplate, team: TeamPlan) -> dict[str, Any]:
    """Return a pod as a controller would create it; Kueue adds the queue to those of a Deployment."""
    metadata = mapping(pods.template.get("metadata"))
    labels = {QUEUE: team.local_queue, **mapping(metadata.get("labels"))}
    # Required of a member's pod, not of those that a controller creates.
    if team.run_seconds is not None:
        labels.setdefault(RUN_TIME, str(team.run_seconds[0]))
    spec = {"restartPolicy": "Never", **mapping(pods.template.get("spec"))}
    if document.get("kind") == "Deployment":
        spec["restartPolicy"] = "Always"
    named = {"generateName": "trial-", "namespace": team.namespace, "labels": labels}
    annotations = {"annotations": metadata["annotations"]} if metadata.get("annotations") else {}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**named, **annotations}, "spec": spec}


def _tried(api: Kubernetes, folder: str, document: Mapping[Any, Any]) -> tuple[str, dict[str, Any]]:
    """Return why the API server wouldn't create an object, and the object that it would create.

    The reason is empty if it would.
    """
    try:
        return "", api.create(folder, document, _TRIAL)
    except ApiException as error:
        return "" if error.status == CONFLICT else message_of(error).rstrip("."), {}


def _words(amounts: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}: {amount}" for name, amount in sorted(amounts.items()))


def _breach(path: Path, message: str, fix: str) -> Breach:
    return Breach(path, message, fix, "server")
