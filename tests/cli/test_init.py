"""`hpkit init`: its files validate, and equal those that this repository uses."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from hpkit.cli.organization.init import command
from hpkit.project import load
from hpkit.scaffold import EXAMPLES, PIPELINES, Choice, project_files

ROOT = Path(__file__).parents[2]
PACKAGES = {"hpkit", "hpkit_local", "hpkit_policies", "hpkit_provider", "hpkit_whatif"}


def init(folder, *arguments):
    return CliRunner().invoke(command, [*arguments, "--directory", str(folder)], catch_exceptions=True)


def test_gitignore_is_written_first_and_a_file_in_the_way_is_named(tmp_path):
    (tmp_path / ".github").touch()
    assert str(init(tmp_path, "acme").exception).startswith(f"{tmp_path / '.github'}: File exists. Correct this")
    assert {file.name for file in tmp_path.iterdir()} == {".gitignore", ".github"}


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_project_from_an_example_has_no_error(example, tmp_path):
    accounts = ["210987654321", "333333333333"] if example == "enterprise" else ["210987654321"]
    answer = init(tmp_path, "acme", "--from", example, *(word for each in accounts for word in ("--account", each)))
    assert answer.exit_code == 0, answer.output
    loaded = load(tmp_path / "stacks" / "acme.yaml")
    assert [each for each in loaded.findings if each.severity == "error"] == []
    assert {plan.spec.account for plan in loaded.plans.values()} == {*accounts}
    assert "placeholder" not in (tmp_path / "stacks" / "acme.yaml").read_text()
    assert all(stack.startswith("acme-") for stack in (plan.stack for plan in loaded.plans.values()))


def test_the_region_is_written_everywhere(tmp_path):
    assert init(tmp_path, "acme", "--region", "eu-west-1").exit_code == 0
    text = (tmp_path / "stacks" / "acme.yaml").read_text()
    assert "us-west-2" not in text
    assert "availabilityZone: eu-west-1a" in text


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("acme_dev",), "isn't a valid name"),
        (("acme", "--owner", "platform"), "Write it as in CODEOWNERS, such as @acme/platform"),
        (("acme", "--account", "12"), "12 digits"),
        (("acme", "--account", "210987654321", "--account", "333333333333"), "333333333333 has no environment"),
        (("acme", "--region", "mars-1"), "doesn't validate with these options"),
        (("acme", "--public-cidr", "here"), "doesn't validate with these options"),
        ((), "name the organization"),
        (("--diff",), "Run this in the project's folder, or name it with --directory"),
    ],
)
def test_a_wrong_value_writes_nothing(arguments, said, tmp_path):
    answer = init(tmp_path, *arguments)
    assert said in str(answer.exception)
    assert list(tmp_path.iterdir()) == []


def test_existing_files_are_kept(tmp_path):
    (tmp_path / "README.md").write_text("ours")
    (tmp_path / ".gitignore").write_text("/.hpkit\n__pycache__/\n*.bak\n/hpkit*\n")
    answer = init(tmp_path, "acme")
    assert "kept README.md\n" in answer.output
    assert "kept .gitignore; add these lines to it: .venv, .local/, /hpkit-*.whl" in answer.output
    assert (tmp_path / "README.md").read_text() == "ours"
    assert "wrote" not in init(tmp_path, "acme").output


def test_another_project_is_left_alone(tmp_path):
    (tmp_path / "Pulumi.yaml").write_text("name: other\nruntime: python\n")
    assert "is another project (other). To add an organization" in str(init(tmp_path, "acme").exception)
    assert "is another project (other)" in str(init(tmp_path, "acme", "--diff").exception)
    assert [file.name for file in tmp_path.iterdir()] == ["Pulumi.yaml"]


def test_a_dry_run_shows_the_tree_and_writes_nothing(tmp_path):
    (tmp_path / "README.md").write_text("ours")
    shown = init(tmp_path, "acme", "--dry-run").output.splitlines()
    assert [file.name for file in tmp_path.iterdir()] == ["README.md"]
    init(tmp_path, "acme")
    written = {path for path in tmp_path.rglob("*") if path.is_file()}
    names = [re.sub(r"^[│├└─ ]*| \(kept\)$", "", line) for line in shown[1:-1]]
    assert sorted(name for name in names if not name.endswith("/")) == sorted(path.name for path in written)
    start = shown.index("└── stacks/")
    assert shown[start + 1 : start + 3] == ["    ├── acme.yaml", "    └── schema.json"]
    assert "├── README.md (kept)" in shown
    assert shown[-1] == f"{len(written) - 1} of {len(written)} files would be written"


def test_differences_are_those_of_the_kits_files_alone(tmp_path):
    init(tmp_path, "acme", "--ci", "gitlab")
    (tmp_path / "stacks" / "acme.yaml").write_text("ours")
    assert "would write the same files" in init(tmp_path, "--diff").output
    (tmp_path / "requirements.txt").write_text("hpkit[local]==0.0.9\n")
    shown = init(tmp_path, "--diff").output
    assert "-hpkit[local]==0.0.9\n" in shown
    assert re.search(r"^\+hpkit\[local\]==\d", shown, re.MULTILINE)


def test_differences_are_applied_as_the_page_of_upgrades_does(tmp_path):
    assert "`hpkit init --diff | git apply -p0`" in (ROOT / "docs" / "guides" / "upgrades.md").read_text()
    init(tmp_path, "acme")
    (tmp_path / "requirements.txt").write_text("hpkit[local]==0.0.9\n")
    (tmp_path / "policies" / "__main__.py").unlink()
    shown = init(tmp_path, "--diff").output
    subprocess.run(["git", "apply", "-p0"], cwd=tmp_path, input=shown, text=True, check=True)
    assert "would write the same files" in init(tmp_path, "--diff").output


def test_the_lock_of_a_project_is_the_part_of_the_kits_own_that_the_local_extra_needs():
    own = (ROOT / "requirements.lock").read_text()
    lock = project_files(Choice("acme", "startup", "none", "0.1.0"))["requirements.lock"]
    names = set(re.findall(r"^([\w.-]+)==", lock, re.MULTILINE))
    assert {"pulumi", "boto3", "moto", "psutil", "grpcio"} <= names
    assert names.isdisjoint({"pytest", "mypy", "joblib", "mkdocs-material"})
    for entry in re.split(r"\n(?=\w)", lock)[1:]:
        assert entry.strip() in own
        assert "--hash=sha256:" in entry


@pytest.mark.parametrize("pipeline", PIPELINES)
def test_a_pipeline_needs_nothing_of_the_kits_own_repository(pipeline):
    files = project_files(Choice("acme", "startup", pipeline, "0.1.0"))
    pipelines = {path: text for path, text in files.items() if path.endswith(".yml")}
    assert bool(pipelines) == (pipeline != "none")
    for path, text in pipelines.items():
        assert yaml.safe_load(text), path
        assert not re.search(
            r"\bmake (install|tools|up)\b|\b(infra|local|policies/hpkit|whatif|generate|tests|docs|bench|\.ci)/", text
        ), path
        modules = set(re.findall(r"python (?:-\w )*-m ([\w.]+)", text)) | set(
            re.findall(r"(?:from|import) (hpkit\w*)", text)
        )
        assert all(name == "venv" or name.partition(".")[0] in PACKAGES for name in modules), (path, modules)


@pytest.mark.parametrize("pipeline", ["github", "gitlab"])
def test_each_file_names_the_version_that_wrote_it(pipeline):
    files = project_files(Choice("acme", "startup", pipeline, "9.8.7"))
    # JSON has no comments. `hpkit catalog schema` writes the schema, too.
    assert [path for path, text in files.items() if "hpkit" in text and "9.8.7" not in text] == ["stacks/schema.json"]


def test_the_repository_uses_the_same_program_and_policy_pack():
    files = project_files(Choice("acme", "startup", "none", "0.1.0"))
    for path, own in (
        ("__main__.py", "infra/__main__.py"),
        ("policies/__main__.py", "policies/__main__.py"),
        ("policies/PulumiPolicy.yaml", "policies/PulumiPolicy.yaml"),
    ):
        assert re.sub(r"# Written by.*\n| Written by hpkit init 0.1.0\.", "", files[path]) == (ROOT / own).read_text()
    assert len(files["__main__.py"].splitlines()) <= 5
    project, own = yaml.safe_load(files["Pulumi.yaml"]), yaml.safe_load((ROOT / "Pulumi.yaml").read_text())
    for key in ("runtime", "plugins", "stackConfigDir"):
        assert project[key] == own[key]
