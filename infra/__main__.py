"""The program: read the stack's organization, check it whole, and only then register its resources."""

import atexit
import gc
import os

import pulumi

from hpkit.checks import Finding
from hpkit.components import build
from hpkit.errors import SelectionError
from hpkit.plan.model import Plan
from hpkit.project import load_stack, project_root


def gate(stack: str) -> Plan:
    """Return the plan of a stack; every finding becomes a diagnostic, and an error ends the run before it begins."""
    try:
        loaded = load_stack(stack)
    except SelectionError as error:
        raise pulumi.RunError(str(error)) from None
    for finding in loaded.findings:
        (pulumi.log.error if finding.severity == "error" else pulumi.log.warn)(text(finding))
    errors = sum(finding.severity == "error" for finding in loaded.findings)
    if errors or not loaded.plans:
        raise pulumi.RunError(f"{errors} errors in {loaded.file}: nothing was registered")
    return next(iter(loaded.plans.values()))


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
