"""One organization made of several files: the same organization, the same findings, and each value's own place."""

import re

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from generate.examples import example_files
from hpkit.checks import check
from hpkit.config import parse, read_text
from hpkit.config.compose import composed
from hpkit.config.folder import ChangedFolder
from tests.builders import TODAY, organization, plain

ORGANIZATIONS = [plain(read_text(file.read_bytes()).data) for file in example_files()]
_SHARED = ("tags", "clusterPolicy")


def read(data, files, *, own="acme.yaml"):
    texts = {
        name: text if isinstance(text, str) else yaml.safe_dump(text, sort_keys=False) for name, text in files.items()
    }
    return composed(read_text(yaml.safe_dump(data, sort_keys=False).encode()), ChangedFolder(texts), own)


def findings(document):
    return check(parse(document), file="acme.yaml", today=TODAY)


def said(document):
    """Return findings without the places that their messages name."""
    places = re.compile(r"; acme\.yaml uses this default$|(?<=the first is )(?:in line|at) \S+")
    found = findings(document)
    return sorted((each.rule, each.severity, each.path, places.sub("", each.message), each.fix) for each in found)


@st.composite
def broken(draw):
    """Return an organization, most with a few values that break rules."""
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
    """Return an organization's own file and its other files, however its values are spread over them."""
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
    text = "environmentDefaults: {keda: {}}\nenvironments:\n  a: {keda: null}\n  b:\n    keda:\n  c:\n"
    environments = composed(read_text(text.encode()), ChangedFolder({}), "acme.yaml").data["environments"]
    assert environments == {"a": {"keda": None}, "b": {"keda": {}}, "c": {"keda": {}}}
