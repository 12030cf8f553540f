"""`hpkit aws adopt run`: imports a live platform into a stack's state."""

import json
from typing import Any

import click

from hpkit.cli.account.adopt_common import import_file, plan_of, recorded, registered, stop_at, write
from hpkit.cli.common.completion import stack_option
from hpkit.cli.common.documents import acted
from hpkit.cli.common.formats import acts
from hpkit.cli.common.output import pulumi_environment
from hpkit.errors import ToolError
from hpkit.plan.names import names_of_teams
from hpkit.project import project_root
from hpkit.text.formatting import plural

__all__ = ["run"]


@click.command("run")
@stack_option("The stack", required=True)
@click.option(
    "--from-stack",
    "source",
    metavar="STACK",
    help="Move the resources from the state of this Pulumi stack, whose file no longer describes them.",
)
@acts
def run(stack: str, source: str | None) -> None:
    """Import a live platform into a stack, and show its first preview.

    If it's interrupted, run it again. Only states are written; the live platform is only read.
    """
    if source is not None:
        _move(source, stack)
        return
    from hpkit.adopt.organization import adopt
    from hpkit.adopt.state import undeclared, with_objects, with_state_only, with_write_only_inputs
    from hpkit.clients.pulumi_stack import PulumiStack

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
    remaining = [each for each in imports.entries if _urn(each, recording.resources) not in there]
    missing = len(remaining) + sum(each.urn not in there for each in imports.objects)
    click.echo(f"{imports.count - missing} of {imports.count} are already imported", err=True)
    if remaining:
        pulumi.import_file({**imports.document, "resources": remaining})
    state = with_objects(pulumi.export(), recording, imports.objects)
    pulumi.write_state(with_write_only_inputs(state, {each.urn: each.inputs for each in recording.resources.values()}))
    _show(pulumi.preview(), imports.count, stack)


def _move(source: str, stack: str) -> None:
    from hpkit.adopt.state import loses_claims, moved, undeclared, with_state_only
    from hpkit.clients.pulumi_stack import PulumiStack

    staying, recording = recorded(plan_of(source)), recorded(plan_of(stack))
    blockers = []
    if names_of_teams(stack, recording.plan.spec) != source:
        keep = f"would be replaced by one with another name: set governance.policyName of {stack} to {source}"
        blockers += [
            f"{repository.inputs['name']}: a team's repository {keep}"
            for repository in recording.all("aws:ecr/repository:Repository")
        ]
        blockers += [
            f"{team.made_role}: a role of memberRole {keep}" for team in recording.plan.teams if team.made_role
        ]
    stop_at(blockers)
    old, new = (PulumiStack(name, root=project_root(), environment=pulumi_environment()) for name in (source, stack))
    if not old.exists():
        raise ToolError(f"this backend has no stack {source}")
    new.create()
    before, target = old.export(), with_state_only(new.export(), recording)
    if before["deployment"].get("pending_operations"):
        raise ToolError(
            f"{source} has operations that didn't finish. Nothing was moved. First run `hpkit aws recover --stack "
            f"{source}`, then `pulumi up`"
        )
    # Each stack encrypts with a key of its own.
    plain = old.export("--show-secrets")
    if loses_claims(before, staying, recording):
        raise ToolError(
            f"the teams of {source} have claims that {stack} doesn't describe, so `pulumi up` would delete them. "
            f"Nothing was moved. Move `storage.localDisk` of {source} to {stack}. Copy `storage.lustre`, with "
            "`teams: true` and the file system's ID in `existing`"
        )
    after, target, count = moved(plain, target, staying=staying, recording=recording)
    unknown = undeclared(target, recording)
    if unknown:
        raise ToolError(
            f"{stack} has {plural(len(unknown), 'resource')} that its program doesn't define, so it isn't new. Nothing "
            "was moved. Move into another stack:\n  " + "\n  ".join(unknown)
        )
    if not count:
        raise ToolError(
            f"{source} has nothing that only {stack} describes, so nothing was moved. Describe it in the environment "
            f"of {stack}, remove it from that of {source}, and run the command again"
        )
    write(project_root() / f"{source}.state.json", json.dumps(before, indent=2) + "\n", private=True)
    # In this order: an interrupted run leaves the resources in both states, and the next one takes them from the first.
    new.write_state(target)
    old.write_state(after)
    click.echo(f"{count} resources are moved from {source} to {stack}", err=True)
    _show(new.preview(), count, stack)


def _urn(entry: Any, resources: Any) -> str:
    return next(str(urn) for urn in resources if urn.endswith(f"::{entry['name']}"))


def _show(preview: str, count: int, stack: str) -> None:
    """Print the first preview with the reason of each difference; exit 1 if anything would be lost."""
    from hpkit.adopt.preview import differences

    changes = differences(preview)
    acted("adopt", stack, detail=plural(count, "resource"))
    for change in changes:
        acted(change.operation, change.resource, done=False, detail="\n".join([change.reason, *change.lines]))
        click.echo(f"{change.operation} {change.resource}: {change.reason}")
        for line in change.lines:
            click.echo(f"  {line}")
    lost = [change for change in changes if change.is_destructive]
    if lost:
        raise ToolError(f"`pulumi up` would delete or replace {len(lost)} of {count} resources; don't run it")
    if changes:
        click.echo(f"{stack} is adopted, with {len(changes)} differences; none deletes or replaces a resource")
    else:
        click.echo(f"{stack} is adopted: {count} resources, and the preview shows no changes")
