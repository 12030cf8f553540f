"""Losses that the files alone show: the review has a sentence and a row for each, and its verdict isn't OK."""

import pytest

from hpkit.changes.review.access_risks import access_risks
from hpkit.changes.review.as_json import ChangeReview
from hpkit.changes.review.as_text import as_text
from hpkit.changes.review.tables import cost_rows, loss_lines
from hpkit.plan.derive import derive
from tests.builders import group, organization, team, text_of, typed
from tests.changes.review.builders import review_of
from tests.documents import plain

ROW = {"instanceType": "ml.g5.12xlarge", "count": 2}
LUSTRE = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 2400}


def platform(*, environment=None, row=None, top=None, groups=None, **ada):
    groups = groups or [group("gpu", "ml.g5.12xlarge", 4), group("system", "ml.m5.4xlarge", 1)]
    allocations = {"ada": [dict(row or ROW)]}
    return organization(
        teams=[team("ada", **ada)], groups=groups, allocations=allocations, environment=environment or {}, top=top
    )


def compared(base, head):
    review = review_of(text_of(base), text_of(head), record=None)
    return review, review.stacks[0]


def lost(base, head):
    review, stack = compared(base, head)
    assert review.verdict != "ok"
    assert "ada" in stack.losses[0].team
    return loss_lines(stack)


def test_vcpus_that_no_longer_follow_accelerators_are_a_loss():
    less = {"instanceType": "ml.g5.12xlarge", "accelerators": 8, "vCpu": 1}
    assert lost(platform(), platform(row=less)) == ["ada: vCPU of ml.g5.12xlarge 96 → 1"]


def test_accelerators_that_are_the_same_instances_are_no_loss():
    _, stack = compared(platform(), platform(row={"instanceType": "ml.g5.12xlarge", "accelerators": 8}))
    assert stack.losses == ()


def test_a_kind_of_work_that_members_may_no_longer_run_is_a_loss():
    (line,) = lost(platform(workloads=["training", "inference"]), platform(workloads=["training"]))
    assert line.startswith("ada: can no longer run inference (Deployments")


def test_priority_classes_that_members_may_no_longer_use_are_a_loss_also_where_all_were_theirs():
    classes = [{"name": "train", "weight": 80}, {"name": "try", "weight": 40}]
    top = {"clusterPolicy": {"taskPrioritization": "Rank", "priorityClasses": classes}}
    expected = ["ada: its jobs can no longer use the priority class try"]
    named = platform(top=top, priorityClasses=["train"])
    assert lost(platform(top=top), named) == expected
    assert lost(platform(top=top, priorityClasses=["train", "try"]), named) == expected


def test_a_claim_on_local_disks_is_a_loss_of_each_team():
    (line,) = lost(platform(environment={"storage": {"localDisk": {"instanceTypes": ["ml.g5.12xlarge"]}}}), platform())
    assert line.startswith("ada: its claim local-claim is deleted")


def test_images_that_are_no_longer_kept_are_a_loss_of_the_team_that_has_repositories():
    def kept(**registry):
        return platform(registry=["train"], environment={"registry": {"pullFrom": ["*"], **registry}})

    said = "ada: each of its repositories keeps fewer images, {}: older ones are deleted"
    assert lost(kept(keepImages=100), kept(keepImages=5)) == [said.format("100 → 5")]
    assert lost(kept(), kept(keepImages=5)) == [said.format("all → 5")]
    assert lost(kept(), kept(untaggedDays=1)) == ["ada: its untagged images are deleted after 14 → 1 days"]


def test_a_claim_on_the_file_system_that_goes_is_a_loss():
    def shared(**more):
        return platform(environment={"storage": {"lustre": LUSTRE | more}})

    (line,) = lost(shared(teams=True), shared())
    assert line == "ada: its claim fsx-claim is deleted: pods that mount it no longer start (the files stay)"


def test_a_file_system_that_goes_takes_the_files_along():
    with_files = platform(environment={"storage": {"lustre": LUSTRE | {"teams": True}}})
    (line,) = lost(with_files, platform())
    assert (
        line
        == "ada: its files and its claim fsx-claim are deleted with the file system: pods that mount it no longer start"
    )


def test_scheduling_that_no_longer_looks_at_the_network_is_a_loss():
    def scheduled(topology):
        data = platform()
        data["environments"]["dev"]["governance"]["topologyAwareScheduling"] = topology
        return data

    (line,) = lost(scheduled("Enabled"), scheduled("Disabled"))
    assert "no longer placed close together" in line


