"""Instance types that HyperPod accepts, with their known values and sources."""

import difflib
import json
import re
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from typing import Any, Final

from hpkit.errors import CatalogError

__all__ = [
    "ACCELERATOR_RESOURCES",
    "DEVICE_RESOURCES",
    "InstanceType",
    "MigProfile",
    "Source",
    "find_instance_type",
    "find_nearest",
    "instance_type",
    "instance_types",
    "read_data",
]

# Resource names that the device plugins publish, as the HyperPod CLI requests them.
ACCELERATOR_RESOURCES: Final = {"gpu": "nvidia.com/gpu", "trainium": "aws.amazon.com/neurondevice"}
# How many similar names an error suggests.
_MOST_NEAR: Final = 3
# Neuron's device plugin counts the same chips under two names; newer versions use only the second one. It counts their
# cores under a third name. Source: AWS Neuron documentation, Kubernetes environment setup (2.9.1 and latest).
_NEURON_DEVICE: Final = "aws.amazon.com/neuron"
_NEURON_CORE: Final = "aws.amazon.com/neuroncore"
DEVICE_RESOURCES: Final = (*ACCELERATOR_RESOURCES.values(), _NEURON_DEVICE, _NEURON_CORE)
# Placements of a profile on one GPU with seven compute and eight memory slices; source: NVIDIA Multi-Instance GPU
# user guide, supported profiles. 1g fits four times where it takes twice the memory.
_PLACEMENTS: Final = {1: 7, 2: 3, 3: 2, 4: 1, 7: 1}
_DOUBLE_MEMORY_PLACEMENTS: Final = 4


@dataclass(frozen=True, slots=True)
class Source:
    """The source of a figure; date is when the page was read, in ISO 8601."""

    title: str
    url: str
    date: str


@dataclass(frozen=True, slots=True)
class MigProfile:
    """A MIG profile of a type: compute slices it takes, and how many of it fit on one accelerator."""

    name: str
    slices: int
    max_per_accelerator: int


@dataclass(frozen=True, slots=True)
class InstanceType:
    """The values of an instance type. None means unknown, never zero.

    - memory_gib: the instance's whole memory.
    - addresses: IPv4 addresses that a node can use in its subnet.
    - vcpu: all threads, that is threads_per_core per core (1 if the type has no multithreading).
    - neuron_cores: the cores of all its Neuron chips; unknown if a runtime setting decides how many pods see.
    - network_layers: how many network nodes EC2 reports for an instance; 0 for a type without any.
    - max_pods: the kubelet's limit on HyperPod, where one interface serves pods.
    - sources: the source of each figure.
    """

    name: str
    vcpu: int | None
    threads_per_core: int | None
    memory_gib: int | None
    accelerators: int | None
    accelerator_kind: str | None
    neuron_cores: int | None
    efa_interfaces: int | None
    addresses: int | None
    max_pods: int | None
    architecture: str | None
    mig_profiles: tuple[MigProfile, ...] | None
    network_layers: int
    sources: "dict[str, Source]"

    @property
    def accelerator_resource(self) -> str | None:
        """Return the Kubernetes resource name of the accelerators, None for a type without."""
        return ACCELERATOR_RESOURCES.get(self.accelerator_kind or "")

    @property
    def device_resources(self) -> dict[str, int | None]:
        """Return its amount of each resource that a device plugin can publish; None if it isn't known."""
        counts: dict[str, int | None] = dict.fromkeys(DEVICE_RESOURCES, 0)
        if self.accelerator_resource is not None:
            counts[self.accelerator_resource] = self.accelerators
        if self.accelerator_kind == "trainium":
            counts |= {_NEURON_DEVICE: self.accelerators, _NEURON_CORE: self.neuron_cores}
        return counts

    @property
    def mig_slices_per_accelerator(self) -> int:
        """Return the compute slices of one MIG-capable accelerator."""
        return 7

    def with_threads(self, threads_per_core: int | None) -> "InstanceType":
        """Return the type with a number of threads per core; unchanged for None, or if the default isn't known.

        One thread on a core with two halves the vCPUs. Source: SageMaker API reference,
        ClusterInstanceGroupSpecification.
        """
        if threads_per_core is None or self.threads_per_core is None or self.vcpu is None:
            return self
        vcpu = self.vcpu * min(threads_per_core, self.threads_per_core) // self.threads_per_core
        return replace(self, vcpu=vcpu, threads_per_core=min(threads_per_core, self.threads_per_core))


