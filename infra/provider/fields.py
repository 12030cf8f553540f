"""The field table: every property of every resource, read off the service's own API model.

What the model does not say (which fields the service never changes, which are left to it) is written down
here once, with its source. Check, diff, replaces and the package schema are all driven by this table.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import Any, Final

import botocore.session

__all__ = ["GROUP_FROZEN", "RESOURCES", "Field", "ResourceTable", "from_api", "service_model", "table", "to_api"]

# UpdateCluster refuses these on a group that exists (API reference: UpdateCluster, "continuous provisioning").
GROUP_FROZEN: Final = (
    "instanceType",
    "executionRole",
    "threadsPerCore",
    "overrideVpcConfig",
    "capacityRequirements",
)


@dataclass(frozen=True)
class Field:
    """One property: where it is, what it may hold, whether it can change."""

    name: str
    api: str
    kind: str
    required: bool = False
    immutable: bool = False
    secret: bool = False
    enum: tuple[str, ...] = ()
    pattern: str = ""
    minimum: float | None = None
    maximum: float | None = None
    members: tuple[Field, ...] = ()
    item: Field | None = None
    key: Field | None = None
    union: bool = False  # exactly one member
    identity: str = ""  # of a list: the member that names an entry; "*" = a set, order does not matter
    shape: str = ""
    text: str = ""

    @cached_property
    def by_name(self) -> dict[str, Field]:
        """Members by property name."""
        return {member.name: member for member in self.members}

    @cached_property
    def by_api(self) -> dict[str, Field]:
        """Members by API name."""
        return {member.api: member for member in self.members}


@dataclass(frozen=True)
class ResourceTable:
    """One resource: the operation its inputs come from (none: extra holds all), and what the model does not say."""

    name: str
    operation: str
    text: str
    replacing: frozenset[str]
    outputs: tuple[Field, ...]
    extra: tuple[Field, ...] = ()
    omitted: frozenset[str] = frozenset()
    required: frozenset[str] = frozenset()
    identities: Mapping[str, str] = field(default_factory=dict)

    @property
    def token(self) -> str:
        """The Pulumi type token."""
        return f"hyperpod:index:{self.name}"


def _output(name: str, text: str, kind: str = "string") -> Field:
    return Field(name, name[0].upper() + name[1:], kind, text=text)


_NAMES = Field("", "", "string")
_AUTOSCALED = Field(
    "autoscaledInstanceGroups",
    "",
    "list",
    identity="*",
    item=_NAMES,
    text="Names of the groups whose counts belong to managed Karpenter: never sent again, never a difference.",
)

_VERSION = r"[0-9]+\.[0-9]+"
_GUARDED = (
    Field("subject", "", "string", required=True, text="What is guarded, as messages call it."),
    Field("identity", "", "map", item=_NAMES, key=_NAMES, text="What cannot change in place: setting → its value."),
    Field("version", "", "string", pattern=_VERSION, text="Kubernetes minor version: one up at a time, never down."),
    Field("allowReplace", "", "boolean", text="Whether the subject may be replaced; then only a warning is shown."),
    Field("remedy", "", "string", required=True, text="How a user allows the replacement."),
)

_AUTOSCALED_GROUP = (
    Field("clusterArn", "", "string", required=True, text="ARN of the cluster that has the group."),
    Field("instanceGroupName", "", "string", required=True, text="Name of the group, as the Cluster declares it."),
)

RESOURCES: Final = {
    resource.name: resource
    for resource in (
        ResourceTable(
            name="Cluster",
            operation="CreateCluster",
            text="A HyperPod cluster orchestrated by Amazon EKS, with its instance groups.",
            replacing=frozenset({"clusterName", "vpcConfig", "orchestrator", "nodeProvisioningMode"}),
            extra=(_AUTOSCALED,),
            # Slurm clusters are not what this package is for; the API takes exactly one orchestrator.
            omitted=frozenset({"orchestrator.slurm", "instanceGroups.slurmConfig"}),
            required=frozenset({"orchestrator", "orchestrator.eks", "vpcConfig"}),
            identities={
                "instanceGroups": "instanceGroupName",
                "restrictedInstanceGroups": "instanceGroupName",
                "instanceGroups.kubernetesConfig.taints": "*",
                "instanceGroups.onStartDeepHealthChecks": "*",
                "instanceGroups.overrideVpcConfig.subnets": "*",
                "instanceGroups.overrideVpcConfig.securityGroupIds": "*",
                "vpcConfig.subnets": "*",
                "vpcConfig.securityGroupIds": "*",
                "tags": "key",
            },
            outputs=(
                _output("clusterArn", "ARN of the cluster."),
                _output("clusterStatus", "Status as the service last said it."),
                _output("creationTime", "When the cluster was made."),
                _output("failureMessage", "Why the last change failed."),
                replace(
                    _output("managedInstanceGroups", "Groups made or taken over; only these are ever removed.", "list"),
                    item=_NAMES,
                ),
                _output("creationFailed", "The cluster never came to be: the next update replaces it.", "boolean"),
            ),
        ),
        ResourceTable(
            name="AutoscaledGroup",
            operation="",
            text="An instance group that managed Karpenter fills: what names it lets go of it before it goes.",
            replacing=frozenset({"clusterArn", "instanceGroupName"}),
            extra=_AUTOSCALED_GROUP,
            outputs=(),
        ),
        ResourceTable(
            name="ComputeQuota",
            operation="CreateComputeQuota",
            text="What a team has reserved on a cluster, and how it shares it.",
            replacing=frozenset({"name", "clusterArn", "computeQuotaTarget.teamName"}),
            identities={"tags": "key"},
            outputs=(
                _output("computeQuotaArn", "ARN of the quota."),
                _output("computeQuotaId", "Id of the quota."),
                _output("computeQuotaVersion", "Version; the service counts it up with each update.", "integer"),
                _output("status", "Status as the service last said it."),
                _output("failureReason", "Why the last change failed."),
            ),
        ),
        ResourceTable(
            name="ClusterSchedulerConfig",
            operation="CreateClusterSchedulerConfig",
            text="The policy of a cluster: task priorities, fair share, sharing of idle compute. One a cluster.",
            replacing=frozenset({"name", "clusterArn"}),
            identities={"schedulerConfig.priorityClasses": "name", "tags": "key"},
            outputs=(
                _output("clusterSchedulerConfigArn", "ARN of the policy."),
                _output("clusterSchedulerConfigId", "Id of the policy."),
                _output("clusterSchedulerConfigVersion", "Version; counted up with each update.", "integer"),
                _output("status", "Status as the service last said it."),
                _output("failureReason", "Why the last change failed."),
            ),
        ),
        ResourceTable(
            name="ChangeGuard",
            operation="",
            text="Refuses a change that would replace what it names, at preview already; it makes nothing itself.",
            replacing=frozenset(),
            extra=_GUARDED,
            outputs=(),
        ),
    )
}

_KINDS = {
    "structure": "object",
    "float": "number",
    "double": "number",
    "long": "integer",
}


@cache
def service_model() -> Any:
    """Return botocore's model of the SageMaker API."""
    return botocore.session.get_session().get_service_model("sagemaker")


