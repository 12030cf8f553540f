"""The two files of an adoption, from a live platform: the organization file and the import file."""

import datetime
from dataclasses import dataclass

import yaml

from hpkit.adopt.imports import Imports, imports_of
from hpkit.adopt.live_platform import LivePlatform, Remarks
from hpkit.adopt.organization import Adopted, adopt
from hpkit.checks import Finding, check
from hpkit.config import parse, read_text
from hpkit.plan.derive import derive
from hpkit.program.recording import Answers, record

__all__ = ["Prepared", "answers_of", "prepare"]


@dataclass(frozen=True, slots=True)
class Prepared:
    """text: the organization file; findings: of its validation; imports: None where it has errors."""

    text: str
    remarks: Remarks
    findings: tuple[Finding, ...]
    imports: Imports | None

    @property
    def errors(self) -> list[Finding]:
        """Findings that prevent the program from registering anything."""
        return [each for each in self.findings if each.severity == "error"]


def prepare(live: LivePlatform, *, organization: str, environment: str, file: str, today: datetime.date) -> Prepared:
    """Return the files of a live platform; file: the name that findings show."""
    adopted = adopt(live, organization=organization, environment=environment)
    text = _text(adopted, live.arn)
    parsed = parse(read_text(text.encode()))
    findings = tuple(check(parsed, file=file, today=today))
    if parsed.organization is None:
        return Prepared(text, adopted.remarks, findings, None)
    recording = record(derive(parsed.organization, environment), answers_of(live))
    return Prepared(text, adopted.remarks, findings, imports_of(recording, live))


def answers_of(live: LivePlatform) -> Answers:
    """Return the account and EKS cluster of a live platform, for recording its program."""
    return Answers(account=live.account, partition=live.partition, eks=live.eks)


def _text(adopted: Adopted, arn: str) -> str:
    remarks = adopted.remarks
    lines = ["# yaml-language-server: $schema=./schema.json", "#", f"# Adopted from {arn}."]
    lines += [f"# Unchanged, and not in this file: {what}." for what in remarks.unmanaged]
    lines += [f"# Assumed, because no API returns it: {what}." for what in remarks.assumed]
    lines += [f"# The first `pulumi up` changes: {what}." for what in remarks.changes]
    body = yaml.safe_dump(adopted.data, sort_keys=False, allow_unicode=True, width=110, default_flow_style=None)
    return "\n".join(lines) + "\n" + body
