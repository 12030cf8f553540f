"""`hpkit describe`."""

import json

import pytest

from tests.builders import organization, team, text_of
from tests.cli.invoke import hpkit


def test_a_team_of_one_stack_alone_needs_no_stack(examples):
    named = hpkit("describe", "team", "john", "--stack", "handson-dev", cwd=examples)
    assert named.returncode == 0
    assert named.stdout.startswith("john in handson-dev (us-west-2)\n")
    assert hpkit("describe", "team", "john", cwd=examples).stdout == named.stdout
    assert max(len(line) for line in named.stdout.splitlines()) <= 80


def test_a_name_alone_is_led_to_what_to_write_before_it(examples):
    answer = hpkit("describe", "john", cwd=examples)
    assert answer.returncode == 2
    written = " or ".join(f"`hpkit describe {kind} john`" for kind in ("team", "group", "stack"))
    assert f"run {written}." in answer.stderr
    assert "Did you mean 'team'?" in hpkit("describe", "taem", "john", cwd=examples).stderr


def test_a_team_of_several_stacks_asks_which(examples):
    answer = hpkit("describe", "team", "serving", cwd=examples)
    assert answer.returncode == 2
    assert answer.stderr == "error: name the stack with --stack: autoscale-dev, enterprise-prod\n"


def test_json_has_the_same_numbers(examples):
    document = json.loads(
        hpkit("describe", "team", "john", "--stack", "handson-dev", "--format", "json", cwd=examples).stdout
    )
    (part,) = document["types"]
    assert (document["queue"], document["fairShareWeight"]) == ("hyperpod-ns-john-localqueue", 0)
    assert (part["reserved"], part["borrowLimit"], part["borrowable"], part["boundBy"]) == (3, 1.5, 1, "lenders")
    assert part["lenders"] == [{"team": "smith", "instances": 1}]


def test_a_group_is_explained_in_both_formats(examples):
    text = hpkit("describe", "group", "burst-a", cwd=examples).stdout
    assert "Karpenter manages the number of instances:" in text
    told = json.loads(hpkit("describe", "group", "burst-a", "--format", "json", cwd=examples).stdout)
    assert (told["nodeClass"], told["nodePools"], told["quotas"][0]["maximum"]) == ("burst", ["inference"], 18)


def test_a_team_in_several_files_names_the_place_of_each_setting(tmp_path):
    data = organization(teams=[], allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 1}]})
    data["clusterPolicy"] = {"idleResourceSharing": "Enabled"}
    data |= {"include": ["teams/*.yaml"], "defaults": "shared.yaml"}
    overrides = {"governance": {"overrides": {"ada": {"fairShareWeight": 5}}, "gangScheduling": {"enable": True}}}
    files = {
        "acme.yaml": data,
        "teams/ada.yaml": {"teams": [team("ada")]},
        "shared.yaml": {"clusterPolicy": {"fairShare": "Enabled"}, "environmentDefaults": overrides},
    }
    (tmp_path / "Pulumi.yaml").touch()
    (tmp_path / "stacks" / "teams").mkdir(parents=True)
    for name, each in files.items():
        (tmp_path / "stacks" / name).write_bytes(text_of(each))
    told = json.loads(hpkit("describe", "team", "ada", "--format", "json", cwd=tmp_path).stdout)
    assert {each["path"]: each["file"] for each in told["places"]} == {
        "teams[ada]": "stacks/teams/ada.yaml",
        "environments.dev.governance.allocations.ada": "stacks/acme.yaml",
        "environments.dev.governance.overrides.ada.fairShareWeight": "stacks/shared.yaml",
        "environments.dev.governance.gangScheduling.enable": "stacks/shared.yaml",
        "clusterPolicy.idleResourceSharing": "stacks/acme.yaml",
        "clusterPolicy.fairShare": "stacks/shared.yaml",
    }
    shown = hpkit("describe", "group", "gpu", cwd=tmp_path).stdout
    assert "environments.dev.cluster.instanceGroups[gpu]: stacks/acme.yaml:" in shown.replace("\n    ", " ")


def test_each_value_of_a_stack_has_its_place_and_whether_it_is_inherited(tmp_path):
    data = organization(allocations={"ada": [{"instanceType": "ml.g5.12xlarge", "count": 1}]})
    data |= {"include": ["ada.yaml"], "defaults": "shared.yaml", "environmentDefaults": {"manageTags": True}}
    waiver = {"rule": "STO001", "path": "environments.dev", "reason": "tried out", "until": "2026-12-31"}
    del data["environments"]["dev"]["account"]
    data["environments"]["dev"] |= {"protect": False, "waivers": [waiver]}
    # Nothing of other stacks is shown.
    data["environments"]["prod"] = {**data["environments"]["dev"]}
    shared = {"tags": {"cost-center": "research"}, "environmentDefaults": {"protect": True, "account": "123456789012"}}
    (tmp_path / "Pulumi.yaml").touch()
    (tmp_path / "stacks").mkdir()
    for name, each in {"acme": data, "ada": {"teams": [team("ada")]}, "shared": shared}.items():
        (tmp_path / "stacks" / f"{name}.yaml").write_bytes(text_of(each))
    answer = hpkit("describe", "stack", "acme-dev", "--format", "json", cwd=tmp_path)
    assert answer.returncode == 0, answer.stderr
    told = json.loads(answer.stdout)
    values = {each["path"]: (json.loads(each["value"]), each["file"], each["inherited"]) for each in told["values"]}
    own, of_team, common = (f"stacks/{name}.yaml" for name in ("acme", "ada", "shared"))
    assert values["environments.dev.protect"] == (False, own, False)
    assert values["environments.dev.manageTags"] == (True, own, True)
    assert values["environments.dev.account"] == ("123456789012", common, True)
    assert values["environments.dev.waivers[STO001].until"] == ("2026-12-31", own, False)
    assert values["tags.cost-center"] == ("research", common, True)
    assert values["teams[ada].name"] == ("ada", of_team, False)
    assert not any("prod" in path for path in values)
    lines = hpkit("describe", "stack", "acme-dev", cwd=tmp_path).stdout.splitlines()
    (line,) = (each for each in lines if each.startswith("environments.dev.account: "))
    assert line.startswith(f'environments.dev.account: "123456789012"  {common}:')
    assert line.endswith(" (inherited)")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("team", "jhon", "--stack", "handson-dev"), "did you mean john?"),
        (("group", "gpus", "--stack", "handson-dev"), "did you mean gpu?"),
    ],
)
def test_a_misspelt_name_is_misuse_and_names_the_nearest(arguments, message, examples):
    answer = hpkit("describe", *arguments, cwd=examples)
    assert answer.returncode == 2
    assert message in answer.stderr


def test_a_file_that_cannot_be_read_shows_why(project):
    (project / "stacks" / "acme.yaml").write_text("organization: [")
    answer = hpkit("describe", "team", "john", "--stack", "acme-dev", cwd=project)
    assert answer.returncode == 1
    assert "CFG005" in answer.stderr
    assert hpkit("describe", "team", "john", cwd=project).returncode == 2
