"""IAM actions that can't be limited to resources, so that their resource is always `*`."""

import json
from functools import cache
from pathlib import Path
from typing import Final

__all__ = ["takes_resource"]

_TABLE: Final = Path(__file__).with_name("actions.json")


# Its resource is optional, so a policy with a resource might not allow it.
_OPTIONAL: Final = frozenset({"ec2:deletenetworkinterfacepermission"})


@cache
def _without_resource() -> frozenset[str]:
    data = json.loads(_TABLE.read_text(encoding="utf-8"))
    return frozenset(f"{service}:{action}".lower() for service, names in data["actions"].items() for action in names)


def takes_resource(action: str) -> bool:
    """Return whether an action can be limited to resources; unknown actions are assumed to be.

    The table covers the services that a HyperPod platform uses. IAM ignores the case of actions.
    """
    return action.lower() not in _without_resource() | _OPTIONAL
