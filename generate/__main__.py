"""Generates files of this repository: `make generate`, or `python -m generate [--check]`."""

import argparse
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from generate import team_rights
from generate.catalog import METRICS_FILE, hyperpod_text, kueue_metrics_text, service_model_text
from generate.pages import COMMANDS_FILE, commands_page, deployer_policy_page, examples_text, policies_page, rules_page
from generate.site import JSON_PAGE, json_page
from generate.urns import urn_files
from hpkit.config.schema.reference import reference
from hpkit.project import project_root

__all__ = ["FILES"]

_CREATE_CLUSTER = Path(__file__).parent / "create_cluster.md"
FILES: dict[str, Callable[[], str]] = {
    "infra/hpkit/catalog/data/service_model.json": service_model_text,
    "infra/hpkit/catalog/data/hyperpod.json": hyperpod_text,
    METRICS_FILE: kueue_metrics_text,
    COMMANDS_FILE: commands_page,
    JSON_PAGE: json_page,
    "docs/reference/config.md": lambda: reference() + _CREATE_CLUSTER.read_text(encoding="utf-8"),
    "infra/hpkit/checks/examples.json": examples_text,
    "docs/reference/rules.md": rules_page,
    "docs/reference/policies.md": policies_page,
    "docs/reference/deployer-policy.md": deployer_policy_page,
    **team_rights.FILES,
}


def main() -> int:
    """Write outdated files; with --check, write nothing, and return 1 if a file is outdated."""
    parser = argparse.ArgumentParser(prog="python -m generate", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 when a file is out of date")
    check = parser.parse_args().check
    stale = _written({name: make() for name, make in FILES.items()} | urn_files(), only_check=check)
    if check and stale:
        sys.stderr.write(f"out of date: {', '.join(stale)}; run `make generate`\n")
        return 1
    return 0


def _written(files: Mapping[str, str], *, only_check: bool) -> list[str]:
    """Return the names of outdated files, and write them unless check is set."""
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
            sys.stdout.write(f"wrote {name}\n")
    return stale


if __name__ == "__main__":
    sys.exit(main())
