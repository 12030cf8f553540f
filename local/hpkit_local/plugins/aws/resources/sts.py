"""The functions that return the caller and the partition."""

from typing import Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.resource_type import Function
from hpkit_provider.engine.values import Props

__all__ = ["FUNCTIONS"]


def _caller(call: Calls, _args: Props) -> Props:
    answer = call("GetCallerIdentity")
    account = answer["Account"]
    return {"id": account, "accountId": account, "arn": answer["Arn"], "userId": answer["UserId"]}


def _partition(_call: Calls, _args: Props) -> Props:
    return {"id": "aws", "partition": "aws", "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"}


FUNCTIONS: Final = (
    Function("aws:index/getCallerIdentity:getCallerIdentity", "sts", (), "GetCallerIdentity", _caller),
    Function("aws:index/getPartition:getPartition", "sts", (), "", _partition),
)
