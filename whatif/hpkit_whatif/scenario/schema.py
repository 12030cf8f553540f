"""The JSON Schema of scenario files, for editors."""

from pydantic import BaseModel

from hpkit.config.schema.contract import inner_types
from hpkit.text.formatting import compact_json
from hpkit_whatif.scenario.model import Scenario

__all__ = ["schema_text"]


def schema_text() -> str:
    """Return the JSON Schema (draft 2020-12) of a scenario file."""
    schema = Scenario.model_json_schema(by_alias=True)
    for model in _models(Scenario, []):
        properties = (schema if model is Scenario else schema["$defs"][model.__name__])["properties"]
        for name, field in model.model_fields.items():
            # Next to a $ref, pydantic omits the field's description.
            properties[field.alias or name]["description"] = field.description
    # Top-level keys that begin with x- contain anchors, and are ignored.
    schema["patternProperties"] = {"^x-": {}}
    whole = {"$schema": "https://json-schema.org/draft/2020-12/schema", **schema, "title": "hpkit scenario"}
    return compact_json(whole) + "\n"


def _models(model: type[BaseModel], seen: list[type[BaseModel]]) -> list[type[BaseModel]]:
    """Return a model and all models in its fields."""
    if model not in seen:
        seen.append(model)
        for field in model.model_fields.values():
            for part in inner_types(field.annotation):
                for each in (part, *getattr(part, "__args__", ())):
                    if isinstance(each, type) and issubclass(each, BaseModel):
                        _models(each, seen)
    return seen
