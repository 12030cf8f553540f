"""Every example stack, on the real engine and the local cloud: up, no change, no drift, and nothing left at last."""

import json
import os

import pytest

from hpkit.errors import ToolError
from tests.program.cloud import NODE_CLASSES, NODE_POOLS, ROOT, Live, Program
from tests.program.states import FOLDER, text_of
from tests.running import eventually

pytestmark = [pytest.mark.engine, pytest.mark.cluster, pytest.mark.timeout(1800)]

NAMES = sorted(file.stem.partition(".")[2] for file in (ROOT / "stacks").glob("Pulumi.*.yaml"))


def environment_of(repository, stack):
    """Return the organization and the part of it that the stack is."""
    organization, _, environment = stack.rpartition("-")
    data = repository.read(organization)
    return organization, data, data["environments"][environment]


# One is enough each time: it is protected, and places pods by topology. handson-dev, autoscale-dev and enterprise-prod
# are deployed by other tests anyway.
ALWAYS = "topology-prod"


@pytest.mark.parametrize(
    "stack", [pytest.param(name, marks=() if name == ALWAYS else pytest.mark.nightly) for name in NAMES]
)
def test_a_stack_goes_up_stays_as_it_is_and_leaves_nothing(stack, instance, repository):
    organization, data, environment = environment_of(repository, stack)
    live = Live(instance, environment["region"])
    before = live.everything()
    program = Program(instance, stack, root=repository.folder)
    program.up()
    assert set(live.quotas()) >= set(environment["governance"]["allocations"])
    if os.environ.get("HPKIT_WRITE_STATES"):
        export = json.loads(program.read("stack", "export"))
        (FOLDER / f"{stack}.json").write_text(text_of(export), encoding="utf-8")
    again = program.up("--json")
    assert_unchanged(again.stdout)
    assert_unchanged(program.run("refresh", "--yes", "--skip-preview", "--json").stdout)
    if environment.get("autoscaling"):
        assert_autoscaling_is_ready(live, environment["autoscaling"])
    if environment.get("protect"):
        with pytest.raises(ToolError, match="set `protect: false` in its environment"):
            program.destroy()
        assert live.cluster()["ClusterStatus"] == "InService"
        environment["protect"] = False
        repository.write(organization, data)
        program.up()
    program.destroy()
    assert program.resources() == []
    eventually(lambda: differences(before, live.everything()) == {}, lambda: differences(before, live.everything()))


def assert_unchanged(events):
    """Fail unless Pulumi, told to write events, counted nothing but resources that stay the same."""
    lines = [json.loads(line) for line in events.splitlines() if line.startswith("{")]
    (counts,) = [line["summaryEvent"]["resourceChanges"] for line in lines if "summaryEvent" in line]
    steps = [line["resOutputsEvent"]["metadata"] for line in lines if "resOutputsEvent" in line]
    changed = [step for step in steps if step["op"] not in ("same", "read", "refresh") or step.get("detailedDiff")]
    assert counts.keys() <= {"same", "read"}, (counts, changed)


def assert_autoscaling_is_ready(live, wanted):
    for folder, names in ((NODE_POOLS, wanted["nodePools"]), (NODE_CLASSES, wanted["nodeClasses"])):
        states = {each["metadata"]["name"]: ready(each) for each in live.api.items(folder)}
        assert states == {each["name"]: "True" for each in names}
    (node_class,) = live.api.items(NODE_CLASSES)
    assert {group["name"] for group in node_class["status"]["instanceGroups"]} == {"burst-a", "burst-b"}


def ready(found):
    return next(each["status"] for each in found["status"]["conditions"] if each["type"] == "Ready")


def differences(before, after):
    return {
        kind: sorted(set(before.get(kind, [])) ^ set(after.get(kind, [])))
        for kind in {**before, **after}
        if before.get(kind) != after.get(kind)
    }
