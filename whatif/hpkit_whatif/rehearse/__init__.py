"""Runs a scenario on a real scheduler: its requests, its clock, and the comparison with the simulator."""

from hpkit_whatif.rehearse.clock import Scheduler, apart, run
from hpkit_whatif.rehearse.differences import event_differences
from hpkit_whatif.rehearse.objects import object_differences
from hpkit_whatif.rehearse.requests import policy_request, quota_requests

__all__ = [
    "Scheduler",
    "apart",
    "event_differences",
    "object_differences",
    "policy_request",
    "quota_requests",
    "run",
]
