"""The page about the deployer's permissions, with the policies of one example."""

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from string import Template
from typing import Final

from hpkit.program.iam.account import AwsAccount
from hpkit.program.iam.deployer import NO_ACCOUNT, SIZE_LIMIT, calling_types, deployer_policies, policies_text
from hpkit.program.recording import Answers, record
from hpkit.project import load_stack

__all__ = ["FILES"]

_EXAMPLE: Final = "handson-dev"


@cache
def _reference() -> str:
    """Return the output of `hpkit aws deployer-policy --stack` for the example."""
    (plan,) = load_stack(_EXAMPLE).plans.values()
    account = plan.spec.account or NO_ACCOUNT
    types = calling_types(each.type for each in record(plan, Answers(account=account)).resources.values())
    return policies_text(deployer_policies(plan, AwsAccount("aws", plan.spec.region, account), types))


def _page() -> str:
    """Return docs/reference/deployer-policy.md."""
    policies = json.loads(_reference())
    parts = {
        "COUNT": str(len(policies)),
        "EXAMPLE": _EXAMPLE,
        "LIMIT": f"{SIZE_LIMIT:,}",
        "NO_ACCOUNT": NO_ACCOUNT,
    }
    return Template((Path(__file__).parent / "deployer_policy.md").read_text(encoding="utf-8")).substitute(parts)


FILES: Final[dict[str, Callable[[], str]]] = {
    "docs/reference/deployer-policy.md": _page,
}
