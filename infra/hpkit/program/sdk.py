"""Resource classes of the `hyperpod` package, and its provider: inputs are keywords, objects have the API's keys.

The plugin checks what is in objects. The SageMaker API reference describes the properties; the plugin's own are
described in `infra/hpkit_provider/schema/declarations.py` and `settings.py`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar, Unpack, cast

import pulumi
from pulumi import Input

__all__ = [
    "AutoscaledGroup",
    "ChangeGuard",
    "Cluster",
    "ClusterSchedulerConfig",
    "ComputeQuota",
    "Object",
    "Provider",
    "Readiness",
]

Object = Mapping[str, Any]
_Options = pulumi.ResourceOptions | None
_Value = TypeVar("_Value")


class _Output(Generic[_Value]):
    """An output, which the engine sets by its name in the API."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.key = _key(name)

    def __get__(self, resource: pulumi.Resource, owner: object) -> pulumi.Output[_Value]:
        return cast("pulumi.Output[_Value]", resource.__dict__[self.key])


def _key(name: str) -> str:
    """Return a property's name in the API."""
    return re.sub(r"_(.)", lambda found: found[1].upper(), name)


def _properties(resource: type, inputs: Mapping[str, object]) -> dict[str, Any]:
    """Return the inputs by their names in the API, and None for every output of the class, which the engine sets."""
    outputs = [value.key for value in vars(resource).values() if isinstance(value, _Output)]
    return {_key(name): value for name, value in inputs.items()} | dict.fromkeys(outputs)


class _Resource(pulumi.CustomResource):
    def __init__(self, resource_name: str, opts: _Options, inputs: Mapping[str, object]) -> None:
        kind = type(self)
        super().__init__(f"hyperpod:index:{kind.__name__}", resource_name, _properties(kind, inputs), opts)


class _AutoscaledGroupInputs(TypedDict):
    cluster_arn: Input[str]
    instance_group_name: Input[str]


class AutoscaledGroup(_Resource):
    """An instance group that managed Karpenter scales. Its NodeClass releases it before it's deleted."""

    def __init__(self, resource_name: str, opts: _Options = None, **inputs: Unpack[_AutoscaledGroupInputs]) -> None:
        super().__init__(resource_name, opts, inputs)


class _ChangeGuardInputs(TypedDict):
    subject: Input[str]
    allow_replace: NotRequired[Input[Sequence[Input[str]]] | None]
    contents: NotRequired[Input[Mapping[str, Input[str]]] | None]
    fixed: NotRequired[Input[Mapping[str, Input[str]]] | None]
    identity: NotRequired[Input[Mapping[str, Input[str]]] | None]
    nested: NotRequired[Input[Sequence[Input[str]]] | None]
    parts: NotRequired[Input[Mapping[str, Input[str]]] | None]
    protected: NotRequired[Input[Sequence[Input[str]]] | None]
    ranges: NotRequired[Input[Mapping[str, Input[str]]] | None]
    version: NotRequired[Input[str] | None]
    where: NotRequired[Input[str] | None]


class ChangeGuard(_Resource):
    """Rejects a change that would replace or delete guarded resources, in the preview. It creates nothing."""

    def __init__(self, resource_name: str, opts: _Options = None, **inputs: Unpack[_ChangeGuardInputs]) -> None:
        super().__init__(resource_name, opts, inputs)


class _ClusterInputs(TypedDict):
    cluster_name: Input[str]
    orchestrator: Input[Object]
    vpc_config: Input[Object]
    allow_delete_instance_groups: NotRequired[Input[Sequence[Input[str]]] | None]
    allow_replace: NotRequired[Input[bool] | None]
    auto_scaling: NotRequired[Input[Object] | None]
    autoscaled_instance_groups: NotRequired[Input[Sequence[Input[str]]] | None]
    cluster_role: NotRequired[Input[str] | None]
    instance_groups: NotRequired[Input[Sequence[Input[Object]]] | None]
    node_provisioning_mode: NotRequired[Input[Literal["Continuous"]] | None]
    node_recovery: NotRequired[Input[Literal["Automatic", "None"]] | None]
    restricted_instance_groups: NotRequired[Input[Sequence[Input[Object]]] | None]
    restricted_instance_groups_config: NotRequired[Input[Object] | None]
    tags: NotRequired[Input[Sequence[Input[Object]]] | None]
    tiered_storage_config: NotRequired[Input[Object] | None]


