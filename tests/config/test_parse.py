"""The format of an organization: keys, types, limits of the API, add-ons, existing resources, and every error."""

import os
import re
import typing

import jsonschema
import pytest
from botocore.loaders import Loader
from botocore.model import ServiceModel
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from hpkit.catalog import limit
from hpkit.config import format_path, parse, read_file, read_text
from hpkit.config.models.base import Api
from hpkit.config.models.cluster import Cluster
from hpkit.config.models.organization import Organization
from hpkit.config.reading.document import Mark, find_item, item_label
from hpkit.config.schema.reference import json_schema
from hpkit.errors import InputError
from hpkit.project import project_root
from tests.builders import findings, findings_in, organization, team, text_of, typed


def only(data):
    (found,) = findings(data)
    return found


def test_all_problems_of_a_file_are_said_in_one_run():
    data = organization(teams=[team("a", colour=1), team("b", fairShareWeight=101)], top={"organisation": "x"})
    assert {(found.rule, found.path) for found in findings(data)} == {
        ("CFG001", "organisation"),
        ("CFG001", "teams[a].colour"),
        ("CFG002", "teams[b].fairShareWeight"),
    }


def test_an_environment_that_can_be_read_is_checked_although_another_cannot():
    data = organization()
    broken, whole = dict(data["environments"]["dev"]), dict(data["environments"]["dev"])
    broken["region"] = 7
    whole["eks"] = {**whole["eks"], "version": "1.99"}
    data["environments"] = {"dev": broken, "prod": whole}
    assert {(found.rule, found.path) for found in findings(data)} == {
        ("CFG002", "environments.dev.region"),
        ("EKS002", "environments.prod.eks.version"),
    }


@pytest.mark.parametrize(
    ("shape", "build"),
    [
        ("FairShareWeight", lambda value: organization(teams=[team("a", fairShareWeight=value)])),
        ("ClusterInstanceCount", lambda value: with_group(instanceCount=value)),
        (
            "ClusterEbsVolumeSizeInGB",
            lambda value: with_group(instanceStorageConfigs=[{"ebsVolumeConfig": {"volumeSizeInGB": value}}]),
        ),
        ("ClusterThreadsPerCore", lambda value: with_group(threadsPerCore=value)),
    ],
)
def test_ranges_are_those_of_the_api(shape, build):
    limits = limit(shape)
    assert "CFG002" not in {found.rule for found in findings(build(int(limits.min)))}
    assert "CFG002" not in {found.rule for found in findings(build(int(limits.max)))}
    for outside in (int(limits.min) - 1, int(limits.max) + 1):
        (found,) = [each for each in findings(build(outside)) if each.rule == "CFG002"]
        assert str(outside) in found.message


def with_group(**more):
    data = organization()
    data["environments"]["dev"]["cluster"]["instanceGroups"][0].update(more)
    return data


