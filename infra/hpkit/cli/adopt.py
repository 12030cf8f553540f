"""`hpkit adopt`: a live platform becomes an organization file and a stack, and nothing of it is touched."""

import datetime
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hpkit.cli.inputs import project_root, resolve
from hpkit.cli.validate import findings_of
from hpkit.config import read_file
from hpkit.errors import ToolError
from hpkit.plan.derive import derive
from hpkit.plan.model import Plan

if TYPE_CHECKING:
    from hpkit.adopt.imports import Imports
    from hpkit.adopt.live import Live
    from hpkit.adopt.owned import Owned
    from hpkit.adopt.prepare import Prepared
    from hpkit.recording import Recording

__all__ = ["command"]


@click.group("adopt", invoke_without_command=True)
@click.option("--cluster", metavar="NAME", help="The HyperPod cluster, by name or ARN.")
@click.option("--region", help="Region of the cluster; default: that of the ARN, else the AWS SDK's.")
@click.option("--organization", metavar="NAME", help="Name of the organization; default: the cluster's name.")
@click.option("--environment", default="prod", show_default=True, metavar="NAME", help="Name of the environment.")
@click.option(
    "--write", "file", type=click.Path(dir_okay=False, path_type=Path), help="Write the file there, not to the screen."
)
@click.option("--force", is_flag=True, help="Replace a file that is there.")
@click.pass_context
def command(
    context: click.Context,
    cluster: str | None,
    region: str | None,
    organization: str | None,
    environment: str,
    file: Path | None,
    force: bool,
) -> None:
    """Write the organization file of a live cluster, and what to import.

    Reads the cluster, its quotas and policy, its EKS cluster with add-ons and access, its subnets and Karpenter's
    objects; changes nothing. Credentials and endpoint are those of the AWS SDK (AWS_PROFILE, AWS_ENDPOINT_URL, …).
    Then `hpkit adopt run --stack S` imports all of it, and shows the first preview.
    """
    if context.invoked_subcommand is not None:
        return
    from hpkit.adopt.prepare import prepare

    if cluster is None:
        raise click.UsageError("name the HyperPod cluster: --cluster NAME, or its ARN")
    region = _region(cluster, region)
    if file is not None and file.exists() and not force:
        raise click.UsageError(f"{file} is there already; name another file, or add --force")
    live = _read(cluster, region)
    name = organization or re.sub(r"[^a-z0-9-]+", "-", str(live.cluster["ClusterName"]).lower()).strip("-")
    shown = str(file or f"stacks/{name}.yaml")
    prepared = prepare(live, organization=name, environment=environment, file=shown, today=_today())
    stack = f"{name}-{environment}"
    if file is None:
        click.echo(prepared.text, nl=False)
    else:
        _write(file, prepared.text)
        _write(file.parent / f"Pulumi.{stack}.yaml", _settings(name, environment), unless_there=True)
        if prepared.imports is not None and not _blockers(prepared):
            _write(file.parent / f"{stack}.import.json", _json(prepared.imports))
    _say(prepared, stack=stack, file=shown)


@command.command("run")
@click.option("--stack", required=True, help="Which stack of stacks/.")
def run(stack: str) -> None:
    """Import into a stack what is live, and show its first preview. Run it again after whatever ended it early.

    Only the stack's state is written: the live platform is read.
    """
    from hpkit.adopt.organization import adopt
    from hpkit.adopt.pulumi import Pulumi
    from hpkit.adopt.state import strangers, with_bookkeeping, with_write_only

    plan = _plan(stack)
    pulumi = Pulumi(stack, root=project_root())
    live, recording, imports = _registered(plan)
    remarks = adopt(live, organization=plan.organization, environment=plan.environment).remarks
    _stop_at([*remarks.blockers, *imports.blockers])
    state = pulumi.export()
    unknown = strangers(state, recording)
    if unknown:
        raise ToolError(
            f"{stack} has {len(unknown)} resources that the program does not register, and `up` would delete:\n  "
            + "\n  ".join(unknown)
            + "\nNothing was imported. Adopt into a stack of its own, or take them out of this one: "
            + f"pulumi state delete --stack {stack} URN"
        )
    _write(project_root() / "stacks" / f"{stack}.import.json", _json(imports))
    pulumi.write_state(with_bookkeeping(state, recording))
    there = {each["urn"] for each in (pulumi.export()["deployment"] or {}).get("resources", [])}
    left = [each for each in imports.entries if _urn(each, recording.resources) not in there]
    click.echo(f"{len(imports.entries) - len(left)} of {len(imports.entries)} are imported already", err=True)
    if left:
        pulumi.import_file({**imports.document, "resources": left})
    pulumi.write_state(with_write_only(pulumi.export(), recording))
    _show(pulumi.preview(), imports, stack)


