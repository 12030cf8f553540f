"""The typed Pulumi classes of the `hyperpod` package, generated from the plugin's schema."""

import json
import keyword
import re
import subprocess
import sys
from typing import Any

__all__ = ["resource_files"]

_HEADER = '"""{title}."""\n\n# Written by `make generate` from the schema of the plugin; do not edit.\n\n'
_FOLDER = "infra/hpkit/program/sdk"
_SCALARS = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
# The plugin checks longer enumerations (209 instance types), which don't help readers.
_MOST_LITERALS = 12
_LIMIT = 112


def resource_files() -> dict[str, str]:
    """Return path → text of every generated module."""
    from hpkit_provider.schema.package import package_schema

    schema = package_schema()
    classes = {token.rpartition(":")[2]: body for token, body in schema["resources"].items()}
    provider = {"inputProperties": schema["provider"]["inputProperties"], "requiredInputs": [], "properties": {}}
    classes["Provider"] = {**provider, "description": "Explicit settings of the `hyperpod` plugin."}
    files = {"types": _types(schema["types"]), "resources": _resources(classes, schema["types"])}
    files["__init__"] = _package(sorted(classes))
    return {f"{_FOLDER}/{name}.py": _formatted(text) for name, text in files.items()}


def _formatted(text: str) -> str:
    """Return formatted text: ruff sorts the imports and breaks the lines."""
    ruff = [sys.executable, "-m", "ruff"]
    for step in (["check", "--quiet", "--fix-only", "--select", "I"], ["format", "--quiet"]):
        command = [*ruff, *step, "--stdin-filename", f"{_FOLDER}/module.py", "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout  # noqa: S603 - our own words
    return text


def _snake(name: str) -> str:
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
    return f"{snake}_" if keyword.iskeyword(snake) else snake


def _python(spec: dict[str, Any], types: dict[str, Any], *, values: bool = False) -> str:
    """Return the Python type of a property; values: the type of an output instead of an input."""

    def annotated(inner: str) -> str:
        return inner if values else f"pulumi.Input[{inner}]"

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


def _docstring(text: str, indent: str) -> list[str]:
    """Return a docstring of at most one line; the API reference has the rest of a long text."""
    text = text.replace("\\", "") or "See the SageMaker API reference."
    if len(text) + len(indent) + 6 > _LIMIT:
        text = text[: _LIMIT - len(indent) - 8].rpartition(" ")[0] + " …."
    return [f'{indent}"""{text}"""']


def _types(types: dict[str, Any]) -> str:
    """Write a TypedDict for every object; keys are the API's names in camelCase, which the API reference explains."""
    objects = {token: body for token, body in types.items() if "enum" not in body}
    lines: list[str] = []
    for token, body in sorted(objects.items()):
        name = token.rpartition(":")[2]
        lines += ["", "", f"class {name}(TypedDict):", *_docstring(body.get("description", ""), "    ")]
        lines += [""] if body["properties"] else []
        for key, spec in body["properties"].items():
            found = f"pulumi.Input[{_python(spec, types)}]"
            lines.append(f"    {key}: {found if key in body['required'] else f'NotRequired[{found}]'}")
    text = "\n".join(lines) + "\n"
    typing = [name for name in ("Literal", "NotRequired", "TypedDict") if name in text]
    exports = "".join(f'    "{token.rpartition(":")[2]}",\n' for token in sorted(objects))
    head = _HEADER.format(title="Property types of the `hyperpod` package")
    head += "from __future__ import annotations\n\nfrom collections.abc import Mapping, Sequence\n"
    head += f"from typing import {', '.join(typing)}\n\nimport pulumi\n\n__all__ = [\n{exports}]\n"
    return head + text


def _resources(classes: dict[str, Any], types: dict[str, Any]) -> str:
    lines = [
        *(
            "",
            "",
            "def _output(name: str) -> Any:",
            '    """Return an output, which the engine sets by its name in the API."""',
        ),
        "    return property(lambda resource: resource.__dict__[name])",
    ]
    for name, body in sorted(classes.items()):
        lines += _resource(name, body, types)
    text = "\n".join(lines) + "\n"
    containers = [each for each in ("Mapping", "Sequence") if f"{each}[" in text]
    used = sorted({token.rpartition(":")[2] for token in types if re.search(rf"\b{token.rpartition(':')[2]}\b", text)})
    used = [each for each in used if "enum" not in types[f"hyperpod:index:{each}"]]
    head = _HEADER.format(title="Typed resource classes of the `hyperpod` package, and its provider")
    head += f"from __future__ import annotations\n\nfrom collections.abc import {', '.join(containers)}\n"
    head += "from typing import Any, Literal, cast\n\nimport pulumi\n\n"
    head += f"from hpkit.program.sdk.types import ({', '.join(used)})\n\n__all__ = {json.dumps(sorted(classes))}\n"
    return head + text


def _resource(name: str, body: dict[str, Any], types: dict[str, Any]) -> list[str]:
    inputs, required = body["inputProperties"], set(body["requiredInputs"])
    ordered = sorted(inputs, key=lambda key: (key not in required, key))
    outputs = {key: spec for key, spec in body["properties"].items() if key not in inputs}
    base, token = (
        ("ProviderResource", "hyperpod") if name == "Provider" else ("CustomResource", f"hyperpod:index:{name}")
    )
    lines = ["", "", f"class {name}(pulumi.{base}):", *_docstring(body["description"], "    "), ""]
    for key, spec in outputs.items():
        found = f"pulumi.Output[{_python(spec, types, values=True)}]"
        lines.append(f'    {_snake(key)} = cast("{found}", _output("{key}"))')
        lines += _docstring(spec.get("description", ""), "    ")
    lines += ["    def __init__(", "        self,", "        resource_name: str,", "        *,"]
    for key in ordered:
        found = f"pulumi.Input[{_python(inputs[key], types)}]"
        lines.append(f"        {_snake(key)}: {found}" + ("," if key in required else " | None = None,"))
    lines += ["        opts: pulumi.ResourceOptions | None = None,", "    ) -> None:"]
    lines += ['        """Register it with the engine; resource_name is its name in the program.', "", "        Args:"]
    lines += ["            resource_name: Name in the program."]
    for key in ordered:
        replaces = " A change replaces the resource." if inputs[key].get("willReplaceOnChanges") else ""
        lines += _argument_text(_snake(key), f"{inputs[key].get('description', '')}{replaces}".strip())
    lines += ["            opts: Options of the engine.", '        """', "        inputs = {"]
    lines += [f'            "{key}": {_snake(key)},' for key in ordered]
    unknown = f" | dict.fromkeys({json.dumps(list(outputs))})" if outputs else ""
    return [*lines, "        }", f'        super().__init__("{token}", resource_name, inputs{unknown}, opts)']


def _argument_text(name: str, text: str) -> list[str]:
    words, lines, line = (text or "See the API reference.").replace("\\", "").split(), [], f"            {name}:"
    for word in words:
        if len(line) + 1 + len(word) > _LIMIT:
            lines.append(line)
            line = "               "
        line += f" {word}"
    return [*lines, line]


def _package(names: list[str]) -> str:
    head = _HEADER.format(title="Typed resource classes of the `hyperpod` package")
    return f"{head}from hpkit.program.sdk.resources import ({', '.join(names)})\n\n__all__ = {json.dumps(names)}\n"
