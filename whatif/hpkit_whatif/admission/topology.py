"""Finds places for pods close to each other: Kueue's `pkg/cache/scheduler/tas_flavor_snapshot.go`, version 0.19.2.

It doesn't support slices, groups of pod sets, replacement of failed nodes, balanced placement (off in that version).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from hpkit.kueue.model import Node, TopologyRequest

__all__ = ["Domain", "Grid", "NoPlaceError", "Requests"]

Requests = Mapping[str, int]
HOSTNAME = "kubernetes.io/hostname"


class NoPlaceError(ValueError):
    """The pods don't fit; `fits_only` is the number that would."""

    def __init__(self, fits_only: int, count: int) -> None:
        super().__init__(f"the topology allows to fit only {fits_only} out of {count} pods")
        self.fits_only = fits_only


@dataclass(slots=True, eq=False)
class Domain:
    """A domain of the topology: its label values from the top, its capacity if it's a leaf, and how many pods fit."""

    values: tuple[str, ...]
    children: list[Domain] = field(default_factory=list)
    capacity: dict[str, int] = field(default_factory=dict)
    used: dict[str, int] = field(default_factory=dict)
    fits: int = 0


class Grid:
    """The domains of one flavor, and their usage."""

    def __init__(self, levels: Sequence[str], nodes: Sequence[Node], labels: Mapping[str, str]) -> None:
        self.levels = tuple(levels)
        self._domains: list[dict[tuple[str, ...], Domain]] = [{} for _ in self.levels]
        self._leaves: dict[str, Domain] = {}
        for node in nodes:
            node_labels = {HOSTNAME: node.name, **node.labels}
            matches = all(node_labels.get(key) == value for key, value in labels.items())
            if node.ready and matches and all(level in node_labels for level in self.levels):
                self._add(tuple(node_labels[level] for level in self.levels), node)

    def _add(self, values: tuple[str, ...], node: Node) -> None:
        parent: Domain | None = None
        for level in range(len(self.levels)):
            path = values[: level + 1]
            domain = self._domains[level].get(path)
            if domain is None:
                domain = self._domains[level][path] = Domain(path)
                if parent is not None:
                    parent.children.append(domain)
            parent = domain
        if parent is not None:
            for resource, amount in node.allocatable.items():
                parent.capacity[resource] = parent.capacity.get(resource, 0) + amount
            self._leaves[self._name(parent)] = parent

    def _name(self, leaf: Domain) -> str:
        return leaf.values[-1] if self.levels[-1] == HOSTNAME else ",".join(leaf.values)

    def leaves(self) -> Collection[str]:
        """Return the names of its leaves."""
        return self._leaves.keys()

    def use(self, leaf: str, per_pod: Requests, pods: int) -> None:
        """Use a leaf for so many more pods, or fewer."""
        used = self._leaves[leaf].used
        for resource, amount in (*per_pod.items(), ("pods", 1)):
            used[resource] = used.get(resource, 0) + amount * pods

    def holds(self, domains: Sequence[tuple[str, int]], per_pod: Requests) -> bool:
        """Return whether these leaves have room for these pods, ignoring the maximum number of pods per node.

        Kueue checks only requests in this step (`TASFlavorSnapshot.Fits`), so two workloads that are admitted in one
        cycle can have more pods than their node allows.
        """
        for name, pods in domains:
            leaf = self._leaves[name]
            for resource, amount in per_pod.items():
                if leaf.capacity.get(resource, 0) - leaf.used.get(resource, 0) < amount * pods:
                    return False
        return True

    def has_level(self, request: TopologyRequest | None) -> bool:
        """Return whether the requested level is one of the topology's."""
        return request is None or request.mode == "unconstrained" or request.level in self.levels

    def find(
        self,
        request: TopologyRequest | None,
        count: int,
        per_pod: Requests,
        *,
        assumed: Mapping[str, Mapping[str, int]] | None = None,
        empty: bool = False,
    ) -> tuple[tuple[str, int], ...]:
        """Return the leaves with the number of pods on each. Raises NoPlaceError if they don't fit.

        request: None means unconstrained. assumed: usage of leaves in addition to the counted usage. empty: assume no
        usage at all.
        """
        for leaf, domain in self._leaves.items():
            domain.fits = self._fitting(domain, per_pod, (assumed or {}).get(leaf, {}), empty=empty)
        for level in reversed(range(len(self.levels) - 1)):
            for domain in self._domains[level].values():
                domain.fits = sum(child.fits for child in domain.children)
        search = _Search(self._domains, request, count)
        start = len(self.levels) - 1
        if request is not None and request.mode != "unconstrained" and request.level is not None:
            start = self.levels.index(request.level)
        level, chosen = search.level(start)
        chosen = search.spread(chosen)
        for _ in range(level, len(self.levels) - 1):
            chosen = search.spread(search.sorted(child for domain in chosen for child in domain.children))
        return tuple((self._name(leaf), leaf.fits) for leaf in sorted(chosen, key=_values) if leaf.fits)

    def _fitting(self, leaf: Domain, per_pod: Requests, assumed: Requests, *, empty: bool) -> int:
        fits: int | None = None
        for resource, amount in (*per_pod.items(), ("pods", 1)):
            if amount:
                free = leaf.capacity.get(resource, 0) - assumed.get(resource, 0)
                free -= 0 if empty else leaf.used.get(resource, 0)
                fits = max(0, free // amount) if fits is None else min(fits, max(0, free // amount))
        return fits or 0


def _values(domain: Domain) -> tuple[str, ...]:
    return domain.values


class _Search:
    def __init__(
        self, domains: Sequence[Mapping[tuple[str, ...], Domain]], request: TopologyRequest | None, count: int
    ) -> None:
        self._domains = domains
        self._required = request is not None and request.mode == "required"
        self._unconstrained = request is None or request.mode == "unconstrained"
        self._count = count

    def sorted(self, domains: object) -> list[Domain]:
        """Return domains in the order in which they are filled: most room first.

        For unconstrained, least room first.
        """
        key: Callable[[Domain], tuple[int, tuple[str, ...]]]
        if self._unconstrained:
            key = lambda domain: (domain.fits, domain.values)  # noqa: E731 - one of two
        else:
            key = lambda domain: (-domain.fits, domain.values)  # noqa: E731 - the other
        return sorted(domains, key=key)  # type: ignore[call-overload,no-any-return]

    def level(self, level: int) -> tuple[int, list[Domain]]:
        """Return the level at which the pods fit, the requested one or one above, and its domains."""
        domains = self.sorted(self._domains[level].values())
        if not domains:
            raise NoPlaceError(0, self._count)
        for domain in domains if self._unconstrained else [self._best(domains, self._count)]:
            if domain.fits >= self._count:
                return level, [domain]
        if self._required:
            raise NoPlaceError(domains[0].fits, self._count)
        if level > 0 and not self._unconstrained:
            return self.level(level - 1)
        return level, self._several(domains)

    def _several(self, domains: list[Domain]) -> list[Domain]:
        chosen = []
        remaining = self._count
        for index in range(len(domains)):
            if remaining <= 0:
                break
            domain = domains[index] if self._unconstrained else self._best(domains[index:], remaining)
            chosen.append(domain)
            remaining -= domain.fits
        if remaining > 0:
            raise NoPlaceError(self._count - remaining, self._count)
        return chosen

    def spread(self, domains: list[Domain]) -> list[Domain]:
        """Return the fewest domains that hold the pods, each with its number of pods."""
        chosen = []
        remaining = self._count
        for index in range(len(domains)):
            domain = domains[index] if self._unconstrained else self._best(domains[index:], remaining)
            domain.fits = min(domain.fits, remaining)
            chosen.append(domain)
            remaining -= domain.fits
            if remaining <= 0:
                break
        return chosen

    def _best(self, domains: list[Domain], count: int) -> Domain:
        """Return the first domain, or the smallest one that holds everything if the first does."""
        if domains[0].fits < count:
            return domains[0]
        return min((domain for domain in domains if domain.fits >= count), key=lambda domain: domain.fits)
