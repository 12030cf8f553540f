"""The steps that are approved: which differences between two previews they show."""

import json

import pytest
from click.testing import CliRunner

from hpkit.changes.review.preview import parse_preview
from hpkit.changes.review.steps import differences, steps_of
from hpkit.cli.account.steps import command
from hpkit.cli.organization.review_preview import run_preview
from hpkit.errors import InputError
from tests.endpoint import running_endpoint
from tests.local.aws.conftest import Cloud
from tests.provider.test_engine import Project

MARKER = "4dabf18193072939515e22adb298388d"
CREATED = {
    "op": "create",
    "urn": "urn:role",
    "newState": {"inputs": {"name": "nodes", "policy": {"Action": ["s3:Get*"]}}},
}
UPDATED = {
    "op": "update",
    "urn": "urn:quota",
    "detailedDiff": {"weight": {}},
    "oldState": {"id": "q-1"},
    "newState": {"inputs": {"weight": 7}},
}
DELETED = {"op": "delete", "urn": "urn:old", "oldState": {"id": "i-1", "inputs": {"name": "old"}}}
SAME = {"op": "same", "urn": "urn:same", "newState": {"inputs": {"any": 1}}}


def preview(*steps):
    return json.dumps({"steps": [SAME, *steps]})


def changed(step, state, **more):
    return {**step, state: {**step[state], **more}}


def test_the_order_of_steps_and_unchanged_resources_make_no_difference():
    approved = steps_of(preview(CREATED, UPDATED, DELETED))
    assert approved == steps_of(json.dumps({"steps": [DELETED, UPDATED, CREATED]}))
    assert [step["urn"] for step in approved] == ["urn:old", "urn:quota", "urn:role"]
    assert "s3:Get*" not in json.dumps(approved)


@pytest.mark.parametrize(
    ("step", "now"),
    [
        (CREATED, changed(CREATED, "newState", inputs={"name": "nodes", "policy": {"Action": ["s3:*"]}})),
        (CREATED, {**CREATED, "op": "import"}),
        (UPDATED, changed(UPDATED, "newState", inputs={"weight": 70})),
        (UPDATED, {**UPDATED, "detailedDiff": {"weight": {}, "limit": {}}}),
        (UPDATED, changed(UPDATED, "oldState", id="q-2")),
        (DELETED, changed(DELETED, "oldState", id="i-2")),
        (DELETED, SAME),
    ],
    ids=[
        "a new resource's value",
        "an import",
        "a value",
        "a property",
        "another quota",
        "another instance",
        "no step",
    ],
)
def test_another_step_than_the_approved_one_is_different(step, now):
    assert differences(steps_of(preview(step)), steps_of(preview(now)))


def test_secrets_and_what_plugins_generate_differ_in_each_preview_and_are_not_compared():
    def with_inputs(ciphertext, name, internal):
        inputs = {"password": {MARKER: "x", "ciphertext": ciphertext}, "name": name, "__defaults": ["name"]}
        return changed(CREATED, "newState", inputs={"parts": [inputs], "__internal": internal})

    first, second = (steps_of(preview(with_inputs(*each))) for each in (("a", "x-1", {}), ("b", "x-2", {"y": 1})))
    assert differences(first, second) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"steps": [1]}', '{"steps": []}'])
def test_a_preview_that_did_not_reach_the_stack_is_never_as_approved(text):
    with pytest.raises(InputError):
        steps_of(text)


def test_up_stops_at_a_step_that_was_not_approved(tmp_path):
    file = tmp_path / "approved.json"
    file.write_text(CliRunner().invoke(command, input=preview(UPDATED)).stdout, encoding="utf-8")
    options = ["--approved", str(file)]
    assert CliRunner().invoke(command, options, input=preview(UPDATED)).stdout == "1 step, as approved\n"
    other = CliRunner().invoke(command, options, input=preview(UPDATED, DELETED))
    assert isinstance(other.exception, InputError)
    assert "not approved: delete urn:old" in str(other.exception)


URN = "urn:pulumi:dev::hpkit::"


def said(*steps, **more):
    return json.dumps({"steps": list(steps), **more})


def step(op, name, kind="aws:ec2/vpc:Vpc", **more):
    return {"op": op, "urn": f"{URN}hpkit:Network${kind}::{name}", **more}


