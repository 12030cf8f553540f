"""Pulumi's state of an adopted stack, the commands that write it, and the first preview's differences."""

import copy
import dataclasses
import json
import os
import shlex
import socket
import subprocess

import pytest

from hpkit.adopt.imports import imports_of, is_state_only
from hpkit.adopt.prepare import answers_of
from hpkit.adopt.preview import differences
from hpkit.adopt.state import undeclared, with_objects, with_state_only, with_write_only_inputs
from hpkit.cli.account.adopt import command
from hpkit.clients import pulumi_stack
from hpkit.clients.pulumi_stack import PulumiStack
from hpkit.errors import ToolError
from hpkit.plan.derive import derive
from hpkit.project import load
from hpkit_provider.resources.state_only import imported_inputs
from tests.adopt.builders import ACCOUNT, cluster, entry, live
from tests.adopt.test_organization import prepared
from tests.builders import organization, typed
from tests.program.recorder import recording_of

EMPTY = {"version": 3, "deployment": {"manifest": {}, "secrets_providers": {"type": "passphrase"}}}


def recorded(tmp_path, platform):
    (tmp_path / "acme.yaml").write_text(prepared(platform).text)
    plan = derive(load(tmp_path / "acme.yaml").parsed.organization, "prod")
    return recording_of(plan, answers_of(platform))


def test_an_empty_state_gets_stack_components_and_providers_and_nothing_else(tmp_path):
    recording = recorded(tmp_path, live())
    state = with_state_only(EMPTY, recording)
    assert state["deployment"]["secrets_providers"] == {"type": "passphrase"}
    resources = state["deployment"]["resources"]
    wanted = {each.urn for each in recording.resources.values() if is_state_only(each)}
    assert {each["urn"] for each in resources[1:]} == wanted
    assert resources[0]["type"] == "pulumi:pulumi:Stack"
    places = {each["urn"]: index for index, each in enumerate(resources)}
    assert all(places[each["parent"]] < places[each["urn"]] for each in resources[1:])
    assert with_state_only(state, recording) == state, "a second time changes nothing"


def test_the_kubernetes_provider_is_the_one_of_the_live_cluster(tmp_path):
    state = with_state_only(EMPTY, recorded(tmp_path, live()))
    (found,) = (each for each in state["deployment"]["resources"] if each["type"] == "pulumi:providers:kubernetes")
    assert json.loads(found["inputs"]["kubeconfig"])["clusters"][0]["cluster"]["server"] == "https://kube.example"
    assert found["inputs"]["version"]


def test_what_the_program_does_not_register_is_named(tmp_path):
    recording = recorded(tmp_path, live())
    other = "urn:pulumi:acme-prod::hpkit::hyperpod:index:Cluster::handson"
    state = with_state_only(EMPTY, recording)
    state["deployment"]["resources"].append({"urn": other, "custom": True, "type": "hyperpod:index:Cluster"})
    assert undeclared(state, recording) == [other]


def test_what_aws_never_tells_is_as_the_program_states_it_and_the_rest_as_it_was_read(tmp_path):
    recording = recorded(tmp_path, live())
    addon = recording.one("eks/addon:Addon")
    read = {"addonName": addon.inputs["addonName"], "addonVersion": "v0"}
    state = with_state_only(EMPTY, recording)
    imported = {"urn": addon.urn, "custom": True, "type": addon.type, "inputs": read, "outputs": dict(read)}
    state["deployment"]["resources"].append(imported)
    found = with_write_only_inputs(state, {addon.urn: addon.inputs})["deployment"]["resources"][-1]
    assert found["inputs"]["resolveConflictsOnUpdate"] == addon.inputs["resolveConflictsOnUpdate"]
    assert found["inputs"]["addonVersion"] == "v0"


@pytest.mark.parametrize(
    ("resource_type", "name", "read"),
    [
        # The official plugin writes null for a property that AWS doesn't return, and its importer a default.
        ("aws:fsx/lustreFileSystem:LustreFileSystem", "securityGroupIds", None),
        ("aws:eks/addon:Addon", "resolveConflictsOnUpdate", None),
        ("aws:eks/cluster:Cluster", "bootstrapSelfManagedAddons", True),
    ],
)
def test_a_resource_keeps_what_aws_never_returns(resource_type, name, read):
    urns = [f"urn:pulumi:acme::hpkit::{resource_type}::{number}" for number in (1, 2)]
    entries = [{"urn": urn, "type": resource_type, "inputs": {"a": 1}, "outputs": {"a": 1, name: read}} for urn in urns]
    state = with_write_only_inputs({"deployment": {"resources": entries}}, {urns[0]: {name: "stated"}})
    found, other = state["deployment"]["resources"]
    assert found["inputs"] == found["outputs"] == {"a": 1, name: "stated"}
    assert other == entries[1], "elsewhere, it would hide a change"


