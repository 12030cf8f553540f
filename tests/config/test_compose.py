"""One organization in several files: the same data and findings, and the position of each value."""

import re
import subprocess
import sys

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from generate.cases import TextFolder
from generate.examples import example_files
from hpkit.checks import check
from hpkit.config import parse, read_text
from hpkit.config.reading.compose import composed
from hpkit.config.reading.folder import DiskFolder, GitFolder
from hpkit.config.reading.load import MAX_BYTES
from tests.builders import TODAY, organization, plain, team

ORGANIZATIONS = [plain(read_text(file.read_bytes()).data) for file in example_files()]
_SHARED = ("tags", "clusterPolicy")


def read(data, files, *, own="acme.yaml"):
    texts = {
        name: text if isinstance(text, str) else yaml.safe_dump(text, sort_keys=False) for name, text in files.items()
    }
    return composed(read_text(yaml.safe_dump(data, sort_keys=False).encode()), TextFolder(texts), own)


def findings(document):
    return check(parse(document), file="acme.yaml", today=TODAY)


def said(document):
    """Return findings without the positions in their messages."""
    places = re.compile(r"; [^;]+ is (?:on line|at) \S+$")
    found = findings(document)
    return sorted((each.rule, each.severity, each.path, places.sub("", each.message), each.fix) for each in found)


@st.composite
def broken(draw):
    """Generate an organization, usually with a few values that break rules."""
    data = plain(draw(st.sampled_from(ORGANIZATIONS)))
    data = yaml.safe_load(yaml.safe_dump(data))
    for entry in data["teams"]:
        if draw(st.integers(0, 3)) == 0:
            entry.update(
                draw(st.sampled_from([{"name": "john"}, {"fairShareWeight": -1}, {"nmae": 1}, {"members": ["x"]}]))
            )
    for environment in data["environments"].values():
        if draw(st.booleans()):
            environment.update(
                draw(st.sampled_from([{"region": "us-west-9"}, {"protect": "yes"}, {"waivers": [{"rule": 3}]}]))
            )
    return data


@st.composite
def split(draw, data):
    """Split an organization's values at random between its own file and other files."""
    own, files = dict(data), {}
    teams = list(own.pop("teams"))
    cuts = sorted({0, *draw(st.lists(st.integers(0, len(teams)), max_size=4)), len(teams)})
    kept = cuts[draw(st.integers(0, 1)) if len(cuts) > 1 else 0]
    if kept or not teams:
        own["teams"] = teams[:kept]
    starts = [kept, *(cut for cut in cuts if kept < cut < len(teams))]
    for number, (start, end) in enumerate(zip(starts, [*starts[1:], len(teams)], strict=True)):
        files[f"teams/{number:02}.yaml"] = {"teams": teams[start:end]}
    if files:
        own["include"] = ["teams/*.yaml"]
    shared = {key: own.pop(key) for key in _SHARED if key in own and draw(st.booleans())}
    environments = {name: dict(each) for name, each in own["environments"].items()}
    common = {}
    for key, value in list(next(iter(environments.values())).items()):
        if all(each.get(key) == value for each in environments.values()) and draw(st.booleans()):
            common[key] = value
            for each in environments.values():
                del each[key]
    here = {key: value for key, value in common.items() if draw(st.booleans())}
    shared["environmentDefaults"] = {key: value for key, value in common.items() if key not in here}
    own |= {"environments": environments, "environmentDefaults": here, "defaults": "shared.yaml"}
    return own, {**files, "shared.yaml": shared}


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_an_organization_in_several_files_is_the_same_and_has_the_same_findings(data):
    whole = data.draw(broken())
    own, files = data.draw(split(whole))
    alone, together = read(whole, {}), read(own, files)
    assert parse(together).organization == parse(alone).organization
    assert said(together) == said(alone)