def with_limits(value):
    requirements = [{"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["ml.g5.8xlarge"]}]
    pool = {"name": "p", "nodeClass": "c", "requirements": requirements, "limits": {"cpu": value}}
    return organization(
        environment={"autoscaling": {"nodeClasses": [{"name": "c", "instanceGroups": ["gpu"]}], "nodePools": [pool]}}
    )


DIGITS = "9" * 5000
SUBNETS, GROUPS = ["subnet-0a1b2c3d4e5f60718"], ["sg-0a1b2c3d4e5f60718"]


def with_class(name):
    return organization(top={"clusterPolicy": {"priorityClasses": [{"name": name, "weight": 1}]}})


def with_policy(name):
    data = organization()
    data["environments"]["dev"]["governance"] |= {"policyName": name, "quotaNames": {}}
    return data


@pytest.mark.parametrize(
    ("key", "data"),
    [
        ("cpu", with_limits(DIGITS)),
        ("cpu", with_limits(f"1.{DIGITS}Gi")),
        ("instanceCount", with_group(instanceCount=DIGITS)),
        ("version", organization(environment={"eks": {"version": f"1.{DIGITS}"}})),
        ("instanceCount", with_group(instanceCount=True)),
        ("lifecycleScript", with_group(lifecycleScript="")),
        ("executionRole", with_group(executionRole="arn:aws:iam::12:role/nodes")),
        ("subnets", with_group(overrideVpcConfig={"subnets": [], "securityGroupIds": GROUPS})),
        ("securityGroupIds", with_group(overrideVpcConfig={"subnets": SUBNETS, "securityGroupIds": []})),
        ("subnets", with_group(overrideVpcConfig={"subnets": ["vpc-0a1b2c3d4e5f60718"], "securityGroupIds": GROUPS})),
        ("name", with_class("experiment" * 6 + "\u00fc")),
        ("name", with_class("training\n")),
        *(("policyName", with_policy(name)) for name in ("ml_policy", "-ml", "x" * 64, "")),
        ("description", organization(teams=[team("nlp", description="a\tb")])),
        ("permissionSets", organization(teams=[team("nlp", memberRole={"permissionSets": ["Schüler"]})])),
        ("samlProvider", organization(teams=[team("nlp", memberRole={"samlProvider": "Schüler"})])),
        ("bucket", organization(environment={"storage": {"existing": {"bucket": "Live_Scripts"}}})),
    ],
)
def test_a_value_that_the_api_would_refuse_is_refused(key, data):
    paths = [each.path for each in findings(data) if each.rule == "CFG002"]
    assert [re.sub(r"\[.*?\]", "", path.rpartition(f".{key}")[2]) for path in paths] == [""], paths


@pytest.mark.parametrize("text", ["", "Sprachmodelle – Köln, 30 %", "言語 モデル"])
def test_a_description_has_any_text(text):
    assert typed(organization(teams=[team("nlp", description=text)])).teams[0].description == text


def test_the_name_of_a_bucket_may_have_dots():
    assert "CFG002" not in {
        each.rule
        for each in findings(organization(environment={"storage": {"existing": {"bucket": "live.scripts-1"}}}))
    }


@pytest.mark.parametrize("script", ["s3://live/run.sh", "s3://live/v1//run.sh"])
def test_a_script_is_a_uri(script):
    (found,) = typed(with_group(lifecycleScript=script)).environments["dev"].cluster.instance_groups
    assert (found.lifecycle_script, found.runs_kits_script) == (script, False)


def test_the_schema_accepts_what_the_models_accept():
    validator = Draft202012Validator(json_schema())
    assert list(validator.iter_errors(organization(teams=[team("a")]))) == []
    assert list(validator.iter_errors(organization(top={"unknown": 1})))
    assert list(validator.iter_errors(organization(teams=[team("a", fairShareWeight=101)])))
    assert list(validator.iter_errors(organization(top={"x-anchors": {"any": "thing"}}))) == []


def test_every_key_of_the_schema_has_a_description():
    schema = json_schema()
    for name, model in {"Organization": schema, **schema["$defs"]}.items():
        for key, value in model.get("properties", {}).items():
            assert value.get("description"), f"{name}.{key}"


def test_an_unknown_key_that_is_called_like_a_mark_of_pydantic_is_a_finding():
    text = "organization: a\nclusterPolicy: {'[key]': null, '': null}\nenvironments: {}\n"
    problems = parse(read_text(text.encode())).problems
    assert {problem.path for problem in problems if problem.rule == "CFG001"} == {
        ("clusterPolicy", "[key]"),
        ("clusterPolicy", ""),
    }


@pytest.mark.parametrize("arn", ["arn:aws:s3::123456789012:role/ada", "arn:aws:iam::role/ada"])
def test_the_form_of_a_roles_arn_is_shown(arn):
    found = only(organization(teams=[team("ada", members=[arn])]))
    assert f"is `{arn}`, which isn't the ARN of a role" in found.message
    assert "`arn:aws:iam::123456789012:role/NAME`" in found.fix


@pytest.mark.parametrize("key", ["teams", "clusterPolicy", "tags", "environmentDefaults"])
def test_what_belongs_at_the_top_level_is_no_environment(key):
    top = {"clusterPolicy": {"fairShare": "Enabled"}, "tags": {"owner": "ml"}}
    top |= {"environmentDefaults": {"protect": True, "region": "us-west-2"}}
    data = organization(
        teams=[team("ada")], allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 1}]}, top=top
    )
    data["environments"][key] = data.pop(key)
    (found,) = [each for each in findings(data) if each.severity == "error"]
    assert (found.rule, found.path, found.message) == ("CFG001", f"environments.{key}", f"`{key}` isn't an environment")
    assert found.fix == "Move it to the top level of the file, next to `environments`."
    data["environments"] = {key: data["environments"]["dev"]} if key.islower() else {}
    assert not [each for each in findings(data) if "isn't an environment" in each.message], "a name like any other"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "    governance:\n      allocations:",
            "  governance:\n    allocations:",
            [
                (
                    "environments.governance",
                    7,
                    "Indent it and its lines by 2 spaces: it belongs under `environments.dev`.",
                )
            ],
        ),
        (
            "    governance:\n      allocations:\n        nlp: []\n",
            "  governance:\n    allocations:\n      nlp: []\n    protect: true\n    observability: {}\n",
            [
                (
                    "environments.governance",
                    7,
                    "Indent it and its lines by 2 spaces: it belongs under `environments.dev`.",
                )
            ],
        ),
        (
            "    governance:\n      allocations:",
            "governance:\n  allocations:",
            [
                ("environments.dev.governance.prod", 10, "Move it: `prod` belongs under `environments`."),
                ("governance", 7, "Move it: `governance` belongs under `environments.dev`."),
            ],
        ),
        (
            "      allocations:",
            "    allocations:",
            [("environments.dev.allocations", 8, "Move it into `governance: {allocations: …}`.")],
        ),
    ],
    ids=["among-environments", "with-the-next-sections", "at-the-top", "beside-its-section"],
)
def test_a_section_with_less_indentation_is_one_mistake_on_its_line(old, new, expected):
    text = """organization: acme
environments:
  dev:
    region: us-west-2
    cluster: {name: acme, instanceGroups: [{name: gpu, instanceCount: 1, instanceType: ml.g5.12xlarge}]}
    eks: {version: "1.35"}
    governance:
      allocations:
        nlp: []
  prod:
    region: us-east-1
    cluster: {name: acme, instanceGroups: [{name: gpu, instanceCount: 1, instanceType: ml.g5.12xlarge}]}
    eks: {version: "1.35"}
"""
    found = parse(read_text(text.replace(old, new).encode())).problems
    assert sorted((format_path(each.path, {}), each.mark.line, each.fix) for each in found) == expected


