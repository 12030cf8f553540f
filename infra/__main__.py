"""The program: read the stack's organization, check it whole, and only then register its resources."""

import atexit
import gc
import os
from urllib.parse import urlsplit

import pulumi

from hpkit.checks import Finding
from hpkit.components import build
from hpkit.errors import SelectionError
from hpkit.plan.endpoint import documentation_ranges
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
    plan = next(iter(loaded.plans.values()))
    documented = documentation_ranges(plan.spec.eks.endpoint.public_cidrs)
    if documented and not _is_local():
        raise pulumi.RunError(
            f"publicCidrs of {stack} in {loaded.file} has {', '.join(documented)}, which is for documents (RFC 5737) "
            "and nobody's, so nobody would reach the Kubernetes API: nothing was registered. Write the addresses that "
            "the internet sees of you (curl https://checkip.amazonaws.com)"
        )
    return plan


def _is_local() -> bool:
    """Say whether this goes to the local cloud, whose AWS endpoint is on this machine."""
    return urlsplit(os.environ.get("AWS_ENDPOINT_URL", "")).hostname in ("127.0.0.1", "localhost", "::1")


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
