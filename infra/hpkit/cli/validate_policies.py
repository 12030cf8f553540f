"""What the policy pack says of stacks before any engine runs, as findings of their files."""

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from hpkit.checks import Finding
from hpkit.cli.extras import need
from hpkit.cli.policy_settings import policy_settings
from hpkit.errors import InputError
from hpkit.plan.model import Plan
from hpkit.plan.names import short_type
from hpkit.project import Loaded

if TYPE_CHECKING:
    from policies.recorded import PolicyFinding

__all__ = ["policy_findings"]


def policy_findings(loaded: Loaded) -> list[Finding]:
    """Return what the pack finds in every environment of a file; mandatory policies are errors.

    Raises InputError for a file of settings that is wrong.
    """
    need("pulumi_policy", what="`hpkit validate --policies`")
    settings = _settings(loaded)
    return [finding for plan in loaded.plans.values() for finding in _findings(loaded, plan, settings)]


def _settings(loaded: Loaded) -> Mapping[str, Any]:
    """Return what the organization sets."""
    from policies.configuration import problems, unknown_teams

    organization = loaded.parsed.organization
    found = None if organization is None else policy_settings(organization.organization)
    if found is None:
        return {}
    name, text = found
    shared = {
        spec.governance.shared_pool.name
        for spec in (organization.environments.values() if organization else ())
        if spec.governance and spec.governance.shared_pool
    }
    teams = {team.name for team in organization.teams} | shared if organization else set()
    wrong = problems(text) or unknown_teams(text, teams)
    if wrong:
        raise InputError("\n".join(f"{name}: {problem}" for problem in wrong))
    settings: dict[str, Any] = json.loads(text)
    return settings


def _findings(loaded: Loaded, plan: Plan, settings: Mapping[str, Any]) -> Iterator[Finding]:
    from hpkit.recording import record
    from policies.recorded import findings_of, resources_of

    mark = loaded.document.locate(("environments", plan.environment))
    for found in findings_of(resources_of(record(plan).resources.values()), settings):
        yield Finding(
            rule=found.policy,
            severity="warning" if found.level == "advisory" else "error",
            path=_subject(found, plan),
            file=loaded.file,
            line=mark.line,
            column=mark.column,
            message=found.message,
            fix=found.fix,
        )


def _subject(found: "PolicyFinding", plan: Plan) -> str:
    of = f" {short_type(found.type)} {found.name}" if found.type else ""
    return f"{plan.stack}{of}"
