"""The page of team permissions lists every rejection."""

from generate.team_rights import REFUSED
from hpkit.program.components.access.rbac import VERBS, cluster_rules, team_rules
from hpkit.program.components.admission.policies import policies_of

# The rules for Jobs and for other kinds that Kueue counts are in the pods' row.
ALIKE = ("hpkit-team-jobs", "hpkit-team-workloads")


def test_every_refusal_of_a_policy_is_on_the_page():
    refused = {(policy.name, refusal.field) for policy in policies_of(()) for refusal in policy.refusals}
    pods = {field for name, field in refused if name == "hpkit-team-pods"}
    assert {key for key in refused if key[0] not in ALIKE or key[1] not in pods} == {
        key for key in REFUSED if key[0].startswith("hpkit-")
    }


def test_every_verb_that_anybody_has_is_explained():
    assert {verb for rule in [*team_rules(), *cluster_rules()] for verb in rule.verbs} == VERBS.keys()
