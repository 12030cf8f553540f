"""Every type of the table with the real engine: up, no change, edits, drift, replacements, import, destroy."""

from __future__ import annotations

import json
import re

import pytest

from hpkit_local.aws.testing import running_endpoint
from hpkit_local.plugins.aws.table import RESOURCE_TYPES
from tests.local.plugins.aws.harness import Project
from tests.local.plugins.aws.inventory import inventory
from tests.local.plugins.aws.rows import ROWS, references, stack

pytestmark = [pytest.mark.engine, pytest.mark.timeout(1800)]

BY_CLASS = {
    f"{token.split(':')[1].split('/')[0]}.{token.split(':')[2]}": kind for token, kind in RESOURCE_TYPES.items()
}
IMPORT_IDS = {
    "route": "{routeTableId}_0.0.0.0/0",
    "use": "{subnetId}/{routeTableId}",
    "pods": "{clusterName},{associationId}",
    "script": "s3://{bucket}/{key}",
    "editors": "{workspaceId}/{role}",
}
EDITED = {name for name, row in ROWS.items() if row.edit}
INNER = {other for name in ROWS for other in references(name)}  # Replacing one changes inputs of others.


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    with running_endpoint() as endpoint:
        project = Project(tmp_path_factory.mktemp("project"), endpoint)
        project.empty = inventory(endpoint)
        yield project


def _edited(name):
    return ROWS[name].edit


def _camel(name):
    first, *rest = name.rstrip("_").split("_")
    return first + "".join(part.capitalize() for part in rest)


def _untold(name, key, value):
    prop = BY_CLASS[ROWS[name].kind].spec.by_name[_camel(key)]
    return prop.write_only and not prop.immutable and value != prop.default


def test_every_type_of_the_table_has_a_row_and_every_row_an_edit_and_a_replacement():
    assert {row.kind for row in ROWS.values()} == BY_CLASS.keys()
    bare = [name for name, row in ROWS.items() if not (row.edit and row.replace) and not row.only]
    assert bare == []


@pytest.mark.nightly
def test_up_then_no_change(project):
    project.spec = stack()
    project.up()
    assert project.preview() == {}


@pytest.mark.nightly
def test_an_edit_is_an_update_in_place_that_ends_in_no_change(project):
    project.spec = stack(_edited)
    resources = project.up().stdout.partition("Resources:")[2]
    assert re.findall(r"(\d+) (updated|created|deleted|replaced)", resources) == [(str(len(EDITED)), "updated")]
    assert project.preview() == {}
    project.run("refresh", "--yes", "--skip-preview", "--expect-no-changes")


@pytest.mark.nightly
def test_what_is_changed_by_hand_is_found_by_refresh_and_mended(project):
    state = project.resources()
    drifts = {name: row.drift for name, row in ROWS.items() if row.drift}
    for name, drift in drifts.items():
        drift(project.endpoint.client, {"id": state[name]["id"], **state[name]["outputs"]})
    project.run("refresh", "--yes", "--skip-preview")
    gone = {"inward", "attached", "private"}
    assert project.preview() == {name: "create" if name in gone else "update" for name in drifts}
    project.up()
    assert project.preview() == {}


@pytest.mark.nightly
@pytest.mark.parametrize("chosen", [ROWS.keys() - INNER, ROWS.keys() & INNER], ids=["leaves", "inner"])
def test_an_edit_of_what_is_fixed_is_shown_as_a_replacement(project, chosen):
    project.spec = stack(lambda name: {**_edited(name), **(ROWS[name].replace if name in chosen else {})})
    steps = project.steps()
    try:
        for name in chosen:
            if ROWS[name].replace:
                differs = {
                    key for key, each in (steps[name]["detailedDiff"] or {}).items() if "replace" in each["kind"]
                }
                wanted = {_camel(key) for key in ROWS[name].replace}
                assert (name, steps[name]["op"], wanted - differs) == (name, "replace", set())
    finally:
        project.spec = stack(_edited)


@pytest.mark.nightly
def test_what_is_imported_by_its_id_needs_no_change(project):
    state = project.resources()
    # A name that the program omits is generated anew: importing such a resource requires an explicit name.
    unnamed = {name for name, row in ROWS.items() if (key := BY_CLASS[row.kind].autoname) and key not in row.inputs}
    imported = ROWS.keys() - unnamed
    resources = [
        {
            "type": state[name]["type"],
            "name": name,
            "id": IMPORT_IDS.get(name, "{id}").format(**{"id": state[name]["id"], **state[name]["outputs"]}),
        }
        for name in ROWS
        if name in imported
    ]
    (project.folder / "import.json").write_text(json.dumps({"resources": resources}))
    named = {name: {"id": state[name]["id"], **state[name]["outputs"]} for name in unnamed}
    project.run("stack", "init", "other")
    try:
        project.run("import", "--file", "import.json", "--yes", "--protect=false", "--generate-code=false")
        project.spec = {name: row for name, row in stack(_edited).items() if name in imported}
        project.known(named)
        write_only_inputs = {
            name for name in imported if any(_untold(name, *each) for each in project.spec[name]["inputs"].items())
        }
        found = {name: op for name, op in project.preview().items() if not name.startswith("hpkit-")}
        # The real provider, too, replaces a file system whose state lacks its security groups.
        assert found == {**dict.fromkeys(write_only_inputs, "update"), "lustre": "replace"}, (
            "what AWS never tells is said anew, and nothing else"
        )
    finally:
        project.known({})
        project.run("stack", "rm", "other", "--yes", "--force")
        project.run("stack", "select", "dev")
        project.spec = stack(_edited)


def test_destroy_leaves_nothing(project):
    project.run("destroy", "--yes", "--skip-preview")
    assert inventory(project.endpoint) == project.empty
