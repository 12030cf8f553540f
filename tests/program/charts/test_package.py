"""The pinned chart as a package, stored in parts, read from a mirror, or rejected; and the images of its manifests."""

import dataclasses
import io
import os
import shutil
import tarfile
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import yaml

from hpkit.catalog import PinnedChart, PublishedChart, dependencies_chart, instance_types, keda_chart
from hpkit.config.reading.chart import contents_hash
from hpkit.errors import InputError, ToolError
from hpkit.program.charts import copy_commands, images_in, mirror, mirrored, rendered
from hpkit.program.charts.package import ensure_package, kept_package, read_archive, write_archive
from tests.running import chart_mirror, helm

OWN = {"Chart.yaml": b"name: it\n", "templates/a.yaml": b"kind: A\n", "charts/part-1.tgz": b"of long ago"}
PART = {"Chart.yaml": b"name: remote\n"}
WHOLE = {
    **{name: OWN[name] for name in ("Chart.yaml", "templates/a.yaml")},
    "charts/remote/Chart.yaml": PART["Chart.yaml"],
}


def packed(files, top):
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"{top}/{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text))
    return content.getvalue()


class Site:
    """Publishes a chart and its subchart; `asked` are the requested paths."""

    def __init__(self):
        commit = packed({f"helm/it/{name}": text for name, text in OWN.items()} | {"README": b"x"}, "repository-0123")
        self.pages = {"/repository/archive/0123.tar.gz": commit, "/remote-2.0.0.tgz": packed(PART, "remote")}
        self.asked = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self):
                site.asked.append(self.path)
                page = site.pages.get(self.path)
                self.send_response(404 if page is None else 200)
                self.end_headers()
                self.wfile.write(page or b"")

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def pin(self, **more):
        remote = PublishedChart("remote", "2.0.0", f"{self.url}/remote-2.0.0.tgz", contents_hash(PART))
        given = {
            "name": "it",
            "version": "1.0.0",
            "repository": f"{self.url}/repository",
            "commit": "0123",
            "path": "helm/it",
            "contents": contents_hash(OWN),
            "package": contents_hash(WHOLE),
            "replaced": ("charts/part-1.tgz",),
            "subcharts": (remote,),
            "images": (),
            "injected": (),
            "devices": (),
            "alternatives": (),
            "values": (),
        }
        return PinnedChart(**{**given, **more})


