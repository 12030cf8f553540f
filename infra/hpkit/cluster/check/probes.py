"""The probes of a cluster as data: a pod per instance group, an all-reduce per group with EFA, a job per team.

The probes of groups are in their own namespace, outside of all quotas, and request all devices of an instance. Those of
teams are in the teams' namespaces, and request little.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from hpkit.catalog import EFA, find_instance_type
from hpkit.cluster.jobs.checkpoints import with_claim
from hpkit.cluster.jobs.new import manifest
from hpkit.cluster.live.model import KubernetesNode
from hpkit.plan.lustre import has_team_volumes
from hpkit.plan.model import GroupPlan, Plan, TeamPlan
from hpkit.text.formatting import plural

__all__ = ["NAME", "NAMESPACE", "SERVICE", "Probe", "Status", "probes_of"]

Document = dict[str, Any]
Status = Literal["ok", "failed", "skipped"]

NAME: Final = "hpkit-check"
NAMESPACE: Final[Document] = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": NAME, "labels": {"pod-security.kubernetes.io/enforce": "restricted"}},
}
# The pods of an all-reduce find each other by it.
SERVICE: Final[Document] = {
    "apiVersion": "v1",
    "kind": "Service",
    "metadata": {"name": NAME, "namespace": NAME},
    "spec": {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": {"app": NAME}},
}
_GPU: Final = "nvidia.com/gpu"
_PARTITION: Final = "nvidia.com/mig-"
_GROUP: Final = "sagemaker.amazonaws.com/instance-group-name"
_SMALL: Final = {"requests": {"cpu": "100m", "memory": "64Mi"}, "limits": {"memory": "64Mi"}}
_LARGE: Final = {"requests": {"cpu": "4", "memory": "32Gi"}, "limits": {"memory": "32Gi"}}
_NOBODY: Final = 65534
# The kubelet ends a pod then, even if nothing deletes it.
_MOST_SECONDS: Final = 3600
# Device files exist only in containers that were given the device.
_COUNT: Final = """\
wrong=0
count() {
  found=$(ls $3 2> /dev/null | wc -l)
  if [ "$found" -ne "$2" ]; then echo "$found of $2 $1 visible"; wrong=1; fi
}"""
_RESOLVE: Final = """\
name=kubernetes.default.svc.cluster.local
if ! nslookup $name > /dev/null 2>&1 && ! getent hosts $name > /dev/null; then
  echo "DNS doesn't resolve $name"
  wrong=1
fi"""
_WRITE: Final = """\
if ! { touch /fsx/.hpkit-check && rm /fsx/.hpkit-check; }; then
  echo "the FSx volume isn't writable"
  wrong=1
