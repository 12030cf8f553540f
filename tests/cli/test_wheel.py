"""The wheel alone, outside the repository: every command runs, or states what it needs.

Each virtual environment has exactly the packages that the wheel's metadata requires, linked from this environment.
"""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterable
from email import message_from_bytes
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from hpkit.cli import command_lines
from hpkit.scaffold.files import locked_requirements
from tests.cli.tries import RUNS
from tests.test_readme import PROJECT

ROOT = Path(__file__).parent.parent.parent
PACKAGES = {
    "hpkit": "infra/hpkit",
    "hpkit_provider": "infra/hpkit_provider",
    "hpkit_local": "local/hpkit_local",
    "hpkit_policies": "policies/hpkit_policies",
    "hpkit_whatif": "whatif/hpkit_whatif",
}
IMPORT_ALL = """
import importlib, pkgutil, sys
for package in sys.argv[1:]:
    for module in pkgutil.walk_packages([importlib.import_module(package).__path__[0]], f"{package}."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
"""
# One command that needs Pulumi's packages, and one that needs an extra; the nightly run tests all others.
ALWAYS = {"plan", "local"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    subprocess.run([*pip, "--wheel-dir", folder, ROOT], check=True, timeout=300)
    return next(folder.glob("*.whl"))


def closure(requirements: Iterable[str], extra: str) -> set[str]:
    """Return the names of all distributions that requirements need, including those of an extra."""
    distributions: set[str] = set()
    todo = [(each, extra) for each in map(Requirement, requirements)]
    seen = set()
    while todo:
        requirement, asked = todo.pop()
        if (str(requirement), asked) in seen:
            continue
        seen.add((str(requirement), asked))
        if requirement.marker is None or requirement.marker.evaluate({"extra": asked}):
            distributions.add(requirement.name)
            needs = distribution(requirement.name).requires or ()
            todo += [(Requirement(each), one) for each in needs for one in (requirement.extras or {""})]
    return distributions


def environment_of(wheel: Path, folder: Path, extra: str) -> Path:
    """Create a virtual environment with the wheel and its requirements; return its folder of executables."""
    packages = folder / "packages"
    packages.mkdir(parents=True)
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        requires = message_from_bytes(archive.read(name)).get_all("Requires-Dist") or []
    for name in closure(requires, extra):
        files = distribution(name).files or ()
        for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
            if not (packages / top).is_symlink():
                (packages / top).symlink_to(Path(str(distribution(name).locate_file(top))))
    # The engine asks pip which packages are installed.
    venv.create(folder / "venv", symlinks=True, with_pip=bool(extra))
    python = folder / "venv" / "bin" / "python"
    site = next((folder / "venv" / "lib").glob("python*")) / "site-packages"
    (site / "packages.pth").write_text(f"{packages}\n")
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    subprocess.run([*pip, wheel], check=True, timeout=300)
    return python.parent


@pytest.fixture(scope="module")
def alone(wheel, tmp_path_factory):
    return environment_of(wheel, tmp_path_factory.mktemp("alone"), "")


@pytest.fixture(scope="module")
def with_local(wheel, tmp_path_factory):
    return environment_of(wheel, tmp_path_factory.mktemp("local"), "local")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """Return an organization's repository: its file, its settings, and one change since the last commit."""
    if shutil.which("git") is None:
        pytest.skip("compares with a commit; `git` is not on PATH")
    folder = tmp_path_factory.mktemp("project")
    (folder / "stacks").mkdir()
    for name in ("Pulumi.yaml", "stacks/handson.yaml", "stacks/Pulumi.handson-dev.yaml"):
        shutil.copy(ROOT / name, folder / name)
    git = ("git", "-c", "user.name=n", "-c", "user.email=n@example.com")
    for command in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "begin")):
        subprocess.run([*git, *command], cwd=folder, check=True)
    file = folder / "stacks" / "handson.yaml"
    file.write_text(file.read_text().replace("count: 3}", "count: 2}"))
    return folder


