"""The page of what the local AWS endpoint refuses: each refusal in its code, with its source and the test of it."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from hpkit.errors import ToolError
from hpkit.project import project_root

__all__ = [
    "CERTAINTIES",
    "DATA",
    "FOLDER",
    "PAGE",
    "Proof",
    "Refusal",
    "depended_rules",
    "proofs",
    "refusals",
    "refusals_page",
]

FOLDER: Final = "local/hpkit_local/aws"
DATA: Final = "tests/local/aws/refusals.yaml"
RULES_DATA: Final = "tests/aws_rules.yaml"
PAGE: Final = "docs/reference/aws-refusals.md"
# How well a refusal is known; nothing here was tried on AWS.
CERTAINTIES: Final = ("documented", "inferred")
# What is raised there and isn't an answer of AWS: mistakes in starting the endpoint, errors of its controllers and its
# own checks, and operations that it doesn't implement.
_NOT_OF_AWS: Final = frozenset({"EndpointError", "RequeueAfter", "WrongTypeError", "ControllerError", "unsupported"})
# Functions whose errors are faults that somebody asked for, or defects of the endpoint.
_FAULTS: Final = frozenset({"_inject", "_guarded", "_check_answer"})
# The functions that make an error for others to raise, and its code.
_HELPERS: Final = {"refuse": "ValidationException", "_refuse": "ValidationException", "busy": "ConflictException"}
_BY_CALLER: Final = "that of the operation"
_CODE: Final = re.compile(r"[A-Z][A-Za-z.]+")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One place that refuses: file and function, the code where it stands there, and the message with `…` for values.

    line and end are those of the statement.
    """

    file: str
    function: str
    code: str
    message: str
    line: int
    end: int

    @property
    def key(self) -> str:
        """What names it in the data: stays when lines move."""
        return f"{self.file}:{self.function}: {self.message}"


@dataclass(frozen=True, slots=True)
class Proof:
    """The source of a refusal, how certain it is, and the test that fails without it (or why no test exists)."""

    source: str
    certainty: str
    test: str
    untested: str


def refusals() -> list[Refusal]:
    """Return every refusal of the local AWS endpoint, in the order of its code."""
    root = project_root() / FOLDER
    files = [file for file in sorted(root.rglob("*.py")) if "resources" not in str(file.relative_to(root))]
    return [refusal for file in files for refusal in _of_file(file, str(file.relative_to(root)))]


def proofs() -> dict[str, Proof]:
    """Return the recorded facts of each refusal, by its key.

    Raises ToolError for duplicates.
    """
    entries: list[dict[str, Any]] = yaml.safe_load((project_root() / DATA).read_text(encoding="utf-8"))
    proofs_by_key: dict[str, Proof] = {}
    for group in entries:
        for message, entry in group["refusals"].items():
            key = f"{group['at']}: {message}"
            if key in proofs_by_key:
                raise ToolError(f"{DATA} has {key!r} twice: remove one")
            fields = {"test": entry} if isinstance(entry, str) else entry
            proofs_by_key[key] = Proof(
                fields.get("source", group["source"]),
                fields.get("known", group["known"]),
                fields.get("test", ""),
                fields.get("untested", ""),
            )
    return proofs_by_key


def _of_file(path: Path, name: str) -> Iterator[Refusal]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    constants = _strings(tree.body)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name not in _FAULTS:
            for node in _own_nodes(function):
                if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                    known = {**constants, **_strings(function.body, before=node.lineno)}
                    yield from _of_call(node, node.exc, known, (name, function.name))


def _own_nodes(function: ast.FunctionDef) -> Iterator[ast.AST]:
    """Yield what is in a function and not in one inside it."""
    waiting: list[ast.AST] = list(function.body)
    while waiting:
        node = waiting.pop(0)
        yield node
        if not isinstance(node, ast.FunctionDef):
            waiting = [*ast.iter_child_nodes(node), *waiting]


