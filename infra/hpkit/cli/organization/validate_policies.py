"""The policy pack's reports about stacks before any engine runs, as findings of their files."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from hpkit.catalog import PLACEHOLDER_ACCOUNTS
from hpkit.checks import Finding
from hpkit.checks.rule import Context
from hpkit.config import Document, Path, format_path
from hpkit.errors import InputError
from hpkit.plan.endpoint import documentation_ranges
from hpkit.plan.model import Plan
from hpkit.plan.registered import Registered, config_path
from hpkit.project import Loaded, policy_file, policy_settings
from hpkit.text.formatting import listing

if TYPE_CHECKING:
    from hpkit.program.recording import Recording
    from hpkit_policies.recorded import PolicyFinding

__all__ = ["checked_settings", "placeholder_findings", "policy_findings", "stack_findings"]

_IS_PLACEHOLDER: Final = "is a placeholder of the examples"
# Domains for documentation (RFC 2606), and the group of IAM Identity Center in the example enterprise.
_RECEIVERS: Final = re.compile(r"@example\.(?:com|net|org)\Z|\A94482488-3041-7026-18ce-1a1e3c0a2f43\Z")


def policy_findings(loaded: Loaded) -> list[Finding]:
    """Return placeholders, and the pack's reports about every environment, without duplicates.

    Mandatory policies are errors.

    Raises InputError for an invalid policy file.
    """
    organization = loaded.parsed.organization
    if organization is None:
        return []
    from hpkit.program.recording import record

    settings = checked_settings(policy_settings(organization.organization))
    findings_alike: dict[tuple[str, str, str, str], list[Finding]] = defaultdict(list)
    for plan in loaded.plans.values():
        for finding in stack_findings(loaded.file, loaded.document, record(plan), settings):
            findings_alike[finding.rule, finding.severity, finding.message, finding.fix].append(finding)
    return [*placeholder_findings(loaded), *(_listed_once(findings) for findings in findings_alike.values())]


def placeholder_findings(loaded: Loaded) -> list[Finding]:
    """Return a warning about each account of the examples, at its first place; other rules report the rest after it.

    In an environment with an own account, return one about each receiver of the examples.
    """
    organization = loaded.parsed.organization
    places: dict[str, set[Path]] = defaultdict(set)
    ranges: dict[str, dict[str, None]] = defaultdict(dict)
    receivers: dict[Path, str] = {}
    for environment, plan in loaded.plans.items():
        spec = plan.spec
        if organization is None or any(waiver.rule == "ACC004" for waiver in spec.waivers):
            continue
        texts = Context(organization, environment, plan).texts
        left = {place: text for place, text in texts if _RECEIVERS.search(text)}
        if spec.account in PLACEHOLDER_ACCOUNTS:
            places[spec.account] |= {("environments", environment, "account"), *left}
            places[spec.account] |= {place for place, text in texts if spec.account in text}
            ranges[spec.account] |= dict.fromkeys(documentation_ranges(spec.eks.endpoint.public_cidrs))
        else:
            receivers |= left
    accounts = [_account(loaded, account, places[account], list(ranges[account])) for account in places]
    own = "Set your own, or remove it."
    return accounts + [_at(loaded, path, f"{text} {_IS_PLACEHOLDER}", own) for path, text in receivers.items()]


def _account(loaded: Loaded, account: str, places: Set[Path], ranges: Sequence[str]) -> Finding:
    document = loaded.document
    path = min((each for each in places if each[-1] == "account"), key=lambda each: document.locate(each).line)
    lines = sorted({document.locate(place).line for place in places} - {document.locate(path).line})
    others = [f"the values in lines {listing([*map(str, lines)])}"] if lines else []
    others += [f"publicCidrs {cidr}" for cidr in ranges]
    return _at(
        loaded,
        path,
        f"{account} {_IS_PLACEHOLDER}{f', and so are {listing(others)}' if others else ''}; the local cloud accepts "
        "placeholders, but on AWS `pulumi up` fails before it starts",
        "Set your account, in quotes (`aws sts get-caller-identity --query Account` prints it). `hpkit validate` then "
        "reports ARNs of other accounts and documentation ranges.",
    )


def _at(loaded: Loaded, path: Path, message: str, fix: str) -> Finding:
    mark = loaded.document.locate(path)
    place = format_path(path, loaded.document.data)
    return Finding("ACC004", "warning", place, mark.file or loaded.file, mark.line, mark.column, message, fix)


def _listed_once(same: list[Finding]) -> Finding:
    """Return one finding for those of several environments or settings that differ only in their place."""
    first, *others = same
    paths = [path for path in dict.fromkeys(finding.path for finding in others) if path != first.path]
    return replace(first, message=f"{first.message}; the same in {listing(paths)}") if paths else first


def checked_settings(file: tuple[str, str] | None) -> Mapping[str, Any]:
    """Return the settings of a policy file, given its name and text; empty without one.

    Raises InputError for an invalid file.
    """
    from hpkit_policies.configuration import problems

    if file is None:
        return {}
    name, text = file
    wrong = problems(text)
    if wrong:
        raise InputError("\n".join(f"{name}: {problem}" for problem in wrong))
    settings: dict[str, Any] = json.loads(text)
    return settings


def stack_findings(file: str, document: Document, recording: "Recording", settings: Mapping[str, Any]) -> list[Finding]:
    """Return the pack's reports about one environment, each at the setting that it comes from.

    Several reports of one policy about one setting, such as a region that isn't allowed, are one finding.
    """
    from hpkit_policies.recorded import parse_recording, run_policies

    groups: dict[tuple[str, str, str], list[Finding]] = defaultdict(list)
    for violation in run_policies(parse_recording(recording.resources.values()), settings):
        finding = _finding(violation, recording.plan, file, document)
        groups[finding.rule, finding.severity, finding.path].append(finding)
    return [_joined(group) for group in groups.values()]


def _finding(violation: "PolicyFinding", plan: Plan, file: str, document: Document) -> Finding:
    from hpkit_policies.model import POLICY_FILE

    cause = violation.cause
    resource = None if cause is None else Registered(cause.type, cause.name, cause.urn, cause.props)
    path = _stated(document, config_path(plan, resource, violation.property_path), plan)
    mark = document.locate(path)
    return Finding(
        rule=violation.policy,
        severity="warning" if violation.level == "advisory" else "error",
        path=format_path(path, document.data),
        file=mark.file or file,
        line=mark.line,
        column=mark.column,
        message=violation.message,
        fix=violation.fix.replace(POLICY_FILE, policy_file(plan.organization)),
    )


def _stated(document: Document, path: Path, plan: Plan) -> Path:
    """Return the part of a path that the file declares; at least the environment."""
    value, stated = document.data, 0
    if path[0] == "teams":
        names = [each.get("name") for each in document.data["teams"]]
        path = ("teams", names.index(path[1]), *path[2:])
    for step in path:
        there = step in value if isinstance(value, dict) else isinstance(value, tuple) and step in range(len(value))
        if not there:
            break
        value, stated = value[step], stated + 1
    return path[:stated] or ("environments", plan.environment)


def _joined(group: list[Finding]) -> Finding:
    """Return one finding for several of one policy at one setting: the first, and how many more there are."""
    first, *others = group
    if not others:
        return first
    more = listing([finding.message for finding in others], 2)
    return replace(first, message=f"{first.message}; {more}")
