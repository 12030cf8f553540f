"""Hooks of mkdocs: links to files outside docs/, and the kinds of JSON documents."""

import os
import re
from pathlib import Path
from typing import Any, Final

from hpkit.cli.common.documents import schema_of
from hpkit.cli.organization.schema import kinds
from hpkit.project import project_root

JSON_PAGE: Final = "docs/reference/json.md"
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


def json_page() -> str:
    """Return docs/reference/json.md with the table of the kinds of documents."""
    written = (project_root() / JSON_PAGE).read_text(encoding="utf-8")
    rows = ["| kind | contents | printed by |", "|---|---|---|"]
    rows += [
        f"| `{name}` | {schema_of(kind.document)['description'].partition(chr(10))[0]} "
        f"| {', '.join(f'`hpkit {each}`' for each in kind.commands) or 'any command'} |"
        for name, kind in kinds().items()
    ]
    return "\n".join([written.partition(rows[0])[0].partition(_KINDS)[0].rstrip(), "", *rows, "", _KINDS, ""])


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
    def type_of(part: dict[str, Any]) -> str:
        if "$ref" in part:
            name = part["$ref"].rpartition("/")[2]
            if "_" not in name.strip("_"):
                return f"`{name.strip('_')}`"
            # A generic object, such as a value before and after, has one type for each use.
            return "; ".join(f"`{key}`: {type_of(each)}" for key, each in objects[name]["properties"].items())
        if "anyOf" in part:
            types = dict.fromkeys(map(type_of, part["anyOf"]))
            return " or ".join(each for each in types if each != "integer" or "number" not in types)
        if "const" in part or "enum" in part:
            return ", ".join(f"`{each}`" for each in part.get("enum", [part.get("const")]))
        if "prefixItems" in part:
            return f"list of {', '.join(map(type_of, part['prefixItems']))}"
        if "type" not in part:
            return "any"
        if part["type"] == "array":
            return f"list of {type_of(part['items'])}"
        if "additionalProperties" in part:
            return f"map of {type_of(part['additionalProperties'])}"
        return str(part["type"])

    lines = ["| object | field | type | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{name.strip('_')}` | `{field}` | {type_of(part)} | {part.get('description', '')} |"
        for name, schema in objects.items()
        if "_" not in name.strip("_")
        for field, part in schema["properties"].items()
    ]
    return [*lines, ""]
