"""The program: read the stack's organization, check it whole, and only then register what it comes to."""

import atexit
import gc
import os

import click
import pulumi

from hpkit.checks import Finding
from hpkit.cli.inputs import project_root, resolve
from hpkit.cli.validate import findings_of
from hpkit.components import build
from hpkit.plan.derive import derive
from hpkit.plan.model import Plan


def gate(stack: str) -> Plan:
    """Return the plan of a stack; every finding becomes a diagnostic, and an error ends the run before it begins."""
    try:
        loaded = resolve((), (stack,))[0]
    except click.UsageError as error:
        raise pulumi.RunError(error.message) from None
    findings = findings_of(loaded)
    for finding in findings:
        (pulumi.log.error if finding.severity == "error" else pulumi.log.warn)(text(finding))
    errors = sum(finding.severity == "error" for finding in findings)
    organization = loaded.parsed.organization
    if errors or organization is None or loaded.environment is None:
        raise pulumi.RunError(f"{errors} errors in {loaded.file}: nothing was registered")
    return derive(organization, loaded.environment)


def text(finding: Finding) -> str:
    """Return a finding in one line, its place first."""
    file = os.path.relpath(finding.file, project_root())
    place = f"{file}:{finding.line}:{finding.column}"
    return f"{place}: {finding.rule} {finding.path}: {finding.message}. {finding.fix}"


# A run lives for seconds and gives nothing back: looking for garbage, and once more at the end, would cost as much
# as importing what it is looked for in.
gc.disable()
atexit.register(gc.freeze)
for name, value in build(gate(pulumi.get_stack())).items():
    pulumi.export(name, value)
