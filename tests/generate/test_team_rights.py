"""The page of team rights lists every refusal, each with an existing test."""

import ast
from pathlib import Path

from generate.team_rights import ATTACKS, FILES_ATTACK, PREFIX
from hpkit.program.components.admission import policies_of
from hpkit.program.components.rbac import VERBS, cluster_rules, team_rules

SUITE = Path(__file__).parents[1] / "security"
# The rules for Jobs and for other kinds that Kueue counts are in the pods' row.
ALIKE = ("hpkit-team-jobs", "hpkit-team-workloads")


def attacks():
    trees = [ast.parse(file.read_text(encoding="utf-8")) for file in SUITE.glob("test_*.py")]
    names = {node.name for tree in trees for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {name.removeprefix(PREFIX) for name in names if name.startswith(PREFIX)}


def test_every_attack_of_the_suite_is_on_the_page_and_no_other():
    assert {test for tests in ATTACKS.values() for test in tests} == attacks()


def test_every_refusal_of_a_policy_is_on_the_page():
    refused = {(policy.name, refusal.field) for policy in policies_of(()) for refusal in policy.refusals}
    pods = {field for name, field in refused if name == "hpkit-team-pods"}
    assert {key for key in refused if key[0] not in ALIKE or key[1] not in pods} == {
        key for key in ATTACKS if key[0].startswith("hpkit-")
    }


def test_the_attack_on_the_shared_files_exists():
    file = SUITE.parent / "program" / "components" / "test_admission_files.py"
    assert f"\ndef {FILES_ATTACK}(" in file.read_text(encoding="utf-8")


def test_every_verb_that_anybody_has_is_explained():
    assert {verb for rule in [*team_rules(), *cluster_rules()] for verb in rule.verbs} == VERBS.keys()
