"""Records a plan's resources without an engine: the program runs under Pulumi's own mocks.

Every other module that needs the resources reads a recording, so the program is the only source. AWS isn't called:
account and zones are invented unless they are given. So are the IDs and ARNs that AWS would assign, the same in every
run.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pulumi
from google.protobuf import struct_pb2
from pulumi.runtime import mocks, resource
from pulumi.runtime.proto import resource_pb2, source_pb2

from hpkit.catalog import PLACEHOLDER_ACCOUNT
from hpkit.plan.model import Plan
from hpkit.program.components import build

__all__ = ["PROJECT", "Answers", "RecordedResource", "Recording", "answer_inline", "record"]

PROJECT = "hpkit"
_STACK = "pulumi:pulumi:Stack"


@dataclass(frozen=True, slots=True)
class Answers:
    """AWS's data about the platform's account and region.

    - account: its twelve digits.
    - partition: `aws`, `aws-cn`, …
    - zones: names of the region's zones; four by default.
    - eks: an existing EKS cluster, as DescribeCluster returns it.
    - cluster: an existing HyperPod cluster, as the plugin's getCluster returns it; by default as the file declares it.
    - caller: ARN of the caller; by default the first of the file's deployers, or a role that is in no file.
    - log_groups: names of existing log groups.
    """

    account: str = PLACEHOLDER_ACCOUNT
    partition: str = "aws"
    zones: Sequence[str] = ()
    eks: Mapping[str, Any] = field(default_factory=dict)
    cluster: Mapping[str, Any] = field(default_factory=dict)
    caller: str = ""
    log_groups: Sequence[str] = ()

    def to(self, token: str, *, region: str) -> dict[str, Any]:
        """Return the answer to an invoke; raises KeyError if the program doesn't make it."""
        zones = list(self.zones) or [f"{region}{letter}" for letter in "abcd"]
        arn = f"arn:{self.partition}:eks:{region}:{self.account}:cluster/found"
        nobody = f"arn:{self.partition}:sts::{self.account}:assumed-role/-/-"
        answers: dict[str, dict[str, Any]] = {
            "getCallerIdentity": {"accountId": self.account, "arn": self.caller or nobody},
            "getPartition": {"partition": self.partition},
            "getAvailabilityZones": {"names": zones},
            "getLogGroups": {"logGroupNames": list(self.log_groups)},
            "getCluster": {
                "name": self.eks.get("name", "found"),
                "arn": self.eks.get("arn", arn),
                "endpoint": self.eks.get("endpoint", "https://found.example"),
                "identities": [_identity(region)],
                "certificateAuthorities": [self.eks.get("certificateAuthority", {"data": "Q0E="})],
            },
        }
        return dict(self.cluster) if token.startswith("hyperpod:") else answers[token.rpartition(":")[2]]


@dataclass(frozen=True, slots=True)
class RecordedResource:
    """One registration.

    - parent, provider: URNs ("" for none).
    - after: URNs that it waits for.
    - uses: property → URNs of the resources whose outputs are in it.
    - deleted_with: URN of the resource whose deletion deletes it too.
    - ignore_changes: inputs that keep live values.
    - replace_on_changes: inputs whose changes replace it. replace_with: URNs of resources whose replacement does.
    - delete_before_replace: whether a replacement deletes it first; None leaves it to its plugin.
    - import_id: ID of the existing resource to import, "" for none.
    - version: of the plugin, "" for any.
    - made: outputs that only AWS knows (its ID, its ARN), as invented here. Resources that use it contain them too.
    """

    urn: str
    type: str
    name: str
    inputs: Mapping[str, Any]
    parent: str
    provider: str
    after: frozenset[str]
    uses: Mapping[str, frozenset[str]]
    protect: bool
    custom: bool
    retain_on_delete: bool
    deleted_with: str
    ignore_changes: tuple[str, ...]
    import_id: str
    version: str
    made: Mapping[str, Any]
    replace_on_changes: tuple[str, ...] = ()
    replace_with: tuple[str, ...] = ()
    delete_before_replace: bool | None = None


