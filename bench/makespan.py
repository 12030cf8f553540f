"""How long `up` takes, compared with the longest chain of operations that AWS itself forces into sequence.

The local cloud has AWS's delays, scaled (1:100 by default, or --factor). In addition to the ratio, it prints what makes
the difference, along the chain of resources that really waited for each other. With a factor of 0, AWS takes no time:
what remains is the engine, the plugins and the endpoint on this machine.
"""

import argparse
import json
import sys
from pathlib import Path

import networkx

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT), *(str(ROOT / folder) for folder in ("infra", "local", "policies", "whatif"))]

from bench.cloud import NAT_SECONDS, cloud, noise, told_by  # noqa: E402 - the path comes first
from hpkit.catalog import addons  # noqa: E402
from hpkit_local.aws.lateness import LATENESS  # noqa: E402
from hpkit_local.aws.service import MACHINES, services  # noqa: E402
from tests.program.cloud import Program  # noqa: E402

services()  # Fills MACHINES.
STACKS = ("handson-dev", "autoscale-dev")
NEED_NODES = {addon.name for addon in addons() if addon.needs_nodes}

# Step → what AWS itself wants before it, and the seconds it takes. Steps that AWS answers at once (VPC, subnets, roles,
# keys, buckets) are left out: they are on every way, and take no time. Sources, by page of the AWS documentation:
# - EKS user guide, "Create an Amazon EKS cluster": subnets and role first; nothing of it needs a way out.
# - HyperPod developer guide, "Prerequisites for using SageMaker HyperPod with Amazon EKS": an ACTIVE EKS cluster with
#   the VPC CNI; its nodes fetch their scripts and images when they start, over the NAT gateway where there is one.
# - "Continuous provisioning": a cluster is InService first, its nodes come afterward.
# - "Setting up SageMaker HyperPod task governance": nodes must be there, and Ready, before the add-on; the add-on
#   before cluster policy and quotas. EKS user guide, "CoreDNS": without a node the add-on is degraded.
# - "Autoscaling on SageMaker HyperPod EKS": a cluster that is InService, for managed Karpenter.
FORCED = {
    "NAT gateway": ((), NAT_SECONDS),
    "right on the key": ((), LATENESS["key-rights"].seconds),
    "EKS cluster": (("right on the key",), MACHINES["eks.create"].seconds),
    "Grafana": ((), MACHINES["grafana.create"].seconds),
    "add-ons for nodes": (("EKS cluster",), MACHINES["addon.create"].seconds),
    "HyperPod cluster": (("NAT gateway", "EKS cluster", "add-ons for nodes"), MACHINES["cluster.create"].seconds),
    "Karpenter": (("HyperPod cluster",), MACHINES["autoscaling.create"].seconds),
    "nodes": (("HyperPod cluster",), MACHINES["node.create"].seconds),
    "deep health checks": (("nodes",), MACHINES["node.deep-health-check"].seconds),
    "nodes in Kubernetes": (("nodes",), LATENESS["node"].seconds),
    "add-ons on nodes": (
        ("nodes in Kubernetes", "deep health checks"),
        MACHINES["addon.create"].seconds,
    ),
    "cluster policy": (("add-ons on nodes",), MACHINES["policy.create"].seconds),
    "quotas": (("add-ons on nodes",), MACHINES["quota.create"].seconds),
}
STEP_OF = {
    "aws:ec2/natGateway:NatGateway": "NAT gateway",
    "aws:eks/cluster:Cluster": "EKS cluster",
    "aws:grafana/workspace:Workspace": "Grafana",
    "hyperpod:index:ClusterSchedulerConfig": "cluster policy",
    "hyperpod:index:ComputeQuota": "quotas",
}


def steps_of(resource) -> list[str]:
    """Return the steps that a resource of the state represents."""
    resource_type, inputs = resource["type"], resource.get("inputs", {})
    if resource_type == "aws:eks/addon:Addon":
        return ["add-ons on nodes" if inputs["addonName"] in NEED_NODES else "add-ons for nodes"]
    if resource_type == "hyperpod:index:Readiness":
        waits = {"keyArn": "right on the key", "instanceGroups": "nodes in Kubernetes"}
        return [step for name, step in waits.items() if name in inputs]
    if resource_type != "hyperpod:index:Cluster":
        return [STEP_OF[resource_type]] if resource_type in STEP_OF else []
    checked = any(group.get("onStartDeepHealthChecks") for group in inputs["instanceGroups"])
    further = [*(["deep health checks"] if checked else []), *(["Karpenter"] if inputs.get("autoScaling") else [])]
    return ["HyperPod cluster", "nodes", *further]


