"""Checks existing manifests: queue, priority, topology, and requests.

It doesn't check what the API server checks, such as unknown fields.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import getitem
from typing import TYPE_CHECKING, Any, Final

from hpkit.catalog import NETWORK_LAYERS, InstanceType, find_instance_type
from hpkit.cluster.jobs.fits import Fit, fit
from hpkit.cluster.jobs.kinds import (
    CREATABLE,
    PRIORITY,
    QUEUE,
    RUN_TIME,
    TOPOLOGY,
    WORKLOADS,
    PodTemplate,
    Unit,
    parts,
    templates,
    units,
)
from hpkit.cluster.jobs.limits import Breach, Severity, breaches, breaches_of_claims, breaches_of_pods
from hpkit.cluster.jobs.new import priorities_of
from hpkit.cluster.jobs.operators import BY_OTHERS, breaches_of_operators, missing_operator
from hpkit.cluster.jobs.placement import breaches_of_claims_and_nodes, breaches_of_comfort, breaches_of_spread
from hpkit.cluster.jobs.pod_security import violations
from hpkit.cluster.jobs.resources import instance_type_of, pod_sets_of, requests_of, types_of
from hpkit.cluster.jobs.scaling import breaches_of_autoscaler, breaches_of_rollout, breaches_of_scale
from hpkit.config.reading.document import with_value
from hpkit.config.reading.edit import dumped, loaded, position, remove_value, set_value
from hpkit.errors import InputError
from hpkit.kueue.model import UNCONSTRAINED
from hpkit.plan.lustre import has_team_volumes
from hpkit.plan.model import NAMESPACE_PREFIX, Plan, TeamPlan
from hpkit.plan.pods import mapping
from hpkit.plan.team_limits import WORK_KEYS, pod_limits
from hpkit.text.formatting import listing
from hpkit.text.spelling import near

if TYPE_CHECKING:
    from hpkit.cluster.jobs.server import Server

__all__ = ["JobFinding", "Manifest", "check", "read_manifests", "repaired"]

Path = tuple[str | int, ...]
_TOPOLOGY_PREFIX = "kueue.x-k8s.io/podset-"
_TOPOLOGY_KEYS = tuple(key for key in WORK_KEYS if key.startswith(_TOPOLOGY_PREFIX))
_MOST_OF_A_NODE = 0.8
# Kinds that run pods but that members can't create → what to use instead.
_INSTEAD: Final = {
    "AppWrapper": "Use a Job or a JobSet",
    "Ingress": "Use a Service of type ClusterIP, or add Ingress to `governance.teamLimits.publish` in the environment",
    "CronJob": "Use a Job, and create it on a schedule from a pipeline",
    "StatefulSet": "Use a Deployment: the add-on would let the pods run without a queue",
    "TrainJob": "Use a PyTorchJob or a JobSet: task governance doesn't queue TrainJobs",
}


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


def check(
    manifest: Manifest, plan: Plan, others: Sequence[Any] = (), server: Server | None = None
) -> Iterator[JobFinding]:
    """Return the problems of the jobs in a file for a stack, and of objects that members can't create.

    others: the documents of further files, which can have a claim or the Deployment of an autoscaler. server: the
    running platform, where each object without an error is created on trial.
    """
    documents = (*manifest.documents, *others)
    for number, document in enumerate(manifest.documents):
        if not isinstance(document, Mapping):
            continue
        found = [
            _finding(manifest, document, path, breach)
            for path, each in parts(document)
            for team in (_team_of(each, plan),)
            for breach in (
                *_kind(each, plan, team, server),
                *breaches_of_autoscaler(each, documents, plan, team, server),
            )
        ]
        for unit in units(document):
            found += _Job(manifest, number, document, unit, plan, documents, server).findings()
        yield from found
        # Otherwise, the API server would repeat the first error.
        if server is not None and all(each.severity == "warning" for each in found):
            teams = {team.namespace: team for team in plan.teams}
            yield from (_finding(manifest, document, (), breach) for breach in server.breaches(document, teams))


def _finding(manifest: Manifest, document: Any, path: Path, breach: Breach) -> JobFinding:
    line, column = position(document, (*path, *breach.path))
    return JobFinding(manifest.file, line, column, breach.severity, breach.check, breach.message, breach.fix)


def _team_of(document: Mapping[Any, Any], plan: Plan) -> TeamPlan | None:
    """Return the team of an object's namespace; without a namespace, that of its queue."""
    metadata = mapping(document.get("metadata"))
    namespace, queue = metadata.get("namespace"), mapping(metadata.get("labels")).get(QUEUE)
    return next(
        (
            each
            for each in plan.teams
            if each.namespace == namespace or (namespace is None and each.local_queue == queue)
        ),
        None,
    )