def test_every_import_is_a_resource_of_the_program_with_its_parent_and_provider(tmp_path):
    platform = live()
    recording = recorded(tmp_path, platform)
    imports = imports_of(recording, platform)
    table = imports.document["nameTable"]
    assert all(urn in recording.resources for urn in table.values())
    by_name = {urn.partition("::hpkit::")[2]: each for urn, each in recording.resources.items()}
    for imported in imports.entries:
        resource = by_name[imported["name"]]
        assert (imported["type"], imported["logicalName"]) == (resource.type, resource.name)
        assert table.get(imported.get("parent"), "") == resource.parent
        assert table[imported["provider"]] == resource.provider


def test_a_file_that_would_create_the_platform_again_is_stopped_with_the_command_that_writes_another():
    platform = live(cluster=cluster(ClusterName="acme"))
    plan = derive(typed(organization()), "dev")
    *seconds, other = imports_of(recording_of(plan), platform).blockers
    assert [each.partition(" second ")[2] for each in seconds] == [
        "VPC: name the existing one in network.existing",
        "EKS cluster: name the existing one in eks.existing",
    ]
    words = shlex.split(other.partition(": ")[2])
    assert words[:3] == ["hpkit", "aws", "adopt"]
    context = command.make_context("adopt", words[3:])
    assert {key: context.params[key] for key in ("cluster", "organization", "environment", "force")} == {
        "cluster": platform.arn,
        "organization": "acme",
        "environment": "dev",
        "force": True,
    }


def test_the_plugin_accepts_the_inputs_that_are_ids(tmp_path):
    platform = live()
    imports = imports_of(recorded(tmp_path, platform), platform)
    for kind in ("ChangeGuard", "Readiness"):
        ids = [each["id"] for each in imports.entries if each["type"] == f"hyperpod:index:{kind}"]
        assert [imported_inputs(kind, each, example={}) for each in ids] == [json.loads(each) for each in ids] != []


def applied(document, manager="pulumi-kubernetes-0a1b2c3d"):
    """Return an object as the API server has it after hpkit applied it, with a server-side default."""
    document = copy.deepcopy(document)
    document["metadata"]["managedFields"] = [{"manager": manager, "operation": "Apply"}]
    for rule in document.get("spec", {}).get("matchConstraints", {}).get("resourceRules", ()):
        rule["scope"] = "*"
    return document


def test_kubernetes_objects_of_the_kit_are_written_with_their_live_values_and_without_the_servers(tmp_path):
    member = entry(f"arn:aws:iam::{ACCOUNT}:role/scientists", groups=["hyperpod:team:nlp"], policies=())
    platform = live(entries=[member])
    recording = recorded(tmp_path, platform)
    registered = {
        (resource.inputs["kind"], resource.inputs["metadata"]["name"]): resource
        for resource in recording.resources.values()
        if resource.type.startswith("kubernetes:")
    }
    objects = {}
    for resource in registered.values():
        metadata = resource.inputs["metadata"]
        name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        objects[f"{resource.inputs['kind']} {name}"] = applied(resource.inputs)
    namespace = objects["Namespace hyperpod-ns-nlp"]
    namespace["metadata"]["labels"] |= {
        "kubernetes.io/metadata.name": "x",
        "pod-security.kubernetes.io/warn": "by hand",
    }
    objects["LimitRange hyperpod-ns-nlp/hpkit-requests"] = applied({"metadata": {}}, manager="kubectl")

    imports = imports_of(recording, dataclasses.replace(platform, objects=objects))
    assert [resource for resource in imports.created if resource.startswith("kubernetes:")] == [
        "kubernetes:core/v1:LimitRange nlp"
    ]
    state = with_objects(with_state_only(EMPTY, recording), recording, imports.objects)
    assert with_objects(state, recording, imports.objects) == state, "a second time changes nothing"
    written = {resource["urn"]: resource for resource in state["deployment"]["resources"]}
    policy = registered["ValidatingAdmissionPolicy", "hpkit-team-pods"]
    assert written[policy.urn]["inputs"] == policy.inputs
    patch = registered["Namespace", "hyperpod-ns-nlp"]
    labels = patch.inputs["metadata"]["labels"] | {"pod-security.kubernetes.io/warn": "by hand"}
    assert written[patch.urn]["inputs"]["metadata"]["labels"] == labels
    assert written[patch.urn]["outputs"]["__fieldManager"] == "pulumi-kubernetes-0a1b2c3d"
    assert written[patch.urn]["id"] == "hyperpod-ns-nlp"
    assert written[patch.urn]["provider"].rpartition("::")[0] == patch.provider


STATE = {"version": 3, "deployment": {"resources": []}}


@pytest.fixture
def commands(monkeypatch):
    """Return the executed commands, in a backend that has the stack acme-dev."""
    ran = []

    def run(command, **_):
        ran.append(" ".join(command[1:3]))
        printed = [{"name": "organization/hpkit/acme-dev"}] if command[1:3] == ["stack", "ls"] else STATE
        return subprocess.CompletedProcess(command, 0, json.dumps(printed), "")

    monkeypatch.setattr(pulumi_stack.subprocess, "run", run)
    return ran