def test_a_loss_in_json_has_the_names_of_what_is_lost():
    review, _ = compared(platform(serviceAccounts=["runner", "saver"]), platform(serviceAccounts=["saver"]))
    (loss,) = plain(ChangeReview.model_validate(review))["stacks"][0]["losses"]
    assert (loss["what"], loss["before"], loss["after"], loss["names"]) == ("service accounts", 2, 1, ["runner"])


def test_another_account_is_blocked_and_nothing_else_of_the_change_is_reported():
    old, new = (platform(environment={"account": account}) for account in ("210987654321", "999999999999"))
    review, stack = compared(old, new)
    (risk,) = stack.risks
    assert (review.verdict, risk.code, risk.teams) == ("blocked", "account-changed", ("ada",))
    assert "account 210987654321 → 999999999999: a stack can't move to another account" in risk.message
    assert (stack.change.steps, stack.change.refused) == ((), True)


def test_a_finding_that_is_waived_is_not_fixed():
    data = platform(serviceAccounts=["runner"])
    waiver = {"rule": "ACC003", "path": "teams[ada].serviceAccounts", "reason": "read only", "until": "2026-12-31"}
    waived = platform(serviceAccounts=["runner"], environment={"waivers": [waiver]})
    review, stack = compared(data, waived)
    changes = review.files[0].findings
    assert ([each.rule for each in changes.waived], changes.fixed) == (["ACC003"], ())
    (risk,) = [each for each in stack.risks if each.code == "waiver"]
    assert risk.message == "ACC003 at teams[ada].serviceAccounts is now waived until 2026-12-31: read only"


def autoscaled(limits=None, warm=None, node_class="burst", name="pool"):
    groups = [group("system", "ml.m5.4xlarge", 1), group("burst", "ml.g5.8xlarge", 0)]
    pool = {"name": name, "nodeClass": node_class, "limits": limits or {}} | ({"warmPool": warm} if warm else {})
    classes = [{"name": node_class, "instanceGroups": ["burst"]}]
    environment = {"autoscaling": {"nodeClasses": classes, "nodePools": [pool]}, "region": "us-east-1"}
    row = {"instanceType": "ml.g5.8xlarge", "count": 1, "elastic": True}
    return platform(groups=groups, environment=environment, row=row)


LIMIT = {"nvidia.com/gpu": 16}


def test_what_has_no_price_any_more_is_unknown_and_no_saving():
    spot = [group("gpu", "ml.g5.12xlarge", 4) | {"capacityType": "Spot"}, group("system", "ml.m5.4xlarge", 1)]
    review, _ = compared(platform(), platform(groups=spot))
    (minimum,) = [row for row in cost_rows(review.stacks[0]) if row[0] == "minimum"]
    assert minimum[2:] == ("unknown", "unknown")
    assert "→ unknown" in as_text(review, width=10_000)


def test_nodes_that_a_warm_pool_keeps_are_counted_among_what_stands_always():
    warm = {"replicas": 8, "requests": {"nvidia.com/gpu": "1"}}
    _, stack = compared(autoscaled(LIMIT), autoscaled(LIMIT, warm))
    (risk,) = [each for each in stack.risks if each.code == "node-pool-settings"]
    assert "8 × ml.g5.8xlarge always run" in risk.message
    grown = stack.minimum_cost.after.known - stack.minimum_cost.before.known
    assert (risk.monthly_cost.change, risk.monthly_cost.of) == (grown, "minimum")
    assert grown > 0
    assert stack.maximum_cost.after == stack.maximum_cost.before


def test_a_node_class_under_another_name_is_seen_as_one():
    _, stack = compared(autoscaled(LIMIT), autoscaled(LIMIT, node_class="bursts"))
    (message,) = [each.message for each in stack.risks if each.code == "node-pool-settings"]
    assert "its nodes come from the same instance groups" in message


def test_a_node_pool_under_another_name_costs_no_more():
    _, stack = compared(autoscaled(LIMIT), autoscaled(LIMIT, name="other"))
    (risk,) = [each for each in stack.risks if each.code == "limit-raised"]
    assert risk.monthly_cost is None


def test_nodes_of_another_type_are_counted_as_going():
    other = [group("gpu", "ml.g5.24xlarge", 4), group("system", "ml.m5.4xlarge", 1)]
    review, _ = compared(platform(), platform(groups=other))
    assert plain(ChangeReview.model_validate(review))["stacks"][0]["nodesLost"] == 4


def test_support_beyond_the_standard_has_its_price():
    old, new = (
        platform(environment={"eks": {"version": "1.35", "supportType": kind}}) for kind in ("STANDARD", "EXTENDED")
    )
    _, stack = compared(old, new)
    (message,) = [each.message for each in stack.risks if each.code == "version"]
    assert "$0.60 an hour instead of $0.10, $365 a month more" in message


