"""Risks for access and connections: roles, the Kubernetes API, the internet, images, alerts, protection.

Source for unconfirmed addresses: Amazon SNS developer guide, email subscriptions.
"""

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Final

from hpkit.changes import value_text
from hpkit.changes.review.model import Risk
from hpkit.config.models.network import Endpoint
from hpkit.plan.model import Plan
from hpkit.plan.registry import pulled_repositories
from hpkit.plan.user_ids import SQUASHED
from hpkit.text.formatting import listing, plural

__all__ = ["access_risks"]

_ANYWHERE: Final = "0.0.0.0/0"


def access_risks(before: Plan, after: Plan) -> Iterator[Risk]:
    """Yield what to watch in an environment that exists before and after."""
    if before.spec.protect and not after.spec.protect:
        yield Risk("unprotected", "attention", "protect", "deletion protection is turned off")
    yield from _boundary(before.spec.permissions_boundary, after.spec.permissions_boundary)
    yield from _roles(before, after)
    yield from _endpoint(before.spec.eks.endpoint, after.spec.eks.endpoint)
    yield from _way_out(before, after)
    yield from _images(before, after)
    yield from _alerts(before, after)
    yield from _files(before, after)
    yield from _spaces(before, after)


def _spaces(before: Plan, after: Plan) -> Iterator[Risk]:
    """Report from where members can reach spaces in addition, and from where they no longer can."""
    was, now = (_ways_in(plan) for plan in (before, after))
    for way in sorted(now - was):
        yield Risk("spaces", "attention", "spaces", f"members can reach their spaces {way}")
    for way in sorted(was - now):
        yield Risk("spaces", "attention", "spaces", f"members can no longer reach their spaces {way}")


def _ways_in(plan: Plan) -> set[str]:
    spaces = plan.spec.spaces
    if spaces is None:
        return set()
    connected = (
        {"from any network through Systems Manager, billed per hour and space"} if spaces.remote_access else set()
    )
    if spaces.web_ui is None:
        return connected
    where = "the internet" if spaces.web_ui.scheme == "internet-facing" else "the VPC and connected networks"
    return connected | {f"by a browser at *.{spaces.web_ui.domain}, from {where}"}


def _boundary(before: str | None, after: str | None) -> Iterator[Risk]:
    """Report the new limit of hpkit's roles: an added boundary removes permissions, a removed one adds them."""
    if before != after:
        means = (
            "the roles that hpkit creates no longer have a permissions boundary"
            if after is None
            else ("roles of nodes, add-ons and Karpenter can do no more than it allows, regardless of their policies")
        )
        said = f"permissionsBoundary {value_text(before)} → {value_text(after)}: {means}"
        yield Risk("boundary", "attention", "permissionsBoundary", said)


def _files(before: Plan, after: Plan) -> Iterator[Risk]:
    """List who loses access to files on the shared file system: owners on it are numbers, which nothing changes."""
    old, new = (each.spec.storage.lustre if each.spec.storage else None for each in (before, after))
    if old is None or new is None:
        return
    if old.root_squash != new.root_squash:
        means = (
            "the file system keeps its root squash until `aws fsx update-file-system` sets RootSquash to 0:0"
            if new.root_squash is None
            else f"root on clients becomes user {SQUASHED} and can no longer access root's files, except on clients in "
            f"noSquashNids ({listing(list(new.root_squash.no_squash_nids)) or 'none'})"
        )
        yield Risk("root-squash", "attention", "storage.lustre.rootSquash", f"rootSquash changes: {means}")
    if not (old.teams and new.teams):
        return
    ids = {team.name: team.user_ids for team in before.teams}
    for team in after.teams:
        own = ids.get(team.name, team.user_ids)
        if own != team.user_ids:
            yield Risk(
                "user-ids",
                "attention",
                team.name,
                f"userIds {own.start}–{own.stop - 1} → {team.user_ids.start}–{team.user_ids.stop - 1}: files of the "
                "old ids become inaccessible to the team until an administrator changes their owner",
                teams=(team.name,),
            )


def _roles(before: Plan, after: Plan) -> Iterator[Risk]:
    old, new = before.spec, after.spec
    for noun, was, now in (
        ("administrator", old.eks.administrators, new.eks.administrators),
        ("viewer", old.eks.viewers, new.eks.viewers),
        ("deployer", old.deployers, new.deployers),
    ):
        gone = [role for role in was if role not in now]
        if gone:
            ends = f"{plural(len(gone), noun)} no longer: {listing(gone, 20)}"
            yield Risk("access-removed", "attention", f"{noun}s", ends)
    gained = [role for role in new.eks.administrators if role not in old.eks.administrators]
    if gained:
        yield Risk(
            "administrators", "attention", "eks", f"{plural(len(gained), 'new administrator')}: {listing(gained)}"
        )
    looking = [role for role in new.eks.viewers if role not in old.eks.viewers]
    if looking:
        what = f"{plural(len(looking), 'new viewer')} of the whole cluster, except Secrets of teams: {listing(looking)}"
        yield Risk("viewers", "attention", "eks", what)


