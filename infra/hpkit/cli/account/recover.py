"""`hpkit aws recover`: add what a killed `up` created to the stack's state."""

from typing import TYPE_CHECKING, Any

import click

from hpkit.cli.account.adopt_common import plan_of, recorded
from hpkit.cli.common.aws_session import aws_session
from hpkit.cli.common.completion import stack_option
from hpkit.cli.common.documents import acted
from hpkit.cli.common.formats import acts
from hpkit.cli.common.output import confirm, pulumi_environment
from hpkit.errors import ToolError
from hpkit.project import project_root
from hpkit.text.formatting import plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from boto3 import Session

    from hpkit.adopt.pending import Unfinished
    from hpkit.clients.pulumi_stack import PulumiStack
    from hpkit.plan.model import Plan
    from hpkit.program.recording import Recording

__all__ = ["command"]

# The permissions for searches; a refresh and `up` need the deployer's.
_RIGHTS = (
    *("aps:DescribeAlertManagerDefinition", "aps:ListRuleGroupsNamespaces", "aps:ListWorkspaces", "ec2:Describe*"),
    *("ecr:DescribeRepositories", "ecr:ListTagsForResource", "eks:Describe*", "eks:ListPodIdentityAssociations"),
    *(
        "fsx:DescribeDataRepositoryAssociations",
        "fsx:DescribeFileSystems",
        "grafana:ListWorkspaces",
        "iam:ListRoleTags",
        "kms:DescribeKey",
        "kms:ListKeys",
    ),
    *("kms:ListResourceTags", "logs:DescribeLogGroups", "logs:ListTagsForResource", "s3:GetBucketTagging"),
    *("sagemaker:DescribeCluster", "sagemaker:ListClusterSchedulerConfigs", "sagemaker:ListComputeQuotas"),
    "sagemaker:ListTags",
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

    from hpkit.adopt.imports import object_name
    from hpkit.adopt.live_objects import default_egress_rules
    from hpkit.adopt.pending import find_ids, with_found
    from hpkit.clients.pulumi_stack import PulumiStack

    plan = plan_of(stack)
    pulumi = PulumiStack(stack, root=project_root(), environment=pulumi_environment())
    if not pulumi.exists():
        raise ToolError(f"this backend has no stack {stack}")
    state = pulumi.export()
    if not (state["deployment"] or {}).get("resources"):
        click.echo(f"{stack} has no resources; run `pulumi up`")
        return
    session = aws_session(profile, plan.spec.region)
    try:
        recording = _recording(session, plan)
        creations = _creations(state, recording)
        objects = _objects(session, plan, creations)
        named = {each.urn: object_name(each.inputs) for each in creations if each.urn in objects}
        ids = {**find_ids(session, creations, state), **named}
    except (BotoCoreError, ClientError) as error:
        raise ToolError(
            f"AWS couldn't be searched for unfinished resources, and nothing was changed: {error}"
        ) from None
    except ValueError as error:
        raise ToolError(f"{error}. Nothing was changed. Delete those that you don't need, and run this again") from None
    creations = [each for each in creations if each.is_pending or each.urn in ids]
    operations = state["deployment"].get("pending_operations") or []
    others = [operation for operation in operations if operation["type"] != "creating"]
    if not creations and not others:
        # The lock of a run that was killed between two operations is released.
        pulumi.replace_state(state, state)
        click.echo(f"{stack} has no unfinished operations; run `pulumi up`")
        return
    click.echo(f"{stack} has {plural(len(creations) + len(others), 'unfinished operation')}:", err=True)
    for creation in creations:
        click.echo(f"  {creation.name}: {_plan_for(creation, ids.get(creation.urn))}", err=True)
    if not yes:
        confirm("Add what exists to the state? No other run of this stack may be active.", "nothing was changed")
    pulumi.replace_state(state, with_found(state, creations, ids, objects))
    _read(pulumi, [each for each in creations if each.urn in ids or each.recorded_id], everything=bool(others))
    rules, rule_ids = default_egress_rules(session, pulumi.export(), recording)
    if rules:
        pulumi.replace_state(state := pulumi.export(), with_found(state, rules, rule_ids, {}))
        pulumi.refresh(*rule_ids)
    _report(stack, [*creations, *rules], {**ids, **rule_ids}, pulumi.export())


def _read(pulumi: "PulumiStack", unread: "Sequence[Unfinished]", *, everything: bool) -> None:
    """Read live resources into the state; everything: not only these."""
    from hpkit.adopt.state import with_write_only_inputs

    if everything or unread:
        pulumi.refresh(*(() if everything else [each.urn for each in unread]))
    if unread:
        # AWS doesn't return these inputs, and without them the next `up` would replace what was created. A recording
        # has invented IDs, and an unfinished creation has live ones.
        pulumi.write_state(with_write_only_inputs(pulumi.export(), {each.urn: each.inputs for each in unread}))


def _creations(state: "Mapping[str, Any]", recording: "Recording") -> "list[Unfinished]":
    """Return what might have been created.

    The state lists some of it; a killed plugin left out the rest.
    """
    from hpkit.adopt.live_objects import unrecorded
    from hpkit.adopt.pending import unfinished

    return [*unfinished(state), *unrecorded(state, recording)]


def _recording(session: "Session", plan: "Plan") -> "Recording":
    """Return what the program registers, with the caller's account."""
    from hpkit.program.recording import Answers

    identity = session.client("sts").get_caller_identity()
    arn = identity["Arn"]
    return recorded(plan, Answers(account=identity["Account"], partition=arn.split(":")[1], caller=arn))


def _objects(session: "Session", plan: "Plan", creations: "Sequence[Unfinished]") -> "Mapping[str, Mapping[str, Any]]":
    """Return the outputs of the Kubernetes objects that exist, by URN."""
    from hpkit.adopt.live_objects import find_objects
    from hpkit.adopt.pending import is_object
    from hpkit.clients.kubernetes import KUBERNETES_ERRORS

    if not any(is_object(each.type) for each in creations):
        return {}
    name = plan.eks_name
    cluster = session.client("eks").describe_cluster(name=name)["cluster"]
    try:
        return find_objects(session, cluster, creations)
    except KUBERNETES_ERRORS as error:
        raise ToolError(
            f"the Kubernetes API of {name} couldn't be searched for unfinished resources, and nothing was changed: "
            f"{error}. Run this from a network that reaches the API, with a role that can list Secrets there"
        ) from None


def _plan_for(creation: "Unfinished", id_: str | None) -> str:
    if not creation.recorded_id:
        return id_ or "not found, so the next `up` creates it"
    if id_ is None:
        return f"{creation.recorded_id}, in the state already"
    if creation.can_be_deleted:
        return f"{id_} exists in addition to {creation.recorded_id}, so the next `up` deletes it"
    return f"{id_} exists in addition to {creation.recorded_id}. It might contain data, so delete it yourself"


def _report(
    stack: str, creations: "Sequence[Unfinished]", ids: "Mapping[str, str]", refreshed: "Mapping[str, Any]"
) -> None:
    recorded_ids = {(each["urn"], each.get("id")) for each in refreshed["deployment"]["resources"]}
    added = 0
    for creation in creations:
        id_ = ids.get(creation.urn)
        is_added = id_ is not None and (creation.urn, id_) in recorded_ids
        added += is_added
        acted("import", creation.urn, done=is_added or bool(creation.recorded_id and not id_), detail=id_)
    click.echo(f"{plural(added, 'resource')} added to the state of {stack}; run `pulumi up` to continue")