def _kind(document: Mapping[Any, Any], plan: Plan, team: TeamPlan | None, server: Server | None) -> Iterator[Breach]:
    """Yield the problem of an object of a kind that members of its team can't create."""
    kind = document.get("kind")
    if team is None or not team.spec.members or not isinstance(kind, str):
        return
    theirs = (name for name, workload in WORKLOADS.items() if workload in team.spec.workloads)
    can = listing([name for name in theirs if missing_operator(name, plan) is None])
    message = f"members of {team.name} can't create the kind {kind}"
    # Of another API group, even a Job isn't the kind that task governance queues.
    if kind not in CREATABLE or (kind in WORKLOADS and not any(units(document))):
        of_group = f" of {document['apiVersion']}" if kind in CREATABLE else ""
        if kind != "Ingress" or "Ingress" not in pod_limits(plan).publish:
            fix = _INSTEAD.get(kind, f"Use a kind that they can create ({can}), or ask an administrator to create it")
            yield Breach(("kind",), f"{message}{of_group}: the role of the team doesn't include it", fix, "kind")
    elif (needed := CREATABLE[kind]) not in (None, *team.spec.workloads):
        yield Breach(
            ("kind",),
            f"{message}: the team's workloads are {', '.join(team.spec.workloads)}",
            f"Use a kind that they can create ({can}), or add {needed} to `teams[{team.name}].workloads`",
            "kind",
        )
    elif (key := missing_operator(kind, plan)) is not None:
        # Another installation may have brought the kind.
        version = str(document.get("apiVersion"))
        if server is None or server.version_of(version, kind) is None:
            yield Breach(
                ("kind",),
                f"{plan.stack} doesn't install the operator of {kind}, "
                + ("and " if server is not None else "so unless an administrator does, ")
                + "the API server doesn't know the kind",
                f"Add `{key}` to `environments.{plan.environment}`",
                "operator",
            )
    elif kind in BY_OTHERS and server is None:
        yield Breach(
            ("kind",),
            f"nothing in {plan.stack} installs the operator of a {kind}: unless an administrator does, the API server "
            "doesn't know the kind",
            "Ask an administrator, or use --live, which asks the API server",
            "operator",
            "warning",
        )


