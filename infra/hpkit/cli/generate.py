"""`hpkit generate`: the files of this repository that are made from models, rules and their cases."""

import difflib
import json
import sys
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import click

from hpkit.checks import RULES
from hpkit.checks.rule import Rule
from hpkit.cli import deployer_policy
from hpkit.cli.cases import Case, cases, file_of
from hpkit.cli.extras import need
from hpkit.cli.generate_catalog import service_model_text
from hpkit.cli.generate_replacing import replacing_text
from hpkit.cli.schema import schema_text
from hpkit.config.reference import reference
from hpkit.errors import InputError
from hpkit.project import project_root

__all__ = ["FILES", "command"]

_CONTEXT_LINES = 2


def _example(case: Case, other: Case) -> dict[str, Any]:
    """Return one case with the lines in which it differs from its counterpart, and what the rule finds in it."""
    return {
        "file": file_of(case.rule),
        "case": case.name,
        "happy": case.passes,
        "shown": _differing_lines(case.text, other.text),
        "findings": [finding.as_dict() for finding in case.findings() if finding.rule == case.rule],
    }


def _differing_lines(text: str, other: str) -> list[str]:
    """Return the lines around every difference, `…` where lines are left out."""
    own = text.splitlines()
    matcher = difflib.SequenceMatcher(a=other.splitlines(), b=own, autojunk=False)
    keep: set[int] = set()
    for tag, _, _, first, last in matcher.get_opcodes():
        if tag != "equal":
            keep.update(range(max(0, first - _CONTEXT_LINES), min(len(own), last + _CONTEXT_LINES)))
    shown: list[str] = []
    previous = -1
    for number in sorted(keep):
        if number > previous + 1:
            shown.append("…")
        shown.append(own[number])
        previous = number
    return shown


@cache
def examples() -> dict[str, list[dict[str, Any]]]:
    """Return rule id → examples, from the cases; the first that passes is the counterpart of those that fail."""
    found: dict[str, list[dict[str, Any]]] = {}
    for rule in RULES:
        given = cases(rule.id)
        first, passing = given[0], next(case for case in given if case.passes)
        found[rule.id] = [_example(case, first if case.passes else passing) for case in given]
    return found


def _examples_text() -> str:
    return json.dumps(examples(), indent=1, ensure_ascii=False) + "\n"


def _rules_page() -> str:
    lines = [
        "# Rules of `hpkit validate`",
        "",
        "This page is generated from the rules and their cases. `hpkit rules <id>` shows the same. Lines are those of",
        "[the organization that all cases change](../../tests/stacks/base.yaml), changed as the case says.",
        "",
        "| rule | severity | demands |",
        "|---|---|---|",
    ]
    lines += [f"| [{rule.id}](#{rule.id.lower()}) | {rule.severity} | {rule.title} |" for rule in RULES]
    shown = examples()
    for rule in RULES:
        lines += ["", *_rule_section(rule, shown[rule.id])]
    return "\n".join(lines) + "\n"


def _rule_section(rule: Rule, shown: list[dict[str, Any]]) -> list[str]:
    waiver = "Can be waived, with reason and end date." if rule.waivable else "Cannot be waived."
    lines = [f"## {rule.id}", "", f"{rule.title} ({rule.severity}) {waiver} Source: {rule.source}."]
    for example in shown:
        lines += [
            "",
            f"{'Passes' if example['happy'] else 'Fails'}: {example['case']}, `{example['file']}`",
            "",
            "```yaml",
        ]
        lines += [*example["shown"], "```"]
        lines += [
            f"\n> line {finding['line']}, `{finding['path']}`: {finding['message']}. {finding['fix']}"
            for finding in example["findings"]
        ]
    return lines


FILES: dict[str, Callable[[], str]] = {
    "infra/hpkit/catalog/data/service_model.json": service_model_text,
    "infra/hpkit/catalog/data/replacing.json": replacing_text,
    "stacks/schema.json": schema_text,
    "docs/reference/config.md": reference,
    "infra/hpkit/checks/examples.json": _examples_text,
    "docs/reference/rules.md": _rules_page,
    **deployer_policy.FILES,
}


@click.command("generate")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 when a file is out of date.")
def command(only_check: bool) -> None:
    """Write the generated files of this repository, or check them."""
    if not (project_root() / "infra" / "hpkit").is_dir():
        raise InputError(f"{project_root()} is no clone of hpkit's own repository; its files are made in one alone")
    need("local", what="hpkit generate")
    from hpkit.cli.generate_resources import resource_files

    # The program is made of these classes, and what is told by recording it needs them as they will be.
    stale = _written(resource_files(), only_check=only_check)
    if not (only_check and stale):
        from hpkit.cli.generate_urns import urn_files

        stale += _written({name: make() for name, make in FILES.items()} | urn_files(), only_check=only_check)
    if only_check and stale:
        click.echo(f"out of date: {', '.join(stale)}; run `hpkit generate`", err=True)
        sys.exit(1)
    if not stale:
        click.echo("all generated files are up to date")


def _written(files: Mapping[str, str], *, only_check: bool) -> list[str]:
    """Return the names of files that are out of date, and write them unless they are only to be checked."""
    stale = []
    for name, text in files.items():
        path = project_root() / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not only_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.new")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
            click.echo(f"wrote {name}")
    return stale
