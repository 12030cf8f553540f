"""Outdated versions, the order of their upgrades, and each step as a patch."""

import datetime
import re
import subprocess

import pytest

from hpkit.catalog import TASK_GOVERNANCE, OfferedAddon, find_kubernetes_version, kubernetes_versions
from hpkit.cluster.upgrade.model import Running
from hpkit.cluster.upgrade.patches import patched
from hpkit.cluster.upgrade.steps import plan_upgrade, versions_between
from hpkit.config import read_text
from hpkit.errors import SelectionError
from hpkit.plan.derive import derive
from tests.builders import organization, text_of, typed

DAY = datetime.date(2026, 11, 23)
CNI = "vpc-cni"


def data(version="1.33", **addons):
    made = organization()
    made["environments"]["dev"]["eks"]["version"] = version
    named = made["environments"]["dev"].setdefault("addons", {})
    named |= {name: {"version": each} for name, each in addons.items()}
    return made


def steps(made, running, to=None):
    plan = derive(typed(made), "dev")
    return plan_upgrade(plan, running, versions_between(running.kubernetes, to, DAY), DAY)


def test_kubernetes_goes_by_single_minor_versions_to_the_newest_offered():
    newest = int(kubernetes_versions()[-1].split(".")[1])
    assert versions_between("1.33", None, DAY) == tuple(f"1.{each}" for each in range(34, newest + 1))
    assert versions_between("1.33", "1.34", DAY) == ("1.34",)
    assert versions_between(kubernetes_versions()[-1], None, DAY) == ()
    for wrong in ("1.32", "1.99"):
        with pytest.raises(SelectionError, match=f"--to {re.escape(wrong)}: HyperPod offers"):
            versions_between("1.33", wrong, DAY)


def test_an_addon_that_the_next_version_lacks_is_raised_before_and_again_after():
    offered = {
        (CNI, "1.33"): OfferedAddon(("v1.0.0", "v1.1.0"), "v1.0.0"),
        (CNI, "1.34"): OfferedAddon(("v1.1.0", "v1.2.0"), "v1.1.0"),
    }
    upgrade = steps(data(**{CNI: "v1.0.0"}), Running("1.33", {CNI: "v1.0.0"}, offered=offered, known=True), "1.34")
    assert [each.title for each in upgrade.steps] == [
        "Update add-ons that Kubernetes 1.34 requires in a newer version: vpc-cni",
        "Kubernetes 1.34",
        "Add-ons: vpc-cni",
        "Nodes",
    ]
    path = ("environments", "dev", "addons", CNI, "version")
    assert [each.edits.get(path) for each in upgrade.steps] == ["v1.1.0", None, "v1.2.0", None]
    assert "add-on vpc-cni is v1.0.0; EKS offers v1.1.0 for Kubernetes 1.33" in upgrade.behind


def test_an_addon_without_a_version_in_both_changes_with_kubernetes():
    offered = {(CNI, "1.33"): OfferedAddon(("v1.0.0",), None), (CNI, "1.34"): OfferedAddon(("v1.2.0",), "v1.2.0")}
    found = steps(data(**{CNI: "v1.0.0"}), Running("1.33", offered=offered, known=True), "1.34")
    assert found.steps[0].title == "Kubernetes 1.34"
    assert set(found.steps[0].edits.values()) == {"1.34", "v1.2.0"}


def test_an_addon_that_is_behind_without_a_step_says_why():
    made, newer = data("1.34"), "v99.0.0"
    plan = derive(typed(made), "dev")
    held = next(addon for addon in plan.addons if addon.name == TASK_GOVERNANCE)
    running = {held.name: held.version, CNI: "v1.0.0", "of-somebody": "v1.0.0"}
    offered = {(name, "1.34"): OfferedAddon((version, newer), None) for name, version in running.items()}
    found = steps(made, Running("1.34", running, offered=offered, known=True), "1.34")
    assert found.steps == ()
    remarks = {each.split()[1]: each.split("; ", 2)[2] for each in found.behind if each.startswith("add-on")}
    assert remarks[held.name] == (
        "hpkit pins it, and a later hpkit upgrades it: "
        f"for another version, set environments.dev.addons.{held.name}.version"
    )
    assert remarks["of-somebody"] == "it isn't in the organization file; upgrade it with the tool that installed it"
    assert remarks[CNI].startswith(
        "EKS chose it at installation: for another version, set environments.dev.addons.vpc-cni.version"
    )
    older = Running("1.34", {held.name: "v0.1.0"}, offered=offered, known=True)
    assert f"hpkit pins it to {held.version}, which `pulumi up --stack" in " ".join(steps(made, older, "1.34").behind)