def test_a_misspelt_key_in_an_environment_that_is_not_in_environments_is_found():
    data = organization()
    dev = data.pop("environments")["dev"]
    zones = [{**zone, "availablityZone": zone["availabilityZone"]} for zone in dev["network"]["zones"]]
    for zone in zones:
        del zone["availabilityZone"]
    data["environments:dev"] = {**dev, "network": {**dev["network"], "zones": zones}}
    fixes = [each.fix for each in findings(data) if each.rule == "CFG001"]
    assert fixes.count("Did you mean `availabilityZone`?") == 2


def test_a_key_above_everything_is_one_mistake_and_what_is_below_it_is_checked():
    data = organization()
    data["environments"]["dev"]["eks"] = {**data["environments"]["dev"]["eks"], "version": "1.99"}
    found, inner = findings(
        {**{key: data[key] for key in data if key != "environments"}, "x": {"environments": data["environments"]}}
    )
    assert (found.path, found.fix) == ("x", "Remove this line, and indent the lines below it by two spaces less.")
    assert inner.path == "environments.dev.eks.version"


def test_an_optional_section_without_content_can_be_removed():
    (problem,) = parse(read_text(b"organization: acme\ntags:\nenvironments: {}\n")).problems[:1]
    assert (problem.path, problem.fix.partition(" Expected")[0]) == (("tags",), "Add a value, or remove the line.")


