"""Data flows one way: who may import what, read from the imports themselves."""

import ast
import sys
from pathlib import Path

import networkx
import pytest

from local import cloud

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "infra" / "hpkit"

STANDARD = frozenset(sys.stdlib_module_names)
PURE = {"hpkit.errors", "hpkit.catalog", "hpkit.config", "hpkit.plan", "hpkit.checks", "hpkit.change"}
CLOUD = {"pulumi", "pulumi_aws", "pulumi_kubernetes", "boto3", "botocore", "kubernetes"}

# layer → (what it may import of the kit, what else beside the standard library)
ALLOWED: dict[str, tuple[set[str], set[str]]] = {
    "errors": (set(), set()),
    "plural": (set(), set()),
    "printable": (set(), set()),
    "spelling": (set(), set()),
    "cache": (set(), set()),
    "catalog": ({"hpkit.errors", "hpkit.catalog"}, set()),
    "config": (
        {"hpkit.errors", "hpkit.spelling", "hpkit.catalog", "hpkit.config"},
        {"pydantic", "pydantic_core", "yaml"},
    ),
    "charts": (
        {"hpkit.errors", "hpkit.cache", "hpkit.catalog", "hpkit.config", "hpkit.plan", "hpkit.charts"},
        {"boto3", "botocore", "yaml"},
    ),
    "plan": ({"hpkit.errors", "hpkit.catalog", "hpkit.config", "hpkit.plan"}, set()),
    "checks": ((PURE - {"hpkit.change"}) | {"hpkit.spelling"}, {"cel_expr_python"}),
    "change": ({"hpkit.errors", "hpkit.catalog", "hpkit.config", "hpkit.plan", "hpkit.change"}, set()),
    "whatif": ({"hpkit.errors", "hpkit.catalog", "hpkit.plan", "hpkit.whatif"}, set()),
    "jobs": (
        {"hpkit.errors", "hpkit.catalog", "hpkit.plan", "hpkit.whatif", "hpkit.spelling", "hpkit.jobs"},
        {"ruamel"},
    ),
    # Of preflight its clients alone.
    "live": (
        {"hpkit.errors", "hpkit.catalog", "hpkit.plan", "hpkit.whatif", "hpkit.live", "hpkit.preflight"},
        {"boto3", "botocore", "jinja2", "kubernetes"},
    ),
    "nodes": (
        {"hpkit.errors", "hpkit.spelling", "hpkit.config", "hpkit.plan", "hpkit.live", "hpkit.nodes"},
        {"boto3", "botocore", "kubernetes"},
    ),
    "access": (
        {"hpkit.errors", "hpkit.spelling", "hpkit.plan", "hpkit.live", "hpkit.access", "hpkit.preflight"},
        {"boto3", "kubernetes"},
    ),
    "upgrade": (PURE - {"hpkit.checks"} | {"hpkit.live", "hpkit.upgrade", "hpkit.preflight"}, {"boto3"}),
    # Of clients, boto3 and urllib3: Grafana's HTTP API has none of its own.
    "grafana": (
        {"hpkit.errors", "hpkit.catalog", "hpkit.config", "hpkit.plan", "hpkit.grafana"},
        {"boto3", "botocore", "urllib3"},
    ),
    "scenario": (
        {"hpkit.errors", "hpkit.catalog", "hpkit.config", "hpkit.plan", "hpkit.spelling"}
        | {"hpkit.whatif", "hpkit.scenario"},
        {"pydantic", "pydantic_core"},
    ),
    "simulate": (
        {"hpkit.errors", "hpkit.catalog", "hpkit.config", "hpkit.plan", "hpkit.project"}
        | {"hpkit.whatif", "hpkit.scenario", "hpkit.simulate"},
        {"distributed", "jinja2", "joblib"},
    ),
    # Of live its model alone: what was read is handed in.
    "record": (
        {"hpkit.errors", "hpkit.catalog", "hpkit.plan", "hpkit.live", "hpkit.scenario", "hpkit.record"},
        {"yaml"},
    ),
    "recommend": (
        {"hpkit.errors", "hpkit.catalog", "hpkit.config", "hpkit.plan", "hpkit.project", "hpkit.spelling"}
        | {"hpkit.checks", "hpkit.scenario", "hpkit.simulate", "hpkit.recommend"},
        set(),
    ),
    "rehearse": ({"hpkit.plan", "hpkit.whatif", "hpkit.rehearse"}, set()),
    # Of simulate how times and amounts are written alone: what was simulated is handed in.
    "review": (PURE | {"hpkit.review", "hpkit.simulate.formatting"}, {"jinja2"}),
    "explain": ((PURE - {"hpkit.change"}) | {"hpkit.explain", "hpkit.spelling"}, set()),
    "iam": ({"hpkit.errors", "hpkit.config", "hpkit.plan", "hpkit.iam"}, {"yaml"}),
    "components": (
        {"hpkit.catalog", "hpkit.config", "hpkit.plan", "hpkit.iam", "hpkit.sdk", "hpkit.components"},
        {"pulumi", "pulumi_aws", "pulumi_kubernetes", "ruamel"},
    ),
    "sdk": ({"hpkit.sdk"}, {"pulumi"}),
    "recording": (
        {"hpkit.components", "hpkit.plan", "hpkit.recording"},
        {"pulumi", "networkx"},
    ),
    "adopt": (
        PURE | {"hpkit.adopt", "hpkit.recording", "hpkit.preflight"},
        {"boto3", "kubernetes", "yaml"},
    ),
    "project": (
        {"hpkit.errors", "hpkit.spelling", "hpkit.config", "hpkit.plan", "hpkit.checks"},
        set(),
    ),
    "teardown": ({"hpkit.errors"}, set()),
    "generate": (
        PURE
        | {"hpkit.iam", "hpkit.components", "hpkit.recording", "hpkit.project", "hpkit.generate"}
        | {"local.cloud", "provider.schema"},
        {"botocore", "jsonschema", "pydantic", "yaml"},
    ),
    "preflight": (
        # Of recording the types alone: a recording is handed in.
        (PURE - {"hpkit.change"}) | {"hpkit.preflight", "hpkit.recording"},
        {"boto3", "botocore", "kubernetes", "packaging", "urllib3"},
    ),
}
LOCAL = ROOT / "local"
# room of local/ → (what it may import of the other rooms, what of the rest of the kit)
LOCAL_ROOMS: dict[str, tuple[set[str], set[str]]] = {
    "aws": (set(), {"hpkit.catalog", "hpkit.plan"}),
    "processes": (set(), set()),
    "toolchain": (set(), {"hpkit.errors", "hpkit.cache"}),
    "kubernetes": ({"processes"}, set()),
    "controllers": ({"aws", "kubernetes", "toolchain"}, {"hpkit.catalog"}),
    "plugins": ({"kubernetes", "toolchain"}, {"hpkit.errors", "provider"}),
    "rehearsal": ({"aws", "controllers", "kubernetes", "supervisor"}, {"hpkit.errors", "hpkit.whatif"}),
    "supervisor": ({"kubernetes", "plugins", "processes", "toolchain"}, {"hpkit.errors", "hpkit.teardown"}),
    "cloud": ({"plugins", "rehearsal", "supervisor", "toolchain"}, set()),
}
# The modules of preflight that reach out; all others compute.
CLIENTS = {"aws_client.py", "kubernetes_client.py", "network_client.py"}
# Modules of the pure layers that no pure layer may touch: clock, network, processes.
IMPURE = {"time", "datetime", "socket", "urllib", "http", "subprocess", "random", "os", "pathlib", "io"}