def test_the_newest_kubernetes_is_not_behind_when_its_support_ends_soon():
    version = kubernetes_versions()[-1]
    ends = find_kubernetes_version(version).end_of_standard_support
    running = Running(version, known=True)
    plan = derive(typed(data(version)), "dev")
    found = plan_upgrade(plan, running, (), ends - datetime.timedelta(days=10))
    assert found.behind == ()
    assert found.notes == (
        f"Kubernetes {version} is the newest that HyperPod offers; its standard support ends on {ends}, in 10 days",
    )
    assert plan_upgrade(plan, running, (), ends - datetime.timedelta(days=500)).notes == ()


def test_nodes_behind_are_a_step_even_where_kubernetes_is_not():
    version = kubernetes_versions()[-1]
    nodes = {("gpu", "1.0.0", "SecurityUpdateRequired"): 3, ("cpu", "1.1.0", "UpToDate"): 1}
    upgrade = steps(data(version), Running(version, nodes=nodes, known=True))
    assert [each.title for each in upgrade.steps] == ["Nodes"]
    assert "InstanceGroupName=gpu" in upgrade.steps[0].commands[0]
    assert "3 nodes of gpu with AMI release 1.0.0: SecurityUpdateRequired" in upgrade.behind


def test_an_existing_cluster_and_its_nodes_are_upgraded_elsewhere():
    made = data("1.33", **{TASK_GOVERNANCE: "v1.0.0-eksbuild.1"})
    dev = made["environments"]["dev"]
    del dev["network"]
    dev["eks"] = {"version": "1.33", "existing": {"name": "theirs"}}
    dev["cluster"]["existing"] = True
    offered = {(TASK_GOVERNANCE, "1.33"): OfferedAddon(("v1.0.0-eksbuild.1", "v1.1.0-eksbuild.1"), "v1.1.0-eksbuild.1")}
    nodes = {("gpu", "1.0.0", "SecurityUpdateRequired"): 3}
    found = steps(made, Running("1.33", {TASK_GOVERNANCE: "v1.0.0-eksbuild.1"}, nodes, offered, known=True), "1.34")
    assert [each.title for each in found.steps] == [f"Add-ons: {TASK_GOVERNANCE}"]
    assert "the EKS cluster (eks.existing) and the nodes (cluster.existing): upgrade them" in found.blocked[0]


def test_a_file_that_is_not_what_runs_comes_first():
    found = steps(data("1.34"), Running("1.33", known=True), "1.34")
    assert found.blocked[0].startswith("the cluster has Kubernetes 1.33, but the organization file has 1.34")


def test_each_patch_applies_on_those_before_it(tmp_path):
    text = text_of(data(**{CNI: "v1.0.0"})).decode()
    made = read_text(text.encode()).data
    offered = {(CNI, step): OfferedAddon(("v1.1.0", "v1.2.0"), "v1.1.0") for step in ("1.34", "1.35")}
    upgrade = steps(made, Running("1.33", offered=offered, known=True), "1.35")
    plan = derive(typed(made), "dev")
    (tmp_path / "a.yaml").write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    for step in patched(
        text, plan, upgrade.steps, file="a.yaml", record=None, read=lambda text: read_text(text.encode())
    ):
        assert not step.problem
        if step.patch:
            subprocess.run(["git", "apply"], cwd=tmp_path, input=step.patch, text=True, check=True)
    final = read_text((tmp_path / "a.yaml").read_bytes()).data["environments"]["dev"]
    assert (final["eks"]["version"], final["addons"][CNI]["version"]) == ("1.35", "v1.2.0")