def test_a_shared_pool_under_another_name_is_deleted_with_its_allowance():
    def pooled(name, **allowed):
        data = platform(environment=allowed)
        data["environments"]["dev"]["governance"]["sharedPool"] = {"name": name}
        return data

    review, stack = compared(pooled("shared"), pooled("pool"))
    (message,) = [each.message for each in stack.risks if each.verdict == "blocked"]
    assert "`allowDelete: {teams: [shared]}`" in message
    review, _ = compared(pooled("shared"), pooled("pool", allowDelete={"teams": ["shared"]}))
    assert review.verdict == "attention"


def limited(seconds, **ada):
    data = platform(members=["arn:aws:iam::123456789012:role/ada"], **ada)
    data["environments"]["dev"]["governance"]["teamLimits"] = {"terminationGracePeriodSeconds": seconds}
    return data


def settings_of(base, head):
    """Return everything that the whole review reports about settings, and the losses."""
    (stack,) = review_of(text_of(base), text_of(head)).stacks
    return [risk.message for risk in stack.risks if risk.code == "settings"], [loss.what for loss in stack.losses]


def test_a_service_account_that_goes_hides_no_other_change_of_the_same_policies():
    accounts = {"serviceAccounts": ["runner", "saver"]}
    assert settings_of(limited(600, **accounts), limited(600, serviceAccounts=["saver"])) == ([], ["service accounts"])
    (message,), losses = settings_of(limited(600, **accounts), limited(60, serviceAccounts=["saver"]))
    assert losses == ["service accounts"]
    assert "hpkit-team-pods" in message
    assert message.endswith("by governance.teamLimits.terminationGracePeriodSeconds 600 → 60")


def test_a_rank_that_goes_is_not_reported_again_as_a_policy():
    top = {
        "clusterPolicy": {
            "taskPrioritization": "Rank",
            "priorityClasses": [{"name": "train", "weight": 80}, {"name": "try", "weight": 40}],
        }
    }
    sides = (limited(600, top=top, priorityClasses=names) for names in (["train", "try"], ["train"]))
    assert settings_of(*sides) == ([], ["priority classes"])


def test_a_shorter_limit_of_teams_is_reported_without_a_recording():
    _, stack = compared(limited(600), limited(60))
    assert [risk.message for risk in stack.risks] == ["governance.teamLimits.terminationGracePeriodSeconds 600 → 60"]


def test_spaces_that_a_team_no_longer_runs_or_that_change_their_rank_are_said():
    with_spaces = {"environment": {"spaces": {}}, "workloads": ["training", "spaces"]}
    (line,) = lost(platform(**with_spaces), platform(environment={"spaces": {}}))
    assert line == "ada: can no longer run spaces (JupyterLab and Code Editor)"
    ranked = platform(**with_spaces, spacePriorityClass="training")
    review, _ = compared(ranked, platform(**with_spaces))
    assert "teams.ada.spacePriorityClass training is removed" in as_text(review)


ROWS = [{"instanceType": "ml.g5.12xlarge", "count": 1}]


def plan(user_ids=None, **lustre):
    nlp = team("nlp", **({"userIds": user_ids} if user_ids else {}))
    wanted = {"availabilityZone": "us-west-2a", "storageCapacityGiB": 2400, "teams": True, **lustre}
    data = organization(teams=[nlp], allocations={"nlp": ROWS}, environment={"storage": {"lustre": wanted}})
    return derive(typed(data), "dev")


def risks(before, after):
    return {risk.code: risk.message for risk in access_risks(before, after)}


def test_a_change_of_user_ids_makes_files_inaccessible():
    found = risks(plan({"first": 20000}), plan({"first": 30000}))
    assert set(found) == {"user-ids"}
    assert found["user-ids"].startswith("userIds 20000–20999 → 30000–30999: files of the old ids become inaccessible")


@pytest.mark.parametrize(
    ("before", "after", "part"),
    [
        ({}, {"rootSquash": {}}, "root on clients becomes user 65534"),
        ({"rootSquash": {}}, {}, "the file system keeps its root squash"),
        ({"rootSquash": {}}, {"rootSquash": {"noSquashNids": ["10.0.1.6@tcp"]}}, "noSquashNids (10.0.1.6@tcp)"),
    ],
)
def test_a_change_of_root_squash_is_a_risk_of_its_own(before, after, part):
    found = risks(plan(**before), plan(**after))
    assert set(found) == {"root-squash"}
    assert part in found["root-squash"]


def test_another_team_moves_no_ids():
    assert risks(plan(), plan()) == {}
