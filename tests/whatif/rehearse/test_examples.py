"""The examples' scenarios on the real Kueue: the results match the simulator and the files' headers."""

from pathlib import Path

import pytest

from hpkit.cli.common.inputs import choose_stack
from hpkit_whatif.cli.rehearse import Rehearsal
from hpkit_whatif.scenario import open_scenario

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

FOLDER = Path(__file__).parents[3] / "stacks" / "scenarios"


def tell(report):
    """Return for each task its admission time, its wait, and its preemptor."""
    return {
        task.name: (task.admitted, task.wait, [(each.by, each.reason) for each in task.evictions])
        for task in report.tasks
    }


def of(stem, stack, instance):
    rehearsal = Rehearsal.from_source(choose_stack(stack), open_scenario(str(FOLDER / f"{stem}.yaml")))
    report, differences = rehearsal.on(instance)
    assert differences == []
    return tell(report)


def test_john_gets_back_what_smith_borrowed(clouds):
    told = of("handson", "handson-dev", clouds.empty())
    assert told["john-next"] == (1800.0, 0.0, [])
    assert told["smith-job"][2] == [("john-next", "InCohortReclamation")]


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("stem", "stack"),
    [
        ("autoscale", "autoscale-dev"),
        ("bestpractice", "bestpractice-prod"),
        ("enterprise", "enterprise-prod"),
        ("startup", "startup-dev"),
        ("topology", "topology-prod"),
    ],
)
def test_so_it_is_with_every_example(stem, stack, clouds):
    told = of(stem, stack, clouds.empty())
    assert any(admitted is not None for admitted, _, _ in told.values())