def run(executables: Path, *arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run hpkit with only git on PATH, no tool in the cache, and no AWS account."""
    tools = cwd / "bin"
    tools.mkdir(exist_ok=True)
    if not (tools / "git").exists():
        (tools / "git").symlink_to(shutil.which("git"))
    own = {"PATH": str(tools), "HOME": str(cwd), "HPKIT_CACHE": str(cwd / "cache"), "AWS_EC2_METADATA_DISABLED": "true"}
    return subprocess.run(
        [executables / "hpkit", *arguments], cwd=cwd, env={**own, **more}, capture_output=True, text=True, timeout=300
    )


def test_the_wheel_holds_every_file_of_its_packages(wheel):
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("asks git which files there are; this is no clone")
    wanted = {
        f"{package}{file.removeprefix(folder)}"
        for package, folder in PACKAGES.items()
        for file in listed.stdout.splitlines()
        if file.startswith(f"{folder}/") and (ROOT / file).is_file()
    }
    wanted |= {
        "hpkit/scaffold/examples/startup.yaml",
        "hpkit/scaffold/workflows/deploy.yml",
        "hpkit/scaffold/requirements.lock",
        "hpkit/docs/index.md",
    }
    with zipfile.ZipFile(wheel) as archive:
        assert wanted <= set(archive.namelist())


def test_the_help_names_pages_that_the_wheel_contains(alone, project):
    (pages,) = re.findall(r"\S+/hpkit/docs/index\.md", run(alone, "--help", cwd=project).stdout)
    assert Path(pages).is_file()


def test_every_command_is_tried():
    assert set(RUNS) | {"job check", "local doctor"} == set(command_lines()) | {"local doctor"}


@pytest.mark.parametrize(
    "command", [pytest.param(name, marks=() if name in ALWAYS else pytest.mark.nightly) for name in RUNS]
)
def test_a_command_runs_from_the_wheel_alone_or_says_what_it_needs(alone, project, command):
    arguments, code, output = RUNS[command]
    answer = run(alone, *command.split(), *arguments.split(), cwd=project)
    told = answer.stdout + answer.stderr
    assert "Traceback" not in told, told
    assert (answer.returncode, output in " ".join(told.split())) == (code, True), told


def test_what_needs_no_extra_can_be_imported_without_it(alone):
    packages = ("hpkit", "hpkit_provider", "hpkit_policies", "hpkit_whatif", "hpkit_local.toolchain")
    answer = subprocess.run([alone / "python", "-P", "-c", IMPORT_ALL, *packages], capture_output=True, text=True)
    assert answer.returncode == 0, answer.stderr


def test_a_projects_lock_has_every_package_that_the_wheel_asks_for(wheel):
    with zipfile.ZipFile(wheel) as archive:
        name = next(each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        requires = message_from_bytes(archive.read(name)).get_all("Requires-Dist") or []
    locked = re.findall(r"^([\w.-]+)==", locked_requirements("local"), re.MULTILINE)
    assert {canonicalize_name(each) for each in closure(requires, "local")} <= set(locked)


@pytest.mark.nightly
def test_the_extra_brings_all_that_the_local_cloud_imports(with_local, project):
    answer = subprocess.run(
        [with_local / "python", "-P", "-c", IMPORT_ALL, "hpkit_local"], capture_output=True, text=True
    )
    assert answer.returncode == 0, answer.stderr
    said = run(with_local, "local", "status", cwd=project).stdout
    assert said == f"default isn't running. To start it: {with_local / 'hpkit'} local up --stack STACK\n"


@pytest.mark.parametrize("installer", [pytest.param("pip", marks=pytest.mark.nightly), "uv"])
def test_the_lock_of_a_release_installs_the_wheel_of_its_hash_with_pinned_packages(wheel, tmp_path, installer):
    copy = shutil.copy(wheel, tmp_path)
    script = ROOT / ".ci" / "release_lock.py"
    subprocess.run([sys.executable, script, copy, tmp_path / "hpkit-0.1.0.lock"], check=True, timeout=300)

    lock = tmp_path / "hpkit-0.1.0.lock"
    if installer == "uv":
        lock.write_text(lock.read_text().partition("\n")[0])

    def installed():
        # uv checks the hash when it installs: here to a folder, and without the packages that the wheel needs.
        options = ["uv", "pip", "install", "--no-deps", "--target", "out"]
        pip = ["pip", "install", "--dry-run"] if installer == "pip" else options
        words = [sys.executable, "-m", *pip, "--no-index", "-r", lock.name]
        return subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300)

    assert installed().returncode == 0, installed().stderr
    assert (tmp_path / "hpkit-0.1.0-uv.lock").read_text().startswith("uv==")
    with zipfile.ZipFile(copy, "a") as archive:
        archive.writestr("hpkit/more.py", "")
    assert re.search("DO NOT MATCH THE HASHES|Hash mismatch", installed().stderr)


@pytest.mark.nightly
@pytest.mark.engine
@pytest.mark.cluster
@pytest.mark.timeout(900)
def test_the_readmes_commands_lead_from_the_wheel_to_a_reviewed_change_without_the_repository(with_local, tmp_path):
    from hpkit.cache import cache_root

    person = {f"GIT_{role}_{part}": "n@example.com" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    offline = {"https_proxy": "http://127.0.0.1:9", "no_proxy": "127.0.0.1,localhost"}
    path = f"{with_local}:{os.environ['PATH']}"
    given = {"HPKIT_CACHE": str(cache_root()), "HOME": str(tmp_path), "PATH": path, **person, **offline}

    def typed(line):
        answer = subprocess.run(
            ["bash", "-c", line], cwd=tmp_path, env=given, capture_output=True, text=True, timeout=900
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    (block,) = PROJECT
    installed, made, committed, up, changed, reviewed = (line.removeprefix("$ ") for line in block.splitlines())
    assert installed.split("  ")[0].endswith("uv pip install -r hpkit-0.1.0.lock"), "as with_local is made"
    (tmp_path / ".venv").symlink_to(with_local.parent)
    assert "wrote wheels/hpkit-" in typed(made)
    typed(committed)
    try:
        (created,) = re.findall(r"(\d+) resources created", typed(up))
        assert int(created) > 100, "as the README says"
        typed(changed)
        state = typed("git status --porcelain")
        assert " M stacks/acme.yaml" in state
        assert ".local" not in state, "keys and state of the local cloud aren't committed"
        said = typed(reviewed)
        assert "models: quota of ml.g6e.xlarge 5 → 4" in said
        assert "update hyperpod.ComputeQuota models" in said
        # With an environment elsewhere, the project has no path: the engine finds the plugin on PATH.
        settings, plugins, _ = (tmp_path / "Pulumi.yaml").read_text().partition("# Where pip")
        assert plugins
        (tmp_path / "Pulumi.yaml").write_text(settings.replace(".venv", str(with_local.parent)))
        (tmp_path / ".venv").unlink()
        assert "1 to update" in typed('eval "$(hpkit local env --name acme-dev)"; pulumi preview --stack acme-dev')
    finally:
        # tests/test_walk.py shows that `hpkit local down` deletes a stack before its instance.
        typed("hpkit local reset --yes")
