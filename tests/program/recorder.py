"""What the example stacks register, and organizations that tests make by hand."""

from functools import cache
from pathlib import Path

from hpkit.plan.derive import derive
from hpkit.project import load
from hpkit.recording import record
from tests import builders

STACKS = Path(__file__).parents[2] / "stacks"
ACCOUNT = "123456789012"


@cache
def recorded(stack):
    """Return what an example stack registers."""
    organization, _, environment = stack.rpartition("-")
    parsed = load(STACKS / f"{organization}.yaml").parsed
    return record(derive(parsed.organization, environment))


def recorded_from(data, environment="dev"):
    """Return what an organization registers that a test made by hand."""
    return record(derive(builders.typed(data), environment))
