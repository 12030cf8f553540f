"""The functions that programs call to look things up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from local.plugins.aws.calls import Calls
from provider.values import Props

__all__ = ["FUNCTIONS", "Function"]


@dataclass(frozen=True)
class Function:
    """One function: its calls, and its answer to arguments."""

    token: str
    service: str
    calls: str
    answer: Callable[[Calls, Props], Props]


def _caller(call: Calls, args: Props) -> Props:
    del args
    answer = call("GetCallerIdentity")
    return {
        "id": answer["Account"],
        "accountId": answer["Account"],
        "arn": answer["Arn"],
        "userId": answer["UserId"],
    }


FUNCTIONS: Final[dict[str, Function]] = {
    function.token: function
    for function in (Function("aws:index/getCallerIdentity:getCallerIdentity", "sts", "GetCallerIdentity", _caller),)
}
