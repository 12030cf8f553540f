"""The allowances that permit a blocked change: one combined text for the whole change, for one file."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from hpkit.changes.decision import GUARDED_TYPES, REPLACE, UNPROTECTED, Allowance, GuardDecision
from hpkit.plan.model import Plan

__all__ = ["with_advice"]


def with_advice(decisions: Sequence[GuardDecision], before: Plan, after: Plan) -> list[GuardDecision]:
    """Return the decisions; those that an allowance lifts state all allowances that the change needs."""
    refused = [each for each in decisions if each.refused]
    needs = [allowance for each in refused for allowance in each.needs]
    first = [allowance for each in refused for allowance in each.first]
    if not needs and not first:
        return list(decisions)
    everything = _text([*needs, *first], after)
    how = (
        f"the preview fails unless the environment has {everything}"
        if not first
        else f"to allow it, first run `pulumi up` with {_text(first, before)} and without this change, then make this "
        f"change with {everything}"
    )
    return [_advised(each, how, everything) if each.refused else each for each in decisions]


def _advised(decision: GuardDecision, how: str, everything: str) -> GuardDecision:
    if not decision.needs and not decision.first:
        return decision
    return replace(decision, fix=f"{decision.fix} and {everything}" if decision.fix else how)


def _text(needed: Iterable[Allowance], plan: Plan) -> str:
    """Return the allowances for the environment, including its existing ones."""
    allowances = dict.fromkeys(needed)
    allowance_keys = {kind for kind, _ in allowances}
    settings = ["`protect: false`"] if UNPROTECTED in allowances else []
    if REPLACE in allowance_keys:
        keys = {name for kind, name in allowances if kind == REPLACE} | {*plan.spec.allow_replace}
        settings.append(f"`{REPLACE}: [{', '.join(key for key in GUARDED_TYPES.values() if key in keys)}]`")
    deletions = allowance_keys - {REPLACE, UNPROTECTED[0]}
    if deletions:
        written = plan.spec.allow_delete.model_dump(by_alias=True)
        names = {
            allow_key: [*dict.fromkeys([*existing, *(name for other, name in allowances if other == allow_key)])]
            for allow_key, existing in written.items()
        }
        listed = ", ".join(f"{kind}: [{', '.join(own)}]" for kind, own in names.items() if own)
        settings.append(f"`allowDelete: {{{listed}}}`")
    return " and ".join(settings)
