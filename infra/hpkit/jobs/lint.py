"""What is wrong with manifests that people have: queue, priority, topology, and what they ask for.

Does not: judge what the API server judges, such as unknown fields.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Literal

from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from hpkit.catalog import NETWORK_LAYERS, InstanceType, find_instance_type
from hpkit.errors import InputError
from hpkit.jobs.fits import fit
from hpkit.jobs.kinds import QUEUED, PodTemplate, mapping, mappings, templates
from hpkit.jobs.new import PRIORITY, QUEUE, TOPOLOGY
from hpkit.jobs.resources import instance_type_of, pod_sets_of, requests_of
from hpkit.plan.model import POD_SECURITY_LEVEL, Plan, TeamPlan
from hpkit.spelling import near

__all__ = ["JobFinding", "Manifest", "lint", "read_manifests", "written"]

_TOPOLOGY_PREFIX = "kueue.x-k8s.io/podset-"
_UNCONSTRAINED = "kueue.x-k8s.io/podset-unconstrained-topology"
# Slices of a pod set have a topology of their own (Kueue, Topology Aware Scheduling).
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
class JobFinding:
    """What is wrong with a manifest, where, and what puts it right. repair: does it in the document, where it can."""

    file: str
    line: int
    column: int
    severity: Literal["error", "warning"]
    check: str
    message: str
    fix: str
    repair: Callable[[], None] | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A file of one or more documents, read so that it can be written again with its comments."""

    file: str
    documents: tuple[Any, ...]


def read_manifests(file: str, text: str) -> Manifest:
    """Return the documents of a file; InputError with the place where it is no YAML."""
    try:
        return Manifest(file, tuple(_yaml().load_all(text)))
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = file if mark is None else f"{file}:{mark.line + 1}:{mark.column + 1}"
        raise InputError(f"{where}: no YAML: {getattr(error, 'problem', None) or error}") from None


def written(manifest: Manifest) -> str:
    """Return the text of a manifest, with its comments."""
    stream = io.StringIO()
    _yaml().dump_all(manifest.documents, stream)
    return stream.getvalue()


def _yaml() -> YAML:
    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.width = 4096
    return yaml


def lint(manifest: Manifest, plan: Plan) -> Iterator[JobFinding]:
    """Return what is wrong with the jobs of a file for a stack; documents of other kinds are passed over."""
    for document in manifest.documents:
        if isinstance(document, MutableMapping) and document.get("kind") in QUEUED:
            yield from _Job(manifest.file, document, plan).findings()


