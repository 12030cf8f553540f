"""Training plans in preflight: plans purchased on the local endpoint, and the groups that use them."""

from datetime import UTC, datetime

import boto3
import pytest

from hpkit.cli.account.preflight import OfferingList
from hpkit.cli.common.documents import json_document
from hpkit.clients.calls import FailedCall, Responses
from hpkit.cluster.live.read import plan_ends
from hpkit.plan.derive import derive
from hpkit.preflight.calls import CLUSTERS, cluster, first_calls, training_plan
from hpkit.preflight.hyperpod import check_hyperpod
from hpkit.preflight.training_plans import check_training_plans, offering_calls, offerings_of
from hpkit.program.recording import record
from tests.builders import group, organization, typed
from tests.documents import document
from tests.endpoint import ManualClock, running_endpoint

TYPE = "ml.p5.48xlarge"
ARN = "arn:aws:sagemaker:us-west-2:123456789012:training-plan/december"
DAY = 86_400.0


def plan_of(*groups):
    return derive(typed(organization(groups=list(groups))), "dev")


def gpu(name="gpu", count=4, **more):
    return group(name, more.pop("instanceType", TYPE), count, trainingPlanArn=ARN, **more)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def bought(clock, monkeypatch):
    """Return eight instances for a week in us-west-2a: the client, and its response for the plan."""
    with running_endpoint(clock=clock) as endpoint:
        sagemaker = endpoint.client("sagemaker")
        offers = sagemaker.search_training_plan_offerings(
            InstanceType=TYPE, InstanceCount=8, DurationHours=168, TargetResources=["hyperpod-cluster"]
        )["TrainingPlanOfferings"]
        sagemaker.create_training_plan(
            TrainingPlanName="december", TrainingPlanOfferingId=offers[0]["TrainingPlanOfferingId"]
        )
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint.url)
        yield lambda: sagemaker.describe_training_plan(TrainingPlanName=ARN)


def rows(plan, answer, now=None):
    responses = Responses({training_plan(ARN).key: answer, CLUSTERS.key: {"ClusterSummaries": []}})
    return list(check_training_plans(plan, responses, now=now or datetime(2027, 1, 14, tzinfo=UTC)))


def test_the_ends_of_plans_are_read_as_far_as_they_can_be(bought):
    session = boto3.Session("testing", "testing", region_name="us-west-2")
    assert plan_ends(session, [ARN, f"{ARN}-other"]) == {ARN: bought()["EndTime"]}


def test_a_plan_follows_the_clock_from_scheduled_to_expired(bought, clock):
    plan = plan_of(gpu())
    assert training_plan(ARN).key in {call.key for call in first_calls(record(plan))}
    statuses = []
    for days in (0, 1, 8):
        clock.advance(days * DAY)
        (row,) = rows(plan, bought())
        statuses.append((row.status, row.found.partition(",")[0]))
    assert statuses == [("unknown", "Scheduled"), ("ok", "Active"), ("missing", "Expired")]
    assert "expired (2027-01-15 11:30 to 2027-01-22 11:30 UTC)" in row.fix


def test_a_plan_that_ends_within_a_week_is_reported(bought, clock):
    clock.advance(DAY)
    (row,) = rows(plan_of(gpu()), bought(), datetime(2027, 1, 19, tzinfo=UTC))
    assert (row.status, row.why) == (
        "unknown",
        "The plan ends at 2027-01-22 11:30 UTC, and the group then has no nodes",
    )


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        ([gpu(instanceType="ml.p5en.48xlarge")], "reserves ml.p5.48xlarge, not ml.p5en.48xlarge"),
        ([gpu(count=9)], "has 8 of 8 instances available, and 9 are needed"),
        ([gpu(count=4), gpu("more", count=5)], "has 8 of 8 instances available, and 9 are needed"),
        ([gpu(availabilityZone="us-west-2b")], "reserves capacity in us-west-2a, and the group is in us-west-2b"),
    ],
)
def test_type_count_and_zone_of_a_plan_fit_the_groups_that_share_it(bought, clock, groups, problem):
    clock.advance(DAY)
    *_, row = rows(plan_of(*groups), bought())
    assert row.status == "missing"
    assert problem in row.fix
    assert row.command == "hpkit aws preflight --stack acme-dev --offerings"


def test_each_type_of_a_plan_with_several_is_counted_by_itself():
    other = "ml.p4d.24xlarge"
    reserved = [
        {"InstanceType": instance_type, "TotalInstanceCount": count, "Status": "Active", "AvailabilityZone": zone}
        for instance_type, count, zone in ((TYPE, 2, "us-west-2a"), (other, 6, "us-west-2b"))
    ]
    answer = {"Status": "Active", "TotalInstanceCount": 8, "ReservedCapacitySummaries": reserved}
    there = {"instanceType": other, "availabilityZone": "us-west-2b"}

    def problems(*groups):
        return [row.fix for row in rows(plan_of(*groups), answer) if row.status != "ok"]

    assert problems(gpu(count=2), gpu("other", count=6, **there)) == []
    (fix,) = problems(gpu(count=2), gpu("more", count=1), gpu("other", count=5, **there))
    assert "reserves 2 × ml.p5.48xlarge, and 3 are needed" in fix
    (fix,) = problems(gpu(count=1, availabilityZone="us-west-2b"))
    assert "reserves capacity in us-west-2a, and the group is in us-west-2b" in fix