@dataclass
class Recording:
    """Everything that a plan registers, by URN, in the order in which it was registered; and the stack's outputs.

    project: the name of the Pulumi project, which is in each URN.
    """

    plan: Plan
    project: str = PROJECT
    resources: dict[str, RecordedResource] = field(default_factory=dict)
    outputs: dict[str, Any] = field(default_factory=dict)

    def all(self, kind: str) -> list[RecordedResource]:
        """Return the resources whose type ends so, such as `eks/addon:Addon`."""
        return [each for each in self.resources.values() if each.type.endswith(kind)]

    def named(self, kind: str) -> dict[str, RecordedResource]:
        """Return the resources of a type by name."""
        return {each.name: each for each in self.all(kind)}

    def one(self, type_token: str, name: str | None = None) -> RecordedResource:
        """Return the only resource of a type, or the one with that name.

        Raises LookupError for none and for several.
        """
        matching = [each for each in self.all(type_token) if name in (None, each.name)]
        if len(matching) != 1:
            raise LookupError(f"{type_token} {name or ''}: {[each.name for each in matching]}")
        return matching[0]

    @property
    def names(self) -> set[tuple[str, str]]:
        """Type and name of everything."""
        return {(each.type, each.name) for each in self.resources.values()}

    def waits(self, later: RecordedResource, earlier: RecordedResource) -> bool:
        """Return whether one resource is created after another, directly or not, including through its provider."""
        waiting, seen = [later.urn], set[str]()
        while waiting:
            urn = waiting.pop()
            if urn == earlier.urn:
                return True
            if urn not in seen and urn in self.resources:
                seen.add(urn)
                resource = self.resources[urn]
                waiting += [*resource.after, resource.provider]
        return False


def record(
    plan: Plan, answers: Answers | None = None, *, stack: str = "", project: str = PROJECT, root: str = ".."
) -> Recording:
    """Return what a plan registers in a stack, by default the plan's own. Raises the program's errors.

    project: the Pulumi project's name; root: its folder, relative to the program's.
    """
    engine_answers = answers or (Answers(account=plan.spec.account) if plan.spec.account else Answers())
    if not engine_answers.caller and plan.spec.deployers:
        engine_answers = replace(engine_answers, caller=plan.spec.deployers[0])
    if not engine_answers.eks and plan.spec.eks.existing is not None:
        engine_answers = replace(
            engine_answers, eks=_existing(plan.spec.eks.existing.name, plan.spec.region, engine_answers)
        )
    if not engine_answers.cluster and plan.spec.cluster.existing:
        engine_answers = replace(engine_answers, cluster=_stated(plan, engine_answers))
    engine, recording = _Engine(plan.spec.region, engine_answers), Recording(plan, project)
    monitor = _Monitor(engine)
    answer_inline()
    mocks.set_mocks(engine, project=project, stack=stack or plan.stack, preview=False, monitor=monitor)

    @pulumi.runtime.test  # type: ignore[untyped-decorator] # it waits for every registration, whatever its name says
    def run() -> pulumi.Output[None]:
        outputs = build(plan, root=root)
        return pulumi.Output.all(**outputs).apply(recording.outputs.update)

    with _without_places():
        run()
    for urn, request in monitor.requests.items():
        recording.resources[urn] = _resource(urn, request, engine)
    return recording


def _existing(name: str, region: str, given: Answers) -> dict[str, Any]:
    """Return the known facts about an existing EKS cluster without calling AWS."""
    return {"name": name, "arn": f"arn:{given.partition}:eks:{region}:{given.account}:cluster/{name}"}


def _stated(plan: Plan, answers: Answers) -> dict[str, Any]:
    """Return an existing HyperPod cluster as the file declares it."""
    groups = [
        {
            "instanceGroupName": group.spec.name,
            "instanceRequirements": {"instanceTypes": list(group.spec.types)},
            "instanceCount": group.spec.instance_count,
        }
        for group in plan.all_groups
    ]
    arn = f"arn:{answers.partition}:sagemaker:{plan.spec.region}:{answers.account}:cluster/abcdefghijkl"
    return {
        "clusterArn": arn,
        "orchestrator": {"eks": {"clusterArn": answers.eks.get("arn", "")}},
        "instanceGroups": groups,
        "autoScaling": {"mode": "Enable" if any(group.autoscaled for group in plan.groups) else "Disable"},
    }


def _event_loop() -> asyncio.AbstractEventLoop:
    """Return this thread's event loop, a new one if asyncio.run() left none, because the SDK requires one."""
    try:
        return asyncio.get_event_loop()
    except RuntimeError:
        asyncio.set_event_loop(asyncio.new_event_loop())
        return asyncio.get_event_loop()


def answer_inline() -> None:
    """Let the SDK's calls be answered in this thread, without the event loop that it leaves in each other thread."""
    _event_loop().set_default_executor(_Inline())