class _Job:
    """One document of a kind that Kueue queues."""

    def __init__(self, file: str, document: Any, plan: Plan) -> None:
        self._file, self._document, self._plan = file, document, plan
        self._templates = tuple(templates(document))

    def findings(self) -> Iterator[JobFinding]:
        team = self._team()
        if isinstance(team, JobFinding):
            yield team
            return
        yield from self._queue(team)
        yield from self._priority()
        yield from self._topology()
        yield from self._types()
        yield from self._use()
        yield from self._pod_security()
        if team.quota_resources and all(self._asks(each) for each in self._templates):
            yield from self._quota(team)

    def _say(
        self,
        path: tuple[str | int, ...],
        check: str,
        message: str,
        fix: str,
        *,
        severity: Literal["error", "warning"] = "error",
        repair: Callable[[], None] | None = None,
    ) -> JobFinding:
        line, column = _place(self._document, path)
        return JobFinding(self._file, line, column, severity, check, message, fix, repair)

    def _metadata(self) -> MutableMapping[str, Any]:
        if not isinstance(self._document.get("metadata"), MutableMapping):
            self._document["metadata"] = {}
        found: MutableMapping[str, Any] = self._document["metadata"]
        return found

    def _team(self) -> TeamPlan | JobFinding:
        """Return the team of the namespace, or what is wrong with it."""
        namespace = mapping(self._document.get("metadata")).get("namespace")
        known = {team.namespace: team for team in self._plan.teams}
        if isinstance(namespace, str) and namespace in known:
            return known[namespace]
        queue = self._label(QUEUE)
        by_queue = next((team for team in self._plan.teams if team.local_queue == queue), None)
        if namespace is None:
            meant = by_queue.namespace if by_queue else f"hyperpod-ns-{{team}}, one of {', '.join(known) or 'none'}"

            def repair(team: TeamPlan | None = by_queue) -> None:
                if team is not None:
                    self._metadata()["namespace"] = team.namespace

            return self._say(
                ("metadata",),
                "namespace",
                "it names no namespace, so that it goes where kubectl happens to be",
                f"Write `namespace: {meant}`",
                repair=repair if by_queue else None,
            )
        meant_name = near(str(namespace), known)
        hint = f"Write `{meant_name}`" if meant_name else f"Write one of {', '.join(known) or 'none'}"
        return self._say(
            ("metadata", "namespace"), "namespace", f"{namespace} is no team's namespace of {self._plan.stack}", hint
        )

    def _label(self, name: str) -> Any:
        return mapping(mapping(self._document.get("metadata")).get("labels")).get(name)

    def _set_label(self, name: str, value: str) -> Callable[[], None]:
        def repair() -> None:
            metadata = self._metadata()
            if not isinstance(metadata.get("labels"), MutableMapping):
                metadata["labels"] = {}
            metadata["labels"][name] = value

        return repair

    def _queue(self, team: TeamPlan) -> Iterator[JobFinding]:
        queue = self._label(QUEUE)
        if queue == team.local_queue:
            return
        where: tuple[str | int, ...] = ("metadata", "labels", QUEUE) if queue is not None else ("metadata",)
        what = "has no queue, so that no quota counts it" if queue is None else f"names the queue {queue}"
        yield self._say(
            where,
            "queue",
            f"it {what}; {team.name} has {team.local_queue}",
            f"Write the label `{QUEUE}: {team.local_queue}`",
            repair=self._set_label(QUEUE, team.local_queue),
        )

    def _priority(self) -> Iterator[JobFinding]:
        policy = self._plan.policy
        known = [] if policy is None else [f"{each.name}-priority" for each in policy.priority_classes]
        given = self._label(PRIORITY)
        if given is None or str(given) in known:
            return
        whole = f"{given}-priority"
        meant = whole if whole in known else near(str(given), known)
        yield self._say(
            ("metadata", "labels", PRIORITY),
            "priority",
            f"the cluster policy of {self._plan.stack} has no priority class {given}",
            f"Write `{meant}`" if meant else f"Write one of {', '.join(known) or 'none'}, or leave the label out",
            repair=self._set_label(PRIORITY, meant) if meant else None,
        )

    def _topology(self) -> Iterator[JobFinding]:
        outside = mapping(mapping(self._document.get("metadata")).get("annotations"))
        if self._document.get("kind") != "Pod":
            for name in outside:
                if str(name).startswith(_TOPOLOGY_PREFIX):
                    yield self._say(
                        ("metadata", "annotations", name),
                        "topology",
                        f"{name} stands on the {self._document['kind']}, and Kueue reads it from the pod template",
                        "Move it to the annotations of the pod template",
                    )
        for each in self._templates:
            yield from self._topology_of(each)

    def _topology_of(self, pods: PodTemplate) -> Iterator[JobFinding]:
        annotations = mapping(mapping(pods.template.get("metadata")).get("annotations"))
        path = (*pods.path, "metadata", "annotations")
        mine = [name for name in annotations if str(name).startswith(_TOPOLOGY_PREFIX)]
        for name in mine:
            if name in (*_OTHER_TOPOLOGY, _UNCONSTRAINED):
                continue
            if name not in TOPOLOGY.values():
                meant = near(str(name), TOPOLOGY.values())
                yield self._say(
                    (*path, name),
                    "topology",
                    f"Kueue knows no annotation {name}",
                    f"Write `{meant or TOPOLOGY['required']}`",
                )
            elif str(annotations[name]) not in NETWORK_LAYERS:
                meant = near(str(annotations[name]), NETWORK_LAYERS) or NETWORK_LAYERS[-1]
                yield self._say(
                    (*path, name),
                    "topology",
                    f"{annotations[name]} is no layer of the network",
                    f"Write `{meant}`",
                    repair=_set(annotations, name, meant),
                )
        if set(TOPOLOGY.values()) <= set(mine):
            yield self._say(
                path, "topology", "topology is both required and preferred", "Leave one of the two annotations out"
            )
        if mine and not self._plan.topology_aware_scheduling:
            yield self._say(
                (*path, mine[0]),
                "topology",
                f"{self._plan.stack} does not schedule by topology, so that the pods may never be placed",
                "Leave the annotation out, or set governance.topologyAwareScheduling",
            )

    def _types(self) -> Iterator[JobFinding]:
        known = list(self._plan.capacity)
        for each in self._templates:
            chosen = instance_type_of(each.template)
            if chosen is not None and chosen not in known:
                meant = near(chosen, known)
                yield self._say(
                    (*each.path, "spec", "nodeSelector"),
                    "instance-type",
                    f"{self._plan.stack} has no instances of {chosen}",
                    f"Write `{meant}`" if meant else f"Write one of {', '.join(known)}",
                )

    def _use(self) -> Iterator[JobFinding]:
        for each in self._templates:
            kind = find_instance_type(instance_type_of(each.template) or "")
            if kind is None or not kind.accelerators or not kind.accelerator_resource or not kind.vcpu:
                continue
            yield from self._use_of(each, kind, requests_of(each.template))

    def _use_of(self, pods: PodTemplate, kind: InstanceType, asked: Mapping[str, int]) -> Iterator[JobFinding]:
        resource, has = str(kind.accelerator_resource), int(kind.accelerators or 0)
        wants, cpus = asked.get(resource, 0), asked.get("cpu", 0) / 1000
        path = (*pods.path, "spec", "containers")
        partitions = [name for name in asked if name.startswith(("nvidia.com/mig-", "aws.amazon.com/neuron"))]
        if not wants and not partitions:
            yield self._say(
                path,
                "accelerators",
                f"its pods select {kind.name}, and ask for none of its {has} {resource}",
                f"Ask for `{resource}`, or select a type without accelerators",
                severity="warning",
            )
        elif 0 < wants < has and kind.vcpu and cpus > _MOST_OF_A_NODE * kind.vcpu:
            yield self._say(
                path,
                "accelerators",
                f"a pod takes {wants} of {has} {resource} of {kind.name} and {cpus:g} of its {kind.vcpu} CPUs: nobody "
                f"can use the other {has - wants} while it runs",
                f"Ask for at most {kind.vcpu * wants // has} CPUs, or for all accelerators",
                severity="warning",
            )

    def _pod_security(self) -> Iterator[JobFinding]:
        """Say what the level of the team's namespace refuses: the job is let in, and none of its pods is.

        Of the baseline's controls those that manifests of training trip over.
        """
        refuses = f"which Pod Security refuses in a team's namespace (level {POD_SECURITY_LEVEL})"
        for each in self._templates:
            spec, path = mapping(each.template.get("spec")), (*each.path, "spec")
            for number, volume in enumerate(mappings(spec.get("volumes"))):
                if "hostPath" in volume:
                    yield self._host_path(volume, (*path, "volumes", number, "hostPath"), refuses)
            for key, what in _OF_THE_NODE.items():
                if spec.get(key) is True:
                    yield self._say(
                        (*path, key),
                        "pod-security",
                        f"its pods take part in the node's {what} ({key}), {refuses}",
                        f"Remove {key}; EFA and NCCL need none of the node's own",
                    )
            for kind in ("initContainers", "containers"):
                for number, container in enumerate(mappings(spec.get(kind))):
                    if mapping(container.get("securityContext")).get("privileged") is True:
                        yield self._say(
                            (*path, kind, number, "securityContext", "privileged"),
                            "pod-security",
                            f"its container {container.get('name')} is privileged, {refuses}",
                            "Remove privileged; GPUs, EFA and huge pages are resources, and need no privilege",
                        )

    def _host_path(self, volume: Mapping[str, Any], path: tuple[str | int, ...], refuses: str) -> JobFinding:
        where = mapping(volume["hostPath"]).get("path")
        shared = where == _SHARED_MEMORY
        own = "{medium: Memory}" if shared else "{}"
        other = "" if shared else ", which goes with the pod, or claim a volume of the team's"

        def repair() -> None:
            document: Any = volume
            del document["hostPath"]
            document["emptyDir"] = {"medium": "Memory"}

        return self._say(
            path,
            "pod-security",
            f"its volume {volume.get('name')} is {where} of the node (hostPath), {refuses}",
            f"Write `emptyDir: {own}` in its place{other}",
            repair=repair if shared else None,
        )

    def _asks(self, pods: PodTemplate) -> bool:
        chosen = instance_type_of(pods.template)
        return chosen is None or chosen in self._plan.capacity

    def _quota(self, team: TeamPlan) -> Iterator[JobFinding]:
        if not self._templates:
            return
        found = fit(self._plan, team, pod_sets_of(self._templates, self._plan))
        if found.kind == "never":
            yield self._say(
                ("spec",),
                "quota",
                found.words,
                f"Ask for less, or raise the quota of {team.name} (hpkit quota --stack {self._plan.stack})",
            )


def _set(where: Any, name: str, value: str) -> Callable[[], None]:
    def repair() -> None:
        where[name] = value

    return repair


def _place(document: Any, path: tuple[str | int, ...]) -> tuple[int, int]:
    """Return line and column, from 1, of the last part of a path that is there."""
    line, column = document.lc.line, document.lc.col
    here = document
    for step in path:
        known = here if isinstance(here, Mapping) else range(len(here)) if isinstance(here, list) else ()
        if step not in known:
            break
        marks: Any = here.lc
        line, column = marks.key(step) if isinstance(step, str) else marks.item(step)
        here = here[step]
    return line + 1, column + 1
