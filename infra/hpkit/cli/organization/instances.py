"""`hpkit catalog instances`: the catalog's figures of each instance type, with their sources."""

import fnmatch
from typing import Annotated, NotRequired, TypedDict

import click

from hpkit.catalog import InstanceType, MigProfile, Source, find_nearest, instance_types
from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, folded, output_options
from hpkit.cli.common.tables import console, grid
from hpkit.errors import InputError

__all__ = ["InstanceTypeList", "command"]


class _InstanceType(TypedDict):
    """An instance type; null: unknown."""

    name: str
    vcpu: int | None
    threadsPerCore: int | None
    memoryGiB: int | None
    accelerators: int | None
    acceleratorKind: str | None
    acceleratorResource: str | None
    neuronCores: int | None
    efaInterfaces: int | None
    maxPods: int | None
    addresses: Annotated[int | None, "IPv4 addresses that a node can use."]
    architecture: str | None
    networkLayers: int
    migProfiles: list[MigProfile] | None
    sources: NotRequired[Annotated[dict[str, Source], "Source of each figure, with --sources."]]


class InstanceTypeList(TypedDict):
    """Instance types and their specifications."""

    items: list[_InstanceType]


@click.command("instances")
@click.argument("pattern", required=False)
@output_options("text", "json", documents=("hpkit.cli.organization.instances:InstanceTypeList",))
@click.option("--sources", is_flag=True, help="Show the source and date of each figure.")
def command(pattern: str | None, sources: bool) -> Output:
    """List instance types and their specifications.

    PATTERN is a part of the name (p5), or a glob (ml.g5.*). Unknown figures are shown as `?` (null in JSON), and never
    counted as zero.
    """
    matching = [each for each in instance_types() if _matches(each.name, pattern)]
    if not matching:
        near = ", ".join(find_nearest(pattern or ""))
        hint = f"did you mean {near}?" if near else "run `hpkit catalog instances` for a list"
        raise InputError(f"no instance type matches `{pattern}`; {hint}")
    return Output(
        text=lambda: _print(matching, sources),
        json=lambda: json_document(InstanceTypeList, items=[_as_dict(each, sources) for each in matching]),
    )


def _matches(name: str, pattern: str | None) -> bool:
    if not pattern:
        return True
    return fnmatch.fnmatchcase(name, pattern) if any(mark in pattern for mark in "*?[") else pattern in name


def _as_dict(details: InstanceType, with_sources: bool) -> _InstanceType:
    profiles = details.mig_profiles
    data: _InstanceType = {
        "name": details.name,
        "vcpu": details.vcpu,
        "threadsPerCore": details.threads_per_core,
        "memoryGiB": details.memory_gib,
        "accelerators": details.accelerators,
        "acceleratorKind": details.accelerator_kind,
        "acceleratorResource": details.accelerator_resource,
        "neuronCores": details.neuron_cores,
        "efaInterfaces": details.efa_interfaces,
        "maxPods": details.max_pods,
        "addresses": details.addresses,
        "architecture": details.architecture,
        "networkLayers": details.network_layers,
        "migProfiles": None if profiles is None else list(profiles),
    }
    if with_sources:
        data["sources"] = dict(sorted(details.sources.items()))
    return data


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
