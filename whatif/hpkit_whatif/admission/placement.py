"""Topology in a cycle: the places of running workloads, and whether places for a head are free.

Rules: Kueue's `flavorassigner/tas_flavorassigner.go` and `updateAssignmentForTAS`, version 0.19.2. Without topologies,
this module does nothing.
"""

from collections.abc import Iterable, Mapping, Sequence

from hpkit.kueue.model import Model
from hpkit_whatif.admission.assign import Assignment, Chosen, Mode, PodSetRequest, Request
from hpkit_whatif.admission.queue import QueuedWorkload
from hpkit_whatif.admission.topology import Grid, NoPlaceError

__all__ = ["Places"]

Placed = tuple[tuple[Grid, Mapping[str, int], tuple[tuple[str, int], ...]], ...]


class Places:
    """The topologies of a model, by flavor, and their usage."""

    def __init__(self, model: Model) -> None:
        self.grids = {
            flavor: Grid(topology.levels, topology.nodes, labels)
            for topology in model.topologies
            for flavor, labels in topology.flavors.items()
        }

    def leaves(self) -> frozenset[str] | None:
        """Return the names of all leaves; None without topologies."""
        return frozenset(leaf for grid in self.grids.values() for leaf in grid.leaves()) if self.grids else None

    def asked_by(self, request: Request) -> bool:
        """Return whether any pod set can be placed."""
        return bool(self.grids) and any(
            flavor in self.grids for each in request for group in each.groups for flavor in group.flavors
        )

    def place(self, assignment: Assignment, request: Request) -> None:
        """Find places for an assignment; without places, its mode gets worse."""
        if not self.grids or assignment.mode == Mode.NO_FIT or not self.asked_by(request):
            return
        if assignment.mode == Mode.FIT:
            try:
                self._find(assignment, request)
            except NoPlaceError:
                assignment.mode = Mode.PREEMPT
            else:
                return
        try:
            self._find(assignment, request, empty=True)
        except NoPlaceError:
            assignment.mode, assignment.reason = Mode.NO_FIT, "TopologyPlacementFailed"
        else:
            # Others may have to go from pairs of which enough is free, but scattered.
            for chosen, _, _ in self._placed_by(assignment, request):
                chosen.fits = False
                chosen.modes = dict.fromkeys(chosen.modes, Mode.PREEMPT)
        assignment.placed = ()

    def fits(self, assignment: Assignment, request: Request) -> bool:
        """Return whether there are places now."""
        try:
            self._find(assignment, request)
        except NoPlaceError:
            return False
        return True

    def place_without(self, assignment: Assignment, request: Request, victims: Sequence[QueuedWorkload]) -> None:
        """Find the places that will be there when the victims are gone."""
        if self.asked_by(request):
            for victim in victims:
                self.count(victim, -1)
            self.fits(assignment, request)
            for victim in victims:
                self.count(victim, 1)

    def reserve(self, assignment: Assignment, request: Request) -> None:
        """Find places on empty nodes for a workload without victims, to reserve them in this cycle."""
        if assignment.mode not in (Mode.NO_FIT, Mode.FIT) and self.asked_by(request):
            self._find(assignment, request, empty=True)

    def _placed_by(self, assignment: Assignment, request: Request) -> Iterable[tuple[Chosen, PodSetRequest, Grid]]:
        for chosen, pod_set in zip(assignment.pod_sets, request, strict=False):
            grid = next((self.grids[flavor] for flavor in chosen.flavors.values() if flavor in self.grids), None)
            if grid is not None and chosen.count:
                yield chosen, pod_set, grid

    def _find(self, assignment: Assignment, request: Request, *, empty: bool = False) -> None:
        assumed: dict[Grid, dict[str, dict[str, int]]] = {}
        placed: list[tuple[Grid, Mapping[str, int], tuple[tuple[str, int], ...]]] = []
        for chosen, pod_set, grid in self._placed_by(assignment, request):
            per_pod = pod_set.spec.per_pod
            assumed_usage = assumed.setdefault(grid, {})
            chosen.domains = grid.find(pod_set.spec.topology, chosen.count, per_pod, assumed=assumed_usage, empty=empty)
            for leaf, pods in chosen.domains:
                used = assumed_usage.setdefault(leaf, {})
                for resource, amount in (*per_pod.items(), ("pods", 1)):
                    used[resource] = used.get(resource, 0) + amount * pods
            placed.append((grid, per_pod, chosen.domains))
        assignment.placed = tuple(placed)

    def resume(self, task: QueuedWorkload) -> None:
        """Take the places of a running workload."""
        if not self.grids:
            return
        task.placed = tuple(
            (grid, spec.per_pod, assigned.domains)
            for spec, assigned in zip(task.spec.pod_sets, task.assignment, strict=False)
            for grid in {self.grids[flavor] for flavor in assigned.flavors.values() if flavor in self.grids}
        )
        self.add(task.placed)

    def count(self, task: QueuedWorkload, sign: int) -> None:
        """Add a workload's places to the count, or subtract them."""
        self._use(task.placed, sign)

    def add(self, placed: tuple[object, ...]) -> None:
        """Use places."""
        self._use(placed, 1)

    def remove(self, placed: tuple[object, ...]) -> None:
        """Return places."""
        self._use(placed, -1)

    def holds(self, placed: tuple[object, ...]) -> bool:
        """Return whether the places are free."""
        return all(grid.holds(domains, per_pod) for grid, per_pod, domains in _typed(placed))

    def _use(self, placed: tuple[object, ...], sign: int) -> None:
        for grid, per_pod, domains in _typed(placed):
            for leaf, pods in domains:
                grid.use(leaf, per_pod, sign * pods)


def _typed(placed: tuple[object, ...]) -> Placed:
    return placed  # type: ignore[return-value]