def test_a_replacement_told_in_three_steps_is_one():
    steps = [
        step("create-replacement", "net"),
        step("replace", "net", replaceReasons=["cidrBlock"], diffReasons=["cidrBlock", "tags"]),
        step("delete-replaced", "net"),
    ]
    (found,) = parse_preview(said(*steps), stack="acme-dev").steps
    assert (found.action, found.type, found.name) == ("replace", "aws:ec2/vpc:Vpc", "net")
    assert found.properties == ("cidrBlock",), "the step that has reasons counts, in whatever order they come"


def test_what_changes_is_named_and_never_shown():
    change = step(
        "update",
        "net",
        diffReasons=["password"],
        newState={"inputs": {"password": "hunter2"}},
        oldState={"outputs": {}},
    )
    preview = parse_preview(said(change, step("same", "other"), step("read", "third")), stack="acme-dev")
    assert preview.of("update")[0].properties == ("password",)
    assert preview.unchanged == 1
    assert "hunter2" not in repr(preview)


def test_components_providers_and_the_stack_are_no_resources():
    parents = [
        {"op": "same", "urn": f"{URN}pulumi:pulumi:Stack::hpkit-dev"},
        {"op": "same", "urn": f"{URN}hpkit:index:Network::network"},
        {"op": "create", "urn": f"{URN}pulumi:providers:aws::aws"},
    ]
    preview = parse_preview(said(*parents, step("same", "net")), stack="acme-dev")
    assert (preview.steps, preview.unchanged) == ((), 1)


def test_errors_of_the_program_are_problems():
    diagnostics = [
        {"severity": "error", "message": "error: no room\n for it", "urn": f"{URN}hyperpod:index:ComputeQuota::ada"},
        {"severity": "error", "message": "error: Resource monitor has terminated, shutting down\n"},
        {"severity": "warning", "message": "old version"},
    ]
    assert parse_preview(said(diagnostics=diagnostics), stack="acme-dev").problems == ("ada: no room for it",)


@pytest.mark.parametrize("text", ["", "error: no stack named `acme-dev`", "[]"])
def test_text_that_is_no_preview_is_refused_with_the_command(text):
    with pytest.raises(InputError, match="pulumi preview --json"):
        parse_preview(text, stack="acme-dev")


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with running_endpoint() as endpoint:
        made = Project(tmp_path_factory.mktemp("project"), endpoint, Cloud(endpoint))
        made.spec = {**made.spec, "quotas": {}, "policy": None}
        yield made


def previewed(project, stack="dev"):
    project.write()
    return run_preview(stack, project.folder, project.environment)


@pytest.mark.nightly
@pytest.mark.engine
@pytest.mark.timeout(1800)
def test_a_real_preview_says_what_is_created_updated_replaced_and_deleted(project):
    first = previewed(project)
    assert ("create", "hyperpod:index:Cluster", "train") in names(first)
    assert first.problems == ()
    project.up()
    assert previewed(project).steps == ()
    assert previewed(project).unchanged >= 1
    group = project.spec["cluster"]["instance_groups"][0]
    group["kubernetesConfig"] = {"labels": {"acme.example/pool": "gpu"}}
    (update,) = previewed(project).steps
    assert update.action == "update"
    assert any(name.startswith("instanceGroups") for name in update.properties)
    project.spec["cluster"]["cluster_name"] = "other"
    refused = previewed(project)
    assert refused.steps == ()
    assert any("allowReplace" in problem for problem in refused.problems), refused.problems
    project.spec["cluster"]["allow_replace"] = True
    (replacement,) = previewed(project).steps
    assert replacement.action == "replace"
    assert "clusterName" in replacement.properties
    (project.folder / "__main__.py").write_text("")
    assert ("delete", "hyperpod:index:Cluster", "train") in names(previewed(project))


@pytest.mark.nightly
@pytest.mark.engine
@pytest.mark.timeout(1800)
def test_a_real_preview_that_fails_has_problems_and_no_traceback_and_leaves_no_file(project):
    project.run("stack", "init", "other")
    (settings := project.folder / "Pulumi.other.yaml").unlink()
    (project.folder / "__main__.py").write_text("import pulumi\nraise pulumi.RunError('no room for it')\n")
    assert any("no room for it" in problem for problem in previewed(project, stack="other").problems)
    assert not settings.exists()
    assert "pulumi stack init nobody" in previewed(project, stack="nobody").problems[0]


def names(preview):
    return [(each.action, each.type, each.name) for each in preview.steps]
