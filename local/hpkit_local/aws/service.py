"""The declaration of an AWS service, and the search for all of them.

`services/` has one module per service, or a folder with one module per topic, and nothing else names the service. It
contains the declaration, `declare(Service(...))`, the operations that this package answers itself, what moto lacks or
forgets, what AWS rejects and moto doesn't, and functions for other services.
"""

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

__all__ = ["ACTIONS", "MACHINES", "Machine", "Service", "action", "declare", "service_names", "services"]

_PACKAGE = "hpkit_local.aws.services"


@dataclass(frozen=True)
class Machine:
    """One asynchronous change of one kind of object; faults refer to it by `kind`.

    A machine defines the status of an object during a change, after it, and after its failure. It also defines how many
    seconds the change takes on AWS, by the service's documentation. The latency factor scales them.
    """

    kind: str
    change: str
    running: str
    done: str
    failed: str
    seconds: float


@dataclass(frozen=True)
class Service:
    """One AWS service; `name` is that of its API model, which is also boto3's.

    rejects_with: the error code for a request that violates the API model, documented at `source`; empty if nothing
    checks it. moto: moto's name of the service; empty if this package answers everything. in_moto_globally: moto has
    one backend for all regions. signs_as: the name in signatures, if it differs. scope: a pattern of the operations
    that matter here, for an API with many others. faults: the service's own faults, with their meanings.
    """

    name: str
    rejects_with: str = ""
    source: str = ""
    moto: str = ""
    in_moto_globally: bool = False
    signs_as: str = ""
    scope: str = ""
    machines: tuple[Machine, ...] = ()
    faults: Mapping[str, str] = field(default_factory=dict)


MACHINES: dict[str, Machine] = {}
_declared: dict[str, Service] = {}

Action = Callable[..., None]
ACTIONS: dict[str, Action] = {}


def declare(service: Service) -> None:
    """Add a service and its status machines."""
    _declared[service.name] = service
    MACHINES.update({f"{machine.kind}.{machine.change}": machine for machine in service.machines})


def action(name: str) -> Callable[[Action], Action]:
    """Register a timer's function: `f(ctx, **args)`; args are stored as JSON."""

    def register(function: Action) -> Action:
        ACTIONS[name] = function
        return function

    return register


@cache
def services() -> Mapping[str, Service]:
    """Return every service by name, with its operations, rules and changes of moto registered."""
    for module in pkgutil.walk_packages(_path(), f"{_PACKAGE}."):
        importlib.import_module(module.name)
    return _declared


def service_names() -> list[str]:
    """Return the names of all services, without loading them."""
    return sorted(module.name for module in pkgutil.iter_modules(_path()))


def _path() -> list[str]:
    return [str(Path(__file__).with_name("services"))]