@command.command("handover")
@click.option("--stack", required=True, help="Which stack of stacks/.")
@click.option(
    "--terraform",
    "states",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="A Terraform state file, or what `terraform show -json` printed.",
)
@click.option(
    "--cloudformation",
    "stacks",
    multiple=True,
    metavar="STACK",
    help="Name of a CloudFormation stack, or a file with what `aws cloudformation describe-stack-resources` printed.",
)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def handover(stack: str, states: tuple[Path, ...], stacks: tuple[str, ...], form: str) -> None:
    """Say what Terraform or CloudFormation must let go of, so that no two tools own one thing. Changes nothing.

    The lines that are printed can be run as they stand, in their order; those before `hpkit adopt run` come first.
    """
    from hpkit.adopt import as_data, lines
    from hpkit.adopt import handover as handed_over
    from hpkit.adopt.taken import taken_of

    if not states and not stacks:
        raise click.UsageError("name what owns the platform now: --terraform FILE, or --cloudformation STACK")
    plan = _plan(stack)
    live, _, imports = _registered(plan)
    found = handed_over(_owned(states, stacks, plan.spec.region), taken_of(plan, live, imports))
    click.echo(json.dumps(as_data(found), indent=2) if form == "json" else "\n".join(lines(found)))


def _owned(states: Sequence[Path], stacks: Sequence[str], region: str) -> "list[Owned]":
    """Return what the other tools hold; raises ToolError for a stack that cannot be read, InputError for a file."""
    from hpkit.adopt import read_cloudformation, read_stacks, read_terraform

    owned = [each for file in states for each in read_terraform(_input(file), file=str(file))]
    for name in stacks:
        if Path(name).is_file():
            owned += read_cloudformation(_input(Path(name)), file=name)
            continue
        import boto3
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            owned += read_stacks(boto3.Session(region_name=region).client("cloudformation"), name)
        except (BotoCoreError, ClientError) as error:
            raise ToolError(f"CloudFormation stack {name}: {error}") from None
    return owned


def _input(file: Path) -> str:
    return read_file(file).decode(errors="replace")


def _registered(plan: Plan) -> "tuple[Live, Recording, Imports]":
    """Return what is live, what the program registers, and what of it to import."""
    from hpkit.adopt.imports import imports_of
    from hpkit.adopt.prepare import answers_of
    from hpkit.recording import record

    live = _read(plan.spec.cluster.name, plan.spec.region)
    recording = record(plan, answers_of(live))
    return live, recording, imports_of(recording, live)


