"""What the example stacks register, and organizations that tests make by hand."""

import json
from functools import cache, lru_cache
from pathlib import Path

from hpkit.plan.derive import derive
from hpkit.program.recording import record
from hpkit.project import load
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
    """Return what an organization registers that a test made by hand; of the last ones it is known."""
    return _recorded_from(json.dumps(data), environment)


# Most tests change one thing of the same organization.
@lru_cache(maxsize=8)
def _recorded_from(text, environment):
    return record(derive(builders.typed(json.loads(text)), environment))
