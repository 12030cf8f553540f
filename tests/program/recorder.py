"""An engine that makes nothing and writes everything down: what is registered, under whom, and after what."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import networkx
import pulumi
from pulumi.runtime import mocks

from hpkit.cli.inputs import load
from hpkit.components import build
from hpkit.plan.derive import derive
from hpkit.plan.model import Plan
from tests import builders

STACKS = Path(__file__).parents[2] / "stacks"
ACCOUNT = "123456789012"
ZONES = ["us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"]
ANSWERS = {
    "getCallerIdentity": {"accountId": ACCOUNT},
    "getPartition": {"partition": "aws"},
    "getAvailabilityZones": {"names": ZONES},
    "getCluster": {
        "name": "found",
        "arn": f"arn:aws:eks:us-west-2:{ACCOUNT}:cluster/found",
        "endpoint": "https://found.example",
        "certificateAuthorities": [{"data": "Q0E="}],
    },
}


@dataclass(frozen=True)
class Registered:
    urn: str
    type: str
    name: str
    inputs: dict
    after: frozenset[str]
    protect: bool
    provider: str


class _Engine(mocks.Mocks):
    def new_resource(self, args):
        arn = f"arn:aws:made:us-west-2:{ACCOUNT}:{args.name}"
        made = {
            "arn": arn,
            "endpoint": "https://made.example",
            "certificateAuthority": {"data": "Q0E="},
            "clusterArn": f"arn:aws:sagemaker:us-west-2:{ACCOUNT}:cluster/abcdefghijkl",
            "prometheusEndpoint": "https://aps.example",
        }
        return f"{args.name}-id", {**made, **args.inputs}

    def call(self, args):
        return ANSWERS[args.token.rpartition(":")[2]]


class _Monitor(mocks.MockMonitor):
    def __init__(self, engine):
        super().__init__(engine)
        self.requests = {}

    def RegisterResource(self, request):  # noqa: N802 - the protocol's name
        answer = super().RegisterResource(request)
        self.requests[answer.urn] = request
        return answer


@dataclass
class Program:
    """Everything that one build registered."""

    plan: Plan
    resources: dict[str, Registered] = field(default_factory=dict)
    outputs: dict = field(default_factory=dict)

    def all(self, kind):
        return [each for each in self.resources.values() if each.type.endswith(kind)]

    def named(self, kind):
        return {each.name: each for each in self.all(kind)}

    def one(self, kind, name=None):
        found = [each for each in self.all(kind) if name in (None, each.name)]
        assert len(found) == 1, f"{kind} {name}: {[each.name for each in found]}"
        return found[0]

    @property
    def names(self):
        return {(each.type, each.name) for each in self.resources.values()}

    @property
    def graph(self):
        graph = networkx.DiGraph()
        for each in self.resources.values():
            graph.add_node(each.urn)
            graph.add_edges_from((before, each.urn) for before in each.after)
        return graph

    def waits(self, later, earlier):
        """Say whether one resource is made after another, directly or not."""
        return networkx.has_path(self.graph, earlier.urn, later.urn)


def record(plan):
    """Register what a plan comes to, and return it."""
    monitor, program = _Monitor(_Engine()), Program(plan)
    mocks.set_mocks(None, project="hpkit", stack=plan.stack, preview=False, monitor=monitor)

    @pulumi.runtime.test
    def run():
        outputs = build(plan)
        return pulumi.Output.all(**outputs).apply(program.outputs.update)

    run()
    for urn, request in monitor.requests.items():
        if request.type == "pulumi:pulumi:Stack":
            continue
        program.resources[urn] = Registered(
            urn=urn,
            type=request.type,
            name=request.name,
            inputs=pulumi.runtime.rpc.deserialize_properties(request.object),
            after=frozenset(request.dependencies),
            protect=request.protect,
            provider=request.provider or next(iter(request.providers.values()), ""),
        )
    return program


@cache
def recorded(stack):
    """Return what an example stack registers."""
    organization, _, environment = stack.rpartition("-")
    parsed = load(STACKS / f"{organization}.yaml").parsed
    return record(derive(parsed.organization, environment))


def recorded_from(data, environment="dev"):
    """Return what an organization registers that a test made by hand."""
    return record(derive(builders.typed(data), environment))
