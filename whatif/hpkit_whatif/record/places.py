"""Reads the placement that Workloads request and the nodes' places, in a scenario's form, without side effects.

Earlier places aren't known: a scenario's topology is that of the nodes when they were read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from hpkit.catalog import NETWORK_LAYERS, find_instance_type
from hpkit.cluster.live.model import KubernetesNode, Task
from hpkit_whatif.scenario.model import MOST_PODS, Placement, Rack

__all__ = ["NOT_READ", "group_racks", "parse_placement"]

NOT_READ = "Workloads request a placement that a scenario can't express"


def parse_placement(workload: Task) -> tuple[Placement | None, str | None]:
    """Return how close a Workload's pods must be, and the parts that aren't supported; None if nothing is requested.

    Source: Kueue 0.19 API, PodSetTopologyRequest: required and preferred name the node label of a level. A scenario has
    HyperPod's network layers, for all pods of a task.
    """
    requests = [pods.topology for pods in workload.pod_sets]
    wishes = {request and (request.mode, request.level) for request in requests}
    if wishes <= {None}:
        return None, None
    if len(wishes) > 1:
        return None, "not the same for all of their pods: they get no placement"
    (first, *others) = [request for request in requests if request is not None]
    layer = None
    if first.level is not None:
        if first.level not in NETWORK_LAYERS:
            return None, f"by {first.level}: they get no placement"
        layer = NETWORK_LAYERS.index(first.level) + 1
    elif first.mode is None:
        return None, f"by {', '.join(first.more)}: they get no placement"
    left = None
    if more := sorted({key for request in (first, *others) for key in request.more}):
        left = f"by {', '.join(more)}: they keep only the outer placement"
    elif others:
        left = "separately for each kind of their pods: all pods of a task are placed together"
    return Placement(mode=first.mode or "unconstrained", layer=layer), left


def group_racks(
    nodes: Iterable[KubernetesNode], instance_types: Iterable[str]
) -> tuple[tuple[Rack, ...], Mapping[str, int]]:
    """Return the places of nodes with these instance types, and how many of each type have no place."""
    types = frozenset(instance_types)
    node_counts: Counter[tuple[str, tuple[str, ...]]] = Counter()
    without: Counter[str] = Counter()
    for node in nodes:
        if node.instance_type not in types or find_instance_type(node.instance_type) is None:
            continue
        if len(node.layers) == len(NETWORK_LAYERS):
            node_counts[node.instance_type, node.layers] += 1
        else:
            without[node.instance_type] += 1
    racks = [
        Rack(instance_type=instance_type, nodes=min(count, MOST_PODS), layers=layers)
        for (instance_type, layers), count in sorted(node_counts.items())
    ]
    return tuple(racks), without
