"""Hooks of mkdocs: links to files outside docs/, and the kinds of JSON documents."""

import os
import re
from pathlib import Path
from typing import Any

from hpkit.cli.common.documents import schema_of
from hpkit.cli.organization.schema import kinds

_KINDS = "<!-- kinds -->"
_LINK = re.compile(r"\[([^\]]*)\]\(([^)#\s:]+)(#[^)\s]*)?\)")


def on_page_markdown(markdown: str, page: Any, config: Any, **_: Any) -> str:
    """Change links to files outside docs/ into links to the repository, or plain text if no repository is configured.

    The page of JSON output gets its kinds.
    """
    folder = Path(config["docs_dir"])

    def link(match: re.Match[str]) -> str:
        words, target, fragment = match.groups(default="")
        path = os.path.relpath(folder / Path(page.file.src_uri).parent / target, folder)
        inside = not path.startswith("..") and not (folder / path).is_dir()
        if inside:
            return match[0]
        name = os.path.normpath(Path("docs") / path)
        return (
            f"[{words}]({config['repo_url'].rstrip('/')}/blob/main/{name}{fragment})" if config["repo_url"] else words
        )

    return _LINK.sub(link, markdown).replace(_KINDS, kinds_text() if _KINDS in markdown else "")


def kinds_text() -> str:
    """Return a section for each kind of JSON document: the commands that print it, and its fields."""
    lines = []
    for name, kind in kinds().items():
        schema = schema_of(kind.document)
        printed = ", ".join(f"`hpkit {each}`" for each in kind.commands)
        lines += [f"### {name}", "", schema["description"] + (f" Printed by {printed}." if printed else ""), ""]
        lines += _fields({name: schema, **schema.get("$defs", {})})
    return "\n".join(lines)


def _fields(objects: dict[str, Any]) -> list[str]:
    lines = ["| object | field | type | meaning |", "|---|---|---|---|"]
    for name, schema in objects.items():
        for field, part in schema["properties"].items():
            optional = "" if field in schema["required"] else " (optional)"
            lines.append(f"| `{name}` | `{field}`{optional} | {_type(part)} | {part.get('description', '')} |")
    return [*lines, ""]


def _type(part: dict[str, Any]) -> str:
    if "$ref" in part:
        return f"`{part['$ref'].rpartition('/')[2]}`"
    if "anyOf" in part:
        return " or ".join(map(_type, part["anyOf"]))
    if "const" in part or "enum" in part:
        return ", ".join(f"`{each}`" for each in part.get("enum", [part.get("const")]))
    if part["type"] == "array":
        return f"list of {_type(part['items'])}"
    if "additionalProperties" in part:
        return f"map of {_type(part['additionalProperties'])}"
    if "properties" in part:
        return "; ".join(f"`{name}`: {_type(each)}" for name, each in part["properties"].items())
    return " or ".join([part["type"]] if isinstance(part["type"], str) else part["type"])