@command.command("undo")
@click.option("--stack", required=True, help="Which stack of stacks/.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def undo(stack: str, yes: bool) -> None:
    """Hand a platform back: forget the stack's state, and touch nothing that is live.

    The state is kept in a file beside, with which `pulumi stack import` takes it back.
    """
    from hpkit.adopt.pulumi import Pulumi

    pulumi = Pulumi(stack, root=project_root())
    if not pulumi.exists():
        raise ToolError(f"there is no stack {stack} in this backend, so there is nothing to forget")
    state = pulumi.export()
    resources = [each for each in (state["deployment"] or {}).get("resources", []) if each.get("custom")]
    if not yes:
        click.confirm(f"Forget {len(resources)} resources of {stack}? Nothing that is live is touched.", abort=True)
    kept = project_root() / f"{stack}.state.json"
    _write(kept, json.dumps(state, indent=2) + "\n", private=True)
    pulumi.forget()
    click.echo(f"{stack} is forgotten, and all that it described is as it was. Its last state: {kept}")


def _region(cluster: str, region: str | None) -> str:
    """Return the region of a cluster; raises click.UsageError for what is neither a name nor an ARN."""
    from hpkit.adopt.read import CLUSTER_ARN, CLUSTER_NAME

    arn = CLUSTER_ARN.match(cluster)
    if arn is not None:
        return str(arn.group(1))
    if not CLUSTER_NAME.match(cluster):
        raise click.UsageError(
            f"`{cluster}` is neither the name of a HyperPod cluster nor its ARN (arn:aws:sagemaker:…:cluster/…)"
        )
    import boto3

    found: str | None = region or boto3.Session().region_name or os.environ.get("AWS_REGION")
    if found is None:
        raise click.UsageError("name the region of the cluster: --region REGION")
    return found


def _read(cluster: str, region: str) -> "Live":
    """Ask the APIs; raises ToolError with code and message of what they refuse."""
    import boto3
    from botocore.exceptions import BotoCoreError

    from hpkit.adopt.read import read

    try:
        return read(boto3.Session(region_name=region), cluster, say=lambda line: click.echo(line, err=True))
    except BotoCoreError as error:
        raise ToolError(f"{error} (credentials and endpoint are those of the AWS SDK: AWS_PROFILE, …)") from None


def _plan(stack: str) -> Plan:
    """Return the plan of a stack whose file has no error: the program would register nothing otherwise."""
    loaded = resolve((), (stack,))[0]
    errors = [finding for finding in findings_of(loaded) if finding.severity == "error"]
    organization = loaded.parsed.organization
    if errors or organization is None or loaded.environment is None:
        raise ToolError(f"{loaded.file} has {len(errors)} errors: see `hpkit validate --stack {stack}`")
    return derive(organization, loaded.environment)


def _urn(entry: Any, resources: Any) -> str:
    return next(str(urn) for urn in resources if urn.endswith(f"::{entry['name']}"))


def _today() -> datetime.date:
    return datetime.datetime.now(tz=datetime.UTC).date()


def _settings(organization: str, environment: str) -> str:
    return f"config:\n  hpkit:organization: {organization}\n  hpkit:environment: {environment}\n"


def _json(imports: "Imports") -> str:
    return json.dumps(imports.document, indent=2, sort_keys=True) + "\n"


def _write(file: Path, text: str, *, unless_there: bool = False, private: bool = False) -> None:
    if unless_there and file.exists():
        return
    temporary = file.with_name(f".{file.name}.new")
    try:
        temporary.touch(mode=0o600 if private else 0o644)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        raise ToolError(f"{file}: {error.strerror}") from None
    click.echo(f"wrote {file}", err=True)


def _blockers(prepared: "Prepared") -> list[str]:
    errors = [f"{each.rule} {each.path}: {each.message}. {each.fix}" for each in prepared.errors]
    return [*prepared.remarks.blockers, *errors, *(prepared.imports.blockers if prepared.imports else ())]


def _stop_at(blockers: Sequence[str]) -> None:
    if blockers:
        raise ToolError("this cannot be adopted as it is; nothing was imported:\n  " + "\n  ".join(blockers))


def _say(prepared: "Prepared", *, stack: str, file: str) -> None:
    """Say on standard error what was found and what is left to do, so that standard output is the file alone."""
    remarks, imports = prepared.remarks, prepared.imports
    _list("stays as it is, and is not in the file", remarks.stays)
    _list("the first `pulumi up` would change", remarks.changes)
    if imports is not None:
        _list("is imported", [f"{each['type']} {each['logicalName']}" for each in imports.entries])
        _list("is not live, so the first `pulumi up` makes it", imports.created)
    warnings = len(prepared.findings) - len(prepared.errors)
    click.echo(f"{len(prepared.errors)} errors, {warnings} warnings: see `hpkit validate {file}`", err=True)
    _stop_at(_blockers(prepared))
    click.echo(f"then: hpkit adopt run --stack {stack}", err=True)


def _list(title: str, lines: Iterable[str]) -> None:
    for index, line in enumerate(lines):
        if index == 0:
            click.echo(f"{title}:", err=True)
        click.echo(f"  {line}", err=True)


def _show(preview: str, imports: "Imports", stack: str) -> None:
    """Print the first preview with the reason of each difference; exit 1 if anything would be lost."""
    from hpkit.adopt.explain import differences

    found = differences(preview)
    for each in found:
        click.echo(f"{each.operation} {each.resource}: {each.reason}")
        for line in each.lines:
            click.echo(f"  {line}")
    lost = [each for each in found if each.loses]
    if lost:
        raise ToolError(f"{len(lost)} of {len(imports.entries)} would be deleted or replaced: do not run `pulumi up`")
    if found:
        click.echo(f"{stack} is adopted: {len(found)} differences, none deletes or replaces")
    else:
        click.echo(f"{stack} is adopted: {len(imports.entries)} resources, and a preview that changes nothing")
