"""Somebody wants to be taken for a release of the kit, or to get something into one."""

import importlib.util
import json
import os
import re
import subprocess
import tomllib

import pytest
import yaml

from tests.security.test_branches import ROOT, WORKFLOWS

JOBS = yaml.safe_load((WORKFLOWS / "release.yml").read_text(encoding="utf-8"))["jobs"]
LOCK = (ROOT / "requirements.lock").read_text(encoding="utf-8")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def bill():
    path = ROOT / ".ci" / "bill_of_materials.py"
    spec = importlib.util.spec_from_file_location("bill_of_materials", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = module.bill_of_materials(PROJECT, LOCK)
    assert text == module.bill_of_materials(PROJECT, LOCK), "who builds it again can compare it"
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


def test_whoever_gets_code_into_a_build_signs_in_the_name_of_the_project():
    assert set(JOBS) == {"build", "attest"}
    assert JOBS["build"]["permissions"] == {"contents": "read"}
    assert JOBS["attest"]["permissions"] == {"id-token": "write", "attestations": "write"}
    assert JOBS["attest"]["environment"] == "release"
    steps = JOBS["attest"]["steps"]
    assert [step for step in steps if "run" in step] == [], "the job with the identity runs no script"
    assert {step["uses"].partition("@")[0] for step in steps} == {"actions/download-artifact", "actions/attest"}
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
    (script,) = [step["run"] for step in JOBS["build"]["steps"] if step.get("name", "").startswith("The tag")]
    variables = {"PATH": os.environ["PATH"], "GITHUB_REF_NAME": tag}
    done = subprocess.run(["bash", "-e", "-c", script], cwd=tmp_path, env=variables, capture_output=True)
    assert done.returncode == status


def test_the_page_says_how_to_verify_what_the_workflow_signs():
    page = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
    assert "gh attestation verify hpkit-" in page
    assert "--signer-workflow acme/hpkit/.github/workflows/release.yml" in page
    assert "--predicate-type https://cyclonedx.org/bom" in page