def modules_of(layer: str) -> list[Path]:
    single = PACKAGE / f"{layer}.py"
    return [single] if single.is_file() else sorted((PACKAGE / layer).rglob("*.py"))


def imports_of(file: Path, *, top_level_only: bool = False) -> set[str]:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    nodes = tree.body if top_level_only else list(ast.walk(tree))
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: relative imports hide the layer"
            found.add(node.module or "")
    return found


def belongs(name: str, packages: set[str]) -> bool:
    return any(name == package or name.startswith(f"{package}.") for package in packages)


@pytest.mark.parametrize("layer", ALLOWED)
def test_a_layer_imports_only_what_the_design_allows(layer):
    own, other = ALLOWED[layer]
    assert modules_of(layer), f"there is no layer {layer}"
    for file in modules_of(layer):
        for name in imports_of(file):
            top = name.partition(".")[0]
            allowed = top in STANDARD or belongs(name, own | {"hpkit.plural", "hpkit.printable"}) or top in other
            assert allowed, f"{file.relative_to(ROOT)} imports {name}"


@pytest.mark.parametrize("layer", ["plan", "checks", "change", "review", "whatif", "rehearse", "explain"])
def test_pure_layers_touch_no_clock_file_or_network(layer):
    for file in modules_of(layer):
        # datetime.date is a value; only asking for the current one would be impure.
        touched = {name.partition(".")[0] for name in imports_of(file)} & (IMPURE - {"datetime"})
        assert not touched, f"{file.relative_to(ROOT)} imports {touched}"
        source = file.read_text(encoding="utf-8")
        assert ".now(" not in source, f"{file.relative_to(ROOT)} reads the clock"
        assert ".today(" not in source, f"{file.relative_to(ROOT)} reads the clock"


