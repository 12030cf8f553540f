"""The program: read the stack's organization, check it whole, and only then register its resources."""

import atexit
import gc
import os
from collections.abc import Iterator

import pulumi

from hpkit.catalog import dependencies_chart
from hpkit.charts.package import ensure_package
from hpkit.checks import Finding
from hpkit.components import build
from hpkit.errors import SelectionError, ToolError
from hpkit.plan.endpoint import documentation_ranges
from hpkit.plan.model import Plan
from hpkit.project import is_local, load_stack, project_root


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
    # On AWS all that is missing is said at once; on the local cloud it goes on.
    missing = [*missing_ranges(plan), *missing_chart(plan)]
    if missing:
        raise pulumi.RunError("\n".join([*missing, "Nothing was registered"]))
    return plan


def missing_ranges(plan: Plan) -> Iterator[str]:
    """Say which ranges of the Kubernetes API are for documents, and so nobody's."""
    documented = documentation_ranges(plan.spec.eks.endpoint.public_cidrs)
    if documented and not is_local(os.environ):
        yield (
            f"publicCidrs of {plan.stack} has {', '.join(documented)}, which is for documents (RFC 5737) and nobody's, "
            "so nobody would reach the Kubernetes API. Write the addresses that the internet sees of you "
            "(curl https://checkip.amazonaws.com)"
        )


def missing_chart(plan: Plan) -> Iterator[str]:
    """Put the kit's chart where the engine takes it from, or say why it is not to be had.

    The local cloud records the chart where it cannot be installed, and says so.
    """
    if not plan.spec.cluster.dependencies.is_kits:
        return
    try:
        package = ensure_package(dependencies_chart(), project_root(), say=pulumi.log.info)
    except ToolError as error:
        if not is_local(os.environ):
            yield str(error)
            return
        pulumi.log.warn(
            f"{error} The local cloud goes on without the chart; on AWS this run would end here, since nodes "
            "without it have no device plugins and no health monitoring agent"
        )
        return
    if not package.is_pinned:
        pulumi.log.warn(
            f"{package.path.name}: from the folder that HPKIT_MIRROR names, and not what the kit pins (contents "
            f"{package.contents[:12]}…, pinned {dependencies_chart().package[:12]}…)"
        )


def text(finding: Finding) -> str:
    """Return a finding in one line, its place first."""
    file = os.path.relpath(finding.file, project_root())
    place = f"{file}:{finding.line}:{finding.column}"
    return f"{place}: {finding.rule} {finding.path}: {finding.message}. {finding.fix}"


# A run lives for seconds and gives nothing back: looking for garbage, and once more at the end, would cost as much
# as importing what it is looked for in.
gc.disable()
atexit.register(gc.freeze)
# The SDK tells the engine of four or five steps of each resource, and waits for the answer each time, whether or not
# `--debug` is there to show them: a tenth of a run. HPKIT_DEBUG=1 brings them back.
if os.environ.get("HPKIT_DEBUG") != "1":
    pulumi.log.debug = lambda *_, **__: None
for name, value in build(gate(pulumi.get_stack())).items():
    pulumi.export(name, value)