def test_an_export_asks_pulumi_for_nothing_else(commands, tmp_path):
    assert PulumiStack("acme-dev", root=tmp_path, environment={}).export() == STATE
    assert commands == ["stack export"]


def test_a_stack_is_created_only_where_there_is_none(commands, tmp_path):
    PulumiStack("acme-dev", root=tmp_path, environment={}).create()
    assert commands == ["stack ls"]
    PulumiStack("acme-prod", root=tmp_path, environment={}).create()
    assert commands == ["stack ls", "stack ls", "stack init"]


def locked_by(host, pid):
    return (
        "error: the stack is currently locked by 1 lock(s). Either wait for the other process(es) to end or delete the "
        f"lock file with `pulumi cancel`.\n  file:///state: created by ada@{host} (pid {pid}) at 2026-11-27T18:00:00Z"
    )


@pytest.fixture
def locks(monkeypatch):
    """Return the messages about locks with which Pulumi rejects writes until it releases them, and the commands."""
    messages, ran = [], []

    def run(command, **_):
        ran.append(" ".join(command[1:3]))
        if command[1] == "cancel":
            messages.clear()
        failed = command[1:3] == ["stack", "import"] and bool(messages)
        return subprocess.CompletedProcess(command, int(failed), json.dumps(STATE), "".join(messages))

    monkeypatch.setattr(pulumi_stack.subprocess, "run", run)
    return messages, ran


def test_a_state_is_replaced_unless_another_run_changed_or_locked_it(locks, tmp_path):
    messages, ran = locks
    stack = PulumiStack("acme-dev", root=tmp_path, environment={})
    with pytest.raises(ToolError, match="another run has changed the state of acme-dev"):
        stack.replace_state({"deployment": {"resources": [{"urn": "urn::vpc"}]}}, STATE)
    assert ran == ["stack export"]
    ended = subprocess.Popen(["true"])
    ended.wait()
    for host, pid, is_replaced in (
        (socket.gethostname(), ended.pid, True),
        (socket.gethostname(), os.getpid(), False),
        ("elsewhere", ended.pid, False),
    ):
        ran.clear()
        messages[:] = [locked_by(host, pid)]
        if is_replaced:
            stack.replace_state(STATE, STATE)
            assert ran == ["stack export", "stack import", "cancel --yes", "stack import"]
        else:
            with pytest.raises(ToolError, match="If no other run is active: `pulumi cancel --yes --stack acme-dev`"):
                stack.replace_state(STATE, STATE)
            assert ran == ["stack export", "stack import"]


URN = "urn:pulumi:acme-prod::hpkit::hpkit:index:Addons$aws:eks/addon:Addon::coredns"


def preview(*steps):
    return json.dumps({"steps": list(steps)})


def step(op, urn=URN, *, old=None, new=None, at=()):
    paths = {name: {"kind": "update"} for name in at or new or {}}
    return {"op": op, "urn": urn, "oldState": {"inputs": old}, "newState": {"inputs": new}, "detailedDiff": paths}


def test_what_stays_the_same_is_not_mentioned():
    assert differences(preview(step("same"), step("read"))) == []


def test_what_would_be_lost_comes_first_and_says_so():
    found = differences(preview(step("create", "urn:pulumi:s::hpkit::a:b:C::new"), step("delete"), step("replace")))
    assert [each.is_destructive for each in found] == [True, True, False]
    assert "must not delete or replace" in found[0].reason


def test_an_update_shows_both_values_and_a_reason():
    (difference,) = differences(
        preview(step("update", old={"configurationValues": '{"a":1}'}, new={"configurationValues": '{"a": 1}'}))
    )
    assert difference.resource == "aws:eks/addon:Addon coredns"
    assert difference.lines == ('configurationValues: "{\\"a\\":1}" → "{\\"a\\": 1}"',)
    assert "the same settings" in difference.reason


def test_an_update_deep_inside_shows_the_values_at_its_path():
    old, new = ({"spec": {"rules": [{"a.b/c": verb}]}} for verb in ("get", "list"))
    (found,) = differences(preview(step("update", old=old, new=new, at=('spec.rules[0]["a.b/c"]', "spec.rules[1]"))))
    assert found.lines == ('spec.rules[0]["a.b/c"]: "get" → "list"', "spec.rules[1]: null → null")


def test_long_values_are_shown_from_where_they_begin_to_differ():
    old, new = ({"spec": f"{'x' * 1000} {name} {'y' * 1000}"} for name in ("ours", "theirs"))
    (line,) = differences(preview(step("update", old=old, new=new)))[0].lines
    before, after = line.removeprefix("spec: ").split(" → ")
    assert before[:4] + before[-1] == "…xxx…"
    assert " ours " in before
    assert " theirs " in after
    assert len(after) < 170


def test_an_update_that_nobody_foresaw_says_what_one_can_do():
    (found,) = differences(preview(step("update", old={"addonVersion": "v1"}, new={"addonVersion": "v2"})))
    assert "change the file to the live value" in found.reason