def test_only_load_and_chart_open_files_of_the_user():
    for file in modules_of("config"):
        calls = {
            node.func.id if isinstance(node.func, ast.Name) else node.func.attr
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.Call) and isinstance(node.func, (ast.Name, ast.Attribute))
        }
        opens = "open" in calls or "read_bytes" in calls
        assert not opens or file.name in {"load.py", "chart.py"}, f"{file.relative_to(ROOT)} opens files"


def rooms_of_the_page(folder: str) -> dict[str, list[str]]:
    """Return the other cells of each row of one table of docs/architecture.md, by room."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    lines = page.partition(f"| room in `{folder}/` |")[2].split("\n\n", 1)[0].splitlines()[2:]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {row[0].strip("`/").removesuffix(".py"): row[1:] for row in rows}


def test_the_page_of_the_architecture_says_the_same():
    rooms = rooms_of_the_page("infra/hpkit")
    there = {file.stem for file in PACKAGE.iterdir() if not file.name.startswith("_")}
    assert rooms.keys() == there
    assert ALLOWED.keys() == there - {"cli"}
    for name, (own, _) in ALLOWED.items():
        said = set() if rooms[name][1] == "nothing" else set(rooms[name][1].split(", "))
        assert said == {each.removeprefix("hpkit.") for each in own} - {name}, name


def test_the_command_line_imports_clouds_only_inside_commands():
    for file in modules_of("cli"):
        top = {name.partition(".")[0] for name in imports_of(file, top_level_only=True)}
        assert not top & CLOUD, f"{file.relative_to(ROOT)} imports {top & CLOUD} for everybody"


def test_preflight_reaches_out_from_three_modules_alone():
    for file in modules_of("preflight"):
        clouds = {name.partition(".")[0] for name in imports_of(file)} & (CLOUD | IMPURE | {"urllib3"})
        assert not clouds or file.name in CLIENTS, f"{file.relative_to(ROOT)} imports {clouds}"


def test_preflight_runs_no_program_itself():
    for file in modules_of("preflight"):
        at_runtime = {name for name in imports_of(file, top_level_only=True) if belongs(name, {"hpkit.recording"})}
        assert not at_runtime, f"{file.relative_to(ROOT)} imports {at_runtime} at run time"


def test_nothing_but_the_command_line_imports_it():
    program = ROOT / "infra" / "__main__.py"
    for file in [program, *sorted(PACKAGE.rglob("*.py"))]:
        own = file.is_relative_to(PACKAGE / "cli") or (file.name == "__main__.py" and file != program)
        assert own or not any(belongs(name, {"hpkit.cli"}) for name in imports_of(file)), f"{file} imports hpkit.cli"


# Rooms of the plugin, the lowest first: each imports what is before it, and nothing after.
PLUGIN = ROOT / "infra" / "provider"
PLUGIN_ALLOWED = {
    "engine": {"provider.engine"},
    "schema": {"provider.engine", "provider.schema", "provider.VERSION"},
    "aws": {"provider.engine", "provider.aws", "provider.VERSION"},
    "resources": {"provider.engine", "provider.schema", "provider.aws", "provider.resources"},
}


def own_imports(file: Path, package: str) -> set[str]:
    """Return what a file imports of a package, names of the package itself as `package.NAME`."""
    names = imports_of(file) - {package}
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == package:
            names.update(f"{package}.{alias.name}" for alias in node.names)
    return {name for name in names if belongs(name, {package})}


@pytest.mark.parametrize("room", PLUGIN_ALLOWED)
def test_a_room_of_the_plugin_imports_only_what_is_below_it(room):
    files = sorted((PLUGIN / room).rglob("*.py"))
    assert files, f"there is no room {room}"
    for file in files:
        for name in own_imports(file, "provider"):
            assert belongs(name, PLUGIN_ALLOWED[room]), f"{file.relative_to(ROOT)} imports {name}"


def test_the_plugin_has_no_other_rooms():
    assert {file.name for file in PLUGIN.iterdir() if file.is_dir()} - {"__pycache__"} == PLUGIN_ALLOWED.keys()
    assert {file.name for file in PLUGIN.glob("*.py")} == {"__init__.py", "__main__.py", "server.py"}


def test_the_page_of_the_architecture_says_the_same_of_the_plugin():
    rooms = rooms_of_the_page("infra/provider")
    assert rooms.keys() == PLUGIN_ALLOWED.keys() | {"server"}
    for name, allowed in PLUGIN_ALLOWED.items():
        below = {each.removeprefix("provider.") for each in allowed} - {name, "VERSION"}
        assert set(rooms[name][1].split(", ")) - {"nothing"} == below, name


def test_the_local_cloud_knows_the_general_half_of_the_plugin_alone():
    for file in sorted((ROOT / "local").rglob("*.py")):
        for name in own_imports(file, "provider"):
            assert belongs(name, {"provider.engine"}), f"{file.relative_to(ROOT)} imports {name}"


def test_of_the_kit_the_plugin_imports_only_what_makes_text_printable():
    for file in sorted((ROOT / "infra" / "provider").rglob("*.py")):
        assert not belongs_to_kit(imports_of(file) - {"hpkit.printable"}), f"{file.relative_to(ROOT)} imports hpkit"


def belongs_to_kit(names: set[str]) -> bool:
    return any(belongs(name, {"hpkit"}) for name in names)


def test_whoever_is_not_local_imports_of_it_only_its_entry():
    for folder in (PACKAGE, ROOT / "infra" / "provider", ROOT / "policies"):
        for file in sorted(folder.rglob("*.py")):
            found = {name for name in imports_of(file) if belongs(name, {"local"})}
            assert found <= {"local.cloud"}, f"{file.relative_to(ROOT)} imports {found}"
            assert not found or file.relative_to(PACKAGE).parts[0] in ("cli", "generate"), f"{file} imports {found}"


def test_the_entry_of_local_has_every_name_that_it_promises():
    assert cloud._SOURCES.keys() == set(cloud.__all__)
    for name in cloud.__all__:
        assert getattr(cloud, name) is not None


def modules_under(folder: Path, root: Path) -> dict[str, Path]:
    found = {".".join(file.relative_to(root).with_suffix("").parts): file for file in folder.rglob("*.py")}
    return {name.removesuffix(".__init__"): file for name, file in found.items()}


@pytest.mark.parametrize(
    ("folder", "root"),
    [(LOCAL, ROOT), (PACKAGE, PACKAGE.parent), (PLUGIN, PLUGIN.parent), (ROOT / "policies", ROOT)],
    ids=lambda path: path.name,
)
def test_no_folder_has_a_circle_of_modules(folder, root):
    modules = modules_under(folder, root)
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


@pytest.mark.parametrize("room", LOCAL_ROOMS)
def test_a_room_of_local_imports_only_what_the_design_allows(room):
    local, kit = LOCAL_ROOMS[room]
    allowed = {f"local.{each}" for each in (local | {room})} | kit
    files = [LOCAL / f"{room}.py"] if room == "cloud" else sorted((LOCAL / room).rglob("*.py"))
    assert files
    for file in files:
        for name in imports_of(file):
            own = belongs(name, {"local", "hpkit", "provider", "policies"})
            assert not own or belongs(name, allowed), f"{file.relative_to(ROOT)} imports {name}"


def test_roles_and_their_rights_are_made_in_one_module():
    """What makes roles elsewhere could forget the permissions boundary."""
    kinds = {"Role", "RolePolicy", "RolePolicyAttachment", "RolePoliciesExclusive", "Policy"}
    makers = {
        file.name
        for file in sorted((PACKAGE / "components").rglob("*.py"))
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and ast.unparse(node.func) in {f"aws.iam.{kind}" for kind in kinds}
    }
    assert makers == {"roles.py"}


def test_the_page_of_the_architecture_says_the_same_of_local():
    said = {room: cells[1] for room, cells in rooms_of_the_page("local").items()}
    assert said == {room: ", ".join(sorted(local)) or "nothing" for room, (local, _) in LOCAL_ROOMS.items()}


def test_every_room_of_local_is_in_the_design():
    there = {file.stem for file in LOCAL.iterdir() if file.suffix == ".py" or (file / "__init__.py").is_file()}
    assert there - {"__init__"} == LOCAL_ROOMS.keys()


def test_policies_check_what_is_registered_not_what_was_meant():
    for file in sorted((ROOT / "policies").rglob("*.py")):
        for name in imports_of(file):
            assert not belongs(name, {"hpkit.config"}), f"{file.relative_to(ROOT)} imports {name}"


def test_every_file_of_tests_is_collected():
    helpers = {
        # What pods take on nodes, and what Kueue counts.
        "accounting.py",
        "asked.py",
        "authorization.py",
        "builders.py",
        "cases.py",
        "clouds.py",
        "companies.py",
        "invoke.py",
        "kinds.py",
        "shapes.py",
        "running.py",
        "cloud.py",
        "conftest.py",
        "drifts.py",
        "evaluation.py",
        "harness.py",
        "inventory.py",
        "leftovers.py",
        "once_more.py",
        "life.py",
        "members.py",
        "mutations.py",
        "neutral.py",
        "node_pool_specs.py",
        "newcomer.py",
        "places.py",
        "recorder.py",
        "rewritten.py",
        # Objects of managed Karpenter.
        "karpenter.py",
        "rows.py",
        "switched_off.py",
        "without_engine.py",
        "states.py",
        # The page of evasions; what scanners are given and asked.
        "evasions.py",
        # What a PromQL expression names.
        "expressions.py",
        "documents.py",
        "scan.py",
    }
    for file in sorted((ROOT / "tests").rglob("*.py")):
        known = file.name in helpers or file.name.startswith("test_") or file.name == "__init__.py"
        assert known, f"{file.relative_to(ROOT)} would never run"


def test_modules_stay_small_enough_to_read():
    for folder in ("infra", "local", "policies"):
        for file in sorted((ROOT / folder).rglob("*.py")):
            lines = len(file.read_text(encoding="utf-8").splitlines())
            assert lines <= 800, f"{file.relative_to(ROOT)} has {lines} lines"