@cache
def table(name: str) -> Field:
    """Return the inputs of a resource as one object field."""
    resource = RESOURCES[name]
    if not resource.operation:
        members = (replace(member, immutable=member.name in resource.replacing) for member in resource.extra)
        return Field("", "", "object", members=tuple(members))
    root = _field(resource, service_model().operation_model(resource.operation).input_shape, "", path="")
    return replace(root, members=(*root.members, *resource.extra))


def _field(resource: ResourceTable, shape: Any, api: str, *, path: str, required: bool = False) -> Field:
    kind = _KINDS.get(shape.type_name, shape.type_name)
    limits = shape.metadata
    return Field(
        name=_camel(api),
        api=api,
        kind=kind,
        required=required or path in resource.required,
        immutable=path in resource.replacing,
        secret=bool(getattr(shape, "metadata", {}).get("sensitive", False)),
        enum=tuple(limits.get("enum", ())),
        pattern=limits.get("pattern", ""),
        minimum=limits.get("min"),
        maximum=limits.get("max"),
        members=tuple(_members(resource, shape, path)) if kind == "object" else (),
        item=_item(resource, shape, path),
        key=_field(resource, shape.key, "", path="*") if kind == "map" else None,
        identity=resource.identities.get(path, ""),
        union=bool(getattr(shape, "is_tagged_union", False)),
        shape=shape.name,
        text=_first_sentence(shape.documentation),
    )


def _members(resource: ResourceTable, shape: Any, path: str) -> Iterable[Field]:
    for api, member in shape.members.items():
        inner = f"{path}.{_camel(api)}" if path else _camel(api)
        if inner not in resource.omitted:
            yield _field(resource, member, api, path=inner, required=api in shape.required_members)


def _item(resource: ResourceTable, shape: Any, path: str) -> Field | None:
    if shape.type_name == "list":
        # The item of a list shares its path: `instanceGroups.kubernetesConfig`, whatever the index.
        return replace(_field(resource, shape.member, "", path=path), immutable=False, identity="", required=False)
    if shape.type_name == "map":
        return _field(resource, shape.value, "", path="*")
    return None


def _camel(api: str) -> str:
    return api[:1].lower() + api[1:]


def _first_sentence(documentation: str) -> str:
    text = " ".join(documentation.replace("<p>", " ").replace("</p>", " ").split())
    while "<" in text and ">" in text[text.index("<") :]:
        start = text.index("<")
        text = text[:start] + text[text.index(">", start) + 1 :]
    sentence = text.partition(". ")[0].strip()
    return sentence.rstrip(".") + "." if sentence else ""


def to_api(spec: Field, value: Any) -> Any:
    """Turn a property value into what the API takes."""
    if spec.kind == "object":
        known = spec.by_name
        return {known[name].api: to_api(known[name], item) for name, item in value.items() if known[name].api}
    if spec.kind == "list" and spec.item:
        return [to_api(spec.item, item) for item in value]
    if spec.kind == "number":
        return float(value)
    return value


def from_api(spec: Field, value: Any) -> Any:
    """Turn what the API answers into a property value; members that are no inputs are dropped."""
    if spec.kind == "object":
        known = spec.by_api
        return {
            known[api].name: from_api(known[api], item)
            for api, item in value.items()
            if api and api in known and item is not None
        }
    if spec.kind == "list" and spec.item:
        return [from_api(spec.item, item) for item in value]
    if spec.kind == "number" and float(value).is_integer():
        return int(value)
    return value.isoformat() if hasattr(value, "isoformat") else value
