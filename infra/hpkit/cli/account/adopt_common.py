"""Common parts of the commands of `hpkit aws adopt`: the plan, the live platform, files that are written whole."""

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from hpkit.cli.common.documents import acted
from hpkit.errors import ToolError
from hpkit.plan.model import Plan
from hpkit.project import project_root, pulumi_project, select
from hpkit.text.formatting import plural

if TYPE_CHECKING:
    from hpkit.adopt.imports import Imports
    from hpkit.adopt.live_platform import LivePlatform
    from hpkit.program.recording import Answers, Recording

__all__ = ["import_file", "plan_of", "read", "recorded", "registered", "stop_at", "write"]


def read(cluster: str, region: str) -> "LivePlatform":
    """Read a live platform; raises ToolError with code and message of what the APIs reject."""
    import boto3
    from botocore.exceptions import BotoCoreError

    from hpkit.adopt.read import read as read_platform

    try:
        return read_platform(
            boto3.Session(region_name=region), cluster, on_progress=lambda line: click.echo(line, err=True)
        )
    except BotoCoreError as error:
        raise ToolError(f"{error} (credentials and endpoint come from the AWS SDK, such as AWS_PROFILE)") from None


def plan_of(stack: str) -> Plan:
    """Return the plan of a stack; raises ToolError if its file has errors, since the program would register nothing."""
    loaded = select((), (stack,))[0]
    errors = [finding for finding in loaded.findings if finding.severity == "error"]
    if errors or not loaded.plans:
        raise ToolError(f"{loaded.file} has {plural(len(errors), 'error')}; run `hpkit validate --stack {stack}`")
    return next(iter(loaded.plans.values()))


def registered(plan: Plan) -> "tuple[LivePlatform, Recording, Imports]":
    """Return the live platform, what the program registers, and what of it to import."""
    from hpkit.adopt.imports import imports_of
    from hpkit.adopt.prepare import answers_of

    live = read(plan.spec.cluster.name, plan.spec.region)
    recording = recorded(plan, answers_of(live))
    return live, recording, imports_of(recording, live)


def recorded(plan: Plan, answers: "Answers | None" = None) -> "Recording":
    """Return what the project's program registers for a plan; answers: AWS's data, invented if missing."""
    from hpkit.program.recording import record

    project, program = pulumi_project(project_root())
    return record(plan, answers, project=project, root=os.path.relpath(".", program))


def import_file(imports: "Imports") -> str:
    """Return the file for `pulumi import --file`."""
    return json.dumps(imports.document, indent=2, sort_keys=True) + "\n"


def write(file: Path, text: str, *, unless_there: bool = False, private: bool = False) -> None:
    """Write a file whole or not at all, and print its name; private: only its owner may read it."""
    if unless_there and file.exists():
        return
    temporary = file.with_name(f".{file.name}.new")
    try:
        temporary.touch(mode=0o600 if private else 0o644)
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(file)
    except OSError as error:
        raise ToolError(f"{file}: {error.strerror}") from None
    acted("write", file)
    click.echo(f"wrote {file}", err=True)


def stop_at(blockers: Sequence[str]) -> None:
    """Raise ToolError with everything that makes the adoption impossible, if there is anything."""
    if blockers:
        raise ToolError("the platform can't be adopted as it is, so nothing was done:\n  " + "\n  ".join(blockers))
