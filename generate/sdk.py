"""The typed Pulumi classes of the `hyperpod` package, generated from the plugin's schema."""

import json
import re
import subprocess
import sys
import textwrap
from typing import Any

__all__ = ["resource_files"]

_HEADER = '"""{title}."""\n\n# Written by `make generate` from the schema of the plugin; do not edit.\n\n'
_FOLDER = "infra/hpkit/program/sdk"
_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
# The plugin checks longer enumerations (209 instance types), which don't help readers.
_MOST_LITERALS = 12
_LIMIT = 109


def resource_files() -> dict[str, str]:
    """Return path → text of every generated module."""
    from hpkit_provider.schema.package import package_schema

    schema = package_schema()
    classes = {token.rpartition(":")[2]: body for token, body in schema["resources"].items()}
    provider = {"inputProperties": schema["provider"]["inputProperties"], "requiredInputs": [], "properties": {}}
    classes["Provider"] = {**provider, "description": "Explicit settings of the `hyperpod` plugin."}
    files = {"types": _types(classes, schema["types"]), "__init__": _resources(classes, schema["types"])}
    return {f"{_FOLDER}/{name}.py": _formatted(text) for name, text in files.items()}


def _formatted(text: str) -> str:
    """Return formatted text: ruff sorts the imports and breaks the lines."""
    ruff = [sys.executable, "-m", "ruff"]
    for step in (["check", "--quiet", "--fix-only", "--select", "I"], ["format", "--quiet"]):
        command = [*ruff, *step, "--stdin-filename", f"{_FOLDER}/module.py", "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own words
    return text


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


def _python(spec: dict[str, Any], types: dict[str, Any], *, values: bool = False) -> str:
    """Return the Python type of a property; values: the type of an output instead of an input."""

    def annotated(inner: str) -> str:
        return inner if values else f"Input[{inner}]"

    if "$ref" in spec:
        token = spec["$ref"].rpartition("/")[2]
        target = types[token]
        if "enum" not in target:
            return str(token).rpartition(":")[2]
        members = [each["value"] for each in target["enum"]]
        literals = ", ".join(f'"{member}"' for member in members)
        return f"Literal[{literals}]" if len(members) <= _MOST_LITERALS else "str"
    if spec["type"] == "array":
        return f"Sequence[{annotated(_python(spec['items'], types, values=values))}]"
    if spec["type"] == "object":
        return f"Mapping[str, {annotated(_python(spec['additionalProperties'], types, values=values))}]"
    return _SCALARS[spec["type"]]


def _docstring(text: str) -> str:
    """Return a docstring of at most one line; the API reference has the rest of a long text."""
    text = textwrap.shorten(text.replace("\\", "") or "See the SageMaker API reference.", _LIMIT, placeholder=" ….")
    return f'    """{text}"""'


def _types(classes: dict[str, Any], types: dict[str, Any]) -> str:
    """Write a TypedDict for every object, with keys in the API's camelCase, and one for the inputs of every class."""
    objects = {token.rpartition(":")[2]: body for token, body in types.items() if "enum" not in body}
    lines: list[str] = []
    for name, body in sorted(objects.items()):
        lines += [f"class {name}(TypedDict):", _docstring(body.get("description", ""))]
        for key, spec in body["properties"].items():
            found = f"Input[{_python(spec, types)}]"
            lines.append(f"    {key}: {found if key in body['required'] else f'NotRequired[{found}]'}")
    for name, body in sorted(classes.items()):
        lines += [f"class {name}Inputs(TypedDict):", f'    """Inputs of {name}."""']
        required = set(body["requiredInputs"])
        for key, spec in sorted(body["inputProperties"].items(), key=lambda each: (each[0] not in required, each[0])):
            found = f"Input[{_python(spec, types)}]"
            lines.append(f"    {_snake(key)}: {found if key in required else f'NotRequired[{found} | None]'}")
            replaces = " A change replaces the resource." if spec.get("willReplaceOnChanges") else ""
            lines.append(_docstring(spec.get("description", "") + replaces))
    names = sorted([*objects, *(f"{name}Inputs" for name in classes)])
    head = _HEADER.format(title="Property types of the `hyperpod` package, and the inputs of its classes")
    head += "from __future__ import annotations\n\nfrom collections.abc import Mapping, Sequence\n"
    head += "from typing import Literal, NotRequired, TypedDict\n\nfrom pulumi import Input\n\n"
    return f"{head}__all__ = {json.dumps(names)}\n" + "\n".join(lines) + "\n"


def _resources(classes: dict[str, Any], types: dict[str, Any]) -> str:
    lines: list[str] = []
    for name, body in sorted(classes.items()):
        base, token = ("Provider", "hyperpod") if name == "Provider" else ("Custom", f"hyperpod:index:{name}")
        lines += [f"class {name}({base}Resource):", _docstring(body["description"])]
        for key, spec in body["properties"].items():
            if key in body["inputProperties"]:
                continue
            value = _python(spec, types, values=True)
            lines += [f'    {_snake(key)} = OutputOf[{value}]("{key}")', _docstring(spec.get("description", ""))]
        lines += [
            "    def __init__(self, resource_name: str, opts: ResourceOptions | None = None,",
            f"        **inputs: Unpack[{name}Inputs]) -> None:",
            f'        super().__init__("{token}", resource_name, inputs_of(type(self), inputs), opts)',
        ]
    head = _HEADER.format(title="Resource classes of the `hyperpod` package, and its provider: inputs are keywords")
    head += "from __future__ import annotations\n\nfrom collections.abc import Sequence\nfrom typing import Unpack\n\n"
    head += "from pulumi import CustomResource, ProviderResource, ResourceOptions\n\n"
    head += "from hpkit.program.sdk.properties import OutputOf, inputs_of\n"
    head += f"from hpkit.program.sdk.types import ({', '.join(f'{name}Inputs' for name in classes)})\n\n"
    return f"{head}__all__ = {json.dumps(sorted(classes))}\n" + "\n".join(lines) + "\n"
