"""The resources that the example stacks and organizations of tests register."""

import pickle
from functools import cache, lru_cache
from pathlib import Path

import pulumi

from hpkit.plan.derive import derive
from hpkit.program.recording import record
from hpkit.project import load
from tests import builders

STACKS = Path(__file__).parents[2] / "stacks"
ACCOUNT = "123456789012"


@cache
def recorded(stack):
    """Return the resources that an example stack registers."""
    organization, _, environment = stack.rpartition("-")
    parsed = load(STACKS / f"{organization}.yaml").parsed
    return recording_of(derive(parsed.organization, environment))


def recorded_from(data, environment="dev"):
    """Return the resources that a test's organization registers."""
    return recording_of(derive(builders.typed(data), environment))


def recording_of(plan, answers=None, **more):
    """Return `record` of the plan; recent recordings are cached, because tests often change one thing of a plan."""
    return _recording_of(pickle.dumps((plan, answers, more)), pulumi.runtime.is_dry_run())


@lru_cache(maxsize=64)
def _recording_of(asked, _is_dry_run):
    plan, answers, more = pickle.loads(asked)  # noqa: S301 - it was made above
    return record(plan, answers, **more)
