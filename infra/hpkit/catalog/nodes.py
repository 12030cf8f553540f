"""Facts about every HyperPod node: labels of its network layers, and resources that the kubelet reserves.

Sources: SageMaker developer guide, "Using topology-aware scheduling"; SageMaker HyperPod CLI, quota_allocation_util.py,
whose reservations are those of the EKS AMI.
"""

__all__ = ["NETWORK_LAYERS", "kubelet_reserved"]

# From the widest down: nodes that share the third are nearest.
NETWORK_LAYERS = tuple(f"topology.k8s.aws/network-node-layer-{number}" for number in (1, 2, 3))

# Fractions of one CPU: of the first, second, third and fourth, and every further one; then GiB of memory: share of so
# many GiB.
_CPU = (0.30, 0.15, 0.10, 0.10)
_FURTHER_CPU, _FIXED_CPU, _FIXED_MEMORY = 0.06, 0.1, 0.5
_MEMORY = ((4, 0.30), (4, 0.25), (8, 0.20), (112, 0.17), (float("inf"), 0.07))


def kubelet_reserved(vcpu: int, memory_gib: float) -> tuple[float, float]:
    """Return the CPUs and GiB that the kubelet reserves on a node with these amounts."""
    cpu = _FIXED_CPU + sum(_CPU[:vcpu]) + _FURTHER_CPU * max(0, vcpu - len(_CPU))
    memory, rest = _FIXED_MEMORY, memory_gib
    for size, share in _MEMORY:
        memory += min(rest, size) * share
        rest -= min(rest, size)
    return cpu, memory
