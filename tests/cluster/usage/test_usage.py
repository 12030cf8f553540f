"""Usage and its cost: every instance-hour is counted once, for whoever used or reserved it, and none is lost."""

import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hpkit.cluster.live.model import ClusterNode, Platform
from hpkit.cluster.usage.account import account
from hpkit.cluster.usage.history import (
    Admissions,
    History,
    NodeSpan,
    QuotaSpan,
    TaskSpan,
    losses,
    merged,
    observed_history,
    parse_history,
    written,
)
from hpkit.cluster.usage.report import GROUPINGS, usage_report
from hpkit.errors import InputError
from tests.cluster.live.builders import GPU, KIND, NOW, observed, queue, workload

HOUR = 3600.0
CPU = "ml.m5.4xlarge"
PRICES = {KIND: Decimal("7.09"), CPU: Decimal("0.922")}


def report(history, *, by="team", begin=0.0, end=10 * HOUR, price=PRICES.get):
    return usage_report(account(history, begin=begin, end=end), by=by, begin=begin, end=end, price=price)


def rows(usage):
    return {row.name: row for row in usage.rows}


def history(**parts):
    """Return ten hours of four nodes: john has a quota of two, smith of one."""
    quotas = (QuotaSpan("john", KIND, 2, 0), QuotaSpan("smith", KIND, 1, 0))
    return History(
        **{"read": (0.0,), "nodes": tuple(NodeSpan(f"i-{n}", KIND, 0) for n in range(4)), "quotas": quotas, **parts}
    )


def test_hours_are_own_borrowed_lent_idle_or_reserved_by_nobody():
    # smith has one instance of its own for ten hours, and borrows two for five: there are two idle ones of john, and
    # one that no quota has; two are borrowed from john.
    more = TaskSpan("b", "smith", "", "Job/b", KIND, 1, 5 * HOUR)
    usage = report(history(tasks=(*usage_tasks(), more)))
    found = rows(usage)
    smith, john, nobody = found["smith"], found["john"], found["(unallocated)"]
    assert (smith.used, smith.borrowed, smith.idle) == (20, 10, 0)
    assert (john.used, john.lent, john.idle) == (0, 10, 10)
    assert nobody.unallocated == 10
    assert (usage.total.hours, usage.total.cost) == (40, Decimal("283.60"))
    assert rows(report(history(tasks=usage_tasks()), by="project"))["p"].used == 15


def usage_tasks():
    return (TaskSpan("a", "smith", "p", "Job/a", KIND, 3, 0, 5 * HOUR),)


def test_tasks_without_nodes_yet_are_said_and_not_counted():
    late = history(nodes=(NodeSpan("i-0", KIND, 5 * HOUR),), tasks=(TaskSpan("a", "john", "", "Job/a", KIND, 1, 0),))
    usage = report(late)
    assert rows(usage)["john"].used == usage.total.hours == 5
    assert any("reserved 5.0 instance-hours" in note for note in usage.notes)


def test_tasks_that_share_too_few_nodes_leave_none_free():
    # 7 / 25 of 25 is more than 7 in floating point.
    nodes = tuple(NodeSpan(f"i-{n}", KIND, 0) for n in range(7))
    task = TaskSpan("a", "john", "", "Job/a", KIND, 25, 0)
    assert report(History((0.0,), nodes, (task,))).total.hours == pytest.approx(70)


def test_tasks_of_parts_of_instances_leave_no_hours_below_zero():
    # Rounding once left unallocated hours just below zero, which a table shows as -0.00.
    task = TaskSpan("a", "smith", "", "Job/a", KIND, round(12 / 7, 9), 0)
    one = history(nodes=(NodeSpan("i-0", KIND, 0),), tasks=(task,), quotas=(QuotaSpan("smith", KIND, 2, 0),))
    (hours,) = account(one, begin=0, end=10 * HOUR)
    assert (hours.total, hours.unallocated) == (10, 0)


def test_a_team_that_a_later_reading_saw_first_had_no_quota_before():
    first = history(quotas=(QuotaSpan("john", KIND, 2, 0),))
    later = history(
        read=(6 * HOUR,), quotas=(QuotaSpan("john", KIND, 2, 6 * HOUR), QuotaSpan("ann", KIND, 1, 6 * HOUR))
    )
    found = rows(report(merged(first, later)))
    assert (found["john"].idle, found["ann"].idle, found["(unallocated)"].unallocated) == (20, 4, 16)


def test_a_type_without_a_price_is_said_and_never_free():
    usage = report(history(), price=lambda _: None)
    assert (usage.total.cost, usage.total.unpriced) == (0, 40)
    assert any("no price of ml.g5.12xlarge is known, so the cost lacks its 40.0" in note for note in usage.notes)


