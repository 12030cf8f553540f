"""`hpkit aws images` and `hpkit catalog fetch-chart`, without a network."""

import json
import re

import pytest
import yaml

from hpkit.catalog import dependencies_chart, keda_chart, operator_charts
from hpkit.plan.lustre import folder_image
from hpkit.program.charts.package import write_archive
from hpkit.project import load_stack
from tests.cli.invoke import hpkit
from tests.documents import document
from tests.examples import copy_project


@pytest.fixture(autouse=True)
def _alone(tmp_path, monkeypatch):
    monkeypatch.setenv("HPKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HPKIT_MIRROR", raising=False)
    # Nothing listens there, so network access fails immediately.
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")


@pytest.fixture
def project(tmp_path):
    """Return the examples without a downloaded package."""
    return copy_project(tmp_path)


def test_the_images_of_a_closed_stack_are_listed_with_their_names_in_its_mirror(project):
    done = hpkit("aws", "images", "--stack", "enterprise-prod", "--format", "json", cwd=project)
    assert done.returncode == 0, done.stderr
    charts = json.loads(done.stdout)
    rows = {each["source"]: each for each in charts["images"]}
    registry = "123456789012.dkr.ecr.us-east-1.amazonaws.com/hyperpod"
    assert rows["nvcr.io/nvidia/k8s-device-plugin:v0.16.1"]["target"] == f"{registry}/nvidia/k8s-device-plugin:v0.16.1"
    assert [name.partition("/")[0] for name, row in rows.items() if row["regional"]] == [
        "767398015722.dkr.ecr.us-east-1.amazonaws.com"
    ]
    assert not any("neuron" in name for name in rows), "no node of the stack is a Neuron node"
    assert charts["readFrom"] == "the catalog and the program"
    assert "hpkit catalog fetch-chart" in done.stderr


def test_images_of_the_stacks_own_manifests_are_among_them(project):
    file = project / "stacks" / "autoscale.yaml"
    file.write_text(
        file.read_text(encoding="utf-8").replace(
            "          nodeClass: burst\n",
            "          nodeClass: burst\n          warmPool: {replicas: 1, requests: {nvidia.com/gpu: 1}}\n",
            1,
        )
    )
    done = hpkit("aws", "images", "--stack", "autoscale-dev", cwd=project)
    assert "pause" in done.stdout, done.stdout + done.stderr


def test_images_that_operators_add_are_among_them(project):
    done = hpkit("aws", "images", "--stack", "autoscale-dev", "--format", "json", cwd=project)
    rows = {each["source"]: each["neededBy"] for each in json.loads(done.stdout)["images"]}
    assert "PyTorchJob" in rows["docker.io/library/alpine:3.10"]
    assert {name for name in rows if "kedacore" in name} == set(keda_chart().images) != set()
    assert {rows[name] for name in keda_chart().images} == {"chart keda, which hpkit installs without a mirror"}


def test_the_image_that_makes_the_teams_folders_is_copied_and_then_pulled_from_the_mirror(project):
    file = project / "stacks" / "enterprise.yaml"
    data = yaml.safe_load(file.read_text(encoding="utf-8"))
    zone = data["environments"]["prod"]["network"]["zones"][0]["availabilityZone"]
    lustre = {"availabilityZone": zone, "storageCapacityGiB": 1200, "teams": True}
    data["environments"]["prod"].setdefault("storage", {})["lustre"] = lustre
    file.write_text(yaml.safe_dump(data), encoding="utf-8")
    done = hpkit("aws", "images", "--stack", "enterprise-prod", "--format", "json", cwd=project)
    assert done.returncode == 0, done.stderr
    (row,) = [row for row in json.loads(done.stdout)["images"] if "busybox" in row["source"]]
    assert re.fullmatch(r"public\.ecr\.aws/docker/library/busybox:1\.37\.0@sha256:[0-9a-f]{64}", row["source"])
    copy = "123456789012.dkr.ecr.us-east-1.amazonaws.com/hyperpod/docker/library/busybox:1.37.0"
    assert (row["target"], row["regional"]) == (copy, False)
    plan = load_stack("enterprise-prod", root=project).plans["prod"]
    assert folder_image(plan.spec) == copy


def test_a_mirror_has_to_be_named_before_anything_is_copied(project):
    done = hpkit("aws", "images", "--stack", "handson-dev", "--mirror", cwd=project)
    assert done.returncode == 2
    assert "--account," in done.stderr


def test_without_crane_and_skopeo_the_commands_are_printed(project, monkeypatch):
    monkeypatch.setattr("shutil.which", lambda _: None)
    done = hpkit("aws", "images", "--stack", "handson-dev", "--mirror", "--account", "210987654321", cwd=project)
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert "aws ecr get-login-password --region us-west-2 | crane auth login" in lines[0]
    copies = [line for line in lines if line.startswith("crane copy")]
    assert "crane copy docker.io/mpioperator/mpi-operator:0.5" in "\n".join(copies)
    assert all("210987654321.dkr.ecr.us-west-2.amazonaws.com/" in line for line in copies)
    assert not any("health-monitoring" in line for line in copies), "the region has it"


def test_a_fetch_without_a_network_says_what_to_do(project):
    done = hpkit("catalog", "fetch-chart", cwd=project)
    assert done.returncode == 1
    assert dependencies_chart().archive in done.stderr
    assert "HPKIT_MIRROR" in done.stderr


def test_a_fetch_says_where_the_package_is_and_when_it_is_not_the_pins(project, tmp_path, monkeypatch):
    for pin in (dependencies_chart(), keda_chart(), *operator_charts()):
        write_archive(tmp_path / "mirror" / pin.published_file, "chart", {"Chart.yaml": b"name: chart\n"})
    monkeypatch.setenv("HPKIT_MIRROR", str(tmp_path / "mirror"))
    done = hpkit("catalog", "fetch-chart", "--format", "json", cwd=project)
    places = [
        project / ".hpkit" / "charts" / pin.file for pin in (dependencies_chart(), keda_chart(), *operator_charts())
    ]
    assert [item["target"] for item in document(done.stdout)["items"]] == [str(place) for place in places]
    assert all(place.is_file() for place in places)
    assert hpkit("catalog", "fetch-chart", cwd=project).stdout.split() == [str(place) for place in places]
    assert done.stderr.count("differs from hpkit's pin, so AWS deployments reject it") == 4


def test_validating_and_planning_need_no_chart(project):
    assert hpkit("validate", cwd=project).returncode == 0
    done = hpkit("plan", "--stack", "handson-dev", cwd=project)
    assert done.returncode == 0
    assert dependencies_chart().file in done.stdout