def addons(**named):
    return organization(environment={"addons": named})


@pytest.mark.parametrize("written", ["v1.11.4-eksbuild.2", {"version": "v1.11.4-eksbuild.2"}])
def test_text_alone_is_the_version(written):
    data = addons(coredns=written)
    found = typed(data).environments["dev"].addons["coredns"]
    assert (found.version, found.configuration_values) == ("v1.11.4-eksbuild.2", {})
    jsonschema.validate(data, json_schema())


def test_the_schema_has_no_pattern_that_some_readers_cannot_read():
    description = json_schema()["$defs"]["Team"]["properties"]["description"]
    assert {"minLength", "maxLength"} <= description.keys()
    assert "pattern" not in description


def annotations(annotation, metadata=()):
    """Yield every type inside an annotation with its metadata."""
    if typing.get_origin(annotation) is typing.Annotated:
        inner, *marks = typing.get_args(annotation)
        yield from annotations(inner, (*metadata, *marks))
        return
    yield annotation, metadata
    if typing.get_origin(annotation) is not typing.Literal:
        for inner in typing.get_args(annotation):
            yield from annotations(inner)


def marked(model, seen):
    for name, field in model.model_fields.items():
        for annotation, metadata in annotations(field.annotation, tuple(field.metadata)):
            shapes = [mark.shape for mark in metadata if isinstance(mark, Api)]
            if shapes and limit(shapes[0]).enum:
                yield f"{model.__name__}.{name}", annotation, limit(shapes[0]).enum
            if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in seen:
                seen.add(annotation)
                yield from marked(annotation, seen)


FOUND = {name: (annotation, enum) for name, annotation, enum in marked(Organization, {Organization})}


@pytest.mark.parametrize("name", FOUND)
def test_the_values_of_a_key_are_those_of_the_api(name):
    annotation, enum = FOUND[name]
    assert set(typing.get_args(annotation)) == set(enum)


# Members that the file has under other names, or as values of a key.
OTHER_NAMES = {
    *("AlarmName", "AutoPatchConfig", "AutoRollbackConfiguration", "CapacityRequirements", "ClusterName"),
    *("InstanceGroupName", "InstanceRequirements", "KubernetesConfig", "LifeCycleConfig", "OnCreate", "OnDemand"),
    *("OnStartDeepHealthChecks", "RollingUpdatePolicy", "ScheduledUpdateConfig", "SourceS3Uri", "Spot"),
    "TieredStorageConfig",
}


def without_key(shape, keys, known):
    while shape.type_name == "list":
        shape = shape.member
    for name, member in getattr(shape, "members", {}).items():
        if name not in OTHER_NAMES and name[0].lower() + name[1:] not in keys:
            yield shape.name, name
        if (shape.name, name) not in known:
            yield from without_key(member, keys, known)


def test_the_page_lists_every_property_of_create_cluster_without_a_key():
    page = (project_root() / "docs/reference/config.md").read_text().partition("properties without a key")[2]
    rows = [re.findall(r"`(\w+)`", line) for line in page.splitlines() if line.startswith("- ")]
    listed = {(shape, name) for shape, *names in rows for name in names}
    schema = Cluster.model_json_schema()
    keys = {key for model in (schema, *schema["$defs"].values()) for key in model.get("properties", ())}
    api = ServiceModel(Loader().load_service_model("sagemaker", "service-2")).shape_for("CreateClusterRequest")
    assert set(without_key(api, keys, listed)) == listed


def problem(content: bytes):
    (found,) = read_text(content).problems
    return found