@pytest.fixture
def site(monkeypatch, tmp_path):
    monkeypatch.setenv("HPKIT_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("HPKIT_MIRROR", raising=False)
    site_ = Site()
    yield site_
    site_.server.shutdown()
    site_.server.server_close()


@pytest.fixture
def project(tmp_path):
    return tmp_path / "project"


def test_the_package_has_the_folder_at_the_commit_and_every_part_and_lies_in_the_project(site, project):
    pin = site.pin()
    package = ensure_package(pin, project)
    assert package.path == project / ".hpkit" / "charts" / pin.file
    assert read_archive(package.path.read_bytes()) == WHOLE
    assert package.is_pinned


def test_what_is_kept_is_not_fetched_again_not_even_by_another_project(site, project, tmp_path):
    pin = site.pin()
    ensure_package(pin, project)
    asked = list(site.asked)
    assert ensure_package(pin, project).is_pinned
    assert ensure_package(pin, tmp_path / "another").is_pinned
    assert site.asked == asked


def test_a_run_that_was_interrupted_goes_on_with_the_part_that_is_missing(site, project):
    part = site.pages.pop("/remote-2.0.0.tgz")
    with pytest.raises(ToolError, match="404"):
        ensure_package(site.pin(), project)
    site.pages["/remote-2.0.0.tgz"] = part
    site.asked.clear()
    ensure_package(site.pin(), project)
    assert site.asked == ["/remote-2.0.0.tgz"]


@pytest.mark.parametrize("path", ["/repository/archive/0123.tar.gz", "/remote-2.0.0.tgz"])
def test_a_part_with_other_contents_is_refused_and_not_kept(site, project, path):
    changed = {"helm/it/Chart.yaml": b"name: evil\n", "Chart.yaml": b"name: evil\n"}
    site.pages[path] = packed(changed, "remote")
    for _ in range(2):
        with pytest.raises(ToolError, match=r"but the catalog requires [0-9a-f]{64}, so it isn't used"):
            ensure_package(site.pin(), project)
    assert not (project / ".hpkit").exists()


def test_a_kept_package_that_somebody_changed_is_made_anew(site, project):
    pin = site.pin()
    path = ensure_package(pin, project).path
    write_archive(path, "it", {**WHOLE, "templates/b.yaml": b"kind: B\n"})
    assert read_archive(ensure_package(pin, project).path.read_bytes()) == WHOLE


def test_without_a_network_the_error_says_what_to_do(site, project):
    pin = site.pin()
    site.server.shutdown()
    site.server.server_close()
    with pytest.raises(ToolError) as raised:
        ensure_package(pin, project)
    for words in (pin.archive, "hpkit catalog fetch-chart --to FOLDER", "HPKIT_MIRROR", "it-1.0.0.tgz"):
        assert words in str(raised.value)
    assert kept_package(pin, project) is None


def test_a_package_brought_by_hand_is_taken_without_a_network(site, project, tmp_path, monkeypatch):
    pin = site.pin()
    ensure_package(pin, project, to=tmp_path / "stick" / pin.published_file)
    monkeypatch.setenv("HPKIT_CACHE", str(tmp_path / "another"))
    monkeypatch.setenv("HPKIT_MIRROR", str(tmp_path / "stick"))
    site.asked.clear()
    package = ensure_package(pin, tmp_path / "there")
    assert (site.asked, package.is_pinned) == ([], True)


def test_a_mirrors_own_package_is_taken_and_said_to_be_another(site, project, tmp_path, monkeypatch):
    pin = site.pin()
    write_archive(tmp_path / "stick" / pin.published_file, "it", {"Chart.yaml": b"name: packed by helm\n"})
    monkeypatch.setenv("HPKIT_MIRROR", str(tmp_path / "stick"))
    package = ensure_package(pin, project)
    assert not package.is_pinned
    assert read_archive(package.path.read_bytes()) == {"Chart.yaml": b"name: packed by helm\n"}
    monkeypatch.delenv("HPKIT_MIRROR")
    assert ensure_package(pin, project).is_pinned, "without the mirror, what it gave is not taken for the pin"


def test_a_mirror_that_is_not_there_or_holds_something_else_is_said(site, project, tmp_path, monkeypatch):
    monkeypatch.setenv("HPKIT_MIRROR", str(tmp_path / "gone"))
    with pytest.raises(ToolError, match=r"the folder .* doesn't exist"):
        ensure_package(site.pin(), project)
    (tmp_path / "gone").mkdir()
    (tmp_path / "gone" / "it-1.0.0.tgz").write_bytes(b"no package")
    with pytest.raises(ToolError, match="isn't a chart package"):
        ensure_package(site.pin(), project)


@pytest.mark.parametrize("name", ["../out", "a/../../out"])
def test_an_archive_that_leads_out_is_refused(name):
    with pytest.raises(InputError, match="neither a file nor a folder of the chart"):
        read_archive(packed({name: b""}, "top"))


def test_an_archive_with_a_link_is_refused():
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        link = tarfile.TarInfo("top/link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    with pytest.raises(InputError, match="neither a file nor a folder"):
        read_archive(content.getvalue())


def test_another_chart_under_the_pinned_version_is_refused(site, project):
    pin = PublishedChart("remote", "2.0.0", f"{site.url}/remote-2.0.0.tgz", contents_hash(PART))
    assert read_archive(ensure_package(pin, project).path.read_bytes()) == PART
    site.pages["/remote-2.0.0.tgz"] = packed({"Chart.yaml": b"name: evil\n"}, "remote")
    another = dataclasses.replace(pin, package="0" * 64)
    with pytest.raises(
        ToolError,
        match=r"has the contents .*, but the catalog requires 0{64}.*hpkit catalog "
        "fetch-chart",
    ):
        ensure_package(another, project)
    assert not (project / ".hpkit" / "charts" / another.file).exists()


def test_keda_is_pinned_by_the_contents_that_its_repository_publishes():
    pin = keda_chart()
    assert (len(pin.package), pin.published_file) == (64, f"keda-{pin.version}.tgz")
    assert pin.url == f"https://kedacore.github.io/charts/{pin.published_file}"
    assert dataclasses.replace(pin, package="f" * 64).file != pin.file


def test_the_pin_names_every_part_by_version_and_contents():
    pin = dependencies_chart()
    assert len(pin.commit) == 40
    assert all(len(each.package) == 64 and each.version in each.url for each in pin.subcharts)
    assert all(each.url.startswith("https://") for each in pin.subcharts)
    assert pin.archive == f"https://github.com/aws/sagemaker-hyperpod-cli/archive/{pin.commit}.tar.gz"
    another = dataclasses.replace(pin, package="f" * 64)
    assert another.file != pin.file, "another pin must be another input of the release, or nothing would be upgraded"


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
    ("tool", "source"), [("crane", f"nvcr.io/a/b:1@{DIGEST}"), ("skopeo", f"docker://nvcr.io/a/b@{DIGEST}")]
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


@pytest.fixture
def called(tmp_path, monkeypatch):
    """An AWS CLI and a crane that record their commands; ECR has the repository hyperpod/c."""
    log, folder = tmp_path / "log", tmp_path / "bin"
    folder.mkdir()
    cases = {
        "aws": "*login*) echo secret;; *describe*hyperpod/c) ;; *describe*) exit 254;;",
        "crane": '*login*) cat >> "$0.secret";; *rejected*) echo "no such image" >&2; exit 1;;',
    }
    for name, case in cases.items():
        script = folder / name
        script.write_text(f'#!/bin/sh\necho "{name} $@" >> {log}\ncase "$*" in {case} esac\n')
        script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return log


def test_the_mirror_logs_in_by_standard_input_makes_what_is_not_there_and_copies(called):
    messages = []
    mirror(
        mirrored({"a.b/b:1": "x", "a.b/c:2": "x"}, registry=REGISTRY, region="us-east-1"), "crane", say=messages.append
    )
    told = [line for line in called.read_text().splitlines() if "describe" not in line]
    host = REGISTRY.partition("/")[0]
    # Both sides of a pipe start at once.
    assert set(told[:2]) == {
        "aws ecr get-login-password --region us-east-1",
        f"crane auth login {host} --username AWS --password-stdin",
    }
    assert told[2:] == [
        "aws ecr create-repository --region us-east-1 --repository-name hyperpod/b",
        f"crane copy a.b/b:1 {REGISTRY}/b:1",
        f"crane copy a.b/c:2 {REGISTRY}/c:2",
    ]
    assert called.with_name("bin").joinpath("crane.secret").read_text() == "secret\n"
    assert len(messages) == 5


def test_the_name_of_an_image_is_no_command(called):
    rows = mirrored({"a.b/b:1;touch${IFS}x": "x"}, registry="registry.example", region="us-east-1")
    mirror(rows, "crane", say=print)
    assert called.read_text() == "crane copy a.b/b:1;touch${IFS}x registry.example/b:1;touch${IFS}x\n"


def test_what_the_tool_refuses_is_said(called):
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
