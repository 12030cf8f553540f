"""Previews: parsing the engine's JSON, and running a real engine."""

import json

import pytest

from hpkit.changes.review.preview import parse_preview
from hpkit.cli.organization.review_preview import run_preview
from hpkit.errors import InputError
from tests.endpoint import running_endpoint
from tests.local.aws.conftest import Cloud
from tests.provider.test_engine import Project

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
        {"severity": "error", "message": "no room\n  for it", "urn": f"{URN}hyperpod:index:ComputeQuota::ada"},
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
    return run_preview(stack, project.folder, project.environment, seconds=300)


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
def test_a_real_preview_that_fails_has_problems_and_no_traceback(project):
    (project.folder / "__main__.py").write_text("import pulumi\nraise pulumi.RunError('no room for it')\n")
    assert any("no room for it" in problem for problem in previewed(project).problems)
    (problem,) = previewed(project, stack="nobody").problems
    assert "nobody" in problem


def names(preview):
    return [(each.action, each.type, each.name) for each in preview.steps]