fi"""
_END: Final = "exit $wrong"
# The bus bandwidth as nccl-tests defines it: the size by the time of one all-reduce, times 2 (n - 1) / n.
_ALL_REDUCE: Final = """\
cat > /tmp/all_reduce.py << 'END'
import os, time, torch
import torch.distributed as dist
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
dist.init_process_group("nccl")
n, size, rounds = dist.get_world_size(), 256 << 20, 20
tensor = torch.ones(size // 4, device="cuda")
dist.all_reduce(tensor)
assert tensor[0].item() == n, f"the sum is {tensor[0].item()}, not {n}"
torch.cuda.synchronize()
begun = time.monotonic()
for _ in range(rounds):
    dist.all_reduce(tensor)
torch.cuda.synchronize()
rate = 2 * (n - 1) / n * size * rounds / (time.monotonic() - begun) / 1e9
if dist.get_rank() == 0:
    open("/dev/termination-log", "w").write(f"{n} GPUs, 256 MiB: {rate:.1f} GB/s bus bandwidth")
dist.destroy_process_group()
END
"""


@dataclass(frozen=True, slots=True)
class Probe:
    """An object to create, and the pods that must succeed.

    tests: what succeeds with them; unreal: the part of it that a simulated container doesn't test. path: of the list of
    such objects. outcome: the result, if there is nothing to create.
    """

    name: str
    tests: str = ""
    unreal: str = ""
    path: str = ""
    document: Document | None = None
    selector: str = ""
    pods: int = 1
    outcome: tuple[Status, str] | None = None


def probes_of(
    plan: Plan, nodes: Iterable[KubernetesNode], *, image: str, torch_image: str | None
) -> tuple[list[Probe], list[Probe]]:
    """Return the probes of groups and teams, and the all-reduces, which need the same devices afterward."""
    ready = [node for node in nodes if node.ready and not node.cordoned]
    nodes_of = {
        group.spec.name: _alike(node for node in ready if node.group == group.spec.name) for group in plan.groups
    }
    groups = [_group(group, nodes_of[group.spec.name], image) for group in plan.groups]
    teams = [_team(plan, team, {node.instance_type for node in ready}, image) for team in plan.teams]
    reduces = (_all_reduce(group, nodes, torch_image) for group, nodes in nodes_of.items())
    return [*groups, *teams], [probe for probe in reduces if probe is not None]


def _alike(nodes: Iterable[KubernetesNode]) -> list[KubernetesNode]:
    """Return the nodes of the most frequent instance type."""
    by_type: dict[str, list[KubernetesNode]] = {}
    for node in nodes:
        by_type.setdefault(node.instance_type, []).append(node)
    return max(by_type.values(), key=len, default=[])


def _group(group: GroupPlan, nodes: list[KubernetesNode], image: str) -> Probe:
    name = group.spec.name
    title, label = f"group {name}", f"group-{name}"
    if not nodes:
        expected = bool(group.spec.instance_count) and not group.autoscaled
        return Probe(title, outcome=("failed", "no node is ready") if expected else ("skipped", "it has no nodes"))
    devices = _devices(nodes[0])
    files = list(_files(devices))
    counts = [f'count "{words}" {count} "{pattern}"' for words, count, pattern in files]
    pod = _pod(image, [_COUNT, *counts, _RESOLVE, _END], nodes[0], _SMALL, devices)
    return Probe(
        title,
        ", ".join(["image pull", "DNS", *(plural(count, words.removesuffix("s")) for words, count, _ in files)]),
        ", ".join(["image pull", "DNS", *(words for words, _, _ in files)]),
        f"/api/v1/namespaces/{NAME}/pods",
        {"apiVersion": "v1", "kind": "Pod", "metadata": _head(label), "spec": pod},
        selector=f"{NAME}={label}",
    )


def _all_reduce(group: str, nodes: list[KubernetesNode], image: str | None) -> Probe | None:
    """Return the probe of a group, None if its instances have no EFA or no GPUs of NVIDIA."""
    devices = _devices(nodes[0]) if nodes else {}
    gpus = devices.get(_GPU)
    if EFA not in devices or not gpus:
        return None
    title, label = f"all-reduce {group}", f"all-reduce-{group}"
    if len(nodes) == 1:
        return Probe(title, outcome=("skipped", "only one node is ready"))
    if image is None:
        return Probe(title, outcome=("skipped", "it requires --image with an image that has PyTorch"))
    run = (
        f"exec torchrun --nnodes 2 --nproc-per-node {gpus} --node-rank $JOB_COMPLETION_INDEX "
        f"--master-addr {label}-0.{NAME} --master-port 29500 /tmp/all_reduce.py"
    )
    pod = _pod(image, [_ALL_REDUCE + run], nodes[0], _LARGE, devices)
    (container,) = pod["containers"]
    container["env"] = [{"name": "FI_PROVIDER", "value": "efa"}]
    container["volumeMounts"] = [{"name": "shared", "mountPath": "/dev/shm"}]  # noqa: S108 - in the container
    head = _head(label)
    apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": head["labels"]}}
    pod |= {
        "subdomain": NAME,
        "volumes": [{"name": "shared", "emptyDir": {"medium": "Memory", "sizeLimit": "8Gi"}}],
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}},
    }
    spec = {
        "completions": 2,
        "parallelism": 2,
        "completionMode": "Indexed",
        "backoffLimit": 0,
        "template": {"metadata": {"labels": head["labels"]}, "spec": pod},
    }
    return Probe(
        title,
        "NCCL's all-reduce on 2 nodes",
        "NCCL",
        f"/apis/batch/v1/namespaces/{NAME}/jobs",
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": head, "spec": spec},
        selector=f"{NAME}={label}",
        pods=2,
    )


def _team(plan: Plan, team: TeamPlan, types: set[str], image: str) -> Probe:
    title = f"team {team.name}"
    usable = [each.instance_type for each in team.quota_resources if each.instance_type in types]
    if "training" not in team.spec.workloads:
        return Probe(title, outcome=("skipped", "its workloads don't include training"))
    if not usable:
        return Probe(title, outcome=("skipped", "no node of an instance type in its quota is ready"))
    job = manifest(
        plan, team, kind="job", name=NAME, instance_type=usable[0], count=1, priority=None, topology=None, image=image
    )
    mounts = has_team_volumes(plan)
    template = job["spec"]["template"]
    template["metadata"]["labels"][NAME] = "team"
    pod = template["spec"]
    (container,) = pod["containers"]
    script = "\n".join([_COUNT, *([_WRITE] if mounts else []), _END])
    container |= {
        "command": ["sh", "-c", script],
        "resources": _SMALL,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    pod |= {
        "automountServiceAccountToken": False,
        "activeDeadlineSeconds": _MOST_SECONDS,
        "terminationGracePeriodSeconds": 1,
    }
    if mounts:
        pod |= with_claim(pod, team.user_ids.start)
    job["spec"] |= {"backoffLimit": 0, "ttlSecondsAfterFinished": _MOST_SECONDS}
    unreal = ["image pull", *(["FSx volume"] if mounts else [])]
    return Probe(
        title,
        ", ".join(["job through its queue", *unreal]),
        ", ".join(unreal),
        f"/apis/batch/v1/namespaces/{team.namespace}/jobs",
        job,
        selector=f"{NAME}=team",
    )


def _head(label: str) -> Document:
    return {"name": label, "labels": {"app": NAME, NAME: label}}


def _pod(
    image: str,
    script: Iterable[str],
    node: KubernetesNode,
    size: Mapping[str, Mapping[str, str]],
    devices: Mapping[str, int],
) -> Document:
    """Return a pod that the level `restricted` admits, for nodes like this one."""
    container = {
        "name": "check",
        "image": image,
        "command": ["sh", "-c", "\n".join(script)],
        "resources": {part: {**amounts, **devices} for part, amounts in size.items()},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": _MOST_SECONDS,
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "nodeSelector": {_GROUP: node.group, "node.kubernetes.io/instance-type": node.instance_type},
        # Groups can have taints.
        "tolerations": [{"operator": "Exists"}],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": _NOBODY,
            "runAsGroup": _NOBODY,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }


def _devices(node: KubernetesNode) -> dict[str, int]:
    """Return the accelerators and EFA interfaces of a node; partitions of GPUs (MIG) aren't counted."""
    details = find_instance_type(node.instance_type)
    if details is None:
        return {}
    devices = {details.accelerator_resource: details.accelerators, EFA: details.efa_interfaces}
    is_partitioned = any(name.startswith(_PARTITION) for name in node.allocatable)
    return {name: count for name, count in devices.items() if name and count and not (name == _GPU and is_partitioned)}


def _files(devices: Mapping[str, int]) -> Iterator[tuple[str, int, str]]:
    """Yield for each resource its name, the number of devices, and their files in a container."""
    for name, count in devices.items():
        if name == _GPU:
            yield "GPUs", count, "/dev/nvidia[0-9]*"
        elif name == EFA:
            yield "EFA devices", count, "/dev/infiniband/uverbs*"
        else:
            yield "Neuron devices", count, "/dev/neuron[0-9]*"
