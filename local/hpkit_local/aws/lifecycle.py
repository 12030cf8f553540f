"""Status machines as data, and the timers that move them.

A machine says which status an object shows while a change runs, which one when it is done or has failed,
and how long that takes on AWS. Durations are those of the service's documentation ("Creating a SageMaker
HyperPod cluster with EKS": 10–25 minutes; "Continuous provisioning"; EKS user guide), scaled by the
latency factor.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["ACTIONS", "MACHINES", "Machine", "action"]


@dataclass(frozen=True)
class Machine:
    """One asynchronous change of one kind of object; `kind` is what faults name it by."""

    kind: str
    change: str
    running: str
    done: str
    failed: str
    seconds: float


MACHINES = {
    f"{machine.kind}.{machine.change}": machine
    for machine in (
        Machine("cluster", "create", "Creating", "InService", "Failed", 1200),
        Machine("cluster", "update", "Updating", "InService", "Failed", 120),
        Machine("cluster", "software", "SystemUpdating", "InService", "Failed", 900),
        Machine("cluster", "delete", "Deleting", "", "Failed", 600),
        Machine("group", "create", "Creating", "InService", "Failed", 120),
        Machine("autoscaling", "create", "Creating", "InService", "Failed", 180),
        Machine("autoscaling", "delete", "Deleting", "", "Failed", 60),
        Machine("node", "create", "Pending", "Running", "Failure", 240),
        Machine("node", "deep-health-check", "DeepHealthCheckInProgress", "Running", "Failure", 5400),
        Machine("node", "reboot", "Pending", "Running", "Failure", 180),
        Machine("node", "delete", "ShuttingDown", "", "Failure", 120),
        Machine("quota", "create", "Creating", "Created", "CreateFailed", 20),
        Machine("quota", "update", "Updating", "Updated", "UpdateFailed", 15),
        Machine("quota", "delete", "Deleting", "", "DeleteFailed", 20),
        Machine("policy", "create", "Creating", "Created", "CreateFailed", 20),
        Machine("policy", "update", "Updating", "Updated", "UpdateFailed", 15),
        Machine("policy", "delete", "Deleting", "", "DeleteFailed", 20),
        Machine("eks", "create", "CREATING", "ACTIVE", "FAILED", 720),
        Machine("eks", "update", "UPDATING", "ACTIVE", "ACTIVE", 120),
        Machine("eks", "delete", "DELETING", "", "FAILED", 180),
        Machine("addon", "create", "CREATING", "ACTIVE", "CREATE_FAILED", 60),
        Machine("addon", "update", "UPDATING", "ACTIVE", "UPDATE_FAILED", 45),
        Machine("addon", "delete", "DELETING", "", "DELETE_FAILED", 30),
        Machine("grafana", "create", "CREATING", "ACTIVE", "CREATION_FAILED", 180),
        Machine("grafana", "update", "UPDATING", "ACTIVE", "UPDATE_FAILED", 30),
        Machine("grafana", "delete", "DELETING", "", "DELETION_FAILED", 60),
    )
}

Action = Callable[..., None]
ACTIONS: dict[str, Action] = {}


def action(name: str) -> Callable[[Action], Action]:
    """Register what a timer of that name does: `f(ctx, **args)`; args are stored as JSON."""

    def register(function: Action) -> Action:
        ACTIONS[name] = function
        return function

    return register
