"""`hpkit catalog instances`: the catalog's values of each instance type, with their sources."""

import fnmatch

import click
from pydantic import Field

from hpkit.catalog import InstanceType, MigProfile, Source, find_nearest, instance_types
from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, folded, output_options
from hpkit.cli.common.tables import console, grid
from hpkit.errors import InputError
from hpkit.text.document import Document

__all__ = ["InstanceTypeList", "command"]


class _InstanceType(Document):
    """An instance type; null: unknown."""

    name: str
    vcpu: int | None
    threads_per_core: int | None
    memory_gib: int | None = Field(serialization_alias="memoryGiB")
    accelerators: int | None
    accelerator_kind: str | None
    accelerator_resource: str | None
    neuron_cores: int | None
    efa_interfaces: int | None
    max_pods: int | None
    addresses: int | None = Field(description="IPv4 addresses that a node can use.")
    architecture: str | None
    network_layers: int
    mig_profiles: list[MigProfile] | None
    sources: dict[str, Source] | None = Field(description="Source of each figure, with --sources.")


class InstanceTypeList(Document):
    """Instance types and their specifications."""

    items: list[_InstanceType]


@click.command("instances")
@click.argument("pattern", required=False)
@output_options("text", "json", documents=("hpkit.cli.organization.instances:InstanceTypeList",))
@click.option("--sources", is_flag=True, help="Show the source and date of each figure.")
def command(pattern: str | None, sources: bool) -> Output:
    """List instance types and their specifications.

    PATTERN is a part of the name (p5), or a glob (ml.g5.*). Unknown values are shown as `?` (null in JSON), and never
    counted as zero.
    """
    matching = [each for each in instance_types() if _matches(each.name, pattern)]
    if not matching:
        near = ", ".join(find_nearest(pattern or ""))
        hint = f"did you mean {near}?" if near else "run `hpkit catalog instances` for a list"
        raise InputError(f"no instance type matches `{pattern}`; {hint}")
    return Output(
        text=lambda: _print(matching, sources),
        json=lambda: json_document(
            InstanceTypeList(
                items=[
                    _InstanceType.model_validate(each).model_copy(update={} if sources else {"sources": None})
                    for each in matching
                ]
            )
        ),
    )


def _matches(name: str, pattern: str | None) -> bool:
    if not pattern:
        return True
    return fnmatch.fnmatchcase(name, pattern) if any(mark in pattern for mark in "*?[") else pattern in name


def _cell(value: int | str | None) -> str:
    return "?" if value is None else str(value)


def _print(types: list[InstanceType], with_sources: bool) -> None:
    head = ("instance type", "vCPU", "GiB", "accel.", "EFA", "pods", "addr.", "MIG", "arch")
    table = grid(*head, names=(head[0], head[-1]), padding=(0, 1, 0, 0))
    for details in types:
        suffix = {"gpu": " GPU", "trainium": " Trn"}.get(details.accelerator_kind or "", "")
        table.add_row(
            details.name,
            _cell(details.vcpu),
            _cell(details.memory_gib),
            _cell(details.accelerators) + suffix,
            _cell(details.efa_interfaces),
            _cell(details.max_pods),
            _cell(details.addresses),
            "?" if details.mig_profiles is None else str(len(details.mig_profiles)),
            _cell(details.architecture),
        )
    paper = console()
    paper.print(table)
    paper.print("? = unknown, never counted as zero. addr. = IPv4 addresses that a node can use. MIG = profiles.")
    if with_sources:
        _print_sources(types)


def _print_sources(found: list[InstanceType]) -> None:
    used: dict[tuple[str, str, str], set[str]] = {}
    for each in found:
        for figure, source in each.sources.items():
            used.setdefault((source.title, source.url, source.date), set()).add(figure)
    for (title, url, date), figures in sorted(used.items()):
        click.echo("\n" + folded(f"{', '.join(sorted(figures))}: {title} ({date})", "    ", ""))
        click.echo(f"    {url}")