def _endpoint(old: Endpoint, new: Endpoint) -> Iterator[Risk]:
    was, now = _public(old), _public(new)
    opened = _beyond(now, was)
    if opened:
        yield Risk("endpoint", "attention", "eks", f"the Kubernetes API opens to {listing(opened)}")
    closed = [*_beyond(was, now), *_beyond(old.private_from, new.private_from)]
    if closed:
        texts = [_without(each, [*now, *new.private_from]) for each in closed]
        who = "clients in these ranges can no longer use kubectl"
        yield Risk("endpoint", "attention", "eks", f"the Kubernetes API closes to {listing(texts, 20)}: {who}")
    connected = _beyond(new.private_from, old.private_from)
    if connected:
        yield Risk(
            "endpoint", "attention", "eks", f"the Kubernetes API opens to connected networks {listing(connected)}"
        )


def _public(endpoint: Endpoint) -> Sequence[str]:
    """Return from where on the internet the API is reached; a public one that names no range is open to all."""
    return (endpoint.public_cidrs or (_ANYWHERE,)) if endpoint.public else ()


def _beyond(ranges: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the ranges that do not lie whole in one of the others."""
    return [each for each in ranges if not any(_lies_in(each, other) for other in others)]


def _without(cidr: str, kept: Sequence[str]) -> str:
    """Return a range, and its parts that are kept."""
    parts = [each for each in kept if _lies_in(each, cidr)]
    return f"{cidr} except for {' and '.join(parts)}" if parts else cidr


def _lies_in(inner: str, outer: str) -> bool:
    """Return whether a range is part of another; an invalid range is part of itself only."""
    try:
        inner_network, outer_network = (ipaddress.IPv4Network(each, strict=False) for each in (inner, outer))
    except ValueError:
        return inner == outer
    return inner_network.subnet_of(outer_network)


def _way_out(before: Plan, after: Plan) -> Iterator[Risk]:
    """Report that a network that hpkit creates opens or closes to the internet."""
    if before.spec.network.existing is not None or after.spec.network.existing is not None:
        return
    was, now = (bool(plan.network.nat_gateways) for plan in (before, after))
    if now and not was:
        means = "from now on, nodes and their pods can reach the whole internet, not only services with an endpoint"
        yield Risk("egress-changed", "attention", "network", f"the network opens: {means}")
    if was and not now:
        means = (
            "nodes and their pods can only reach services with an endpoint: no images from other registries, and no "
            "packages or data from the internet"
        )
        yield Risk("egress-changed", "attention", "network", f"the network closes: {means}")


def _images(before: Plan, after: Plan) -> Iterator[Risk]:
    was, now = (pulled_repositories(each, each.spec.account or "") for each in (before, after))
    if now is None:
        return
    removed = ["any other repository of the account"] if was is None else [name for name in was if name not in now]
    if removed:
        yield Risk(
            "image-access-reduced",
            "attention",
            "registry",
            f"nodes no longer pull images of {listing(removed)}: if jobs need other images than "
            f"{listing(list(now))}, add them to `registry.pullFrom`",
        )


def _alerts(before: Plan, after: Plan) -> Iterator[Risk]:
    """Yield recipients that alerts no longer reach, and those that must first confirm their address."""
    was, now = (_emails(plan) for plan in (before, after))
    removed, come = ([each for each in one if each not in other] for one, other in ((was, now), (now, was)))
    if removed:
        waits = f"; {listing(come)} gets no alerts until the recipient confirms the link that AWS sends" if come else ""
        yield Risk("alerts", "attention", "observability", f"{listing(removed)} no longer gets alerts{waits}")
    silent = [each for each in _events(before) if each not in _events(after)]
    if silent:
        yield Risk("alerts", "attention", "events", f"no more alerts about {listing(silent)}")


def _events(plan: Plan) -> tuple[str, ...]:
    """Return the cluster's events that EventBridge reports."""
    alerts = plan.spec.observability.alerts if plan.spec.observability is not None else None
    if alerts is None or alerts.events is None:
        return ()
    events = alerts.events
    return (
        *(f"the cluster being {each}" for each in events.statuses),
        *(["unhealthy nodes"] if events.node_health else []),
        *(f"{each} events" for each in events.levels),
    )


def _emails(plan: Plan) -> tuple[str, ...]:
    alerts = plan.spec.observability.alerts if plan.spec.observability is not None else None
    return alerts.emails if alerts is not None else ()