TEAMS = st.sampled_from(["john", "smith", "ann"])
TYPES = st.sampled_from([KIND, CPU])
TIMES = st.integers(-20, 60).map(lambda quarter: quarter * HOUR / 4)
PARTS = st.integers(0, 40).map(lambda eighths: eighths / 8)
ENDS = st.none() | TIMES
HISTORIES = st.builds(
    History,
    read=st.just((0.0,)),
    nodes=st.lists(st.builds(NodeSpan, st.uuids().map(str), TYPES, TIMES, ENDS), max_size=8).map(tuple),
    tasks=st.lists(
        st.builds(TaskSpan, st.uuids().map(str), TEAMS, TEAMS, TEAMS, TYPES, PARTS, TIMES, ENDS), max_size=12
    ).map(tuple),
    quotas=st.lists(st.builds(QuotaSpan, TEAMS, TYPES, PARTS, TIMES), max_size=8).map(
        lambda spans: tuple(sorted(spans, key=lambda span: span.begin))
    ),
)


@given(HISTORIES, st.sampled_from(sorted(GROUPINGS)))
def test_rows_sum_to_the_cluster_s_total_to_the_cent(random, by):
    usage = report(random, by=by)
    existed = {
        kind: sum(
            max(0.0, min(10 * HOUR, 10 * HOUR if node.end is None else node.end) - max(0.0, node.begin)) / HOUR
            for node in random.nodes
            if node.instance_type == kind
        )
        for kind in PRICES
    }
    assert usage.total.hours == pytest.approx(sum(existed.values()), abs=1e-6)
    assert abs(usage.total.cost - sum(Decimal(existed[kind]) * PRICES[kind] for kind in PRICES)) <= Decimal("0.01")
    assert sum((row.cost for row in usage.rows), Decimal(0)) == usage.total.cost
    for row in usage.rows:
        parts = (row.used, row.borrowed or 0, row.lent or 0, row.idle or 0, row.unallocated or 0, row.hours, row.cost)
        assert all(part >= -1e-9 for part in parts), row
    assert usage.total.used <= sum(span.instances for span in random.tasks) * 10 + 1e-6


def history_of(seen):
    """Return what a cluster tells; its tasks are documents, as they are passed on."""
    admissions = Admissions()
    for document in seen.tasks:
        admissions.add(document)
    return observed_history(seen, admissions)


def platform(*nodes):
    return Platform("handson", "InService", "", (), nodes, None, (), ())


def node(name, hours):
    return ClusterNode(name, "gpu", KIND, "Running", launched=NOW - timedelta(hours=hours))


def test_what_the_cluster_forgets_stays_in_a_history_until_it_was_last_seen():
    first = observed(
        platform=platform(node("i-0", 3), node("i-1", 2)),
        tasks=(workload("john", "train", 2, runs=True), workload("john", "waits", 2)),
        queues=(queue("john", 8),),
    )
    seen = history_of(first)
    assert [(span.job, span.instances, span.end) for span in seen.tasks] == [("Job/train", 2, None)]
    assert [(span.team, span.instances) for span in seen.quotas] == [("john", 2)]
    parts = {"platform": platform(node("i-0", 3)), "queues": (queue("john", 4),)}
    later = replace(observed(**parts), time=NOW + timedelta(hours=1))
    both = merged(seen, history_of(later))
    (train,) = both.tasks
    assert train.end == NOW.timestamp()
    assert {span.instance_id: span.end for span in both.nodes} == {"i-0": None, "i-1": NOW.timestamp()}
    assert [span.instances for span in both.quotas] == [2, 1]
    (note,) = losses(both, NOW.timestamp())
    assert note.startswith("1 node and 1 admission ended between two readings")
    assert not [*losses(both, NOW.timestamp() + 1)]
    lines = list(written(both, stack="handson-dev"))
    assert parse_history(lines, stack="handson-dev", file="usage.jsonl") == replace(both, notes=())
    for refused, stack, reason in (
        (lines, "acme-dev", "usage.jsonl:1:1 is the history of handson-dev, not of acme-dev"),
        (lines[:-1], "handson-dev", f"usage.jsonl is cut off: it has {len(lines) - 1} lines"),
        ([], "handson-dev", "usage.jsonl is cut off: it has 0 lines"),
    ):
        with pytest.raises(InputError, match=re.escape(reason)):
            parse_history(refused, stack=stack, file="usage.jsonl")
    assert merged(both, history_of(later)).tasks == both.tasks


def test_use_of_a_type_that_can_t_be_measured_is_said_also_when_its_workload_is_gone():
    train = workload("john", "train", 1, runs=True)
    other = {"name": "other", "flavors": {GPU: "ml.new.large"}, "resourceUsage": {GPU: "8"}}
    train["status"]["admission"]["podSetAssignments"].append(other)
    seen = observed(platform=platform(node("i-0", 3)), tasks=(train,))
    later = merged(history_of(seen), history_of(observed(platform=platform(node("i-0", 3)))))
    for known in (history_of(seen), later):
        note = next(losses(known, 0))
        assert note.startswith("1 Workload, such as Job/train: their use of a type counts as 0")
        ((_, used),) = account(known, begin=NOW.timestamp() - HOUR, end=NOW.timestamp())[0].tasks
        assert used > 0


@pytest.mark.parametrize("line", ["{", "[]", '{"node": {"instance_id": 1}}', '{"read": "x"}', '{"other": 1}', "3"])
def test_a_file_that_is_no_history_is_refused_with_its_line(line):
    with pytest.raises(InputError, match=r"^usage\.jsonl:2:1 isn't a line of a usage history"):
        parse_history(['{"history": {"stack": "a", "lines": 1}}', line], stack="a", file="usage.jsonl")