@given(st.data())
@settings(max_examples=30, deadline=None)
def test_a_finding_points_to_the_value_in_its_file(data):
    own, files = data.draw(split(data.draw(broken())))
    document = read(own, files)
    for path, value in walk(document.data, ()):
        if isinstance(value, (dict, tuple)):
            continue
        mark = document.locate(path)
        part = document.parts[mark.file]
        assert any(part.locate(inner) == mark and here == value for inner, here in walk(part.data, ())), path


def walk(value, path):
    yield path, value
    entries = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, tuple) else ()
    for step, inner in entries:
        yield from walk(inner, (*path, step))


def test_maps_are_merged_by_key_and_the_nearest_value_counts():
    own = organization()
    own["environments"]["prod"] = {**own["environments"]["dev"], "eks": {"endpoint": {"public": False}}, "waivers": []}
    own |= {
        "tags": {"stage": "own"},
        "defaults": "shared.yaml",
        "environmentDefaults": {"eks": {"logRetentionDays": 30}},
    }
    shared = {
        "tags": {"stage": "shared", "owner": "ml"},
        "environmentDefaults": {
            "eks": {"version": "1.34", "logRetentionDays": 7, "endpoint": {"privateFrom": ["10.20.0.0/16"]}},
            "waivers": [{"rule": "CAP005", "path": "x", "reason": "y", "until": "2027-01-01"}],
        },
    }
    data = read(own, {"shared.yaml": shared}).data
    dev, prod = (data["environments"][name] for name in ("dev", "prod"))
    assert data["tags"] == {"stage": "own", "owner": "ml"}
    assert dev["eks"]["version"] == "1.35", "the environment's own"
    assert (prod["eks"]["version"], prod["eks"]["logRetentionDays"]) == ("1.34", 30)
    assert prod["eks"]["endpoint"] == {"public": False, "privateFrom": ("10.20.0.0/16",)}
    assert (len(dev["waivers"]), prod["waivers"]) == (1, ())
    assert "environmentDefaults" not in data


def test_null_turns_a_default_off_and_nothing_at_all_does_not():
    own = "  a: {keda: null, b: null}\n  b:\n    keda:\n  c: {keda: {x: ~}}\n"
    text = f"environmentDefaults: {{keda: {{x: 1}}}}\nenvironments:\n{own}"
    environments = composed(read_text(text.encode()), TextFolder({}), "acme.yaml").data["environments"]
    assert environments == {"a": {"b": None}, "b": {"keda": {"x": 1}}, "c": {"keda": {}}}


class _Bytes:
    """A folder with one file that contains any bytes."""

    def __init__(self, content):
        self.content = content

    def entries(self, under):
        return {} if under else {"a.yaml": "file", "b.yaml": "file"}

    def contents(self, names):
        return (self.content for _ in names)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"\xff\xfet\x00", "the file isn't valid UTF-8: byte 0xff at offset 0"),
        ("teams: []".encode("utf-16"), "the file isn't valid UTF-8: byte 0xff at offset 0"),
        (b"teams: [\x00]", "the character U+0000 is not allowed in YAML"),
        (b"#" * (MAX_BYTES + 1), "the file is larger than 4 MiB, the limit for an organization file"),
        (b"#" * (MAX_BYTES - 1), "the file is empty"),
        (b"a: &a [1]\n---\nb: 1", "the file contains more than one YAML document"),
        (b"teams: *roles", "the alias *roles has no anchor before it (anchors so far: none)"),
    ],
)
def test_a_file_that_cannot_be_read_is_a_finding_in_that_file(content, message):
    own = read_text(b"organization: acme\ninclude: [a.yaml]\nenvironments: {}\n")
    document = composed(own, _Bytes(content), "acme.yaml", "stacks/")
    (found,) = [each for each in document.problems if each.message == message]
    assert (found.rule, found.mark.file, found.mark.line) == ("CFG005", "stacks/a.yaml", found.mark.line)
    assert parse(document).organization is None
    assert parse(document).unread == ((),)


