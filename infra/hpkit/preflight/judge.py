"""All rows of a plan, in the order in which people ask."""

from collections import Counter
from collections.abc import Iterable

from hpkit.config.organization import Organization
from hpkit.plan.model import Plan
from hpkit.preflight.account import account_rows, role_rows
from hpkit.preflight.eks import eks_rows
from hpkit.preflight.hyperpod import hyperpod_rows
from hpkit.preflight.model import Answers, Row
from hpkit.preflight.network import network_rows, zone_rows
from hpkit.preflight.quotas import quota_rows

__all__ = ["judge", "tally"]


def judge(organization: Organization, plan: Plan, answers: Answers) -> tuple[Row, ...]:
    """Return whether the account has what the plan needs, thing by thing."""
    return (
        *account_rows(plan, answers),
        *quota_rows(plan, answers),
        *zone_rows(plan, answers),
        *network_rows(organization, plan, answers),
        *eks_rows(plan, answers),
        *hyperpod_rows(plan, answers),
        *role_rows(plan, answers),
    )


def tally(rows: Iterable[Row]) -> dict[str, int]:
    """Return how many rows are ok, missing and unknown."""
    counts = Counter(row.status for row in rows)
    return {"ok": counts["ok"], "missing": counts["missing"], "unknown": counts["unknown"]}