def test_a_plan_that_does_not_exist_is_missing_and_one_that_may_not_be_read_is_unknown():
    for code, status in (("ResourceNotFound", "missing"), ("AccessDeniedException", "unknown")):
        (row,) = rows(plan_of(gpu()), FailedCall("sagemaker:DescribeTrainingPlan", code, "no"))
        assert row.status == status


def test_offerings_are_searched_for_groups_with_accelerators(clock):
    plan = plan_of(gpu(), group("cpu", "ml.m5.xlarge", 2), group("spot", TYPE, 1, capacityType="Spot"))
    calls = offering_calls(plan)
    assert list(calls) == ["gpu"]
    with running_endpoint(clock=clock) as endpoint:
        answer = endpoint.client("sagemaker").search_training_plan_offerings(**calls["gpu"].params)
    offerings = offerings_of(calls, Responses({calls["gpu"].key: answer}))
    assert [(each.group, each.count, each.zones) for each in offerings] == [
        ("gpu", 4, ("us-west-2a",)),
        ("gpu", 4, ("us-west-2b",)),
    ]
    printed = document(json_document(OfferingList(stack=plan.stack, offerings=list(offerings))))
    assert [each["instanceType"] for each in printed["offerings"]] == [TYPE, TYPE]
    assert offerings[0].dates == "2027-01-15 11:30 to 2027-01-22 11:30 UTC"
    refused = FailedCall("sagemaker:SearchTrainingPlanOfferings", "ValidationException", "not for this type")
    (none,) = offerings_of(calls, Responses({calls["gpu"].key: refused}))
    assert (none.id, none.why) == ("", "ValidationException: not for this type")


PLAN_ARN = "arn:aws:sagemaker:us-west-2:123456789012:cluster/abcdefghijkl"
SUMMARY = {"ClusterName": "acme", "ClusterArn": PLAN_ARN, "ClusterStatus": "InService"}
LISTED = {CLUSTERS.key: {"ClusterSummaries": [SUMMARY]}}
DENIED = FailedCall("sagemaker:DescribeCluster", "AccessDeniedException", "not allowed")


def live(*counts):
    groups = [{"InstanceGroupName": name, "InstanceType": kind, "TargetCount": count} for name, kind, count in counts]
    return LISTED | {
        cluster(PLAN_ARN).key: {"ClusterArn": PLAN_ARN, "ClusterStatus": "InService", "InstanceGroups": groups}
    }


@pytest.mark.parametrize(
    ("given", "status", "detail"),
    [
        (live(("gpu", "ml.g5.12xlarge", 4)), "ok", "InService"),
        (live(("gpu", "ml.g5.12xlarge", 3)), "missing", "gpu has 3 instances instead of 4"),
        (live(("gpu", "ml.p5.48xlarge", 4)), "missing", "gpu has ml.p5.48xlarge instead of ml.g5.12xlarge"),
        (live(("gpu", "ml.g5.12xlarge", 5)), "changed", "gpu has 5 instances instead of 4"),
        (LISTED | {cluster(PLAN_ARN).key: DENIED}, "unknown", "exists"),
        ({CLUSTERS.key: {"ClusterSummaries": []}}, "missing", "missing"),
    ],
)
def test_an_existing_cluster_has_at_least_the_stated_groups(given, status, detail):
    data = organization(environment={"eks": {"version": "1.35", "existing": {"name": "kube"}}})
    data["environments"]["dev"]["cluster"]["existing"] = True
    (row,) = check_hyperpod(derive(typed(data), "dev"), Responses(given))
    assert (row.status, row.found) == (status, detail)


@pytest.mark.parametrize(
    ("year", "given", "statuses"),
    [
        (2028, {CLUSTERS.key: {"ClusterSummaries": []}}, []),
        (2026, {CLUSTERS.key: {"ClusterSummaries": []}}, ["missing"]),
        (2026, live(("gpu", TYPE, 4)), ["unknown"]),
    ],
    ids=["future", "new group", "deployed group"],
)
def test_the_date_of_the_next_patch_is_in_the_future(year, given, statuses):
    patch = {"patchingStrategy": "WhenIdle", "patchSchedule": {"nextPatchDate": f"{year}-01-31T02:00:00Z"}}
    plan = derive(typed(organization(groups=[group("gpu", TYPE, 4, autoPatch=patch)])), "dev")
    results = check_hyperpod(plan, Responses(given), now=datetime(2027, 1, 14, tzinfo=UTC))
    found = [each for each in results if each.what == "nextPatchDate of gpu"]
    assert [each.status for each in found] == statuses
    assert all("`2027-01-21T00:00:00Z`" in each.fix for each in found)