class _Job:
    """The part of a document that Kueue queues."""

    def __init__(
        self,
        manifest: Manifest,
        number: int,
        document: Any,
        unit: Unit,
        plan: Plan,
        others: Sequence[Any],
        server: Server | None,
    ) -> None:
        self._file, self._others, self._server = manifest.file, others, server
        self._number, self._document, self._unit, self._plan = number, document, unit, plan
        self._templates = tuple(templates(unit))

    def findings(self) -> Iterator[JobFinding]:
        team, wrong = self._team()
        if wrong is not None:
            yield wrong
        if team is not None:
            yield from self._queue(team)
        yield from self._priority(team)
        yield from self._topology()
        yield from self._types()
        yield from self._use(team)
        yield from self._reported(breach for pods in self._templates for breach in violations(pods))
        if team is not None and team.spec.members:
            yield from self._reported(self._team_limits(team))
            yield from self._run_time(team)
        yield from self._reported(breaches_of_scale(self._unit))
        yield from self._reported(breaches_of_operators(self._unit, self._templates, self._plan))
        yield from self._reported(breaches_of_spread(self._unit, self._templates, self._plan, team, self._server))
        for pods in self._templates:
            yield from self._reported(breaches_of_claims_and_nodes(pods, self._plan, team, self._others, self._server))
            requested = requests_of(pods, self._plan)
            yield from self._reported(breaches_of_comfort(pods, self._unit.kind, self._plan, requested))
            if self._unit.kind == "Deployment" and team is not None and team.quota_resources:
                yield from self._reported(
                    breaches_of_rollout(mapping(self._unit.content.get("spec")), pods, self._plan, team)
                )
        if team is not None and team.quota_resources and all(self._goes_anywhere(each) for each in self._templates):
            yield from self._quota(team)

    def _say(
        self, path: Path, check: str, message: str, fix: str, *, severity: Severity = "error", edit: Edit | None = None
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

    def _run_time(self, team: TeamPlan) -> Iterator[JobFinding]:
        if team.run_seconds is None or WORKLOADS.get(self._unit.kind) == "inference":
            return
        (default, limit), stated = team.run_seconds, self._label(RUN_TIME)
        text = stated if isinstance(stated, str) else ""
        if text.isascii() and text.isdecimal() and 0 < int(text) <= limit:
            return
        path: Path = ("metadata", "labels", RUN_TIME)
        yield self._say(
            path if stated is not None else ("metadata",),
            "run-time",
            f"a job of {team.name} must have a run time of at most {limit} seconds in the label {RUN_TIME}; "
            + ("it has none" if stated is None else f"{stated} isn't"),
            f'Add the label `{RUN_TIME}: "{default}"`' if stated is None else f'Use `"{default}"`',
            edit=self._edit(path, str(default)) if stated is None else None,
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
            if name not in _TOPOLOGY_KEYS:
                likely = near(name, _TOPOLOGY_KEYS)
                yield self._say(
                    (*path, name),
                    "topology",
                    f"Kueue has no annotation {name}",
                    f"Use `{likely or TOPOLOGY['required']}`",
                    edit=self._edit((*path, likely), str(value), moved_from=(*path, name)) if likely else None,
                )
            elif name in TOPOLOGY.values() and str(value) not in NETWORK_LAYERS:
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
        if names and self._plan.manages_topology and not self._plan.topology_aware_scheduling:
            yield self._say(
                (*path, names[0]),
                "topology",
                f"{self._plan.stack} doesn't schedule by topology, so Kueue ignores the annotation",
                "Remove the annotation, or set governance.topologyAwareScheduling",
                severity="warning",
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
            requested = requests_of(template, self._plan)
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

    def _team_limits(self, team: TeamPlan) -> Iterator[Breach]:
        """Yield what the admission policies of the team's namespace reject."""
        limits = pod_limits(self._plan)
        broken = [*breaches(self._unit, self._templates)]
        broken += [breach for pods in self._templates for breach in breaches_of_pods(pods, team, limits)]
        if has_team_volumes(self._plan):
            broken += [breach for pods in self._templates for breach in breaches_of_claims(pods)]
        for breach in broken:
            yield replace(breach, message=f"{breach.message}, so the job is rejected")

    def _reported(self, found: Iterable[Breach]) -> Iterator[JobFinding]:
        for breach in found:
            edit = None
            if breach.instead is not None:
                key, value = breach.instead
                edit = self._edit((*breach.path[:-1], key), value, moved_from=breach.path)
            yield self._say(breach.path, breach.check, breach.message, breach.fix, severity=breach.severity, edit=edit)

    def _quota(self, team: TeamPlan) -> Iterator[JobFinding]:
        if not self._templates:
            return
        if team.spec.activation_state == "Disabled":
            yield self._say(
                ("spec",),
                "quota",
                f"team {team.name} is paused (activationState: Disabled), so it waits until the team isn't",
                f"Wait, or remove activationState of {team.name}",
                severity="warning",
            )
        result = fit(self._plan, team, pod_sets_of(self._templates, self._plan))
        if result.kind != "never":
            return
        if result.closed:
            yield from self._closed(result)
            return
        one_by_one = result.most > 0 and all(each.alone for each in self._templates)
        yield self._say(
            ("spec",),
            "quota",
            result.words.removeprefix("it can never run: ").partition("; ")[0] if one_by_one else result.words,
            _less(result, self._plan, team),
            severity="warning" if one_by_one else "error",
        )

    def _closed(self, result: Fit) -> Iterator[JobFinding]:
        message, _, fix = result.words.partition(". ")
        for number in result.closed:
            path: Path = (*self._templates[number].path, "metadata", "annotations")
            names = [name for name, _ in self._annotations(self._templates[number].path)]
            is_fixed = not names and self._unit.kind != "InferenceEndpointConfig"
            edit = self._edit((*path, UNCONSTRAINED), "true") if is_fixed else None
            yield self._say((*path, names[0]) if names else path, "topology", message, fix, edit=edit)


def _less(result: Fit, plan: Plan, team: TeamPlan) -> str:
    if "doesn't count" in result.words:
        return "Remove that request"
    if "borrow limit" in result.words:
        return f"Request less, or raise the quota of {team.name} (`hpkit quota --stack {plan.stack}`)"
    return f"Run at most {result.most} pods" if result.most else "Request less"


def _mapping_in(content: Any, path: Path) -> Mapping[Any, Any]:
    for step in path:
        content = content[step]
    return mapping(content)
