"""`hpkit plan`: what will be created."""

from collections import Counter
from typing import TYPE_CHECKING

import click
from pydantic import Field

from hpkit.cli.common.completion import stacks_option
from hpkit.cli.common.documents import json_document
from hpkit.cli.common.formats import Output, output_options
from hpkit.cli.common.inputs import plans_of, record_plan
from hpkit.cli.common.tables import console
from hpkit.plan.model import Plan
from hpkit.project import Loaded, select
from hpkit.text.document import Document

if TYPE_CHECKING:
    from hpkit.program.recording import Recording, TreeItem

__all__ = ["PlanList", "command"]


class _Node(Document):
    """A resource, a component, or a part of a resource."""

    kind: str = Field(description="Type of the resource; empty for components and parts.")
    name: str
    detail: str
    children: list["_Node"]


class _Plan(Document):
    stack: str = Field(validation_alias="name")
    region: str = Field(validation_alias="detail")
    resources: int = Field(description="Without the stack, components and providers, which Pulumi also counts.")
    children: list[_Node]


class PlanList(Document):
    """The resources of each stack, as a tree."""

    items: list[_Plan]


@click.command("plan")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@stacks_option()
@click.option("--all", "everything", is_flag=True, help="Show connecting resources too, such as routes and policies.")
@output_options("text", "json", documents=("hpkit.cli.organization.plan:PlanList",))
def command(files: tuple[str, ...], stacks: tuple[str, ...], *, everything: bool) -> Output:
    """Show the resources that a stack creates.

    Runs the program without Pulumi's engine. Without FILE or --stack, shows all of stacks/*.yaml.
    """
    chosen = select(files, stacks)
    # Says the errors first, and ends here where the form of a file is not right.
    plans_of(chosen)
    recordings = [_recording(plan, loaded) for loaded in chosen for plan in loaded.plans.values()]
    from hpkit.program.recording import tree_of

    def text() -> None:
        for each in recordings:
            _print(tree_of(each), _assumed(each), everything=everything)

    return Output(text=text, json=lambda: json_document(PlanList.model_validate({"items": map(tree_of, recordings)})))


def _recording(plan: Plan, loaded: Loaded) -> "Recording":
    from hpkit.program.recording import UNKNOWN_ACCOUNT, Answers

    return record_plan(plan, loaded, Answers(account=plan.spec.account or UNKNOWN_ACCOUNT))


def _assumed(recording: "Recording") -> list[str]:
    """Return values in the tree that aren't in the file, because only AWS knows them."""
    plan = recording.plan
    file_zones = {zone.availability_zone for zone in plan.network.zones}
    used_zones = {
        resource.inputs.get("availabilityZone") or resource.inputs["availabilityZoneId"]
        for resource in recording.resources.values()
        if resource.type == "aws:ec2/subnet:Subnet"
    }
    return [
        *([] if plan.spec.account else ["the account"]),
        *(f"zone {zone}" for zone in sorted(used_zones - file_zones)),
    ]


def _print(tree: "TreeItem", assumed: list[str], *, everything: bool) -> None:
    from rich.text import Text
    from rich.tree import Tree

    def label(node: "TreeItem") -> Text:
        text = Text()
        if node.kind:
            text.append(f"{node.kind} ", style="cyan")
        text.append(node.name, style="bold")
        if node.detail:
            text.append(f"  {node.detail}", style="dim")
        return text

    def add(branch: Tree, node: "TreeItem") -> None:
        wiring = [] if everything else [child for child in node.children if child.wiring]
        for child in node.children:
            if child not in wiring:
                add(branch.add(label(child)), child)
        if wiring:
            branch.add(Text(_counted(wiring), style="dim"))

    root = Tree(label(tree))
    add(root, tree)
    paper = console()
    paper.print(root)
    paper.print(f"{tree.resources} resources; Pulumi also counts its stack, components and providers")
    if assumed:
        paper.print(f"Not in the file, so only known at deployment: {', '.join(assumed)}")


def _counted(nodes: "list[TreeItem]") -> str:
    """Return nodes in one line: how many of each type."""
    kinds = Counter(node.kind.partition(".")[2] for node in nodes)
    return "and " + ", ".join(kind if count == 1 else f"{count} × {kind}" for kind, count in sorted(kinds.items()))
