"""`hpkit job check --live` against the real Kueue: random tasks start and end, and each forecast comes true."""

import random
from collections import Counter
from pathlib import Path

import pytest
import yaml
from kubernetes.client import ApiClient

from hpkit.cli.common.inputs import choose_stack
from hpkit.cluster.jobs.forecast import foresee_all, tasks_of
from hpkit.cluster.jobs.new import resources_of
from hpkit.cluster.live.kubernetes import Kubernetes
from hpkit.cluster.live.model import Observed
from hpkit.cluster.live.read import objects_of
from hpkit.kueue.events import Admitted, Preempted
from hpkit.kueue.model import PodSet, Workload, per_unit
from hpkit.kueue.organization import fair_sharing_of
from hpkit.plan.capacity import quantity
from hpkit_local.cloud import rehearsal, team_objects
from hpkit_local.kubernetes.client import configuration_of
from hpkit_local.rehearsal.jobs import job_of
from hpkit_whatif.rehearse import policy_request, quota_requests
from tests.cluster.live.builders import NOW

pytestmark = [pytest.mark.cluster, pytest.mark.nightly, pytest.mark.timeout(1800)]

STEPS = 30


def configuration(instance):
    """Return how to reach an instance's API server as its administrator."""
    path = Path(instance.kubeconfig)
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    return configuration_of(document, folder=path.parent, certificates=path.parent / "pki")


class World:
    """A stack's queues on a real Kueue, tasks by name, and what is read of them."""

    def __init__(self, plan, session, client, seed):
        self.plan, self.scheduler, self.client = plan, session.scheduler, client
        self.random = random.Random(seed)  # noqa: S311 - equal cases each time
        self.classes = {each.weight: f"{each.name}-priority" for each in plan.policy.priority_classes}
        self.running, self.waiting, self.never, self.fates = {}, {}, set(), []

    def observe(self):
        return Observed(time=NOW, **objects_of(Kubernetes(self.client), []))

    def settle(self):
        """Wait until Kueue is idle, and return its decisions."""
        changes = self.scheduler.settle()
        for each in changes:
            here, there = (self.waiting, self.running) if isinstance(each, Admitted) else (self.running, self.waiting)
            there[each.name] = here.pop(each.name)
        return changes

    def end(self, name):
        self.scheduler.finish(name)
        del self.running[name]
        return self.settle()

    def submit(self, number):
        """Submit a random task, and return what was foretold and what happened, as far as they must be the same."""
        team = self.random.choice([each for each in self.plan.teams if each.quota_resources])
        priority = self.random.choice([*self.classes] or [0])
        instance_type = self.random.choice(sorted({flavor for flavor, _ in self.quotas(team)}))
        amounts = resources_of(instance_type)["requests"]
        per_pod = {name: int(quantity(str(text)) * per_unit(name)) for name, text in amounts.items()}
        per_pod = {name: amount for name, amount in per_pod.items() if (instance_type, name) in self.quotas(team)}
        pods = PodSet("main", self.random.randint(1, 4), per_pod, flavors=frozenset({instance_type}))
        workload = Workload(f"t{number}", team.cluster_queue, (pods,), priority=priority)
        seen = self.observe()
        document = job_of(workload, number, priority_class=self.classes.get(priority))
        (task,) = tasks_of([document], self.plan, seen)
        (forecast,) = foresee_all(seen, [task], fair_sharing=fair_sharing_of(self.plan))
        self.fates.append(forecast.fate)
        self.waiting[workload.name] = workload
        self.scheduler.submit(workload)
        changes = self.settle()
        if forecast.fate == "never":
            self.never.add(workload.name)
        runs = workload.name in self.running
        victims = [each for each in changes if isinstance(each, Preempted) and each.by == workload.name]
        # Kueue writes a queue's own usage a moment later.
        used = Counter()
        for each in self.observe().tasks:
            if each.queue == team.cluster_queue:
                used.update(each.holds)
        quotas = self.quotas(team)
        borrows = runs and any(amount > quotas[key].nominal for key, amount in used.items() if key[1] in per_pod)
        foretold = (forecast.fate in ("now", "borrowing"), forecast.fate == "borrowing", len(forecast.preempts))
        return foretold, (runs, borrows, len(victims)), f"{workload}: {forecast}, {changes}"

    def quotas(self, team):
        return next(each for each in self.observe().queues if each.name == team.cluster_queue).quotas


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("stack", ["handson-dev", "startup-dev", "bestpractice-prod"])
def test_each_forecast_comes_true(stack, seed, clouds):
    plan, instance = choose_stack(stack), clouds.empty()
    guaranteed = {kind: capacity.guaranteed for kind, capacity in plan.capacity.items()}
    objects = team_objects(quota_requests(plan), policy_request(plan), guaranteed)
    classes = {each.weight: f"{each.name}-priority" for each in plan.policy.priority_classes}
    with (
        rehearsal(instance, objects, (), classes=classes) as session,
        ApiClient(configuration(instance)) as client,
    ):
        world = World(plan, session, client, seed)
        for number in range(STEPS):
            if world.running and world.random.random() < 0.4:
                world.end(world.random.choice(sorted(world.running)))
            foretold, happened, details = world.submit(number)
            assert foretold == happened, details
        assert {"now", "borrowing", "waits"} <= {*world.fates}, world.fates
        while world.running:
            world.end(min(world.running))
        # A task that waits runs when others have ended, and one that never runs doesn't even then.
        assert world.waiting.keys() == world.never