class Cluster(_Resource):
    """A HyperPod cluster orchestrated by Amazon EKS, with its instance groups."""

    cluster_arn = _Output[str]()
    cluster_status = _Output[str]()
    creation_time = _Output[str]()
    failure_message = _Output[str]()
    managed_instance_groups = _Output[Sequence[str]]()
    """Groups that this resource created or adopted. It deletes no others."""
    creation_failed = _Output[bool]()
    """Whether creation failed. The next update then replaces it."""

    def __init__(self, resource_name: str, opts: _Options = None, **inputs: Unpack[_ClusterInputs]) -> None:
        super().__init__(resource_name, opts, inputs)


class _ClusterSchedulerConfigInputs(TypedDict):
    cluster_arn: Input[str]
    name: Input[str]
    scheduler_config: Input[Object]
    description: NotRequired[Input[str] | None]
    tags: NotRequired[Input[Sequence[Input[Object]]] | None]


class ClusterSchedulerConfig(_Resource):
    """The only scheduling policy of a cluster: task priorities, fair share, sharing of idle compute."""

    cluster_scheduler_config_arn = _Output[str]()
    cluster_scheduler_config_id = _Output[str]()
    cluster_scheduler_config_version = _Output[int]()
    """Version, which increases with each update."""
    status = _Output[str]()
    failure_reason = _Output[str]()

    def __init__(
        self, resource_name: str, opts: _Options = None, **inputs: Unpack[_ClusterSchedulerConfigInputs]
    ) -> None:
        super().__init__(resource_name, opts, inputs)


class _ComputeQuotaInputs(TypedDict):
    cluster_arn: Input[str]
    compute_quota_config: Input[Object]
    compute_quota_target: Input[Object]
    name: Input[str]
    activation_state: NotRequired[Input[Literal["Enabled", "Disabled"]] | None]
    description: NotRequired[Input[str] | None]
    elastic_instance_types: NotRequired[Input[Sequence[Input[str]]] | None]
    future_instance_types: NotRequired[Input[Sequence[Input[str]]] | None]
    tags: NotRequired[Input[Sequence[Input[Object]]] | None]


class ComputeQuota(_Resource):
    """A team's quota on a cluster, and its sharing settings."""

    compute_quota_arn = _Output[str]()
    compute_quota_id = _Output[str]()
    compute_quota_version = _Output[int]()
    """Version, which increases with each update."""
    status = _Output[str]()
    failure_reason = _Output[str]()

    def __init__(self, resource_name: str, opts: _Options = None, **inputs: Unpack[_ComputeQuotaInputs]) -> None:
        super().__init__(resource_name, opts, inputs)


class _ProviderInputs(TypedDict):
    account_id: NotRequired[Input[str] | None]
    allow_replace: NotRequired[Input[str] | None]
    assume_role_arn: NotRequired[Input[str] | None]
    capacity_wait_seconds: NotRequired[Input[str] | None]
    contents: NotRequired[Input[str] | None]
    endpoint: NotRequired[Input[str] | None]
    leaving_teams: NotRequired[Input[str] | None]
    profile: NotRequired[Input[str] | None]
    region: NotRequired[Input[str] | None]
    where: NotRequired[Input[str] | None]


class Provider(pulumi.ProviderResource):
    """Explicit settings of the `hyperpod` plugin."""

    def __init__(self, resource_name: str, opts: _Options = None, **inputs: Unpack[_ProviderInputs]) -> None:
        super().__init__("hyperpod", resource_name, _properties(type(self), inputs), opts)


class _ReadinessInputs(TypedDict):
    minutes: Input[float]
    certificate_authority: NotRequired[Input[str] | None]
    cluster_arn: NotRequired[Input[str] | None]
    deployments: NotRequired[Input[Sequence[Input[str]]] | None]
    eks_cluster_name: NotRequired[Input[str] | None]
    endpoint: NotRequired[Input[str] | None]
    instance_counts: NotRequired[Input[Mapping[str, Input[float]]] | None]
    instance_groups: NotRequired[Input[Sequence[Input[str]]] | None]
    key_arn: NotRequired[Input[str] | None]
    pod_identity_associations: NotRequired[Input[Mapping[str, Input[str]]] | None]


class Readiness(_Resource):
    """Waits until the listed resources can be used. It creates nothing."""

    def __init__(self, resource_name: str, opts: _Options = None, **inputs: Unpack[_ReadinessInputs]) -> None:
        super().__init__(resource_name, opts, inputs)
