"""Property values as they travel: protobuf structs on the wire, plain Python in the plugin."""

from collections.abc import Mapping
from typing import Any, Final

from google.protobuf import struct_pb2

from hpkit.catalog import UNKNOWN, has_unknown

__all__ = ["UNKNOWN", "Props", "from_struct", "has_unknown", "is_unknown", "to_struct"]

Props = dict[str, Any]

_SIGNATURE: Final = "4dabf18193072939515e22adb298388d"  # Pulumi's key for values that are not plain JSON
_SECRET: Final = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - the signature of a secret, not a secret
_OUTPUT: Final = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
_UNKNOWN_TEXT: Final = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"


def is_unknown(value: object) -> bool:
    """Return whether a value isn't known yet (preview)."""
    return value is UNKNOWN


def from_struct(struct: struct_pb2.Struct) -> Props:
    """Read a struct; nulls are left out, whole numbers become integers."""
    plain = {key: _from_value(value) for key, value in struct.fields.items()}
    return {key: value for key, value in plain.items() if value is not None}


def _from_value(value: struct_pb2.Value) -> Any:
    field = value.WhichOneof("kind")
    if field == "string_value":
        return UNKNOWN if value.string_value == _UNKNOWN_TEXT else value.string_value
    if field == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() else number
    if field == "bool_value":
        return value.bool_value
    if field == "list_value":
        return [_from_value(item) for item in value.list_value.values]
    if field == "struct_value":
        signature = value.struct_value.fields.get(_SIGNATURE)
        if signature is not None and signature.string_value in (_SECRET, _OUTPUT):
            inner = value.struct_value.fields.get("value")
            return UNKNOWN if inner is None else _from_value(inner)
        return from_struct(value.struct_value)
    return None


def to_struct(props: Mapping[str, Any]) -> struct_pb2.Struct:
    """Write a struct; unknown values become Pulumi's marker for them."""
    struct = struct_pb2.Struct()
    struct.update(_plain(props))
    return struct


def _plain(value: Any) -> Any:
    if is_unknown(value):
        return _UNKNOWN_TEXT
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
