"""Each rule's example is a single difference between a failing and a passing file."""

from generate.team_rights import REJECTED
from hpkit.checks import RULES
from hpkit.cli.organization.rules import examples as shown
from hpkit.program.components.access.rbac import cluster_rules, team_rules, verbs
from hpkit.program.components.admission.policies import policies_of

MOST_LINES = 25


def test_every_rule_shows_few_lines_of_which_some_fail():
    examples = shown()
    assert list(examples) == [rule.id for rule in RULES]
    for rule, example in examples.items():
        fails, passes = ([line for line in example["diff"] if line.startswith(sign)] for sign in ("- ", "+ "))
        assert 0 < len(fails) + len(passes) <= MOST_LINES, rule
        assert example["finding"]["fix"], rule


# The rules for Jobs and for other kinds that Kueue counts are in the pods' row.
ALIKE = ("hpkit-team-jobs", "hpkit-team-workloads")


def test_every_refusal_of_a_policy_is_on_the_page():
    refused = {(policy.name, refusal.field) for policy in policies_of(()) for refusal in policy.rejections}
    pods = {field for name, field in refused if name == "hpkit-team-pods"}
    assert {key for key in refused if key[0] not in ALIKE or key[1] not in pods} == {
        key for key in REJECTED if key[0].startswith("hpkit-")
    }


def test_every_verb_that_anybody_has_is_explained():
    assert {verb for rule in [*team_rules(), *cluster_rules()] for verb in rule.verbs} == verbs().keys()