@pytest.mark.parametrize(
    ("content", "line", "says"),
    [
        (b"a: [1, 2", 1, "the `[` on line 1 isn't closed"),
        (b"a: {x: 1\nb: 3\n", 1, "the `{` on line 1 isn't closed"),
        (b"a:\n  weight:0\n  b: 1\n", 2, "a space is missing after the colon of `weight`"),
        (b"- a: 1\n  weight:0\n  b: {x: 1}\n", 2, "a space is missing after the colon of `weight`"),
        (b'a: it\'s \'so\' # "\nx: "abc\ny: 1\nz: "d"\n', 2, "the quote on line 2 isn't closed"),
        (b"x: 'abc\ny: 1\n", 1, "the quote on line 1 isn't closed"),
        (b'a: 1\nx: ["arn:b", "arn:c, "arn:d"]\n', 2, "the quote on line 2 isn't closed"),
        (b"a: b: c\n", 1, "the line has a second colon"),
        (b"a: 1\n  b: 2\n", 2, "indented further than the one above"),
        (b"name john\na: 1\n", 1, "a colon is missing after `name`"),
        (b"a: 1\nb\n  c: 1\n", 2, "a colon is missing after `b`"),
        (b"a:\n  x: 1\n  b Single\nc: {x: 1}\n", 3, "a colon is missing after `b`"),
        (b'a:\n  x: 1\n  b "1"  # as c: 1\n  d: [1]\n', 3, "a colon is missing after `b`"),
        (b"a:\n  b [{x: 1, y: 2}]\n", 2, "a colon is missing after `b`"),
        (b"a: {x: 1,\n    b [1]}\n", 2, "a colon is missing after `b`"),
        (b"a: &x 1\nb\n", 2, "a colon is missing after `b`"),
        (b"a:\n  -{x: 1}\n  - {x: 2}\n", 2, "a space is missing after the hyphen"),
        (b"a:\n  - {x: 1}\n  -x: 2\n", 3, "a space is missing after the hyphen"),
        (b"a:\n  b: 1\n c: 2\n", 3, "the indentation of this line matches none"),
        (b"a:\n  b:\n    c: {}\n  d:\n      e: 1\n    f: 2\n", 4, "indented less than the other keys of its map"),
        (b"a:\n   b: 1\n  c:\n    - 2\n  d: 3\n", 2, "indented further than the lines below it"),
        (b"a:\n  b:\n  c: 1\n    d: 2\n", 3, "indented less than the lines below it"),
        (b"a:\n  - {x: 1}\n  {x: 2}\n  - {x: 3}\n", 3, "`- ` is missing before this entry"),
        (b"a:\n  - {x: 1}\n  {x: 2}\nb: 1\n", 3, "`- ` is missing before this entry"),
        (b"a:\n  b: {x: p q: 1}\n", 2, "a comma is missing before `q`"),
        (b'a:\n  b: ["x" y]\n', 2, "a comma is missing before `y`"),
        (b"a: {x: [1, y: 2}\n", 1, "the `[` on line 1 isn't closed before this `}`"),
        (b"a:\n  - {x: 1\n  - {x: 2}\n", 2, "the `{` on line 2 isn't closed"),
        (b"a: {x: 1,\n    y: 2\n    z: 3}\n", 2, "a comma is missing at the end of this line"),
        (b"a: {x: 1,\n    y: [2] z: 3}\n", 2, "a comma is missing before `z`"),
        (b"a: {x: 1}}\n", 1, "a `}` on this line has no `{`"),
        (b"a: x: 1, y: 2}\n", 1, "a `}` on this line has no `{`"),
        (b"a: {x: 1]}\n", 1, "a `]` on this line has no `[`"),
        (b"a: @b\n", 1, "a value can't start with `@`"),
        (b"a: `b`\n", 1, "a value can't start with a backtick"),
        (b"a: *\n", 1, "a value can't start with `*`"),
        (b'a: "x" y\n', 1, "text after the end of the value"),
        (b"a:\n\t- b\n", 2, "indented with a tab"),
        ('a:\n  b:\u00a0"1"\n  c: 1\n'.encode(), 2, "a special space"),
        (b"a: &x [1, *x]\n", 1, "would contain itself"),
        (b"a: &x {b: {c: [*x]}}\n", 1, "would contain itself"),
        (b"a: *nobody\n", 1, "has no anchor before it (anchors so far: none)"),
        (b"[" * 5000, 1, "nested deeper than"),
        (b"{a: " * 5000, 1, "nested deeper than"),
        (b"- " * 5000 + b"x", 1, "nested deeper than"),
        (b"a: caf\xe9\n", 1, "valid UTF-8: byte 0xe9"),
        (b"b: 1\na: \x07\n", 2, "the character U+0007 is not allowed"),
        (b"a: 1\n---\nb: 2\n", 2, "more than one YAML document"),
        (b"? [a, b]\n: 1\n", 1, "not a list or a map"),
        (b"a: " + b"x" * (5 * 1024 * 1024), 1, "larger than 4 MiB"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_what_cannot_be_read_is_one_clear_finding(content, line, says):
    error = problem(content)
    assert error.rule == "CFG005"
    assert says in error.message
    assert error.mark.line == line
    assert error.fix


def test_an_alias_bomb_is_refused_and_not_unfolded():
    bomb = b"a: &a [x,x,x,x,x,x,x,x,x,x]\n"
    for previous, name in zip("abcdefgh", "bcdefghi", strict=True):
        bomb += f"{name}: &{name} [{','.join(['*' + previous] * 10)}]\n".encode()
    assert "more than a million values" in problem(bomb).message


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "the file is empty"),
        (b"# only a comment\n", "the file is empty"),
        (b"- a\n", "contains a list; it must be a map"),
        (b"word\n", "text"),
    ],
)
def test_a_file_that_is_no_map_says_what_it_is(content, says):
    (found,) = findings_in(content)
    assert found.rule == "CFG005"
    assert says in found.message


