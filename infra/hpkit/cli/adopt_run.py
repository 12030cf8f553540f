"""`hpkit aws adopt run` and `undo`: a live platform comes into a stack's state, and out of it again."""

import json
from typing import TYPE_CHECKING, Any

import click

from hpkit.cli.adopt_common import import_file, plan_of, registered, stop_at, write
from hpkit.cli.completion import stack_option
from hpkit.cli.output import confirm
from hpkit.cli.tools import pulumi_environment
from hpkit.errors import ToolError
from hpkit.program.teardown import resources_in
from hpkit.project import project_root

if TYPE_CHECKING:
    from hpkit.adopt.imports import Imports

__all__ = ["run", "undo"]


@click.command("run")
@stack_option("The stack", required=True)
def run(stack: str) -> None:
    """Import into a stack what is live, and show its first preview. Run it again after whatever ended it early.

    Only the stack's state is written: the live platform is read.
    """
    from hpkit.adopt.organization import adopt
    from hpkit.adopt.pulumi_stack import PulumiStack
    from hpkit.adopt.state import undeclared, with_state_only, with_write_only_inputs

    plan = plan_of(stack)
    pulumi = PulumiStack(stack, root=project_root(), environment=pulumi_environment())
    live, recording, imports = registered(plan)
    remarks = adopt(live, organization=plan.organization, environment=plan.environment).remarks
    stop_at([*remarks.blockers, *imports.blockers])
    pulumi.create()
    state = pulumi.export()
    unknown = undeclared(state, recording)
    if unknown:
        raise ToolError(
            f"{stack} has {len(unknown)} resources that the program does not register, and `up` would delete:\n  "
            + "\n  ".join(unknown)
            + "\nNothing was imported. Adopt into a stack of its own, or take them out of this one: "
            + f"pulumi state delete --stack {stack} URN"
        )
    write(project_root() / "stacks" / f"{stack}.import.json", import_file(imports))
    state = with_state_only(state, recording)
    pulumi.write_state(state)
    there = {each["urn"] for each in state["deployment"]["resources"]}
    left = [each for each in imports.entries if _urn(each, recording.resources) not in there]
    click.echo(f"{len(imports.entries) - len(left)} of {len(imports.entries)} are imported already", err=True)
    if left:
        pulumi.import_file({**imports.document, "resources": left})
    pulumi.write_state(with_write_only_inputs(pulumi.export(), recording))
    _show(pulumi.preview(), imports, stack)


@click.command("undo")
@stack_option("The stack", required=True)
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
def undo(stack: str, yes: bool) -> None:
    """Undo an adoption: forget the stack's state, and touch nothing that is live.

    The state is kept in a file beside, with which `pulumi stack import` takes it back.
    """
    from hpkit.adopt.pulumi_stack import PulumiStack

    pulumi = PulumiStack(stack, root=project_root(), environment=pulumi_environment())
    if not pulumi.exists():
        raise ToolError(f"there is no stack {stack} in this backend, so there is nothing to forget")
    state = pulumi.export()
    resources = resources_in((state["deployment"] or {}).get("resources") or [])
    if not yes:
        confirm(f"Forget {len(resources)} resources of {stack}? Nothing that is live is touched.")
    kept = project_root() / f"{stack}.state.json"
    write(kept, json.dumps(state, indent=2) + "\n", private=True)
    pulumi.forget()
    click.echo(f"{stack} is forgotten, and all that it described is as it was. Its last state: {kept}")


def _urn(entry: Any, resources: Any) -> str:
    return next(str(urn) for urn in resources if urn.endswith(f"::{entry['name']}"))


def _show(preview: str, imports: "Imports", stack: str) -> None:
    """Print the first preview with the reason of each difference; exit 1 if anything would be lost."""
    from hpkit.adopt.preview import differences

    found = differences(preview)
    for each in found:
        click.echo(f"{each.operation} {each.resource}: {each.reason}")
        for line in each.lines:
            click.echo(f"  {line}")
    lost = [each for each in found if each.is_destructive]
    if lost:
        raise ToolError(f"{len(lost)} of {len(imports.entries)} would be deleted or replaced: do not run `pulumi up`")
    if found:
        click.echo(f"{stack} is adopted: {len(found)} differences, none deletes or replaces")
    else:
        click.echo(f"{stack} is adopted: {len(imports.entries)} resources, and a preview that changes nothing")
