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
    """Import a live platform into a stack, and show its first preview.

    If it's interrupted, run it again. Only the stack's state is written; the live platform is only read.
    """
    from hpkit.adopt.organization import adopt
    from hpkit.adopt.pulumi_stack import PulumiStack
    from hpkit.adopt.state import undeclared, with_objects, with_state_only, with_write_only_inputs

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
            f"{stack} has {len(unknown)} resources that the program doesn't define and `up` would delete:\n  "
            + "\n  ".join(unknown)
            + "\nNothing was imported. Adopt into a separate stack, or remove them from this one: "
            + f"pulumi state delete --stack {stack} URN"
        )
    write(project_root() / "stacks" / f"{stack}.import.json", import_file(imports))
    state = with_state_only(state, recording)
    pulumi.write_state(state)
    there = {each["urn"] for each in state["deployment"]["resources"]}
    left = [each for each in imports.entries if _urn(each, recording.resources) not in there]
    missing = len(left) + sum(each.urn not in there for each in imports.objects)
    click.echo(f"{imports.count - missing} of {imports.count} are already imported", err=True)
    if left:
        pulumi.import_file({**imports.document, "resources": left})
    state = with_objects(pulumi.export(), recording, imports.objects)
    pulumi.write_state(with_write_only_inputs(state, recording))
    _show(pulumi.preview(), imports, stack)


@click.command("undo")
@stack_option("The stack", required=True)
@click.option("--yes", is_flag=True, help="Skip the confirmation.")
def undo(stack: str, yes: bool) -> None:
    """Undo an adoption: delete the stack's state, and keep the live platform.

    The state is saved to a file first, and `pulumi stack import` restores it.
    """
    from hpkit.adopt.pulumi_stack import PulumiStack

    pulumi = PulumiStack(stack, root=project_root(), environment=pulumi_environment())
    if not pulumi.exists():
        raise ToolError(f"this backend has no stack {stack}")
    state = pulumi.export()
    resources = resources_in((state["deployment"] or {}).get("resources") or [])
    if not yes:
        confirm(f"Remove {len(resources)} resources from the state of {stack}? The live platform isn't changed.")
    kept = project_root() / f"{stack}.state.json"
    write(kept, json.dumps(state, indent=2) + "\n", private=True)
    pulumi.forget()
    click.echo(f"{stack} is removed, and the live platform is unchanged. Its last state: {kept}")


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
        raise ToolError(f"`pulumi up` would delete or replace {len(lost)} of {imports.count} resources; don't run it")
    if found:
        click.echo(f"{stack} is adopted, with {len(found)} differences; none deletes or replaces a resource")
    else:
        click.echo(f"{stack} is adopted: {imports.count} resources, and the preview shows no changes")
