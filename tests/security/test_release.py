"""An attacker tries to pass off something as a release of hpkit, or to add something to one."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from tests.security.test_branches import ROOT, WORKFLOWS

JOBS = yaml.safe_load((WORKFLOWS / "release.yml").read_text(encoding="utf-8"))["jobs"]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
PACKAGES = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]


@pytest.fixture(scope="module")
def bill():
    path = ROOT / ".ci" / "bill_of_materials.py"
    spec = importlib.util.spec_from_file_location("bill_of_materials", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.bill_of_materials(PROJECT, LOCK)
    assert text == module.bill_of_materials(PROJECT, LOCK), "who builds it again can compare it"
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None, "as the standard's own schema has it"
    return json.loads(text)


def test_a_package_is_under_a_release_that_its_bill_of_materials_does_not_name(bill):
    pinned = dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)", LOCK, re.MULTILINE))
    assert {each["name"]: each["version"] for each in bill["components"]} == pinned
    hashes = {entry["hashes"][0]["content"] for each in bill["components"] for entry in each["externalReferences"]}
    assert hashes == set(re.findall(r"sha256:([0-9a-f]{64})", LOCK))
    assert bill["metadata"]["component"]["version"] == PROJECT["version"]
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")


def test_what_tests_alone_need_is_told_from_what_runs(bill):
    scopes = {each["name"]: each["scope"] for each in bill["components"]}
    assert [scopes[name] for name in ("boto3", "botocore", "pydantic-core", "grpcio")] == ["required"] * 4
    assert [scopes[name] for name in ("moto", "psutil")] == ["optional"] * 2
    assert [scopes[name] for name in ("pytest", "mypy", "hypothesis")] == ["excluded"] * 3


def built(folder, mode):
    """Build the wheel as `make release` does, from a copy whose files have other times and permissions."""
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, tracked.split("\0")):
        if name.startswith((*PACKAGES, "pyproject.toml", "README.md", "LICENSE")) and (ROOT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            if (ROOT / name).is_dir():  # A link to a folder: the wheel contains its files.
                linked = ROOT / name
                shutil.copytree(linked, folder / name)
                continue
            shutil.copyfile(ROOT / name, folder / name)
            (folder / name).chmod(mode | (0o111 if os.access(ROOT / name, os.X_OK) else 0))
    words = [sys.executable, "-m", "hatchling", "build", "--target", "wheel"]
    variables = {**os.environ, "SOURCE_DATE_EPOCH": "1767225600"}
    subprocess.run(words, cwd=folder, env=variables, check=True, capture_output=True)
    (wheel,) = (folder / "dist").iterdir()
    return wheel


def test_a_wheel_that_holds_something_else_passes_for_one_of_its_commit(tmp_path):
    wheels = []
    for name, mode in (("one", 0o644), ("another", 0o664)):
        (tmp_path / name).mkdir()
        wheels.append(built(tmp_path / name, mode))
    assert wheels[0].name == wheels[1].name == f"hpkit-{PROJECT['version']}-py3-none-any.whl"
    assert wheels[0].read_bytes() == wheels[1].read_bytes(), "who builds it again can compare it"
    with zipfile.ZipFile(wheels[0]) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        data = {name.partition("/")[2] for name in archive.namelist() if ".dist-info/" in name}
    folders = [tmp_path / "one" / package for package in PACKAGES]
    tracked = {
        str(file.relative_to(folder.parent)) for folder in folders for file in folder.rglob("*") if file.is_file()
    }
    own = {f"hpkit/scaffold/workflows/{name}.yml" for name in ("ci", "nightly", "outdated", "release")}
    assert own < tracked
    assert held == tracked - own, "what is tracked, without the workflows that projects don't get, and nothing else"
    assert data == {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}


def test_whoever_gets_code_into_a_build_signs_in_the_name_of_the_project():
    assert set(JOBS) == {"build", "attest", "publish", "index", "versions", "site"}
    assert JOBS["build"]["permissions"] == {"contents": "read"}
    assert JOBS["attest"]["permissions"] == {"id-token": "write", "attestations": "write"}
    assert JOBS["attest"]["environment"] == "release"
    steps = JOBS["attest"]["steps"]
    assert [step for step in steps if "run" in step] == [], "the job with the identity runs no script"
    assert {step["uses"].partition("@")[0] for step in steps} == {"actions/download-artifact", "actions/attest"}
    assert JOBS["publish"]["permissions"] == {"contents": "write"}
    assert JOBS["publish"]["needs"] == "attest", "what nobody signed is not offered"
    *fetched, offered = JOBS["publish"]["steps"]
    assert {step["uses"].partition("@")[0] for step in fetched} == {"actions/download-artifact"}
    tag = '"$GITHUB_REF_NAME"'
    assert offered["run"] == f"gh release create {tag} dist/* pages/* --verify-tag --title {tag} --notes-from-tag"
    index = JOBS["index"]
    assert index["permissions"] == {"id-token": "write"}
    assert (index["environment"], index["needs"]) == ("index", "publish")
    assert [step for step in index["steps"] if "run" in step] == [], "nor does the one that the index trusts"
    assert index["steps"][-1]["with"] == {"packages-dir": "wheels", "attestations": True}
    assert JOBS["versions"]["permissions"] == {"contents": "read"}
    (site,) = JOBS["site"]["steps"]
    assert site["uses"].startswith("actions/deploy-pages@"), "the job that publishes pages runs no script"
    assert not any("cache" in step.get("uses", "") for step in JOBS["build"]["steps"])
    signed = [step["with"] for step in steps if step["uses"].startswith("actions/attest@")]
    assert {"subject-path": "dist/*"} in signed
    assert {"subject-path": "dist/*.whl", "sbom-path": "dist/hpkit.cdx.json"} in signed


@pytest.fixture
def repository(tmp_path):
    def git(*words):
        identity = ("-c", "user.name=ann", "-c", "user.email=ann@example.com", "-c", "init.defaultBranch=main")
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init")
    recordings = tmp_path / "tests" / "program" / "releases" / "1.2.3"
    recordings.mkdir(parents=True)
    (recordings / "handson-dev.json.xz").write_text("")
    (tmp_path / "pyproject.toml").write_text('[project]\nversion = "1.2.3"\n')
    git("add", ".")
    git("commit", "-m", "reviewed")
    git("update-ref", "refs/remotes/origin/main", "HEAD")
    return git


@pytest.mark.parametrize(
    ("tag", "reviewed", "status"), [("v1.2.3", True, 0), ("v1.2.4", True, 1), ("v1.2.3", False, 1)]
)
def test_a_tag_on_a_branch_or_of_another_version_becomes_a_release(repository, tmp_path, tag, reviewed, status):
    if not reviewed:
        (tmp_path / "evil").write_text("")
        repository("add", ".")
        repository("commit", "-m", "not reviewed")
    (script,) = [
        step["run"] for step in JOBS["build"]["steps"] if step.get("name", "").startswith("Check that the tag")
    ]
    variables = {"PATH": os.environ["PATH"], "GITHUB_REF_NAME": tag}
    done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=variables, capture_output=True)
    assert done.returncode == status


def test_a_release_with_which_no_later_version_is_compared(repository, tmp_path):
    shutil.rmtree(tmp_path / "tests")
    repository("commit", "-am", "reviewed too")
    repository("update-ref", "refs/remotes/origin/main", "HEAD")
    (script,) = [
        step["run"] for step in JOBS["build"]["steps"] if step.get("name", "").startswith("Check that the tag")
    ]
    variables = {"PATH": os.environ["PATH"], "GITHUB_REF_NAME": "v1.2.3"}
    done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert "tests/program/releases/1.2.3" in done.stderr
    assert done.returncode != 0


def test_a_file_of_the_folder_that_no_commit_holds_gets_into_a_release(repository, tmp_path):
    for name in ("Makefile", "requirements.lock"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / ".gitignore").write_text(".venv/\n")
    repository("add", ".")
    repository("commit", "-m", "reviewed")
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / ".installed").write_text("")
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "acme.yaml").write_text("")
    done = subprocess.run(["make", "--no-print-directory", "release"], cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert "commit or remove these files first:\n?? stacks/\n" in done.stderr


def test_the_page_says_how_to_verify_what_the_workflow_signs():
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "gh release download v" in page
    assert "gh attestation verify hpkit-" in page
    assert "--signer-workflow acme/hpkit/.github/workflows/release.yml" in page
    assert "--predicate-type https://cyclonedx.org/bom" in page
