"""Facts about the service, each with source and date: instance types, regions, versions, API limits."""

from hpkit.catalog.instances import (
    ACCELERATOR_RESOURCES,
    InstanceType,
    MigProfile,
    Source,
    find_instance_type,
    find_nearest,
    instance_type,
    instance_types,
)
from hpkit.catalog.replacing import (
    TypeFacts,
    frozen_of_groups,
    immutable_of_objects,
    sticky_of_groups,
    type_facts,
)
from hpkit.catalog.services import (
    TASK_GOVERNANCE,
    AddOn,
    AddOnVersion,
    Region,
    ShapeLimits,
    addons,
    find_region,
    kubernetes_versions,
    limit,
    regions,
    topology_gates,
)

__all__ = [
    "ACCELERATOR_RESOURCES",
    "TASK_GOVERNANCE",
    "AddOn",
    "AddOnVersion",
    "InstanceType",
    "MigProfile",
    "Region",
    "ShapeLimits",
    "Source",
    "TypeFacts",
    "addons",
    "find_instance_type",
    "find_nearest",
    "find_region",
    "frozen_of_groups",
    "immutable_of_objects",
    "instance_type",
    "instance_types",
    "kubernetes_versions",
    "limit",
    "regions",
    "sticky_of_groups",
    "topology_gates",
    "type_facts",
]
