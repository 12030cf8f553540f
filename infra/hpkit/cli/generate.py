"""`hpkit generate`: the files of this repository that are made from models, rules and their cases."""

import sys
from collections.abc import Callable, Mapping

import click

from hpkit.cli.extras import need
from hpkit.cli.inputs import require_clone
from hpkit.config.reference import reference, schema_text
from hpkit.generate import articles, deployer_policy, karpenter, metrics, team_rights
from hpkit.generate.catalog import service_model_text
from hpkit.generate.refusals import PAGE, refusals_page
from hpkit.generate.replacing import replacing_text
from hpkit.generate.rules import examples_text, rules_page
from hpkit.project import project_root
from hpkit_whatif.scenario.schema import schema_text as scenario_schema_text

__all__ = ["FILES", "command"]

FILES: dict[str, Callable[[], str]] = {
    "infra/hpkit/catalog/data/service_model.json": service_model_text,
    "infra/hpkit/catalog/data/replacing.json": replacing_text,
    karpenter.FILE: karpenter.karpenter_text,
    metrics.FILE: metrics.kueue_metrics_text,
    "stacks/schema.json": schema_text,
    "stacks/scenarios/schema.json": scenario_schema_text,
    "docs/reference/config.md": reference,
    "infra/hpkit/checks/examples.json": examples_text,
    "docs/reference/rules.md": rules_page,
    PAGE: refusals_page,
    **deployer_policy.FILES,
    **team_rights.FILES,
    **articles.FILES,
}


@click.command("generate")
@click.option("--check", "only_check", is_flag=True, help="Write nothing; exit 1 when a file is out of date.")
def command(only_check: bool) -> None:
    """Write the generated files of this repository, or check them."""
    require_clone()
    need("local", what="hpkit generate")
    from hpkit.generate.sdk import resource_files

    # The program is made of these classes, and what is told by recording it needs them as they will be.
    stale = _written(resource_files(), only_check=only_check)
    if not (only_check and stale):
        from hpkit.generate.urns import urn_files

        stale += _written({name: make() for name, make in FILES.items()} | urn_files(), only_check=only_check)
    if only_check and stale:
        click.echo(f"out of date: {', '.join(stale)}; run `hpkit generate`", err=True)
        sys.exit(1)
    if not stale:
        click.echo("all generated files are up to date")


def _written(files: Mapping[str, str], *, only_check: bool) -> list[str]:
    """Return the names of files that are out of date, and write them unless they are only to be checked."""
    stale = []
    for name, text in files.items():
        path = project_root() / name
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not only_check:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f".{path.name}.new")
            temporary.write_text(text, encoding="utf-8")
            temporary.replace(path)
            click.echo(f"wrote {name}")
    return stale