def test_line_ends_of_windows_and_a_byte_order_mark_change_nothing():
    plain = text_of(organization())
    assert findings_in(plain) == []
    assert findings_in(b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n")) == []


def test_positions_count_from_one_and_point_at_the_value():
    document = read_text("a:\n  - name: über\n    b: {c: 1.30}\n".encode())
    assert document.locate(("a", 0, "b", "c")).line == 3
    assert document.locate(("a", 0, "b", "c")).column == 12
    assert document.locate(("a", 0, "name")).column == 11
    assert document.locate(("a", 0, "b"), key=True).column == 5
    assert document.raw(("a", 0, "b", "c")) == "1.30"
    assert document.locate(("a", 0, "missing")).line == 2, "the nearest value above stands in"


SHOWN = {
    ("teams", 0, "rows", 0, "x"): "teams[john].rows[1st].x",
    ("teams", 0, "members", 0): "teams[john].members[trainer]",
    ("teams", 0, "members", 1): "teams[john].members[2nd]",
    ("rows", 0): "rows[ml.g5.12xlarge]",
    ("rows", 1): "rows[2nd]",
    ("rows", 2): "rows[3rd]",
    ("ranges", 0): "ranges[10.0.0.0/8]",
    ("ranges", 1): "ranges[2nd]",
    ("ranges", 12): "ranges[12]",
}
LISTS = b"""
teams: [{name: john, rows: [{x: 1}], members: ["arn:aws:iam::123456789012:role/ci/trainer", "no] label"]}]
rows: [{instanceType: ml.g5.12xlarge}, {instanceType: ml.p5.48xlarge}, {instanceType: ml.p5.48xlarge}]
ranges: [10.0.0.0/8, 12]
"""


@pytest.mark.parametrize(("path", "shown"), SHOWN.items())
def test_items_of_lists_are_shown_by_what_tells_them_from_the_others(path, shown):
    assert format_path(path, read_text(LISTS).data) == shown


@pytest.mark.parametrize("list_", ["teams", "rows", "ranges"])
def test_an_item_is_found_by_what_it_is_shown_as_and_by_its_index(list_):
    items = read_text(LISTS).data[list_]
    for index in range(len(items)):
        assert find_item(items, item_label(items, index)) == find_item(items, str(index)) == index
    assert find_item(items, "ml.p5.48xlarge") is None, "two have it"
    assert find_item(items, "nothing") is find_item(items, "9th") is find_item(items, "0th") is None


def test_items_without_a_name_are_shown_by_index_where_that_is_asked_for():
    data = read_text(LISTS).data
    assert format_path(("teams", 0, "members", 0), data, numbered=True) == "teams[john].members[0]"


def test_merge_keys_work_and_own_keys_win():
    document = read_text(b"base: &b {x: 1, y: 2}\nuse: {<<: *b, y: 3}\nboth: {<<: [*b, {z: 4}]}\n")
    assert document.problems == ()
    assert document.data["use"] == {"x": 1, "y": 3}
    assert document.data["both"] == {"x": 1, "y": 2, "z": 4}


@pytest.mark.parametrize("word", ["on", "off", "yes", "No"])
def test_booleans_of_yaml_1_1_get_a_finding_of_their_own(word):
    (found,) = read_text(f"a: {word}\n".encode()).problems
    assert found.rule == "CFG002"
    assert f"`{word}`" in found.message
    assert read_text(f'a: "{word}"\n'.encode()).problems == ()


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("0x1F", "0x1F"), ("0123", "0123"), ("1_000", "1_000"), ("12:30:45", "12:30:45"), ("1e3", 1000.0),
     ("~", None), ("true", True), ("2027-01-31", "2027-01-31"), ("9" * 5000, float("inf"))],
)  # fmt: skip
def test_scalars_are_read_by_yaml_1_2(text, value):
    assert read_text(f"a: {text}\n".encode()).data == {"a": value}


