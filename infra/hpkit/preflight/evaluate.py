"""All checks of a plan, in the order in which people ask."""

from collections import Counter
from collections.abc import Iterable

from hpkit.config.organization import Organization
from hpkit.plan.model import Plan
from hpkit.preflight.account import check_account, check_roles
from hpkit.preflight.eks import check_eks
from hpkit.preflight.hyperpod import check_hyperpod
from hpkit.preflight.model import CheckResult, Responses
from hpkit.preflight.network import check_network, check_zones
from hpkit.preflight.quotas import check_quotas

__all__ = ["count_by_status", "evaluate"]


def evaluate(organization: Organization, plan: Plan, responses: Responses) -> tuple[CheckResult, ...]:
    """Return the results of all checks: whether the account has what the plan needs."""
    return (
        *check_account(plan, responses),
        *check_quotas(plan, responses),
        *check_zones(plan, responses),
        *check_network(organization, plan, responses),
        *check_eks(plan, responses),
        *check_hyperpod(plan, responses),
        *check_roles(plan, responses),
    )


def count_by_status(results: Iterable[CheckResult]) -> dict[str, int]:
    """Return how many results are ok, missing and unknown."""
    counts = Counter(each.status for each in results)
    return {"ok": counts["ok"], "missing": counts["missing"], "unknown": counts["unknown"]}
