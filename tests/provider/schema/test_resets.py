"""Removed properties are sent with the service's default, because omitted ones keep their value."""

from hpkit_provider.schema.field_table import table
from hpkit_provider.schema.resets import with_resets

POLICY = {"name": "p", "clusterArn": "arn", "schedulerConfig": {"fairShare": "Disabled"}}
QUOTA = {"name": "q", "clusterArn": "arn", "computeQuotaConfig": {}, "computeQuotaTarget": {"teamName": "nlp"}}


def test_a_quota_that_states_little_is_sent_in_full():
    assert with_resets(table("ComputeQuota"), QUOTA) == {
        **QUOTA,
        "description": "",
        "activationState": "Enabled",
        "computeQuotaTarget": {"teamName": "nlp", "fairShareWeight": 0},
        "computeQuotaConfig": {
            "preemptTeamTasks": "LowerPriority",
            "computeQuotaResources": [],
            "resourceSharingConfig": {"strategy": "LendAndBorrow"},
        },
    }


def test_how_a_quota_shares_stays_as_it_is_stated():
    sharing = {"strategy": "DontLend"}
    stated = {**QUOTA, "computeQuotaConfig": {"resourceSharingConfig": sharing}}
    full = with_resets(table("ComputeQuota"), stated)
    assert full["computeQuotaConfig"]["resourceSharingConfig"] == sharing, "a borrowLimit would be refused beside it"


def test_a_policy_keeps_what_it_states_and_resets_the_rest():
    assert with_resets(table("ClusterSchedulerConfig"), POLICY) == {
        **POLICY,
        "description": "",
        "schedulerConfig": {"fairShare": "Disabled", "idleResourceSharing": "Disabled", "priorityClasses": []},
    }
    assert POLICY["schedulerConfig"] == {"fairShare": "Disabled"}, "the inputs are not touched"
