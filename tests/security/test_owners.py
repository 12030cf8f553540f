"""Required reviewers of code that runs with the deployment's permissions, or judges a change."""

import ast
import re
import subprocess
import tomllib
from functools import cache

import pytest
import yaml

from hpkit.cli import SECTIONS
from tests.test_workflows import FILES, ROOT, workflow

OWNERS = ROOT / ".github" / "CODEOWNERS"
# Where Python finds packages: hpkit and its plugin, the policy pack and the local cloud's toolchain.
ROOTS = (*(ROOT / folder for folder in ("infra", "local", "policies", "whatif")), ROOT)
_LISTED = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
TRACKED = subprocess.run(_LISTED, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
KNOWN = frozenset(TRACKED)


@cache
def expression(pattern):
    """Return a pattern of CODEOWNERS as a regular expression."""
    anchored = "/" in pattern.rstrip("/")
    words = re.escape(pattern.strip("/")).replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
    return re.compile(("" if anchored else "(?:.*/)?") + words + "(?:/.*)?")


def owners(text, path):
    """Return the owners of a path: those of the last matching pattern, as GitHub reads the file.

    Source: GitHub's documentation, "About code owners": later lines win, and one without owners removes them.
    """
    owners = []
    for line in text.splitlines():
        pattern, *names = line.split("#")[0].split() or [""]
        if not pattern:
            continue
        if expression(pattern).fullmatch(path):
            owners = names
    return owners


@cache
def module(name):
    """Return the file of a module of this repository, or None for a package or the standard library."""
    for root in ROOTS:
        place = root.joinpath(*name.split("."))
        for file in (place.with_suffix(".py"), place / "__init__.py"):
            if str(file.relative_to(ROOT)) in KNOWN:
                return file
    return None


def imported(file):
    """Yield the modules that a file imports anywhere, and those that it names in strings to import them later."""
    package = file.parent.relative_to(next(root for root in ROOTS if file.is_relative_to(root))).parts
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and re.fullmatch(r"\w+(\.\w+)+", node.value):
            yield node.value
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def closure(entries):
    """Return all files of this repository that run with these, including data files next to a module."""
    waiting, seen = list(entries), set()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        for name in imported(file):
            parts = name.split(".")
            prefixes = (".".join(parts[:count]) for count in range(1, len(parts) + 1))
            waiting += [found for prefix in prefixes if (found := module(prefix)) is not None]
    folders = {file.parent for file in seen} - {ROOT, ROOT / "infra"}
    beside = [ROOT / path for path in TRACKED if not path.endswith(".py")]
    data = [file for file in beside if folders & {file.parent, file.parent.parent}]
    return {str(file.relative_to(ROOT)) for file in [*seen, *data]}


def deployment():
    """Return the scripts of jobs with an identity, and of jobs that choose the stacks to deploy."""
    workflows = [workflow(ROOT / ".github" / "workflows" / name) for name in ("deploy.yml", "drift.yml")]
    lines = [step.get("run", "") for data in workflows for job in data["jobs"].values() for step in job["steps"]]
    page = (ROOT / "infra" / "hpkit" / "scaffold" / "templates" / "gitlab-ci.yml").read_text(encoding="utf-8")
    jobs = [job for job in yaml.safe_load(page).values() if isinstance(job, dict) and "id_tokens" in job]
    lines += [line for job in jobs for key in ("before_script", "script") for line in job.get(key, ())]
    return "\n".join(lines)


@cache
def run_by_deployment():
    """Return the files that run in a job with an identity: program, plugins, policy pack and commands of hpkit."""
    script, project = deployment(), yaml.safe_load((ROOT / "Pulumi.yaml").read_text(encoding="utf-8"))
    packs = {ROOT / pack for pack in re.findall(r"--policy-pack ([\w./-]+)", script)}
    typed = re.findall(r"bin/hpkit ([a-z-]+)(?: ([a-z-]+))?", script)
    top = {name: each for section in SECTIONS.values() for name, each in section.items()}
    found = [(name, child, top[name].children.get(child, top[name])) for name, child in typed]
    commands = {each.place.partition(":")[0] or (child if name == "whatif" else name) for name, child, each in found}
    started = [*(folder / "__main__.py" for folder in (ROOT / project["main"], *packs))]
    package = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    plugins = [place for name, place in package["scripts"].items() if name.startswith("pulumi-resource-")]
    started += [module(place.partition(":")[0]) for place in plugins]
    added = package["entry-points"]
    optional = {name: place.partition(":")[0] for group in added.values() for name, place in group.items()}
    started += [module(optional.get(name, f"hpkit.cli.{name}")) for name in ("__init__", *commands)]
    # hpkit loads its extensions by name.
    started += [module(place) for name, place in optional.items() if name in added["hpkit.extensions"]]
    started += [module(name) for name in re.findall(r"from (hpkit_local[\w.]*) import", script)]
    started += [module(name) for name in re.findall(r"python -m (generate[\w.]*)", script)]
    assert len(packs) == 1
    assert {"preflight", "review", "validate"} <= commands
    assert "make install" in script
    installed = {"Makefile", "pyproject.toml", "requirements.lock", "Pulumi.yaml"}
    return closure(started) | installed


@cache
def named_by_organizations():
    """Return the files that stacks copy to the cluster and its nodes, and those that describe stacks."""
    stacks = {path for path in TRACKED if re.fullmatch(r"stacks/[^/]+\.(?:ya?ml|json)", path)}
    named = set()
    for path in stacks:
        if not path.startswith("stacks/Pulumi.") and path.endswith("yaml"):
            text = (ROOT / path).read_text(encoding="utf-8")
            named |= set(re.findall(r"(?:lifecycleScript|chart): [\"']?([\w./-]+)", text))
    return stacks | {path for path in TRACKED if any(path == name or path.startswith(f"{name}/") for name in named)}


@cache
def judging():
    """Return what judges a change: workflows, the files that they start, tests of security, and every lock file."""
    steps = [step for file in FILES for job in workflow(file)["jobs"].values() for step in job["steps"]]
    words = {word for step in steps for word in re.split(r"[\s\"'=]+", step.get("run", ""))}
    locks = re.compile(r"(?:.*/)?(?:[\w.-]+\.lock|go\.(?:sum|mod)|package-lock\.json)")
    folders = (".github/", ".ci/", "tests/security/")
    return {path for path in TRACKED if path in words or path.startswith(folders) or locks.fullmatch(path)}


def unowned(text):
    """Return the files that must have an owner but have none in this text."""
    return sorted(path for path in run_by_deployment() | named_by_organizations() | judging() if not owners(text, path))


def test_a_change_of_what_deploys_or_judges_needs_nobody_who_answers_for_it():
    assert unowned(OWNERS.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "path",
    [
        *(
            ".ci/run",
            ".github/CODEOWNERS",
            ".github/workflows/deploy.yml",
            "Makefile",
            "Pulumi.yaml",
            "requirements.lock",
        ),
        *(
            "infra/__main__.py",
            "infra/hpkit/program/components/admission.py",
            "infra/hpkit/program/components/lifecycle/on_create.sh",
        ),
        *(
            "infra/hpkit/program/components/rbac.py",
            "infra/hpkit/program/iam/data/rules.yaml",
            "infra/hpkit/catalog/data/dependencies.json",
        ),
        *(
            "infra/hpkit/plan/registry.py",
            "infra/hpkit/project.py",
            "infra/hpkit/changes/review/build.py",
            "infra/hpkit/program/sdk/__init__.py",
        ),
        *(
            "infra/hpkit_provider/resources/cluster/handler.py",
            "infra/hpkit_provider/server.py",
            "infra/hpkit_provider/__main__.py",
            "infra/hpkit/program/run.py",
        ),
        *(
            "local/hpkit_local/toolchain/table.py",
            "policies/hpkit_policies/rules/iam.py",
            "policies/PulumiPolicy.yaml",
            "policies/hpkit_policies/actions.json",
        ),
        *("stacks/handson.yaml", "stacks/enterprise.policy.json", "stacks/Pulumi.handson-dev.yaml"),
        *("tests/security/test_owners.py", "tests/security/scanners/requirements.lock"),
    ],
)
def test_the_derived_list_has(path):
    assert path in run_by_deployment() | named_by_organizations() | judging()


@pytest.mark.parametrize(
    "line",
    [
        "/infra/hpkit/program/components/",
        "/stacks/*.yaml",
        "*.lock",
        "policies/hpkit_policies/rules/iam.py",
        "/infra/**/lifecycle/ # nobody",
    ],
)
def test_a_later_line_takes_the_owners_away(line):
    assert unowned(f"{OWNERS.read_text(encoding='utf-8')}\n{line}\n")


def test_a_line_covers_nothing_that_must_be_covered():
    text = OWNERS.read_text(encoding="utf-8")
    for line in [line for line in text.splitlines() if line.startswith("/")]:
        assert unowned(text.replace(line, "")), line
