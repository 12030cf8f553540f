"""A scenario on a real scheduler: what it is asked, its clock, and how what it does is held against the simulator."""

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
