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


def _zones(call: Calls, args: Props) -> Props:
    filters = [{"Name": each["name"], "Values": each["values"]} for each in args.get("filters", [])]
    if "state" in args:
        filters.append({"Name": "state", "Values": [args["state"]]})
    answer = call("DescribeAvailabilityZones", **({"Filters": filters} if filters else {}))
    left_out = {*args.get("excludeZoneIds", []), *args.get("excludeNames", [])}
    zones = [each for each in answer["AvailabilityZones"] if not {each["ZoneId"], each["ZoneName"]} & left_out]
    zones.sort(key=lambda each: str(each["ZoneName"]))
    return {
        "id": zones[0]["RegionName"] if zones else "",
        "names": [each["ZoneName"] for each in zones],
        "zoneIds": [each["ZoneId"] for each in zones],
        "groupNames": sorted({each.get("GroupName", each["RegionName"]) for each in zones}),
    }


def _partition(call: Calls, args: Props) -> Props:
    del args
    partition = call("GetCallerIdentity")["Arn"].split(":")[1]
    return {"id": partition, "partition": partition, "dnsSuffix": "amazonaws.com", "reverseDnsPrefix": "com.amazonaws"}


FUNCTIONS: Final[dict[str, Function]] = {
    function.token: function
    for function in (
        Function("aws:index/getCallerIdentity:getCallerIdentity", "sts", "GetCallerIdentity", _caller),
        Function("aws:index/getPartition:getPartition", "sts", "GetCallerIdentity", _partition),
        Function("aws:index/getAvailabilityZones:getAvailabilityZones", "ec2", "DescribeAvailabilityZones", _zones),
    )
}