def test_what_a_file_that_cannot_be_read_may_state_is_not_missed():
    own = organization(allocations={"nlp": [{"instanceType": "ml.g5.12xlarge", "count": 1}]})
    del own["environments"]["dev"]["region"]
    own |= {"include": ["teams.yaml"], "defaults": "shared.yaml"}
    found = findings(read(own, {"teams.yaml": "teams: [", "shared.yaml": "environmentDefaults: ["}))
    assert {each.rule for each in found} == {"CFG005"}


def test_files_are_bounded_together():
    own = read_text(b"organization: acme\ninclude: [a.yaml, b.yaml]\nenvironments: {}\n")
    document = composed(own, _Bytes(b"teams: []\n#" + b"x" * (MAX_BYTES // 2)), "acme.yaml")
    (problem,) = document.problems
    assert problem.message == "the files of an organization are larger than 4 MiB together"
    levels = "".join(f"x-{number}: &l{number} [{', '.join([f'*l{number - 1}'] * 9)}]\n" for number in range(1, 6))
    bomb = f"x-0: &l0 [1, 2, 3, 4]\n{levels}teams: [{{name: *l5}}, {{name: *l5}}]\n".encode()
    assert read_text(bomb).problems == (), "each of both is small enough"
    (problem,) = composed(own, _Bytes(bomb), "acme.yaml").problems
    assert problem.message == "the files of the organization contain more than a million values together"
    many = [f"include: [{', '.join(['a.yaml', 'b.yaml'])}]", f"x-d: &d [{', '.join(['1'] * 2000)}]"]
    many += ["environmentDefaults: {waivers: *d}", f"environments: {{{', '.join(f'e{n}: {{}}' for n in range(600))}}}"]
    document = composed(read_text("\n".join(many).encode()), _Bytes(b"teams: []"), "acme.yaml")
    (problem,) = document.problems
    assert problem.message == "with `environmentDefaults`, the environments contain more than a million values"


def test_paths_are_read_on_disk_and_at_a_commit_alike(tmp_path):
    folder = tmp_path / "stacks"
    (folder / "teams").mkdir(parents=True)
    (folder / "teams" / "ada.yaml").write_text("teams: [{name: ada}]\n")
    (folder / "teams" / "folder.yaml").mkdir()
    (folder / "teams" / "folder.yaml" / "x.yaml").touch()
    (folder / "teams" / "link.yaml").symlink_to("ada.yaml")
    (folder / "links").symlink_to("teams")
    (folder / "ü.yaml").write_text("teams: [{name: grace}]\n")
    git = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-qm", "x"]):
        subprocess.run([*git, *words], check=True)
    own = {"include": ["teams/*.yaml", "links/*.yaml", "ü.yaml", "teams/folder.yaml", "none.yaml", "teams/ada.yaml"]}
    problems = [
        composed(read_text(yaml.safe_dump(own).encode()), place, "acme.yaml", "stacks/")
        for place in (DiskFolder(folder), GitFolder(tmp_path, "HEAD", "stacks"))
    ]
    for document in problems:
        assert [each["name"] for each in document.data["teams"]] == ["ada", "grace"]
        assert [each.message for each in document.problems] == [
            "`teams/link.yaml` is a symbolic link",
            "`links` is a symbolic link",
            "`teams/folder.yaml` is not a regular file",
            "`none.yaml` doesn't exist",
        ]
        assert document.is_made_of("stacks/teams/new.yaml")
        assert not document.is_made_of("stacks/teams/deeper/new.yaml")


def test_standard_input_names_files_relative_to_the_current_folder(tmp_path):
    (tmp_path / "team.yaml").write_text("teams: [{name: ada, fairShareWeight: 101}]\n")
    own = yaml.safe_dump({**organization(), "include": ["team.yaml"]}).encode()
    words = [sys.executable, "-c", "from hpkit.cli import main; main()", "validate", "/dev/stdin"]
    answer = subprocess.run(words, cwd=tmp_path, input=own, capture_output=True, check=False)
    assert answer.stdout.startswith(b"team.yaml:1:38: error CFG002 teams[ada].fairShareWeight")


def test_the_fix_of_a_missing_file_is_one_that_exists():
    files = {"teams/speech.yaml": {"teams": [team("speech")]}}
    (found,) = read({**organization(), "include": ["teams/speach.yaml"]}, files).problems
    meant = re.fullmatch(r"Did you mean `(.+)`\?", found.fix)[1]
    assert read({**organization(), "include": [meant]}, files).problems == ()
    (other,) = read({**organization(), "defaults": "common.yaml"}, {"handson.yaml": {}}).problems
    assert other.fix == "Create the file, or remove the path."


def two_environments(**defaults):
    own = organization()
    own["environments"]["prod"] = own["environments"]["dev"]
    return {**own, "environmentDefaults": defaults}


def listed(document):
    return check(parse(document), file="acme.yaml", today=TODAY, by_place=True)


def test_what_is_wrong_with_a_default_is_listed_once_by_the_path_where_it_is_written():
    document = read(two_environments(protct=True, storage={"nfs": {}}, eks={"logRetentionDays": "long"}), {})
    found = [(each.path, each.message.partition(";")[0]) for each in listed(document)]
    assert found == [
        ("environmentDefaults.protct", "unknown key `protct` in environmentDefaults"),
        ("environmentDefaults.storage.nfs", "unknown key `nfs` in environmentDefaults.storage"),
        ("environmentDefaults.eks.logRetentionDays", "logRetentionDays is `long`"),
    ]
    paths = [each.path for each in findings(document) if "protct" in each.path]
    assert paths == ["environments.dev.protct", "environments.prod.protct"]


def test_a_waiver_names_a_default_as_its_finding_does():
    own = two_environments(eks={"version": "1.20"})
    own["environments"]["dev"]["eks"].pop("version")
    document = read(own, {})
    (path,) = [each.path for each in listed(document) if each.rule == "EKS002"]
    assert path == "environmentDefaults.eks.version"
    waiver = {"rule": "EKS002", "path": path, "reason": "x", "until": f"{TODAY}"}
    own["environmentDefaults"]["waivers"] = [waiver]
    assert {each.rule for each in listed(read(own, {}))}.isdisjoint({"EKS002", "WAI002"})


def test_a_value_behind_an_alias_is_listed_once():
    own = yaml.safe_dump(two_environments(), sort_keys=False).replace("version: '1.35'", "version: 'x'")
    document = composed(read_text(own.encode()), TextFolder({}), "acme.yaml")
    assert len({each.path for each in findings(document) if each.path.endswith("eks.version")}) == 2
    assert len([each for each in listed(document) if each.path.endswith("eks.version")]) == 1


@pytest.mark.parametrize(
    ("environments", "path"),
    [
        ("environments:\n  dev:\n    protect: false\n  governance:\n    allocations: {}\n", "environments.governance"),
        ("environments:\n  dev:\n  governance:\n    allocations: {}\n", "environments.governance"),
        ("environments:\n  dev:\ngovernance:\n  allocations: {}\n", "governance"),
        ("environment:\n  dev:\n    governance:\n      allocations: {}\n", "environment"),
    ],
)
def test_environments_with_one_mistake_still_have_the_defaults(environments, path):
    dev = organization()["environments"]["dev"]
    top = {"organization": "acme", "environmentDefaults": {key: dev[key] for key in dev.keys() - {"governance"}}}
    document = composed(read_text(f"{yaml.safe_dump(top)}{environments}".encode()), TextFolder({}), "acme.yaml")
    found = check(parse(document), file="acme.yaml", today=TODAY)
    errors = [each for each in found if each.severity == "error"]
    assert [(each.rule, each.path) for each in errors] == [("CFG001", path)]
