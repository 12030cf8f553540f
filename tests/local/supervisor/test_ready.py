"""A start waits as long as parts keep becoming healthy, and reports what it waits for."""

from types import SimpleNamespace

import pytest

from hpkit.errors import ToolError
from hpkit_local.processes.process import Identity
from hpkit_local.supervisor import control
from hpkit_local.supervisor.instance import Instance, ServiceState, State

PARTS = ("etcd", "kube-apiserver", "kueue", "kwok", "aws")


@pytest.fixture
def clock(monkeypatch):
    """A clock that advances by one second per sleep."""
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    clock.sleep = lambda _: setattr(clock, "now", clock.now + 1)
    monkeypatch.setattr(control, "time", clock)
    return clock


def awaited(monkeypatch, tmp_path, clock, every):
    """Wait for parts of which one becomes healthy at a fixed interval; return the output."""

    def now(_):
        healthy = int(clock.now // every)
        parts = {name: ServiceState("healthy" if index < healthy else "starting") for index, name in enumerate(PARTS)}
        return State(Identity(1, ""), parts)

    messages = []
    instance = Instance(tmp_path)
    monkeypatch.setattr(control, "running", now)
    monkeypatch.setattr(Instance, "state", now)
    return control._await_ready(instance, messages.append, lambda: True), messages


def test_a_start_goes_on_while_parts_become_healthy_however_long_all_take(monkeypatch, tmp_path, clock):
    state, messages = awaited(monkeypatch, tmp_path, clock, every=250)
    assert state.ready
    assert clock.now == 5 * 250
    assert [line for line in messages if line.endswith("healthy")] == [f"{name}: healthy" for name in PARTS]
    assert "etcd, kube-apiserver, kueue, kwok, aws: still starting, 30 s after the last one" in messages


def test_a_part_that_never_becomes_healthy_ends_it_with_its_log(monkeypatch, tmp_path, clock):
    with pytest.raises(ToolError, match=r"no part became healthy within 300 s\. etcd: .*whole log"):
        awaited(monkeypatch, tmp_path, clock, every=100_000)


def test_a_service_that_ends_again_and_again_is_a_problem_unless_it_was_healthy(monkeypatch, tmp_path):
    states = iter(("starting", "healthy", "waiting"))
    parts = {"kueue": ServiceState("waiting", restarts=4, problem="ended with 1"), "etcd": ServiceState("healthy")}

    def now(_):
        return State(Identity(1, ""), {**parts, "etcd": ServiceState(next(states), restarts=4)})

    monkeypatch.setattr(control, "running", now)
    starting = control.Starting(Instance(tmp_path))
    assert starting.problem().startswith("kueue: ended with 1, 4 times. ")
    del parts["kueue"]
    assert starting.problem() == ""
    assert starting.problem() == ""
