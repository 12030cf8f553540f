"""Data flows in one direction: the tables of docs/internals/architecture.md list all allowed imports."""

import ast
import importlib
import re
import sys
import tomllib
from functools import cache
from pathlib import Path

import networkx
import pytest

from hpkit import extensions
from hpkit.cli import SECTIONS

ROOT = Path(__file__).parent.parent
FOLDERS = {
    "hpkit": ROOT / "infra" / "hpkit",
    "hpkit_provider": ROOT / "infra" / "hpkit_provider",
    "hpkit_policies": ROOT / "policies" / "hpkit_policies",
    "hpkit_local": ROOT / "local" / "hpkit_local",
    "hpkit_whatif": ROOT / "whatif" / "hpkit_whatif",
}
PACKAGE = FOLDERS["hpkit"]
PAGE = (ROOT / "docs" / "internals" / "architecture.md").read_text(encoding="utf-8")

STANDARD = frozenset(sys.stdlib_module_names)
CLOUD = {"pulumi", "pulumi_aws", "pulumi_kubernetes", "boto3", "botocore", "kubernetes"}
# Every module may import these.
ALL = {"hpkit", "hpkit.errors", "hpkit.signals", "hpkit.text.formatting", "hpkit.text.printable"}
# What no pure module may access: clock, network, processes.
IMPURE = {"time", "datetime", "socket", "urllib", "http", "subprocess", "random", "os", "pathlib", "io"}
PURE = ("plan", "checks", "changes", "explain"), ("admission", "rehearse")


def modules_of(package: str) -> dict[str, tuple[list[str], list[str]]]:
    """Return which modules and libraries each module of a package may import, in the page's order."""
    lines = PAGE.partition(f"| module of `{package}` |")[2].split("\n\n", 1)[0].splitlines()[2:]
    modules = {}
    for line in lines:
        name, _, imports, libraries = (cell.strip() for cell in line.strip("|").split("|"))
        modules[name.strip("`/").removesuffix(".py")] = tuple(
            [] if cell == "–" else cell.split(", ") for cell in (imports, libraries)
        )
    return modules


MODULES = {package: modules_of(package) for package in FOLDERS}
EVERY = [(package, module) for package, modules in MODULES.items() for module in modules]


def files_of(package: str, module: str) -> list[Path]:
    """Return the files of a module, without those of a module inside it."""
    place = FOLDERS[package] / module
    inner = [FOLDERS[package] / other for other in MODULES[package] if other.startswith(f"{module}/")]
    single = place.with_suffix(".py")
    found = [single] if single.is_file() else sorted(place.rglob("*.py"))
    return [file for file in found if not any(file.is_relative_to(folder) for folder in inner)]


