"""The simulator compared with the real Kueue: each random organization with its workloads runs in both.

If Kueue's result is random, the simulator must produce one of the possible results. Random are: which of two equal
heads of different queues comes first, because both are in Go maps; which of several insufficient resources is named as
the reason for waiting; and the state in which endless preemption is stopped.
"""

import json
import os
from pathlib import Path

import pytest

from tests.running import tools_required
from tests.whatif.admission import neutral, oracle
from tests.whatif.admission.cases import drawn

KEPT = Path(__file__).with_name("kept")
NIGHTLY = os.environ.get("HPKIT_NIGHTLY") == "1"
COUNTS = (
    {"cycle": 1500, "scenario": 500, "topology": 300, "gang": 100}
    if NIGHTLY
    else {"cycle": 40, "scenario": 10, "topology": 8, "gang": 10}
)
SEEDS = (1, 2) if NIGHTLY else (1,)
AGAIN = 24
UNSURE = {"WaitingForQuota", "ExceedsMaxQuota"}


def expected(case, answer):
    """Return a case with Kueue's result as the expected result."""
    if case["kind"] == "scenario":
        steps = [
            {
                **step,
                "expect": {
                    "admitted": got["admitted"],
                    "pending_names": [each["name"] for each in got["pending"]],
                    "preempted": got["preempted"],
                    "share": got["share"],
                    **({"places": _places(got)} if "topology" in case else {}),
                    **({"backoffs": got["backoffs"]} if "wait_for_pods_ready" in case else {}),
                },
            }
            for step, got in zip(case["steps"], answer, strict=True)
        ]
        return {**case, "steps": steps}
    pending = [{**each, "reason": each["reason"] or None} for each in answer["pending"]]
    return {**case, "expect": {**answer, "pending": pending}}


def _places(got):
    """Return how many pods each workload's pod sets have per place."""
    return {name: {each["name"]: each.get("domains", {}) for each in sets} for name, sets in got["pod_sets"].items()}


def without_unsure_reasons(state):
    """Return an outcome in which the two reasons for insufficient quota are the same."""
    if isinstance(state, list):
        return state
    pending = [
        {**pending, "reason": "WaitingForQuota" if pending["reason"] in UNSURE else pending["reason"]}
        for pending in state["pending"]
    ]
    return {**state, "pending": pending}


def differs(case, answer):
    """Return how the simulator differs from one of Kueue's results."""
    state = neutral.run(case)
    wanted = expected(case, answer)
    if case["kind"] == "scenario":
        ends = next((n for n, got in enumerate(answer) if not got["rests"] or state[n]["flapping"]), len(answer))
        wanted = {**wanted, "steps": wanted["steps"][:ends]}
        return neutral.differences(wanted, state[:ends])
    wanted = {**wanted, "expect": without_unsure_reasons(wanted["expect"])}
    return neutral.differences(wanted, without_unsure_reasons(state))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", COUNTS)
@pytest.mark.parametrize("number", SEEDS)
def test_random_organizations_end_as_in_kueue(kind, number):
    with tools_required():
        oracle.binary()
    given_cases = drawn(kind, COUNTS[kind], number)
    answers = oracle.ask(given_cases)
    suspects = [case for case, (answer, *_) in zip(given_cases, answers, strict=True) if differs(case, answer)]
    if not suspects:
        return
    wrong = []
    for case, all_answers in zip(suspects, oracle.ask(suspects, times=AGAIN), strict=True):
        lines = [differs(case, answer) for answer in all_answers]
        if all(lines):
            wrong.append((expected(case, all_answers[0]), lines[0]))
    if wrong:
        KEPT.joinpath(f"failed-{kind}-{number}.json").write_text(json.dumps([case for case, _ in wrong]))
    assert not wrong, "\n".join(f"{case['id']}: {line}" for case, lines in wrong for line in lines)


@pytest.mark.parametrize("file", sorted(KEPT.glob("*.json")), ids=lambda file: file.stem)
def test_what_kueue_once_did_the_simulator_does(file):
    found = [
        (case["id"], neutral.differences(case, neutral.run(case)))
        for case in json.loads(file.read_text(encoding="utf-8"))
    ]
    assert found, "a file without cases proves nothing"
    assert [entry for entry in found if entry[1]] == []
