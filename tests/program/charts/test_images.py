"""Images in manifests, their names in a mirror, and how they are copied."""

import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from hpkit.catalog import dependencies_chart, instance_types
from hpkit.errors import ToolError
from hpkit.program.charts import copy_commands, images_in, mirror, mirrored, rendered
from tests.running import chart_mirror, helm

MANIFESTS = """
kind: DaemonSet
spec: {template: {spec: {initContainers: [{image: nvcr.io/a/b:1}], containers: [{image: c/d:2}, {name: none}]}}}
---
kind: CustomResourceDefinition
spec: {schema: {containers: {items: {image: {type: string}}}}}
---
kind: Pod
spec: {containers: [{image: pause}, {image: nvcr.io/a/b:1}]}
"""
REGISTRY = "123456789012.dkr.ecr.us-east-1.amazonaws.com/hyperpod"


def test_images_are_those_of_containers_each_once_with_its_registry():
    assert images_in(MANIFESTS) == ["docker.io/c/d:2", "docker.io/library/pause", "nvcr.io/a/b:1"]


def test_a_mirror_keeps_names_and_what_is_regional_needs_none():
    sources = {
        "nvcr.io/a/b:1": "x",
        "1.dkr.ecr.us-east-1.amazonaws.com/e:1": "x",
        "1.dkr.ecr.us-west-2.amazonaws.com/e:1": "x",
    }
    rows = {each.source: each for each in mirrored(sources, registry=REGISTRY, region="us-east-1")}
    assert rows["nvcr.io/a/b:1"].target == f"{REGISTRY}/a/b:1"
    assert [name for name, row in rows.items() if row.regional] == ["1.dkr.ecr.us-east-1.amazonaws.com/e:1"]


@pytest.mark.parametrize(
    ("tool", "login", "copy"),
    [
        ("crane", "crane auth login", "crane copy nvcr.io/a/b:1"),
        ("skopeo", "skopeo login", "skopeo copy --all docker://nvcr.io/a/b:1 docker://"),
    ],
)
def test_commands_log_in_make_the_repository_and_copy(tool, login, copy):
    lines = copy_commands(mirrored({"nvcr.io/a/b:1": "x"}, registry=REGISTRY, region="us-east-1"), tool)
    assert [login in lines[0], "create-repository" in lines[1], lines[2].startswith(copy)] == [True, True, True]
    assert "--repository-name hyperpod/a/b" in lines[1]


DIGEST = f"sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("tool", "source"),
    [("crane", f"nvcr.io/a/b:1@{DIGEST}"), ("skopeo", f"docker://nvcr.io/a/b@{DIGEST}")],
)
def test_an_image_with_tag_and_digest_is_copied_by_its_digest_to_its_tag(tool, source):
    lines = copy_commands(mirrored({f"nvcr.io/a/b:1@{DIGEST}": "x"}, registry=REGISTRY, region="us-east-1"), tool)
    assert f" {source} " in lines[-1]
    assert lines[-1].endswith(f"{REGISTRY}/a/b:1")
    assert "--repository-name hyperpod/a/b" in lines[1]


def test_an_image_with_a_digest_alone_keeps_it_in_a_mirror():
    lines = copy_commands(mirrored({f"nvcr.io/a/b@{DIGEST}": "x"}, registry=REGISTRY, region="us-east-1"), "crane")
    assert lines[-1].endswith(f"{REGISTRY}/a/b@{DIGEST}")
    assert lines[1].endswith("--repository-name hyperpod/a/b")


class NotFoundError(Exception):
    pass


class Ecr:
    """The ECR requests of the mirror."""

    exceptions = SimpleNamespace(RepositoryNotFoundException=NotFoundError)

    def __init__(self):
        self.repositories = []

    def get_authorization_token(self):
        return {"authorizationData": [{"authorizationToken": "QVdTOnNlY3JldA=="}]}

    def describe_repositories(self, **asked):
        if asked["repositoryNames"][0] not in self.repositories:
            raise NotFoundError

    def create_repository(self, **asked):
        self.repositories.append(asked["repositoryName"])


@pytest.fixture
def crane(tmp_path, monkeypatch):
    """A crane that records its commands."""
    script, log = tmp_path / "bin" / "crane", tmp_path / "log"
    script.parent.mkdir()
    script.write_text(
        f'#!/bin/sh\necho "$@ < $(cat)" >> {log}\ncase "$*" in *rejected*) echo "no such image" >&2; exit 1;; esac\n'
    )
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{script.parent}{os.pathsep}{os.environ['PATH']}")
    return log


def test_the_mirror_logs_in_by_standard_input_makes_what_is_not_there_and_copies(crane, monkeypatch):
    ecr = Ecr()
    monkeypatch.setattr("hpkit.program.charts.images._client", lambda _: ecr)
    rows = mirrored({"nvcr.io/a/b:1": "x", "nvcr.io/a/b:2": "x"}, registry=REGISTRY, region="us-east-1")
    messages = []
    mirror(rows, "crane", say=messages.append)
    told = crane.read_text().splitlines()
    assert told[0].endswith("--username AWS --password-stdin < secret")
    assert told[1:] == [f"copy nvcr.io/a/b:{tag} {REGISTRY}/a/b:{tag} < " for tag in (1, 2)]
    assert ecr.repositories == ["hyperpod/a/b"]
    assert len(messages) == 2


def test_what_the_tool_refuses_is_said(crane):
    with pytest.raises(ToolError, match="no such image"):
        mirror(mirrored({"nvcr.io/rejected:1": "x"}, registry="registry.example", region="x"), "crane", say=print)


def test_the_pinned_list_names_what_the_chart_itself_runs():
    package = chart_mirror() / dependencies_chart().published_file
    if not package.is_file():
        pytest.skip(f"{package} is not there")
    values = {"health-monitoring-agent": {"region": "us-west-2"}}
    found = images_in(rendered(package, values, kubernetes="1.34.0", helm=helm()))
    # The mirror's package may be of another date: only the pulled images matter, not the build.
    assert {name.rpartition(":")[0] for name in found} == {
        each.source("us-west-2").rpartition(":")[0] for each in dependencies_chart().images
    }


@pytest.mark.parametrize("device", dependencies_chart().devices, ids=lambda device: device.subchart)
def test_the_catalog_names_the_types_on_which_the_chart_runs_no_device_plugin(device):
    package = chart_mirror() / dependencies_chart().published_file
    documents = yaml.safe_load_all(rendered(package, {}, kubernetes="1.34.0", helm=helm()))
    sets = {each["metadata"]["name"]: each["spec"] for each in documents if each and each["kind"] == "DaemonSet"}
    (spec,) = [spec for name, spec in sets.items() if name.removesuffix("-daemonset").endswith(device.subchart)]
    terms = spec["template"]["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
        "nodeSelectorTerms"
    ]
    runs_on = {name for term in terms for each in term["matchExpressions"] for name in each["values"]}
    own = {each.name for each in instance_types() if each.accelerator_kind == device.kind}
    assert own - runs_on == set(device.omits)


def test_a_chart_that_helm_cannot_render_is_said(tmp_path):
    executable = helm()
    with pytest.raises(ToolError, match=r"helm template of gone\.tgz"):
        rendered(tmp_path / "gone.tgz", {}, kubernetes="1.34.0", helm=executable)


def test_a_machine_without_helm_says_where_to_get_it(monkeypatch):
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(ToolError, match="hpkit local doctor --fix"):
        rendered(Path("chart.tgz"), {}, kubernetes="1.34.0")