@cache
def imports_of(file: Path, *, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    modules: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide the module"
            modules.add(node.module or "")
    return modules


def belongs(name: str, packages: set[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def allowed_modules(package: str, module: str) -> set[str]:
    own = {f"{package}.{module.replace('/', '.')}"}
    return own | {name if belongs(name, set(FOLDERS)) else f"{package}.{name}" for name in MODULES[package][module][0]}


@pytest.mark.parametrize(("package", "module"), EVERY)
def test_a_module_imports_only_what_the_page_says_and_all_of_it(package, module):
    allowed, libraries = allowed_modules(package, module), set(MODULES[package][module][1])
    files = files_of(package, module)
    assert files, f"there is no module {module}"
    seen = set()
    for file in files:
        for name in imports_of(file) - {package}:
            if belongs(name, set(FOLDERS)):
                assert name in ALL or belongs(name, allowed), f"{file.relative_to(ROOT)} imports {name}"
                seen.add(max((each for each in allowed if belongs(name, {each})), key=len, default=name))
            elif name.partition(".")[0] not in STANDARD:
                assert name.partition(".")[0] in libraries, f"{file.relative_to(ROOT)} imports {name}"
                seen.add(name.partition(".")[0])
    stale = (allowed | libraries) - seen - {f"{package}.{module.replace('/', '.')}", "hpkit.text", f"{package}.text"}
    assert not stale, f"{module} imports none of {stale}: take it from the page"


@pytest.mark.parametrize(("package", "module"), EVERY)
def test_a_module_imports_only_modules_that_are_listed_before_it(package, module):
    before = list(MODULES[package])[: list(MODULES[package]).index(module)]
    own = [name.replace(".", "/") for name in MODULES[package][module][0] if not belongs(name, set(FOLDERS))]
    assert set(own) <= set(before)


@pytest.mark.parametrize("package", FOLDERS)
def test_every_file_belongs_to_a_module_of_the_page(package):
    known = {file for module in MODULES[package] for file in files_of(package, module)}
    others = {str(file.relative_to(FOLDERS[package])) for file in FOLDERS[package].rglob("*.py") if file not in known}
    assert {name for name in others if not name.startswith("cli/")} <= {
        *("__init__.py", "__main__.py", "program/__init__.py", "cluster/__init__.py")
    }


@pytest.mark.parametrize(
    ("package", "module"), [("hpkit", each) for each in PURE[0]] + [("hpkit_whatif", each) for each in PURE[1]]
)
def test_pure_modules_touch_no_clock_file_or_network(package, module):
    for file in files_of(package, module):
        # datetime.date is a value; only reading the current date would be impure.
        touched = {name.partition(".")[0] for name in imports_of(file)} & (IMPURE - {"datetime"})
        assert not touched, f"{file.relative_to(ROOT)} imports {touched}"


def test_the_command_line_imports_clouds_only_inside_commands():
    for file in sorted((PACKAGE / "cli").rglob("*.py")):
        top = {name.partition(".")[0] for name in imports_of(file, top_level_only=True)}
        assert not top & CLOUD, f"{file.relative_to(ROOT)} imports {top & CLOUD} for everybody"


def test_nothing_but_the_command_line_imports_it():
    program = ROOT / "infra" / "__main__.py"
    for file in [program, *sorted(PACKAGE.rglob("*.py"))]:
        own = file.is_relative_to(PACKAGE / "cli") or (file.name == "__main__.py" and file != program)
        assert own or not any(belongs(name, {"hpkit.cli"}) for name in imports_of(file)), f"{file} imports hpkit.cli"


def test_every_extension_that_the_kit_asks_for_is_declared():
    """Extensions are requested by name; an undeclared one would be reported as not installed."""
    for name in extensions._EXTRAS:
        assert extensions.extension(name)
    commands = [each for section in SECTIONS.values() for each in section.items()]
    commands += [each for _, command in commands for each in command.children.items()]
    for name, command in commands:
        assert not command.extra or extensions.optional_command(name, command.extra)


def test_the_page_says_what_each_dependency_is_for():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    rows = PAGE.partition("## Dependencies of the base install")[2].partition("\n\nTo add")[0].splitlines()
    told = {name for row in rows if row.startswith("| `") for name in re.findall(r"`([\w.-]+)`", row.split("|")[1])}
    assert told == {re.split(r"[=<>]", each)[0] for each in project["dependencies"]}


def modules_under(folder: Path, root: Path) -> dict[str, Path]:
    found = {".".join(file.relative_to(root).with_suffix("").parts): file for file in folder.rglob("*.py")}
    return {name.removesuffix(".__init__"): file for name, file in found.items()}


@pytest.mark.parametrize("folder", FOLDERS.values(), ids=FOLDERS.keys())
def test_no_package_has_a_circle_of_modules(folder):
    modules = modules_under(folder, folder.parent)
    graph = networkx.DiGraph()
    for module, file in modules.items():
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                submodules = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if name in modules else node.module for name in submodules]
            else:
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            graph.add_edges_from((module, name) for name in names if name in modules and name != module)
    circles = [sorted(circle) for circle in networkx.strongly_connected_components(graph) if len(circle) > 1]
    assert not circles


def test_rules_are_in_order_of_their_number():
    modules = [importlib.import_module(f"hpkit.checks.{file.stem}") for file in (PACKAGE / "checks").glob("*.py")]
    numbers = [[rule.id for rule in module.RULES] for module in modules if hasattr(module, "RULES")]
    assert all(ids == sorted(set(ids)) for ids in numbers)
