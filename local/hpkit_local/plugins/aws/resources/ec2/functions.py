"""The function that returns availability zones."""

from __future__ import annotations

from typing import Final

from hpkit_local.plugins.aws.calls import Calls
from hpkit_local.plugins.aws.function import Function
from hpkit_provider.engine.values import Props

__all__ = ["FUNCTIONS"]


def _zones(call: Calls, args: Props) -> Props:
    state = [{"Name": "state", "Values": [args["state"]]}] if args.get("state") else []
    filters = [*state, *({"Name": each["name"], "Values": each["values"]} for each in args.get("filters", []))]
    answer = call("DescribeAvailabilityZones", Filters=filters or None)["AvailabilityZones"]
    left_out = {*args.get("excludeNames", []), *args.get("excludeZoneIds", [])}
    zones = [zone for zone in answer if not left_out & {zone["ZoneName"], zone["ZoneId"]}]
    zones.sort(key=lambda zone: zone["ZoneName"])
    names, ids = [zone["ZoneName"] for zone in zones], [zone["ZoneId"] for zone in zones]
    return {"id": call.region, "names": names, "zoneIds": ids, "groupNames": [call.region]}


FUNCTIONS: Final = (
    Function(
        "aws:index/getAvailabilityZones:getAvailabilityZones",
        "ec2",
        ("state", "excludeNames", "excludeZoneIds", "filters"),
        "DescribeAvailabilityZones",
        _zones,
    ),
)
