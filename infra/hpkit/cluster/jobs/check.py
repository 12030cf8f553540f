"""Checks existing manifests: queue, priority, topology, and requests.

It doesn't check what the API server checks, such as unknown fields.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import reduce
from operator import getitem
from typing import Any, Literal

from hpkit.catalog import NETWORK_LAYERS, InstanceType, find_instance_type
from hpkit.cluster.jobs.fits import Fit, fit
from hpkit.cluster.jobs.kinds import WORKLOADS, PodTemplate, Unit, mapping, mappings, templates, units
from hpkit.cluster.jobs.limits import autoscaler_breach, breaches, breaches_of_claims, breaches_of_pods
from hpkit.cluster.jobs.new import PRIORITY, QUEUE, TOPOLOGY, priorities_of
from hpkit.cluster.jobs.resources import instance_type_of, pod_sets_of, requests_of, types_of
from hpkit.config.reading.document import with_value
from hpkit.config.reading.edit import dumped, loaded, position, remove_value, set_value
from hpkit.errors import InputError
from hpkit.plan.lustre import has_team_volumes
from hpkit.plan.model import NAMESPACE_PREFIX, POD_SECURITY_LEVEL, Plan, TeamPlan
from hpkit.plan.team_limits import pod_limits
from hpkit.text.formatting import listing
from hpkit.text.spelling import near

__all__ = ["JobFinding", "Manifest", "check", "read_manifests", "repaired"]

Path = tuple[str | int, ...]
Severity = Literal["error", "warning"]
_TOPOLOGY_PREFIX = "kueue.x-k8s.io/podset-"
_UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
# Slices of a pod set have their own topology (Kueue, Topology Aware Scheduling).
_OTHER_TOPOLOGY = (
    "kueue.x-k8s.io/podset-slice-required-topology",
    "kueue.x-k8s.io/podset-slice-size",
    "kueue.x-k8s.io/podset-group-name",
)
_MOST_OF_A_NODE = 0.8
# Fields of a pod that share something of the node (Kubernetes, Pod Security Standards, baseline: Host Namespaces).
_OF_THE_NODE = {"hostNetwork": "network", "hostPID": "processes", "hostIPC": "memory"}
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - compared with what a manifest names


@dataclass(frozen=True, slots=True)
class Edit:
    """A value to be written at a path of a document; moved_from is the path that it's removed from."""

    document: int
    path: Path
    value: str | Mapping[str, str]
    moved_from: Path | None = None


@dataclass(frozen=True, slots=True)
class JobFinding:
    """A problem of a manifest, its position, and its fix. edit: fixes it in the file, if possible."""

    file: str
    line: int
    column: int
    severity: Severity
    check: str
    message: str
    fix: str
    edit: Edit | None = None


@dataclass(frozen=True, slots=True)
class Manifest:
    """A file of one or more documents, with the place of each value."""

    file: str
    text: str
    documents: tuple[Any, ...]


def read_manifests(file: str, text: str) -> Manifest:
    """Return the documents of a file; InputError with the place where it is no YAML."""
    try:
        return Manifest(file, text, tuple(loaded(text)))
    except InputError as error:
        raise InputError(f"{file}:{error}") from None


def repaired(manifest: Manifest, plan: Plan) -> tuple[Manifest, list[JobFinding]]:
    """Return a file with each problem fixed that has one solution, and the problems.

    A fix can reveal more problems, so the file is checked again until nothing more can be fixed.
    """
    done: list[JobFinding] = []
    while True:
        before = manifest.text
        for finding in check(manifest, plan):
            after = None if finding.edit is None else _edited(manifest, finding.edit)
            if after is not None:
                manifest = after
                done.append(finding)
        if manifest.text == before:
            return manifest, done


def _edited(manifest: Manifest, edit: Edit) -> Manifest | None:
    """Return the file with one edit applied; None if that would change more than intended."""
    number, expected = edit.document, manifest.documents[edit.document]
    try:
        documents = loaded(manifest.text)
        if edit.moved_from is not None:
            path = edit.moved_from
            while len(path) > 1 and len(reduce(getitem, path[:-1], expected)) == 1:
                path = path[:-1]
            remove_value(documents[number], path)
            expected = _without(expected, path)
        set_value(documents[number], edit.path, edit.value)
        after = read_manifests(manifest.file, dumped(documents, manifest.text))
        expected = with_value(manifest.documents, (number,), with_value(expected, edit.path, edit.value))
    except InputError:
        return None
    return after if after.documents == expected else None


