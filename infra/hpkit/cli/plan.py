"""`hpkit plan`: what will be created."""

import json
from typing import Any

import click

from hpkit.cli.formats import width
from hpkit.cli.inputs import plans_of, resolve
from hpkit.plan.outline import Outline, outline

__all__ = ["command"]


@click.command("plan")
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option("--stack", "stacks", multiple=True, metavar="S", help="Only this stack; may be repeated.")
@click.option("--format", "form", type=click.Choice(["tree", "json"]), default="tree", show_default=True)
def command(files: tuple[str, ...], stacks: tuple[str, ...], form: str) -> None:
    """Show what will be created for an organization.

    Without FILE or --stack, for all of stacks/*.yaml.
    """
    trees = [outline(plan) for plan in plans_of(resolve(files, stacks))]
    if form == "json":
        click.echo(json.dumps([_with_count(tree) for tree in trees], indent=2, ensure_ascii=False))
        return
    for tree in trees:
        _print(tree)


def _with_count(tree: Outline) -> dict[str, Any]:
    return {**tree.as_dict(), "resources": tree.count()}


def _print(tree: Outline) -> None:
    from rich.console import Console
    from rich.text import Text
    from rich.tree import Tree

    def label(node: Outline) -> Text:
        text = Text()
        if node.kind:
            text.append(f"{node.kind} ", style="cyan")
        text.append(node.name, style="bold")
        if node.detail:
            text.append(f"  {node.detail}", style="dim")
        return text

    def add(branch: Tree, node: Outline) -> None:
        for child in node.children:
            add(branch.add(label(child)), child)

    root = Tree(label(tree))
    add(root, tree)
    console = Console(width=width(), highlight=False)
    console.print(root)
    console.print(f"{tree.count()} resources beside what the components wire together (routes, policies, bindings)")
