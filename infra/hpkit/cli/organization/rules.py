"""`hpkit catalog rules`: what the validator and the policy pack demand, and why."""

import datetime
import json
import re
from collections.abc import Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any

import click
from pydantic import Field

from hpkit.checks import RULES, rule_by_id
from hpkit.checks.eks import offered_versions
from hpkit.checks.rule import Rule
from hpkit.cli.common.completion import complete_rules
from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, folded, output_options
from hpkit.cli.common.tables import console, grid
from hpkit.config.messages.suggest import rule_id as written
from hpkit.errors import InputError
from hpkit.project import today
from hpkit.text.document import Document
from hpkit.text.formatting import listing
from hpkit.text.spelling import near

if TYPE_CHECKING:
    from hpkit_policies.model import Policy

__all__ = ["RuleList", "command", "examples"]


class _ExampleFinding(Document):
    path: str
    message: str
    fix: str


class _Example(Document):
    diff: list[str] = Field(description="From lines that break the rule to lines that pass.")
    finding: _ExampleFinding


class _Rule(Document):
    id: str
    severity: str
    title: str
    source: str
    waivable: bool
    example: _Example | None = Field(None, description="Only if you ask for one rule.")
    parameters: dict[str, str] = Field({}, description="Name → meaning; only of policies.")


class RuleList(Document):
    """Rules of the validator."""

    items: list[_Rule]


def examples() -> dict[str, Any]:
    """Return rule ID → its example: failing and passing lines as a diff, and the rule's finding.

    EKS002 lists the Kubernetes versions that are supported today, not those of the day of the release.
    """
    text = resources.files("hpkit.checks").joinpath("examples.json").read_text(encoding="utf-8")
    loaded: dict[str, Any] = json.loads(text)
    versions, finding = offered_versions(today()), loaded["EKS002"]["finding"]
    finding["message"] = re.sub(r"\(offered: .*?\)", f"(offered: {listing(versions, 20)})", finding["message"])
    return loaded


@click.command("rules")
@click.argument("rule_id", required=False, metavar="[RULE]", shell_complete=complete_rules)
@output_options("text", "json", documents=("hpkit.cli.organization.rules:RuleList",))
def command(rule_id: str | None) -> Output:
    """List the validator's rules, or explain one with an example that fails and one that passes.

    RULE is the ID of a rule, a prefix such as CAP, or the name of a policy. The severity is that of the rule's most
    severe finding.
    """
    begin, ids = (rule_id or "").upper(), [each.id for each in RULES]
    meant = written(begin)
    family = [rule for rule in RULES if rule.id.startswith(begin)]
    if rule_id is None or (family and meant not in ids):
        return Output(
            text=lambda: _print_list(family),
            json=lambda: json_document(RuleList(items=[_Rule.model_validate(rule) for rule in family])),
        )
    rule = rule_by_id(rule_id.upper())
    if rule is None:
        from hpkit_policies.pack import POLICIES

        policies = {policy.name: policy for policy in POLICIES}
        if policy := policies.get(rule_id):
            return Output(
                text=lambda: _policy_text(policy), json=lambda: json_document(RuleList(items=[_policy(policy)]))
            )
        likely = meant if meant in ids else near(meant or begin, ids) or near(rule_id, list(policies))
        prefix = f" {begin[:3]}" if any(each.startswith(begin[:3]) for each in ids) else ""
        hint = f"did you mean {likely}?" if likely else f"run `hpkit catalog rules{prefix}` for a list"
        raise InputError(f"no rule {rule_id}; {hint}")
    return Output(
        text=lambda: _explained(rule),
        json=lambda: json_document(
            RuleList(items=[_Rule.model_validate(rule).model_copy(update={"example": examples()[rule.id]})])
        ),
    )


def _print_list(rules: Sequence[Rule]) -> None:
    head = ("rule", "severity", "requirement")
    table = grid(*head, names=head)
    for rule in rules:
        table.add_row(rule.id, rule.severity, rule.title)
    console().print(table)


def _explained(rule: Rule) -> str:
    example = examples()[rule.id]
    finding = example["finding"]
    waiver = {"rule": rule.id, "path": finding["path"], "reason": "TEXT", "until": _waiver_end()}
    return "\n".join(
        [
            *(f"{rule.id} ({rule.severity}, {_waiver(rule.waivable)})", rule.title, f"Source: {rule.source}", ""),
            "Fails with the lines marked `-`, passes with the lines marked `+`:",
            *(f"    {line}" for line in example["diff"]),
            folded(f"{finding['path']}: {finding['message']}. {finding['fix']}", "    ", "  → "),
            *_to_waive(rule.waivable, "the environment, with your finding's path", f"waivers: [{json.dumps(waiver)}]"),
        ]
    )


def _waiver_end() -> str:
    return (today() + datetime.timedelta(days=90)).isoformat()


def _to_waive(waivable: bool, where: str, waiver: str) -> list[str]:
    return ["", f"To waive it, add to {where}:", f"    {waiver}"] if waivable else []


def _waiver(waivable: bool) -> str:
    return "can be waived" if waivable else "can't be waived"


def _policy(policy: "Policy") -> _Rule:
    return _Rule(
        id=policy.name,
        severity="error" if policy.level == "mandatory" else "warning",
        title=policy.description,
        source="policy pack",
        waivable=policy.waivable,
        parameters={parameter.name: parameter.description for parameter in policy.parameters},
    )


def _policy_text(policy: "Policy") -> str:
    parameters = (
        folded(f"{parameter.name} (default {json.dumps(parameter.default)}): {parameter.description}", "    ", "  ")
        for parameter in policy.parameters
    )
    waiver = {"resource": "NAME", "reason": "TEXT", "until": _waiver_end()}
    file = "stacks/ORGANIZATION.policy.json"
    return "\n".join(
        [
            f"{policy.name} (policy, {policy.level}, {_waiver(policy.waivable)})",
            policy.description,
            *(["", f"Parameters, which you can set in {file}:"] if policy.parameters else []),
            *parameters,
            *_to_waive(
                policy.waivable, f"{file}, with the resource's name", json.dumps({policy.name: {"waivers": [waiver]}})
            ),
        ]
    )
