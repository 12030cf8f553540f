"""`hpkit aws recover`: add what a killed `up` created to the stack's state."""

import click

from hpkit.cli.adopt_common import plan_of
from hpkit.cli.aws_session import aws_session
from hpkit.cli.completion import stack_option
from hpkit.cli.documents import acted
from hpkit.cli.formats import acts
from hpkit.cli.output import confirm
from hpkit.cli.tools import pulumi_environment
from hpkit.errors import ToolError
from hpkit.project import project_root
from hpkit.text.plural import plural

__all__ = ["command"]

# The permissions for searches; a refresh and `up` need the deployer's.
_RIGHTS = (
    *("aps:ListRuleGroupsNamespaces", "aps:ListWorkspaces", "ec2:Describe*"),
    *("eks:ListPodIdentityAssociations", "fsx:DescribeFileSystems", "grafana:ListWorkspaces"),
    *("kms:DescribeKey", "kms:ListKeys"),
)


@click.command("recover", epilog=f"IAM permissions: {', '.join(_RIGHTS)}.")
@stack_option("The stack", required=True)
@click.option("--profile", metavar="P", help="AWS configuration profile. Default: the AWS SDK's choice.")
@click.option("--yes", is_flag=True, help="Skip the confirmation, for automation.")
@acts
def command(stack: str, profile: str | None, yes: bool) -> None:
    """Repair a stack's state after `up` was killed, so that nothing is created twice.

    Looks in the account for the resources whose creation didn't finish, and adds those that exist to the state. Then
    run `pulumi up` again. Only the state is written.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    from hpkit.adopt.pending import find_ids, unfinished, with_found
    from hpkit.adopt.pulumi_stack import PulumiStack

    plan = plan_of(stack)
    pulumi = PulumiStack(stack, root=project_root(), environment=pulumi_environment())
    if not pulumi.exists():
        raise ToolError(f"this backend has no stack {stack}")
    state = pulumi.export()
    pending = (state["deployment"] or {}).get("pending_operations") or []
    if not pending:
        click.echo(f"{stack} has no unfinished operations; run `pulumi up`")
        return
    creations = unfinished(state)
    try:
        ids = find_ids(aws_session(profile, plan.spec.region), creations, state)
    except (BotoCoreError, ClientError) as error:
        raise ToolError(
            f"AWS couldn't be searched for unfinished resources, and nothing was changed: {error}"
        ) from None
    except ValueError as error:
        raise ToolError(f"{error}. Nothing was changed. Delete those that you don't need, and run this again") from None
    click.echo(f"{stack} has {plural(len(pending), 'unfinished operation')}:", err=True)
    for creation in creations:
        click.echo(f"  {creation.name}: {ids.get(creation.urn) or 'not found, so the next `up` creates it'}", err=True)
    if not yes:
        confirm("Add what exists to the state? No other run of this stack may be active.")
    pulumi.cancel()
    pulumi.write_state(with_found(state, ids))
    pulumi.refresh()
    urns = {each["urn"] for each in pulumi.export()["deployment"]["resources"]}
    for creation in creations:
        id_ = ids.get(creation.urn)
        acted("import", creation.urn, done=creation.urn in urns and id_ is not None, detail=id_)
    kept = sum(urn in urns for urn in ids)
    click.echo(f"{plural(kept, 'resource')} added to the state of {stack}; run `pulumi up` to continue")
