"""The Pulumi program: read the stack's organization file, check all of it, and then register its resources."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import pulumi

from hpkit.catalog import PinnedChart, PublishedChart, dependencies_chart
from hpkit.checks import Finding
from hpkit.errors import UNSUPPORTED, SelectionError, ToolError
from hpkit.plan.dependencies import charts_of
from hpkit.plan.endpoint import documentation_ranges
from hpkit.plan.model import Plan
from hpkit.program.charts.package import MIRROR, ensure_package
from hpkit.program.components import build
from hpkit.program.components.common.outputs import TeamOutputs
from hpkit.project import described_by, is_local, load_stack, problems_with_others, project_root
from hpkit.text.printable import printable_lines

__all__ = ["Platform", "gate", "run"]

_FRAMES: Final = 10  # the innermost: up to seven of Pulumi's SDK, and those that name the component


def gate(stack: str) -> Plan:
    """Return the plan of a stack. Report each finding as a diagnostic; raise RunError before anything is registered."""
    if str(sys.platform) == "win32":
        raise pulumi.RunError(UNSUPPORTED)
    try:
        loaded = load_stack(stack)
    except SelectionError as error:
        raise pulumi.RunError(printable_lines(str(error))) from None
    findings = [*loaded.listed_findings, *problems_with_others(loaded)]
    for finding in findings:
        (pulumi.log.error if finding.severity == "error" else pulumi.log.warn)(text(finding))
    errors = sum(finding.severity == "error" for finding in findings)
    if errors or not loaded.plans:
        raise pulumi.RunError(f"{errors} errors in {loaded.file}: nothing was registered")
    plan = next(iter(loaded.plans.values()))
    # On AWS, everything that is missing is reported at once; on the local cloud, the run continues.
    missing = [*missing_ranges(plan), *missing_charts(plan)]
    if missing:
        raise pulumi.RunError(printable_lines("\n".join([*missing, "Nothing was registered"])))
    return plan


def missing_ranges(plan: Plan) -> Iterator[str]:
    """Yield a message if publicCidrs has documentation ranges."""
    documented = documentation_ranges(plan.spec.eks.endpoint.public_cidrs)
    if documented and not is_local(os.environ):
        yield (
            f"publicCidrs of {plan.stack} has {', '.join(documented)}, a documentation range (RFC 5737) that admits "
            "no one. Use the public addresses from which you connect (`curl https://checkip.amazonaws.com` prints "
            "yours)"
        )


def missing_charts(plan: Plan) -> Iterator[str]:
    """Put hpkit's charts where the engine reads them, or yield why a pinned chart isn't available.

    The local cloud records a chart that it can't install, and reports it.
    """
    if plan.dependencies is not None and plan.spec.cluster.dependencies.is_kits:
        yield from missing_chart(dependencies_chart())
    for chart in charts_of(plan.spec):
        yield from missing_chart(chart)


def missing_chart(pin: PinnedChart | PublishedChart) -> Iterator[str]:
    """Yield why a chart is missing or differs from the pin, unless the local cloud runs without it or uses it."""
    try:
        package = ensure_package(pin, project_root(), say=pulumi.log.info)
    except ToolError as error:
        if not is_local(os.environ):
            yield str(error)
        # The fake Kubernetes plugin reports it once, when it creates the release.
        return
    if package.is_pinned:
        return
    problem = (
        f"{pin.published_file} in {MIRROR} isn't the chart that hpkit was tested with: its content hash "
        f"is {package.contents}, and the pin is {pin.package}. On a machine with internet access, run "
        f"`hpkit catalog fetch-chart --to FOLDER`, and copy that file; or unset {MIRROR}"
    )
    if is_local(os.environ):
        pulumi.log.warn(f"{problem}. The local cloud uses it anyway; on AWS, this run would fail")
    else:
        yield problem


def text(finding: Finding) -> str:
    """Return a finding as one line that starts with its place."""
    file = os.path.relpath(finding.file, project_root())
    place = f"{file}:{finding.line}:{finding.column}"
    return f"{place}: {finding.rule} {finding.path}: {finding.message}. {finding.fix}"


class Platform(pulumi.ComponentResource):
    """The platform of one environment, as a component of a Pulumi program that you write.

    Use it for new stacks only. A stack that used `run()` has resources with other URNs, so its guards reject it.
    Aliases don't help, because the engine keeps two entries for a resource that the program only reads.
    """

    cluster_arn: pulumi.Output[str]
    eks_cluster_name: pulumi.Output[str]
    teams: pulumi.Output[dict[str, TeamOutputs]]

    def __init__(
        self, name: str, *, organization: str, environment: str, opts: pulumi.ResourceOptions | None = None
    ) -> None:
        """Register the platform that `stacks/<organization>.yaml` describes for an environment.

        teams: team → namespace, queue, priority classes and quota. opts: options for all resources, such as
        `protect`, or an aws provider in `providers`. Raises pulumi.RunError before anything is registered if the file
        has errors. Also raises it if the running stack belongs to another environment, because both stacks would
        create the same resources.
        """
        stack = pulumi.get_stack()
        try:
            own = described_by(stack)
        except SelectionError as error:
            raise pulumi.RunError(printable_lines(str(error))) from None
        if own != (organization, environment):
            raise pulumi.RunError(
                printable_lines(
                    f"the stack {stack} is for {own[1]} of {own[0]}, but hpkit.Platform gets {environment} of "
                    f"{organization}, whose own stack would create the same resources. Pass organization={own[0]!r} "
                    f"and environment={own[1]!r}, or run this program in the stack {organization}-{environment}"
                )
            )
        plan = gate(stack)
        super().__init__("hpkit:index:Platform", name, None, opts)
        outputs = build(plan, root=os.path.relpath(project_root()), parent=self)
        self.cluster_arn = outputs["clusterArn"]
        self.eks_cluster_name = outputs["eksClusterName"]
        self.teams = pulumi.Output.from_input(outputs["teams"])
        self.register_outputs(outputs)


def run() -> None:
    """Register the resources of the stack that the engine runs, after its organization file passed all checks."""
    # The engine interrupts a program whose run it ends early; Python's traceback would hide the reason.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # The SDK calls the engine for each of its debug messages, ten for a resource, which only `pulumi --debug` shows.
    # These calls take an eighth of the time of a preview.
    pulumi.log.debug = _no_message
    plan = gate(pulumi.get_stack())
    with short_stack_traces():
        outputs = build(plan, root=os.path.relpath(project_root()))
    for name, value in outputs.items():
        pulumi.export(name, value)


def _no_message(*_: object, **_named: object) -> None:
    """Take the place of `pulumi.log.debug`."""


@contextmanager
def short_stack_traces() -> Iterator[None]:
    """Keep Pulumi from writing all Python frames of each registration into the state.

    The outer frames are paths of this machine, and a quarter of the state that the engine writes after each step.
    """
    former = getattr(sys, "tracebacklimit", None)
    sys.tracebacklimit = _FRAMES
    try:
        yield
    finally:
        # An exception is printed after this, with all its frames.
        sys.tracebacklimit = former
