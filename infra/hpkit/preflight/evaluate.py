"""All checks of a stack, in the order of their importance to users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, get_args

from hpkit.clients.calls import Responses
from hpkit.config.models.organization import Organization
from hpkit.preflight.account import check_account, check_roles
from hpkit.preflight.admission import check_admission
from hpkit.preflight.eks import check_eks
from hpkit.preflight.given import check_given
from hpkit.preflight.hyperpod import check_hyperpod
from hpkit.preflight.model import CheckResult, Status
from hpkit.preflight.names import check_names
from hpkit.preflight.network import check_endpoints, check_network, check_zones
from hpkit.preflight.observability import check_observability
from hpkit.preflight.quotas import check_quotas
from hpkit.preflight.reach import check_reach
from hpkit.preflight.training_plans import check_training_plans

if TYPE_CHECKING:
    from hpkit.program.recording import Recording

__all__ = ["count_by_status", "evaluate"]


def evaluate(
    organization: Organization, recording: Recording, responses: Responses, *, on_local_cloud: bool = False
) -> tuple[CheckResult, ...]:
    """Return the results of all checks: whether the account has what the stack needs.

    recording: of the program, for the plan's own stack; registered resources are counted in it.
    """
    plan = recording.plan
    return (
        *check_account(plan, responses),
        *check_quotas(recording, responses),
        *check_zones(plan, responses),
        *check_endpoints(recording, responses),
        *check_network(organization, plan, responses),
        *check_eks(plan, responses),
        *check_reach(plan, responses),
        *check_admission(recording, responses),
        *check_hyperpod(plan, responses),
        *check_training_plans(plan, responses),
        *check_observability(plan, responses),
        *check_roles(plan, responses, on_local_cloud=on_local_cloud),
        *check_given(plan, responses),
        *check_names(recording, responses),
    )


def count_by_status(results: Iterable[CheckResult]) -> dict[str, int]:
    """Return the number of results per status."""
    counts = Counter(each.status for each in results)
    return {status: counts[status] for status in get_args(Status)}