def _of_call(node: ast.Raise, call: ast.Call, constants: dict[str, str], place: tuple[str, str]) -> Iterator[Refusal]:
    name = ast.unparse(call.func)
    if name in _NOT_OF_AWS:
        return
    texts = [text for argument in call.args if (text := _text(argument, constants))]
    codes = [text for text in texts if _CODE.fullmatch(text)]
    messages = [text for text in texts if not _CODE.fullmatch(text)]
    made = _BY_CALLER if name == "ServiceError" else name.removesuffix("Error")
    code = codes[0] if codes else _HELPERS.get(name, made)
    yield Refusal(*place, code, messages[0] if messages else name, node.lineno, node.end_lineno or node.lineno)


def _strings(body: list[ast.stmt], before: int | None = None) -> dict[str, str]:
    """Return names that statements assign a text to; before a given line, the last one counts."""
    assigned: dict[int, tuple[str, str]] = {}
    for node in (each for statement in body for each in ast.walk(statement)):
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            target = node.target if isinstance(node, ast.AnnAssign) else node.targets[0]
            text = _text(node.value, {})
            if isinstance(target, ast.Name) and text and (before is None or node.lineno < before):
                assigned[node.lineno] = (target.id, text)
    return {name: text for _, (name, text) in sorted(assigned.items())}


def _text(node: ast.expr, constants: dict[str, str]) -> str:
    """Return a text with `…` for what is filled in, empty for what is none."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.Name):
        return constants.get(node.id, "")
    if isinstance(node, ast.JoinedStr):
        parts = (_text(each, constants) if isinstance(each, ast.Constant) else "…" for each in node.values)
        return re.sub("…+", "…", "".join(parts))
    return ""


def depended_rules() -> list[dict[str, Any]]:
    """Return the rules of AWS that plan, program, plugin and preflight depend on, as they are written down."""
    found: list[dict[str, Any]] = yaml.safe_load((project_root() / RULES_DATA).read_text(encoding="utf-8"))
    return found


def refusals_page() -> str:
    """Return docs/reference/aws-refusals.md.

    Raises ToolError for a refusal of which nothing is written down.
    """
    proof_by_key = proofs()
    missing = [refusal.key for refusal in refusals() if refusal.key not in proof_by_key]
    if missing:
        raise ToolError(f"{DATA} has no entry for {missing[0]!r}: add its source and its test")
    lines = [
        "# What AWS refuses",
        "",
        "<!-- Generated by `make generate`; do not edit. -->",
        "",
        "This page counts the requests that the local AWS endpoint rejects as AWS does. None was tried on AWS.",
        "*Documented* means that AWS's documentation states it.",
        "*Inferred* means that it follows from the documentation, or from similar operations.",
        f"Each refusal's message, source and test are in `{DATA}`; tests fail when one is missing.",
        "[Limits of the local cloud](local-cloud-limits.md) lists requests that only AWS rejects.",
        "",
        "## Local endpoint",
        "",
        "| service | errors | documented | inferred |",
        "|---|---|---|---|",
        *_service_rows(proof_by_key),
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


def _service_rows(proof_by_key: dict[str, Proof]) -> Iterator[str]:
    services: dict[str, list[Refusal]] = {}
    for refusal in refusals():
        folder, _, rest = refusal.file.partition("/")
        services.setdefault(rest.partition("/")[0] if folder == "services" else "all services", []).append(refusal)
    for name, refused in sorted(services.items()):
        codes = sorted({refusal.code for refusal in refused if refusal.code != _BY_CALLER})
        counts = [sum(proof_by_key[refusal.key].certainty == level for refusal in refused) for level in CERTAINTIES]
        yield f"| `{name}` | {', '.join(codes)} | {counts[0]} | {counts[1]} |"


def _link(source: str) -> str:
    name = source.rpartition("/")[2].removesuffix(".html").removeprefix("API_")
    return f"[`{name}`]({source})"