def _without(data: Any, path: Path) -> Any:
    step, rest = path[0], path[1:]
    if isinstance(data, list):
        return [_without(each, rest) if index == step else each for index, each in enumerate(data)]
    return {key: _without(each, rest) if key == step else each for key, each in data.items() if rest or key != step}


def check(manifest: Manifest, plan: Plan) -> Iterator[JobFinding]:
    """Return the problems of the jobs in a file for a stack; other kinds are skipped."""
    for number, document in enumerate(manifest.documents):
        if isinstance(document, Mapping):
            yield from _autoscalers(manifest, number, document)
            for unit in units(document):
                yield from _Job(manifest, number, document, unit, plan).findings()


def _autoscalers(manifest: Manifest, number: int, document: Mapping[Any, Any], path: Path = ()) -> Iterator[JobFinding]:
    if document.get("kind") == "List":
        for index, item in enumerate(mappings(document.get("items"))):
            yield from _autoscalers(manifest, number, item, (*path, "items", index))
    elif (breach := autoscaler_breach(document)) is not None:
        line, column = position(manifest.documents[number], (*path, *breach.path))
        yield JobFinding(manifest.file, line, column, "error", "autoscaler", breach.message, breach.fix)


class _Job:
    """The part of a document that Kueue queues."""

    def __init__(self, manifest: Manifest, number: int, document: Any, unit: Unit, plan: Plan) -> None:
        self._file = manifest.file
        self._number, self._document, self._unit, self._plan = number, document, unit, plan
        self._templates = tuple(templates(unit))

    def findings(self) -> Iterator[JobFinding]:
        team, wrong = self._team()
        if wrong is not None:
            yield wrong
        if team is not None:
            yield from self._kind(team)
            yield from self._queue(team)
        yield from self._priority(team)
        yield from self._topology()
        yield from self._types()
        yield from self._use(team)
        yield from self._pod_security()
        if team is not None and team.spec.members:
            yield from self._team_limits(team)
        if team is not None and team.quota_resources and all(self._goes_anywhere(each) for each in self._templates):
            yield from self._quota(team)

    def _say(
        self,
        path: Path,
        check: str,
        message: str,
        fix: str,
        *,
        severity: Severity = "error",
        edit: Edit | None = None,
    ) -> JobFinding:
        line, column = position(self._document, (*self._unit.path, *path))
        return JobFinding(self._file, line, column, severity, check, message, fix, edit)

    def _edit(self, path: Path, value: str | Mapping[str, str], *, moved_from: Path | None = None) -> Edit:
        above = self._unit.path
        return Edit(self._number, (*above, *path), value, None if moved_from is None else (*above, *moved_from))

    def _team(self) -> tuple[TeamPlan | None, JobFinding | None]:
        """Return the team of the namespace, or else of the queue, and the problem of the namespace."""
        owner: Any = self._document
        for step in self._unit.namespaced:
            owner = owner[step]
        namespace = mapping(owner.get("metadata")).get("namespace")
        teams = {team.namespace: team for team in self._plan.teams}
        if isinstance(namespace, str) and namespace in teams:
            return teams[namespace], None
        queue = self._label(QUEUE)
        team = next((each for each in self._plan.teams if each.local_queue == queue), None)
        if namespace is None:
            expected = team.namespace if team else f"hyperpod-ns-{{team}}, one of {', '.join(teams) or 'none'}"
            path = (*self._unit.namespaced, "metadata")
            return team, self._say_namespace(
                path,
                "it has no namespace, so it goes to kubectl's current one",
                f"Set `namespace: {expected}`",
                edit=None if team is None else Edit(self._number, (*path, "namespace"), team.namespace),
            )
        if team is None:
            # The common beginning of all namespaces must not count as similarity.
            names = {each.name: each for each in self._plan.teams}
            team_name = near(str(namespace).removeprefix(NAMESPACE_PREFIX), names)
            likely = names.get(team_name) if team_name else None
        else:
            likely = team
        return team, self._say_namespace(
            (*self._unit.namespaced, "metadata", "namespace"),
            f"{namespace} isn't a team namespace of {self._plan.stack}",
            f"Use `{likely.namespace}`" if likely else f"Use one of {', '.join(teams) or 'none'}",
        )

    def _say_namespace(self, path: Path, message: str, fix: str, *, edit: Edit | None = None) -> JobFinding:
        line, column = position(self._document, path)
        return JobFinding(self._file, line, column, "error", "namespace", message, fix, edit)

    def _label(self, name: str, path: Path = ()) -> Any:
        return mapping(mapping(_mapping_in(self._unit.content, path).get("metadata")).get("labels")).get(name)

    def _kind(self, team: TeamPlan) -> Iterator[JobFinding]:
        """Report if members of the team can't create objects of the kind."""
        needed = WORKLOADS.get(self._unit.kind)
        if not team.spec.members or needed is None or needed in team.spec.workloads:
            return
        kinds = listing([kind for kind, workload in WORKLOADS.items() if workload in team.spec.workloads])
        line, column = position(self._document, (*self._unit.namespaced, "kind"))
        yield JobFinding(
            self._file,
            line,
            column,
            "error",
            "kind",
            f"members of {team.name} can't create a {self._unit.kind}: the team's workloads are "
            f"{', '.join(team.spec.workloads)}",
            f"Use a kind that they can create ({kinds}), or add {needed} to `teams[{team.name}].workloads`",
        )

    def _queue(self, team: TeamPlan) -> Iterator[JobFinding]:
        for path in ((), *dict.fromkeys(path for each in self._templates for path in each.labelled)):
            queue = self._label(QUEUE, path)
            if queue == team.local_queue:
                continue
            queue_path: Path = (*path, "metadata", "labels", QUEUE) if queue is not None else (*path, "metadata")
            if queue is not None:
                problem = f"{'they use' if path else 'it uses'} the queue {queue}"
            elif path:
                problem = "they have no queue, so the admission policy rejects each of them"
            else:
                problem = "it has no queue, so no quota counts it"
            owner_text = "for the objects that it creates: " if path else ""
            yield self._say(
                queue_path,
                "queue",
                f"{owner_text}{problem}; the queue of {team.name} is {team.local_queue}",
                f"Add the label `{QUEUE}: {team.local_queue}`" + (" into the template" if path else ""),
                edit=self._edit((*path, "metadata", "labels", QUEUE), team.local_queue),
            )

    def _priority(self, team: TeamPlan | None) -> Iterator[JobFinding]:
        policy = self._plan.policy
        labels = [] if policy is None else [f"{each.name}-priority" for each in policy.priority_classes]
        mine = labels if team is None else [f"{name}-priority" for name in priorities_of(self._plan, team)]
        label = self._label(PRIORITY)
        if label is None or str(label) in mine:
            return
        if team is not None and str(label) in labels:
            yield self._say(
                ("metadata", "labels", PRIORITY),
                "priority",
                f"{team.name} can't use the priority class {label}: the admission policy rejects it",
                f"Use one of {', '.join(mine)}, or remove the label",
            )
            return
        names, listed = {each.removesuffix("-priority"): each for each in mine}, ", ".join(mine)
        name = near(str(label).removesuffix("-priority"), names)
        likely = names[name] if name else None
        yield self._say(
            ("metadata", "labels", PRIORITY),
            "priority",
            f"the cluster policy of {self._plan.stack} has no priority class {label}",
            f"Use `{likely}`" if likely else f"{f'Use one of {listed}, or remove' if listed else 'Remove'} the label",
            edit=self._edit(("metadata", "labels", PRIORITY), likely) if likely else None,
        )

    def _topology(self) -> Iterator[JobFinding]:
        pods = [each.path for each in self._templates]
        for name, value in self._annotations(()):
            if () in pods:
                break
            target = (*pods[0], "metadata", "annotations") if len(pods) == 1 else None
            yield self._say(
                ("metadata", "annotations", name),
                "topology",
                f"{name} is on the {self._unit.kind}, but Kueue reads it from the pod template",
                "Move it to `template.metadata.annotations`",
                edit=None
                if target is None
                else self._edit((*target, name), str(value), moved_from=("metadata", "annotations", name)),
            )
        for each in self._templates:
            yield from self._topology_of(each)

    def _annotations(self, path: Path) -> list[tuple[str, Any]]:
        found = mapping(mapping(_mapping_in(self._unit.content, path).get("metadata")).get("annotations"))
        return [(str(name), value) for name, value in found.items() if str(name).startswith(_TOPOLOGY_PREFIX)]

    def _topology_of(self, pods: PodTemplate) -> Iterator[JobFinding]:
        path: Path = (*pods.path, "metadata", "annotations")
        mine = self._annotations(pods.path)
        for name, value in mine:
            if name in (*_OTHER_TOPOLOGY, _UNCONSTRAINED):
                continue
            if name not in TOPOLOGY.values():
                likely = near(name, (*TOPOLOGY.values(), *_OTHER_TOPOLOGY, _UNCONSTRAINED))
                yield self._say(
                    (*path, name),
                    "topology",
                    f"Kueue has no annotation {name}",
                    f"Use `{likely or TOPOLOGY['required']}`",
                    edit=self._edit((*path, likely), str(value), moved_from=(*path, name)) if likely else None,
                )
            elif str(value) not in NETWORK_LAYERS:
                layer = near(str(value), NETWORK_LAYERS) or NETWORK_LAYERS[-1]
                yield self._say(
                    (*path, name),
                    "topology",
                    f"{value} isn't a network layer",
                    f"Use `{layer}`",
                    edit=self._edit((*path, name), layer),
                )
        names = [name for name, _ in mine]
        if set(TOPOLOGY.values()) <= set(names):
            yield self._say(
                path, "topology", "topology is both required and preferred", "Remove one of the two annotations"
            )
        if names:
            yield from self._no_topology(pods, (*path, names[0]))

    def _no_topology(self, pods: PodTemplate, path: Path) -> Iterator[JobFinding]:
        if not self._plan.topology_aware_scheduling:
            yield self._say(
                path,
                "topology",
                f"{self._plan.stack} doesn't schedule by topology, so the pods may never be placed",
                "Remove the annotation, or set governance.topologyAwareScheduling",
            )
            return
        types = types_of(pods.template, self._plan)
        known = [find_instance_type(name) for name in types]
        if types and all(kind is not None and not kind.network_layers for kind in known):
            yield self._say(
                path,
                "topology",
                f"EC2 reports no network position for {' or '.join(types)}, so Kueue never admits the pods",
                "Remove the annotation, or select another instance type",
            )

    def _types(self) -> Iterator[JobFinding]:
        types = list(self._plan.capacity)
        for template in self._templates:
            if self._goes_anywhere(template):
                continue
            chosen = instance_type_of(template.template)
            key = "nodeSelector" if chosen is not None and chosen not in types else "affinity"
            likely = None if chosen is None or find_instance_type(chosen) else near(chosen, types)
            yield self._say(
                (*template.path, "spec", key),
                "instance-type",
                f"{self._plan.stack} has no instances of {chosen}"
                if key == "nodeSelector"
                else f"{self._plan.stack} has no instances of the types that the pods' node affinity allows",
                f"Use `{likely}`" if likely else f"Use one of {', '.join(types)}",
            )

    def _goes_anywhere(self, pods: PodTemplate) -> bool:
        return bool(types_of(pods.template, self._plan))

    def _use(self, team: TeamPlan | None) -> Iterator[JobFinding]:
        for template in self._templates:
            requested = requests_of(template.template)
            selected = instance_type_of(template.template) is not None
            kinds = [find_instance_type(name) for name in types_of(template.template, self._plan)]
            able = [kind for kind in kinds if kind is not None and kind.accelerators and kind.accelerator_resource]
            if not selected:
                # Without its own node selector, the pod can run where its resources are. If several types have them,
                # the type isn't known.
                quota = None if team is None else {part.instance_type for part in team.quota_resources}
                able = [
                    instance_type
                    for instance_type in able
                    if requested.get(str(instance_type.accelerator_resource))
                    and (quota is None or instance_type.name in quota)
                ]
            if len(able) == 1 and able[0].vcpu:
                yield from self._use_of(template, able[0], requested)

    def _use_of(self, pods: PodTemplate, details: InstanceType, requested: Mapping[str, int]) -> Iterator[JobFinding]:
        resource, accelerators = str(details.accelerator_resource), int(details.accelerators or 0)
        wants, cpus = requested.get(resource, 0), requested.get("cpu", 0) / 1000
        path = (*pods.path, "spec", "containers")
        partitions = [name for name in requested if name.startswith(("nvidia.com/mig-", "aws.amazon.com/neuron"))]
        if not wants and not partitions:
            yield self._say(
                path,
                "accelerators",
                f"its pods select {details.name}, but request none of its {accelerators} {resource}",
                f"Request `{resource}`, or select a type without accelerators",
                severity="warning",
            )
        elif 0 < wants < accelerators and details.vcpu and cpus > _MOST_OF_A_NODE * details.vcpu:
            yield self._say(
                path,
                "accelerators",
                f"a pod uses {wants} of {accelerators} {resource} of {details.name} and {cpus:g} of its "
                f"{details.vcpu} CPUs, so "
                f"no other pod can use the other {accelerators - wants} while it runs",
                f"Request at most {details.vcpu * wants // accelerators} CPUs, or all accelerators",
                severity="warning",
            )

    def _pod_security(self) -> Iterator[JobFinding]:
        """Report what the namespace's Pod Security level rejects: the job is accepted, but none of its pods is.

        It checks the baseline controls that training manifests often violate.
        """
        refuses = f"which Pod Security rejects in a team's namespace (level {POD_SECURITY_LEVEL})"
        for pod_template in self._templates:
            spec = mapping(pod_template.template.get("spec"))
            path: Path = (*pod_template.path, "spec")
            for number, volume in enumerate(mappings(spec.get("volumes"))):
                if "hostPath" in volume:
                    yield self._host_path(volume, (*path, "volumes", number), refuses)
            for key, setting in _OF_THE_NODE.items():
                if spec.get(key) is True:
                    yield self._say(
                        (*path, key),
                        "pod-security",
                        f"its pods use the node's {setting} ({key}), {refuses}",
                        f"Remove {key}; EFA and NCCL don't need it",
                    )
            for field in ("initContainers", "containers"):
                for number, container in enumerate(mappings(spec.get(field))):
                    if mapping(container.get("securityContext")).get("privileged") is True:
                        yield self._say(
                            (*path, field, number, "securityContext", "privileged"),
                            "pod-security",
                            f"its container {container.get('name')} is privileged, {refuses}",
                            "Remove privileged; GPUs, EFA and huge pages are resources, and don't require it",
                        )

    def _team_limits(self, team: TeamPlan) -> Iterator[JobFinding]:
        """Report what the admission policies of the team's namespace reject."""
        limits = pod_limits(self._plan)
        broken = [*breaches(self._unit, self._templates)]
        broken += [breach for pods in self._templates for breach in breaches_of_pods(pods, team, limits)]
        if has_team_volumes(self._plan):
            broken += [breach for pods in self._templates for breach in breaches_of_claims(pods)]
        for breach in broken:
            yield self._say(breach.path, "team-limits", f"{breach.message}, so the job is rejected", breach.fix)

    def _host_path(self, volume: Mapping[str, Any], path: Path, refuses: str) -> JobFinding:
        where = mapping(volume["hostPath"]).get("path")
        shared = where == _SHARED_MEMORY
        own = "{medium: Memory}" if shared else "{}"
        old, new = (*path, "hostPath"), (*path, "emptyDir")
        remark = "" if shared else ", which is deleted with the pod, or claim a volume of the team's"
        return self._say(
            old,
            "pod-security",
            f"its volume {volume.get('name')} is {where} of the node (hostPath), {refuses}",
            f"Use `emptyDir: {own}` instead{remark}",
            edit=self._edit(new, {"medium": "Memory"}, moved_from=old) if shared else None,
        )

    def _quota(self, team: TeamPlan) -> Iterator[JobFinding]:
        if not self._templates:
            return
        result = fit(self._plan, team, pod_sets_of(self._templates, self._plan))
        if result.kind != "never":
            return
        one_by_one = result.most > 0 and all(each.alone for each in self._templates)
        yield self._say(
            ("spec",),
            "quota",
            f"at most {result.most} of its {self._templates[0].count} pods can run at a time: the quota and borrow "
            f"limit of {team.name} allow no more"
            if one_by_one
            else result.words,
            _less(result, self._plan, team),
            severity="warning" if one_by_one else "error",
        )


def _less(result: Fit, plan: Plan, team: TeamPlan) -> str:
    if "doesn't count" in result.words:
        return "Remove that request"
    if result.most or "quota" in result.words:
        return f"Request less, or raise the quota of {team.name} (`hpkit quota --stack {plan.stack}`)"
    return "Request less"


def _mapping_in(content: Any, path: Path) -> Mapping[Any, Any]:
    for step in path:
        content = content[step]
    return mapping(content)
