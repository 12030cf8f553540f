"""The page of what the local AWS endpoint refuses, with how well each refusal is known.

A comment on the line above a refusal, else above its function, names the source:
`# Source: <URL>` for what AWS documents, `# Inferred from: <URL>` for what follows from it, or from similar operations.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from hpkit.errors import ToolError
from hpkit.project import project_root

__all__ = ["FOLDER", "PAGE", "Refusal", "depended_rules", "refusals", "refusals_page"]

FOLDER: Final = "local/hpkit_local/aws"
RULES_DATA: Final = "tests/aws_rules.yaml"
PAGE: Final = "docs/reference/aws-refusals.md"
# What is raised there and isn't an answer of AWS: mistakes in starting the endpoint, errors of its controllers and its
# own checks, and operations that it doesn't implement.
_NOT_OF_AWS: Final = frozenset({"EndpointError", "RequeueAfter", "WrongTypeError", "ControllerError", "unsupported"})
# Functions whose errors are faults that somebody asked for, or defects of the endpoint.
_FAULTS: Final = frozenset({"_inject", "_guarded", "_check_answer"})
# The functions that make an error for others to raise, and its code.
_HELPERS: Final = {"refuse": "ValidationException", "_refuse": "ValidationException", "busy": "ConflictException"}
_BY_CALLER: Final = "that of the operation"
_CODE: Final = re.compile(r"[A-Z][A-Za-z.]+")
_SOURCE: Final = re.compile(r" *# (Source|Inferred from): (https://\S+)")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One statement that refuses: its file and first line, the code where it stands there, and how well it is known."""

    file: str
    line: int
    code: str
    documented: bool


def refusals() -> list[Refusal]:
    """Return every refusal of the local AWS endpoint, in the order of its code.

    Raises ToolError for one without a source.
    """
    root = project_root() / FOLDER
    files = [file for file in sorted(root.rglob("*.py")) if "resources" not in str(file.relative_to(root))]
    return [refusal for file in files for refusal in _of_file(file, str(file.relative_to(root)))]


def _of_file(path: Path, name: str) -> Iterator[Refusal]:
    text = path.read_text(encoding="utf-8")
    tree, lines = ast.parse(text), text.splitlines()
    constants = _strings(tree)
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef) or function.name in _FAULTS:
            continue
        begin = min([function.lineno, *(each.lineno for each in function.decorator_list)])
        for node in _own_nodes(function):
            if not isinstance(node, ast.Raise) or not isinstance(node.exc, ast.Call):
                continue
            if ast.unparse(node.exc.func) in _NOT_OF_AWS:
                continue
            source = _SOURCE.match(lines[node.lineno - 2]) or _SOURCE.match(lines[begin - 2])
            if source is None:
                raise ToolError(
                    f"{FOLDER}/{name}:{node.lineno} has no source: add `# Source: <URL>` above it or its function"
                )
            yield Refusal(name, node.lineno, _code(node.exc, constants), source[1] == "Source")


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield what is in a function and not in one inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef):
            waiting = [*ast.iter_child_nodes(node), *waiting]


def _code(call: ast.Call, constants: dict[str, str]) -> str:
    name = ast.unparse(call.func)
    texts = [constants.get(ast.unparse(argument), _constant(argument)) for argument in call.args]
    made = _BY_CALLER if name == "ServiceError" else name.removesuffix("Error")
    return next((text for text in texts if _CODE.fullmatch(text)), _HELPERS.get(name, made))


def _strings(tree: ast.Module) -> dict[str, str]:
    """Return names that a module assigns a text to."""
    assigned = [node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign)]
    targets = [(node.target if isinstance(node, ast.AnnAssign) else node.targets[0], node.value) for node in assigned]
    return {ast.unparse(target): text for target, value in targets if (text := _constant(value))}


def _constant(node: ast.expr | None) -> str:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def depended_rules() -> list[dict[str, Any]]:
    """Return the rules of AWS that plan, program, plugin and preflight depend on, as they are written down."""
    found: list[dict[str, Any]] = yaml.safe_load((project_root() / RULES_DATA).read_text(encoding="utf-8"))
    return found


def refusals_page() -> str:
    """Return docs/reference/aws-refusals.md.

    Raises ToolError for a refusal without a source.
    """
    lines = [
        "# What AWS refuses",
        "",
        "<!-- Generated by `make generate`; do not edit. -->",
        "",
        "This page counts the requests that the local AWS endpoint rejects as AWS does. None was tried on AWS.",
        "*Documented* means that AWS's documentation states it.",
        "*Inferred* means that it follows from the documentation, or from similar operations.",
        f"Comments in `{FOLDER}` name the source of each refusal.",
        "[Limits of the local cloud](local-cloud-limits.md) lists requests that only AWS rejects.",
        "",
        "## Local endpoint",
        "",
        "| service | errors | documented | inferred |",
        "|---|---|---|---|",
        *_service_rows(),
        "",
        "## Plan, program, preflight",
        "",
        f"hpkit's plan, program and preflight follow these AWS rules. Their tests are in `{RULES_DATA}`.",
        "The validator's [rules](rules.md) name their own sources.",
        "",
        "| AWS requires | source |",
        "|---|---|",
        *(f"| {rule['rule']} | {_link(rule['source'])} |" for rule in depended_rules()),
    ]
    return "\n".join(lines) + "\n"


def _service_rows() -> Iterator[str]:
    services: dict[str, list[Refusal]] = {}
    for refusal in refusals():
        folder, _, rest = refusal.file.partition("/")
        services.setdefault(rest.partition("/")[0] if folder == "services" else "all services", []).append(refusal)
    for name, refused in sorted(services.items()):
        codes = sorted({refusal.code for refusal in refused if refusal.code != _BY_CALLER})
        documented = sum(refusal.documented for refusal in refused)
        yield f"| `{name}` | {', '.join(codes)} | {documented} | {len(refused) - documented} |"


def _link(source: str) -> str:
    name = source.rpartition("/")[2].removesuffix(".html").removeprefix("API_")
    return f"[`{name}`]({source})"