def forced(resources) -> list[str]:
    """Return the longest chain of steps that AWS forces for these resources."""
    steps = {step for resource in resources for step in steps_of(resource)}
    graph = networkx.DiGraph()
    for step in steps:
        graph.add_edge("", step, seconds=FORCED[step][1])
        graph.add_edges_from((need, step, {"seconds": FORCED[step][1]}) for need in FORCED[step][0] if need in steps)
    return networkx.dag_longest_path(graph, weight="seconds")[1:]


def waited(resources, operations) -> list:
    """Return the chain of resources that waited for each other, from the first to the last one that finished."""
    operations_by_urn = {each.urn: each for each in operations}
    needs = {each["urn"]: [*each.get("dependencies", []), _provider(each)] for each in resources}
    chain = [operations[-1]]
    while before := [operations_by_urn[need] for need in needs[chain[0].urn] if need in operations_by_urn]:
        chain.insert(0, max(before, key=lambda each: each.done))
    return chain


def _provider(resource) -> str:
    return resource.get("provider", "").rpartition("::")[0]


def run(stack: str, factor: float):
    """Return the operations of one `up`, its seconds, and the resulting state."""
    with cloud(factor) as instance:
        program = Program(instance, stack, root=ROOT)
        operations, seconds = told_by(program, "up", "--yes", "--skip-preview")
        state = json.loads(program.read("stack", "export"))["deployment"]["resources"]
    # Components take no time of their own: they finish when their last child is registered.
    real = {each["urn"] for each in state if each["custom"]}
    return [each for each in operations if each.urn in real], seconds, state


def makespan(operations) -> float:
    return operations[-1].done - min(each.began for each in operations)


def measure(stack: str, factor: float, runs: int) -> None:
    """Print the ratio of the best of several runs, and how its time was spent."""
    print(f"\n{stack}, AWS's latencies × {factor:g}, best of {runs} ({noise()})")
    measured = [run(stack, factor) for _ in range(runs)]
    operations, seconds, resources = min(measured, key=lambda each: makespan(each[0]))
    steps = forced(resources)
    least = sum(FORCED[step][1] for step in steps) * factor
    print("  forced: " + " → ".join(f"{step} {FORCED[step][1] * factor:.1f}" for step in steps) + f" = {least:.1f} s")
    spans = ", ".join(f"{makespan(each[0]):.1f}" for each in measured)
    took = makespan(operations)
    print(f"  makespan {took:.1f} s of {len(operations)} operations (runs: {spans}); whole process {seconds:.1f} s")
    if least:
        print(f"  makespan : forced = {took / least:.2f}")
    report(resources, operations, factor)


def report(resources, operations, factor: float) -> None:
    """Print the chain that really was the longest: idle time before a resource, its own time, and AWS's part of it."""
    about = {each["urn"]: each for each in resources}
    last = min(each.began for each in operations)
    total = {"AWS": 0.0, "seen late": 0.0, "idle between": 0.0, "other resources": 0.0}
    print(f"  {'idle':>6} {'took':>6} {'AWS':>6}  the chain that was the longest")
    for operation in waited(resources, operations):
        alone = [FORCED[step][1] for step in steps_of(about[operation.urn])]
        # Of the cluster's own steps, Karpenter and the nodes run in parallel.
        own = sum(alone[:1]) + max(alone[1:], default=0.0)
        idle, took, own = operation.began - last, operation.done - operation.began, own * factor
        print(f"  {idle:6.2f} {took:6.2f} {own:6.2f}  {operation.urn.rpartition('$')[2].rpartition(':index:')[2]}")
        total["AWS"] += own
        total["idle between"] += idle
        total["seen late" if alone else "other resources"] += took - own
        last = operation.done
    print("  " + ", ".join(f"{name} {value:.1f} s" for name, value in total.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("stacks", nargs="*", default=STACKS, help=f"default: {' '.join(STACKS)}")
    parser.add_argument(
        "--factor", type=float, action="append", help="of AWS's latencies (0 and 0.01); may be repeated"
    )
    parser.add_argument("--runs", type=int, default=3)
    arguments = parser.parse_args()
    for stack in arguments.stacks:
        for factor in arguments.factor or [0.0, 0.01]:
            measure(stack, factor, arguments.runs)


if __name__ == "__main__":
    main()
