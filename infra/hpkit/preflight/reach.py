"""Checks whether this machine can reach the Kubernetes API: its own address, and EKS's endpoint."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from hpkit.clients.calls import FailedCall, Responses
from hpkit.plan.endpoint import admits, documentation_ranges
from hpkit.plan.model import Plan
from hpkit.preflight.calls import ENDPOINT, PUBLIC_ADDRESS, eks_cluster
from hpkit.preflight.model import CheckResult, call_failed, missing, ok, unknown
from hpkit.text.formatting import listing

__all__ = ["check_reach"]

_AREA: Final = "eks"
_WHAT: Final = "Kubernetes API reachable from here"


def check_reach(plan: Plan, responses: Responses) -> Iterator[CheckResult]:
    """Check that `pulumi up` can connect from here: a connection if the cluster exists, otherwise known facts."""
    response = responses.of(eks_cluster(plan))
    if not isinstance(response, FailedCall):
        yield _live(plan, response["cluster"], responses)
    elif not response.is_absence:
        yield call_failed(_AREA, _WHAT, response)
    elif plan.spec.eks.existing is None:
        yield _planned(plan, responses)


def _live(plan: Plan, cluster: Mapping[str, Any], responses: Responses) -> CheckResult:
    config = cluster.get("resourcesVpcConfig", {})
    needed = "a connection"
    tried = responses.of(ENDPOINT)
    if isinstance(tried, str):
        return ok(_AREA, _WHAT, found=tried, needed=needed)
    if tried.code == "NotAsked":
        why = f"{plan.eks_name} is {cluster.get('status', 'there')} and has no endpoint yet"
        return unknown(_AREA, _WHAT, why=why, fix="Run the command again when the cluster is ACTIVE", needed=needed)
    if config.get("endpointPublicAccess", True):
        ranges = list(config.get("publicAccessCidrs", ()))
        fix = f"Add your address to `publicCidrs`{_own(responses)}; its ranges are {listing(ranges)}"
    else:
        fix = (
            "Run the command inside the VPC, or in a connected network whose range is in `privateFrom`. Or make the "
            "endpoint public for your own ranges"
        )
    return missing(_AREA, _WHAT, found=f"{tried.code}: {tried.message}", needed=needed, fix=fix)


def _own(responses: Responses) -> str:
    address = responses.of(PUBLIC_ADDRESS)
    return "" if isinstance(address, FailedCall) else f", which is {address}"


def _planned(plan: Plan, responses: Responses) -> CheckResult:
    endpoint = plan.spec.eks.endpoint
    if not endpoint.public:
        return _inside(plan)
    needed = f"in {listing(list(endpoint.public_cidrs))}"
    address = responses.of(PUBLIC_ADDRESS)
    documented = documentation_ranges(endpoint.public_cidrs)
    # Only the local cloud has callers at such addresses.
    if documented and (isinstance(address, FailedCall) or not documentation_ranges([f"{address}/32"])):
        fix = "Use the public addresses from which you connect"
        return missing(_AREA, _WHAT, found=f"{listing(documented)} is a documentation range", needed=needed, fix=fix)
    if isinstance(address, FailedCall):
        return call_failed(_AREA, _WHAT, address, needed=needed)
    try:
        inside = admits(address, endpoint.public_cidrs)
    except ValueError:
        why = f"your public address is {address}, which isn't an IPv4 address"
        return unknown(_AREA, _WHAT, why=why, fix="Run the command from a network with IPv4", needed=needed)
    if not inside:
        fix = f"Add {address}/32 to `eks.endpoint.publicCidrs`, or deploy from an address that is in it"
        return missing(_AREA, _WHAT, found=address, needed=needed, fix=fix)
    return ok(_AREA, _WHAT, found=address, needed=needed)


def _inside(plan: Plan) -> CheckResult:
    ranges = list(plan.spec.eks.endpoint.private_from)
    needed = f"in {listing(ranges)}" if ranges else "inside the VPC"
    if plan.spec.network.existing is None:
        fix = (
            "Let the first `pulumi up` stop where it needs the Kubernetes API, connect the VPC, and continue from a "
            "network in `privateFrom`. Or start with `publicCidrs`"
        )
        return missing(_AREA, _WHAT, found="the VPC doesn't exist yet", needed=needed, fix=fix)
    why = "the cluster doesn't exist yet, and whether its private endpoint is reachable depends on routes"
    return unknown(_AREA, _WHAT, why=why, fix="Deploy from inside the VPC or a connected network", needed=needed)