def test_a_missing_file_a_directory_and_a_name_that_is_none_are_refused(tmp_path):
    for name, says in (("missing.yaml", "this file doesn't exist"), (".", "this is a directory"), ("a\0b", "null")):
        with pytest.raises(InputError, match=says):
            read_file(tmp_path / name if name != "." else tmp_path)


def test_a_named_pipe_or_a_device_is_refused_without_opening_it_and_the_callers_own_pipe_is_read(tmp_path):
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero"):
        with pytest.raises(InputError, match="this is a pipe or device, not a file; to read from a pipe, pass"):
            read_file(path)
    reading, writing = os.pipe()
    os.write(writing, b"a: 1\n")
    os.close(writing)
    assert read_file(f"/dev/fd/{reading}") == b"a: 1\n"
    os.close(reading)


@pytest.mark.parametrize(
    ("text", "path", "column"),
    [
        ("a: !!int '3'\n", ("a",), 4),
        ("a: !custom\n  b: 1\n", ("a",), 4),
        ("a: [x, !!set {y: 1}]\n", ("a", 1), 8),
        ("!env a: 1\n", (), 1),
        ("a: ! foo\n", ("a",), 4),
        ("a: &anchor !x foo\n", ("a",), 4),
    ],
)
def test_a_tag_is_a_problem_where_it_stands(text, path, column):
    (problem,) = read_text(text.encode()).problems
    assert (problem.rule, problem.path, problem.mark) == ("CFG005", path, Mark(1, column))
    assert "tag" in problem.message
    assert "Remove the tag" in problem.fix


def test_a_tag_that_says_what_its_value_is_anyway_is_none():
    document = read_text(b"a: !!str 1.30\nb: !!seq [1]\nc: !!map {d: 1}\n")
    assert document.problems == ()
    assert document.data["a"] == "1.30"
