"""The strict base of every section, and types whose limits are the AWS API's own."""

import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WithJsonSchema,
)
from pydantic.alias_generators import to_camel
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from hpkit.catalog import limit

__all__ = [
    "BUCKET_PATTERN",
    "DNS_LABEL",
    "IMAGE_PATTERN",
    "Api",
    "BucketName",
    "Model",
    "Name",
    "Quantity",
    "Version",
    "amount",
    "is_name",
]


class Model(BaseModel):
    """Frozen, strict, camelCase in files, and closed: an unknown key is an error."""

    model_config = ConfigDict(
        frozen=True,
        strict=True,
        extra="forbid",
        alias_generator=to_camel,
        populate_by_name=True,
        allow_inf_nan=False,
        hide_input_in_errors=True,
    )


def amount(description: str, *, unit: str, default: Any = ..., example: Any = None, **limits: Any) -> Any:
    """Return a field with a unit, which editors show with the example; without one, the default is the example."""
    examples = [default if example is None else example]
    return Field(default, description=description, examples=examples, json_schema_extra={"unit": unit}, **limits)


@dataclass(frozen=True, slots=True)
class Api:
    """Marks a field whose enum, pattern, length or range is that of a shape in the SageMaker API model.

    also: an additional value of hpkit's own.
    """

    shape: str
    also: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        limits = limit(self.shape)
        if limits.enum:
            return core_schema.literal_schema(list(limits.enum))
        if limits.type == "string":
            pattern = limits.pattern or ""
            # The API anchors its patterns; pydantic does not.
            anchored = f"^(?:{self.also}|{pattern})$" if self.also else f"^(?:{pattern})$"
            return core_schema.str_schema(
                pattern=anchored if pattern else None,
                # Linear time, regardless of nested repetitions in the pattern; look-ahead requires Python's own engine.
                regex_engine="python-re" if "(?" in pattern else "rust-regex",
                min_length=_whole(limits.min),
                max_length=_whole(limits.max),
            )
        if limits.type == "float":
            return core_schema.float_schema(ge=limits.min, le=limits.max, strict=True, allow_inf_nan=False)
        return core_schema.int_schema(ge=_whole(limits.min), le=_whole(limits.max), strict=True)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        # Some JSON Schema readers don't know Unicode categories; length and type are sufficient for them.
        described = handler(schema)
        return {key: value for key, value in described.items() if key != "pattern" or "\\p{" not in value}


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


_VERSION = re.compile(r"[0-9]{1,3}\.[0-9]{1,3}\Z")


def _version(value: Any) -> Any:
    if isinstance(value, float):
        raise PydanticCustomError("version_float", "a version without quotes is a number, and 1.30 as a number is 1.3")
    if isinstance(value, str) and not _VERSION.match(value):
        raise PydanticCustomError("version_form", "not a version like 1.35")
    return value


# Kubernetes minor version, quoted in YAML.
Version = Annotated[
    str,
    BeforeValidator(_version),
    WithJsonSchema({"type": "string", "pattern": "^" + _VERSION.pattern.replace(r"\Z", "$")}),
]

# Kubernetes caps a quantity at 2**63 - 1, of 19 digits, and rounds it up to nine places (apimachinery, api/resource).
_QUANTITY = re.compile(r"^[0-9]{1,19}(?:\.[0-9]{1,9})?(?:m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?\Z")


def _quantity(value: Any) -> str:
    text = str(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else ""
    if not _QUANTITY.match(text):
        raise PydanticCustomError("quantity", "not a Kubernetes quantity such as 16, 500m or 64Gi")
    return text


# A Kubernetes quantity; a plain number is taken as its text.
Quantity = Annotated[
    str,
    BeforeValidator(_quantity),
    WithJsonSchema({"type": ["string", "number"], "pattern": _QUANTITY.pattern.replace(r"\Z", "$")}),
]

DNS_LABEL = r"^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$"

_MOST_OF_A_NAME = 40

# As S3 documents the names of general purpose buckets.
BUCKET_PATTERN = r"^[a-z0-9](\.?[a-z0-9-])*(\.[a-z0-9]|[a-z0-9-][a-z0-9])$"
_RESERVED = re.compile(r"\d+(\.\d+){3}|(xn--|sthree-|amzn-s3-demo-).*|.*(-s3alias|--ol-s3|\.mrap|--x-s3|--table-s3)")


def _bucket_name(name: str) -> str:
    if _RESERVED.fullmatch(name):
        raise PydanticCustomError("bucket_name", "reserved")
    return name


BucketName = Annotated[str, Field(pattern=BUCKET_PATTERN, max_length=63), AfterValidator(_bucket_name)]

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
# The name of an image; source: Distribution, reference.
IMAGE_PATTERN = (
    r"^(?:(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?::[0-9]+)?|localhost(?::[0-9]+)?|[A-Za-z0-9-]+:[0-9]+)/)?"
    rf"{_PART}(?:/{_PART})*(?::[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(?:@[A-Za-z0-9+.-]+:[0-9a-fA-F]{{32,}})?$"
)

# The name of a thing that hpkit or Kubernetes uses as a DNS label.
Name = Annotated[str, Field(pattern=DNS_LABEL, min_length=1, max_length=_MOST_OF_A_NAME)]


def is_name(text: str) -> bool:
    """Return whether a text can be the name of a team, group or environment: a DNS label without a newline."""
    return len(text) <= _MOST_OF_A_NAME and re.fullmatch(DNS_LABEL, text) is not None and not text.endswith("\n")
