"""The field table: every property of every resource, read from the service's own API model.

Facts that aren't in the model (immutable properties, the service's defaults) are in the declarations. Check, diff,
refresh and requests all use this table.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

import botocore.session

from hpkit_provider.engine.values import Props
from hpkit_provider.schema.declarations import RESOURCES
from hpkit_provider.schema.field import Behavior, Field, ResourceTable

__all__ = ["RESOURCES", "Field", "ResourceTable", "from_api", "service_model", "table", "to_api", "value_to_api"]

_KINDS: Final = {"structure": "object", "float": "number", "double": "number", "long": "integer"}
_ORDINARY: Final = Behavior()


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
    field_type = _KINDS.get(shape.type_name, shape.type_name)
    limits = shape.metadata
    return Field(
        name=_camel(api),
        api=api,
        kind=field_type,
        required=required or path in resource.required,
        immutable=path in resource.replacing,
        enum=tuple(limits.get("enum", ())),
        pattern=limits.get("pattern", ""),
        minimum=limits.get("min"),
        maximum=limits.get("max"),
        members=tuple(_members(resource, shape, path)) if field_type == "object" else (),
        item=_item(resource, shape, path),
        key=_field(resource, shape.key, "", path="*") if field_type == "map" else None,
        identity=resource.identities.get(path, ""),
        union=bool(getattr(shape, "is_tagged_union", False)),
        **vars(resource.behaviors.get(path, _ORDINARY)),
    )


def _members(resource: ResourceTable, shape: Any, path: str) -> Iterable[Field]:
    for api, member in shape.members.items():
        inner = f"{path}.{_camel(api)}" if path else _camel(api)
        if inner not in resource.omitted:
            yield _field(resource, member, api, path=inner, required=api in shape.required_members)


def _item(resource: ResourceTable, shape: Any, path: str) -> Field | None:
    if shape.type_name == "list":
        # A list's items share its path: `instanceGroups.kubernetesConfig`, for any index.
        item = _field(resource, shape.member, "", path=path)
        return replace(item, immutable=False, identity="", required=False, **vars(_ORDINARY))
    if shape.type_name == "map":
        return _field(resource, shape.value, "", path="*")
    return None


def _camel(api: str) -> str:
    return api[:1].lower() + api[1:]


def to_api(spec: Field, inputs: Props) -> dict[str, Any]:
    """Convert the properties of an object to the API's format."""
    known = spec.by_name
    return {known[name].api: value_to_api(known[name], item) for name, item in inputs.items() if known[name].api}


def value_to_api(spec: Field, value: Any) -> Any:
    """Convert a property value to the API's format."""
    if spec.kind == "object":
        return to_api(spec, value)
    if spec.kind == "list" and spec.item:
        return [value_to_api(spec.item, item) for item in value]
    if spec.kind == "number":
        return float(value)
    return value


def from_api(spec: Field, document: Mapping[str, Any]) -> Props:
    """Turn an object that the API answers into properties; members that are no inputs are dropped."""
    fields = spec.by_api
    return {
        fields[api].name: _value_from_api(fields[api], item)
        for api, item in document.items()
        if api and api in fields and item is not None
    }


def _value_from_api(spec: Field, value: Any) -> Any:
    if spec.kind == "object":
        return from_api(spec, value)
    if spec.kind == "list" and spec.item:
        return [_value_from_api(spec.item, item) for item in value]
    if spec.kind == "number" and float(value).is_integer():
        return int(value)
    return value.isoformat() if hasattr(value, "isoformat") else value