def read_data(name: str) -> Any:
    """Return a data file of the catalog."""
    return json.loads(resources.files("hpkit.catalog").joinpath("data", name).read_text(encoding="utf-8"))


@cache
def _catalog() -> dict[str, InstanceType]:
    data = read_data("instances.json")
    sources = {key: Source(**value) for key, value in data["sources"].items()}
    provenance = {
        key: {figure: sources[source] for figure, source in value.items()} for key, value in data["provenance"].items()
    }
    topology = read_data("topology.json")
    layers = {name: int(number) for number, names in topology["layers"].items() for name in names}
    placed = {"networkLayers": Source(**topology["source"])}
    return {
        name: InstanceType(
            name=name,
            vcpu=row["vcpu"],
            threads_per_core=row["threadsPerCore"],
            memory_gib=row["memoryGiB"],
            accelerators=row["accelerators"],
            accelerator_kind=row["kind"],
            neuron_cores=row.get("neuronCores"),
            efa_interfaces=row["efa"],
            addresses=row["addresses"],
            max_pods=row["maxPods"],
            architecture=row["architecture"],
            mig_profiles=None if row["mig"] is None else _profiles(row["mig"]),
            network_layers=layers.get(name, 0),
            sources=provenance[row["sources"]] | placed,
        )
        for name, row in data["instanceTypes"].items()
    }


def _profiles(names: list[str]) -> tuple[MigProfile, ...]:
    """Parse `1g.5gb 1g.10gb …` into profiles; the second one with one slice has double memory."""
    profiles = []
    seen: set[int] = set()
    for name in names:
        slices = int(name.partition("g")[0])
        most = _DOUBLE_MEMORY_PLACEMENTS if slices == 1 and slices in seen else _PLACEMENTS[slices]
        seen.add(slices)
        profiles.append(MigProfile(f"mig-{name}", slices, most))
    return tuple(profiles)


def instance_types() -> tuple[InstanceType, ...]:
    """Return every type that the CreateCluster API accepts, sorted by name."""
    return tuple(_catalog()[name] for name in sorted(_catalog()))


def find_instance_type(name: str) -> InstanceType | None:
    """Return a type, or None for a name that the API does not accept."""
    return _catalog().get(name)


def _joined(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def find_nearest(name: str) -> tuple[str, ...]:
    """Return up to three similar names; a single one if only punctuation and case differ."""
    joined = _joined(name)
    if same := [each for each in _catalog() if joined.endswith(_joined(each)) or f"ml{joined}" == _joined(each)]:
        return tuple(same[:1])
    # Another prefix than `ml.`, or none of its letters right: m.g5.8xlarge.
    if (plain := f"ml.{name.lower().partition('.')[2]}") in _catalog():
        return (plain,)
    family = f"ml.{name.lower().removeprefix('ml.')}."
    of_family = [each for each in _catalog() if each.startswith(family)]
    if 0 < len(of_family) <= _MOST_NEAR:
        return tuple(of_family)
    full_name = f"ml.{name.lower().removeprefix('ml.')}"
    if of_same_family := _sizes_near(full_name):
        return of_same_family[:_MOST_NEAR]
    # By its first letter a type has GPUs or none: ml.p3.16xlarge is spelt most like ml.m5.16xlarge.
    alike = [each for each in _catalog() if each[:4] == full_name[:4]]
    cutoff = 0.75 if alike else 0.9
    return tuple(difflib.get_close_matches(full_name, alike or _catalog(), n=_MOST_NEAR, cutoff=cutoff))


def _sizes_near(wanted: str) -> tuple[str, ...]:
    """Return the types of a family ordered by similarity of size; none if the family or the size isn't known."""
    family, _, size = wanted.rpartition(".")
    if (wanted_size := _size(size)) is None:
        return ()
    sizes = {name: found for name in _catalog() if name.startswith(f"{family}.") and (found := _size(name))}
    return tuple(sorted(sizes, key=lambda name: (abs(sizes[name] - wanted_size), -sizes[name])))


def _size(name: str) -> int | None:
    found = re.fullmatch(r"(\d*)xlarge", name.rpartition(".")[2])
    return int(found[1] or 1) if found else None


def instance_type(name: str) -> InstanceType:
    """Return a type; raises CatalogError with the nearest names if the API doesn't accept it."""
    details = find_instance_type(name)
    if details is None:
        near = ", ".join(find_nearest(name))
        hint = f"did you mean {near}?" if near else "hpkit catalog instances lists all"
        raise CatalogError(f"{name} isn't a HyperPod instance type; {hint}")
    return details
