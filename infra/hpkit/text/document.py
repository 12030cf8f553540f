"""The base of JSON documents and of their parts, and how exact numbers are written in them."""

from decimal import Decimal
from fractions import Fraction
from typing import Annotated, Final

from pydantic import AliasGenerator, BaseModel, BeforeValidator, ConfigDict, PlainSerializer
from pydantic.alias_generators import to_camel

__all__ = ["NUMBER", "Document", "Exact", "Quantity", "TextOrNull", "json_number"]


class Document(BaseModel):
    """A JSON object: its fields come from the attributes of an object or from arguments, and are in camel case.

    Dataclasses as fields are in camel case too.
    """

    model_config = ConfigDict(
        from_attributes=True,
        alias_generator=AliasGenerator(serialization_alias=to_camel),
        validate_by_name=True,
        serialize_by_alias=True,
        defer_build=True,
    )


def json_number(value: Fraction | Decimal | int) -> int | float:
    """Return an exact number for JSON: an integer if it's whole."""
    exact = Fraction(value)
    return exact.numerator if exact.denominator == 1 else float(exact)


NUMBER: Final = PlainSerializer(json_number, return_type=int | float)
Quantity = Annotated[Decimal, NUMBER]
Exact = Annotated[Fraction | Decimal | int, NUMBER]
TextOrNull = Annotated[str | None, BeforeValidator(lambda text: text or None)]
