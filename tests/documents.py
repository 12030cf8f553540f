"""JSON documents of commands, validated strictly: every field must be in the schema."""

import json

import jsonschema

from hpkit.cli.common.documents import schema_of
from hpkit.cli.organization.schema import kinds

__all__ = ["closed", "document", "plain"]

# It imports every command, which must not happen while a test replaces something that they import.
KINDS = kinds()


def document(text):
    """Return a document; AssertionError if the text isn't one."""
    data = json.loads(text)
    assert set(data) >= {"apiVersion", "kind"}, sorted(data)
    jsonschema.Draft202012Validator(closed(schema_of(KINDS[data["kind"]].document))).validate(data)
    return data


def closed(schema):
    """Return the schema with additional fields forbidden in every object."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    parts = {key: closed(part) for key, part in schema.items()}
    if isinstance(parts.get("properties"), dict) and parts.get("type") == "object":
        parts.setdefault("additionalProperties", False)
    return parts


def plain(data):
    """Return a document as its JSON represents it, without its kind."""
    return data.model_dump(mode="json")