class _Inline(ThreadPoolExecutor):
    """Answers immediately: requests to a recording never wait, and threads take a fifth of its time."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        answer: Future[Any] = Future()
        try:
            answer.set_result(fn(*args, **kwargs))
        except Exception as error:  # noqa: BLE001 - raised where the answer is awaited
            answer.set_exception(error)
        return answer


@contextmanager
def _without_places() -> Iterator[None]:
    """Omit the source position of each registration: it isn't used, and takes an eighth of a recording's time."""
    traced = resource._get_stack_trace  # noqa: SLF001 - the SDK has no setting for it
    resource._get_stack_trace = source_pb2.StackTrace  # noqa: SLF001
    try:
        yield
    finally:
        resource._get_stack_trace = traced  # noqa: SLF001


def _resource(urn: str, request: Any, engine: _Engine) -> RecordedResource:
    provider = request.provider or next(iter(request.providers.values()), "")
    inputs = pulumi.runtime.rpc.deserialize_properties(request.object)
    outputs = {"id": engine.id_of(request.name), **engine.made(request.name)}
    return RecordedResource(
        urn=urn,
        type=request.type,
        name=request.name,
        inputs=inputs,
        parent="" if _type_of(request.parent) in ("", _STACK) else request.parent,
        provider=provider.rpartition("::")[0],
        after=frozenset(request.dependencies),
        uses={name: frozenset(each.urns) for name, each in request.propertyDependencies.items() if each.urns},
        protect=request.protect,
        custom=request.custom,
        retain_on_delete=request.retainOnDelete,
        deleted_with=request.deletedWith,
        version=request.version,
        ignore_changes=tuple(request.ignoreChanges),
        import_id=request.importId,
        made={key: value for key, value in outputs.items() if key not in inputs},
        replace_on_changes=tuple(request.replaceOnChanges),
        replace_with=tuple(request.replace_with),
        delete_before_replace=request.deleteBeforeReplace if request.deleteBeforeReplaceDefined else None,
    )


def _identity(region: str) -> dict[str, Any]:
    """Return EKS's data about a cluster's OIDC provider."""
    return {"oidcs": [{"issuer": f"https://oidc.eks.{region}.amazonaws.com/id/0123456789ABCDEF"}]}


def _type_of(urn: str) -> str:
    """Return the qualified type of a URN, its parents' types before it."""
    return urn.split("::")[2] if urn else ""


class _Engine(mocks.Mocks):
    """Creates nothing, and returns what the real engine would return."""

    def __init__(self, region: str, answers: Answers) -> None:
        self._region, self._answers = region, answers

    def id_of(self, name: str) -> str:
        """Return a resource's ID."""
        return f"{name}-id"

    def made(self, name: str) -> dict[str, Any]:
        """Return what AWS would add to a resource's inputs."""
        place = f"{self._region}:{self._answers.account}"
        return {
            "arn": f"arn:{self._answers.partition}:made:{place}:{name}",
            "endpoint": "https://made.example",
            "certificateAuthority": {"data": "Q0E="},
            "identities": [_identity(self._region)],
            "clusterArn": f"arn:{self._answers.partition}:sagemaker:{place}:cluster/abcdefghijkl",
            "prometheusEndpoint": "https://aps.example/",
            "dnsName": f"{name}.fsx.example",
            "mountName": "abcdefgh",
            "repositoryUrl": f"{self._answers.account}.dkr.ecr.{self._region}.amazonaws.com/{name}",
        }

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str, dict[str, Any]]:
        """Return what the program reads."""
        return self.id_of(args.name), {**self.made(args.name), **args.inputs}

    def call(self, args: mocks.MockCallArgs) -> tuple[dict[str, Any], list[tuple[str, str]]]:
        return self._answers.to(args.token, region=self._region), []


class _Monitor(mocks.MockMonitor):
    """Keeps every request; the SDK's own monitor keeps only the responses."""

    def __init__(self, engine: _Engine) -> None:
        super().__init__(engine)
        self._engine = engine
        self.requests: dict[str, Any] = {}

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """Return the URN that the engine gives: with the types of all parents, but not the stack's."""
        above = _type_of(parent)
        qualified = type_ if above in ("", _STACK) else f"{above}${type_}"
        return "::".join([f"urn:pulumi:{pulumi.get_stack()}", pulumi.get_project(), qualified, name])

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802 - the protocol's name
        """Return the inputs and what AWS would add.

        The SDK's own monitor runs the event loop for each response, so each registration would run inside the previous
        one.
        """
        urn = self.make_urn(request.parent, request.type, request.name)
        if request.type == _STACK:
            return resource_pb2.RegisterResourceResponse(urn=urn)
        if urn in self.requests:  # the engine rejects it too
            raise ValueError(f"duplicate resource URN {urn}")
        self.requests[urn] = request
        outputs = struct_pb2.Struct()
        outputs.update(self._engine.made(request.name))
        outputs.MergeFrom(request.object)
        return resource_pb2.RegisterResourceResponse(urn=urn, id=self._engine.id_of(request.name), object=outputs)
